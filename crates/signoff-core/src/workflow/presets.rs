//! The workflows that are shipped, read from the same words people write.

use super::{Workflow, parse};

/// The presets by name, in the order people meet them.
pub const PRESETS: [&str; 5] = ["task", "slots", "plan", "loops", "phases"];

/// A preset by name.
pub fn preset(name: &str) -> Option<Workflow> {
    let text = match name {
        "task" => include_str!("presets/task.toml"),
        "slots" => include_str!("presets/slots.toml"),
        "plan" => include_str!("presets/plan.toml"),
        "loops" => include_str!("presets/loops.toml"),
        "phases" => include_str!("presets/phases.toml"),
        _ => return None,
    };
    shipped(text)
}

/// What a new project starts with: the task workflow with two reviewers and convergence guarded.
pub fn new_project() -> Option<Workflow> {
    shipped(include_str!("presets/new_project.toml"))
}

/// A shipped file that cannot be read is caught by the tests below, not by a user.
fn shipped(text: &str) -> Option<Workflow> {
    parse("preset.toml", text).ok().and_then(|mut workflows| workflows.pop())
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
