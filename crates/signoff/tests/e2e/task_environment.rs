//! The configured environment of a task: the project's checks, copied files that git does not track, cost caps.

use serde_json::json;
use signoff_testkit::TestProject;
use signoff_testkit::agent_script::ScriptRule;

use crate::PROGRAM;

const CHECKS: &str = "
[agents.checks]
kind = \"checks\"

[reviewers.tests]
kind = \"tests\"
agent = \"checks\"

[roles]
implement = \"scripted\"

[gate]
reviewers = [\"tests\"]

[checks]
test = \"sh test.sh\"
";

/// A project whose test expects a file to say `right`, and logs every run in an ignored file.
fn checked_project() -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("answer.txt", "wrong\n"))
            .rule(ScriptRule::role("fix").write("answer.txt", "right\n"))
    });
    project.env.write(".gitignore", "runs.txt\n");
    project.env.write(
        "test.sh",
        "echo run >> runs.txt\necho tampered >> README.md\n\
         test ! -f answer.txt || grep -q right answer.txt || { echo 'answer.txt:1: error: this is wrong'; exit 1; }\n",
    );
    project.configure(CHECKS);
    project
}

#[test]
fn the_project_s_own_commands_review_the_work() {
    let project = checked_project();
    project.run(&["add", "Answer", "-a"]);
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 0
    --- stdout
    Running task #1: Answer
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - this is wrong
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    --- stderr
    tests changed files while reviewing; undone: modified README.md
    tests changed files while reviewing; undone: modified README.md
    ");
    let prompt = project.calls().with_role("fix").next().map(|call| call.prompt.clone()).unwrap_or_default();
    assert!(prompt.contains("answer.txt:1") && prompt.contains("this is wrong"), "{prompt}");
    // A check's changes to tracked files are undone; ignored files are kept.
    assert_eq!(project.git("show signoff/task-1-answer:README.md"), "# A project\n");
    assert_eq!(project.read(".signoff/worktrees/task-1/runs.txt"), "run\nrun\n");
}

#[test]
fn untracked_files_are_copied_and_never_committed() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script.rule(ScriptRule::role("implement").shell("cat .env > seen.txt; echo more >> .env"))
    });
    project.configure("[worktree]\ncopy = [\".env\", \"not-there.txt\"]\n");
    project.env.write(".env", "KEY=1\n");
    project.run(&["add", "Look at the environment"]);
    assert_eq!(project.run(&["work"]).code, Some(0));
    let branch = "signoff/task-1-look-at-the-environment";
    assert_eq!(project.git(&format!("show {branch}:seen.txt")), "KEY=1\n");
    insta::assert_snapshot!(project.git(&format!("diff --name-only main {branch}")), @"seen.txt");
    assert_eq!(project.read(".env"), "KEY=1\n");
}

/// The list of copied files is in the git directory.
#[test]
fn copied_files_are_not_committed_if_the_git_directory_was_deleted() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        let deletes = "rm -rf \"$(git rev-parse --git-dir)\"";
        script.rule(ScriptRule::role("implement").write("a.txt", "a\n").append("README.md", "more\n").shell(deletes))
    });
    project.configure("[worktree]\ncopy = [\".env\", \"README.md\"]\n");
    project.env.write(".env", "KEY=1\n");
    project.run(&["add", "T"]);
    assert_eq!(project.run(&["work"]).code, Some(0));
    insta::assert_snapshot!(project.git("diff --name-only main signoff/task-1-t"), @"
    README.md
    a.txt
    ");
    assert_eq!(project.read(".signoff/worktrees/task-1/.env"), "KEY=1\n");
}

/// Git does not ignore them, so they look like new files.
#[test]
fn uncommitted_files_are_not_attributed_to_a_reviewer() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("a.txt", "a\n").shell("mkdir .signoff; echo x > .signoff/note"))
            .rule(ScriptRule::role("fix").shell("cat .env .signoff/note > a.txt"))
            .rule(ScriptRule::role("review").cycle(1).say("- a.txt:1 no\n\n**Verdict: CHANGES_REQUESTED**\n"))
            .rule(ScriptRule::role("review").say("**Verdict: APPROVED**\n"))
    });
    project.configure("[worktree]\ncopy = [\".env\"]\n");
    project.env.write(".env", "KEY=1\n");
    project.run(&["add", "T", "-a"]);
    let work = project.run(&["work"]);
    assert_eq!((work.code, work.stderr.as_str()), (Some(0), ""), "{work}");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"  ✓ 1. implement T    completed  APPROVED (2 cycles)");
    assert_eq!(project.git("show signoff/task-1-t:a.txt"), "KEY=1\nx\n");
    insta::assert_snapshot!(project.git("diff --name-only main signoff/task-1-t"), @"a.txt");
}

/// Every attempt costs 40 cents.
fn expensive_project(cap: &str) -> TestProject {
    let usage = json!({"cost_usd": 0.4, "input_tokens": 100, "output_tokens": 50});
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("a.txt", "a\n").usage(usage.clone()))
            .rule(ScriptRule::role("fix").append("a.txt", "b\n").usage(usage.clone()))
            .rule(
                ScriptRule::role("review")
                    .cycle(1)
                    .usage(usage.clone())
                    .say("- a.txt:1 no\n\n**Verdict: CHANGES_REQUESTED**\n"),
            )
            .rule(ScriptRule::role("review").usage(usage).say("**Verdict: APPROVED**\n"))
    });
    project.configure(&format!("[limits]\nmax_cost_usd = {cap}\n"));
    project
}

#[test]
fn no_attempt_starts_that_may_exceed_the_cap() {
    let project = expensive_project("1.0");
    project.run(&["add", "Dear", "-a"]);
    let work = project.run(&["work"]);
    insta::assert_snapshot!(work, @"
    exit 3
    --- stdout
    Running task #1: Dear
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - no
      [2/3] Improving...
      [2/3] Paused: another attempt may go over the budget
        Next: raise the budget, then signoff work 1
    --- stderr
    Task #1 is paused: $0.80 of $1.00 is spent, and the next attempt may cost more than is left
    ");
    let row = project.run(&["status", "--json"]).json()["tasks"][0].clone();
    assert_eq!((&row["status"], &row["cost_usd"]), (&json!("paused"), &json!(0.8)));
    assert_eq!(project.run(&["work", "--strict"]).code, Some(3), "still paused");
    project.configure("[limits]\nmax_cost_usd = 2.0\n");
    assert_eq!(project.run(&["work", "--strict"]).code, Some(0));
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"  ✓ 1. implement Dear    completed  APPROVED (2 cycles)");
    insta::assert_snapshot!(project.calls().summary(), @"
    implement task 1 cycle 0: exit 0
    review general task 1 cycle 1: exit 0
    fix task 1 cycle 1: exit 0
    review general task 1 cycle 2: exit 0
    ");
}
