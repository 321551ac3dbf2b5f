//! What a person can do next about a task or a run, as commands to type.

use std::collections::BTreeSet;
use std::fmt;

use super::{ProjectSnapshot, is_rate_limited};
use crate::ids::{LoopId, RunId};
use crate::machine::{Choice, FinalVerdict, OutcomeKind, Reason};
use crate::notify::{BindingCap, CapOwner};
use crate::policy::BudgetResource;
use crate::settings::key;
use crate::task::TaskType;
use crate::view::{LoopRow, QuestionRow, TaskRow, TaskStatus};

/// One command of the program about a task or a run. `Display` is its command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Show(u64),
    Diff(u64),
    FollowLog(u64),
    /// Answers a question, named by its id or its task.
    Answer {
        subject: String,
        choices: Vec<String>,
    },
    /// Works all tasks of the queue.
    WorkQueue,
    Work(u64),
    Retry(u64),
    Improve(u64),
    Review(u64),
    /// Reviews the changes in the checkout.
    ReviewCheckout,
    /// Approves the task in the person's name.
    Accept(u64),
    /// The same, with the reason that some tasks require.
    AcceptWithReason(u64),
    Cancel(u64),
    Merge(u64),
    /// Approves a task in the person's name and merges it.
    ForceMerge(u64),
    /// Lands the approved work.
    Land,
    /// Merges a branch that was not reviewed.
    GitMerge {
        branch: Option<String>,
    },
    /// Resumes a run; the last one if it has no number.
    ResumeRun(Option<u64>),
    /// Repeats the final review of a run.
    RetryRun(u64),
    /// Approves a run in the person's name.
    AcceptRun(u64),
    /// Disputes a finding.
    Dispute {
        finding: String,
    },
    /// Raises a cap of the budget.
    RaiseCap(BindingCap),
    ShowLimits,
    Status,
}

impl Action {
    /// Answers an open question.
    pub fn answer(question: &QuestionRow) -> Self {
        let subject = question.task_id.map_or_else(|| question.id.clone(), |task| task.to_string());
        Self::Answer { subject, choices: question.choices.clone() }
    }

    /// What continues a run after an answer, if no process is working on it. None if nothing is left to do.
    /// `has_ended`: the answer ended the loop that asked.
    pub fn after_answer(run: RunId, loop_id: &LoopId, has_ended: bool, tasks: &[TaskRow]) -> Option<Self> {
        // The result of a loop of the run itself is applied when the run is resumed.
        if loop_id.is_run_level() {
            return Some(Self::ResumeRun(Some(run.0)));
        }
        let is_unfinished = |row: &TaskRow| matches!(row.status, TaskStatus::Pending | TaskStatus::InProgress);
        let continues = !has_ended || tasks.iter().any(|row| row.run_id == Some(run.0) && is_unfinished(row));
        continues.then_some(Self::WorkQueue)
    }

