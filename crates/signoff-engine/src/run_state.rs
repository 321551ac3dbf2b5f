//! The state of a run in the engine, built from its log.
//!
//! New facts and facts read back from the log both go through `RunState::apply`, so a restarted process has the same
//! state as the process that was killed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use signoff_core::group::{self, Run, RunEvent, RunOutcome, RunPolicy, RunStage};
use signoff_core::ids::{AttemptId, Commit, LoopId, ReviewerName, RunId, TaskId};
use signoff_core::machine::{
    self, AttemptFailure, Event, Job, JobKind, LandingReport, Loop, Panel, PanelSeat, Policy, Stage,
};
use signoff_core::review::{Finding, Inconclusive, Review, ReviewerKind, Usage, Verdict};
use signoff_core::session::Sessions;
use signoff_core::source::planner::{PlannedTask, PlannerAnswer};
use signoff_core::task::TaskSpec;
use signoff_core::wire::{Fact, Launch, LoopFact, RecordedFact, RunFact, TaskFact};
use signoff_core::workflow::{Arrangement, Landing};

/// A run and its loops.
#[derive(Debug, Clone)]
pub struct RunState {
    pub run: RunId,
    /// The run's policies; `None` until the run is opened.
    pub policies: Option<(RunPolicy, Policy)>,
    pub machine: Run,
    pub loops: BTreeMap<LoopId, LoopState>,
    /// The specifications of the tasks, if the run's own log contains them.
    pub specs: BTreeMap<TaskId, TaskSpec>,
    /// The commits that landed on the run's branch, and the last of them.
    pub landed: BTreeMap<LoopId, Commit>,
    pub last_landed: Option<Commit>,
    /// The run's branch landed on the default branch, and no loop has moved since.
    pub landed_on_default: bool,
    /// The specification of the whole run, if its tasks are still to be planned.
    pub subject: Option<TaskSpec>,
    /// The policy that was set last. Most loops of a run have equal policies, and share one.
    last_policy: Option<Arc<Policy>>,
}

/// The state of one loop.
#[derive(Debug, Clone, Default)]
pub struct LoopState {
    pub task: Option<TaskId>,
    pub title: String,
    pub branch: String,
    pub workspace: Option<Workspace>,
    pub started: Option<Timestamp>,
    pub machine: Loop,
    pub policy: Option<Arc<Policy>>,
    /// Usage of each attempt, as far as it is recorded.
    pub usage: BTreeMap<AttemptId, Usage>,
    /// The attempts whose start is recorded.
    pub attempt_starts: BTreeMap<AttemptId, AttemptStart>,
    /// The attempts that ended with an answer or with work.
    pub answered: BTreeSet<AttemptId>,
    /// The answers of the current round, parsable or not.
    pub round: BTreeMap<ReviewerName, Review>,
    /// The last finished round.
    pub last_round: Option<ReviewRound>,
    /// The answers of the planners.
    pub tasks: Vec<PlannedTask>,
    pub groups: Vec<Vec<String>>,
    /// Why the last attempt failed; reset when work succeeds.
    pub last_failure: Option<AttemptFailure>,
    /// Number of checkpoint reviews.
    pub checkpoints: u32,
    /// The finished researchers of the current phase.
    pub researched: Vec<AttemptId>,
    /// The head when the current plan item was started.
    pub item_start: Option<Commit>,
    pub sessions: Sessions,
}

/// The start of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptStart {
    pub at: Timestamp,
    pub launch: Launch,
}

/// The worktree of a loop, and the base of its diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    pub base: Commit,
    pub worktree: String,
}

/// The answers of one panel of reviewers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewRound {
    pub pass: u32,
    pub phase: usize,
    pub cycle: u32,
    pub commit: Commit,
    pub reviews: Vec<Review>,
}

impl ReviewRound {
    /// The findings that block the gate and that no reviewer reported in this round.
    pub fn still_open(&self, mut before: Loop, after: &Loop, policy: &Policy) -> Vec<Finding> {
        before.ledger = after.ledger.clone();
        let is_same =
            |one: &Finding, other: &Finding| (&one.file, &one.description) == (&other.file, &other.description);
        let is_reported =
            |known: &Finding| self.reviews.iter().flat_map(|one| &one.findings).any(|one| is_same(one, known));
        let open = machine::blocking(&before, policy).into_iter().map(|entry| &entry.finding);
        open.filter(|finding| !is_reported(finding)).cloned().collect()
    }
}

