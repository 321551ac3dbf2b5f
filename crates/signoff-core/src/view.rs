//! What people see of a run: one fold over its log, shared by every renderer.

mod badge;
mod overview;
mod phase_place;
mod question;
mod run_row;
mod status;
mod task_row;
mod task_state;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use badge::Badge;
pub use overview::{Blocker, Counts, Overview};
pub use phase_place::PhasePlace;
pub use question::QuestionView;
pub use run_row::RunRow;
pub use status::Status;
pub use task_row::{QuestionRow, TaskRow, is_shared, void_approvals};
pub use task_state::TaskState;

use crate::group::{self, Run, RunPolicy, RunStage};
use crate::heard::TroubleKind;
use crate::ids::{AttemptId, Commit, LoopId, QuestionId, RunId, TaskId};
use crate::machine::{self, FinalWord, Loop, Outcome, Policy, Reason, Refusal, Slot, Stage, Tally, Waited};
use crate::review::Usage;
use crate::wire::{Fact, Launch, LoopFact, Recorded, RunFact, TaskFact};
use crate::workflow::{Arrangement, Landing, Phase};

/// A run as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunView {
    pub run: Option<RunId>,
    pub started_at: Option<Timestamp>,
    pub last_at: Option<Timestamp>,
    /// The number of the last fact taken in.
    pub seq: u64,
    under: Option<(RunPolicy, Policy)>,
    /// What people call that which the run is to bring about.
    specification: Option<String>,
    machine: Run,
    /// How many questions were asked in this run: people see one row of numbers, whatever loop asks.
    asked: u64,
    loops: BTreeMap<LoopId, LoopFold>,
    /// What the tracker calls the tasks that came from one.
    tracked: BTreeMap<TaskId, String>,
    /// The last policy that a loop was given. Most loops of a run have the same one, and share it.
    given: Option<Arc<Policy>>,
}

/// What is folded for one loop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct LoopFold {
    task: Option<TaskId>,
    title: String,
    branch: String,
    state: Loop,
    /// Its own policy, where it is not the run's.
    policy: Option<Arc<Policy>>,
    /// The number under which its open question is known.
    question: Option<QuestionId>,
    usage: BTreeMap<AttemptId, Usage>,
    /// The attempts whose start was recorded.
    launches: BTreeMap<AttemptId, Launch>,
    base: Option<Commit>,
    worktree: String,
    last_line: String,
    since: Option<Timestamp>,
    /// The checkpoint review of it that is under way.
    checkpoint: Option<u32>,
}

/// One loop, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoopView {
    pub id: LoopId,
    pub task: Option<TaskId>,
    /// What the tracker calls the task it came from: `b-1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracker_id: Option<String>,
    pub title: String,
    pub branch: String,
    pub base: Option<Commit>,
    pub worktree: String,
    pub badge: Badge,
    pub status: Status,
    pub state: TaskState,
    pub phase: String,
    pub pass: u32,
    /// The same with how far it goes, where people count the phases.
    pub place: Option<PhasePlace>,
    pub cycle: u32,
    /// The most reviews the gate allows.
    pub max_cycles: Option<u32>,
    pub iteration: u32,
    pub fixes: u32,
    /// Which one of its kind the attempt under way is: 3 for the third `implement`. 0 while none is.
    pub attempt: u32,
    /// The number of the checkpoint review that looks at it now.
    pub checkpoint: Option<u32>,
    pub outcome: Option<&'static str>,
    /// How many findings the reviewers reported in the last round that do not block because a person decided so.
    #[serde(skip)]
    pub overruled: usize,
    pub final_verdict: Option<FinalWord>,
    pub reason: Option<Reason>,
    pub open_findings: usize,
    pub usage: Usage,
    pub last_line: String,
    /// When its stage last changed.
    pub since: Option<Timestamp>,
    pub question: Option<QuestionView>,
    /// The rate limit it waits out, where it can do nothing else.
    pub wait: Option<Wait>,
}

