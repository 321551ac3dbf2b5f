//! Checks that `docs/guide/src/reference/configuration.md` lists every key and variable and that its example parses.

use std::collections::BTreeSet;

use signoff_core::settings::{AgentKind, variables};
use strum::VariantNames;

use crate::config::{TABLES, configured, known_keys};

const GUIDE: &str = include_str!("../../../../docs/guide/src/reference/configuration.md");

/// The first cells of the table under a heading.
fn documented(heading: &str) -> BTreeSet<&'static str> {
    let start = format!("{heading}\n");
    let section = GUIDE.split("\n### ").find(|section| section.starts_with(&start));
    let section = section.unwrap_or_else(|| panic!("a section {heading:?}"));
    section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

#[test]
fn the_guide_names_every_key_and_no_other() {
    for (table, above) in TABLES {
        let documented = documented(&format!("Keys of {table}")).into_iter().map(str::to_owned);
        let mut known = known_keys(above);
        // The keys of gates have a table of their own in the guide.
        if table == "[presets.NAME]" {
            known = &known - &known_keys("[gate]");
        }
        assert_eq!(documented.collect::<BTreeSet<_>>(), known, "{table}");
    }
}

#[test]
fn the_guide_names_every_variable_and_every_kind_of_agent() {
    let section = GUIDE.split("\n## ").find(|section| section.starts_with("Variables\n")).expect("variables");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | `"));
    let rows = rows.filter_map(|(name, rest)| Some((name, rest.split('`').next()?)));
    let known = variables().iter().map(|variable| (variable.name.as_str(), variable.key.as_str()));
    assert_eq!(rows.collect::<Vec<_>>(), known.collect::<Vec<_>>());
    for kind in AgentKind::VARIANTS {
        assert!(GUIDE.contains(&format!("`\"{kind}\"`")), "{kind}");
    }
}

#[test]
fn the_example_has_every_table_and_can_be_read() {
    let example = GUIDE.split("```toml file=signoff.toml\n").nth(2).and_then(|rest| rest.split("```").next());
    let example = example.expect("the second of two");
    let settings = configured(example);
    assert_eq!(settings.workflow_names().last(), Some(&"quick"));
    for table in [
        "agents",
        "roles",
        "reviewers",
        "gate",
        "presets",
        "defaults",
        "task_types",
        "limits",
        "prices",
        "checks",
        "prompts",
        "worktree",
        "notify",
        "workflows",
    ] {
        let written = example.lines().any(|line| line.starts_with(&format!("[{table}")));
        assert!(written, "{table}");
    }
}
