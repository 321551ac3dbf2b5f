//! A loop as a row for display, with its progress through numbered phases and its open question.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Badge, LoopState, RunState, TaskRow, TaskState, TaskStatus};
use crate::agent_output::AgentErrorKind;
use crate::group::{Run, RunStage};
use crate::ids::{AttemptId, Commit, LoopId, QuestionId, ReviewerName, RunId, TaskId};
use crate::machine::{
    self, Choice, FinalVerdict, Loop, Outcome, OutcomeKind, PendingRateLimit, Policy, QuestionTopic, RateLimitRefusal,
    Reason, Stage,
};
use crate::review::Usage;
use crate::task::TaskType;
use crate::wire::Launch;
use crate::workflow::Phase;

/// A loop for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoopRow {
    pub id: LoopId,
    #[serde(skip)]
    pub run: RunId,
    pub task: Option<TaskId>,
    /// The type of the task; unknown specifications count as reviews if all phases are gates.
    #[serde(skip)]
    pub kind: TaskType,
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
    pub outcome: Option<OutcomeKind>,
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

impl LoopRow {
    /// The row of its task, with the values from the loop's state.
    pub fn to_task_row(&self) -> Option<TaskRow> {
        let task = TaskRow::new(self.task?.0, &self.title, self.status);
        let branch = Some(self.branch.clone()).filter(|branch| !branch.is_empty());
        let base = self.base.as_ref().map(ToString::to_string);
        Some(
            TaskRow { run_id: Some(self.run.0), kind: self.kind, state: self.state, branch, base, ..task }
                .with_progress(self.clone()),
        )
    }
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
    /// The fallback agents, which were rate limited too.
    #[serde(rename = "fell_in", default)]
    pub fallbacks: Vec<String>,
}

impl RunState {
    /// The row of one loop.
    pub fn row(&self, loop_id: &LoopId) -> Option<LoopRow> {
        let policies = self.policies.as_ref()?;
        let state = self.loops.get(loop_id).filter(|state| state.is_recorded)?;
        let row = state.row(loop_id, &policies.workflow, &self.machine, &self.checkpoint_reviews(loop_id));
        Some(self.with_title(row))
    }

    /// The checkpoint reviews of a loop, which are loops of their own.
    fn checkpoint_reviews(&self, loop_id: &LoopId) -> CheckpointReviews {
        let after = self.loops.range(loop_id..).take_while(|(id, _)| id.as_str().starts_with(loop_id.as_str()));
        let mut reviews = CheckpointReviews::default();
        for (id, state) in after {
            let Some((_, number)) = id.checkpoint_target().filter(|(of, _)| of == loop_id) else { continue };
            reviews.usage = reviews.usage.plus(state.total_usage());
            if state.machine.stage != Stage::Queued && !state.machine.is_done() {
                reviews.under_way = Some(number);
            }
        }
        reviews
    }

    /// Sets the title of planning and final review loops, and the type and tracker id of a task's loop.
    fn with_title(&self, row: LoopRow) -> LoopRow {
        let spec = row.task.and_then(|task| self.specs.get(&task));
        let kind = spec.map_or(row.kind, |spec| spec.kind);
        let tracker_id = spec.and_then(|spec| spec.tracker.as_ref()).map(|tracked| tracked.id.clone());
        let title = if row.id == LoopId::planning() {
            self.specification().map_or_else(|| "Planning".to_owned(), |name| format!("Planning {name}"))
        } else if row.id == LoopId::final_review() {
            "Final review".to_owned()
        } else {
            row.title
        };
        LoopRow { title, run: self.run, kind, tracker_id, ..row }
    }

    /// The rows of all loops, in order of their ids. A checkpoint's loop is part of the row of the loop it reviews.
    pub fn rows(&self) -> Vec<LoopRow> {
        let own = self.loops.keys().filter(|loop_id| loop_id.checkpoint_target().is_none());
        own.filter_map(|loop_id| self.row(loop_id)).collect()
    }
}

/// The checkpoint reviews of one loop.
#[derive(Debug, Clone, Copy, Default)]
struct CheckpointReviews {
    usage: Usage,
    /// The number of the review under way.
    under_way: Option<u32>,
}

