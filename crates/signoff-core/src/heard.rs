//! What agents say of themselves, whatever their kind: while they work, and all in all.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What one line of an agent says, for those who watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Text(String),
    /// It uses a tool: which, and what for in a few words.
    Tool {
        name: String,
        about: String,
    },
    /// A tool that it was not allowed to use.
    Denied(Denied),
    /// Its provider makes it wait.
    Waits {
        why: String,
        delay: Option<Duration>,
    },
    /// It says what it calls an error; it may go on.
    Error(String),
}

/// A tool that an agent tried to use and was not allowed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    pub tool: String,
    /// What it wanted with it, in a few words.
    #[serde(default)]
    pub about: String,
}

/// Tokens as providers count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// All that was read.
    pub input: u64,
    /// Of these, what came out of a cache.
    pub cached: u64,
    /// Of these, what was put into a cache.
    pub written: u64,
    pub output: u64,
}

/// What one model was used for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// As the agent calls it, where it says so.
    pub model: Option<String>,
    pub tokens: Tokens,
    /// In millionths of a dollar, where the agent says it.
    pub cost_micro_usd: Option<u64>,
}

/// What an agent's output came to, all in all. Its final message is kept apart.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Heard {
    /// Under which name it can go on where it ended.
    pub session: Option<String>,
    pub spent: Vec<Spent>,
    /// Why it ended badly, in its own words. Without one it ended well, whatever its exit code.
    pub trouble: Option<Trouble>,
    pub denied: Vec<Denied>,
    /// Whether it found the server that it was to report to; unknown where it does not say.
    pub found_reports: Option<bool>,
    /// The beginning of a line after its last tool use that may be a part of its answer and could not be read.
    pub unreadable: Option<String>,
}

/// Why an agent ended badly.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Trouble {
    pub kind: TroubleKind,
    /// The agent's own words.
    pub message: String,
}

/// What can be done about it differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TroubleKind {
    /// Its provider wants it to wait, so long if it said so.
    Limited {
        seconds: Option<u64>,
    },
    /// Its provider has no room for anybody now.
    Overloaded,
    NotLoggedIn,
    /// The model is not known, or not open to it.
    Model,
    /// The account has no money, or its quota is used up.
    Money,
    /// The prompt is longer than the model can read.
    TooLong,
    /// A bound of its own on turns or money.
    Bound,
    /// The answer of its provider broke off or made no sense.
    Broken,
    /// It does not know the session that it was to go on with.
    Session,
    /// It could not reach the server that it was to report to.
    Reports,
    /// It does not know a word of its command line: another version than this program knows.
    Version,
    /// It does not speak the protocol that it is spoken to in.
    Protocol,
    /// It ended without saying how.
    NoEnd,
    Other,
}

/// Nobody reads more of an agent's words about its own end.
const LONGEST_WORDS: usize = 600;

impl Trouble {
    pub fn new(kind: TroubleKind, message: impl AsRef<str>) -> Self {
        let message = message.as_ref().trim();
        let message = match message.char_indices().nth(LONGEST_WORDS) {
            Some((end, _)) => format!("{}…", &message[..end]),
            None => message.to_owned(),
        };
        Self { kind, message }
    }

    /// How long to wait before asking again, where waiting is what helps.
    pub fn wait(&self) -> Option<Option<Duration>> {
        match self.kind {
            TroubleKind::Limited { seconds } => Some(seconds.map(Duration::from_secs)),
            TroubleKind::Overloaded => Some(None),
            TroubleKind::NotLoggedIn
            | TroubleKind::Model
            | TroubleKind::Money
            | TroubleKind::TooLong
            | TroubleKind::Bound
            | TroubleKind::Broken
            | TroubleKind::Session
            | TroubleKind::Reports
            | TroubleKind::Version
            | TroubleKind::Protocol
            | TroubleKind::NoEnd
            | TroubleKind::Other => None,
        }
    }