/// A provider that refuses an agent for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Wait {
    /// Who is asked again.
    pub agent: String,
    #[schemars(with = "String")]
    pub until: Timestamp,
    /// Whether nobody is served now; otherwise the agent asked for more than it may.
    #[serde(default)]
    pub overloaded: bool,
    /// What the agent says; null where it says nothing.
    #[serde(default)]
    pub why: Option<String>,
    /// The agents that fell in for it, and were refused too.
    #[serde(default)]
    pub fell_in: Vec<String>,
}

impl RunView {
    /// The view of a whole log.
    pub fn of<'a>(log: impl IntoIterator<Item = &'a Recorded>) -> Self {
        let mut view = Self::default();
        for recorded in log {
            view.apply(recorded);
        }
        view
    }

    /// Takes one fact in.
    pub fn apply(&mut self, recorded: &Recorded) {
        self.run = Some(recorded.run);
        self.started_at = self.started_at.or(Some(recorded.at));
        self.last_at = Some(recorded.at);
        self.seq = recorded.seq;
        match &recorded.fact {
            Fact::Task(task, TaskFact::Added { spec, .. }) => {
                let tracked = spec.tracked.as_ref().map(|tracked| (*task, tracked.id.clone()));
                self.tracked.extend(tracked);
            }
            Fact::Task(_, TaskFact::Withdrawn { .. }) => {}
            Fact::Run(fact) => self.run_fact(fact),
            Fact::Loop(loop_id, fact) => self.loop_fact(loop_id, fact, recorded.at),
        }
    }

    fn run_fact(&mut self, fact: &RunFact) {
        match fact {
            RunFact::Opened { policy, workflow } => self.under = Some((policy.clone(), (**workflow).clone())),
            RunFact::Specified { name, .. } => self.specification = Some(name.clone()),
            RunFact::Moved(event) => {
                if let Some((policy, _)) = &self.under {
                    group::apply(&mut self.machine, event.clone(), policy);
                }
            }
        }
    }

    fn loop_fact(&mut self, loop_id: &LoopId, fact: &LoopFact, at: Timestamp) {
        let fold = self.loops.entry(loop_id.clone()).or_default();
        match fact {
            LoopFact::Added { task, title, branch } => {
                (fold.task, fold.title, fold.branch) = (Some(*task), title.clone(), branch.clone());
                fold.since = Some(at);
            }
            LoopFact::Governed { policy } => {
                let same = self.given.take().filter(|given| **given == **policy);
                self.given = same.or_else(|| Some(Arc::new((**policy).clone())));
                fold.policy.clone_from(&self.given);
            }
            LoopFact::CheckpointReviewed { .. }
            | LoopFact::Answered { .. }
            | LoopFact::Session { .. }
            | LoopFact::Noted { .. } => {}
            LoopFact::Placed { base, worktree } => {
                (fold.base, fold.worktree) = (Some(base.clone()), worktree.clone());
            }
            LoopFact::AttemptStarted { attempt, launch } => {
                fold.launches.insert(*attempt, launch.clone());
            }
            LoopFact::Used { attempt, usage } => {
                fold.usage.insert(*attempt, *usage);
            }
            LoopFact::Said { line, .. } => fold.last_line = line.clone(),
            LoopFact::Moved(event) => {
                if let Some((_, policy)) = &self.under {
                    fold.moved(event, policy, at, &mut self.asked);
                    let under_way = !fold.state.is_done();
                    self.looked_at(loop_id, under_way);
                }
            }
        }
    }

    /// A checkpoint review shows in the row of the loop that it looks at.
    fn looked_at(&mut self, loop_id: &LoopId, under_way: bool) {
        let Some((of, number)) = loop_id.of_checkpoint() else { return };
        if let Some(fold) = self.loops.get_mut(&of) {
            fold.checkpoint = under_way.then_some(number);
        }
    }

    /// Whether its tracker is still to be told that a task is done.
    pub fn owes_a_tracker(&self) -> bool {
        !self.machine.unclosed.is_empty()
    }

    pub fn stage(&self) -> &RunStage {
        &self.machine.stage
    }

    pub fn preset(&self) -> Option<&str> {
        self.under.as_ref().map(|(_, policy)| policy.workflow.name.as_str())
    }

    /// The state of one loop, for those who need more than the row.
    pub fn loop_state(&self, loop_id: &LoopId) -> Option<&Loop> {
        self.loops.get(loop_id).map(|fold| &fold.state)
    }

    /// All loops, in order of their ids.
    pub fn loop_ids(&self) -> impl Iterator<Item = &LoopId> {
        self.loops.keys()
    }

    /// The policy of one loop: its own, or the run's.
    pub fn loop_policy(&self, loop_id: &LoopId) -> Option<&Policy> {
        let own = self.loops.get(loop_id)?.policy.as_deref();
        own.or(self.under.as_ref().map(|(_, policy)| policy))
    }

    /// The row of one loop.
    pub fn row(&self, loop_id: &LoopId) -> Option<LoopView> {
        let (_, policy) = self.under.as_ref()?;
        Some(self.whole(self.loops.get(loop_id)?.row(loop_id, policy, &self.machine)))
    }

    /// A row under its name, with what its checkpoint reviews used.
    fn whole(&self, row: LoopView) -> LoopView {
        let looks = |loop_id: &LoopId| loop_id.of_checkpoint().is_some_and(|(of, _)| of == row.id);
        let after =
            self.loops.range(&row.id..).take_while(|(id, _)| id.as_str().starts_with(row.id.as_str()));
        let used = after.filter(|(loop_id, _)| looks(loop_id)).flat_map(|(_, fold)| fold.usage.values());
        let usage = used.fold(row.usage, |sum, one| sum.plus(*one));
        self.named(LoopView { usage, ..row })
    }

    /// A loop that serves the run is called by what it does, one of a tracker's task also as the tracker calls it.
    fn named(&self, row: LoopView) -> LoopView {
        let tracker_id = row.task.and_then(|task| self.tracked.get(&task).cloned());
        let row = LoopView { tracker_id, ..row };
        let title = if row.id == LoopId::planning() {
            let of = self.specification.as_ref().map(|name| format!(" {name}"));
            format!("Planning{}", of.unwrap_or_default())
        } else if row.id == LoopId::whole() {
            "Final review".to_owned()
        } else {
            return row;
        };
        LoopView { title, ..row }
    }

    /// The attempts of one loop that were started, with what each used.
    pub fn attempts(&self, loop_id: &LoopId) -> Vec<(AttemptId, &Launch, Usage)> {
        let fold = self.loops.get(loop_id);
        let usage = |fold: &LoopFold, attempt| fold.usage.get(attempt).copied().unwrap_or_default();
        let started = fold.into_iter().flat_map(|fold| fold.launches.iter().map(move |one| (fold, one)));
        started.map(|(fold, (attempt, launch))| (*attempt, launch, usage(fold, attempt))).collect()
    }

    /// How an attempt was started.
    pub fn launch(&self, loop_id: &LoopId, attempt: AttemptId) -> Option<&Launch> {
        self.loops.get(loop_id)?.launches.get(&attempt)
    }

    /// Which agent an attempt is of.
    pub fn agent(&self, loop_id: &LoopId, attempt: AttemptId) -> Option<&str> {
        self.launch(loop_id, attempt).map(|launch| launch.agent.as_str())
    }

    /// The loops in order of their ids. A checkpoint's loop shows in the row of the one that it looks at.
    pub fn rows(&self) -> Vec<LoopView> {
        let Some((_, policy)) = &self.under else { return Vec::new() };
        let own = self.loops.iter().filter(|(loop_id, _)| loop_id.of_checkpoint().is_none());
        own.map(|(loop_id, fold)| self.whole(fold.row(loop_id, policy, &self.machine))).collect()
    }

    /// The run as a whole.
    pub fn overview(&self) -> Overview {
        Overview::of(self, &self.machine)
    }

    /// The branch on which its tasks come together, if they do.
    pub fn branch(&self) -> Option<String> {
        let (policy, _) = self.under.as_ref()?;
        let together = policy.arrangement == Arrangement::Chain || policy.landing != Landing::None;
        self.run.filter(|_| together).map(RunId::branch)
    }

    /// Of how many groups, where its tasks are worked in groups.
    pub fn groups(&self) -> Option<usize> {
        let (policy, _) = self.under.as_ref()?;
        (policy.arrangement == Arrangement::Groups).then_some(self.machine.groups.len())
    }

    /// What people call that which it is to bring about.
    pub fn specification(&self) -> Option<&str> {
        self.specification.as_deref()
    }

    /// The loops of the checkpoint round under way; none while none is.
    pub fn checkpoint(&self) -> &[LoopId] {
        self.machine.checkpoint.round()
    }

    /// What all attempts of all loops used.
    pub fn usage(&self) -> Usage {
        self.loops
            .values()
            .flat_map(|fold| fold.usage.values())
            .fold(Usage::default(), |sum, one| sum.plus(*one))
    }

    /// The loops that ask something, whatever they serve.
    pub fn asking(&self) -> impl Iterator<Item = &LoopId> {
        self.loops.iter().filter(|(_, fold)| fold.question.is_some()).map(|(loop_id, _)| loop_id)
    }

    /// The loops that are paused because a cap is reached.
    pub fn short_of_budget(&self) -> impl Iterator<Item = &LoopId> {
        let short = |fold: &LoopFold| fold.state.paused_for() == Some(Reason::Budget);
        self.loops.iter().filter(move |(_, fold)| short(fold)).map(|(loop_id, _)| loop_id)
    }

    /// What people are asked.
    pub fn questions(&self) -> Vec<QuestionView> {
        self.rows().into_iter().filter_map(|row| row.question).collect()
    }
}

