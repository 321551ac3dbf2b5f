//! `signoff workflow`.

use crate::test_env;

#[test]
fn the_presets_are_listed() {
    let env = test_env();
    insta::assert_snapshot!(env.run(&["workflow", "list"]), @r"
    exit 0
    --- stdout
    task
    slots
    plan
    loops
    phases
    ");
    let presets = &env.run(&["workflow", "list", "--json"]).json()["presets"];
    assert_eq!(presets, &serde_json::json!(["task", "slots", "plan", "loops", "phases"]));
}

#[test]
fn every_preset_can_be_shown_for_people_and_for_programs() {
    let env = test_env();
    for preset in ["task", "slots", "plan", "loops", "phases"] {
        let shown = env.run(&["workflow", "show", preset]);
        assert_eq!(shown.code, Some(0), "{shown}");
        assert!(shown.stdout.contains(preset), "{shown}");
        assert!(env.run(&["workflow", "show", preset, "--json"]).json().is_object());
    }
}

#[test]
fn an_unknown_preset_is_wrong_usage_and_names_the_known_ones() {
    insta::assert_snapshot!(test_env().run(&["workflow", "show", "slot"]), @r"
    exit 2
    --- stderr
    error: invalid value 'slot' for '<PRESET>'
      [possible values: task, slots, plan, loops, phases]

      tip: a similar value exists: 'slots'

    For more information, try '--help'.
    ");
}

#[test]
fn a_workflow_file_that_cannot_be_read_is_named() {
    let env = test_env();
    env.write("latin1.toml", b"name = \"mine\"\n# caf\xe9\n");
    insta::assert_snapshot!(env.run(&["workflow", "check", "missing.toml"]), @r"
    exit 2
    --- stderr
    error: cannot read missing.toml: No such file or directory (os error 2)
      --> missing.toml
    hint: name a TOML file that holds a workflow
    ");
    insta::assert_snapshot!(env.run(&["workflow", "check", "latin1.toml"]), @r"
    exit 2
    --- stderr
    error: latin1.toml is not UTF-8 text
      --> latin1.toml:2
    hint: save it as UTF-8
    ");
}
