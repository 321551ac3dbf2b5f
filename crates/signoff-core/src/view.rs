//! The state of a run, computed from its events. The engine decides on it, and all user interfaces show it.
//!
//! [`RunState::apply`] applies an event once and returns a [`Transition`]. Everything else in the process takes the
//! result from there: the tables, progress lines, the terminal UI, notifications and reports.

pub mod inbox;
mod loop_row_status;
mod loop_state;
mod row;
mod run_row;
mod task_row;
mod task_state;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

pub use loop_row_status::{LoopReviewStatus, LoopRowStatus};
pub use loop_state::{
    AttemptStart, AttemptStarts, LoopState, LoopTransition, ReviewRound, RoundAnswer, Snapshot, Transition, Workspace,
};
pub use row::{LoopRow, PhaseProgress, QuestionView, RateLimitWait};
pub use run_row::{Blocker, RunOverview, RunRow, RunStatus, RunTaskCounts};
pub use task_row::{QuestionRow, TaskRow, is_run_branch, void_approvals};
pub use task_state::{Badge, TaskState, TaskStatus};

use crate::group::{self, Run, RunEvent, RunOutcome, RunPolicy, RunStage};
use crate::ids::{AttemptId, Commit, LoopId, RunId, TaskId};
use crate::machine::{Event, LandingReport, Loop, Policy, Reason, Stage};
use crate::review::Usage;
use crate::task::TaskSpec;
use crate::wire::{Fact, Launch, LoopFact, RecordedFact, RunFact, TaskFact};
use crate::workflow::{Landing, Scheduling};

/// The state of a run and its loops. Clones share their content. A default state takes the run's number from its first
/// event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunState {
    pub run: RunId,
    pub started_at: Option<Timestamp>,
    pub last_at: Option<Timestamp>,
    /// The sequence number of the last applied event.
    pub seq: u64,
    /// The number of questions asked in this run. Question numbers are unique within the run, across loops.
    question_count: u64,
    info: Arc<RunInfo>,
    pub loops: BTreeMap<LoopId, Arc<LoopState>>,
    /// The specifications of the tasks that the run's own log adds, and of those that the engine took from the queue.
    pub specs: BTreeMap<TaskId, Arc<TaskSpec>>,
    /// The policy that was set last. Most loops of a run have equal policies, and share one.
    last_policy: Option<Arc<Policy>>,
}

/// The state of the run itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunInfo {
    /// None until the run is opened.
    pub policies: Option<Arc<RunPolicies>>,
    pub machine: Run,
    /// The last commit that landed on the run's branch.
    pub last_landed: Option<Commit>,
    /// The run's branch landed on the default branch, and no loop has moved since.
    pub landed_on_default: bool,
    /// The loops whose task was closed in its tracker at least once.
    pub closed: BTreeSet<LoopId>,
    /// The specification of the whole run, if its tasks are still to be planned.
    pub subject: Option<Arc<TaskSpec>>,
}

/// The policies of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPolicies {
    pub run: RunPolicy,
    /// The policy of loops without one of their own.
    pub workflow: Policy,
}

impl Deref for RunState {
    type Target = RunInfo;

    fn deref(&self) -> &RunInfo {
        &self.info
    }
}

/// How often this process applied each event, by run and sequence number. Counted in debug builds only.
pub type AppliedEvents = BTreeMap<(RunId, u64), u32>;

static APPLIED: Mutex<AppliedEvents> = Mutex::new(BTreeMap::new());

