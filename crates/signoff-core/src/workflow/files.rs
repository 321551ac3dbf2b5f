//! Workflow files: those of people and those that are shipped.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::Workflow;
use super::keys::{ReviewerKeys, WorkflowTable};
use super::resolve::{self, Reviewers, WorkflowSource};
use crate::settings::tree::{ConfigNode, TomlSource};
use crate::settings::{ConfigError, SettingOrigin};

/// The presets by name, in the order of the documentation.
pub const PRESETS: [&str; 5] = ["task", "slots", "plan", "loops", "phases"];

static SHIPPED: LazyLock<BTreeMap<&str, Workflow>> = LazyLock::new(|| {
    let files = [
        include_str!("presets/task.toml"),
        include_str!("presets/slots.toml"),
        include_str!("presets/plan.toml"),
        include_str!("presets/loops.toml"),
        include_str!("presets/phases.toml"),
    ];
    PRESETS.into_iter().zip(files).filter_map(|(name, text)| Some((name, shipped(text)?))).collect()
});

/// A preset by name.
pub fn preset(name: &str) -> Option<Workflow> {
    SHIPPED.get(name).cloned()
}

/// The workflow of a new project: the task workflow with two reviewers and convergence guarded.
pub fn new_project() -> Option<Workflow> {
    shipped(include_str!("presets/new_project.toml"))
}

/// The tests read every shipped file.
fn shipped(text: &str) -> Option<Workflow> {
    parse("preset.toml", text).ok().and_then(|mut workflows| workflows.pop())
}

/// An error in a workflow file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct WorkflowError {
    pub file: String,
    /// Counted from one.
    pub line: usize,
    pub message: String,
}

/// Reads a workflow file: one workflow, or each `[workflows.NAME]` of a `signoff.toml`.
pub fn parse(file: &str, text: &str) -> Result<Vec<Workflow>, WorkflowError> {
    let origin = |line| SettingOrigin::Repository { file: file.to_owned(), line };
    let read = TomlSource { text, origin: &origin }.parse().and_then(|root| workflows(&root));
    read.map_err(|error| {
        let line = if let ConfigError::File { line, .. } = &error { *line } else { 1 };
        WorkflowError { file: file.to_owned(), line, message: error.message() }
    })
}

fn workflows(root: &ConfigNode) -> Result<Vec<Workflow>, ConfigError> {
    let Some(tables) = root.get(&["workflows"]) else {
        let keys: WorkflowTable = root.read()?;
        let name = keys.name.as_deref().unwrap_or("unnamed");
        let source = WorkflowSource { name, keys: &keys, node: root };
        return Ok(vec![resolve::workflow(source, &Reviewers::new())?]);
    };
    root.read_key::<BTreeMap<String, WorkflowTable>>("workflows")?;
    let mut shared = Reviewers::new();
    for (name, table) in root.get(&["reviewers"]).map(ConfigNode::entries).unwrap_or_default() {
        let reviewer = ReviewerKeys { kind: table.read_key("kind")?, contract: table.read_key("contract")? };
        shared.insert(name.into(), resolve::own_reviewer(name, &reviewer, table)?);
    }
    let one = |(name, node): (&str, &ConfigNode)| {
        let keys = node.read()?;
        resolve::workflow(WorkflowSource { name, keys: &keys, node }, &shared)
    };
    tables.entries().into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_readable_and_carries_its_name() {
        for name in PRESETS {
            assert_eq!(preset(name).map(|workflow| workflow.name).as_deref(), Some(name));
        }
        assert!(new_project().is_some());
    }
}
