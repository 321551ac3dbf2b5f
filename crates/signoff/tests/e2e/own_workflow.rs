//! Custom workflows: phases, reviewers with their own prompts, and models for roles.

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::ScriptRule;

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
fn a_custom_workflow_runs_until_approval() {
    let project = TestProject::with_agent(PROGRAM, |script| script);
    let log = project.state().with_file_name("models");
    let noted =
        format!("echo \"$SIGNOFF_PHASE $SIGNOFF_ROLE $SIGNOFF_REVIEWER: $SIGNOFF_MODEL\" >> '{}'", log.display());
    project.set_agent(|script| {
        script
            .rule(ScriptRule::role("implement").shell(&noted).write("a.txt", "name: Ann\n").say("Written.\n"))
            .rule(ScriptRule::role("simplify").shell(&noted).say("It is simple.\n"))
            .rule(
                ScriptRule::role("review")
                    .reviewer("privacy")
                    .cycle(1)
                    .shell(&noted)
                    .say("- a.txt:1 **HIGH** a name of a person\n\n**Verdict: CHANGES_REQUESTED**\n"),
            )
            .rule(ScriptRule::role("review").shell(&noted).say("**Verdict: APPROVED**\n"))
            .rule(ScriptRule::role("fix").shell(&noted).write("a.txt", "name: somebody\n").say("Fixed.\n"))
    });
    project.env.write("docs/privacy.md", "You guard what people want to keep to themselves.\n");
    project.env.write("docs/style.md", "You read like our most careful colleague.\n");
    project.env.write("docs/simplify.md", "Leave out what nobody misses.\n");
    project.configure(OWN);
    project.run(&["add", "Keep names", "-a"]);
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 0
    --- stdout
    Running task #1: Keep names
      [1/2] Implementing...
      [1/2] Implementation complete
      [1/2] Simplifying...
      [1/2] Simplification complete
      [1/2] Running review...
      [1/2] Review: CHANGES_REQUESTED - a name of a person
        Review Results:
          Style Review: APPROVED
          Privacy Review: ISSUES

        Issues to Fix (1):

          1. [Privacy Critical] a.txt:1
             a name of a person

        Action: Fix issues and re-run reviews
      [2/2] Improving...
      [2/2] Running review...
      [2/2] Review: APPROVED
        Review Results:
          Style Review: APPROVED
          Privacy Review: APPROVED

        Action: Proceed
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    let noted = std::fs::read_to_string(log).unwrap();
    let mut noted: Vec<_> = noted.lines().collect();
    // The reviewers of one round run in parallel.
    noted.sort_unstable();
    insta::assert_snapshot!(noted.join("\n"), @"
    read fix : small
    read review privacy: sharp
    read review privacy: sharp
    read review style: big
    read review style: big
    tidy simplify : 
    write implement : big
    ");
    let calls = project.calls();
    let prompts = |role: &str, reviewer: &str| -> Vec<String> {
        let calls_of = calls.with_role(role).filter(|call| call.start.reviewer == reviewer);
        calls_of.map(|call| call.prompt.lines().next().unwrap_or_default().to_owned()).collect()
    };
    let guard = "You guard what people want to keep to themselves.";
    assert_eq!(prompts("review", "privacy"), [guard, guard]);
    let colleague = "You read like our most careful colleague.";
    assert_eq!(prompts("review", "style"), [colleague, colleague]);
    assert_eq!(prompts("simplify", ""), ["Leave out what nobody misses."]);
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

const TWO_GATES: &str = "\
preset = \"twice\"

[reviewers.early]
kind = \"code\"
contract = \"markdown\"

[reviewers.late]
kind = \"code\"
contract = \"markdown\"

[workflows.twice]

[[workflows.twice.phases]]
name = \"write\"
kind = \"agent\"

[[workflows.twice.phases]]
name = \"first\"
kind = \"gate\"
reviewers = [\"early\"]
fail_on = \"LOW\"
on_failure = \"proceed\"

[[workflows.twice.phases]]
name = \"second\"
kind = \"gate\"
reviewers = [\"late\"]
fail_on = \"LOW\"
max_cycles = 2
";

/// A finding that a gate only notes is not passed to the next gate, and the gate's review file is unchanged.
#[test]
fn each_gate_has_its_own_review() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("a.txt", "a\n").say("Written.\n"))
            .rule(
                ScriptRule::role("review")
                    .reviewer("early")
                    .say("- a.txt:1 **HIGH** rewrite it all\n\n**Verdict: CHANGES_REQUESTED**\n"),
            )
            .rule(
                ScriptRule::role("review")
                    .reviewer("late")
                    .cycle(1)
                    .say("- a.txt:1 **HIGH** a typo\n\n**Verdict: CHANGES_REQUESTED**\n"),
            )
            .rule(ScriptRule::role("review").say("**Verdict: APPROVED**\n"))
            .rule(ScriptRule::role("fix").write("a.txt", "b\n").say("Fixed.\n"))
    });
    project.configure(TWO_GATES);
    project.run(&["add", "Twice", "-a"]);
    project.run(&["work"]);
    let verdicts = "cd .signoff/reviews && for file in *.md; do echo \"$file: $(grep Verdict: $file)\"; \
        grep -oE 'rewrite it all|a typo' $file | sort -u; done | sed 's/^[0-9]*-//'";
    insta::assert_snapshot!(project.env.shell(verdicts), @"
    exit 0
    --- stdout
    task-1-p1-first-review-1.md: **Verdict: CHANGES_REQUESTED**
    rewrite it all
    task-1-p1-second-review-1.md: **Verdict: CHANGES_REQUESTED**
    a typo
    task-1-p1-second-review-2.md: **Verdict: APPROVED**
    ");
    let calls = project.calls();
    let prompts: Vec<_> = calls.with_role("fix").map(|call| call.prompt.as_str()).collect();
    let [prompt] = prompts[..] else { panic!("there is one fix, not {}", prompts.len()) };
    assert!(prompt.contains("a typo") && !prompt.contains("rewrite it all"), "{prompt}");
}
