//! `gza.yaml`: `defaults` and `task_types`. Everything else in it is about other things.

use super::super::ConfigError;
use super::draft::{TomlDraft, quoted};
use super::node::ForeignValue;
use super::{ForeignFile, TranslatedFile, yaml};

const DEFAULTS: &[&str] = &["auto_review", "max_review_cycles"];

const OF_TYPE: &[&str] = &[
    "auto_review",
    "max_review_cycles",
    "model",
    "review_model",
    "timeout_minutes",
    "review_timeout_minutes",
    "improve_timeout_minutes",
];

const TYPES: &[&str] = &["implement", "review", "improve", "plan"];

pub fn translate(file: ForeignFile<'_>) -> Result<TranslatedFile, ConfigError> {
    let node = yaml::read(file)?;
    let whole = ForeignValue::whole(file, &node);
    let (mut draft, mut notes) = (TomlDraft::default(), Vec::new());
    for member in below(&whole, "keys such as `defaults:` and `task_types:`")? {
        match member.key {
            "defaults" => table(&member, "defaults", DEFAULTS, &mut draft)?,
            "task_types" => task_types(&member, &mut draft)?,
            other => notes.push(format!("`{other}` has no meaning here and is left out")),
        }
    }
    Ok(TranslatedFile { layer: draft.layer(file.name), notes, migrated: None })
}

/// What stands below a key. Nothing at all is an empty table.
fn below<'a>(at: &ForeignValue<'a>, expected: &str) -> Result<Vec<ForeignValue<'a>>, ConfigError> {
    if at.is_null() { Ok(Vec::new()) } else { at.members(expected) }
}

fn task_types(types: &ForeignValue<'_>, draft: &mut TomlDraft) -> Result<(), ConfigError> {
    for member in below(types, "types of tasks, each with keys of its own")? {
        if !TYPES.contains(&member.key) {
            return Err(member.unknown(TYPES));
        }
        table(&member, &format!("task_types.{}", member.key), OF_TYPE, draft)?;
    }
    Ok(())
}

fn table(at: &ForeignValue<'_>, name: &str, keys: &[&str], draft: &mut TomlDraft) -> Result<(), ConfigError> {
    draft.table(name, at.file.spot(at.node.line));
    for member in below(at, "keys with values")? {
        if !keys.contains(&member.key) {
            return Err(member.unknown(keys));
        }
        draft.set(member.key, &value(&member)?, member.file.spot(member.node.line));
    }
    Ok(())
}

/// Up to a year.
const MOST_MINUTES: u32 = 525_600;

fn value(at: &ForeignValue<'_>) -> Result<String, ConfigError> {
    match at.key {
        "auto_review" => at.flag().map(|flag| flag.to_string()),
        "max_review_cycles" => at.whole_number(1, 1000, "").map(|number| number.to_string()),
        "model" | "review_model" => at.text("the name of a model").map(quoted),
        _ => at.whole_number(1, MOST_MINUTES, "").map(|number| number.to_string()),
    }
}
