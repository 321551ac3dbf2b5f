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
    insta::assert_snapshot!(toml(Format::Iterate, ITERATE), @r#"
    [presets.phases]
    fail_on = "LOW"
    max_fixes = 10
    on_exhausted = "stop"
    parallel_fixes = true

    [presets.phases.phase.1]
    model = "inherit"
    parallel = true
    parallel_model = "inherit"

    [presets.phases.phase.2]
    model = "inherit"
    parallel = true
    parallel_model = "inherit"

    [presets.phases.gates.plan_review]
    on_failure = "restart"
    fail_on = "LOW"
    max_fixes = 10
    parallel_fixes = true

    [presets.phases.phase.3]
    tool = "mcp__codex__codex"

    [presets.phases.phase.4]
    model = "inherit"
    parallel = false

    [presets.phases.gates.code_review]
    on_failure = "mini-loop"
    fail_on = "LOW"
    max_fixes = 10
    parallel_fixes = true

    [presets.phases.phase.5]
    model = "inherit"

    [presets.phases.gates.test]
    on_failure = "restart"
    max_fixes = 10

    [presets.phases.phase.6]
    model = "none"

    [presets.phases.phase.7]
    model = "inherit"
    parallel = false

    [presets.phases.gates.final_review]
    on_failure = "restart"
    fail_on = "LOW"
    max_fixes = 10
    parallel_fixes = true

    [presets.phases.phase.8]
    tool = "mcp__codex__codex"

    [presets.phases.phase.9]
    tool = "mcp__codex-high__codex"
    "#);
}