    /// What continues after an interrupt. None if nothing is left to do. `tasks` are those of the interrupted command.
    pub fn after_interrupt(tasks: &[TaskRow], a_run_lands: bool, has_queued: bool) -> Option<Self> {
        let mut open = tasks.iter().filter(|row| !row.status.is_over());
        if a_run_lands || open.clone().any(TaskRow::is_plan_task) {
            return Some(Self::ResumeRun(None));
        }
        (has_queued || open.next().is_some()).then_some(Self::WorkQueue)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Show(task) => write!(f, "signoff show {task}"),
            Self::Diff(task) => write!(f, "signoff diff {task}"),
            Self::FollowLog(task) => write!(f, "signoff logs {task} -f"),
            Self::Answer { subject, choices } => write!(f, "signoff answer {subject} CHOICE ({})", choices.join(", ")),
            Self::WorkQueue => f.write_str("signoff work"),
            Self::Work(task) => write!(f, "signoff work {task}"),
            Self::Retry(task) => write!(f, "signoff retry {task}"),
            Self::Improve(task) => write!(f, "signoff improve {task} --review"),
            Self::Review(task) => write!(f, "signoff review {task}"),
            Self::ReviewCheckout => f.write_str("signoff review"),
            Self::Accept(task) => write!(f, "signoff edit {task} --verdict APPROVED"),
            Self::AcceptWithReason(task) => write!(f, "signoff edit {task} --verdict APPROVED --reason TEXT"),
            Self::Cancel(task) => write!(f, "signoff cancel {task}"),
            Self::Merge(task) => write!(f, "signoff merge {task}"),
            Self::ForceMerge(task) => write!(f, "signoff merge {task} --force --reason TEXT"),
            Self::Land => f.write_str("signoff land"),
            Self::GitMerge { branch } => write!(f, "git merge {}", branch.as_deref().unwrap_or("its branch")),
            Self::ResumeRun(Some(run)) => write!(f, "signoff run --resume {run}"),
            Self::ResumeRun(None) => f.write_str("signoff run --resume"),
            Self::RetryRun(run) => write!(f, "signoff retry run-{run}"),
            Self::AcceptRun(run) => write!(f, "signoff edit run-{run} --verdict APPROVED --reason TEXT"),
            Self::Dispute { finding } => write!(f, "signoff dispute {finding} --reason TEXT"),
            Self::RaiseCap(cap) => write!(f, "signoff configure --set {}", cap_setting(*cap)),
            Self::ShowLimits => f.write_str("signoff config limits"),
            Self::Status => f.write_str("signoff status"),
        }
    }
}

/// `limits.run.max_cost_usd=DOLLARS`.
fn cap_setting(cap: BindingCap) -> String {
    let table = match cap.owner {
        CapOwner::Task => key::LIMITS.to_owned(),
        CapOwner::Run => format!("{}.{}", key::LIMITS, key::RUN),
    };
    let (cap, value) = match cap.kind {
        BudgetResource::Cost => (key::MAX_COST_USD, "DOLLARS"),
        BudgetResource::Tokens => (key::MAX_TOKENS, "TOKENS"),
        BudgetResource::Minutes => (key::MAX_MINUTES, "MINUTES"),
    };
    format!("{table}.{cap}={value}")
}

/// `A`, `A or B`, `A, B, or C`.
fn alternatives(actions: &[Action]) -> String {
    match actions {
        [] => String::new(),
        [one] => one.to_string(),
        [one, other] => format!("{one} or {other}"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(Action::to_string).collect();
            format!("{}, or {last}", first.join(", "))
        }
    }
}

/// What to do next about a task. `Display` is the text for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// One command.
    Do(Action),
    /// Look at it first, then do one of these.
    InspectThen { look: Action, then: Vec<Action> },
    /// One of these commands.
    Choose(Vec<Action>),
    /// These commands, one after the other.
    InOrder(Vec<Action>),
    /// A process will resume it when the rate limit ends.
    ResumesAutomatically { task: u64 },
    /// It can be resumed when the rate limit ends.
    AfterRateLimit { task: u64 },
    /// Its budget cap is reached.
    RaiseBudget { task: u64 },
    /// Other tasks of its group block it.
    WaitsForGroup { run: u64 },
    /// Tasks before it block it.
    BlockingTask(Vec<BlockingTask>),
    /// A review without a change to review.
    AddWork { task: u64 },
    /// It is approved and changes nothing.
    NothingChanged,
    /// It is in the default branch.
    Landed { task: u64 },
    /// Another task of its run was refused.
    TaskRefused { task: u64, run: u64 },
    /// The final review of its run failed.
    FinalReviewFailed { run: u64 },
    /// It is approved and lands with its run.
    LandsWithRun { task: u64, run: u64 },
    /// It was cancelled.
    AddAgain,
}

