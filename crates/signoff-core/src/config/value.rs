//! The values that only a configuration knows.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value as Json, json};

use crate::policy::{Effort, Span};
use crate::session::Resuming;
use crate::workflow::PRESETS;
use crate::workflow::value::{Value, Written, word_values};

/// What speaks to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    Claude,
    Codex,
    Gemini,
    Opencode,
    Qwen,
    Copilot,
    /// Any agent that speaks the Agent Client Protocol.
    Acp,
    /// Any program: the prompt on stdin, the final message on stdout.
    Command,
    /// The project's own commands, as a reviewer without a model.
    Checks,
    /// Plays its part without any model.
    Demo,
}

impl AgentKind {
    pub const ALL: [Self; 10] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Opencode,
        Self::Qwen,
        Self::Copilot,
        Self::Acp,
        Self::Command,
        Self::Checks,
        Self::Demo,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Qwen => "qwen",
            Self::Copilot => "copilot",
            Self::Acp => "acp",
            Self::Command => "command",
            Self::Checks => "checks",
            Self::Demo => "demo",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Whether agents of this kind are known to copy a nonce from their prompt. A program of one's own may not.
    pub fn echoes_nonces(self) -> bool {
        match self {
            Self::Claude
            | Self::Codex
            | Self::Gemini
            | Self::Opencode
            | Self::Qwen
            | Self::Copilot
            | Self::Acp => true,
            Self::Command | Self::Checks | Self::Demo => false,
        }
    }

    /// Whose servers an agent of this kind works with, where it does not say so: nobody knows what a program of one's
    /// own calls, so each is its own provider.
    pub(super) fn provider(self, name: &str) -> String {
        match self {
            Self::Claude | Self::Codex | Self::Gemini | Self::Opencode | Self::Qwen | Self::Copilot => {
                self.word().to_owned()
            }
            Self::Acp | Self::Command | Self::Checks | Self::Demo => name.to_owned(),
        }
    }

    /// Whether `command` must say what to start.
    pub(super) fn needs_command(self) -> bool {
        matches!(self, Self::Acp | Self::Command)
    }

    /// Whether it can change the work, or read it and give an opinion.
    pub(super) fn is_a_model(self) -> bool {
        self != Self::Checks
    }
}

/// Where a reviewer works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReviewWorkspace {
    /// In the loop's worktree, which it must not change.
    Shared,
    /// In a throw-away worktree of the commit.
    Copy,
}

/// How signed-off work joins a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LandBy {
    /// With a merge commit.
    Merge,
    /// With the same changes on top.
    Rebase,
}

word_values!(AgentKind, ReviewWorkspace, LandBy, Resuming, Effort);

/// Where facts are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Store {
    Sqlite,
    /// The address of a PostgreSQL database.
    Postgres(String),
}

impl Value for Store {
    fn expected(_: &str) -> String {
        "\"sqlite\" or \"postgres://…\"".to_owned()
    }

    fn schema(_: &str) -> Json {
        json!({ "anyOf": [{ "enum": ["sqlite"] }, { "type": "string", "pattern": "^postgres(ql)?://" }] })
    }

    fn read<'v, 'i>(_: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        match written.get_ref().as_str() {
            Some("sqlite") => Ok(Self::Sqlite),
            Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                Ok(Self::Postgres(url.to_owned()))
            }
            Some(_) | None => Err(written),
        }
    }
}

/// Shown without its password.
impl Serialize for Store {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Sqlite => serializer.serialize_str("sqlite"),
            Self::Postgres(url) => serializer.serialize_str(&without_password(url)),
        }
    }
}

pub(super) fn without_password(url: &str) -> String {
    let url = url.split('?').next().unwrap_or(url);
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    match rest.rsplit_once('@') {
        Some((who, place)) => {
            let name = who.split(':').next().unwrap_or_default();
            format!("{scheme}://{name}:…@{place}")
        }
        None => url.to_owned(),
    }
}

/// A whole number within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Whole<const LEAST: u64, const MOST: u64>(pub u64);