impl LoopState {
    fn badge(&self, checkpoint: Option<u32>) -> Badge {
        if checkpoint.is_some() {
            return Badge::Review;
        }
        Badge::for_loop(&self.machine, |attempt| self.attempt_starts.contains_key(&attempt))
    }

    /// The number of the latest running attempt among those of its role.
    fn attempt(&self) -> u32 {
        let running = self.machine.running_attempts().into_iter();
        let Some((latest, launch)) =
            running.filter_map(|attempt| Some((attempt, self.launch(attempt)?))).max_by_key(|one| one.0)
        else {
            return 0;
        };
        let same = |one: &Launch| one.role == launch.role && one.reviewer == launch.reviewer;
        let so_far = self.attempt_starts.range(..=latest).filter(|(_, one)| same(&one.launch)).count();
        u32::try_from(so_far).unwrap_or(u32::MAX)
    }

    /// The rate limit that ends first, of those that pause the loop.
    fn wait(&self) -> Option<RateLimitWait> {
        self.machine.pause_cause().filter(|reason| *reason == Reason::RateLimited)?;
        let PendingRateLimit { until, refused } =
            self.machine.pending_rate_limits().into_iter().min_by_key(|wait| wait.until)?;
        let agent = |refusal: &&RateLimitRefusal| self.agent(refusal.attempt).map(str::to_owned);
        let mut agents = refused.iter().map(|refusal| agent(refusal).unwrap_or_default());
        let why = refused.first().and_then(|refusal| refusal.error.as_ref());
        Some(RateLimitWait {
            agent: agents.next().unwrap_or_default(),
            until,
            overloaded: why.is_some_and(|why| why.kind == AgentErrorKind::Overloaded),
            why: why.map(|why| why.message.clone()).filter(|why| !why.is_empty()),
            fallbacks: agents.collect(),
        })
    }

    /// How an attempt was started.
    pub fn launch(&self, attempt: AttemptId) -> Option<&Launch> {
        self.attempt_starts.get(&attempt).map(|start| &start.launch)
    }

    /// The agent of an attempt.
    pub fn agent(&self, attempt: AttemptId) -> Option<&str> {
        self.launch(attempt).map(|launch| launch.agent.as_str())
    }

    fn row(&self, loop_id: &LoopId, policy: &Policy, run: &Run, checkpoint: &CheckpointReviews) -> LoopRow {
        let machine = &self.machine;
        let policy = self.policy.as_deref().unwrap_or(policy);
        let phase = policy.workflow.phases.get(machine.position.phase);
        let ending = if let Stage::Done(ending) = &machine.stage { Some(ending) } else { None };
        let is_blocked = matches!(run.stage, RunStage::Blocked { .. });
        let overruled = machine::overruled(machine, policy).len();
        let checkpoint_number = checkpoint.under_way.filter(|_| !machine.is_done());
        LoopRow {
            id: loop_id.clone(),
            run: RunId::default(),
            task: self.task,
            kind: if policy.workflow.phases.iter().all(|phase| phase.policy().is_some()) {
                TaskType::Review
            } else {
                TaskType::Implement
            },
            tracker_id: None,
            title: self.title.clone(),
            branch: self.branch.clone(),
            base: self.workspace.as_ref().map(|workspace| workspace.base.clone()),
            worktree: self.workspace.as_ref().map(|workspace| workspace.worktree.clone()).unwrap_or_default(),
            badge: self.badge(checkpoint_number),
            status: TaskStatus::for_loop(machine, is_blocked),
            state: TaskState::for_loop(machine, is_blocked),
            phase: phase.map(|phase| phase.name.clone()).unwrap_or_default(),
            pass: machine.position.pass,
            progress: PhaseProgress::for_loop(machine, policy),
            cycle: machine.review_number(),
            max_cycles: max_cycles(machine, policy),
            iteration: machine.counters.attempts,
            fixes: machine.counters.fixes,
            attempt: self.attempt(),
            checkpoint: checkpoint_number,
            outcome: ending.and_then(|ending| {
                // Reviewers did not approve work that they would have blocked without a person's decision.
                let accepted = overruled > 0 && matches!(ending.outcome, Outcome::Approved { .. });
                if accepted { Some(OutcomeKind::Accepted) } else { ending.outcome.kind() }
            }),
            overruled,
            final_verdict: machine.final_verdict(),
            reason: ending.and_then(|ending| ending.reason).or_else(|| machine.pause_cause()),
            open_findings: machine.open_findings(),
            usage: self.total_usage().plus(checkpoint.usage),
            last_line: self.last_line.clone(),
            since: self.since,
            question: self.question.and_then(|id| QuestionView::for_loop(machine, id, self.task)),
            wait: self.wait(),
        }
    }
}

