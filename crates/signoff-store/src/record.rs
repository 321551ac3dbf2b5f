//! The rows of the tables, as values that any back end can write.
//!
//! `crate::projection` defines the contents of rows; a back end only stores cells.

mod read;

pub use read::{CellReader, FINDING_COLUMNS, QUESTION_COLUMNS, RUN_COLUMNS, TASK_COLUMNS, task_progress};

use jiff::Timestamp;
use strum::VariantArray as _;

/// The tables that are projected from the log, in the order in which their rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr, strum::VariantArray)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum TableName {
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
pub type Column = (&'static str, Cell);

/// The values of a row's key columns.
pub type TableKey = Vec<KeyPart>;

/// A row, or some columns of one.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRow {
    pub table: TableName,
    pub mode: RowWrite,
    pub key: TableKey,
    /// All columns but those of the key.
    pub columns: Vec<Column>,
}

/// How to write a row if one with its key exists. Rows of a table are written in the order of the variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowWrite {
    /// Replaces the existing row.
    Put,
    /// Keeps the existing row.
    Insert,
    /// Updates some columns of an existing row; does nothing if there is none.
    Update,
}

impl TableRow {
    /// A row that replaces the existing one.
    pub fn put(table: TableName, key: TableKey, columns: Vec<Column>) -> Self {
        Self { table, mode: RowWrite::Put, key, columns }
    }

    /// The position in the write order.
    pub fn write_order(&self) -> (TableName, RowWrite) {
        (self.table, self.mode)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
}

/// One column of a key. Numbers sort numerically.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyPart {
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
