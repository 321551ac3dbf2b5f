//! Configuration files of other programs: read unchanged, shown with their lines, errors with their position.

use std::os::unix::fs::PermissionsExt;

use signoff_testkit::TestProject;

use crate::PROGRAM;
use crate::actors::developer;

const ITERATE: &str = ".claude/iterate-config.local.json";

/// A project with a file of phase settings, and an agent that always succeeds.
fn project(text: &str) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, developer);
    project.env.write(ITERATE, text);
    project
}

const PHASES: &str = r#"{
    "version": 2,
    "reviewDefaults": {
        "failOnSeverity": "HIGH",
        "maxRetries": null
    },
    "phases": {
        "3": { "tool": "mcp__codex__codex", "maxRetries": 2 },
        "4": { "model": "inherit" }
    }
}
"#;

#[test]
fn every_setting_of_another_program_is_shown_with_its_line() {
    let project = project(PHASES);
    let home = r#"{ "version": 2, "phases": {
  "1": { "parallel": false } } }"#;
    project.env.write("gza.yaml", "name: mine\ndefaults:\n  max_review_cycles: 5\n");
    project.env.write("home.json", home);
    project.env.shell("mkdir -p ~/.claude && mv home.json ~/.claude/iterate-config.json");
    project.configure("[presets.phases.phase.4]\nmodel = \"opus\"\n");
    insta::assert_snapshot!(project.env.shell("signoff config --show | grep -e ^presets.phases -e ^defaults"), @r#"
    exit 0
    --- stdout
    presets.phases.gates.plan_review.max_fixes = 2                # .claude/iterate-config.local.json:8
    presets.phases.phase.1.parallel = false                       # ~/.claude/iterate-config.json:2
    presets.phases.phase.3.tool = "mcp__codex__codex"             # .claude/iterate-config.local.json:8
    presets.phases.phase.4.model = "opus"                         # signoff.toml:4
    presets.phases.fail_on = "HIGH"                               # .claude/iterate-config.local.json:4
    presets.phases.max_fixes = "unlimited"                        # .claude/iterate-config.local.json:5
    defaults.auto_review = true                                   # built in
    defaults.max_review_cycles = 5                                # gza.yaml:3
    --- stderr
    warning: .claude/iterate-config.local.json:8: phase `plan_review` names the tool `mcp__codex__codex`, which is mapped to no agent: configure an agent of kind "codex", or write `"mcp__codex__codex" = "AGENT"` in [presets.phases.tools]
    "#);
    let config = project.run(&["config", "--json"]).json();
    let rows = config["settings"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"] == "presets.phases.fail_on").unwrap();
    insta::assert_snapshot!(row["origin"], @r#"{"from":"foreign","file":".claude/iterate-config.local.json","line":4}"#);
}

#[test]
fn a_tool_without_an_agent_starts_nothing() {
    let project = project(PHASES);
    insta::assert_snapshot!(project.run(&["iterate", "Add login"]), @r#"
    exit 2
    --- stderr
    error: phase `plan_review` names the tool `mcp__codex__codex`, which is mapped to no agent: configure an agent of kind "codex", or write `"mcp__codex__codex" = "AGENT"` in [presets.phases.tools]
      --> .claude/iterate-config.local.json:8
    hint: fix the file, then check it with `signoff config`
    "#);
    assert!(project.calls().all().is_empty());
    insta::assert_snapshot!(project.run(&["status"]), @r#"
    exit 0
    --- stderr
    No tasks yet: `signoff add "…"` adds one
    "#);
    let doctor = project.run(&["doctor"]).stdout;
    let mapped: Vec<_> = doctor.lines().filter(|line| line.contains("mcp__")).collect();
    insta::assert_snapshot!(mapped.join("\n"), @r#"! settings: .claude/iterate-config.local.json:8: phase `plan_review` names the tool `mcp__codex__codex`, which is mapped to no agent: configure an agent of kind "codex", or write `"mcp__codex__codex" = "AGENT"` in [presets.phases.tools]"#);
    assert_eq!(project.run(&["add", "Add login"]).code, Some(0), "other workflows need no such tool");
    assert_eq!(project.run(&["iterate", "--lite", "--queue", "Add login"]).code, Some(0), "nor does lite");
}

#[test]
fn an_error_in_the_file_stops_the_command_before_any_agent_starts() {
    let project =
        project("{\n  \"version\": 2,\n  \"phases\": {\n    \"5\": { \"failOnSeverity\": \"HIHG\" }\n  }\n}\n");
    insta::assert_snapshot!(project.run(&["iterate", "Add login"]), @r#"
    exit 2
    --- stderr
    error: `phases.5.failOnSeverity` is "HIHG": expected LOW, MEDIUM, HIGH or NONE
      --> .claude/iterate-config.local.json:4
    hint: fix the file, then check it with `signoff config`
    "#);
    assert!(project.calls().all().is_empty());
    assert_eq!(project.run(&["status"]).code, Some(0));
    project.env.write(ITERATE, "{ \"version\": 2 }");
    project.env.write("gza.yaml", b"defaults:\n  auto_review: \xff\n");
    insta::assert_snapshot!(project.run(&["config"]), @"
    exit 2
    --- stderr
    error: gza.yaml is not UTF-8 text
      --> gza.yaml:2
    hint: save it as UTF-8
    ");
    project.env.shell("rm gza.yaml && mkdir gza.yaml");
    insta::assert_snapshot!(project.run(&["config"]).stderr, @"
    error: [ROOT]/work/gza.yaml is not a regular file
      --> [ROOT]/work/gza.yaml
    hint: replace it with a text file, or remove it
    ");
}

const OLD: &str = "{\n    \"phases\": {\n        \"4\": { \"model\": \"opus\" }\n    }\n}\n";

#[test]
fn an_old_file_is_converted_and_a_copy_is_kept_when_work_begins() {
    let project = project(OLD);
    project.env.write(&format!("{ITERATE}.v1.bak"), "somebody's own");
    project.env.write(&format!("{ITERATE}.new"), "somebody's own");
    project.env.shell(&format!("chmod 600 {ITERATE}"));
    assert_eq!(project.run(&["config"]).code, Some(0));
    assert_eq!(project.run(&["doctor"]).code, Some(0));
    assert_eq!(project.read(ITERATE), OLD, "who only looks changes nothing");
    let output = project.run(&["iterate", "--queue", "Add login"]);
    insta::assert_snapshot!(output, @"
    exit 0
    --- stdout
    Added task #1: Add login
    --- stderr
    .claude/iterate-config.local.json was migrated from version 1 to version 2; the old file is kept as .claude/iterate-config.local.json.v1.bak2
    `signoff work` starts it
    ");
    insta::assert_snapshot!(project.read(ITERATE), @r#"
    {
        "version": 2,
        "phases": {
            "4": { "model": "opus" }
        }
    }
    "#);
    assert_eq!(project.read(&format!("{ITERATE}.v1.bak")), "somebody's own");
    assert_eq!(project.read(&format!("{ITERATE}.v1.bak2")), OLD);
    assert_eq!(project.read(&format!("{ITERATE}.new")), "somebody's own");
    for name in [ITERATE.to_owned(), format!("{ITERATE}.v1.bak2")] {
        let mode = project.env.work().join(&name).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let again = project.run(&["iterate", "--queue", "Add logout"]);
    assert!(!again.stderr.contains("version"), "{}", again.stderr);
}

#[test]
fn an_old_file_that_cannot_be_converted_is_still_read() {
    let project = project(OLD);
    project.env.shell(&format!("chmod a-w {ITERATE}"));
    let output = project.run(&["iterate", "--queue", "Add login"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(project.read(ITERATE), OLD);
    assert!(
        output.stderr.contains("warning: .claude/iterate-config.local.json has version 1 and is read as version 2"),
        "{output}"
    );
}
