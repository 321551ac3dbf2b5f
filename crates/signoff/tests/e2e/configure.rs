//! `signoff configure`: set keys by name, show phases, import files of other programs, and reset.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use signoff_testkit::TestProject;

use crate::PROGRAM;

mod dialogue;

/// A repository with a configuration file that has comments.
fn project() -> TestProject {
    let project = TestProject::new(PROGRAM);
    project.env.write("signoff.toml", FILE);
    project
}

const FILE: &str = r#"# Ours. Ask Ann.
jobs = 2 # enough

[agents.claude]
model = "opus"

# How strict we are.
[presets.phases.gates.code_review]
max_cycles = 3 # three rounds
"#;

#[test]
fn keys_are_set_and_the_rest_of_the_file_stays() {
    let project = project();
    insta::assert_snapshot!(project.run(&[
        "configure", "--set", "presets.phases.gates.code_review.max_fixes=5", "--set", "jobs = 8",
        "--set", "preset=loops", "--set", r#"agents.mine.command=["./a", "b"]"#, "--set", "agents.mine.kind=command",
        "--set", "roles.implement=claude", "--set", "agents.mine.env.TOKEN=secret",
    ]), @r#"
    exit 0
    --- stdout
    wrote signoff.toml
      presets.phases.gates.code_review.max_cycles: 3 → (not set)
      presets.phases.gates.code_review.max_fixes: (not set) → 5
      jobs: 2 → 8
      preset: (not set) → "loops"
      agents.mine.command: (not set) → ["./a", "b"]
      agents.mine.kind: (not set) → "command"
      roles.implement: (not set) → "claude"
      agents.mine.env.TOKEN: (not set) → (hidden)
    "#);
    insta::assert_snapshot!(project.read("signoff.toml"), @r#"
    # Ours. Ask Ann.
    jobs = 8 # enough
    preset = "loops"

    [agents.claude]
    model = "opus"

    [agents.mine]
    command = ["./a", "b"]
    kind = "command"

    [agents.mine.env]
    TOKEN = "secret"

    # How strict we are.
    [presets.phases.gates.code_review]
    max_fixes = 5 # three rounds

    [roles]
    implement = "claude"
    "#);
    assert_eq!(project.list("."), [".git", "README.md", "signoff.toml"]);
}

#[test]
fn a_missing_file_is_created_and_an_unchanged_file_is_not_written() {
    let project = TestProject::new(PROGRAM);
    insta::assert_snapshot!(project.env.shell("mkdir -p below && cd below && signoff configure --set jobs=8"), @"
    exit 0
    --- stdout
    wrote signoff.toml
      jobs: (not set) → 8
    ");
    assert_eq!(project.read("signoff.toml"), "jobs = 8\n");
    insta::assert_snapshot!(project.run(&["configure", "--set", "jobs=8", "--json"]), @r#"
    exit 0
    --- stdout
    {
      "version": 1,
      "file": "signoff.toml",
      "written": false,
      "backup": null,
      "changes": [],
      "notes": []
    }
    "#);
}

#[test]
fn an_invalid_value_is_never_written() {
    let project = project();
    for (words, snapshot) in [("jobs=many", "text"), ("preset=7", "number")] {
        let output = project.run(&["configure", "--set", "sandbox=false", "--set", words]);
        assert_eq!(output.code, Some(2), "{snapshot}: {output}");
    }
    insta::assert_snapshot!(project.run(&["configure", "--set", "preset=7"]), @"
    exit 2
    --- stderr
    error: `preset` is 7: expected the name of a workflow, one of task, slots, plan, loops, phases or your own
      --> preset
    hint: nothing was written: `signoff config` lists the settings in effect
    ");
    insta::assert_snapshot!(project.run(&["configure", "--set", "jbos=7"]), @"
    exit 2
    --- stderr
    error: unknown key `jbos` in the configuration: did you mean `jobs`?
      --> jbos
    hint: nothing was written: `signoff config` lists the settings in effect
    ");
    insta::assert_snapshot!(project.run(&["configure", "--set", "presets.phasez.max_passes=7"]), @"
    exit 2
    --- stderr
    error: unknown workflow in [presets.phasez]: did you mean `phases`?
      --> presets.phasez.max_passes
    hint: nothing was written: `signoff config` lists the settings in effect
    ");
    insta::assert_snapshot!(project.run(&["configure", "--set", "presets.phases.gates.code_review.fail_on=HIHG"]), @r#"
    exit 2
    --- stderr
    error: `fail_on` is "HIHG": expected LOW, MEDIUM, HIGH or NONE
      --> presets.phases.gates.code_review.fail_on
    hint: nothing was written: `signoff config` lists the settings in effect
    "#);
    insta::assert_snapshot!(project.run(&["configure", "--set", "agents.mine.command=[\"./a\"]"]), @"
    exit 2
    --- stderr
    error: agent `mine` has no `kind`: expected claude, codex, gemini, opencode, qwen, copilot, acp, command, checks or demo
      --> agents.mine.command
    hint: nothing was written: `signoff config` lists the settings in effect
    ");
    insta::assert_snapshot!(project.run(&["configure", "--set", "jobs"]), @"
    exit 2
    --- stderr
    error: there is no `=` in `jobs`: expected KEY=VALUE, for example jobs=8
      --> --set jobs
    hint: `signoff config` lists the keys
    ");
    insta::assert_snapshot!(project.run(&["configure", "--set", "gate.max_fixes=1", "--set", "gate.max_cycles=1"]), @"
    exit 2
    --- stderr
    error: a gate has one limit: write `max_cycles` or `max_fixes`, not both
      --> gate.max_cycles
    hint: nothing was written: `signoff config` lists the settings in effect
    ");
    assert_eq!(project.read("signoff.toml"), FILE);
}

#[test]
fn a_broken_file_can_be_repaired_by_a_key_and_is_an_error_otherwise() {
    let project = project();
    project.env.write("signoff.toml", "jobs = \"many\"\n# why\n");
    insta::assert_snapshot!(project.run(&["configure", "--set", "sandbox=false"]), @r#"
    exit 2
    --- stderr
    error: `jobs` is "many": expected a whole number from 1 to 1000
      --> signoff.toml, at the line `jobs = "many"`
    hint: nothing was written: fix that line first, or with another --set in the same command
    "#);
    insta::assert_snapshot!(project.run(&["configure", "--set", "jobs=3"]), @r#"
    exit 0
    --- stdout
    wrote signoff.toml
      jobs: "many" → 3
    "#);
    project.env.write("signoff.toml", "jobs = \n");
    insta::assert_snapshot!(project.run(&["configure", "--set", "jobs=3"]), @r#"
    exit 2
    --- stderr
    error: this is not TOML: texts must be quoted; expected lines such as jobs = 4, preset = "task" or [gate]
      --> signoff.toml:1
    hint: fix the file, then check it with `signoff config`
    "#);
    assert_eq!(project.read("signoff.toml"), "jobs = \n");
}

#[test]
fn the_phase_settings_of_the_file_can_be_set_by_key() {
    let project = project();
    insta::assert_snapshot!(project.run(&[
        "configure", "--set", "phases.5.maxRetries=3", "--set", "phases.3.maxRetries=null", "--set", "phases.8.failOnSeverity=HIGH",
    ]), @r#"
    exit 0
    --- stdout
    wrote signoff.toml
      presets.phases.gates.code_review.max_cycles: 3 → (not set)
      presets.phases.gates.code_review.max_fixes: (not set) → 3
      presets.phases.gates.plan_review.max_fixes: (not set) → "unlimited"
      presets.phases.gates.final_review.fail_on: (not set) → "HIGH"
    "#);
    insta::assert_snapshot!(project.run(&["configure", "--set", "reviewDefaults.onMaxRetries=ask"]), @r#"
    exit 0
    --- stdout
    wrote signoff.toml
      presets.phases.on_exhausted: (not set) → "ask"
    "#);
    insta::assert_snapshot!(project.run(&["configure", "--set", "phases.5.onFailure=giveup"]), @r#"
    exit 2
    --- stderr
    error: `phases.5.onFailure` is "giveup": expected mini-loop, restart, proceed or stop
      --> --set phases.5.onFailure=giveup
    hint: `signoff config` lists the keys
    "#);
    insta::assert_snapshot!(project.run(&["configure", "--set", "phases.10.onFailure=stop"]), @"
    exit 2
    --- stderr
    error: `phases.10` is not a phase: the phases are 1 Brainstorm, 2 Plan, 3 Plan Review, 4 Implement, 5 Code Review, 6 Test, 7 Simplify, 8 Final Review, 9 Codex Final
      --> --set phases.10.onFailure=stop
    hint: `signoff config` lists the keys
    ");
}

#[test]
fn every_phase_is_shown_on_one_line() {
    let project = project();
    project.env.shell("mkdir -p ~/.config/signoff; printf '[roles]\\nreview = \"claude\"\\n[presets.phases.gates.test]\\non_exhausted = \"ask\"\\n' > ~/.config/signoff/config.toml");
    project.env.write(
        "signoff.toml",
        format!("{FILE}\n[presets.phases.phase.1]\nmodel = \"haiku\"\nparallel = false\n\n[checks]\ntest = \"make\"\n"),
    );
    insta::assert_snapshot!(project.run(&["configure", "--show"]), @"
    exit 0
    --- stdout
    1 Brainstorm    agent claude, model haiku (signoff.toml:12), parallel false (signoff.toml:13)
    2 Plan          agent claude, model inherit, parallel true, researchers 3, parallelModel inherit
    3 Plan Review   agent claude (~/.config/signoff/config.toml:2), model inherit, onFailure restart, failOnSeverity LOW, maxRetries 10, onMaxRetries stop, parallelFixes true
    4 Implement     agent claude, model inherit, parallel false
    5 Code Review   agent claude (~/.config/signoff/config.toml:2), model inherit, onFailure mini-loop, failOnSeverity LOW, maxRetries 2 (signoff.toml:9), onMaxRetries stop, parallelFixes true
    6 Test          commands test, onFailure restart, maxRetries 10, onMaxRetries ask (~/.config/signoff/config.toml:4), parallelFixes true
    7 Simplify      agent claude, model inherit, parallel false
    8 Final Review  agent claude (~/.config/signoff/config.toml:2), model inherit, onFailure restart, failOnSeverity LOW, maxRetries 10, onMaxRetries stop, parallelFixes true
    9 Codex Final   agent claude (~/.config/signoff/config.toml:2), model inherit, onFailure proceed, failOnSeverity LOW, maxRetries 10, onMaxRetries stop, parallelFixes true
    ");
    let json = project.run(&["configure", "--show", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["phases"].as_array().unwrap().len(), 9);
    insta::assert_snapshot!(serde_json::to_string_pretty(&json["phases"][5]).unwrap(), @r#"
    {
      "number": 6,
      "name": "Test",
      "settings": [
        {
          "name": "commands",
          "value": [
            "test"
          ],
          "origin": {
            "from": "default"
          }
        },
        {
          "name": "onFailure",
          "value": "restart",
          "origin": {
            "from": "preset",
            "name": "phases"
          }
        },
        {
          "name": "maxRetries",
          "value": 10,
          "origin": {
            "from": "preset",
            "name": "phases"
          }
        },
        {
          "name": "onMaxRetries",
          "value": "ask",
          "origin": {
            "from": "person",
            "file": "~/.config/signoff/config.toml",
            "line": 4
          }
        },
        {
          "name": "parallelFixes",
          "value": true,
          "origin": {
            "from": "preset",
            "name": "phases"
          }
        }
      ]
    }
    "#);
}

#[test]
fn the_phases_are_shown_before_anything_is_configured() {
    let project = TestProject::new(PROGRAM);
    insta::assert_snapshot!(project.run(&["configure", "--show"]), @"
    exit 0
    --- stdout
    1 Brainstorm    model inherit, parallel true, researchers 3, parallelModel inherit
    2 Plan          model inherit, parallel true, researchers 3, parallelModel inherit
    3 Plan Review   model inherit, onFailure restart, failOnSeverity LOW, maxRetries 10, onMaxRetries stop, parallelFixes true
    4 Implement     model inherit, parallel false
    5 Code Review   model inherit, onFailure mini-loop, failOnSeverity LOW, maxRetries 10, onMaxRetries stop, parallelFixes true
    6 Test          commands as found, onFailure restart, maxRetries 10, onMaxRetries stop, parallelFixes true
    7 Simplify      model inherit, parallel false
    8 Final Review  model inherit, onFailure restart, failOnSeverity LOW, maxRetries 10, onMaxRetries stop, parallelFixes true
    9 Codex Final   model inherit, onFailure proceed, failOnSeverity LOW, maxRetries 10, onMaxRetries stop, parallelFixes true
    ");
}

#[test]
fn reset_keeps_other_settings_and_a_copy() {
    let project = project();
    insta::assert_snapshot!(project.run(&["configure", "--reset"]), @"
    exit 0
    --- stdout
    kept the old signoff.toml as signoff.toml.bak
    wrote signoff.toml
      presets.phases.gates.code_review.max_cycles: 3 → (not set)
    ");
    insta::assert_snapshot!(project.read("signoff.toml"), @r#"
    # Ours. Ask Ann.
    jobs = 2 # enough

    [agents.claude]
    model = "opus"
    "#);
    assert_eq!(project.read("signoff.toml.bak"), FILE);
    insta::assert_snapshot!(project.run(&["configure", "--reset"]), @"
    exit 0
    --- stdout
    signoff.toml already has these values; nothing was written
    ");
    project.env.write("signoff.toml", FILE);
    insta::assert_snapshot!(project.run(&["configure", "--reset", "--json"]), @r#"
    exit 0
    --- stdout
    {
      "version": 1,
      "file": "signoff.toml",
      "written": true,
      "backup": "signoff.toml.bak2",
      "changes": [
        {
          "key": "presets.phases.gates.code_review.max_cycles",
          "old": "3",
          "new": null
        }
      ],
      "notes": []
    }
    "#);
    assert_eq!(project.list("."), [".git", "README.md", "signoff.toml", "signoff.toml.bak", "signoff.toml.bak2"]);
}

#[test]
fn phase_settings_in_other_files_still_apply() {
    let project = project();
    project.env.write(".claude/iterate-config.local.json", r#"{"version": 2, "phases": {"5": {"onFailure": "stop"}}}"#);
    project.env.shell(
        "mkdir -p ~/.config/signoff; printf '[presets.phases]\\nmax_fixes = 4\\n' > ~/.config/signoff/config.toml",
    );
    insta::assert_snapshot!(project.run(&["configure", "--reset"]), @"
    exit 0
    --- stdout
    kept the old signoff.toml as signoff.toml.bak
    wrote signoff.toml
      presets.phases.gates.code_review.max_cycles: 3 → (not set)
    --- stderr
    .claude/iterate-config.local.json still contains settings of the phases
    ~/.config/signoff/config.toml still contains settings of the phases
    ");
    insta::assert_snapshot!(project.run(&["configure", "--reset", "--global"]), @"
    exit 0
    --- stdout
    kept the old ~/.config/signoff/config.toml as config.toml.bak
    wrote ~/.config/signoff/config.toml
      presets.phases.max_fixes: 4 → (not set)
    --- stderr
    .claude/iterate-config.local.json still contains settings of the phases
    ");
    assert_eq!(project.env.shell("cat ~/.config/signoff/config.toml").stdout, "");
}

#[test]
fn files_of_other_programs_are_imported() {
    let project = project();
    project.env.write(
        "iterate.json",
        r#"{
  "version": 2,
  "reviewDefaults": { "maxRetries": 7 },
  "phases": { "5": { "onFailure": "restart", "maxRetries": 4 }, "8": { "failOnSeverity": "HIGH" } }
}
"#,
    );
    project.env.write("gza.yaml", "defaults:\n  auto_review: true\ntask_types:\n  implement:\n    model: opus\n");
    project.env.write("slots.toml", "reviewEnabled = true\nreviewMaxFixAttempts = 2\nworkers = 3\n");
    let dry = project.run(&["configure", "--import", "iterate.json", "--dry-run"]);
    insta::assert_snapshot!(dry, @r#"
    exit 0
    --- stdout
    # Ours. Ask Ann.
    jobs = 2 # enough

    [agents.claude]
    model = "opus"

    [presets.phases]
    max_fixes = 7 # iterate.json:3

    # How strict we are.
    [presets.phases.gates.code_review]
    on_failure = "restart" # iterate.json:4
    max_fixes = 4 # three rounds

    [presets.phases.gates.final_review]
    fail_on = "HIGH" # iterate.json:4
    "#);
    assert_eq!(project.read("signoff.toml"), FILE);
    insta::assert_snapshot!(project.run(&["configure", "--import", "iterate.json"]), @r#"
    exit 0
    --- stdout
    kept the old signoff.toml as signoff.toml.bak
    wrote signoff.toml
      presets.phases.max_fixes: (not set) → 7
      presets.phases.gates.code_review.on_failure: (not set) → "restart"
      presets.phases.gates.code_review.max_cycles: 3 → (not set)
      presets.phases.gates.code_review.max_fixes: (not set) → 4
      presets.phases.gates.final_review.fail_on: (not set) → "HIGH"
    "#);
    assert_eq!(project.read("signoff.toml"), dry.stdout);
    insta::assert_snapshot!(project.run(&["configure", "--import", "gza.yaml"]), @r#"
    exit 0
    --- stdout
    kept the old signoff.toml as signoff.toml.bak2
    wrote signoff.toml
      defaults.auto_review: (not set) → true
      task_types.implement.model: (not set) → "opus"
    "#);
    insta::assert_snapshot!(project.run(&["configure", "--import", "slots.toml"]), @"
    exit 0
    --- stdout
    kept the old signoff.toml as signoff.toml.bak3
    wrote signoff.toml
      reviewEnabled: (not set) → true
      reviewMaxFixAttempts: (not set) → 2
    --- stderr
    `workers` is ignored: not a signoff setting
    ");
    insta::assert_snapshot!(project.run(&["configure", "--import", "slots.toml"]), @"
    exit 0
    --- stdout
    signoff.toml already has these values; nothing was written
    --- stderr
    `workers` is ignored: not a signoff setting
    ");
    insta::assert_snapshot!(project.read("signoff.toml"), @r#"
    # Ours. Ask Ann.
    jobs = 2 # enough
    reviewEnabled = true # slots.toml:1
    reviewMaxFixAttempts = 2 # slots.toml:2

    [agents.claude]
    model = "opus"

    [presets.phases]
    max_fixes = 7 # iterate.json:3

    # How strict we are.
    [presets.phases.gates.code_review]
    on_failure = "restart" # iterate.json:4
    max_fixes = 4 # three rounds

    [presets.phases.gates.final_review]
    fail_on = "HIGH" # iterate.json:4

    [defaults]
    auto_review = true # gza.yaml:2

    [task_types.implement]
    model = "opus" # gza.yaml:5
    "#);
    assert!(project.read("iterate.json").starts_with("{\n"));
}

#[test]
fn an_old_file_is_imported_with_its_present_meaning() {
    let project = TestProject::new(PROGRAM);
    project.env.write("old.json", r#"{"version": 1, "phases": {"1": {"model": "opus", "parallel": true}}}"#);
    insta::assert_snapshot!(project.run(&["configure", "--import", "old.json"]), @r#"
    exit 0
    --- stdout
    wrote signoff.toml
      presets.phases.phase.1.model: (not set) → "opus"
      presets.phases.phase.1.parallel: (not set) → true
    --- stderr
    old.json is of version 1: it is read as version 2
    "#);
    insta::assert_snapshot!(project.read("signoff.toml"), @r#"
    [presets.phases.phase.1]
    model = "opus" # old.json:1
    parallel = true # old.json:1
    "#);
}

#[test]
fn settings_that_cannot_be_imported_are_reported() {
    let project = project();
    project.env.write("bad.json", "{\n  \"version\": 2,\n  \"phases\": { \"5\": { \"maxRetries\": \"ten\" } }\n}\n");
    project.env.write("what.txt", "hello\n");
    insta::assert_snapshot!(project.run(&["configure", "--import", "bad.json"]), @r#"
    exit 2
    --- stderr
    error: `phases.5.maxRetries` is "ten": expected a whole number from 0 to 4294967295, or null for no limit
      --> bad.json:3
    hint: fix the file, then check it with `signoff config`
    "#);
    insta::assert_snapshot!(project.run(&["configure", "--import", "what.txt"]), @"
    exit 2
    --- stderr
    error: cannot detect the format of what.txt
      --> what.txt
    hint: expected gza.yaml, TOML with keys such as reviewEnabled, or an iterate-config.json
    ");
    insta::assert_snapshot!(project.run(&["configure", "--import", "gone.json"]), @"
    exit 2
    --- stderr
    error: cannot read gone.json: No such file or directory (os error 2)
      --> gone.json
    hint: check the path and its permissions
    ");
    insta::assert_snapshot!(project.run(&["configure", "--import", "signoff.toml"]), @"
    exit 2
    --- stderr
    error: signoff.toml is the file that would be written
    hint: name another one
    ");
    assert_eq!(project.read("signoff.toml"), FILE);
}

#[test]
fn without_a_terminal_it_prints_the_command_to_type() {
    let project = project();
    insta::assert_snapshot!(project.run(&["configure"]), @"
    exit 2
    --- stderr
    error: there is no terminal to ask on
    hint: set a key: signoff configure --set presets.phases.gates.code_review.max_fixes=5
    ");
    for flags in [
        &["--show", "--reset"][..],
        &["--set", "a=1", "--reset"],
        &["--import", "a", "--set", "b=1"],
        &["--show", "--dry-run"],
        &["--dry-run"],
        &["--show", "--global"],
    ] {
        let output = project.run(&[&["configure"], flags].concat());
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{flags:?}");
    }
    let outside = crate::test_env();
    insta::assert_snapshot!(outside.run(&["configure", "--set", "jobs=3"]), @"
    exit 2
    --- stderr
    error: this is not a git repository
    hint: cd into a repository, or use --global to change your own file
    ");
}

#[test]
fn a_persons_own_file_is_changed_and_overriding_files_are_named() {
    let project = project();
    insta::assert_snapshot!(project.run(&["configure", "--global", "--set", "jobs=9", "--set", "no_ask=true"]), @"
    exit 0
    --- stdout
    wrote ~/.config/signoff/config.toml
      jobs: (not set) → 9
      no_ask: (not set) → true
    --- stderr
    `jobs` is also set by signoff.toml:2, which overrides it
    ");
    assert_eq!(project.env.shell("cat ~/.config/signoff/config.toml").stdout, "jobs = 9\nno_ask = true\n");
    assert_eq!(project.read("signoff.toml"), FILE);
}

#[test]
fn a_link_stays_a_link_and_permissions_are_kept() {
    let project = project();
    let [file, real] = ["signoff.toml", "real.toml"].map(|name| project.env.work().join(name));
    fs::rename(&file, &real).unwrap();
    symlink("real.toml", &file).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    project.run(&["configure", "--set", "jobs=9"]);
    assert!(file.symlink_metadata().unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("jobs = 9"));
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    fs::remove_file(&real).unwrap();
    insta::assert_snapshot!(project.run(&["configure", "--set", "jobs=9"]), @"
    exit 2
    --- stderr
    error: cannot read [ROOT]/work/signoff.toml: No such file or directory (os error 2)
      --> [ROOT]/work/signoff.toml
    hint: check the path and its permissions
    ");
    fs::remove_file(&file).unwrap();
    fs::write(&file, FILE).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    insta::assert_snapshot!(project.run(&["configure", "--set", "jobs=9"]), @"
    exit 1
    --- stderr
    error: cannot write [ROOT]/work/signoff.toml: it is read-only
    hint: make it writable, then run the command again
    ");
    assert_eq!(project.read("signoff.toml"), FILE);
}

/// Killed before the rename: the old file is complete, and the next call succeeds.
#[test]
fn a_kill_leaves_the_old_file_complete() {
    let project = project();
    let killed = project.env.run_with(&["configure", "--set", "jobs=9"], &[("SIGNOFF_FAILPOINT", "replace:1")]);
    assert_eq!(killed.code, None, "{killed}");
    assert_eq!(project.read("signoff.toml"), FILE);
    assert_eq!(project.run(&["configure", "--set", "jobs=9"]).code, Some(0));
    assert_eq!(project.read("signoff.toml"), FILE.replace("jobs = 2", "jobs = 9"));
    assert_eq!(project.list("."), [".git", "README.md", "signoff.toml"]);
}

/// Concurrent calls: every change is in the file in the end.
#[test]
fn concurrent_changes_are_not_lost() {
    let project = project();
    let set = |number: usize| {
        let output = project.run(&["configure", "--set", &format!("agents.claude.env.V{number}=v{number}")]);
        assert_eq!(output.code, Some(0), "{output}");
    };
    for round in 0..3 {
        std::thread::scope(|scope| {
            (0..6).for_each(|number| drop(scope.spawn(move || set(round * 6 + number))));
        });
    }
    let text = project.read("signoff.toml");
    let missing: Vec<_> = (0..18).filter(|number| !text.contains(&format!("V{number} = \"v{number}\""))).collect();
    assert!(missing.is_empty(), "{missing:?} of {text}");
    assert_eq!(project.list("."), [".git", "README.md", "signoff.toml"]);
}

#[test]
fn a_leftover_draft_is_private_and_removed_by_the_next_call() {
    let project = project();
    let mode =
        |name: &str| project.env.work().join(name).metadata().map(|found| found.permissions().mode() & 0o777).ok();
    project.env.shell("chmod 600 signoff.toml");
    for point in ["half_written:1", "replace:1"] {
        project.env.run_with(&["configure", "--set", "jobs=9"], &[("SIGNOFF_FAILPOINT", point)]);
        assert_eq!(mode("signoff.toml.signoff-draft"), Some(0o600), "{point}");
    }
    assert_eq!(project.run(&["configure", "--set", "jobs=9"]).code, Some(0));
    assert_eq!(project.read("signoff.toml"), FILE.replace("jobs = 2", "jobs = 9"));
    assert_eq!(mode("signoff.toml"), Some(0o600));
    assert_eq!(project.list("."), [".git", "README.md", "signoff.toml"]);
}

#[test]
fn a_read_only_file_gets_no_copy() {
    let project = project();
    project.env.write("theirs.toml", "reviewEnabled = true\n");
    project.env.shell("chmod 444 signoff.toml");
    for way in [&["configure", "--reset"][..], &["configure", "--import", "theirs.toml"]] {
        let output = project.run(way);
        assert_eq!(output.code, Some(1), "{output}");
    }
    assert_eq!(project.list("."), [".git", "README.md", "signoff.toml", "theirs.toml"]);
}

#[test]
fn the_origin_of_an_imported_value_is_updated() {
    let project = project();
    project.env.write("a.toml", "reviewEnabled = true\n");
    project.env.write("b.toml", "\n\nreviewEnabled = false\n");
    project.run(&["configure", "--import", "a.toml"]);
    assert!(project.read("signoff.toml").contains("= true # a.toml:1"), "{}", project.read("signoff.toml"));
    project.run(&["configure", "--import", "b.toml"]);
    assert!(project.read("signoff.toml").contains("= false # b.toml:3"), "{}", project.read("signoff.toml"));
}

/// Keys that override each other, within a file and between files.
#[test]
fn a_key_that_another_key_overrides_is_reported() {
    let project = project();
    project.env.write(".claude/iterate-config.local.json", r#"{"version": 2, "phases": {"3": {"maxRetries": 6}}}"#);
    project.env.write(
        "signoff.toml",
        "[agents.claude]\n[gate]\nmax_cycles = 3\n[presets.phases.phase.3]\nagent = \"claude\"\n\
         [presets.phases.gates.code_review]\nmax_cycles = 2\n",
    );
    let stderr = |words: &[&str]| project.run(&[&["configure"], words].concat()).stderr;
    insta::assert_snapshot!(stderr(&["--global", "--set", "presets.phases.gates.code_review.max_fixes=5"]), @"`presets.phases.gates.code_review.max_cycles` is set by signoff.toml:7, which overrides `presets.phases.gates.code_review.max_fixes`");
    insta::assert_snapshot!(stderr(&["--global", "--set", "presets.phases.phase.plan_review.tool=mcp__codex"]), @"`presets.phases.phase.plan_review.agent` is set by signoff.toml:5, which overrides `presets.phases.phase.plan_review.tool`");
    insta::assert_snapshot!(stderr(&["--set", "presets.phases.max_fixes=8"]), @"
    `presets.phases.gates.plan_review.max_fixes` is set by .claude/iterate-config.local.json:1, which overrides `presets.phases.max_fixes`
    `presets.phases.gates.code_review.max_cycles` is set by signoff.toml:10, which overrides `presets.phases.max_fixes`
    ");
    insta::assert_snapshot!(stderr(&["--set", "presets.phases.gates.final_review.max_fixes=5", "--set", "jobs=3"]), @"");
    project.env.write("theirs.yaml", "defaults:\n  max_review_cycles: 7\n");
    insta::assert_snapshot!(stderr(&["--import", "theirs.yaml"]), @"`gate.max_cycles` is set by signoff.toml:5, which overrides `defaults.max_review_cycles`");
    insta::assert_snapshot!(stderr(&["--set", "preset=phases", "--set", "defaults.max_review_cycles=4"]), @"`defaults.max_review_cycles` applies only to workflows with one gate; `phases` has none or several");
}

#[test]
fn reset_keeps_the_agents_of_the_phases() {
    let project = project();
    project.env.write("signoff.toml", format!("{FILE}\n[roles]\nimplement = \"claude\"\n"));
    insta::assert_snapshot!(project.run(&["configure", "--reset"]), @"
    exit 0
    --- stdout
    kept the old signoff.toml as signoff.toml.bak
    wrote signoff.toml
      presets.phases.gates.code_review.max_cycles: 3 → (not set)
    ");
}

#[test]
fn a_file_that_belongs_to_no_other_program_is_refused() {
    let project = project();
    project.env.write("t.toml", "jobs = 3\n");
    insta::assert_snapshot!(project.run(&["configure", "--import", "t.toml"]), @"
    exit 2
    --- stderr
    error: t.toml is not a file of another program
      --> t.toml
    hint: expected TOML with keys such as reviewEnabled; keys of signoff.toml are set with --set KEY=VALUE
    ");
    project.env.write("t.toml", "jobs = 3\nreviewEnabled = true\n");
    insta::assert_snapshot!(project.run(&["configure", "--import", "t.toml"]), @"
    exit 0
    --- stdout
    kept the old signoff.toml as signoff.toml.bak
    wrote signoff.toml
      reviewEnabled: (not set) → true
    --- stderr
    `jobs` is left out: it is a key of signoff.toml itself, which `signoff configure --set` sets
    ");
}
