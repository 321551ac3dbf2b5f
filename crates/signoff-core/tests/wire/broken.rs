//! Invalid log lines are refused with a reason and never panic.

use proptest::prelude::*;
use serde_json::{Value, json};
use signoff_core::view::RunState;
use signoff_core::wire::{from_json, to_json};

use crate::wire::examples;

fn line() -> Value {
    let answered = examples::all().into_iter().map(|recorded| to_json(&recorded));
    answered.into_iter().find(|value| value["kind"] == "loop.person_answered").expect("an example")
}

fn with(key: &str, value: Value) -> Value {
    let mut line = line();
    line[key] = value;
    line
}

fn without(key: &str) -> Value {
    let mut line = line();
    line.as_object_mut().expect("an object").remove(key);
    line
}

fn complaint(value: &Value) -> String {
    from_json(value).expect_err("broken").to_string()
}

#[test]
fn every_invalid_line_has_a_reason() {
    let mut inside = line();
    inside["body"]["choice"] = json!("dance");
    let mut lacking = line();
    lacking["body"].as_object_mut().expect("an object").remove("by");
    let lines = [
        with("version", json!(2)),
        with("version", json!("1")),
        without("version"),
        without("run_id"),
        with("seq", json!(-1)),
        with("at", json!("yesterday")),
        without("kind"),
        without("loop_id"),
        with("kind", json!("loop.danced")),
        with("kind", json!("run.moved")),
        with("kind", json!("moved")),
        with("kind", json!("task.added")),
        with("kind", json!("run.started")),
        with("body", Value::Null),
        with("body", json!([1])),
        inside,
        lacking,
        json!(null),
        json!([]),
        json!("version"),
    ];
    insta::assert_snapshot!(lines.iter().map(complaint).collect::<Vec<_>>().join("\n"), @"
    version 2 is newer than this program, which reads up to 1: update signoff
    `version` is missing or has the wrong type
    `version` is missing or has the wrong type
    `run_id` is missing or has the wrong type
    `seq` is missing or has the wrong type
    `at` is missing or has the wrong type
    `kind` is missing or has the wrong type
    `loop_id` is missing or has the wrong type
    unknown kind `loop.danced`
    unknown kind `run.moved`
    unknown kind `moved`
    `task_id` is missing or has the wrong type
    run.started: invalid type: map, expected unit
    loop.person_answered: invalid type: unit variant, expected struct variant
    loop.person_answered: invalid type: sequence, expected struct variant
    loop.person_answered: unknown variant `dance`, expected one of `retry`, `proceed`, `skip`, `continue`, `fix`, `restart`, `stop`
    loop.person_answered: missing field `by`
    `version` is missing or has the wrong type
    `version` is missing or has the wrong type
    `version` is missing or has the wrong type
    ");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z_.]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let key = prop_oneof![Just("attempt".to_owned()), Just("head".to_owned()), Just("by".to_owned()), "[a-z]{1,5}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key, inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// Replaces one value of a JSON tree.
fn replace(value: &mut Value, place: &mut usize, with: &Value) {
    if *place == 0 {
        *value = with.clone();
    }
    *place = place.wrapping_sub(1);
    match value {
        Value::Array(list) => list.iter_mut().for_each(|child| replace(child, place, with)),
        Value::Object(map) => map.values_mut().for_each(|child| replace(child, place, with)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_json_is_read_or_refused(value in any_json()) {
        let _ = from_json(&value);
    }

    #[test]
    fn any_body_under_any_kind_is_read_or_refused(index in any::<prop::sample::Index>(), body in any_json()) {
        let mut value = to_json(index.get(&examples::all()));
        value["body"] = body;
        if let Ok(recorded) = from_json(&value) {
            prop_assert_eq!(from_json(&to_json(&recorded)), Ok(recorded));
        }
    }

    #[test]
    fn a_fact_with_one_wrong_value_is_read_or_refused(
        index in any::<prop::sample::Index>(),
        mut place in 0usize..40,
        with in any_json(),
    ) {
        let all = examples::all();
        let mut value = to_json(index.get(&all));
        replace(&mut value, &mut place, &with);
        if let Ok(recorded) = from_json(&value) {
            prop_assert_eq!(from_json(&to_json(&recorded)), Ok(recorded.clone()));
            let mut view = RunState::from_log(&all[..1]);
            view.replay(&recorded);
            prop_assert!(view.rows().len() <= 1);
        }
    }
}
