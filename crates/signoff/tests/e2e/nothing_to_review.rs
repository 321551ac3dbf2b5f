//! An empty diff is never an approval.

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};

use crate::PROGRAM;
use crate::actors::{APPROVED, FEATURE, changes, developer};

fn task_outcome(project: &TestProject, task: &str) -> String {
    let shown = project.run(&["show", task, "--json"]).json();
    let task = &shown["task"];
    format!("{} {} {} {}", task["status"], task["final_verdict"], task["outcome"], task["reason"])
}

const NOTHING: &str = r#""completed" null "nothing_to_review" "nothing_to_review""#;

fn approving_agent(script: AgentScript) -> AgentScript {
    developer(script).rule(ScriptRule::role("review").say(APPROVED))
}

#[test]
fn a_review_task_without_a_target_asks_no_reviewer() {
    let project = TestProject::with_agent(PROGRAM, approving_agent);
    project.run(&["add", "Look at it", "--type", "review"]);
    let output = project.run(&["work", "--strict"]);
    assert_eq!(output.code, Some(3), "{output}");
    assert!(output.stdout.contains("nothing to review"), "{output}");
    assert_eq!(task_outcome(&project, "1"), NOTHING);
    assert_eq!(project.calls().all().len(), 0);
    assert_eq!(project.run(&["retry", "1"]).code, Some(2));
    assert_eq!(project.run(&["merge", "1"]).code, Some(1));
    assert_eq!(project.run(&["stats", "--json"]).json()["tasks"]["approved"], 0);
}

#[test]
fn a_review_of_a_clean_checkout_asks_no_reviewer() {
    let project = TestProject::with_agent(PROGRAM, approving_agent);
    for words in [&["review"][..], &["review", "--json"], &["review", "--base", "main"]] {
        let output = project.run(words);
        assert_eq!(output.code, Some(3), "{output}");
        assert!(!output.to_string().contains("APPROVED"), "{output}");
    }
    assert_eq!(project.calls().all().len(), 0);
    project.env.write("new.txt", "x\n");
    assert_eq!(project.run(&["review"]).code, Some(0));
}

#[test]
fn a_fix_that_reverts_everything_is_not_approved_and_later_tasks_wait() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("fix").task("1").shell(&format!("rm {FEATURE}")).say("Taken back.\n"))
            .rule(ScriptRule::role("review").task("1").call(1).say(&changes("not wanted")))
            .rule(ScriptRule::role("implement").write(FEATURE, "login\n").say("Done.\n"))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project.run(&["add", "Add login", "-a"]);
    project.run(&["add", "Add logout", "-a", "--depends-on", "1"]);
    let output = project.run(&["work", "--strict"]);
    assert_eq!(output.code, Some(3), "{output}");
    assert_eq!(task_outcome(&project, "1"), NOTHING);
    assert_eq!(task_outcome(&project, "2"), r#""blocked" null null null"#);
    // `signoff merge` refuses it.
    assert_eq!(project.run(&["merge", "1"]).code, Some(1));
    // A person approves it, and the task that depends on it starts.
    assert_eq!(project.run(&["edit", "1", "--verdict", "APPROVED", "--reason", "not needed"]).code, Some(0));
    project.run(&["work"]);
    assert!(task_outcome(&project, "2").contains("approved"), "{}", task_outcome(&project, "2"));
}

#[test]
fn an_accepted_empty_task_has_nothing_to_land() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write(FEATURE, "login\n").say("Done.\n"))
            .rule(ScriptRule::role("fix").shell(&format!("rm {FEATURE}")).say("Taken back.\n"))
            .rule(ScriptRule::role("review").say(&changes("not wanted")))
    });
    project.run(&["add", "Add login", "-a"]);
    project.run(&["work"]);
    assert_eq!(task_outcome(&project, "1"), NOTHING);
    project.run(&["edit", "1", "--verdict", "APPROVED", "--reason", "not needed"]);
    let before = project.git("rev-parse main");
    for words in [&["land"][..], &["merge", "1"]] {
        let output = project.run(words);
        assert_eq!(output.code, Some(0), "{output}");
        assert_eq!(output.stdout, "Task #1 has no changes to land\n");
    }
    assert_eq!(project.git("rev-parse main"), before);
    assert_eq!(project.run(&["status", "--json"]).json()["tasks"][0]["landed_commit"], serde_json::Value::Null);
}

#[test]
fn an_accepted_task_without_a_commit_is_approved_and_not_landed() {
    let project = TestProject::with_agent(PROGRAM, |script| script.rule(ScriptRule::role("implement").say("Done.\n")));
    project.run(&["add", "Add login", "-a"]);
    project.run(&["work"]);
    project.run(&["edit", "1", "--verdict", "APPROVED", "--reason", "it was there"]);
    let row = project.run(&["status", "--json"]).json()["tasks"][0].clone();
    assert_eq!((&row["state"], &row["landed_commit"]), (&"approved".into(), &serde_json::Value::Null));
    let shown = project.run(&["show", "1"]);
    assert!(shown.stdout.ends_with("Next: nothing to do: the branch has no changes\n"), "{shown}");
}

/// Design and plan are signoff's own documents and do not count as work.
#[test]
fn a_task_that_changes_only_its_documents_is_not_approved() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("brainstorm").say("# Design\n\nOne file.\n"))
            .rule(ScriptRule::role("plan").say("# Plan\n\n### Task 1: Login\n\nWrite it.\n"))
            .rule(ScriptRule::role("implement").write(FEATURE, "login\n").say("Done.\n"))
            .rule(ScriptRule::role("simplify").shell(&format!("rm {FEATURE}")).say("Simpler.\n"))
            .rule(ScriptRule::role("review").say("NO ISSUES\n"))
    });
    let output = project.run(&["iterate", "Add login", "--max-iterations", "1"]);
    assert_eq!(output.code, Some(3), "{output}");
    assert_eq!(task_outcome(&project, "1"), NOTHING);
    assert_eq!(project.run(&["merge", "1"]).code, Some(1));
}
