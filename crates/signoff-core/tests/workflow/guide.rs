//! `docs/guide/src/reference/workflows.md` stays true: it names every key, and its examples can be read.

use std::collections::BTreeSet;

use signoff_core::workflow::{PRESETS, keys, parse};

const GUIDE: &str = include_str!("../../../../docs/guide/src/reference/workflows.md");

/// The first cells of the tables under a heading.
fn documented(heading: &str) -> BTreeSet<&str> {
    let section = GUIDE.split("\n### ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("a section {heading:?}"));
    let section = section.split("\n## ").next().unwrap_or(section);
    let cell = |line: &'static str| line.strip_prefix("| `").and_then(|rest| rest.split('`').next());
    section.lines().filter_map(cell).collect()
}

#[test]
fn the_guide_names_every_key_and_no_other() {
    for (table, keys) in keys() {
        assert_eq!(documented(&format!("Keys of a{}", suffix(table))), keys.into_iter().collect(), "{table}");
    }
}

fn suffix(table: &str) -> String {
    match table {
        "agent" => "n agent phase".to_owned(),
        "phase" => "ny phase".to_owned(),
        "gate" => " gate or check".to_owned(),
        other => format!(" {other}"),
    }
}

#[test]
fn the_guide_describes_every_preset() {
    for name in PRESETS {
        assert!(GUIDE.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn the_examples_of_the_guide_can_be_read() {
    let blocks: Vec<_> =
        GUIDE.split("```toml\n").skip(1).filter_map(|rest| rest.split_once("```").map(|(block, _)| block)).collect();
    assert!(blocks.len() >= 2, "a whole file and one inside signoff.toml");
    for block in blocks {
        let workflows =
            parse("docs/guide/src/reference/workflows.md", block).unwrap_or_else(|error| panic!("{error}\n{block}"));
        assert!(!workflows.is_empty());
    }
}