    /// What a person can do about it, `agent` being its name in the configuration.
    pub fn hint(&self, agent: &str) -> Option<String> {
        match self.kind {
            TroubleKind::NotLoggedIn => Some(format!(
                "log in with the agent itself, or give it its key; then `signoff agents --check {agent}`"
            )),
            TroubleKind::Model => Some(format!("`[agents.{agent}] model` names the model")),
            TroubleKind::Money => Some("see to the account, or let `fallback` name another agent".to_owned()),
            TroubleKind::TooLong => Some("make the task smaller".to_owned()),
            TroubleKind::Version => {
                Some(format!("update the agent; `signoff agents` shows what is here of {agent}"))
            }
            TroubleKind::Reports => Some(
                "the agent must reach 127.0.0.1; with `contract = \"markdown\"` it needs no server"
                    .to_owned(),
            ),
            TroubleKind::Protocol => Some(format!(
                "`[agents.{agent}] command` names the program, with the words by which it speaks the protocol"
            )),
            TroubleKind::Bound => Some(format!(
                "raise it where it is set: `[agents.{agent}] args` and `env`, or the agent's own settings"
            )),
            TroubleKind::Broken | TroubleKind::Other if self.is_unreached() => Some(
                "look at the network, at the variables of a proxy, and at the address of its provider"
                    .to_owned(),
            ),
            TroubleKind::Broken => {
                Some("try it again; if it stays so, look at what its provider says of itself".to_owned())
            }
            TroubleKind::NoEnd | TroubleKind::Other => {
                Some(format!("`signoff agents --check {agent}` tries it by itself"))
            }
            TroubleKind::Limited { .. } | TroubleKind::Overloaded | TroubleKind::Session => None,
        }
    }

    /// The same where it is being tried by itself: `program` is what a person would start by hand.
    pub fn hint_in_trial(&self, agent: &str, program: &str) -> Option<String> {
        match self.kind {
            TroubleKind::NoEnd | TroubleKind::Other if !self.is_unreached() => Some(by_hand(program)),
            TroubleKind::NoEnd
            | TroubleKind::Other
            | TroubleKind::Limited { .. }
            | TroubleKind::Overloaded
            | TroubleKind::NotLoggedIn
            | TroubleKind::Model
            | TroubleKind::Money
            | TroubleKind::TooLong
            | TroubleKind::Bound
            | TroubleKind::Broken
            | TroubleKind::Session
            | TroubleKind::Reports
            | TroubleKind::Version
            | TroubleKind::Protocol => self.hint(agent),
        }
    }

    /// Whether it never came so far as to ask its provider, by its own words.
    fn is_unreached(&self) -> bool {
        const WORDS: [&str; 15] = [
            "connection refused",
            "connectionrefused",
            "econnrefused",
            "enotfound",
            "eai_again",
            "ehostunreach",
            "enetunreach",
            "etimedout",
            "getaddrinfo",
            "dns error",
            "name resolution",
            "could not resolve",
            "unable to connect",
            "could not connect",
            "error trying to connect",
        ];
        let said = self.message.to_lowercase();
        WORDS.iter().any(|word| said.contains(word))
    }
}

/// What is left where nothing is known of what went wrong.
pub fn by_hand(program: &str) -> String {
    format!("start `{program}` by hand and ask it for a word, or look into its own log")
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            TroubleKind::Limited { .. } => "rate limited",
            TroubleKind::Overloaded => "its provider is overloaded",
            TroubleKind::NotLoggedIn => "not logged in",
            TroubleKind::Model => "the model cannot be used",
            TroubleKind::Money => "no money left",
            TroubleKind::TooLong => "the prompt is too long for the model",
            TroubleKind::Bound => "a bound of its own was reached",
            TroubleKind::Broken | TroubleKind::Other if self.is_unreached() => {
                "its provider could not be reached"
            }
            TroubleKind::Broken => "the answer of its provider broke off",
            TroubleKind::Session => "it does not know its session any more",
            TroubleKind::Reports => "it could not reach the server for reports",
            TroubleKind::Version => "it does not understand its command line",
            TroubleKind::Protocol => "it does not speak the Agent Client Protocol",
            TroubleKind::NoEnd => "it ended without saying how",
            TroubleKind::Other => "it ended with an error",
        };
        if self.message.is_empty() { f.write_str(what) } else { write!(f, "{what}: {}", self.message) }
    }
}