/// A task that blocks another one, and what resolves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockingTask {
    /// It was cancelled.
    Cancelled { task: u64, by: u64 },
    /// Another task blocks it too.
    Blocked { by: u64 },
    /// Its work changes nothing.
    NothingToReview { by: u64 },
    /// It ended like this; a refused task cannot be retried.
    NotApproved { by: u64, status: TaskStatus, verdict: Option<FinalVerdict>, is_refused: bool },
}

impl NextStep {
    pub fn for_task(task: &TaskRow, snapshot: &ProjectSnapshot) -> Self {
        let id = task.id;
        if task.is_refused_by_person() {
            return Self::Do(Action::Improve(id));
        }
        match task.status {
            TaskStatus::Failed if task.kind == TaskType::Review && task.reason == Some(Reason::GateFailed) => {
                Self::show_then(id, vec![Action::Improve(id)])
            }
            TaskStatus::Failed | TaskStatus::Stuck => Self::show_then(id, vec![Action::Retry(id)]),
            TaskStatus::Paused if snapshot.resumes_by_itself(task) => Self::ResumesAutomatically { task: id },
            TaskStatus::Paused if is_rate_limited(task) => Self::AfterRateLimit { task: id },
            TaskStatus::Paused => Self::RaiseBudget { task: id },
            TaskStatus::Blocked => match snapshot.group_run_of(task) {
                Some(run) => Self::WaitsForGroup { run: run.id },
                None => Self::BlockingTask(unblocks(task, snapshot.tasks)),
            },
            TaskStatus::Pending => Self::Do(Action::Work(id)),
            TaskStatus::InProgress if snapshot.is_interrupted(task) => Self::Do(resume(task, snapshot)),
            TaskStatus::InProgress | TaskStatus::Waiting => Self::Do(Action::FollowLog(id)),
            TaskStatus::Completed => Self::after_completion(task, snapshot),
            TaskStatus::Cancelled => Self::AddAgain,
        }
    }

    /// What to do next about the task of a loop that this process works on. None if the loop has no task.
    pub fn for_loop(row: &LoopRow) -> Option<Self> {
        let driven = BTreeSet::from([row.run.0]);
        Some(Self::for_task(&row.to_task_row()?, &ProjectSnapshot { tasks: &[], runs: &[], driven: &driven }))
    }

    /// Answers the question of a loop. `id` is the id in the repository; the store assigns it.
    pub fn for_question(row: &LoopRow, id: Option<&str>) -> Self {
        let choices: &[Choice] = row.question.as_ref().map(|question| question.choices.as_slice()).unwrap_or_default();
        let choices = choices.iter().map(|choice| choice.into_str().to_owned()).collect();
        match row.task.map(|task| task.to_string()).or_else(|| id.map(str::to_owned)) {
            Some(subject) => Self::Do(Action::Answer { subject, choices }),
            None => Self::InOrder(vec![Action::Status, Action::Answer { subject: "QUESTION".to_owned(), choices }]),
        }
    }

    /// What leads to the approval that a task lacks. A process may be working on the task's run.
    pub fn to_approve(task: &TaskRow, tasks: &[TaskRow]) -> Self {
        if task.status == TaskStatus::Completed && task.outcome.is_none() {
            return Self::Do(Action::Review(task.id));
        }
        Self::for_task(task, &ProjectSnapshot { tasks, runs: &[], driven: &task.run_id.into_iter().collect() })
    }

    /// What continues a loop that a budget cap paused.
    pub fn after_budget(cap: Option<BindingCap>) -> Self {
        Self::InOrder(vec![cap.map_or(Action::ShowLimits, Action::RaiseCap), Action::WorkQueue])
    }

