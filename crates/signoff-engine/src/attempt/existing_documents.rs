//! Finds the documents that another program left on a branch.

use signoff_core::ids::Commit;
use signoff_core::source::planner::PlannedTask;
use signoff_core::task::slug;

use super::document::{DIRECTORY, MOST_BYTES, TaskDocument};
use super::plan_items;
use crate::error::EngineError;
use crate::git::{CommittedFile, Repository};

/// The design and the plan of an imported task, and the items of that plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExistingDocuments {
    pub design: Option<String>,
    pub plan: Option<String>,
    pub items: Vec<PlannedTask>,
    /// Why the plan is implemented as a whole although it has items.
    pub note: Option<String>,
}

/// Finds the documents of a task with this title at a commit.
pub fn find_documents(repository: &Repository, commit: &Commit, title: &str) -> Result<ExistingDocuments, EngineError> {
    let directory = DIRECTORY.join("/");
    let names = repository.file_names(commit, &directory)?;
    let pick = |kind: TaskDocument| -> Result<Option<String>, EngineError> {
        let end = format!("-{}.md", kind.name());
        let all: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(&end)).collect();
        let own = all.iter().copied().filter(|name| matches_title(name, title)).collect::<Vec<_>>();
        let paths = |names: &[&str]| names.iter().map(|name| format!("{directory}/{name}{end}")).collect();
        let likely: Vec<String> = paths(if own.is_empty() { &all } else { &own });
        match likely.len() {
            0 | 1 => Ok(likely.into_iter().next()),
            _ => Ok(repository.last_changed(commit, &directory, &likely)?),
        }
    };
    let (design, plan) = (pick(TaskDocument::Design)?, pick(TaskDocument::Plan)?);
    let text = match &plan {
        Some(path) => repository.file_at(commit, path, MOST_BYTES)?,
        None => None,
    };
    let read = match (&plan, text) {
        (Some(path), Some(CommittedFile::Content(text))) => plan_items::read(path, &text),
        (_, _) => Ok(Vec::new()),
    };
    let (items, note) = match read {
        Ok(items) => (items, None),
        Err(message) => (Vec::new(), Some(message)),
    };
    Ok(ExistingDocuments { design, plan, items, note })
}

/// Whether `task-12-add-login` is the name of a task with this title and any number.
fn matches_title(name: &str, title: &str) -> bool {
    let numbered = name.strip_prefix("task-").unwrap_or(name);
    let rest = numbered.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.trim_start_matches('-') == slug(title)
}