/// Agents at once, and how often something may happen in a row.
pub type Few = Whole<1, 1000>;
/// Loops at once: more would only get in each other's way.
pub type Jobs = Whole<1, 1000>;
pub type Cycles = Whole<1, 1000>;
/// Up to a year.
pub type Minutes = Whole<1, 525_600>;
pub type Amount = Whole<1, { i64::MAX as u64 }>;

impl<const LEAST: u64, const MOST: u64> Whole<LEAST, MOST> {
    /// The number, for places that count in 32 bits.
    pub fn small(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl<const LEAST: u64, const MOST: u64> Value for Whole<LEAST, MOST> {
    fn expected(_: &str) -> String {
        if MOST == i64::MAX as u64 {
            format!("a whole number, at least {LEAST}")
        } else {
            format!("a whole number from {LEAST} to {MOST}")
        }
    }

    fn schema(_: &str) -> Json {
        json!({ "type": "integer", "minimum": LEAST, "maximum": MOST })
    }

    fn read<'v, 'i>(_: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        let number = written.get_ref().as_integer().ok_or(written)?;
        let number = u64::from_str_radix(number.as_str(), number.radix()).map_err(|_| written)?;
        (LEAST..=MOST).contains(&number).then_some(Self(number)).ok_or(written)
    }
}

/// A wait, which may be none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Wait(pub Span);

impl Value for Wait {
    fn expected(_: &str) -> String {
        "a duration such as \"0s\", \"30s\" or \"15m\"".to_owned()
    }

    fn schema(_: &str) -> Json {
        json!({ "type": "string", "pattern": "^[0-9]{1,18}[smh]$" })
    }

    fn read<'v, 'i>(_: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        written.get_ref().as_str().and_then(Span::from_text).map(Self).ok_or(written)
    }
}

/// An amount of money in millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dollars {
    pub micro: u64,
}

/// More than any run should cost by mistake.
const MOST_DOLLARS: f64 = 1_000_000.0;

impl Value for Dollars {
    fn expected(_: &str) -> String {
        "an amount of dollars such as 20.0, more than 0 and at most 1000000".to_owned()
    }

    fn schema(_: &str) -> Json {
        json!({ "type": "number", "exclusiveMinimum": 0, "maximum": MOST_DOLLARS as u64 })
    }

    fn read<'v, 'i>(_: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        let value = written.get_ref();
        let text = value.as_float().map(|number| number.as_str());
        let text = text.or_else(|| value.as_integer().map(|number| number.as_str())).ok_or(written)?;
        let dollars: f64 = text.parse().map_err(|_| written)?;
        let micro = (dollars * 1_000_000.0).round();
        if !(1.0..=MOST_DOLLARS * 1_000_000.0).contains(&micro) {
            return Err(written);
        }
        Ok(Self { micro: micro as u64 })
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.micro as f64 / 1_000_000.0)
    }
}

/// A text that says something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Text(String);

impl Text {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl Value for Text {
    fn expected(_: &str) -> String {
        "text in quotes that is not empty".to_owned()
    }

    fn schema(_: &str) -> Json {
        json!({ "type": "string", "pattern": "\\S" })
    }

    fn read<'v, 'i>(key: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        let text = Argument::read(key, written)?.0;
        if text.trim().is_empty() { Err(written) } else { Ok(Self(text)) }
    }
}

/// The name of a workflow. Which ones there are, all files decide together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct WorkflowName(pub Text);

impl Value for WorkflowName {
    fn expected(_: &str) -> String {
        format!("the name of a workflow, one of {} or your own", PRESETS.join(", "))
    }

    fn schema(key: &str) -> Json {
        json!({ "anyOf": [{ "enum": PRESETS }, Text::schema(key)] })
    }

    fn read<'v, 'i>(key: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        Text::read(key, written).map(Self)
    }
}

/// A text that can be handed to a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Argument(pub String);

impl Value for Argument {
    fn expected(_: &str) -> String {
        "text in quotes, without a NUL".to_owned()
    }

