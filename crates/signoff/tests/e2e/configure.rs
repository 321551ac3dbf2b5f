//! `signoff configure`: keys by name, phases in a line, taking over and taking back.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use signoff_testkit::Project;

use crate::PROGRAM;

mod dialogue;

/// A repository with a file that somebody cares for.
fn project() -> Project {
    let project = Project::new(PROGRAM);
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
    ]), @"");
    insta::assert_snapshot!(project.read("signoff.toml"), @"");
    assert_eq!(project.list("."), [".git", "README.md", "signoff.toml"]);
}

#[test]
fn a_file_is_made_where_there_is_none_and_not_written_where_it_says_so_already() {
    let project = Project::new(PROGRAM);
    insta::assert_snapshot!(project.env.shell("mkdir -p below && cd below && signoff configure --set jobs=8"), @"");
    assert_eq!(project.read("signoff.toml"), "jobs = 8\n");
    insta::assert_snapshot!(project.run(&["configure", "--set", "jobs=8", "--json"]), @"");
}

#[test]
fn what_the_reader_refuses_is_never_written() {
    let project = project();
    for (words, snapshot) in [("jobs=many", "text"), ("preset=7", "number")] {
        let output = project.run(&["configure", "--set", "sandbox=false", "--set", words]);
        assert_eq!(output.code, Some(2), "{snapshot}: {output}");
    }
    insta::assert_snapshot!(project.run(&["configure", "--set", "preset=7"]), @"");
    insta::assert_snapshot!(project.run(&["configure", "--set", "jbos=7"]), @"");
    insta::assert_snapshot!(project.run(&["configure", "--set", "presets.phasez.max_passes=7"]), @"");
    insta::assert_snapshot!(project.run(&["configure", "--set", "presets.phases.gates.code_review.fail_on=HIHG"]), @"");
    insta::assert_snapshot!(project.run(&["configure", "--set", "agents.mine.command=[\"./a\"]"]), @"");
    insta::assert_snapshot!(project.run(&["configure", "--set", "jobs"]), @"");
    insta::assert_snapshot!(project.run(&["configure", "--set", "gate.max_fixes=1", "--set", "gate.max_cycles=1"]), @"");
    assert_eq!(project.read("signoff.toml"), FILE);
}

#[test]
fn a_broken_file_is_mended_by_a_key_and_told_otherwise() {
    let project = project();
    project.env.write("signoff.toml", "jobs = \"many\"\n# why\n");
    insta::assert_snapshot!(project.run(&["configure", "--set", "sandbox=false"]), @"");
    insta::assert_snapshot!(project.run(&["configure", "--set", "jobs=3"]), @"");
    project.env.write("signoff.toml", "jobs = \n");
    insta::assert_snapshot!(project.run(&["configure", "--set", "jobs=3"]), @"");
    assert_eq!(project.read("signoff.toml"), "jobs = \n");
}

#[test]
fn the_words_of_the_file_about_phases_are_keys_too() {
    let project = project();
    insta::assert_snapshot!(project.run(&[
        "configure", "--set", "phases.5.maxRetries=3", "--set", "phases.3.maxRetries=null", "--set", "phases.8.failOnSeverity=HIGH",
    ]), @"");
    insta::assert_snapshot!(project.run(&["configure", "--set", "reviewDefaults.onMaxRetries=ask"]), @"");
    insta::assert_snapshot!(project.run(&["configure", "--set", "phases.5.onFailure=giveup"]), @"");
    insta::assert_snapshot!(project.run(&["configure", "--set", "phases.10.onFailure=stop"]), @"");
}

