//! `iterate-config.json`: nine phases, and what happens when a review finds something.
//!
//! Version 2 has `reviewDefaults` and policies in its phases; version 1 said only who does a phase.

use std::collections::BTreeMap;

use super::super::ConfigError;
use super::super::layer::FileLine;
use super::draft::{TomlDraft, quoted};
use super::node::ForeignValue;
use super::{ForeignFile, TranslatedFile, json};
use crate::settings::reader::either;

/// The preset that has these phases.
const PRESET: &str = "phases";

/// The version that is written today.
const VERSION: u32 = 2;

/// A key of a phase, or of `reviewDefaults`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum IterateKey {
    Model,
    Tool,
    Parallel,
    ParallelModel,
    OnFailure,
    FailOnSeverity,
    MaxRetries,
    OnMaxRetries,
    ParallelFixes,
}

const WORK: &[IterateKey] = &[IterateKey::Model, IterateKey::Parallel, IterateKey::ParallelModel];
const REVIEW: &[IterateKey] = &[
    IterateKey::Model,
    IterateKey::Tool,
    IterateKey::OnFailure,
    IterateKey::FailOnSeverity,
    IterateKey::MaxRetries,
    IterateKey::OnMaxRetries,
    IterateKey::ParallelFixes,
];
const TEST: &[IterateKey] = &[
    IterateKey::Model,
    IterateKey::OnFailure,
    IterateKey::MaxRetries,
    IterateKey::OnMaxRetries,
    IterateKey::ParallelFixes,
];
const DEFAULTS: &[IterateKey] =
    &[IterateKey::FailOnSeverity, IterateKey::MaxRetries, IterateKey::OnMaxRetries, IterateKey::ParallelFixes];

impl IterateKey {
    const ALL: [Self; 9] = [
        Self::Model,
        Self::Tool,
        Self::Parallel,
        Self::ParallelModel,
        Self::OnFailure,
        Self::FailOnSeverity,
        Self::MaxRetries,
        Self::OnMaxRetries,
        Self::ParallelFixes,
    ];

    /// As the file has it, and as it is called here.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Model => ("model", "model"),
            Self::Tool => ("tool", "tool"),
            Self::Parallel => ("parallel", "parallel"),
            Self::ParallelModel => ("parallelModel", "parallel_model"),
            Self::OnFailure => ("onFailure", "on_failure"),
            Self::FailOnSeverity => ("failOnSeverity", "fail_on"),
            Self::MaxRetries => ("maxRetries", "max_fixes"),
            Self::OnMaxRetries => ("onMaxRetries", "on_exhausted"),
            Self::ParallelFixes => ("parallelFixes", "parallel_fixes"),
        }
    }

    /// Whether it is a word of the phase's gate.
    fn is_of_gate(self) -> bool {
        match self {
            Self::Model | Self::Tool | Self::Parallel | Self::ParallelModel => false,
            Self::OnFailure | Self::FailOnSeverity | Self::MaxRetries | Self::OnMaxRetries | Self::ParallelFixes => {
                true
            }
        }
    }

    /// What says the same in another way: one takes the place of the other.
    fn rival(self) -> Option<Self> {
        match self {
            Self::Model => Some(Self::Tool),
            Self::Tool => Some(Self::Model),
            Self::Parallel
            | Self::ParallelModel
            | Self::OnFailure
            | Self::FailOnSeverity
            | Self::MaxRetries
            | Self::OnMaxRetries
            | Self::ParallelFixes => None,
        }
    }

    /// The value as TOML writes it.
    fn value(self, at: &ForeignValue<'_>) -> Result<String, ConfigError> {
        match self {
            Self::Model | Self::ParallelModel => at.text("the name of a model or \"inherit\"").map(quoted),
            Self::Tool => at.text("the name of a tool such as \"mcp__codex__codex\"").map(quoted),
            Self::Parallel | Self::ParallelFixes => at.flag().map(|flag| flag.to_string()),
            Self::OnFailure => at.word(&["mini-loop", "restart", "proceed", "stop"]).map(quoted),
            Self::FailOnSeverity => at.word(&["LOW", "MEDIUM", "HIGH", "NONE"]).map(quoted),
            Self::OnMaxRetries => at.word(&["stop", "ask", "restart", "proceed"]).map(quoted),
            Self::MaxRetries if at.is_null() => Ok(quoted("unlimited")),
            Self::MaxRetries => at.whole_number(0, u32::MAX, ", or null for no limit").map(|number| number.to_string()),
        }
    }
}

