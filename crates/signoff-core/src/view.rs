//! The state of a run for display, computed from its log. All user interfaces share it.

mod badge;
mod overview;
mod phase_progress;
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
pub use overview::{Blocker, RunOverview, RunTaskCounts};
pub use phase_progress::PhaseProgress;
pub use question::QuestionView;
pub use run_row::RunRow;
pub use status::TaskStatus;
pub use task_row::{QuestionRow, TaskRow, is_run_branch, void_approvals};
pub use task_state::TaskState;

use crate::agent_output::AgentErrorKind;
use crate::group::{self, Run, RunPolicy, RunStage};
use crate::ids::{AttemptId, Commit, LoopId, QuestionId, RunId, TaskId};
use crate::machine::{
    self, AttemptSlot, FinalVerdict, Loop, LoopCounters, Outcome, PendingRateLimit, Policy, RateLimitRefusal, Reason,
    Stage,
};
use crate::review::Usage;
use crate::wire::{Fact, Launch, LoopFact, RecordedFact, RunFact, TaskFact};
use crate::workflow::{Arrangement, Landing, Phase};

/// The state of a run, computed from its events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunView {
    pub run: Option<RunId>,
    pub started_at: Option<Timestamp>,
    pub last_at: Option<Timestamp>,
    /// The sequence number of the last applied event.
    pub seq: u64,
    policies: Option<(RunPolicy, Policy)>,
    /// The display name of the specification.
    specification: Option<String>,
    machine: Run,
    /// The number of questions asked in this run. Question numbers are unique within the run, across loops.
    question_count: u64,
    loops: BTreeMap<LoopId, LoopFold>,
    /// The tracker ids of the tasks that came from a tracker.
    tracker_ids: BTreeMap<TaskId, String>,
    /// The last policy that was set for a loop. Most loops of a run have the same one and share it.
    shared_policy: Option<Arc<Policy>>,
}

/// The state of one loop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct LoopFold {
    task: Option<TaskId>,
    title: String,
    branch: String,
    state: Loop,
    /// The loop's own policy, if it differs from the run's.
    policy: Option<Arc<Policy>>,
    /// The displayed number of the open question.
    question: Option<QuestionId>,
    usage: BTreeMap<AttemptId, Usage>,
    /// The attempts that were started.
    launches: BTreeMap<AttemptId, Launch>,
    base: Option<Commit>,
    worktree: String,
    last_line: String,
    since: Option<Timestamp>,
    /// The number of the checkpoint review under way.
    checkpoint: Option<u32>,
}

/// A loop for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoopRow {
    pub id: LoopId,
    pub task: Option<TaskId>,
    /// The tracker id of the task: `b-1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracker_id: Option<String>,
    pub title: String,
    pub branch: String,
    pub base: Option<Commit>,
    pub worktree: String,
    pub badge: Badge,
    pub status: TaskStatus,
    pub state: TaskState,
    pub phase: String,
    pub pass: u32,
    /// The progress through the phases, if they are numbered.
    #[serde(rename = "place")]
    pub progress: Option<PhaseProgress>,
    pub cycle: u32,
    /// Maximum number of reviews at the gate.
    pub max_cycles: Option<u32>,
    pub iteration: u32,
    pub fixes: u32,
    /// The number of the running attempt among those of its role: 3 for the third `implement`. 0 if none runs.
    pub attempt: u32,
    /// The number of the checkpoint review under way.
    pub checkpoint: Option<u32>,
    pub outcome: Option<&'static str>,
    /// The number of findings in the last round that do not block because of a person's decision.
    #[serde(skip)]
    pub overruled: usize,
    pub final_verdict: Option<FinalVerdict>,
    pub reason: Option<Reason>,
    pub open_findings: usize,
    pub usage: Usage,
    pub last_line: String,
    /// When the stage last changed.
    pub since: Option<Timestamp>,
    pub question: Option<QuestionView>,
    /// The rate limit that pauses this loop.
    pub wait: Option<RateLimitWait>,
}

/// A rate limit that a task waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RateLimitWait {
    /// The agent that is tried again.
    pub agent: String,
    #[schemars(with = "String")]
    pub until: Timestamp,
    /// Whether the provider is overloaded; otherwise the agent exceeded its own limit.
    #[serde(default)]
    pub overloaded: bool,
    /// The agent's error message; null if there is none.
    #[serde(default)]
    pub why: Option<String>,
    /// The fallback agents, which are rate limited too.
    #[serde(rename = "fell_in", default)]
    pub fallbacks: Vec<String>,
}

