//! The configuration: layers, the settings of a task, and error messages.

mod assigned;
mod bad;
mod corpus;
mod default_gate;
#[cfg(test)]
mod dialogue;
#[cfg(test)]
mod edits;
mod foreign;
mod guide;
mod layers;
mod phases;
mod properties;
mod schema;
mod tasks;
mod workflows;

use std::collections::BTreeSet;

use signoff_core::settings::{ConfigError, Layer, Settings, read};

/// Reads one `signoff.toml`.
fn try_configured(text: &str) -> Result<Settings, ConfigError> {
    read(&[Layer::repository("signoff.toml", text)], &[], &[])
}

/// Reads one `signoff.toml` that is right.
fn configured(text: &str) -> Settings {
    try_configured(text).unwrap_or_else(|error| panic!("{error}"))
}

/// The tables of a settings file: their headings in the guide, and the message prefix before their keys.
const TABLES: [(&str, &str); 15] = [
    ("the file", ""),
    ("[agents.NAME]", "[agents.a]"),
    ("[roles]", "[roles]"),
    ("[prompts]", "[prompts]"),
    ("[reviewers.NAME]", "[reviewers.r]"),
    ("[presets.NAME]", "[presets.task]"),
    ("[presets.NAME.phase.PHASE]", "[presets.task.phase.p]"),
    ("[defaults]", "[defaults]"),
    ("[task_types.TYPE]", "[task_types.plan]"),
    ("[limits]", "[limits]"),
    ("[limits.run]", "[limits.run]"),
    ("[prices.MODEL]", "[prices.m]"),
    ("[worktree]", "[worktree]"),
    ("[notify]", "[notify]"),
    ("[notify.channels.NAME]", "[notify.channels.c]"),
];

/// The keys that can follow a text, as the message about another key lists them.
fn known_keys(above: &str) -> BTreeSet<String> {
    let message = try_configured(&format!("{above}\nzzzzzzzz = 1\n")).expect_err(above).to_string();
    let (_, keys) = message.split_once("expected some of ").unwrap_or_else(|| panic!("{message}"));
    keys.split(", ").map(str::to_owned).collect()
}
