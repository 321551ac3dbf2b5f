//! The script of the model: a list of rules, of which the first match is followed turn by turn.
//!
//! A script file is JSON or TOML:
//!
//! ```json
//! {
//!   "find": { "nonce": "nonce is `([^`]+)`" },
//!   "rules": [
//!     {
//!       "name": "implement",
//!       "when": { "prompt": "implement", "pattern": "TASK-(?P<id>\\d+)" },
//!       "turns": [
//!         { "say": "Working on {id}.", "calls": [{ "write": { "path": "a.txt", "content": "hello\n" } }] },
//!         { "say": "Done.", "usage": { "input": 1200, "cached_input": 1000, "output": 80 } }
//!       ]
//!     },
//!     {
//!       "name": "review",
//!       "when": { "prompt": "review" },
//!       "turns": [
//!         { "fault": { "status": { "status": 429, "retry_after": 2 } }, "times": 1,
//!           "calls": [{ "mcp": { "tool": "set_review_result", "args": { "passed": true } } }] },
//!         { "say": "Reported. {nonce}" }
//!       ]
//!     }
//!   ],
//!   "default": { "say": "OK." }
//! }
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::fault::{Fault, ModelError};
use super::pattern::Pattern;
use super::usage::TokenUsage;

/// Rules for all clients of one model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelScript {
    /// The model names that the server lists.
    pub models: Vec<String>,
    /// More placeholders: the first group of the first match in the request.
    pub find: BTreeMap<String, Pattern>,
    pub rules: Vec<ModelRule>,
    /// The reply if no rule matches, and to side requests.
    #[serde(rename = "default")]
    pub otherwise: ModelTurn,
}

/// A condition and the turns to reply with.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRule {
    pub name: String,
    #[serde(default)]
    pub when: ModelCondition,
    /// The n-th turn answers a request with n replies since the message that matched the rule. The last turn repeats.
    pub turns: Vec<ModelTurn>,
}

/// The condition of a rule. Unset fields match everything.
///
/// The newest message that matches a rule's prompt condition decides, so that a resumed session continues with its last
/// prompt. Rules without a prompt condition come last and count their turns from the start of the conversation.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelCondition {
    /// A substring of a user message.
    pub prompt: Option<String>,
    /// A pattern in the same message. Its named groups become placeholders.
    pub pattern: Option<Pattern>,
    /// A substring of the system prompt.
    pub system: Option<String>,
    pub model: Option<String>,
    /// Whether requests without tools match. Clients send such side requests about the same prompt, for example for a
    /// title.
    pub toolless: bool,
}

/// One reply. In texts, paths and arguments `{cwd}` (the client's working directory), `{model}`, the named groups of
/// the rule's pattern and the placeholders of `find` are replaced.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelTurn {
    pub say: String,
    pub calls: Vec<ModelAction>,
    /// Estimated from text lengths if unset.
    pub usage: Option<TokenUsage>,
    pub fault: Option<Fault>,
    /// How often the fault happens before the turn succeeds. Always if unset.
    pub times: Option<u32>,
}

/// An action to perform with the client's tools, independent of their names.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ModelAction {
    /// Uses the write tool, a patch or the shell. Some clients require an existing file to be read first.
    Write {
        path: String,
        content: String,
    },
    Read {
        path: String,
    },
    Shell {
        command: String,
    },
    /// Calls a tool of an MCP server by the server's name for it. Deferred tools are searched first.
    Mcp {
        tool: String,
        #[serde(default)]
        args: Value,
    },
    /// Calls a tool by the client's name for it.
    Exact {
        name: String,
        #[serde(default)]
        args: Value,
    },
    /// Calls a tool by name even if it is not declared, like a model that ignores its limits.
    Insist {
        name: String,
        #[serde(default)]
        args: Value,
    },
}

impl Default for ModelScript {
    fn default() -> Self {
        Self {
            models: vec!["scripted".to_owned()],
            find: BTreeMap::new(),
            rules: Vec::new(),
            otherwise: ModelTurn::say("OK."),
        }
    }
}