impl RunView {
    /// Computes the view of a log.
    pub fn from_log<'a>(log: impl IntoIterator<Item = &'a RecordedFact>) -> Self {
        let mut view = Self::default();
        for recorded in log {
            view.apply(recorded);
        }
        view
    }

    /// Applies one event.
    pub fn apply(&mut self, recorded: &RecordedFact) {
        self.run = Some(recorded.run);
        self.started_at = self.started_at.or(Some(recorded.at));
        self.last_at = Some(recorded.at);
        self.seq = recorded.seq;
        match &recorded.fact {
            Fact::Task(task, TaskFact::Added { spec, .. }) => {
                let tracked = spec.tracked.as_ref().map(|tracked| (*task, tracked.id.clone()));
                self.tracker_ids.extend(tracked);
            }
            Fact::Task(_, TaskFact::Withdrawn { .. }) => {}
            Fact::Run(fact) => self.apply_run_fact(fact),
            Fact::Loop(loop_id, fact) => self.apply_loop_fact(loop_id, fact, recorded.at),
        }
    }

    fn apply_run_fact(&mut self, fact: &RunFact) {
        match fact {
            RunFact::Opened { policy, workflow } => self.policies = Some((policy.clone(), (**workflow).clone())),
            RunFact::Specified { name, .. } => self.specification = Some(name.clone()),
            RunFact::Transitioned(event) => {
                if let Some((policy, _)) = &self.policies {
                    group::apply(&mut self.machine, event.clone(), policy);
                }
            }
        }
    }

    fn apply_loop_fact(&mut self, loop_id: &LoopId, fact: &LoopFact, at: Timestamp) {
        let fold = self.loops.entry(loop_id.clone()).or_default();
        match fact {
            LoopFact::Added { task, title, branch } => {
                (fold.task, fold.title, fold.branch) = (Some(*task), title.clone(), branch.clone());
                fold.since = Some(at);
            }
            LoopFact::PolicySet { policy } => {
                let same = self.shared_policy.take().filter(|given| **given == **policy);
                self.shared_policy = same.or_else(|| Some(Arc::new((**policy).clone())));
                fold.policy.clone_from(&self.shared_policy);
            }
            LoopFact::CheckpointReviewed { .. }
            | LoopFact::Answered { .. }
            | LoopFact::Session { .. }
            | LoopFact::Noted { .. } => {}
            LoopFact::WorkspaceCreated { base, worktree } => {
                (fold.base, fold.worktree) = (Some(base.clone()), worktree.clone());
            }
            LoopFact::AttemptStarted { attempt, launch } => {
                fold.launches.insert(*attempt, launch.clone());
            }
            LoopFact::Used { attempt, usage } => {
                fold.usage.insert(*attempt, *usage);
            }
            LoopFact::Said { line, .. } => fold.last_line = line.clone(),
            LoopFact::Transitioned(event) => {
                if let Some((_, policy)) = &self.policies {
                    fold.apply(event, policy, at, &mut self.question_count);
                    let under_way = !fold.state.is_done();
                    self.set_checkpoint(loop_id, under_way);
                }
            }
        }
    }

    /// Shows a checkpoint review in the row of the reviewed loop.
    fn set_checkpoint(&mut self, loop_id: &LoopId, under_way: bool) {
        let Some((of, number)) = loop_id.checkpoint_target() else { return };
        if let Some(fold) = self.loops.get_mut(&of) {
            fold.checkpoint = under_way.then_some(number);
        }
    }

    /// Whether completed tasks still have to be closed in their tracker.
    pub fn has_unclosed_tasks(&self) -> bool {
        !self.machine.unclosed.is_empty()
    }

    pub fn stage(&self) -> &RunStage {
        &self.machine.stage
    }

    pub fn preset(&self) -> Option<&str> {
        self.policies.as_ref().map(|(_, policy)| policy.workflow.name.as_str())
    }

    /// The full state of one loop.
    pub fn loop_state(&self, loop_id: &LoopId) -> Option<&Loop> {
        self.loops.get(loop_id).map(|fold| &fold.state)
    }

    /// The ids of all loops, in order.
    pub fn loop_ids(&self) -> impl Iterator<Item = &LoopId> {
        self.loops.keys()
    }

    /// The policy of one loop: its own, or the run's.
    pub fn loop_policy(&self, loop_id: &LoopId) -> Option<&Policy> {
        let own = self.loops.get(loop_id)?.policy.as_deref();
        own.or(self.policies.as_ref().map(|(_, policy)| policy))
    }

    /// The row of one loop.
    pub fn row(&self, loop_id: &LoopId) -> Option<LoopRow> {
        let (_, policy) = self.policies.as_ref()?;
        Some(self.with_checkpoint_usage(self.loops.get(loop_id)?.row(loop_id, policy, &self.machine)))
    }

    /// Adds the usage of the loop's checkpoint reviews to its row, and its title.
    fn with_checkpoint_usage(&self, row: LoopRow) -> LoopRow {
        let looks = |loop_id: &LoopId| loop_id.checkpoint_target().is_some_and(|(of, _)| of == row.id);
        let after = self.loops.range(&row.id..).take_while(|(id, _)| id.as_str().starts_with(row.id.as_str()));
        let used = after.filter(|(loop_id, _)| looks(loop_id)).flat_map(|(_, fold)| fold.usage.values());
        let usage = used.fold(row.usage, |sum, one| sum.plus(*one));
        self.with_title(LoopRow { usage, ..row })
    }

    /// Sets the title of planning and final review loops, and the tracker id of a task's loop.
    fn with_title(&self, row: LoopRow) -> LoopRow {
        let tracker_id = row.task.and_then(|task| self.tracker_ids.get(&task).cloned());
        let row = LoopRow { tracker_id, ..row };
        let title = if row.id == LoopId::planning() {
            let of = self.specification.as_ref().map(|name| format!(" {name}"));
            format!("Planning{}", of.unwrap_or_default())
        } else if row.id == LoopId::final_review() {
            "Final review".to_owned()
        } else {
            return row;
        };
        LoopRow { title, ..row }
    }

    /// The started attempts of one loop, with the usage of each.
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

    /// The agent of an attempt.
    pub fn agent(&self, loop_id: &LoopId, attempt: AttemptId) -> Option<&str> {
        self.launch(loop_id, attempt).map(|launch| launch.agent.as_str())
    }

    /// The rows of all loops, in order of their ids. A checkpoint's loop is part of the row of the loop it reviews.
    pub fn rows(&self) -> Vec<LoopRow> {
        let Some((_, policy)) = &self.policies else { return Vec::new() };
        let own = self.loops.iter().filter(|(loop_id, _)| loop_id.checkpoint_target().is_none());
        own.map(|(loop_id, fold)| self.with_checkpoint_usage(fold.row(loop_id, policy, &self.machine))).collect()
    }

    /// The overview of the run.
    pub fn overview(&self) -> RunOverview {
        RunOverview::new(self, &self.machine)
    }

    /// The branch that its tasks share, if they do.
    pub fn branch(&self) -> Option<String> {
        let (policy, _) = self.policies.as_ref()?;
        let together = policy.arrangement == Arrangement::Chain || policy.landing != Landing::None;
        self.run.filter(|_| together).map(RunId::branch)
    }

    /// The number of groups, if its tasks are worked in groups.
    pub fn groups(&self) -> Option<usize> {
        let (policy, _) = self.policies.as_ref()?;
        (policy.arrangement == Arrangement::Groups).then_some(self.machine.groups.len())
    }

    /// The display name of the specification.
    pub fn specification(&self) -> Option<&str> {
        self.specification.as_deref()
    }

    /// The loops of the current checkpoint round; empty if there is none.
    pub fn checkpoint(&self) -> &[LoopId] {
        self.machine.checkpoint.loops()
    }

    /// The usage of all attempts of all loops.
    pub fn usage(&self) -> Usage {
        self.loops.values().flat_map(|fold| fold.usage.values()).fold(Usage::default(), |sum, one| sum.plus(*one))
    }

    /// The loops with an open question.
    pub fn loops_with_question(&self) -> impl Iterator<Item = &LoopId> {
        self.loops.iter().filter(|(_, fold)| fold.question.is_some()).map(|(loop_id, _)| loop_id)
    }

    /// The loops that are paused because a budget cap is reached.
    pub fn loops_over_budget(&self) -> impl Iterator<Item = &LoopId> {
        let short = |fold: &LoopFold| fold.state.pause_cause() == Some(Reason::Budget);
        self.loops.iter().filter(move |(_, fold)| short(fold)).map(|(loop_id, _)| loop_id)
    }

    /// The open questions.
    pub fn questions(&self) -> Vec<QuestionView> {
        self.rows().into_iter().filter_map(|row| row.question).collect()
    }
}

