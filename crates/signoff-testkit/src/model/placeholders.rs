//! Placeholders in scripts, filled from the request.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::pattern::Pattern;
use super::request::ModelRequest;
use super::script::{ModelAction, ModelTurn};

/// Placeholders by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Placeholders(pub BTreeMap<String, String>);

impl Placeholders {
    pub fn fill_turn(&self, turn: ModelTurn) -> ModelTurn {
        let calls = turn.calls.into_iter().map(|action| self.fill_action(action)).collect();
        ModelTurn { say: self.fill(&turn.say), calls, ..turn }
    }

    fn fill_action(&self, action: ModelAction) -> ModelAction {
        match action {
            ModelAction::Write { path, content } => {
                ModelAction::Write { path: self.fill(&path), content: self.fill(&content) }
            }
            ModelAction::Read { path } => ModelAction::Read { path: self.fill(&path) },
            ModelAction::Shell { command } => ModelAction::Shell { command: self.fill(&command) },
            ModelAction::Mcp { tool, args } => ModelAction::Mcp { tool, args: self.fill_value(args) },
            ModelAction::Exact { name, args } => ModelAction::Exact { name, args: self.fill_value(args) },
            ModelAction::Insist { name, args } => ModelAction::Insist { name, args: self.fill_value(args) },
        }
    }

    /// Unknown placeholders stay unchanged.
    fn fill(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    }

    fn fill_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(&text)),
            Value::Array(each) => each.into_iter().map(|value| self.fill_value(value)).collect(),
            Value::Object(members) => members.into_iter().map(|(name, value)| (name, self.fill_value(value))).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }
}

/// How clients announce their working directory.
static WORKING_DIRECTORY: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"(?i)(?:<cwd>|working directory(?: is)?:? *`?|working in the directory: *|workspace directories:\**\s*- )(/[^\n<`]*)",
    )
});

/// The client's working directory, if the request names it.
pub(super) fn working_directory(request: &ModelRequest) -> Option<String> {
    let found = request.texts().find_map(|text| WORKING_DIRECTORY.first(text))?;
    Some(found.trim_end().to_owned())
}