    fn after_completion(task: &TaskRow, snapshot: &ProjectSnapshot) -> Self {
        let id = task.id;
        match task.outcome {
            Some(OutcomeKind::Exhausted) if task.reason == Some(Reason::UnclearReview) => {
                Self::show_then(id, vec![Action::Retry(id)])
            }
            Some(OutcomeKind::Exhausted) => Self::show_then(id, vec![Action::Improve(id), Action::Accept(id)]),
            Some(OutcomeKind::Discussion) => Self::show_then(id, vec![Action::Retry(id), Action::Accept(id)]),
            Some(OutcomeKind::NothingToReview) if task.kind == TaskType::Review => Self::AddWork { task: id },
            Some(OutcomeKind::NothingToReview) => Self::unblock_run(id),
            Some(_) if task.reason == Some(Reason::ChangedAfterReview) => {
                Self::InspectThen { look: Action::Diff(id), then: vec![Action::Review(id)] }
            }
            Some(OutcomeKind::CompletedWithIssues) => Self::show_then(id, vec![Action::Improve(id)]),
            Some(OutcomeKind::Accepted) if task.is_approved_empty() => Self::NothingChanged,
            Some(OutcomeKind::Approved | OutcomeKind::Accepted) => Self::after_approval(task, snapshot),
            Some(OutcomeKind::Failed | OutcomeKind::Stuck | OutcomeKind::Cancelled | OutcomeKind::Rejected) | None => {
                let merge = Action::GitMerge { branch: task.branch.clone() };
                Self::InspectThen { look: Action::Diff(id), then: vec![merge] }
            }
        }
    }

    fn after_approval(task: &TaskRow, snapshot: &ProjectSnapshot) -> Self {
        let id = task.id;
        if task.landed_commit.is_some() {
            return Self::Landed { task: id };
        }
        match snapshot.group_run_of(task) {
            Some(run) if snapshot.has_rejected_task(run) => Self::TaskRefused { task: id, run: run.id },
            Some(run) if run.failed_as_a_whole() => Self::FinalReviewFailed { run: run.id },
            Some(run) => Self::LandsWithRun { task: id, run: run.id },
            None => Self::InspectThen { look: Action::Diff(id), then: vec![Action::Merge(id)] },
        }
    }

    /// What resolves a task that blocks its run.
    pub fn unblock_run(task: u64) -> Self {
        Self::Choose(vec![Action::Retry(task), Action::Accept(task), Action::Cancel(task)])
    }

    fn show_then(task: u64, then: Vec<Action>) -> Self {
        Self::InspectThen { look: Action::Show(task), then }
    }

    /// The same without the command that shows the task, for a person that has just seen it.
    #[must_use]
    pub fn without_show(self) -> Self {
        let Self::InspectThen { look: Action::Show(_), mut then } = self else { return self };
        if then.len() == 1 { Self::Do(then.remove(0)) } else { Self::Choose(then) }
    }
}

impl fmt::Display for NextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Do(action) => action.fmt(f),
            Self::InspectThen { look, then } => write!(f, "{look}, then {}", alternatives(then)),
            Self::Choose(actions) => f.write_str(&alternatives(actions)),
            Self::InOrder(actions) => {
                let actions: Vec<String> = actions.iter().map(Action::to_string).collect();
                f.write_str(&actions.join("; "))
            }
            Self::ResumesAutomatically { task } => write!(f, "it continues by itself; {}", Action::FollowLog(*task)),
            Self::AfterRateLimit { task } => write!(f, "{} continues when the rate limit ends", Action::Work(*task)),
            Self::RaiseBudget { task } => write!(f, "raise the budget, then {}", Action::Work(*task)),
            Self::WaitsForGroup { run } => {
                let resume = Action::ResumeRun(Some(*run));
                write!(f, "its group waits for others: {}, then {resume}", Action::Status)
            }
            Self::BlockingTask(ways) if ways.is_empty() => {
                f.write_str("it waits for another task; resolve that task first")
            }
            Self::BlockingTask(ways) => {
                let ways: Vec<String> = ways.iter().map(BlockingTask::to_string).collect();
                f.write_str(&ways.join("; "))
            }
            Self::AddWork { task } => {
                let (review, cancel) = (Action::Review(*task), Action::Cancel(*task));
                write!(f, "add work to its branch, then {review}; or {cancel}")
            }
            Self::NothingChanged => f.write_str("nothing to do: the branch has no changes"),
            Self::Landed { task } => write!(f, "nothing: it is in the default branch; {}", Action::Diff(*task)),
            Self::TaskRefused { task, run } => {
                write!(f, "{}; a task of run {run} was refused: {}", Action::Diff(*task), Action::Status)
            }
            Self::FinalReviewFailed { run } => {
                let (retry, accept) = (Action::RetryRun(*run), Action::AcceptRun(*run));
                write!(f, "the final review of its run failed: {retry}, or {accept}")
            }
            Self::LandsWithRun { task, run } => write!(f, "{}; it lands with run {run}", Action::Diff(*task)),
            Self::AddAgain => f.write_str("`signoff add` queues it again"),
        }
    }
}