#[test]
fn every_phase_is_shown_in_a_line() {
    let project = project();
    project.env.shell("mkdir -p ~/.config/signoff; printf '[roles]\\nreview = \"claude\"\\n[presets.phases.gates.test]\\non_exhausted = \"ask\"\\n' > ~/.config/signoff/config.toml");
    project.env.write("signoff.toml", format!("{FILE}\n[presets.phases.phase.1]\nmodel = \"haiku\"\nparallel = false\n\n[checks]\ntest = \"make\"\n"));
    insta::assert_snapshot!(project.run(&["configure", "--show"]), @"");
    let json = project.run(&["configure", "--show", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["phases"].as_array().unwrap().len(), 9);
    insta::assert_snapshot!(serde_json::to_string_pretty(&json["phases"][5]).unwrap(), @"");
}

#[test]
fn the_phases_are_shown_before_anything_is_configured() {
    let project = Project::new(PROGRAM);
    insta::assert_snapshot!(project.run(&["configure", "--show"]), @"");
}

#[test]
fn taking_back_leaves_the_rest_and_a_copy() {
    let project = project();
    insta::assert_snapshot!(project.run(&["configure", "--reset"]), @"");
    insta::assert_snapshot!(project.read("signoff.toml"), @"");
    assert_eq!(project.read("signoff.toml.bak"), FILE);
    insta::assert_snapshot!(project.run(&["configure", "--reset"]), @"");
    project.env.write("signoff.toml", FILE);
    insta::assert_snapshot!(project.run(&["configure", "--reset", "--json"]), @"");
    assert_eq!(
        project.list("."),
        [".git", "README.md", "signoff.toml", "signoff.toml.bak", "signoff.toml.bak2"]
    );
}

#[test]
fn what_other_files_say_about_the_phases_still_holds() {
    let project = project();
    project.env.write(
        ".claude/iterate-config.local.json",
        r#"{"version": 2, "phases": {"5": {"onFailure": "stop"}}}"#,
    );
    project.env.shell("mkdir -p ~/.config/signoff; printf '[presets.phases]\\nmax_fixes = 4\\n' > ~/.config/signoff/config.toml");
    insta::assert_snapshot!(project.run(&["configure", "--reset"]), @"");
    insta::assert_snapshot!(project.run(&["configure", "--reset", "--global"]), @"");
    assert_eq!(project.env.shell("cat ~/.config/signoff/config.toml").stdout, "");
}

#[test]
fn files_of_other_programs_are_taken_over() {
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
    project
        .env
        .write("gza.yaml", "defaults:\n  auto_review: true\ntask_types:\n  implement:\n    model: opus\n");
    project.env.write("slots.toml", "reviewEnabled = true\nreviewMaxFixAttempts = 2\nworkers = 3\n");
    let dry = project.run(&["configure", "--import", "iterate.json", "--dry-run"]);
    insta::assert_snapshot!(dry, @"");
    assert_eq!(project.read("signoff.toml"), FILE);
    insta::assert_snapshot!(project.run(&["configure", "--import", "iterate.json"]), @"");
    assert_eq!(project.read("signoff.toml"), dry.stdout);
    insta::assert_snapshot!(project.run(&["configure", "--import", "gza.yaml"]), @"");
    insta::assert_snapshot!(project.run(&["configure", "--import", "slots.toml"]), @"");
    insta::assert_snapshot!(project.run(&["configure", "--import", "slots.toml"]), @"");
    insta::assert_snapshot!(project.read("signoff.toml"), @"");
    assert!(project.read("iterate.json").starts_with("{\n"));
}

#[test]
fn an_old_file_is_taken_over_as_what_it_means_today() {
    let project = Project::new(PROGRAM);
    project.env.write("old.json", r#"{"version": 1, "phases": {"1": {"model": "opus", "parallel": true}}}"#);
    insta::assert_snapshot!(project.run(&["configure", "--import", "old.json"]), @"");
    insta::assert_snapshot!(project.read("signoff.toml"), @"");
}

#[test]
fn what_cannot_be_taken_over_is_told() {
    let project = project();
    project
        .env
        .write("bad.json", "{\n  \"version\": 2,\n  \"phases\": { \"5\": { \"maxRetries\": \"ten\" } }\n}\n");
    project.env.write("what.txt", "hello\n");
    insta::assert_snapshot!(project.run(&["configure", "--import", "bad.json"]), @"");
    insta::assert_snapshot!(project.run(&["configure", "--import", "what.txt"]), @"");
    insta::assert_snapshot!(project.run(&["configure", "--import", "gone.json"]), @"");
    insta::assert_snapshot!(project.run(&["configure", "--import", "signoff.toml"]), @"");
    assert_eq!(project.read("signoff.toml"), FILE);
}

#[test]
fn without_a_terminal_it_says_what_to_type() {
    let project = project();
    insta::assert_snapshot!(project.run(&["configure"]), @"");
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
    insta::assert_snapshot!(outside.run(&["configure", "--set", "jobs=3"]), @"");
}

#[test]
fn a_persons_own_file_is_changed_and_who_wins_is_said() {
    let project = project();
    insta::assert_snapshot!(project.run(&["configure", "--global", "--set", "jobs=9", "--set", "no_ask=true"]), @"");
    assert_eq!(project.env.shell("cat ~/.config/signoff/config.toml").stdout, "jobs = 9\nno_ask = true\n");
    assert_eq!(project.read("signoff.toml"), FILE);
}

#[test]
fn a_link_stays_a_link_and_rights_stay_as_they_were() {
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
    insta::assert_snapshot!(project.run(&["configure", "--set", "jobs=9"]), @"");
    fs::remove_file(&file).unwrap();
    fs::write(&file, FILE).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    insta::assert_snapshot!(project.run(&["configure", "--set", "jobs=9"]), @"");
    assert_eq!(project.read("signoff.toml"), FILE);
}

/// Killed between the new file and its place: the old one is whole, and the next time it is done.
#[test]
fn who_is_killed_leaves_the_old_file_whole() {
    let project = project();
    let killed =
        project.env.run_with(&["configure", "--set", "jobs=9"], &[("SIGNOFF_FAILPOINT", "replace:1")]);
    assert_eq!(killed.code, None, "{killed}");
    assert_eq!(project.read("signoff.toml"), FILE);
    assert_eq!(project.run(&["configure", "--set", "jobs=9"]).code, Some(0));
    assert_eq!(project.read("signoff.toml"), FILE.replace("jobs = 2", "jobs = 9"));
    assert_eq!(project.list("."), [".git", "README.md", "signoff.toml"]);
}
