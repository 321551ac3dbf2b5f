//! A temporary directory with a database, and direct SQL access to it.

use std::path::PathBuf;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use signoff_store::SqliteStore;
use tempfile::TempDir;

pub struct StoreFixture {
    dir: TempDir,
}

impl StoreFixture {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a directory") }
    }

    pub fn dir(&self) -> PathBuf {
        self.dir.path().join(".signoff")
    }

    pub fn file(&self) -> PathBuf {
        self.dir().join("signoff.db")
    }

    pub fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.dir()).expect("a store")
    }

    pub fn sql(&self) -> Connection {
        Connection::open(self.file()).expect("a database")
    }

    /// Returns the rows of a query, one per line.
    pub fn query(&self, sql: &str) -> String {
        let connection = self.sql();
        let mut statement = connection.prepare(sql).expect(sql);
        let columns = statement.column_count();
        let read = |row: &rusqlite::Row<'_>| {
            let cells = (0..columns).map(|index| match row.get_ref(index).expect("a cell") {
                ValueRef::Null => "-".to_owned(),
                ValueRef::Integer(number) => number.to_string(),
                ValueRef::Real(number) => format!("{number:.2}"),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            });
            Ok(cells.collect::<Vec<_>>().join(" | "))
        };
        let rows = statement.query_map([], read).expect("rows");
        rows.map(|row| row.expect("a row")).collect::<Vec<_>>().join("\n")
    }

    /// Dumps all tables that are rebuilt from the log.
    pub fn dump(&self) -> String {
        let tables = ["runs", "tasks", "loops", "loop_reviews", "review_issues", "findings", "questions"];
        let dump = tables.map(|table| format!("{table}\n{}", self.query(&format!("SELECT * FROM {table}"))));
        dump.join("\n\n")
    }
}