impl LoopFold {
    fn moved(&mut self, event: &machine::Event, policy: &Policy, at: Timestamp, asked: &mut u64) {
        let before = doing(&self.state);
        let waiting = question_of(&self.state);
        machine::apply(&mut self.state, event.clone(), self.policy.as_deref().unwrap_or(policy));
        if question_of(&self.state) != waiting {
            let now = question_of(&self.state);
            *asked += u64::from(now.is_some());
            self.question = now.map(|_| QuestionId(*asked));
        }
        if doing(&self.state) != before {
            self.since = Some(at);
        }
    }

    fn badge(&self) -> Badge {
        if self.checkpoint.is_some() && !self.state.is_done() {
            return Badge::Review;
        }
        Badge::of(&self.state, |attempt| self.launches.contains_key(&attempt))
    }

    /// Which one of its kind the latest attempt under way is.
    fn attempt(&self) -> u32 {
        let running = self.state.slots().into_iter().filter_map(Slot::attempt);
        let latest = running
            .filter_map(|attempt| Some((attempt, self.launches.get(&attempt)?)))
            .max_by_key(|one| one.0);
        let Some((latest, launch)) = latest else { return 0 };
        let same = |one: &Launch| one.role == launch.role && one.reviewer == launch.reviewer;
        let so_far = self.launches.range(..=latest).filter(|(_, one)| same(one)).count();
        u32::try_from(so_far).unwrap_or(u32::MAX)
    }