impl RunState {
    pub fn new(run: RunId) -> Self {
        Self {
            run,
            policies: None,
            machine: Run::default(),
            loops: BTreeMap::new(),
            specs: BTreeMap::new(),
            landed: BTreeMap::new(),
            last_landed: None,
            landed_on_default: false,
            subject: None,
            last_policy: None,
        }
    }

    /// Replays a log.
    pub fn from_log(run: RunId, log: &[RecordedFact]) -> Self {
        let mut run_state = Self::new(run);
        log.iter().for_each(|recorded| run_state.apply(recorded));
        run_state
    }

    /// Applies one fact.
    pub fn apply(&mut self, recorded: &RecordedFact) {
        match &recorded.fact {
            Fact::Task(task, TaskFact::Added { spec, .. }) => {
                self.specs.insert(*task, (**spec).clone());
            }
            Fact::Task(_, TaskFact::Withdrawn { .. }) => {}
            Fact::Run(RunFact::Opened { policy, workflow }) => {
                self.policies = Some((policy.clone(), (**workflow).clone()));
            }
            Fact::Run(RunFact::Specified { name, text }) => {
                self.subject = Some(TaskSpec { title: name.clone(), description: text.clone(), ..TaskSpec::default() });
            }
            Fact::Run(RunFact::Transitioned(event)) => {
                let moves = matches!(event, RunEvent::LoopStatusChanged { .. });
                self.landed_on_default = *event == RunEvent::Landed || self.landed_on_default && !moves;
                // A loop without a task first appears in the planned groups.
                if let RunEvent::GroupsPlanned { groups } = event {
                    for loop_id in groups.iter().flatten() {
                        self.loops.entry(loop_id.clone()).or_default();
                    }
                }
                if let Some((policy, _)) = &self.policies {
                    let machine = std::mem::take(&mut self.machine);
                    self.machine = group::step(machine, event.clone(), policy).0;
                }
            }
            Fact::Loop(loop_id, LoopFact::PolicySet { policy }) => {
                let same = self.last_policy.take().filter(|given| **given == **policy);
                self.last_policy = same.or_else(|| Some(Arc::new((**policy).clone())));
                self.loops.entry(loop_id.clone()).or_default().policy.clone_from(&self.last_policy);
            }
            Fact::Loop(loop_id, fact) => {
                self.note_landed(loop_id, fact);
                let run_policy = self.policies.as_ref().map(|(_, policy)| policy);
                self.loops.entry(loop_id.clone()).or_default().apply(fact, recorded.at, run_policy);
            }
        }
    }

    fn note_landed(&mut self, loop_id: &LoopId, fact: &LoopFact) {
        let LoopFact::Transitioned(Event::LandingEnded { report: LandingReport::Landed { commit }, .. }) = fact else {
            return;
        };
        // Without a landing policy the work goes to the default branch, not to the run's branch.
        if self.policy(loop_id).is_some_and(|policy| policy.workflow.landing != Landing::None) {
            self.landed.insert(loop_id.clone(), commit.clone());
            self.last_landed = Some(commit.clone());
        }
    }

    /// The policy of a loop, or the run's policy if the loop has none.
    pub fn policy(&self, loop_id: &LoopId) -> Option<&Policy> {
        let own = self.loops.get(loop_id).and_then(|loop_state| loop_state.policy.as_deref());
        own.or(self.policies.as_ref().map(|(_, policy)| policy))
    }

    /// The heads of the loops that are landing.
    pub fn landing_heads(&self) -> Vec<Commit> {
        let landing = |loop_state: &&LoopState| matches!(loop_state.machine.stage, Stage::Landing { .. });
        self.loops.values().filter(landing).map(|loop_state| loop_state.machine.head.commit.clone()).collect()
    }

    pub fn run_policy(&self) -> Option<&RunPolicy> {
        self.policies.as_ref().map(|(policy, _)| policy)
    }

    /// Whether the run's tasks share the run's branch.
    pub fn shares_a_branch(&self) -> bool {
        self.run_policy()
            .is_some_and(|policy| policy.landing != Landing::None || policy.arrangement == Arrangement::Chain)
    }