    fn schema(_: &str) -> Json {
        json!({ "type": "string" })
    }

    fn read<'v, 'i>(key: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        String::read(key, written)
            .and_then(|text| if text.contains('\0') { Err(written) } else { Ok(Self(text)) })
    }
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Program(pub Vec<String>);

impl Value for Program {
    fn expected(_: &str) -> String {
        "a program and its arguments, [\"./agent\", \"--fast\"]".to_owned()
    }

    fn schema(_: &str) -> Json {
        json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 })
    }

    fn read<'v, 'i>(key: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        let words = Arguments::read(key, written)?.0;
        let program = written.get_ref().as_array().and_then(|list| list.first());
        match words.first() {
            Some(first) if !first.trim().is_empty() => Ok(Self(words)),
            Some(_) | None => Err(program.unwrap_or(written)),
        }
    }
}

/// Words for a program.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Arguments(pub Vec<String>);

impl Value for Arguments {
    fn expected(_: &str) -> String {
        "a list of texts, [\"--fast\", \"…\"]".to_owned()
    }

    fn schema(_: &str) -> Json {
        json!({ "type": "array", "items": { "type": "string" } })
    }

    fn read<'v, 'i>(key: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        let list = written.get_ref().as_array().ok_or(written)?;
        list.iter().map(|one| Argument::read(key, one).map(|word| word.0)).collect::<Result<_, _>>().map(Self)
    }
}

/// Names of variables, or how they begin: `AWS_*`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Passed(pub Vec<String>);

impl Value for Passed {
    fn expected(_: &str) -> String {
        "a list of names of variables, [\"NAME\", \"PREFIX_*\"]".to_owned()
    }

    fn schema(_: &str) -> Json {
        json!({ "type": "array", "items": { "type": "string", "pattern": "^[^=*\\s]+\\*?$" } })
    }

    fn read<'v, 'i>(key: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        let list = written.get_ref().as_array().ok_or(written)?;
        let one = |written: &'v Written<'i>| {
            let name = Argument::read(key, written)?.0;
            let bare = name.strip_suffix('*').unwrap_or(&name);
            // All of them would be no list.
            let odd = |char: char| char == '=' || char == '*' || char.is_whitespace();
            if bare.is_empty() || bare.contains(odd) { Err(written) } else { Ok(name) }
        };
        list.iter().map(one).collect::<Result<_, _>>().map(Self)
    }
}

/// Files of the repository.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Inside(pub Vec<String>);

impl Value for Inside {
    fn expected(_: &str) -> String {
        "a list of paths inside the repository, [\".env\"]".to_owned()
    }

    fn schema(key: &str) -> Json {
        json!({ "type": "array", "items": Text::schema(key) })
    }

    fn read<'v, 'i>(key: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        let list = written.get_ref().as_array().ok_or(written)?;
        let one = |written: &'v Written<'i>| {
            let path = Text::read(key, written)?.0;
            if leads_out(&path) { Err(written) } else { Ok(path) }
        };
        list.iter().map(one).collect::<Result<_, _>>().map(Self)
    }
}

fn leads_out(path: &str) -> bool {
    let absolute = path.starts_with(['/', '\\']) || path.chars().nth(1) == Some(':');
    absolute || path.split(['/', '\\']).any(|part| part == ".." || part == ".git")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let shown = |url: &str| without_password(url);
        assert_eq!(shown("postgres://me:secret@db/signoff"), "postgres://me:…@db/signoff");
        assert_eq!(shown("postgres://me:s@cret@db/signoff?password=x"), "postgres://me:…@db/signoff");
        assert_eq!(shown("postgres://db/signoff"), "postgres://db/signoff");
    }

    #[test]
    fn copied_files_stay_inside() {
        for path in ["/etc/passwd", "../x", "a/../../x", "C:\\x", ".git/config", "\\\\host\\x"] {
            assert!(leads_out(path), "{path}");
        }
        for path in [".env", "config/local.toml", "..env"] {
            assert!(!leads_out(path), "{path}");
        }
    }
}