    /// The first wait that ends, of those it is paused for.
    fn wait(&self) -> Option<Wait> {
        self.state.paused_for().filter(|reason| *reason == Reason::RateLimited)?;
        let Waited { until, refused } = self.state.waits().into_iter().min_by_key(|wait| wait.until)?;
        let agent =
            |refusal: &&Refusal| self.launches.get(&refusal.attempt).map(|launch| launch.agent.clone());
        let mut agents = refused.iter().map(|refusal| agent(refusal).unwrap_or_default());
        let why = refused.first().and_then(|refusal| refusal.why.as_ref());
        Some(Wait {
            agent: agents.next().unwrap_or_default(),
            until,
            overloaded: why.is_some_and(|why| why.kind == TroubleKind::Overloaded),
            why: why.map(|why| why.message.clone()).filter(|why| !why.is_empty()),
            fell_in: agents.collect(),
        })
    }

    fn row(&self, loop_id: &LoopId, policy: &Policy, run: &Run) -> LoopView {
        let this = &self.state;
        let policy = self.policy.as_deref().unwrap_or(policy);
        let phase = policy.workflow.phases.get(this.at.phase);
        let ending = if let Stage::Done(ending) = &this.stage { Some(ending) } else { None };
        let is_blocked = matches!(run.stage, RunStage::Blocked { .. });
        let overruled = machine::overruled(this, policy).len();
        LoopView {
            id: loop_id.clone(),
            task: self.task,
            tracker_id: None,
            title: self.title.clone(),
            branch: self.branch.clone(),
            base: self.base.clone(),
            worktree: self.worktree.clone(),
            badge: self.badge(),
            status: Status::of(this, is_blocked),
            state: TaskState::of_loop(this, is_blocked),
            phase: phase.map(|phase| phase.name.clone()).unwrap_or_default(),
            pass: this.at.pass,
            place: PhasePlace::of(this, policy),
            cycle: this.review_number(),
            max_cycles: max_cycles(this, policy),
            iteration: this.tally.iteration,
            fixes: this.tally.fixes,
            attempt: self.attempt(),
            checkpoint: self.checkpoint.filter(|_| !this.is_done()),
            outcome: ending.and_then(|ending| {
                // Reviewers did not approve what they would have blocked without a person's decision.
                let accepted = overruled > 0 && matches!(ending.outcome, Outcome::Approved { .. });
                if accepted { Some("accepted") } else { ending.outcome.word() }
            }),
            overruled,
            final_verdict: this.final_verdict(),
            reason: ending.and_then(|ending| ending.reason).or_else(|| this.paused_for()),
            open_findings: this.open_findings(),
            usage: self.usage.values().fold(Usage::default(), |sum, one| sum.plus(*one)),
            last_line: self.last_line.clone(),
            since: self.since,
            question: self.question.and_then(|id| QuestionView::of(this, id, self.task)),
            wait: self.wait(),
        }
    }
}