    /// Whether the run lands only after its final review. Tasks of a cancelled run land one by one.
    pub fn has_final_review(&self) -> bool {
        let is_off = self.machine.stage == RunStage::Done(RunOutcome::Cancelled);
        !is_off && self.shares_a_branch() && self.run_policy().is_some_and(|policy| policy.has_final_review)
    }
}

impl LoopState {
    fn apply(&mut self, fact: &LoopFact, at: Timestamp, run_policy: Option<&Policy>) {
        self.sessions.apply(fact, &self.machine);
        match fact {
            LoopFact::Added { task, title, branch } => {
                (self.task, self.title, self.branch) = (Some(*task), title.clone(), branch.clone());
            }
            LoopFact::WorkspaceCreated { base, worktree } => {
                self.workspace = Some(Workspace { base: base.clone(), worktree: worktree.clone() });
            }
            LoopFact::AttemptStarted { attempt, launch } => {
                self.attempt_starts.insert(*attempt, AttemptStart { at, launch: launch.clone() });
            }
            LoopFact::Used { attempt, usage } => {
                self.usage.insert(*attempt, *usage);
            }
            LoopFact::Answered { answer: PlannerAnswer::Tasks(tasks), .. } => self.tasks.clone_from(tasks),
            LoopFact::Answered { answer: PlannerAnswer::Groups(groups), .. } => self.groups.clone_from(groups),
            // `RunState` applies policies, to share equal ones.
            LoopFact::PolicySet { .. }
            | LoopFact::CheckpointReviewed { .. }
            | LoopFact::Session { .. }
            | LoopFact::Said { .. }
            | LoopFact::Noted { .. } => {}
            LoopFact::Transitioned(event) => {
                let own = self.policy.clone();
                if let Some(policy) = own.as_deref().or(run_policy) {
                    self.apply_event(event, at, policy);
                }
            }
        }
    }

    fn apply_event(&mut self, event: &Event, at: Timestamp, policy: &Policy) {
        if let Event::Started { .. } | Event::Imported { .. } = event {
            self.started = self.started.or(Some(at));
        }
        self.checkpoints += u32::from(matches!(event, Event::CheckpointEnded { .. }));
        if let Event::AttemptFailed { failure, .. } = event {
            self.last_failure = Some(failure.clone());
        } else if let Event::WorkEnded { .. } = event {
            self.last_failure = None;
        }
        if let Event::WorkEnded { attempt, .. } | Event::ReviewArrived { attempt, .. } = event {
            self.answered.insert(*attempt);
        }
        let next = machine::step(self.machine.clone(), event.clone(), policy).0;
        if let Some(round) = self.closed_round(event, &next, policy) {
            self.last_round = Some(round);
        }
        if let Some(review) = review_in_event(event, &self.machine, policy) {
            self.round.insert(review.reviewer.clone(), review);
        }
        // A panel that a person sends back to work keeps its answers. A new panel starts without answers, even for a
        // reviewer that sat at the previous gate.
        if let Stage::Reviewing(panel) = &next.stage
            && !is_same_panel(panel, &self.machine, &next)
        {
            let missing = panel.missing();
            self.round.retain(|name, _| panel.seats.contains_key(name) && !missing.contains(name));
        }
        self.note_research(event, &next);
        self.note_item(&next, policy);
        self.machine = next;
    }

    /// The sessions after `before` and `event` are applied; `state` is the state that `event` applies to.
    pub fn sessions_after(&self, before: &[LoopFact], event: &Event, state: &Loop) -> Sessions {
        let mut sessions = self.sessions.clone();
        for fact in before {
            sessions.apply(fact, &self.machine);
        }
        sessions.apply(&LoopFact::Transitioned(event.clone()), state);
        sessions
    }

    /// Why the last answer was rejected, if the last attempt failed that way.
    pub fn rejected_answer(&self) -> Option<String> {
        match &self.last_failure {
            Some(AttemptFailure::BadAnswer { message }) => Some(message.clone()),
            Some(_) | None => None,
        }
    }

