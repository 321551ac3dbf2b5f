//! The rows of the tables, as values that any back end can write.
//!
//! What a row says is decided here and in [`crate::teller`]; a back end only puts cells under their columns.

mod cell;
mod question;
mod read;
mod review;
mod run;
mod task;

pub(crate) use cell::{Cell, Part};
pub(crate) use question::QuestionRecord;
pub(crate) use read::{Cells, FINDING_COLUMNS, QUESTION_COLUMNS, RUN_COLUMNS, TASK_COLUMNS};
pub(crate) use review::{FindingRecord, IssueRecord, ReviewRecord};
pub(crate) use run::{LoopRecord, RunRecord};
pub(crate) use task::{TaskAdded, TaskMoved, TaskTaken};

/// The tables that are told from the log, in the order in which their rows can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Table {
    Runs,
    Tasks,
    Loops,
    LoopReviews,
    ReviewIssues,
    Findings,
    Questions,
}

impl Table {
    pub const ALL: [Self; 7] = [
        Self::Runs,
        Self::Tasks,
        Self::Loops,
        Self::LoopReviews,
        Self::ReviewIssues,
        Self::Findings,
        Self::Questions,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Tasks => "tasks",
            Self::Loops => "loops",
            Self::LoopReviews => "loop_reviews",
            Self::ReviewIssues => "review_issues",
            Self::Findings => "findings",
            Self::Questions => "questions",
        }
    }

    /// The columns that identify a row.
    pub fn key(self) -> &'static [&'static str] {
        match self {
            Self::Runs | Self::Tasks | Self::LoopReviews | Self::ReviewIssues | Self::Questions => &["id"],
            Self::Loops => &["run_id", "id"],
            Self::Findings => &["id", "run_id", "loop_id"],
        }
    }
}

/// A column and what stands in it.
pub(crate) type Column = (&'static str, Cell);

/// What identifies a row: what stands under the columns of [`Table::key`].
pub(crate) type Key = Vec<Part>;

/// A row, or a part of one. The order of the variants is the order of writing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Row {
    Run(RunRecord),
    TaskAdded(TaskAdded),
    TaskTaken(TaskTaken),
    TaskMoved(TaskMoved),
    Loop(LoopRecord),
    Review(ReviewRecord),
    Issue(IssueRecord),
    Finding(FindingRecord),
    Question(QuestionRecord),
}

/// How a row meets what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    /// Takes the place of the row with its key.
    Put,
    /// The first one stays.
    Insert,
    /// Changes some columns of a row; where there is none, nothing.
    Update,
}

impl Row {
    /// Its place in the order of writing.
    pub fn rank(&self) -> u8 {
        match self {
            Self::Run(_) => 0,
            Self::TaskAdded(_) => 1,
            Self::TaskTaken(_) => 2,
            Self::TaskMoved(_) => 3,
            Self::Loop(_) => 4,
            Self::Review(_) => 5,
            Self::Issue(_) => 6,
            Self::Finding(_) => 7,
            Self::Question(_) => 8,
        }
    }

    pub fn table(&self) -> Table {
        match self {
            Self::Run(_) => Table::Runs,
            Self::TaskAdded(_) | Self::TaskTaken(_) | Self::TaskMoved(_) => Table::Tasks,
            Self::Loop(_) => Table::Loops,
            Self::Review(_) => Table::LoopReviews,
            Self::Issue(_) => Table::ReviewIssues,
            Self::Finding(_) => Table::Findings,
            Self::Question(_) => Table::Questions,
        }
    }

    pub fn write(&self) -> Write {
        match self {
            Self::TaskAdded(_) => Write::Insert,
            Self::TaskTaken(_) | Self::TaskMoved(_) => Write::Update,
            Self::Run(_)
            | Self::Loop(_)
            | Self::Review(_)
            | Self::Issue(_)
            | Self::Finding(_)
            | Self::Question(_) => Write::Put,
        }
    }

    pub fn key(&self) -> Key {
        match self {
            Self::Run(run) => vec![run.id.0.into()],
            Self::TaskAdded(TaskAdded { id, .. })
            | Self::TaskTaken(TaskTaken { id, .. })
            | Self::TaskMoved(TaskMoved { id, .. }) => vec![id.0.into()],
            Self::Loop(row) => vec![row.run.0.into(), row.id.as_str().into()],
            Self::Review(row) => vec![row.id.as_str().into()],
            Self::Issue(row) => vec![row.id.as_str().into()],
            Self::Finding(row) => {
                vec![row.id.as_str().into(), row.run.0.into(), row.loop_id.as_str().into()]
            }
            Self::Question(row) => vec![row.id.into()],
        }
    }

    /// All columns but those of the key.
    pub fn columns(&self) -> Vec<Column> {
        match self {
            Self::Run(row) => row.columns(),
            Self::TaskAdded(row) => row.columns(),
            Self::TaskTaken(row) => row.columns(),
            Self::TaskMoved(row) => row.columns(),
            Self::Loop(row) => row.columns(),
            Self::Review(row) => row.columns(),
            Self::Issue(row) => row.columns(),
            Self::Finding(row) => row.columns(),
            Self::Question(row) => row.columns(),
        }
    }
}
