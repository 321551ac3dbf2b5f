//! One loop as the list shows it.

use jiff::Timestamp;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::view::{Badge, LoopView, Status, TaskRow, TaskState};
use signoff_core::wire::QUEUE;

use super::standings::Standings;
use crate::fit::{count, cut};
use crate::{progress, words};

/// How wide what a loop says may be: the widest screen has no room for more.
const SAID: usize = 240;

/// How wide its name may be.
const NAME: usize = 120;

/// What tells a row from every other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    pub run: RunId,
    pub loop_id: LoopId,
}

impl RowKey {
    pub fn new(run: RunId, loop_id: &LoopId) -> Self {
        Self { run, loop_id: loop_id.clone() }
    }

    /// A task that no run has taken up.
    pub fn queued(task: u64) -> Self {
        Self { run: QUEUE, loop_id: LoopId::new(format!("task-{task}")) }
    }
}

/// What comes first: whatever needs a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    Asking,
    Stuck,
    /// At its end, and not signed off.
    Unsettled,
    /// Begun, and worked on by nobody.
    Interrupted,
    Paused,
    AtWork,
    Waiting,
    Done,
}

impl Rank {
    fn of(view: &LoopView) -> Self {
        match view.badge {
            Badge::Ask => Self::Asking,
            Badge::Stuck => Self::Stuck,
            Badge::Paused => Self::Paused,
            Badge::Spawn | Badge::Work | Badge::Review | Badge::Fix | Badge::Check | Badge::Land => {
                Self::AtWork
            }
            Badge::Wait => Self::Waiting,
            Badge::Done if is_unsettled(view) => Self::Unsettled,
            Badge::Done => Self::Done,
        }
    }

    /// The same by what others know besides: what came after it, and whether it goes on by itself.
    fn by(self, standings: &Standings, task: Option<TaskId>) -> Self {
        let (needs, settled) = (standings.next(task).is_some(), standings.is_settled(task));
        match self {
            Self::Stuck | Self::Unsettled if settled => Self::Done,
            Self::Paused if settled => Self::AtWork,
            Self::Waiting | Self::Done if needs => Self::Unsettled,
            Self::Asking
            | Self::Stuck
            | Self::Unsettled
            | Self::Interrupted
            | Self::Paused
            | Self::AtWork
            | Self::Waiting
            | Self::Done => self,
        }
    }

    pub fn needs_a_person(self) -> bool {
        self <= Self::Paused
    }

    /// Whether nothing more happens to it by itself.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Stuck | Self::Unsettled | Self::Done)
    }
}

/// Whether a loop came to its end without having been signed off.
fn is_unsettled(view: &LoopView) -> bool {
    matches!(view.outcome, Some("exhausted" | "discussion" | "nothing_to_review" | "completed_with_issues"))
}

/// The words of one row, ready to be cut to any width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub rank: Rank,
    pub task: Option<TaskId>,
    pub badge: Badge,
    pub state: TaskState,
    /// It came to its end, and what was to come after it did not go on from there.
    pub stopped: bool,
    /// The badge with its number: `FIX 2`.
    pub word: String,
    /// `#29 Add user authentication`.
    pub name: String,
    /// `review 2/3`.
    pub place: String,
    pub cost: String,
    pub branch: String,
    /// When its stage last changed.
    pub since: Option<Timestamp>,
    pub said: String,
}

impl Row {
    pub fn of(view: &LoopView) -> Self {
        let name = match view.task {
            Some(task) => format!("#{task} {}", cut(&view.title, NAME)),
            None => words::subject(view),
        };
        Self {
            rank: Rank::of(view),
            task: view.task,
            badge: view.badge,
            state: view.state,
            stopped: matches!(view.outcome, Some("exhausted" | "discussion" | "nothing_to_review")),
            word: progress::badge(view),
            name,
            place: if view.badge == Badge::Wait { String::new() } else { progress::place(view) },
            cost: progress::cost(view.usage),
            branch: cut(&view.branch, NAME),
            since: view.since,
            said: cut(&said(view), SAID),
        }
    }

    /// The same by what others know besides the log.
    pub fn by(self, standings: &Standings) -> Self {
        let rank = self.rank.by(standings, self.task);
        let said = match standings.next(self.task) {
            Some(next) if rank != self.rank && self.badge == Badge::Wait => next.to_owned(),
            Some(next) if rank != self.rank => format!("{}; {next}", self.said),
            Some(_) | None => self.said,
        };
        // Do not show a voided approval as approved.
        let void = rank != self.rank && self.state.is_approved();
        let state = if void { TaskState::NeedsYou } else { self.state };
        Self { rank, state, said: cut(&said, SAID), ..self }
    }

    /// The same where nobody works on it, and what to type then.
    pub fn interrupted(self, next: Option<&str>) -> Self {
        let next = next.map(|next| format!(": {next}")).unwrap_or_default();
        Self { rank: Rank::Interrupted, said: cut(&format!("interrupted{next}"), SAID), ..self }
    }

    /// A task that no run has taken up.
    pub fn queued(task: &TaskRow) -> Self {
        let after: Vec<_> = task.depends_on.iter().map(|id| format!("#{id}")).collect();
        let said = if after.is_empty() { String::new() } else { format!("comes after {}", after.join(", ")) };
        Self {
            rank: Rank::Waiting,
            task: Some(TaskId(task.id)),
            badge: Badge::Wait,
            state: task.state(),
            stopped: false,
            word: Badge::Wait.word().to_owned(),
            name: format!("#{} {}", task.id, cut(&task.title, NAME)),
            place: String::new(),
            cost: String::new(),
            branch: cut(task.branch.as_deref().unwrap_or_default(), NAME),
            since: None,
            said: cut(&said, SAID),
        }
    }

    /// An agent's last line stands where there is nothing more important to say.
    pub fn speaks(&self) -> bool {
        self.rank == Rank::AtWork && self.badge != Badge::Paused
    }
}

/// What there is to know about a loop in one line.
fn said(view: &LoopView) -> String {
    match view.badge {
        Badge::Ask => view.question.as_ref().map(|question| question.text.clone()).unwrap_or_default(),
        Badge::Paused => match (&view.wait, view.reason) {
            (Some(wait), _) => words::wait(wait),
            (None, Some(reason)) => words::reason(reason).to_owned(),
            (None, None) => view.last_line.clone(),
        },
        Badge::Stuck | Badge::Done => ended(view),
        Badge::Wait if view.status == Status::Blocked => {
            "signed off; its group waits for a person".to_owned()
        }
        Badge::Wait if view.status != Status::Pending => "signed off; waits to be landed".to_owned(),
        // What agents say holds for as long as they do the same: whoever keeps the rows knows that.
        Badge::Wait
        | Badge::Spawn
        | Badge::Work
        | Badge::Review
        | Badge::Fix
        | Badge::Check
        | Badge::Land => String::new(),
    }
}

/// How it ended and why: `APPROVED`, `failed: the fixer failed, 2 findings open`.
fn ended(view: &LoopView) -> String {
    let how = view.final_verdict.map(|verdict| verdict.word()).filter(|_| view.badge == Badge::Done);
    let how = how.or(view.outcome).unwrap_or("completed");
    let why = view.reason.map(|reason| format!(": {}", words::reason(reason))).unwrap_or_default();
    let open = match view.open_findings as u64 {
        open if view.state.is_approved() => words::open_findings(open),
        0 => String::new(),
        open => format!(", {} open", count(open, "finding")),
    };
    format!("{how}{why}{open}")
}