    /// Like `rejected_answer`, only for an agent that retries the same job.
    pub fn rejected_answer_of_retry(&self) -> Option<String> {
        let again = match &self.machine.stage {
            Stage::Working { failures, .. } => *failures > 0,
            // With several fixes it is unknown which of them failed last.
            Stage::Fixing { fixes, .. } => matches!(fixes.as_slice(), [one] if one.failures > 0),
            Stage::Queued
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::Combining { .. }
            | Stage::AwaitingLanding { .. }
            | Stage::Landing { .. }
            | Stage::Waiting { .. }
            | Stage::Done(_) => false,
        };
        self.rejected_answer().filter(|_| again)
    }

    /// Why a reviewer's last answer about this commit could not be parsed.
    pub fn unreadable(&self, job: &Job) -> Option<Inconclusive> {
        let JobKind::Review { reviewer, commit, .. } = &job.kind else { return None };
        let last = self.last_round.as_ref().filter(|round| round.commit == *commit);
        let earlier = || last?.reviews.iter().find(|review| review.reviewer == *reviewer);
        match &self.round.get(reviewer).or_else(earlier)?.verdict {
            Verdict::Inconclusive(Inconclusive::Missing(_))
            | Verdict::Approved
            | Verdict::ApprovedWithMinor
            | Verdict::ChangesRequested
            | Verdict::NeedsDiscussion => None,
            Verdict::Inconclusive(why) => Some(why.clone()),
        }
    }

    /// Collects the finished researchers of a phase, whose reports the phase's agent gets.
    fn note_research(&mut self, event: &Event, next: &Loop) {
        if let (Event::WorkEnded { attempt, .. }, Stage::Researching { .. }) = (event, &self.machine.stage)
            && self.machine.runs(*attempt)
        {
            self.researched.push(*attempt);
        }
        if (next.at.pass, next.at.phase) != (self.machine.at.pass, self.machine.at.phase) {
            self.researched.clear();
        }
    }

    /// Records where the current plan item starts: its reviewers see the diff from there.
    fn note_item(&mut self, next: &Loop, policy: &Policy) {
        let item = |one: &Loop| {
            let phase = policy.workflow.phases.get(one.at.phase);
            phase.filter(|phase| phase.per_item).map(|_| (one.at.pass, one.at.item))
        };
        let (before, now) = (item(&self.machine), item(next));
        if now.is_none() || before != now {
            self.item_start = now.map(|_| next.head.commit.clone());
        }
    }

    /// The round that an event ends.
    pub fn closed_round(&self, event: &Event, next: &Loop, policy: &Policy) -> Option<ReviewRound> {
        let Stage::Reviewing(panel) = &self.machine.stage else { return None };
        if is_same_panel(panel, next, &self.machine) {
            return None;
        }
        let mut answers = self.round.clone();
        if let Some(review) = review_in_event(event, &self.machine, policy) {
            answers.insert(review.reviewer.clone(), review);
        }
        let position = self.machine.at;
        Some(ReviewRound {
            pass: position.pass,
            phase: position.phase,
            cycle: self.machine.tally.cycle,
            commit: panel.commit.clone(),
            reviews: answers.into_values().collect(),
        })
    }
}

/// The review in an event, if the loop waits for it. A failed reviewer counts as inconclusive.
fn review_in_event(event: &Event, state: &Loop, policy: &Policy) -> Option<Review> {
    let attempt = event.ends_attempt()?;
    if let Event::ReviewArrived { review, .. } = event {
        return state.runs(attempt).then(|| (**review).clone());
    }
    let (Event::AttemptFailed { failure, .. }, Stage::Reviewing(panel)) = (event, &state.stage) else {
        return None;
    };
    let is_it = |seat: &PanelSeat| matches!(seat, PanelSeat::Assigned { slot, .. } if slot.attempt() == Some(attempt));
    let (name, _) = panel.seats.iter().find(|(_, seat)| is_it(seat))?;
    let kind = policy.workflow.reviewers.get(name).map_or(ReviewerKind::General, |reviewer| reviewer.kind);
    Some(Review::inconclusive(name.clone(), kind, Inconclusive::Missing(failure.to_string())))
}

/// Whether `other` is in the same review round as `this`, whose panel is given.
fn is_same_panel(panel: &Panel, other: &Loop, this: &Loop) -> bool {
    let Stage::Reviewing(now) = &other.stage else { return false };
    let same_place = other.at == this.at && other.tally.cycle == this.tally.cycle;
    same_place && now.commit == panel.commit && now.scope == panel.scope
}
