//! `signoff workflow`: presets, and errors in workflow files.

use signoff_testkit::ProgramOutput;

use crate::test_env;

#[test]
fn the_presets_are_listed() {
    let env = test_env();
    insta::assert_snapshot!(env.run(&["workflow", "list"]), @r"
    exit 0
    --- stdout
    task    one task: implement, review, improve until approved
    slots   up to N tasks at once from a tracker, each reviewed and fixed in its slot
    plan    the tasks of a plan in order, each reviewed against the spec and for its code at once
    loops   a specification split into groups of tasks, all loops of a group at once, each with its reviewer
    phases  think, plan, have the plan reviewed, implement, review, test, simplify, review the whole
    ");
    let listed = env.run(&["workflow", "list", "--json"]).json();
    let names: Vec<_> = listed["presets"].as_array().unwrap().iter().map(|preset| &preset["name"]).collect();
    assert_eq!(names, ["task", "slots", "plan", "loops", "phases"]);
}

#[test]
fn a_preset_is_shown_phase_by_phase() {
    insta::assert_snapshot!(test_env().run(&["workflow", "show", "plan"]), @"
    exit 0
    --- stdout
    plan — the tasks of a plan in order, each reviewed against the spec and for its code at once
      arrangement             chain: one task after the other, each on top of the one before
      completion              exit: the task is done when its agent exits successfully
      landing                 none: signed-off work stays on its branch
      max_attempts            50, then failed
      max_passes              10
      max_recoveries          5
      max_conflicts           3

    phases
      1. implement — agent (implement)
      2. review — gate
           reviewers               spec (spec, xml) ∥ code (code, xml)
           fail_on                 MEDIUM
           on_failure              mini-loop
           max_cycles              3 (3 reviews, 2 fixes)
           on_exhausted            ask
           on_unclear              retry, ask
           on_reviewer_failure     retry, ask
           on_fixer_failure        ask
           on_implementer_failure  ask
           on_discussion           ask
           author_output           no
           parallel_fixes          no
           review_timeout          3m
           rereview                full
           depth                   standard
           max_same_finding        off
           max_noop_fixes          off
           restart_to              implement
    ");
}

#[test]
fn every_preset_can_be_shown_for_people_and_for_programs() {
    let env = test_env();
    for preset in ["task", "slots", "plan", "loops", "phases"] {
        let shown = env.run(&["workflow", "show", preset]);
        assert_eq!(shown.code, Some(0), "{shown}");
        assert!(shown.stdout.contains(preset), "{shown}");
        let json = env.run(&["workflow", "show", preset, "--json"]).json();
        assert_eq!((&json["version"], &json["name"]), (&1.into(), &preset.into()));
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

#[test]
fn a_valid_workflow_file_is_reported_as_valid() {
    let env = test_env();
    env.write("mine.toml", MINE);
    insta::assert_snapshot!(env.run(&["workflow", "check", "mine.toml"]), @r"
    exit 0
    --- stdout
    mine.toml: workflow mine is valid: write, read
    ");
    let checked = env.run(&["workflow", "check", "mine.toml", "--json"]).json();
    assert_eq!(checked["workflows"][0]["name"], "mine");
}

#[test]
fn mistakes_in_a_workflow_are_named_with_their_line() {
    insta::assert_snapshot!(check_with("kind = \"gate\"", "kind = \"gait\""), @r#"
    exit 2
    --- stderr
    error: `kind` is "gait": expected agent, gate or check
      --> mine.toml:14
    hint: `signoff workflow show task` shows the keys of a workflow
    "#);
    insta::assert_snapshot!(check_with("reviewers = [\"careful\"]", "reviewers = []"), @r#"
    exit 2
    --- stderr
    error: gate without reviewers: `read` needs `reviewers = ["…"]`; expected some of careful, or write a [reviewers.NAME] table for another
      --> mine.toml:15
    hint: `signoff workflow show task` shows the keys of a workflow
    "#);
    insta::assert_snapshot!(check_with("reviewers = [\"careful\"]", "reviewers = [\"careless\"]"), @"
    exit 2
    --- stderr
    error: unknown reviewer `careless`: expected some of careful, or write a [reviewers.NAME] table for another
      --> mine.toml:15
    hint: `signoff workflow show task` shows the keys of a workflow
    ");
    insta::assert_snapshot!(check_with("max_cycles = 2", "max_cycels = 2"), @"
    exit 2
    --- stderr
    error: unknown key `max_cycels` in a gate: did you mean `max_cycles`?
      --> mine.toml:17
    hint: `signoff workflow show task` shows the keys of a workflow
    ");
    insta::assert_snapshot!(check_with("max_cycles = 2", "restart_to = \"nowhere\""), @r"
    exit 2
    --- stderr
    error: restart target: unknown phase `nowhere`, expected a phase before `read`: write
      --> mine.toml:17
    hint: `signoff workflow show task` shows the keys of a workflow
    ");
    insta::assert_snapshot!(check_with("[[phases]]", "[[phases"), @"
    exit 2
    --- stderr
    error: this is not TOML: unclosed list table, expected `]]`
      --> mine.toml:8
    hint: `signoff workflow show task` shows the keys of a workflow
    ");
}

/// Checks the workflow below with one change.
fn check_with(from: &str, to: &str) -> ProgramOutput {
    let env = test_env();
    env.write("mine.toml", MINE.replacen(from, to, 1));
    env.run(&["workflow", "check", "mine.toml"])
}

const MINE: &str = "\
name = \"mine\"
description = \"write it, have it read once more\"

[reviewers.careful]
kind = \"code\"
contract = \"markdown\"

[[phases]]
name = \"write\"
kind = \"agent\"

[[phases]]
name = \"read\"
kind = \"gate\"
reviewers = [\"careful\"]
on_failure = \"mini-loop\"
max_cycles = 2
";
