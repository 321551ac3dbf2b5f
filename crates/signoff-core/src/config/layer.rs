//! The layers of a configuration: texts with a name, each read by the same reader.

use toml::de::DeTable;

use super::{ConfigError, Origin};
use crate::workflow::WorkflowError;
use crate::workflow::problem::{Place, nearest};
use crate::workflow::table::{Checked, Table};

/// No configuration people write is longer.
pub const LONGEST: usize = 1_000_000;

/// A configuration file as the caller read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    kind: Kind,
    /// As messages name it.
    file: String,
    text: String,
    /// Where each line comes from, if the layer was translated: the text is then nothing people have seen.
    spots: Vec<Spot>,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    pub file: String,
    /// Counted from one.
    pub line: usize,
}

/// Whose layer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Person,
    Foreign,
    Repository,
    Environment,
    Flag,
}

/// A flag of the command line that stands for a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// As it is written: `--jobs`.
    pub name: &'static str,
    /// The setting's dotted key.
    pub key: &'static str,
    pub value: String,
}

impl Layer {
    /// The file in a person's home.
    pub fn person(file: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Kind::Person, file, text)
    }

    /// The file of the repository.
    pub fn repository(file: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Kind::Repository, file, text)
    }

    /// The file of another program, translated: each line of the text has its place in that file.
    pub(super) fn foreign(file: impl Into<String>, lines: Vec<(String, Spot)>) -> Self {
        let (text, spots): (Vec<_>, _) = lines.into_iter().map(|(line, spot)| (line + "\n", spot)).unzip();
        Self { spots, ..Self::new(Kind::Foreign, file, text.concat()) }
    }

    fn new(kind: Kind, file: impl Into<String>, text: impl Into<String>) -> Self {
        Self { kind, file: file.into(), text: text.into(), spots: Vec::new() }
    }

    /// Whether it lies in the repository.
    pub(super) fn is_of_the_repository(&self) -> bool {
        match self.kind {
            Kind::Foreign | Kind::Repository => true,
            Kind::Person | Kind::Environment | Kind::Flag => false,
        }
    }

    /// The TOML of the layer.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A line of the text as people find it.
    pub(super) fn spot(&self, line: usize) -> Spot {
        let known = self.spots.get(line.saturating_sub(1)).or(self.spots.last());
        known.cloned().unwrap_or_else(|| Spot { file: self.file.clone(), line })
    }

    /// A flag, as if its value stood in a file.
    pub(super) fn flag(flag: &Flag) -> Self {
        Self::new(Kind::Flag, flag.name, line(flag.key, &flag.value))
    }

    /// What a reader of this layer has to say, as an error of the configuration.
    pub(super) fn error(&self, error: WorkflowError) -> ConfigError {
        match self.kind {
            Kind::Person | Kind::Repository => error.into(),
            Kind::Foreign => {
                let Spot { file, line } = self.spot(error.line);
                ConfigError::File { file, line, message: error.message }
            }
            Kind::Environment | Kind::Flag => ConfigError::Given { name: error.file, message: error.message },
        }
    }
}

/// The variables that are settings, by the key they set: those that one machine, or one call, wants otherwise.
pub const VARIABLES: [(&str, &str); 25] = [
    ("SIGNOFF_PRESET", "preset"),
    ("SIGNOFF_JOBS", "jobs"),
    ("SIGNOFF_STORE", "store"),
    ("SIGNOFF_NO_ASK", "no_ask"),
    ("SIGNOFF_LANDING", "landing"),
    ("SIGNOFF_REVIEW_WORKSPACE", "review_workspace"),
    ("SIGNOFF_SESSIONS", "sessions"),
    ("SIGNOFF_SANDBOX", "sandbox"),
    ("SIGNOFF_SANDBOX_WRITERS", "sandbox_writers"),
    ("SIGNOFF_DEFAULTS_AUTO_REVIEW", "defaults.auto_review"),
    ("SIGNOFF_DEFAULTS_MAX_REVIEW_CYCLES", "defaults.max_review_cycles"),
    ("SIGNOFF_LIMITS_MAX_COST_USD", "limits.max_cost_usd"),
    ("SIGNOFF_LIMITS_MAX_TOKENS", "limits.max_tokens"),
    ("SIGNOFF_LIMITS_MAX_MINUTES", "limits.max_minutes"),
    ("SIGNOFF_LIMITS_ATTEMPT", "limits.attempt"),
    ("SIGNOFF_LIMITS_SILENCE", "limits.silence"),
    ("SIGNOFF_LIMITS_GRACE", "limits.grace"),
    ("SIGNOFF_LIMITS_AGENTS_PER_PROVIDER", "limits.agents_per_provider"),
    ("SIGNOFF_LIMITS_BACKOFF", "limits.backoff"),
    ("SIGNOFF_LIMITS_BACKOFF_MAX", "limits.backoff_max"),
    ("SIGNOFF_LIMITS_MAX_RATE_LIMITS", "limits.max_rate_limits"),
    ("SIGNOFF_LIMITS_RESERVE_USD", "limits.reserve_usd"),
    ("SIGNOFF_LIMITS_RUN_MAX_COST_USD", "limits.run.max_cost_usd"),
    ("SIGNOFF_LIMITS_RUN_MAX_TOKENS", "limits.run.max_tokens"),
    ("SIGNOFF_LIMITS_RUN_MAX_MINUTES", "limits.run.max_minutes"),
];

