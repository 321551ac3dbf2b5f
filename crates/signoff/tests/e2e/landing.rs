//! Approved work joins the default branch: `merge`, `land`, and what happens when it does not fit.

use signoff_testkit::Project;
use signoff_testkit::script::{Rule, Script};

use crate::PROGRAM;
use crate::actors::APPROVED;

/// Agents that change the one line of `greeting.txt`, each in its own way.
fn two_on_one_file(script: Script) -> Script {
    script
        .rule(Rule::role("implement").task("1").write("greeting.txt", "hello one\n").say("Done.\n"))
        .rule(Rule::role("implement").task("2").write("greeting.txt", "hello two\n").say("Done.\n"))
        .rule(Rule::role("review").say(APPROVED))
}

/// A project whose two tasks are approved, each on its branch.
fn approved(script: impl FnOnce(Script) -> Script, more: &str) -> Project {
    let project = Project::with_agent(PROGRAM, script);
    project.env.write("greeting.txt", "hello\n");
    project.configure(more);
    for title in ["Greet one", "Greet two"] {
        project.run(&["add", title, "-a"]);
    }
    let worked = project.run(&["work", "-j", "1"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    project
}

#[test]
fn a_conflict_is_resolved_by_the_tasks_own_fixer_and_reviewed_again() {
    let project = approved(
        |script| {
            two_on_one_file(script)
                .rule(Rule::role("fix").write("greeting.txt", "hello one and two\n").say("Resolved.\n"))
        },
        "",
    );
    insta::assert_snapshot!(project.run(&["merge", "1"]), @"
    exit 0
    --- stdout
    Resuming task #1: Greet one
      Landing...
      Landed as d3efe372cfd31d7818c0f925eded910a9a822f77
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ✓ Task #1 is in main (d3efe37)
    ");
    insta::assert_snapshot!(project.run(&["merge", "2"]), @"
    exit 0
    --- stdout
    Resuming task #2: Greet two
      Landing...
      Landing: SENT BACK - it cannot be merged with what landed on main before (d3efe37): (content): Merge conflict in greetin…
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #2 completed (APPROVED after 2 cycles)
    Resuming task #2: Greet two
      Landing...
      Landed as 3deab04ae288d2feaee8c695e5b883b21262690e
    ✓ Task #2 completed (APPROVED after 2 cycles)
    ✓ Task #2 is in main (3deab04)
    ");
    assert_eq!(project.read("greeting.txt"), "hello one and two\n");
    assert_eq!(project.git("status --porcelain"), "");
    insta::assert_snapshot!(project.git("log --graph --format=%s main"), @r"
    *   Merge task 2: Greet two
    |\  
    | * Address review feedback (cycle 1)
    | *   Merge task 2: Greet two
    | |\  
    | |/  
    |/|   
    * |   Merge task 1: Greet one
    |\ \  
    | * | Greet one - initial implementation
    |/ /  
    | * Greet two - initial implementation
    |/  
    * Configure
    * Configure
    * Start
    ");
    insta::assert_snapshot!(project.calls().story(), @"
    implement task 1 cycle 0: exit 0
    review general task 1 cycle 1: exit 0
    implement task 2 cycle 0: exit 0
    review general task 2 cycle 1: exit 0
    fix task 2 cycle 1: exit 0
    review general task 2 cycle 2: exit 0
    ");
}