/// The loop's own id of its open question.
fn question_of(this: &Loop) -> Option<QuestionId> {
    if let Stage::Waiting { question, .. } = &this.stage { Some(question.id) } else { None }
}

/// What a loop is about. One reviewer's answer among others changes nothing in it.
fn doing(this: &Loop) -> impl PartialEq + use<> {
    let Tally { cycle, iteration, reviews, .. } = this.tally;
    let outcome = if let Stage::Done(ending) = &this.stage { ending.outcome.word() } else { None };
    (std::mem::discriminant(&this.stage), outcome, this.at, (cycle, iteration, reviews))
}

/// The most reviews that the gate in reach allows: the one at hand, else the next, else the last.
fn max_cycles(this: &Loop, policy: &Policy) -> Option<u32> {
    let phases = &policy.workflow.phases;
    let (behind, ahead) = phases.split_at(this.at.phase.min(phases.len()));
    let here = ahead.first().and_then(Phase::judge);
    let is_gate = |phase: &&Phase| phase.is_gate() && !phase.is_off();
    let next = || ahead.iter().find(is_gate).and_then(Phase::judge);
    let last = || behind.iter().rfind(is_gate).and_then(Phase::judge);
    here.or_else(next).or_else(last).and_then(|judge| judge.gate.bound.reviews())
}

impl Usage {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cost_micro_usd: self.cost_micro_usd.saturating_add(other.cost_micro_usd),
            cost_is_estimated: self.cost_is_estimated || other.cost_is_estimated,
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            duration_ms: self.duration_ms.saturating_add(other.duration_ms),
        }
    }
}
