//! The rows of the tables, as values that any back end can write.
//!
//! This module and `crate::projection` define the contents of rows; a back end only stores cells.

mod cell;
mod question;
mod read;
mod review;
mod run;
mod task;

pub(crate) use cell::{Cell, KeyPart};
pub(crate) use question::QuestionRecord;
pub(crate) use read::{CellReader, FINDING_COLUMNS, QUESTION_COLUMNS, RUN_COLUMNS};
pub(crate) use review::{FindingRecord, IssueRecord, ReviewRecord};
pub(crate) use run::{LoopRecord, RunRecord};
pub(crate) use task::{TASK_COLUMNS, TaskAdded, TaskAssigned, TaskProgress};

/// The tables that are projected from the log, in the order in which their rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TableName {
    Runs,
    Tasks,
    Loops,
    LoopReviews,
    ReviewIssues,
    Findings,
    Questions,
}

impl TableName {
    pub const ALL: [Self; 7] =
        [Self::Runs, Self::Tasks, Self::Loops, Self::LoopReviews, Self::ReviewIssues, Self::Findings, Self::Questions];

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

/// A column name and its value.
pub(crate) type Column = (&'static str, Cell);

/// The values of a row's key columns.
pub(crate) type TableKey = Vec<KeyPart>;

/// A row, or some columns of one. Rows are written in the order of the variants.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TableRow {
    Run(RunRecord),
    TaskAdded(TaskAdded),
    TaskAssigned(TaskAssigned),
    TaskProgress(TaskProgress),
    Loop(LoopRecord),
    Review(ReviewRecord),
    Issue(IssueRecord),
    Finding(FindingRecord),
    Question(QuestionRecord),
}

/// How to write a row if one with its key exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowWrite {
    /// Replaces the existing row.
    Put,
    /// Keeps the existing row.
    Insert,
    /// Updates some columns of an existing row; does nothing if there is none.
    Update,
}

impl TableRow {
    /// The position in the write order.
    pub fn write_order(&self) -> u8 {
        match self {
            Self::Run(_) => 0,
            Self::TaskAdded(_) => 1,
            Self::TaskAssigned(_) => 2,
            Self::TaskProgress(_) => 3,
            Self::Loop(_) => 4,
            Self::Review(_) => 5,
            Self::Issue(_) => 6,
            Self::Finding(_) => 7,
            Self::Question(_) => 8,
        }
    }

    pub fn table(&self) -> TableName {
        match self {
            Self::Run(_) => TableName::Runs,
            Self::TaskAdded(_) | Self::TaskAssigned(_) | Self::TaskProgress(_) => TableName::Tasks,
            Self::Loop(_) => TableName::Loops,
            Self::Review(_) => TableName::LoopReviews,
            Self::Issue(_) => TableName::ReviewIssues,
            Self::Finding(_) => TableName::Findings,
            Self::Question(_) => TableName::Questions,
        }
    }

    pub fn write_mode(&self) -> RowWrite {
        match self {
            Self::TaskAdded(_) => RowWrite::Insert,
            Self::TaskAssigned(_) | Self::TaskProgress(_) => RowWrite::Update,
            Self::Run(_) | Self::Loop(_) | Self::Review(_) | Self::Issue(_) | Self::Finding(_) | Self::Question(_) => {
                RowWrite::Put
            }
        }
    }

    pub fn key(&self) -> TableKey {
        match self {
            Self::Run(run) => vec![run.id.0.into()],
            Self::TaskAdded(TaskAdded { id, .. })
            | Self::TaskAssigned(TaskAssigned { id, .. })
            | Self::TaskProgress(TaskProgress { id, .. }) => vec![id.0.into()],
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
            Self::TaskAssigned(row) => row.columns(),
            Self::TaskProgress(row) => row.columns(),
            Self::Loop(row) => row.columns(),
            Self::Review(row) => row.columns(),
            Self::Issue(row) => row.columns(),
            Self::Finding(row) => row.columns(),
            Self::Question(row) => row.columns(),
        }
    }
}
