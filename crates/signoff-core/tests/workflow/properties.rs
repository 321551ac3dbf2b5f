//! Properties of parsing workflows and of merging gate keys.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use signoff_core::policy::{Bound, Gate};
use signoff_core::workflow::{GateKeys, PRESETS, Workflow, new_project, parse, preset, render};

use super::files;

fn every_workflow() -> Vec<Workflow> {
    let presets = PRESETS.iter().filter_map(|name| preset(name)).chain(new_project());
    presets.chain(files::good()).collect()
}

/// Every error has a line within the file.
fn read(text: &str) {
    if parse("any.toml", text).is_err() {
        let (line, message) = files::mistake("any.toml", text);
        let lines = text.lines().count().max(1);
        assert!((1..=lines).contains(&line), "{line}: {message}, of {lines} lines");
        assert!(!message.is_empty());
    }
}

/// A random edit of a file.
#[derive(Debug, Clone)]
enum Edit {
    CutAt(usize),
    Remove(usize, usize),
    Insert(usize, String),
    DoubleLine(usize),
    SwapLines(usize, usize),
}

impl Edit {
    fn apply(&self, text: &str) -> String {
        let mut letters: Vec<char> = text.chars().collect();
        let mut lines: Vec<&str> = text.lines().collect();
        let (size, height) = (letters.len() + 1, lines.len().max(1));
        match self {
            Self::CutAt(at) => letters.truncate(at % size),
            Self::Remove(at, count) => {
                let from = at % size;
                letters.drain(from..(from + count % 20).min(size - 1));
            }
            Self::Insert(at, new) => {
                let at = at % size;
                letters.splice(at..at, new.chars());
            }
            Self::DoubleLine(at) if !lines.is_empty() => {
                lines.insert(at % height, lines[at % height]);
                return lines.join("\n");
            }
            Self::SwapLines(a, b) if !lines.is_empty() => {
                lines.swap(a % height, b % height);
                return lines.join("\n");
            }
            Self::DoubleLine(_) | Self::SwapLines(..) => {}
        }
        letters.into_iter().collect()
    }
}

