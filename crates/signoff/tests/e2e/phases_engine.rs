//! The long way of a task: research, documents, items, checks.

use signoff_testkit::Project;
use signoff_testkit::script::{Rule, Script};

use crate::PROGRAM;

const TASK: [&str; 2] = ["add", "Add a greeting"];
const BRANCH: &str = "signoff/task-1-add-a-greeting";
const APPROVED: &str = "NO ISSUES\n";

const PLAN: &str = "# Greeting\n\n### Task 1: Say hello\n\nWrite it to hello.txt.\n\n**Acceptance Criteria:**\n- hello.txt says hello\n\n### Task 2: Say goodbye\n\nWrite it to bye.txt.\n";

/// Whoever thinks, plans and works in all phases; reviewers are added by each story.
fn team(script: Script) -> Script {
    script
        .rule(Rule::role("brainstorm").asked_for("You are researcher 1").say("There is no greeting yet.\n"))
        .rule(Rule::role("brainstorm").asked_for("You are researcher 2").say("It must be polite.\n"))
        .rule(Rule::role("brainstorm").asked_for("You are researcher 3").say("It may offend.\n"))
        .rule(Rule::role("plan").asked_for("You are researcher").say("Two files.\n"))
        .rule(Rule::role("brainstorm").say("# Design\n\nTwo files.\n"))
        .rule(Rule::role("plan").say(PLAN))
        .rule(Rule::role("implement").asked_for("number 1 of 2").write("hello.txt", "hello\n").say("Done.\n"))
        .rule(Rule::role("implement").asked_for("number 2 of 2").write("bye.txt", "bye\n").say("Done.\n"))
        .rule(Rule::role("simplify").say("Nothing to simplify.\n"))
}

fn project(script: impl FnOnce(Script) -> Script) -> Project {
    let project = Project::with_agent(PROGRAM, script);
    project.configure("preset = \"phases\"\n");
    project
}

fn approving(script: Script) -> Script {
    team(script).rule(Rule::role("review").say(APPROVED))
}

#[test]
fn a_task_goes_through_all_phases() {
    let project = project(approving);
    let before = project.checkout();
    project.run(&TASK);
    insta::assert_snapshot!(project.run(&["work"]), @r#"
    exit 2
    --- stderr
    error: phase test runs the project's checks, and there are none
    hint: name them in [checks] of signoff.toml: test = "make test"
    "#);
    insta::assert_snapshot!(project.subjects(BRANCH), @"");
    insta::assert_snapshot!(project.git(&format!("ls-tree -r --name-only {BRANCH}")), @"");
    insta::assert_snapshot!(project.calls().story(), @"");
    assert_eq!(project.checkout(), before);
}