/// Maximum number of reviews at the current gate, else the next, else the last one.
fn max_cycles(machine: &Loop, policy: &Policy) -> Option<u32> {
    let phases = &policy.workflow.phases;
    let (behind, ahead) = phases.split_at(machine.position.phase.min(phases.len()));
    let here = ahead.first().and_then(Phase::policy);
    let is_gate = |phase: &&Phase| phase.is_gate() && !phase.is_off();
    let next = || ahead.iter().find(is_gate).and_then(Phase::policy);
    let last = || behind.iter().rfind(is_gate).and_then(Phase::policy);
    here.or_else(next).or_else(last).and_then(|gate_policy| gate_policy.gate.bound.reviews())
}

/// The current phase and iteration, with their totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PhaseProgress {
    pub phase: u32,
    pub phases: u32,
    /// The number of the iteration, from 1.
    pub pass: u32,
    pub max_passes: u32,
}

impl PhaseProgress {
    /// None if the phases are not numbered. After the last phase it stays at the last.
    pub fn for_loop(machine: &Loop, policy: &Policy) -> Option<Self> {
        let phases = policy.workflow.last_number()?;
        let (pass, granted) = (machine.position.pass, machine.counters.granted.passes);
        Some(Self {
            phase: policy.workflow.number(machine.position.phase).min(phases),
            phases,
            pass,
            max_passes: policy.workflow.limits.max_passes.saturating_add(granted).max(pass),
        })
    }
}

/// A question as displayed to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuestionView {
    pub id: QuestionId,
    pub task_id: Option<TaskId>,
    pub text: String,
    pub choices: Vec<Choice>,
}

impl QuestionView {
    /// `id` is the number within the run; loops number their questions separately.
    pub fn for_loop(machine: &Loop, id: QuestionId, task_id: Option<TaskId>) -> Option<Self> {
        let Stage::Waiting { question, .. } = &machine.stage else { return None };
        let text = question_text(&question.topic, machine.review_number());
        Some(Self { id, task_id, text, choices: question.choices.clone() })
    }
}

fn question_text(about: &QuestionTopic, cycle: u32) -> String {
    match about {
        QuestionTopic::PartialReview { missing } => {
            format!("{} gave no usable review; the others did. Retry, proceed without, or stop?", names(missing))
        }
        QuestionTopic::UnclearReview { missing } => {
            format!("The answer of {} could not be understood. Retry, proceed without it, or stop?", names(missing))
        }
        QuestionTopic::NoReview { missing } => {
            format!("{} gave no review. Retry, skip the review, or stop?", names(missing))
        }
        QuestionTopic::Exhausted(reason) => {
            format!("{}. One more fix and review, proceed with the findings open, or stop?", bound(*reason, cycle))
        }
        QuestionTopic::FixerFailed => "The fixer failed. Retry or stop?".to_owned(),
        QuestionTopic::ImplementerFailed => "The implementer failed. Retry or stop?".to_owned(),
        QuestionTopic::Discussion { by } => {
            let verb = if by.len() == 1 { "requests" } else { "request" };
            format!("{} {verb} a discussion. Fix, proceed, or stop?", names(by))
        }
    }
}

fn names(reviewers: &[ReviewerName]) -> String {
    reviewers.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" and ")
}

fn bound(reason: Reason, cycle: u32) -> String {
    let descriptions = [
        (Reason::SameFinding, "The same finding keeps coming back"),
        (Reason::NoopFix, "The last fix changed nothing"),
        (Reason::FixerFailed, "The fixer kept failing"),
    ];
    match descriptions.into_iter().find(|(known, _)| *known == reason) {
        Some((_, text)) => text.to_owned(),
        None if cycle == 1 => "1 review did not lead to approval".to_owned(),
        None => format!("{cycle} reviews did not lead to approval"),
    }
}