/// A phase as such files know it.
struct IteratePhase {
    number: &'static str,
    name: &'static str,
    /// The gate that judges it here.
    gate: Option<&'static str>,
    keys: &'static [IterateKey],
}

const fn work(number: &'static str, name: &'static str) -> IteratePhase {
    IteratePhase { number, name, gate: None, keys: WORK }
}

const fn review(number: &'static str, name: &'static str, gate: &'static str) -> IteratePhase {
    IteratePhase { number, name, gate: Some(gate), keys: REVIEW }
}

const TESTS: &str = "6";

const PHASES: [IteratePhase; 9] = [
    work("1", "Brainstorm"),
    work("2", "Plan"),
    review("3", "Plan Review", "plan_review"),
    work("4", "Implement"),
    review("5", "Code Review", "code_review"),
    IteratePhase { number: TESTS, name: "Test", gate: Some("test"), keys: TEST },
    work("7", "Simplify"),
    review("8", "Final Review", "final_review"),
    review("9", "Codex Final", "codex_final"),
];

/// What the files say, by table: the defaults first, then by phase.
type IterateTables = BTreeMap<(usize, String), IterateTable>;

#[derive(Debug)]
struct IterateTable {
    /// Where it was last written.
    spot: FileLine,
    values: BTreeMap<IterateKey, (String, FileLine)>,
}

