//! Custom workflows: phases, reviewers with their own prompts, and models for roles.

use signoff_testkit::TestProject;

use crate::PROGRAM;

const OWN: &str = "\
preset = \"careful\"

[roles]
implement = { agent = \"scripted\", model = \"big\" }
fix = { model = \"small\" }
simplify = \"scripted\"

[reviewers.privacy]
kind = \"security\"
prompt = \"docs/privacy.md\"
model = \"sharp\"
contract = \"markdown\"

[reviewers.style]
kind = \"code\"
contract = \"markdown\"

[prompts]
review = \"docs/style.md\"
simplify = \"docs/simplify.md\"

[workflows.careful]
description = \"write it, make it simple, have it read by two\"

[[workflows.careful.phases]]
name = \"write\"
kind = \"agent\"

[[workflows.careful.phases]]
name = \"tidy\"
kind = \"agent\"
role = \"simplify\"

[[workflows.careful.phases]]
name = \"read\"
kind = \"gate\"
reviewers = [\"privacy\", \"style\"]
fail_on = \"LOW\"
max_cycles = 2
";

#[test]
fn the_settings_of_a_custom_workflow_are_listed() {
    let project = TestProject::with_agent(PROGRAM, |script| script);
    for name in ["privacy", "style", "simplify"] {
        project.env.write(&format!("docs/{name}.md"), "You read it.\n");
    }
    project.configure(OWN);
    insta::assert_snapshot!(project.env.shell("signoff config presets.careful.gates.read | head -5; signoff config roles"), @r#"
    exit 0
    --- stdout
    presets.careful.gates.read.enabled = true                     # built in
    presets.careful.gates.read.reviewers = ["privacy", "style"]   # signoff.toml:39
    presets.careful.gates.read.fail_on = "LOW"                    # signoff.toml:40
    presets.careful.gates.read.on_failure = "mini-loop"           # built in
    presets.careful.gates.read.max_cycles = 2                     # signoff.toml:41
    roles.implement.agent = "scripted"  # signoff.toml:6
    roles.implement.model = "big"       # signoff.toml:6
    roles.fix.model = "small"           # signoff.toml:7
    roles.simplify = "scripted"         # signoff.toml:8
    "#);
}

#[test]
fn one_setting_can_be_queried() {
    let project = TestProject::with_agent(PROGRAM, |script| script);
    project.configure("jobs = 2\n[limits]\nsilence = \"5m\"\n");
    insta::assert_snapshot!(project.run(&["config", "jobs"]), @"
    exit 0
    --- stdout
    jobs = 2  # signoff.toml:3
    ");
    insta::assert_snapshot!(project.run(&["config", "limits.run"]), @"
    exit 2
    --- stderr
    error: nothing is set under `limits.run`
    hint: `signoff config` lists the settings in effect
    ");
    insta::assert_snapshot!(project.run(&["config", "limits.silence", "--json"]), @r#"
    exit 0
    --- stdout
    {
      "version": 1,
      "settings": [
        {
          "key": "limits.silence",
          "value": "5m",
          "origin": {
            "from": "repository",
            "file": "signoff.toml",
            "line": 5
          }
        }
      ]
    }
    "#);
}

#[test]
fn the_schema_is_printed_and_matches_the_documentation() {
    let project = TestProject::new(PROGRAM);
    let printed = project.run(&["config", "--schema"]);
    let kept = include_str!("../../../../docs/schema/signoff.toml.schema.json");
    assert_eq!((printed.code, printed.stdout.as_str()), (Some(0), kept));
    // An unreadable file does not prevent printing the schema.
    project.env.write("signoff.toml", "jobs =\n");
    assert_eq!(project.run(&["config", "--schema"]).stdout, kept);
}
