//! Adds many tasks to the queue of a repository, for `bench/cost.sh`: `fill DIRECTORY COUNT`.

use std::error::Error;
use std::path::Path;

use jiff::Timestamp;
use signoff_core::task::TaskSpec;
use signoff_store::{NewTask, SqliteStore, Store};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, directory, count] = arguments.as_slice() else { return Err("fill DIRECTORY COUNT".into()) };
    let task = |number: usize| {
        let spec = TaskSpec { auto_review: Some(true), ..TaskSpec::from_text(&format!("Task {number} of many")) };
        NewTask { spec, auto_review: true, max_review_cycles: Some(3) }
    };
    let tasks: Vec<NewTask> = (1..=count.parse()?).map(task).collect();
    SqliteStore::open(Path::new(directory))?.add_tasks(Timestamp::UNIX_EPOCH, &tasks)?;
    Ok(())
}
