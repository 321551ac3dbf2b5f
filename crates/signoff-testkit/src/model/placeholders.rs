//! What scripts leave open and requests tell.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::pattern::Pattern;
use super::request::Request;
use super::script::{Action, Turn};

/// Placeholders by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(pub BTreeMap<String, String>);

impl Names {
    pub fn fill_turn(&self, turn: Turn) -> Turn {
        let calls = turn.calls.into_iter().map(|action| self.fill_action(action)).collect();
        Turn { say: self.fill(&turn.say), calls, ..turn }
    }

    fn fill_action(&self, action: Action) -> Action {
        match action {
            Action::Write { path, content } => {
                Action::Write { path: self.fill(&path), content: self.fill(&content) }
            }
            Action::Read { path } => Action::Read { path: self.fill(&path) },
            Action::Shell { command } => Action::Shell { command: self.fill(&command) },
            Action::Mcp { tool, args } => Action::Mcp { tool, args: self.fill_value(args) },
            Action::Exact { name, args } => Action::Exact { name, args: self.fill_value(args) },
            Action::Insist { name, args } => Action::Insist { name, args: self.fill_value(args) },
        }
    }

    /// Braces around anything else stay as they are.
    fn fill(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    }

    fn fill_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(&text)),
            Value::Array(each) => each.into_iter().map(|value| self.fill_value(value)).collect(),
            Value::Object(members) => {
                members.into_iter().map(|(name, value)| (name, self.fill_value(value))).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }
}

/// The words that clients tell their working directory with.
static WORDS: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"(?i)(?:<cwd>|working directory(?: is)?:? *`?|working in the directory: *|workspace directories:\**\s*- )(/[^\n<`]*)",
    )
});

/// Where the client works, if it says so.
pub(super) fn working_directory(request: &Request) -> Option<String> {
    let found = request.texts().find_map(|text| WORDS.first(text))?;
    Some(found.trim_end().to_owned())
}