impl LoopFold {
    fn apply(&mut self, event: &machine::Event, policy: &Policy, at: Timestamp, asked: &mut u64) {
        let before = activity_key(&self.state);
        let waiting = question_of(&self.state);
        machine::apply(&mut self.state, event.clone(), self.policy.as_deref().unwrap_or(policy));
        if question_of(&self.state) != waiting {
            let now = question_of(&self.state);
            *asked += u64::from(now.is_some());
            self.question = now.map(|_| QuestionId(*asked));
        }
        if activity_key(&self.state) != before {
            self.since = Some(at);
        }
    }

    fn badge(&self) -> Badge {
        if self.checkpoint.is_some() && !self.state.is_done() {
            return Badge::Review;
        }
        Badge::for_loop(&self.state, |attempt| self.launches.contains_key(&attempt))
    }

    /// The number of the latest running attempt among those of its role.
    fn attempt(&self) -> u32 {
        let running = self.state.slots().into_iter().filter_map(AttemptSlot::attempt);
        let latest =
            running.filter_map(|attempt| Some((attempt, self.launches.get(&attempt)?))).max_by_key(|one| one.0);
        let Some((latest, launch)) = latest else { return 0 };
        let same = |one: &Launch| one.role == launch.role && one.reviewer == launch.reviewer;
        let so_far = self.launches.range(..=latest).filter(|(_, one)| same(one)).count();
        u32::try_from(so_far).unwrap_or(u32::MAX)
    }

