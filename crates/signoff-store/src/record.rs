//! The rows of the tables, as values that any back end can write.
//!
//! This module and `crate::projection` define the contents of rows; a back end only stores cells.

mod read;
mod review;
mod run;
mod task;

pub(crate) use read::{CellReader, FINDING_COLUMNS, QUESTION_COLUMNS, RUN_COLUMNS};
pub(crate) use review::{FindingRecord, IssueRecord, ReviewRecord};
pub(crate) use run::{LoopRecord, QuestionRecord, RunRecord};
pub(crate) use task::{TASK_COLUMNS, TaskAdded, TaskAssigned, TaskProgress};

use jiff::Timestamp;
use strum::VariantArray as _;

/// The tables that are projected from the log, in the order in which their rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
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
    pub const ALL: &[Self] = Self::VARIANTS;

    pub fn name(self) -> &'static str {
        self.into()
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

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
}

/// One column of a key. Numbers sort numerically.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeyPart {
    Number(u64),
    Text(String),
}

impl From<u64> for KeyPart {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for KeyPart {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<KeyPart> for Cell {
    fn from(part: KeyPart) -> Self {
        match part {
            KeyPart::Number(number) => number.into(),
            KeyPart::Text(text) => Self::Text(text),
        }
    }
}

impl From<u64> for Cell {
    /// SQLite integers are signed; larger values do not occur.
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<bool> for Cell {
    fn from(truth: bool) -> Self {
        Self::Integer(truth.into())
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Timestamp> for Cell {
    fn from(at: Timestamp) -> Self {
        Self::Text(at.to_string())
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
