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
mod laws;
mod layers;
mod phases;
mod schema;
mod tasks;
mod workflows;

use signoff_core::settings::{ConfigError, Layer, Settings, read};

/// Reads one `signoff.toml`.
fn try_configured(text: &str) -> Result<Settings, ConfigError> {
    read(&[Layer::repository("signoff.toml", text)], &[], &[])
}

/// Reads one `signoff.toml` that is right.
fn configured(text: &str) -> Settings {
    try_configured(text).unwrap_or_else(|error| panic!("{error}"))
}