impl ModelScript {
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a rule.
    #[must_use]
    pub fn rule(mut self, rule: ModelRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Defines `{name}` as the first group of the pattern's first match in the request.
    ///
    /// # Panics
    /// If the pattern is not a valid regular expression.
    #[must_use]
    pub fn find(mut self, name: &str, pattern: &str) -> Self {
        self.find.insert(name.to_owned(), Pattern::new(pattern));
        self
    }

    /// Sets the reply if no rule matches.
    #[must_use]
    pub fn otherwise(mut self, turn: ModelTurn) -> Self {
        self.otherwise = turn;
        self
    }
}

/// Builder methods: conditions first, then turns in order.
impl ModelRule {
    /// A rule for every request that declares tools.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), when: ModelCondition::default(), turns: Vec::new() }
    }

    /// Matches only if the prompt contains this text.
    #[must_use]
    pub fn prompt_contains(mut self, words: &str) -> Self {
        self.when.prompt = Some(words.to_owned());
        self
    }

    /// Matches only if the prompt matches the pattern. Named groups become placeholders.
    ///
    /// # Panics
    /// If the pattern is not a valid regular expression.
    #[must_use]
    pub fn matching(mut self, pattern: &str) -> Self {
        self.when.pattern = Some(Pattern::new(pattern));
        self
    }

    /// Matches only if the system prompt contains this text.
    #[must_use]
    pub fn system(mut self, words: &str) -> Self {
        self.when.system = Some(words.to_owned());
        self
    }

    #[must_use]
    pub fn model(mut self, name: &str) -> Self {
        self.when.model = Some(name.to_owned());
        self
    }

    /// Also matches requests without tools.
    #[must_use]
    pub fn toolless(mut self) -> Self {
        self.when.toolless = true;
        self
    }

    #[must_use]
    pub fn turn(mut self, turn: ModelTurn) -> Self {
        self.turns.push(turn);
        self
    }

    /// Appends a turn with this text.
    #[must_use]
    pub fn say(self, text: &str) -> Self {
        self.turn(ModelTurn::say(text))
    }
}

impl ModelTurn {
    /// A turn that starts with this text.
    pub fn say(text: &str) -> Self {
        Self { say: text.to_owned(), ..Self::default() }
    }

    /// A turn without text.
    pub fn silent() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn call(mut self, action: ModelAction) -> Self {
        self.calls.push(action);
        self
    }

    #[must_use]
    pub fn write(self, path: &str, content: &str) -> Self {
        self.call(ModelAction::Write { path: path.to_owned(), content: content.to_owned() })
    }

    #[must_use]
    pub fn read(self, path: &str) -> Self {
        self.call(ModelAction::Read { path: path.to_owned() })
    }

    #[must_use]
    pub fn shell(self, command: &str) -> Self {
        self.call(ModelAction::Shell { command: command.to_owned() })
    }

    #[must_use]
    pub fn mcp(self, tool: &str, args: Value) -> Self {
        self.call(ModelAction::Mcp { tool: tool.to_owned(), args })
    }

    #[must_use]
    pub fn exact(self, name: &str, args: Value) -> Self {
        self.call(ModelAction::Exact { name: name.to_owned(), args })
    }

    #[must_use]
    pub fn insist(self, name: &str, args: Value) -> Self {
        self.call(ModelAction::Insist { name: name.to_owned(), args })
    }

    #[must_use]
    pub fn usage(mut self, usage: TokenUsage) -> Self {
        self.usage = Some(usage);
        self
    }

    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Fails with this HTTP status.
    #[must_use]
    pub fn fail(self, status: u16) -> Self {
        self.fault(Fault::Status(ModelError::new(status)))
    }

    /// Fails with a rate limit error.
    #[must_use]
    pub fn rate_limit(self, retry_after: u64) -> Self {
        self.fault(Fault::Status(ModelError { retry_after: Some(retry_after), ..ModelError::new(429) }))
    }

    /// Limits how often the fault happens.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }
}