pub fn translate(files: &[ForeignFile<'_>]) -> Result<TranslatedFile, ConfigError> {
    let mut said = IterateTables::new();
    let (mut notes, mut migrated) = (Vec::new(), None);
    for file in files {
        let node = json::read(*file)?;
        let whole = ForeignValue::whole(*file, &node);
        let version = version(&whole)?;
        lay(&whole, &mut said)?;
        migrated = None;
        if version < VERSION {
            migrated = Some(json::with(*file, "version", &VERSION.to_string())?);
            notes.push(format!("{} is of version {version}: it is read as version {VERSION}", file.name));
        }
    }
    let last = files.last().map_or("", |file| file.name);
    Ok(TranslatedFile { layer: draft(said).layer(last), notes, migrated })
}

pub fn migrate(file: ForeignFile<'_>) -> Result<Option<String>, ConfigError> {
    Ok(translate(&[file])?.migrated)
}

/// The version of a file. The first one did not always say it.
fn version(whole: &ForeignValue<'_>) -> Result<u32, ConfigError> {
    let members = whole.members(AN_OBJECT)?;
    match members.iter().find(|member| member.key == "version") {
        None => Ok(1),
        Some(written) => written.whole_number(1, VERSION, "").map_err(|_| written.wrong("2")),
    }
}

const AN_OBJECT: &str = "{ \"version\": 2, \"phases\": { … } }";

/// Lays what a file says over what the ones before it said.
fn lay(whole: &ForeignValue<'_>, said: &mut IterateTables) -> Result<(), ConfigError> {
    for member in whole.members(AN_OBJECT)? {
        match member.key {
            "version" => {}
            "reviewDefaults" => take(&member, DEFAULTS, said, |_| (0, format!("presets.{PRESET}")))?,
            "phases" => lay_phases(&member, said)?,
            _ => return Err(member.unknown(&["version", "reviewDefaults", "phases"])),
        }
    }
    Ok(())
}

fn lay_phases(phases: &ForeignValue<'_>, said: &mut IterateTables) -> Result<(), ConfigError> {
    for member in phases.members("{ \"1\": { … }, … }, the phases by number")? {
        let Some(phase) = PHASES.iter().find(|phase| phase.number == member.key) else {
            let known: Vec<_> = PHASES.iter().map(|phase| format!("{} {}", phase.number, phase.name)).collect();
            let message = format!("{} is no phase: the phases are {}", member.name(), known.join(", "));
            return Err(member.error(message));
        };
        lay_phase(&member, phase, said)?;
    }
    Ok(())
}

fn lay_phase(member: &ForeignValue<'_>, phase: &IteratePhase, said: &mut IterateTables) -> Result<(), ConfigError> {
    let place = PHASES.iter().take_while(|known| known.number != phase.number).count() + 1;
    let own = (place, format!("presets.{PRESET}.phase.{}", phase.number));
    let gate = phase.gate.map(|gate| (place, format!("presets.{PRESET}.gates.{gate}")));
    forget_rivals(member, said.get_mut(&own))?;
    take(member, phase.keys, said, |key| gate.clone().filter(|_| key.is_of_gate()).unwrap_or_else(|| own.clone()))
}

/// Who names a model where an earlier file named a tool means it instead of the tool, and the other way round.
fn forget_rivals(member: &ForeignValue<'_>, table: Option<&mut IterateTable>) -> Result<(), ConfigError> {
    let Some(table) = table else { return Ok(()) };
    let members = member.members("{ … }")?;
    let written: Vec<_> = members.iter().filter_map(|at| known(at.key, &IterateKey::ALL)).collect();
    table.values.retain(|key, _| key.rival().is_none_or(|rival| !written.contains(&rival)));
    Ok(())
}

/// Takes the keys of a phase or of the defaults, each into its table.
fn take(
    member: &ForeignValue<'_>,
    keys: &[IterateKey],
    said: &mut IterateTables,
    table: impl Fn(IterateKey) -> (usize, String),
) -> Result<(), ConfigError> {
    let names: Vec<_> = keys.iter().map(|key| key.names().0).collect();
    for at in member.members(&format!("{{ … }} with {}", either(&names)))? {
        let Some(key) = known(at.key, keys) else { return Err(misplaced(member, &at, &names)) };
        let value = if key == IterateKey::Model && member.key == TESTS { command(&at)? } else { key.value(&at)? };
        let spot = at.file.spot(at.node.line);
        let begun = member.file.spot(member.node.line);
        let table = said.entry(table(key)).or_insert(IterateTable { spot: begun.clone(), values: BTreeMap::new() });
        table.spot = begun;
        table.values.insert(key, (value, spot));
    }
    Ok(())
}

fn known(name: &str, keys: &[IterateKey]) -> Option<IterateKey> {
    keys.iter().copied().find(|key| key.names().0 == name)
}

/// Tests are run by a command: there is no model.
fn command(at: &ForeignValue<'_>) -> Result<String, ConfigError> {
    let wrong = || at.wrong("null: tests are run by a command, no model");
    at.is_null().then(|| quoted("none")).ok_or_else(wrong)
}

/// What to say of a key that does not belong here.
fn misplaced(member: &ForeignValue<'_>, at: &ForeignValue<'_>, names: &[&str]) -> ConfigError {
    let phase = PHASES.iter().find(|phase| phase.number == member.key);
    match (known(at.key, &IterateKey::ALL), phase) {
        (Some(IterateKey::FailOnSeverity), Some(IteratePhase { number: TESTS, .. })) => {
            at.error(format!("{} does not apply: tests pass or fail; leave it out", at.name()))
        }
        (Some(_), Some(phase)) => at.error(format!(
            "{} does not apply to phase {}, {}: expected {}",
            at.name(),
            phase.number,
            phase.name,
            either(names)
        )),
        (Some(_), None) => at.error(format!(
            "{} does not apply to all phases: write it in a phase; expected {}",
            at.name(),
            either(names)
        )),
        (None, _) => at.unknown(names),
    }
}

fn draft(said: IterateTables) -> TomlDraft {
    let mut draft = TomlDraft::default();
    for ((_, name), table) in said {
        draft.table(&name, table.spot);
        for (key, (value, spot)) in table.values {
            draft.set(key.names().1, &value, spot);
        }
    }
    draft
}
