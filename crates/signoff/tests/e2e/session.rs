//! The everyday session: add, work, look at what came of it.

use signoff_testkit::Project;
use signoff_testkit::script::Rule;

use crate::PROGRAM;

const FEATURE: &str = "auth.txt";

/// An agent whose work is approved at the third review.
fn project() -> Project {
    Project::with_agent(PROGRAM, |script| {
        script
            .rule(Rule::role("implement").write(FEATURE, "login\n").say("Done.\n"))
            .rule(Rule::role("fix").append(FEATURE, "fixed {cycle}\n").say("Fixed.\n"))
            .rule(
                Rule::role("review")
                    .cycle(1)
                    .say("- auth.txt:1 missing input validation\n\n**Verdict: CHANGES_REQUESTED**\n"),
            )
            .rule(
                Rule::role("review")
                    .cycle(2)
                    .say("- auth.txt:1 add rate limiting\n\n**Verdict: CHANGES_REQUESTED**\n"),
            )
            .rule(Rule::role("review").say("All is well.\n\n**Verdict: APPROVED**\n"))
    })
}

#[test]
fn a_task_is_improved_until_it_is_approved() {
    let project = project();
    let added = project.run(&[
        "add",
        "Add user authentication",
        "--type",
        "implement",
        "--auto-review",
        "--max-cycles",
        "3",
    ]);
    insta::assert_snapshot!(added.stdout, @"Added task #1: Add user authentication");
    let before = project.checkout();
    let worked = project.run(&["work"]);
    insta::assert_snapshot!(worked, @"
    exit 0
    --- stdout
    Running task #1: Add user authentication
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - missing input validation
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: CHANGES_REQUESTED - add rate limiting
      [3/3] Improving...
      [3/3] Running review...
      [3/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 3 cycles)
    ");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"  ✓ 1. implement Add user authentication    completed  APPROVED (3 cycles)");
    insta::assert_snapshot!(project.subjects("signoff/task-1-add-user-authentication"), @"
    Add user authentication - initial implementation
    Address review feedback (cycle 1)
    Address review feedback (cycle 2)
    ");
    assert_eq!(project.checkout(), before);
}
