//! The documents that another program left on a branch.

use signoff_core::ids::Commit;
use signoff_core::source::planner::PlannedTask;
use signoff_core::task::slug;

use super::document::{DIRECTORY, Kind, MOST_BYTES};
use super::items;
use crate::error::EngineError;
use crate::git::{FileAt, Repository};

/// The design and the plan of a task that is taken over, and the tasks of that plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    pub design: Option<String>,
    pub plan: Option<String>,
    pub items: Vec<PlannedTask>,
    /// Why the plan is worked as a whole although it has tasks.
    pub note: Option<String>,
}

/// Looks for the documents of a task with this title, as a commit has them.
pub fn found(repository: &Repository, commit: &Commit, title: &str) -> Result<Found, EngineError> {
    let directory = DIRECTORY.join("/");
    let names = repository.names_below(commit, &directory)?;
    let pick = |kind: Kind| -> Result<Option<String>, EngineError> {
        let end = format!("-{}.md", kind.word());
        let all: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(&end)).collect();
        let own = all.iter().copied().filter(|name| is_called(name, title)).collect::<Vec<_>>();
        let paths = |names: &[&str]| names.iter().map(|name| format!("{directory}/{name}{end}")).collect();
        let likely: Vec<String> = paths(if own.is_empty() { &all } else { &own });
        match likely.len() {
            0 | 1 => Ok(likely.into_iter().next()),
            _ => Ok(repository.changed_last(commit, &directory, &likely)?),
        }
    };
    let (design, plan) = (pick(Kind::Design)?, pick(Kind::Plan)?);
    let text = match &plan {
        Some(path) => repository.file_at(commit, path, MOST_BYTES)?,
        None => None,
    };
    let read = match (&plan, text) {
        (Some(path), Some(FileAt::Content(text))) => items::read(path, &text),
        (_, _) => Ok(Vec::new()),
    };
    let (items, note) = match read {
        Ok(items) => (items, None),
        Err(message) => (Vec::new(), Some(message)),
    };
    Ok(Found { design, plan, items, note })
}

/// Whether `task-12-add-login` is what a task with this title is called, whatever its number.
fn is_called(name: &str, title: &str) -> bool {
    let numbered = name.strip_prefix("task-").unwrap_or(name);
    let rest = numbered.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.trim_start_matches('-') == slug(title)
}