impl fmt::Display for BlockingTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled { task, by } => {
                let cancel = Action::Cancel(*task);
                write!(f, "waits for #{by}, which was cancelled: {cancel}, and add it again without --depends-on {by}")
            }
            Self::Blocked { by } => write!(f, "waits for #{by}, which is blocked too"),
            Self::NothingToReview { by } => {
                let ways = alternatives(&[Action::Retry(*by), Action::Accept(*by)]);
                write!(f, "waits for #{by} (nothing to review): {ways}")
            }
            Self::NotApproved { by, status, verdict, is_refused } => {
                let how = verdict.map_or(status.into_str(), |verdict| verdict.into_str());
                let retry = (!is_refused).then_some(Action::Retry(*by));
                let ways: Vec<Action> = retry.into_iter().chain([Action::Accept(*by)]).collect();
                write!(f, "waits for #{by} ({how}): {}", alternatives(&ways))
            }
        }
    }
}

/// The action that resumes an interrupted task.
fn resume(task: &TaskRow, snapshot: &ProjectSnapshot) -> Action {
    match snapshot.interrupted_run_of(task) {
        Some(run) => Action::ResumeRun(Some(run.id)),
        None if task.is_plan_task() => Action::ResumeRun(None),
        None => Action::Work(task.id),
    }
}

/// The tasks that block this one.
fn unblocks(task: &TaskRow, tasks: &[TaskRow]) -> Vec<BlockingTask> {
    let of_run = |other: &TaskRow| task.is_plan_task() && other.is_plan_task() && other.run_id == task.run_id;
    let before = |other: &&TaskRow| task.depends_on.contains(&other.id) || of_run(other);
    tasks.iter().filter(before).filter_map(|other| unblock(other, task)).collect()
}

fn unblock(other: &TaskRow, task: &TaskRow) -> Option<BlockingTask> {
    let by = other.id;
    let not_approved = || BlockingTask::NotApproved {
        by,
        status: other.status,
        verdict: other.final_verdict,
        is_refused: other.is_refused_by_person(),
    };
    match other.status {
        TaskStatus::Cancelled if !task.is_plan_task() => Some(BlockingTask::Cancelled { task: task.id, by }),
        TaskStatus::Blocked if !task.is_plan_task() => Some(BlockingTask::Blocked { by }),
        TaskStatus::Completed if other.outcome == Some(OutcomeKind::NothingToReview) => {
            Some(BlockingTask::NothingToReview { by })
        }
        TaskStatus::Completed if other.outcome.is_some_and(OutcomeKind::needs_decision) => Some(not_approved()),
        TaskStatus::Failed | TaskStatus::Stuck => Some(not_approved()),
        TaskStatus::Pending
        | TaskStatus::InProgress
        | TaskStatus::Waiting
        | TaskStatus::Paused
        | TaskStatus::Blocked
        | TaskStatus::Completed
        | TaskStatus::Cancelled => None,
    }
}
