//! Queries on the tables of the store.

use rusqlite::types::Value;
use signoff_testkit::TestProject;

/// The rows of a query, one per line, with a bar between the cells.
pub fn query(project: &TestProject, sql: &str) -> String {
    let database = rusqlite::Connection::open(project.env.work().join(".signoff/signoff.db")).expect("a database");
    let mut statement = database.prepare(sql).expect("a query");
    let columns = statement.column_count();
    let cell = |value: Value| match value {
        Value::Null => String::new(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text,
        Value::Blob(_) => "(blob)".to_owned(),
    };
    let rows = statement
        .query_map([], |row| (0..columns).map(|column| row.get(column).map(cell)).collect::<Result<Vec<_>, _>>())
        .expect("rows");
    rows.map(|row| row.expect("a row").join("|")).collect::<Vec<_>>().join("\n")
}
