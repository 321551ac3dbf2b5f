//! TOML with `reviewEnabled` and the like, which `signoff.toml` has in the same words.

use toml::de::DeTable;

use super::super::ConfigError;
use super::super::tables::Written;
use super::super::value::{Text, Whole};
use super::draft::{Draft, quoted};
use super::{File, Translated};
use crate::workflow::problem::{Place, nearest};
use crate::workflow::table::{Checked, Table};

const KEYS: [&str; 4] =
    ["reviewEnabled", "reviewMaxFixAttempts", "developerPromptPath", "reviewerPromptPath"];

pub fn translate(file: File<'_>) -> Result<Translated, ConfigError> {
    let place = Place { file: file.name, text: file.text };
    let entries = DeTable::parse(file.text).map_err(|error| place.unreadable(&error))?;
    let whole = Table::whole(place, entries.get_ref());
    let (mut draft, mut notes) = (Draft::default(), Vec::new());
    for key in whole.names() {
        match value(&whole, key)? {
            Some(value) => {
                let line = whole.error(key, "").line;
                draft.set(key, &value, file.spot(line));
            }
            None => notes.push(left_out(&whole, key)?),
        }
    }
    Ok(Translated { layer: draft.layer(file.name), notes, migrated: None })
}

/// What a key says, if it is one of ours.
fn value(whole: &Table<'_>, key: &str) -> Checked<Option<String>> {
    Ok(match key {
        "reviewEnabled" => whole.get::<bool>(key)?.map(|flag| flag.to_string()),
        "reviewMaxFixAttempts" => whole.get::<Whole<0, 1000>>(key)?.map(|number| number.0.to_string()),
        "developerPromptPath" | "reviewerPromptPath" => {
            whole.get::<Text>(key)?.map(|path| quoted(path.as_str()))
        }
        _ => None,
    })
}

/// Other keys of such files are about other things, but for a slip of the pen.
fn left_out(whole: &Table<'_>, key: &str) -> Checked<String> {
    match nearest(key, &KEYS) {
        Some(meant) => Err(whole.error(key, format!("unknown key `{key}`: did you mean `{meant}`?"))),
        None if Written::KEYS.contains(&key) => Ok(format!(
            "`{key}` is left out: it is a key of signoff.toml itself, which `signoff configure --set` sets"
        )),
        None => Ok(format!("`{key}` has no meaning here and is left out")),
    }
}
