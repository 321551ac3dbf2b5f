//! One row of the list: a loop, or a queued task.

use jiff::Timestamp;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::OutcomeKind;
use signoff_core::view::inbox::{Attention, RowHint, TaskActions};
use signoff_core::view::{Badge, LoopRow, TaskRow, TaskState, TaskStatus};
use signoff_core::wire::QUEUE;

use crate::fit::{count, truncate_line};
use crate::{labels, progress};

/// Maximum width of the message; no screen has room for more.
const MAX_MESSAGE_WIDTH: usize = 240;

/// Maximum width of the name.
const MAX_NAME_WIDTH: usize = 120;

/// The unique key of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    pub run: RunId,
    pub loop_id: LoopId,
}

impl RowKey {
    pub fn new(run: RunId, loop_id: &LoopId) -> Self {
        Self { run, loop_id: loop_id.clone() }
    }

    /// A task without a run.
    pub fn queued(task: u64) -> Self {
        Self { run: QUEUE, loop_id: LoopId::new(format!("task-{task}")) }
    }
}

/// The sort order of rows. Rows that need a person come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowOrder {
    Needs(Attention),
    AtWork,
    Waiting,
    Done,
}

impl RowOrder {
    fn new(badge: Badge, attention: Option<Attention>) -> Self {
        match (attention, badge) {
            (Some(attention), _) => Self::Needs(attention),
            (None, Badge::Wait) => Self::Waiting,
            (None, Badge::Done | Badge::Stuck) => Self::Done,
            (
                None,
                Badge::Spawn
                | Badge::Work
                | Badge::Review
                | Badge::Fix
                | Badge::Check
                | Badge::Land
                | Badge::Ask
                | Badge::Paused,
            ) => Self::AtWork,
        }
    }

    pub fn needs_a_person(self) -> bool {
        matches!(self, Self::Needs(_))
    }

    /// Whether the loop has stopped.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Needs(Attention::Stuck | Attention::NotApproved) | Self::Done)
    }
}

/// The texts of one row, before truncation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TuiRow {
    pub rank: RowOrder,
    pub task: Option<TaskId>,
    pub badge: Badge,
    pub state: TaskState,
    /// It ended without approval, and dependent tasks did not start.
    pub stopped: bool,
    pub actions: TaskActions,
    /// The badge with its number: `FIX 2`.
    pub badge_label: String,
    /// `#29 Add user authentication`.
    pub name: String,
    /// `review 2/3`.
    pub position: String,
    pub cost: String,
    pub branch: String,
    /// When its stage last changed.
    pub since: Option<Timestamp>,
    pub message: String,
}

impl TuiRow {
    pub fn from_view(view: &LoopRow) -> Self {
        let name = match view.task {
            Some(task) => format!("#{task} {}", truncate_line(&view.title, MAX_NAME_WIDTH)),
            None => labels::subject(view),
        };
        Self {
            rank: RowOrder::new(view.badge, Attention::for_loop(view)),
            task: view.task,
            badge: view.badge,
            state: view.state,
            stopped: view.outcome.is_some_and(OutcomeKind::needs_decision),
            actions: view.to_task_row().as_ref().map(TaskActions::for_task).unwrap_or_default(),
            badge_label: progress::badge(view),
            name,
            position: if view.badge == Badge::Wait { String::new() } else { progress::phase_position(view) },
            cost: progress::cost(view.usage),
            branch: truncate_line(&view.branch, MAX_NAME_WIDTH),
            since: view.since,
            message: truncate_line(&message(view), MAX_MESSAGE_WIDTH),
        }
    }

    /// Applies the information from outside the log.
    #[must_use]
    pub fn with_hint(self, hint: &RowHint) -> Self {
        let rank = RowOrder::new(self.badge, hint.attention);
        if rank == self.rank {
            return self;
        }
        let message = match (hint.attention, &hint.next) {
            (Some(Attention::Interrupted), Some(next)) => format!("interrupted: {next}"),
            (Some(Attention::Interrupted), None) => "interrupted".to_owned(),
            (_, Some(next)) if self.badge == Badge::Wait => next.to_string(),
            (_, Some(next)) => format!("{}; {next}", self.message),
            (_, None) => self.message,
        };
        let state = match hint.attention {
            None | Some(Attention::Interrupted) => self.state,
            Some(attention) => attention.state(self.state),
        };
        Self { rank, state, message: truncate_line(&message, MAX_MESSAGE_WIDTH), ..self }
    }

    /// The row of a task without a run.
    pub fn queued(task: &TaskRow) -> Self {
        let needed: Vec<_> = task.depends_on.iter().map(|id| format!("#{id}")).collect();
        let message = if needed.is_empty() { String::new() } else { format!("depends on {}", needed.join(", ")) };
        Self {
            rank: RowOrder::Waiting,
            task: Some(TaskId(task.id)),
            badge: Badge::Wait,
            state: task.state(),
            stopped: false,
            actions: TaskActions::for_task(task),
            badge_label: Badge::Wait.into_str().to_owned(),
            name: format!("#{} {}", task.id, truncate_line(&task.title, MAX_NAME_WIDTH)),
            position: String::new(),
            cost: String::new(),
            branch: truncate_line(task.branch.as_deref().unwrap_or_default(), MAX_NAME_WIDTH),
            since: None,
            message: truncate_line(&message, MAX_MESSAGE_WIDTH),
        }
    }

    /// Whether the row shows the last line of its agent: only if there is nothing more important.
    pub fn shows_live_line(&self) -> bool {
        self.rank == RowOrder::AtWork && self.badge != Badge::Paused
    }
}

/// The most important information about a loop, in one line.
fn message(view: &LoopRow) -> String {
    match view.badge {
        Badge::Ask => view.question.as_ref().map(|question| question.text.clone()).unwrap_or_default(),
        Badge::Paused => match (&view.wait, view.reason) {
            (Some(wait), _) => labels::wait(wait),
            (None, Some(reason)) => labels::reason(reason).to_owned(),
            (None, None) => view.last_line.clone(),
        },
        Badge::Stuck | Badge::Done => result_text(view),
        Badge::Wait if view.status == TaskStatus::Blocked => "signed off; its group is blocked".to_owned(),
        Badge::Wait if view.status != TaskStatus::Pending => "signed off; waits to be landed".to_owned(),
        // The model adds the last line of the agent, which is valid only for the current stage.
        Badge::Wait | Badge::Spawn | Badge::Work | Badge::Review | Badge::Fix | Badge::Check | Badge::Land => {
            String::new()
        }
    }
}

/// The result and its reason: `APPROVED`, `failed: the fixer failed, 2 findings open`.
fn result_text(view: &LoopRow) -> String {
    let result = view.final_verdict.map(|verdict| verdict.into_str()).filter(|_| view.badge == Badge::Done);
    let result = result.or(view.outcome.map(<&str>::from)).unwrap_or("completed");
    let why = view.reason.map(|reason| format!(": {}", labels::reason(reason))).unwrap_or_default();
    let open = match view.open_findings as u64 {
        open if view.state.is_approved() => labels::open_findings(open),
        0 => String::new(),
        open => format!(", {} open", count(open, "finding")),
    };
    format!("{result}{why}{open}")
}