/// How often this process applied each event, over all states. A test compares it with the logs.
pub fn applied_events() -> AppliedEvents {
    APPLIED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn count_applied(recorded: &RecordedFact) {
    if cfg!(debug_assertions) {
        let mut applied = APPLIED.lock().unwrap_or_else(PoisonError::into_inner);
        *applied.entry((recorded.run, recorded.seq)).or_default() += 1;
    }
}

impl RunState {
    pub fn new(run: RunId) -> Self {
        Self { run, ..Self::default() }
    }

    /// Computes the state after a log.
    pub fn from_log<'a>(log: impl IntoIterator<Item = &'a RecordedFact>) -> Self {
        let mut state = Self::default();
        log.into_iter().for_each(|recorded| state.replay(recorded));
        state
    }

    /// Applies one event.
    pub fn apply(&mut self, event: impl Into<Arc<RecordedFact>>) -> Transition {
        let event = event.into();
        let before = self.snapshot(&event);
        self.replay(&event);
        Transition { before, after: self.snapshot(&event), event }
    }

    /// Applies one event without computing its transition.
    pub fn replay(&mut self, recorded: &RecordedFact) {
        count_applied(recorded);
        self.record_position(recorded);
        match &recorded.fact {
            Fact::Task(task, fact) => self.apply_task_fact(*task, fact),
            Fact::Run(fact) => self.apply_run_fact(fact),
            Fact::Loop(loop_id, fact) => self.apply_loop_fact(loop_id, fact, recorded.at),
        }
    }

    /// Takes over the result of an event that another state of the same run applied. The event is not applied again:
    /// the states share what it changed, so the cost does not depend on the size of the run.
    pub fn apply_transition(&mut self, transition: &Transition) {
        let event = &transition.event;
        self.record_position(event);
        match &event.fact {
            Fact::Task(task, _) => self.specs.extend(transition.after.spec.clone().map(|spec| (*task, spec))),
            Fact::Run(_) => self.loops.extend(transition.after.planned.iter().cloned()),
            Fact::Loop(loop_id, fact) => {
                let state = transition.after.loop_state.clone();
                if let (LoopFact::PolicySet { .. }, Some(state)) = (fact, &state) {
                    self.last_policy.clone_from(&state.policy);
                }
                match state {
                    Some(state) => drop(self.loops.insert(loop_id.clone(), state)),
                    None => drop(self.loops.remove(loop_id)),
                }
            }
        }
        self.info = transition.after.run.clone();
        self.question_count = transition.after.question_count;
    }

    fn snapshot(&self, event: &RecordedFact) -> Snapshot {
        let mut snapshot = Snapshot {
            run: self.info.clone(),
            loop_state: None,
            spec: None,
            planned: Vec::new(),
            question_count: self.question_count,
        };
        match &event.fact {
            Fact::Loop(loop_id, _) => snapshot.loop_state = self.loops.get(loop_id).cloned(),
            Fact::Task(task, _) => snapshot.spec = self.specs.get(task).cloned(),
            Fact::Run(RunFact::Transitioned(RunEvent::GroupsPlanned { groups })) => {
                let planned = groups.iter().flatten().filter_map(|loop_id| self.loops.get_key_value(loop_id));
                snapshot.planned = planned.map(|(loop_id, state)| (loop_id.clone(), state.clone())).collect();
            }
            Fact::Run(_) => {}
        }
        snapshot
    }

    fn record_position(&mut self, recorded: &RecordedFact) {
        self.run = recorded.run;
        self.started_at = self.started_at.or(Some(recorded.at));
        (self.last_at, self.seq) = (Some(recorded.at), recorded.seq);
    }

    fn apply_task_fact(&mut self, task: TaskId, fact: &TaskFact) {
        match fact {
            TaskFact::Added { spec, .. } => drop(self.specs.insert(task, Arc::new((**spec).clone()))),
            TaskFact::Withdrawn { .. } => {}
        }
    }

    fn apply_run_fact(&mut self, fact: &RunFact) {
        let info = Arc::make_mut(&mut self.info);
        match fact {
            RunFact::Opened { policy, workflow } => {
                info.policies = Some(Arc::new(RunPolicies { run: policy.clone(), workflow: (**workflow).clone() }));
            }
            RunFact::Specified { name, text } => {
                let spec = TaskSpec { title: name.clone(), description: text.clone(), ..TaskSpec::default() };
                info.subject = Some(Arc::new(spec));
            }
            RunFact::Transitioned(event) => {
                let moves = matches!(event, RunEvent::LoopStatusChanged { .. });
                info.landed_on_default = *event == RunEvent::Landed || info.landed_on_default && !moves;
                if let RunEvent::TaskClosed { loop_id } = event {
                    info.closed.insert(loop_id.clone());
                }
                if let Some(policies) = &info.policies {
                    group::apply(&mut info.machine, event.clone(), &policies.run);
                }
                self.add_planned_loops(event);
            }
        }
    }

    /// Adds the loops of a plan. A loop without a task first appears there.
    fn add_planned_loops(&mut self, event: &RunEvent) {
        if let RunEvent::GroupsPlanned { groups } = event {
            for loop_id in groups.iter().flatten() {
                self.loops.entry(loop_id.clone()).or_default();
            }
        }
    }

    fn apply_loop_fact(&mut self, loop_id: &LoopId, fact: &LoopFact, at: Timestamp) {
        let state = Arc::make_mut(self.loops.entry(loop_id.clone()).or_default());
        if let LoopFact::PolicySet { policy } = fact {
            let same = self.last_policy.take().filter(|given| **given == **policy);
            self.last_policy = same.or_else(|| Some(Arc::new((**policy).clone())));
            state.policy.clone_from(&self.last_policy);
        }
        let run_policy = self.info.policies.as_ref().map(|policies| &policies.workflow);
        state.apply(fact, at, run_policy, &mut self.question_count);
        if let LoopFact::Transitioned(Event::LandingEnded { report: LandingReport::Landed { commit }, .. }) = fact
            && self.lands_on_run(loop_id)
        {
            Arc::make_mut(&mut self.info).last_landed = Some(commit.clone());
        }
    }

    /// Whether a loop lands on the run's branch. Without a landing policy its work goes to the default branch.
    pub fn lands_on_run(&self, loop_id: &LoopId) -> bool {
        self.policy(loop_id).is_some_and(|policy| policy.workflow.landing != Landing::None)
    }

    /// The commits that landed on the run's branch, by loop.
    pub fn landed(&self) -> impl Iterator<Item = (&LoopId, &Commit)> {
        let landed = self.loops.iter().filter_map(|(loop_id, state)| Some((loop_id, state.landed_commit.as_ref()?)));
        landed.filter(|(loop_id, _)| self.lands_on_run(loop_id))
    }

    /// Whether completed tasks still have to be closed in their tracker.
    pub fn has_unclosed_tasks(&self) -> bool {
        !self.machine.unclosed.is_empty()
    }

    pub fn stage(&self) -> &RunStage {
        &self.machine.stage
    }

    pub fn preset(&self) -> Option<&str> {
        self.policies.as_ref().map(|policies| policies.workflow.workflow.name.as_str())
    }

    /// The full state of one loop.
    pub fn loop_state(&self, loop_id: &LoopId) -> Option<&Loop> {
        self.loops.get(loop_id).filter(|state| state.is_recorded).map(|state| &*state.machine)
    }

    /// The ids of all loops, in order.
    pub fn loop_ids(&self) -> impl Iterator<Item = &LoopId> {
        self.loops.iter().filter(|(_, state)| state.is_recorded).map(|(loop_id, _)| loop_id)
    }

    /// The policy of one loop: its own, or the run's.
    pub fn policy(&self, loop_id: &LoopId) -> Option<&Policy> {
        let own = self.loops.get(loop_id).and_then(|state| state.policy.as_deref());
        own.or(self.policies.as_ref().map(|policies| &policies.workflow))
    }

    /// The started attempts of one loop, with the usage of each.
    pub fn attempts(&self, loop_id: &LoopId) -> Vec<(AttemptId, &Launch, Usage)> {
        let started = self.loops.get(loop_id).into_iter();
        let started = started.flat_map(|state| state.attempt_starts.iter().map(move |one| (&state.usage, one)));
        let usage = |all: &BTreeMap<AttemptId, Usage>, attempt| all.get(attempt).copied().unwrap_or_default();
        started.map(|(all, (attempt, start))| (*attempt, &start.launch, usage(all, attempt))).collect()
    }

    /// The agent of an attempt.
    pub fn agent(&self, loop_id: &LoopId, attempt: AttemptId) -> Option<&str> {
        self.loops.get(loop_id)?.agent(attempt)
    }

    /// The overview of the run.
    pub fn overview(&self) -> RunOverview {
        RunOverview::new(self, &self.machine)
    }

    /// The branch that its tasks share, if they do.
    pub fn branch(&self) -> Option<String> {
        self.shares_a_branch().then(|| self.run.branch())
    }

    /// The number of groups, if its tasks are worked in groups.
    pub fn groups(&self) -> Option<usize> {
        let policy = self.run_policy()?;
        (policy.scheduling == Scheduling::Groups).then_some(self.machine.groups.len())
    }

    /// The display name of the specification.
    pub fn specification(&self) -> Option<&str> {
        self.subject.as_ref().map(|spec| spec.title.as_str())
    }

    /// The loops of the current checkpoint round; empty if there is none.
    pub fn checkpoint(&self) -> &[LoopId] {
        self.machine.checkpoint.loops()
    }

    /// The usage of all attempts of all loops.
    pub fn usage(&self) -> Usage {
        self.loops.values().fold(Usage::default(), |sum, state| sum.plus(state.total_usage()))
    }

    /// The loops that are paused because a budget cap is reached.
    pub fn loops_over_budget(&self) -> impl Iterator<Item = &LoopId> {
        let is_over_budget = |state: &LoopState| state.machine.pause_cause() == Some(Reason::Budget);
        self.loops.iter().filter(move |(_, state)| is_over_budget(state)).map(|(loop_id, _)| loop_id)
    }

    /// The heads of the loops that are landing.
    pub fn landing_heads(&self) -> Vec<Commit> {
        let landing = |loop_state: &&Arc<LoopState>| matches!(loop_state.machine.stage, Stage::Landing { .. });
        self.loops.values().filter(landing).map(|loop_state| loop_state.machine.head.commit.clone()).collect()
    }

    pub fn run_policy(&self) -> Option<&RunPolicy> {
        self.policies.as_ref().map(|policies| &policies.run)
    }

    /// Whether the run's tasks share the run's branch.
    pub fn shares_a_branch(&self) -> bool {
        self.run_policy()
            .is_some_and(|policy| policy.landing != Landing::None || policy.scheduling == Scheduling::Chain)
    }

    /// Whether the run lands only after its final review. Tasks of a cancelled run land one by one.
    pub fn has_final_review(&self) -> bool {
        let is_off = self.machine.stage == RunStage::Done(RunOutcome::Cancelled);
        !is_off && self.shares_a_branch() && self.run_policy().is_some_and(|policy| policy.has_final_review)
    }
}
