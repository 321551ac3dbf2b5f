//! `signoff demo`: a complete run on a small example project.

use crate::test_env;

#[test]
fn a_complete_run_on_a_small_project() {
    let env = test_env();
    insta::assert_snapshot!(env.run(&["demo", "--directory", "greeting"]), @r#"
    exit 0
    --- stdout
    $ signoff add "Add a greeting by name" --auto-review
    Added task #1: Add a greeting by name
    $ signoff add "Say goodbye in the visitor's language" --auto-review
    Added task #2: Say goodbye in the visitor's language
    $ signoff work
    Running task #1: Add a greeting by name
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - The README still shows the call without a name
        Review Results:
          Spec Review: ISSUES
          Code Review: ISSUES (high confidence)

        Issues to Fix (2):

          1. [Spec Important] README.md:5
             The README still shows the call without a name

          2. [Code Important] greet.sh:3
             The name is not checked: called without one, the script prints `Hello, !` and exits 0
             Fix: Without a name, print the usage on stderr and exit 2

        Action: Fix issues and re-run reviews
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
        Review Results:
          Spec Review: APPROVED
          Code Review: APPROVED (high confidence)

        Action: Proceed
    ✓ Task #1 completed (APPROVED after 2 cycles)
    Running task #2: Say goodbye in the visitor's language
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: NEEDS_DISCUSSION - It always says goodbye in English. The task asks for the visitor's language and does not say where…
        Review Results:
          Spec Review: NEEDS_DISCUSSION
          Code Review: APPROVED (high confidence)

        Issues to Fix (1):

          1. [Spec Important] bye.sh:8
             It always says goodbye in English. The task asks for the visitor's language and does not say where that comes from: the environment, an option, or a list of names?
    ! Task #2 completed (NEEDS_DISCUSSION after 1 cycle)
        Next: signoff show 2, then signoff retry 2 or signoff edit 2 --verdict APPROVED
    ! Run 1 completed, not all approved: 2 tasks, 2 completed
    $ signoff status
      ✓ 1. implement Add a greeting by name                   completed  APPROVED (2 cycles)
      ! 2. implement Say goodbye in the visitor's language    completed  NEEDS_DISCUSSION (1 cycle)
    --- stderr
    Created a project in greeting
    Next: cd greeting && signoff show 1
    "#);
    let shell = |script: &str| env.shell(&format!("cd greeting && {script}")).stdout;
    insta::assert_snapshot!(shell("git status --short; git log --format=%s --reverse main..signoff/task-1-add-a-greeting-by-name"), @"
    Add a greeting by name - initial implementation
    Address review feedback (cycle 1)
    ");
    insta::assert_snapshot!(shell("signoff"), @"
    Needs attention:
      ! 2. Say goodbye in the visitor's language: completed NEEDS_DISCUSSION (1 cycle)
          signoff show 2, then signoff retry 2 or signoff edit 2 --verdict APPROVED

    2 completed
    ");
    insta::assert_snapshot!(shell("signoff doctor"), @"
    ✓ repository: on branch main
    ✓ agents: demo
    ✓ store: the log is readable and the tables match it
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    ");
    // The approved program works.
    insta::assert_snapshot!(shell("cd .signoff/worktrees/task-1 && sh test.sh && sh greet.sh Ann"), @"Hello, Ann!");
    insta::assert_snapshot!(env.run(&["demo", "--directory", "greeting"]), @"
    exit 2
    --- stderr
    error: greeting is not empty
    hint: name an empty directory, or one that does not exist
    ");
}

#[test]
fn without_a_directory_it_creates_one() {
    let env = test_env();
    let made = env.shell("TMPDIR=$HOME signoff -q demo && ls \"$HOME\"/*/.signoff/signoff.db | wc -l");
    assert_eq!(made.code, Some(0), "{made}");
    assert_eq!(made.stdout.trim().lines().last(), Some("1"), "{made}");
    assert_eq!(env.shell("ls -A").stdout, "");
}

#[test]
fn as_json_it_is_one_document() {
    let report = test_env().run(&["demo", "--directory", "greeting", "--json"]);
    assert_eq!(report.code, Some(0), "{report}");
    let verdicts: Vec<_> = report.json()["tasks"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|task| task["final_verdict"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(verdicts, ["APPROVED", "NEEDS_DISCUSSION"]);
}