/// The variables that agents are given. An agent that calls the program hands them back; they set nothing.
pub const FOR_AGENTS: [&str; 17] = [
    "SIGNOFF_ROLE",
    "SIGNOFF_PHASE",
    "SIGNOFF_REVIEWER",
    "SIGNOFF_REVIEW_KIND",
    "SIGNOFF_TASK_ID",
    "SIGNOFF_LOOP_ID",
    "SIGNOFF_RUN_ID",
    "SIGNOFF_ATTEMPT",
    "SIGNOFF_CYCLE",
    "SIGNOFF_BASE",
    "SIGNOFF_COMMIT",
    "SIGNOFF_MODEL",
    "SIGNOFF_NONCE",
    "SIGNOFF_MCP_URL",
    "SIGNOFF_MCP_TOKEN",
    "SIGNOFF_USAGE_FILE",
    "SIGNOFF_KEEPER",
];

/// The settings of an environment. An empty variable says nothing; of unknown ones only a slip of the pen is an
/// error.
pub(super) fn environment(variables: &[(String, String)]) -> Result<Vec<Layer>, ConfigError> {
    let mut layers = Vec::new();
    let says = |(name, value): &&(String, String)| name.starts_with("SIGNOFF_") && !value.is_empty();
    for (name, value) in variables.iter().filter(says) {
        match VARIABLES.iter().find(|(known, _)| known == name) {
            Some((_, key)) => {
                layers.push(Layer::new(Kind::Environment, name, line(key, value)));
            }
            None => check_spelling(name)?,
        }
    }
    Ok(layers)
}

fn check_spelling(name: &str) -> Result<(), ConfigError> {
    let known = VARIABLES.map(|(known, _)| known);
    match nearest(name, &known).filter(|_| !FOR_AGENTS.contains(&name)) {
        Some(meant) => Err(ConfigError::Given {
            name: name.to_owned(),
            message: format!("no such setting: did you mean `{meant}`?"),
        }),
        None => Ok(()),
    }
}

/// Keys whose values are switches.
const SWITCHES: [&str; 4] = ["no_ask", "sandbox", "sandbox_writers", "defaults.auto_review"];

/// Keys whose values are numbers.
const NUMBERS: [&str; 11] = [
    "jobs",
    "defaults.max_review_cycles",
    "limits.max_cost_usd",
    "limits.max_tokens",
    "limits.max_minutes",
    "limits.agents_per_provider",
    "limits.max_rate_limits",
    "limits.reserve_usd",
    "limits.run.max_cost_usd",
    "limits.run.max_tokens",
    "limits.run.max_minutes",
];

/// A value from outside a file as a line of one. What does not look like a number or a switch stays a text,
/// so that it can be refused as what it is.
fn line(key: &str, value: &str) -> String {
    let bare = match value {
        "1" | "true" if SWITCHES.contains(&key) => Some("true"),
        "0" | "false" if SWITCHES.contains(&key) => Some("false"),
        _ => Some(value).filter(|value| NUMBERS.contains(&key) && is_number(value)),
    };
    match bare {
        Some(bare) => format!("{key} = {bare}"),
        None => format!("{key} = {}", toml::Value::from(value)),
    }
}

/// Whether TOML would take it as a number.
fn is_number(value: &str) -> bool {
    let plain = value.chars().all(|char| char.is_ascii_digit() || char == '.' || char == '-');
    plain && toml::from_str::<toml::Table>(&format!("n = {value}")).is_ok()
}

/// A layer being read: knows the line of every offset.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    pub layer: &'a Layer,
    text: &'a str,
    /// Where the lines begin.
    lines: Vec<usize>,
}

impl<'a> Reading<'a> {
    pub fn new(layer: &'a Layer) -> Self {
        let text = layer.text.strip_prefix('\u{feff}').unwrap_or(&layer.text);
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { layer, text, lines: std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect() }
    }

    fn place(&self) -> Place<'_> {
        Place { file: &self.layer.file, text: self.text }
    }

    /// The TOML of the layer.
    pub fn parse(&self) -> Checked<DeTable<'_>> {
        if self.text.len() > LONGEST {
            let message = format!("the file has {} bytes: expected at most {LONGEST}", self.text.len());
            return Err(self.place().at(0, message));
        }
        let read = DeTable::parse(self.text).map_err(|error| self.place().unreadable(&error))?;
        Ok(read.into_inner())
    }

    /// The layer as the table it is.
    pub fn whole<'r>(&'r self, entries: &'r DeTable<'r>) -> Source<'r> {
        Source { table: Table::whole(self.place(), entries), reading: self }
    }

    fn origin(&self, offset: usize) -> Origin {
        let (file, name) = (self.layer.file.clone(), self.layer.file.clone());
        let line = self.lines.partition_point(|start| *start <= offset);
        match self.layer.kind {
            Kind::Person => Origin::Person { file, line },
            Kind::Foreign => {
                let Spot { file, line } = self.layer.spot(line);
                Origin::Foreign { file, line }
            }
            Kind::Repository => Origin::Repository { file, line },
            Kind::Environment => Origin::Environment { name },
            Kind::Flag => Origin::Flag { name },
        }
    }
}

/// A table of a layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub table: Table<'a>,
    reading: &'a Reading<'a>,
}

impl<'a> Source<'a> {
    /// Where a key stands, or the table where the key is not written.
    pub fn origin(&self, key: &str) -> Origin {
        self.reading.origin(self.table.offset(key).unwrap_or(self.table.start()))
    }

    /// Where the table begins.
    pub fn start(&self) -> Origin {
        self.reading.origin(self.table.start())
    }

    /// The table under a key, if it is written.
    pub fn inside(&self, key: &str) -> Checked<Option<Self>> {
        Ok(self.table.table(key)?.map(|table| Self { table, ..*self }))
    }

    /// The list of tables under a key.
    pub fn list(&self, key: &str) -> Checked<Vec<Self>> {
        Ok(self.table.tables(key)?.into_iter().map(|table| Self { table, ..*self }).collect())
    }
}