    /// The rate limit that ends first, of those that pause the loop.
    fn wait(&self) -> Option<RateLimitWait> {
        self.state.pause_cause().filter(|reason| *reason == Reason::RateLimited)?;
        let PendingRateLimit { until, refused } =
            self.state.pending_rate_limits().into_iter().min_by_key(|wait| wait.until)?;
        let agent =
            |refusal: &&RateLimitRefusal| self.launches.get(&refusal.attempt).map(|launch| launch.agent.clone());
        let mut agents = refused.iter().map(|refusal| agent(refusal).unwrap_or_default());
        let why = refused.first().and_then(|refusal| refusal.why.as_ref());
        Some(RateLimitWait {
            agent: agents.next().unwrap_or_default(),
            until,
            overloaded: why.is_some_and(|why| why.kind == AgentErrorKind::Overloaded),
            why: why.map(|why| why.message.clone()).filter(|why| !why.is_empty()),
            fallbacks: agents.collect(),
        })
    }

    fn row(&self, loop_id: &LoopId, policy: &Policy, run: &Run) -> LoopRow {
        let this = &self.state;
        let policy = self.policy.as_deref().unwrap_or(policy);
        let phase = policy.workflow.phases.get(this.at.phase);
        let ending = if let Stage::Done(ending) = &this.stage { Some(ending) } else { None };
        let is_blocked = matches!(run.stage, RunStage::Blocked { .. });
        let overruled = machine::overruled(this, policy).len();
        LoopRow {
            id: loop_id.clone(),
            task: self.task,
            tracker_id: None,
            title: self.title.clone(),
            branch: self.branch.clone(),
            base: self.base.clone(),
            worktree: self.worktree.clone(),
            badge: self.badge(),
            status: TaskStatus::for_loop(this, is_blocked),
            state: TaskState::for_loop(this, is_blocked),
            phase: phase.map(|phase| phase.name.clone()).unwrap_or_default(),
            pass: this.at.pass,
            progress: PhaseProgress::for_loop(this, policy),
            cycle: this.review_number(),
            max_cycles: max_cycles(this, policy),
            iteration: this.tally.iteration,
            fixes: this.tally.fixes,
            attempt: self.attempt(),
            checkpoint: self.checkpoint.filter(|_| !this.is_done()),
            outcome: ending.and_then(|ending| {
                // Reviewers did not approve work that they would have blocked without a person's decision.
                let accepted = overruled > 0 && matches!(ending.outcome, Outcome::Approved { .. });
                if accepted { Some("accepted") } else { ending.outcome.as_str() }
            }),
            overruled,
            final_verdict: this.final_verdict(),
            reason: ending.and_then(|ending| ending.reason).or_else(|| this.pause_cause()),
            open_findings: this.open_findings(),
            usage: self.usage.values().fold(Usage::default(), |sum, one| sum.plus(*one)),
            last_line: self.last_line.clone(),
            since: self.since,
            question: self.question.and_then(|id| QuestionView::for_loop(this, id, self.task)),
            wait: self.wait(),
        }
    }
}

/// The loop's own id of its open question.
fn question_of(this: &Loop) -> Option<QuestionId> {
    if let Stage::Waiting { question, .. } = &this.stage { Some(question.id) } else { None }
}

/// A key that changes when the loop starts something new. A single reviewer's answer does not change it.
fn activity_key(this: &Loop) -> impl PartialEq + use<> {
    let LoopCounters { cycle, iteration, reviews, .. } = this.tally;
    let outcome = if let Stage::Done(ending) = &this.stage { ending.outcome.as_str() } else { None };
    (std::mem::discriminant(&this.stage), outcome, this.at, (cycle, iteration, reviews))
}

/// Maximum number of reviews at the current gate, else the next, else the last one.
fn max_cycles(this: &Loop, policy: &Policy) -> Option<u32> {
    let phases = &policy.workflow.phases;
    let (behind, ahead) = phases.split_at(this.at.phase.min(phases.len()));
    let here = ahead.first().and_then(Phase::policy);
    let is_gate = |phase: &&Phase| phase.is_gate() && !phase.is_off();
    let next = || ahead.iter().find(is_gate).and_then(Phase::policy);
    let last = || behind.iter().rfind(is_gate).and_then(Phase::policy);
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
