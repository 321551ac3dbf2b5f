//! Checks that `docs/guide/src/reference/workflows.md` lists every key and that its examples parse.

use std::collections::BTreeSet;

use signoff_core::workflow::{PRESETS, parse};

use super::files::mistake;

const GUIDE: &str = include_str!("../../../../docs/guide/src/reference/workflows.md");

/// The first cells of the tables under a heading.
fn documented(heading: &str) -> BTreeSet<&str> {
    let section = GUIDE.split("\n### ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("a section {heading:?}"));
    let section = section.split("\n## ").next().unwrap_or(section);
    let cell = |line: &'static str| line.strip_prefix("| `").and_then(|rest| rest.split('`').next());
    section.lines().filter_map(cell).collect()
}

/// The keys that can follow a text, as the message about another key lists them.
fn known(text: &str) -> BTreeSet<String> {
    let (_, message) = mistake("w.toml", &format!("{text}\nzzzzzzzz = 1\n"));
    let (_, keys) = message.split_once("expected some of ").unwrap_or_else(|| panic!("{message}"));
    keys.split(", ").map(str::to_owned).collect()
}

#[test]
fn the_guide_names_every_key_and_no_other() {
    let phase = |kind: &str| known(&format!("[[phases]]\nname = \"p\"\nkind = \"{kind}\""));
    let any = &phase("agent") & &phase("check");
    for (heading, keys) in [
        ("workflow", known("")),
        ("reviewer", known("[reviewers.r]")),
        ("ny phase", any.clone()),
        ("n agent phase", &phase("agent") - &any),
        ("gate or check", &phase("gate") - &any),
    ] {
        let heading = if heading.starts_with('n') { heading.to_owned() } else { format!(" {heading}") };
        let heading = format!("Keys of a{heading}");
        assert_eq!(documented(&heading).into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), keys, "{heading}");
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
