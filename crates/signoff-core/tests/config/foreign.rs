//! Files of other programs: the TOML they become, where each value comes from, and what people are told about
//! mistakes in them.

use signoff_core::config::foreign::{File, Format, merged, translate};

const ITERATE: &str = include_str!("../../testdata/config-foreign/iterate-config.json");

/// The TOML a file becomes.
fn toml(format: Format, text: &str) -> String {
    let translated = translate(format, "file", text).unwrap_or_else(|error| panic!("{error}"));
    translated.layer.text().to_owned()
}

#[test]
fn phases_become_tables() {
    insta::assert_snapshot!(toml(Format::Iterate, ITERATE), @"");
}
