//! What the model is told to say: rules, the first that fits is followed turn by turn.
//!
//! As a file a script is JSON or TOML:
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

use super::fault::{Fault, Refusal};
use super::pattern::Pattern;
use super::usage::Usage;

/// Rules for all clients of one model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// Names that a list of models has.
    pub models: Vec<String>,
    /// Further placeholders: the first group of the first match in what the client sent.
    pub find: BTreeMap<String, Pattern>,
    pub rules: Vec<Rule>,
    /// What is said where no rule fits, and to side requests.
    #[serde(rename = "default")]
    pub otherwise: Turn,
}

/// When something is said, and what.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub name: String,
    #[serde(default)]
    pub when: When,
    /// The n-th answers a request with n answers since the message that the rule fits. The last repeats.
    pub turns: Vec<Turn>,
}

/// What a request must be like. What is not said does not matter.
///
/// The newest message that a rule asks for words of decides, so that a resumed session goes on with its last prompt.
/// Rules that ask for no words come after all others, and count their turns from the beginning of the conversation.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// Words in a message of the user.
    pub prompt: Option<String>,
    /// A pattern in the same message; its named groups are placeholders.
    pub pattern: Option<Pattern>,
    /// Words in what the client tells the model about itself.
    pub system: Option<String>,
    pub model: Option<String>,
    /// Whether requests that declare no tools count. Clients send such on the side, about the same prompt: for a title,
    /// say.
    pub toolless: bool,
}

/// One reply. In texts, paths and arguments `{cwd}` (the client's working directory), `{model}`, the named groups of the
/// rule's pattern and what the script finds are replaced.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Turn {
    pub say: String,
    pub calls: Vec<Action>,
    /// Guessed from the lengths of texts if not said.
    pub usage: Option<Usage>,
    pub fault: Option<Fault>,
    /// How often the fault happens before all is well. Always if not said.
    pub times: Option<u32>,
}

/// Something to be done with the client's tools, whatever it calls them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// With the tool for that, as a patch, or by the shell. Some clients want to have read a file that is there.
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
    /// A tool of an MCP server, by the server's own name for it. Deferred ones are looked for first.
    Mcp {
        tool: String,
        #[serde(default)]
        args: Value,
    },
    /// A tool by the client's own name for it.
    Exact {
        name: String,
        #[serde(default)]
        args: Value,
    },
    /// The same, declared or not: a model that asks for what it must not have.
    Insist {
        name: String,
        #[serde(default)]
        args: Value,
    },
}

impl Default for Script {
    fn default() -> Self {
        Self {
            models: vec!["scripted".to_owned()],
            find: BTreeMap::new(),
            rules: Vec::new(),
            otherwise: Turn::say("OK."),
        }
    }
}

impl Script {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule behind those that are there.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Makes `{name}` the first group of the pattern's first match in what the client sent.
    ///
    /// # Panics
    /// If the pattern is none.
    #[must_use]
    pub fn find(mut self, name: &str, pattern: &str) -> Self {
        self.find.insert(name.to_owned(), Pattern::new(pattern));
        self
    }

    /// What is said where no rule fits.
    #[must_use]
    pub fn otherwise(mut self, turn: Turn) -> Self {
        self.otherwise = turn;
        self
    }
}

/// Conditions, then turns, each in the order they are named.
impl Rule {
    /// For every request that declares tools.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), when: When::default(), turns: Vec::new() }
    }

    /// Only if the prompt has these words.
    #[must_use]
    pub fn asked_for(mut self, words: &str) -> Self {
        self.when.prompt = Some(words.to_owned());
        self
    }

    /// Only if the prompt matches; named groups are placeholders.
    ///
    /// # Panics
    /// If the pattern is none.
    #[must_use]
    pub fn matching(mut self, pattern: &str) -> Self {
        self.when.pattern = Some(Pattern::new(pattern));
        self
    }

    /// Only if the system prompt has these words.
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

    /// Also for requests that declare no tools.
    #[must_use]
    pub fn toolless(mut self) -> Self {
        self.when.toolless = true;
        self
    }

    #[must_use]
    pub fn turn(mut self, turn: Turn) -> Self {
        self.turns.push(turn);
        self
    }

    /// A turn that is this text.
    #[must_use]
    pub fn say(self, text: &str) -> Self {
        self.turn(Turn::say(text))
    }
}

impl Turn {
    /// A turn that begins with this text.
    pub fn say(text: &str) -> Self {
        Self { say: text.to_owned(), ..Self::default() }
    }

    /// A turn without a text.
    pub fn silent() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn call(mut self, action: Action) -> Self {
        self.calls.push(action);
        self
    }

    #[must_use]
    pub fn write(self, path: &str, content: &str) -> Self {
        self.call(Action::Write { path: path.to_owned(), content: content.to_owned() })
    }

    #[must_use]
    pub fn read(self, path: &str) -> Self {
        self.call(Action::Read { path: path.to_owned() })
    }

    #[must_use]
    pub fn shell(self, command: &str) -> Self {
        self.call(Action::Shell { command: command.to_owned() })
    }

    #[must_use]
    pub fn mcp(self, tool: &str, args: Value) -> Self {
        self.call(Action::Mcp { tool: tool.to_owned(), args })
    }

    #[must_use]
    pub fn exact(self, name: &str, args: Value) -> Self {
        self.call(Action::Exact { name: name.to_owned(), args })
    }

    #[must_use]
    pub fn insist(self, name: &str, args: Value) -> Self {
        self.call(Action::Insist { name: name.to_owned(), args })
    }

    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Refuses with this status.
    #[must_use]
    pub fn refuse(self, status: u16) -> Self {
        self.fault(Fault::Status(Refusal::new(status)))
    }

    /// Refuses as one does who is asked too often.
    #[must_use]
    pub fn limit(self, retry_after: u64) -> Self {
        self.fault(Fault::Status(Refusal { retry_after: Some(retry_after), ..Refusal::new(429) }))
    }

    /// The fault happens so often, then all is well.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }
}