impl Tokens {
    pub fn and(self, more: Self) -> Self {
        Self {
            input: self.input.saturating_add(more.input),
            cached: self.cached.saturating_add(more.cached),
            written: self.written.saturating_add(more.written),
            output: self.output.saturating_add(more.output),
        }
    }

    /// What is left of a running total.
    pub fn less(self, before: Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            cached: self.cached.saturating_sub(before.cached),
            written: self.written.saturating_sub(before.written),
            output: self.output.saturating_sub(before.output),
        }
    }
}

impl Said {
    /// As one line, for people.
    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Tool { name, about } if about.is_empty() => format!("[{name}]"),
            Self::Tool { name, about } => format!("[{name}] {about}"),
            Self::Denied(Denied { tool, about }) if about.is_empty() => format!("[{tool}] (not allowed)"),
            Self::Denied(Denied { tool, about }) => format!("[{tool}] {about} (not allowed)"),
            Self::Waits { why, delay: Some(delay) } => format!("(waits {} s: {why})", delay.as_secs()),
            Self::Waits { why, delay: None } => format!("(waits: {why})"),
            Self::Error(message) => format!("(error: {message})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_never_reached_its_provider_is_told_apart_from_who_lost_it() {
        let told = |kind, message: &str| {
            let trouble = Trouble::new(kind, message);
            format!("{trouble} | {}", trouble.hint("a").unwrap_or_default())
        };
        let unreached =
            "look at the network, at the variables of a proxy, and at the address of its provider";
        for words in [
            "API Error: Connection refused",
            "getaddrinfo EAI_AGAIN api.example",
            "connect ETIMEDOUT 10.0.0.1:443",
        ] {
            let expected = format!("its provider could not be reached: {words} | {unreached}");
            assert_eq!(told(TroubleKind::Broken, words), expected);
            assert_eq!(told(TroubleKind::Other, words), expected);
        }
        assert_eq!(
            told(TroubleKind::Broken, "terminated"),
            "the answer of its provider broke off: terminated | try it again; if it stays so, look at what its \
             provider says of itself"
        );
    }

    #[test]
    fn who_is_tried_is_not_sent_to_try_it() {
        for kind in [TroubleKind::NoEnd, TroubleKind::Other, TroubleKind::Protocol, TroubleKind::Broken] {
            let hint = Trouble::new(kind, "x").hint_in_trial("a", "/bin/agent").unwrap();
            assert!(!hint.contains("--check"), "{hint}");
        }
    }

    #[test]
    fn of_words_about_an_end_the_beginning_is_kept() {
        let trouble = Trouble::new(TroubleKind::Other, format!(" boom {}", "é".repeat(3_000_000)));
        assert_eq!(trouble.message.chars().count(), LONGEST_WORDS + 1);
        assert!(trouble.message.starts_with("boom é") && trouble.message.ends_with("é…"));
        assert_eq!(Trouble::new(TroubleKind::Other, "boom\n").message, "boom");
    }

    #[test]
    fn a_line_has_no_hole_where_an_agent_says_nothing() {
        let denied = |about: &str| Said::Denied(Denied { tool: "bash".to_owned(), about: about.to_owned() });
        assert_eq!(denied("").shown(), "[bash] (not allowed)");
        assert_eq!(denied("touch x").shown(), "[bash] touch x (not allowed)");
        let tool = |about: &str| Said::Tool { name: "read".to_owned(), about: about.to_owned() };
        assert_eq!(
            (tool("").shown(), tool("a.txt").shown()),
            ("[read]".to_owned(), "[read] a.txt".to_owned())
        );
    }
}