fn edit() -> impl Strategy<Value = Edit> {
    let token = prop::sample::select(vec![
        "\"",
        "[",
        "]",
        "{",
        "}",
        "=",
        "\n",
        "[[phases]]\n",
        "[workflows.x]\n",
        "\u{1F600}",
        "é",
        "\0",
        "-1",
        "true",
        "\"unlimited\"",
        "max_cycles = 0\n",
        "phases",
        ".",
        ",",
        "#",
        "'''",
    ]);
    prop_oneof![
        any::<usize>().prop_map(Edit::CutAt),
        any::<(usize, usize)>().prop_map(|(at, count)| Edit::Remove(at, count)),
        (any::<usize>(), token).prop_map(|(at, new)| Edit::Insert(at, new.to_owned())),
        any::<usize>().prop_map(Edit::DoubleLine),
        any::<(usize, usize)>().prop_map(|(a, b)| Edit::SwapLines(a, b)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn any_text_is_read_or_has_an_error_with_a_line(text in any::<String>()) {
        read(&text);
    }

    #[test]
    fn any_text_after_a_valid_beginning_is_too(text in ".{0,40}", key in "[a-z_]{1,20}") {
        read(&format!("name = \"x\"\n{key} = {text}\n[[phases]]\nname = \"i\"\nkind = \"agent\"\n"));
    }

    #[test]
    fn a_valid_file_after_some_edits_is_too(
        pick in any::<prop::sample::Index>(),
        edits in prop::collection::vec(edit(), 1..5),
    ) {
        let (_, text) = pick.get(&FILES);
        read(&edits.iter().fold(text.clone(), |text, edit| edit.apply(&text)));
    }

    #[test]
    fn the_last_layer_wins_key_by_key(
        below in gate_keys(), above in gate_keys(), start in any::<prop::sample::Index>(),
    ) {
        let bare: &Gate = start.get(&GATES);
        let one_by_one = merged(&above, &merged(&below, bare));
        // One layer with both, in which the upper value wins.
        let mut both = below.clone();
        if above.contains_key("max_cycles") || above.contains_key("max_fixes") {
            both.remove("max_cycles");
            both.remove("max_fixes");
        }
        both.extend(above.clone());
        prop_assert_eq!(&one_by_one, &merged(&both, bare));
        // The gate has the values of the last layer.
        let seen = serde_json::to_value(&one_by_one).expect("a gate can be written");
        for (key, value) in above.iter().filter(|(key, _)| *key != "max_cycles" && *key != "max_fixes") {
            let guard = key.starts_with("max_") && *value == json!(0);
            prop_assert_eq!(&seen[key], if guard { &Value::Null } else { value }, "{}", key);
        }
    }

    #[test]
    fn merging_the_same_keys_twice_is_idempotent(gate_keys in gate_keys()) {
        let gate = &GATES[0];
        prop_assert_eq!(merged(&gate_keys, &merged(&gate_keys, gate)), merged(&gate_keys, gate));
    }

    #[test]
    fn one_bound_removes_the_other(number in 1_u32..1000, other in 0_u32..1000) {
        let gate = &GATES[0];
        let cycles = Map::from_iter([("max_cycles".to_owned(), json!(number))]);
        let fixes = Map::from_iter([("max_fixes".to_owned(), json!(other))]);
        let (after_cycles, after_fixes) = (merged(&cycles, &merged(&fixes, gate)), merged(&fixes, &merged(&cycles, gate)));
        prop_assert_eq!(after_cycles.bound, Bound::MaxCycles(number));
        prop_assert_eq!(after_fixes.bound, Bound::MaxFixes(other));
        let seen = |gate: &Gate| serde_json::to_value(gate).expect("a gate can be written");
        prop_assert!(seen(&after_cycles).get("max_fixes").is_none());
        prop_assert!(seen(&after_fixes).get("max_cycles").is_none());
    }
}

static FILES: LazyLock<Vec<(String, String)>> = LazyLock::new(|| [files::all("good"), files::all("bad")].concat());

static GATES: LazyLock<Vec<Gate>> = LazyLock::new(gates);

fn gates() -> Vec<Gate> {
    let phases = every_workflow().into_iter().flat_map(|workflow| workflow.phases);
    phases.filter_map(|phase| phase.policy().map(|gate_policy| gate_policy.gate.clone())).collect()
}

fn merged(gate_keys: &Map<String, Value>, gate: &Gate) -> Gate {
    let gate_keys: GateKeys = serde_json::from_value(Value::Object(gate_keys.clone())).expect("valid keys");
    let mut gate = gate.clone();
    gate_keys.apply_to(&mut gate);
    gate
}

/// Some keys of a gate, each with one of the values it may have; one bound at most.
fn gate_keys() -> impl Strategy<Value = Map<String, Value>> {
    let choices: Vec<(&str, Value)> = vec![
        ("enabled", json!([true, false])),
        ("reviewers", json!([["code"], ["spec", "code"]])),
        ("fail_on", json!(["LOW", "MEDIUM", "HIGH", "NONE"])),
        ("on_failure", json!(["mini-loop", "restart", "proceed", "stop"])),
        ("on_exhausted", json!(["stop", "ask", "restart", "proceed"])),
        ("exhausted_as", json!(["attention", "failed", "stuck"])),
        ("on_unclear", json!(["request-changes", ["retry", "ask"]])),
        ("on_reviewer_failure", json!(["fail", ["retry", "not-passed"]])),
        ("on_fixer_failure", json!(["fail", "next-attempt"])),
        ("on_implementer_failure", json!(["ask", "next-attempt"])),
        ("on_discussion", json!(["ask", "stop"])),
        ("author_output", json!([true, false])),
        ("parallel_fixes", json!([true, false])),
        ("require_nonce", json!([true, false])),
        ("review_timeout", json!(["90s", "30m"])),
        ("fix_timeout", json!(["5m", "2h"])),
        ("rereview", json!(["full", "scoped"])),
        ("depth", json!(["shallow", "standard", "deep", "comprehensive"])),
        ("max_same_finding", json!([0, 3, 7])),
        ("max_noop_fixes", json!([0, 1])),
    ];
    let one = |(key, values): (&'static str, Value)| {
        let values = values.as_array().cloned().unwrap_or_default();
        prop::option::of(prop::sample::select(values)).prop_map(move |value| value.map(|v| (key.to_owned(), v)))
    };
    let bounds = prop::sample::select(vec!["max_cycles", "max_fixes"]);
    let values = prop::sample::select(vec![json!(1), json!(4), json!("unlimited")]);
    let bound = prop::option::of((bounds, values)).prop_map(|bound| bound.map(|(key, value)| (key.to_owned(), value)));
    let others: Vec<_> = choices.into_iter().map(one).collect();
    (others, bound).prop_map(|(gate_keys, bound)| gate_keys.into_iter().chain([bound]).flatten().collect())
}

#[test]
fn generated_keys_cover_all_gate_keys() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let tree = gate_keys().new_tree(&mut runner).expect("keys");
        seen.extend(tree.current().keys().cloned());
    }
    let known: std::collections::BTreeSet<_> = GateKeys::keys().into_iter().map(str::to_owned).collect();
    assert_eq!(seen, known);
}

#[test]
fn a_workflow_survives_being_written_and_read() {
    for workflow in every_workflow() {
        let written = serde_json::to_value(&workflow).expect("a workflow can be written");
        let read: Workflow = serde_json::from_value(written).expect("and read");
        assert_eq!(read, workflow, "{}", workflow.name);
        let text = serde_json::to_string(&workflow).expect("a workflow can be written");
        assert_eq!(serde_json::from_str::<Workflow>(&text).expect("and read"), workflow, "{}", workflow.name);
    }
}

#[test]
fn every_workflow_is_rendered_with_all_its_phases() {
    for workflow in every_workflow() {
        let shown = render(&workflow);
        let phases = workflow.before.iter().chain(&workflow.phases).chain(&workflow.after);
        for phase in phases {
            assert!(shown.contains(&format!(" {} — ", phase.name)), "{shown}");
        }
    }
}
