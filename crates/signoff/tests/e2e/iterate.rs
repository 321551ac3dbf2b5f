//! The long way: think, plan, review the plan, implement, review, test, simplify, review the whole.

use signoff_testkit::Project;
use signoff_testkit::script::{Rule, Script};

use crate::PROGRAM;

const BRANCH: &str = "signoff/task-1-add-a-greeting";

/// Two researchers think first, nobody looks into the plan first; the project's test is its own.
pub const SETTINGS: &str = "\
[presets.phases.phase.1]
researchers = 2
[presets.phases.phase.2]
parallel = false
[checks]
test = \"sh test.sh\"
";

/// What the project is tested with: the greeting has to be in the list of what there is.
pub const TEST: &str = "grep -q hello.txt list.txt && exit\necho 'hello.txt is not in list.txt'\nexit 1\n";

/// A team that needs three iterations. What an agent does depends on what it is told, so that it does the same again
/// if it is asked again.
pub fn team(script: Script) -> Script {
    let plan = |more: &str| {
        format!(
            "# Greeting\n\n### Task 1: Say hello\n\nWrite hello.txt.\n\n### Task 2: Say goodbye\n\n\
             Write bye.txt.{more}\n"
        )
    };
    script
        .rule(Rule::role("brainstorm").asked_for("You are researcher 1").say("There is no greeting yet.\n"))
        .rule(Rule::role("brainstorm").asked_for("You are researcher 2").say("It must be polite.\n"))
        .rule(Rule::role("brainstorm").asked_for("not in list.txt").say("# Design\n\nTwo files, on the list.\n"))
        .rule(Rule::role("brainstorm").asked_for("nobody can leave").say("# Design\n\nTwo files.\n"))
        .rule(Rule::role("brainstorm").say("# Design\n\nOne file.\n"))
        .rule(Rule::role("plan").asked_for("on the list").say(&plan(" Put both on the list.")))
        .rule(Rule::role("plan").asked_for("Two files").say(&plan("")))
        .rule(Rule::role("plan").say("# Greeting\n\n### Task 1: Say hello\n\nWrite hello.txt.\n"))
        .rule(Rule::role("review").reviewer("plan").asked_for("Say goodbye").say("NO ISSUES\n"))
        .rule(Rule::role("review").reviewer("plan").say("- [HIGH] nobody can leave\n- [LOW] no file for it\n"))
        .rule(Rule::role("implement").asked_for("number 1 of 2").write("hello.txt", "hello\n").say("Done.\n"))
        .rule(Rule::role("implement").asked_for("on the list").write("list.txt", "hello.txt bye.txt\n").say("Done.\n"))
        .rule(Rule::role("implement").asked_for("number 2 of 2").write("bye.txt", "bye\n").say("Done.\n"))
        .rule(Rule::role("review").reviewer("code").asked_for("fix-2.txt").say("NO ISSUES\n"))
        .rule(Rule::role("review").reviewer("code").cycle(1).say("- [HIGH] hello.txt:1 greets nobody\n"))
        .rule(Rule::role("review").reviewer("code").cycle(2).say("- [MEDIUM] bye.txt:1 sounds rude\n"))
        .rule(Rule::role("fix").write("fix-{cycle}.txt", "fixed\n").say("Fixed.\n"))
        .rule(Rule::role("simplify").write("simple.txt", "simple\n").say("Simpler.\n"))
        .rule(Rule::role("review").say("NO ISSUES\n"))
}

pub fn project(agent: impl FnOnce(Script) -> Script) -> Project {
    let project = Project::with_agent(PROGRAM, agent);
    project.env.write("test.sh", TEST);
    project.configure(SETTINGS);
    project
}

#[test]
fn three_iterations_to_the_last_look() {
    let project = project(team);
    let before = project.checkout();
    insta::assert_snapshot!(project.run(&["iterate", "Add a greeting"]), @r#"
    exit 1
    --- stdout
    Running task #1: Add a greeting
    Iteration 1/10
      Phase 1/9: Brainstorm: 2 researchers first...
      Phase 1/9: Brainstorm: Bringing it together...
      Phase 1/9: Brainstorm complete
      Phase 2/9: Plan...
      Phase 2/9: Plan complete
      Phase 3/9: Plan Review...
      Phase 3/9: Plan Review: Review by plan is unclear: there is no finding, and no `[]`, `{"issues": []}` or line `NO ISSUES` that says so; trying again
      Phase 3/9: Plan Review: INCONCLUSIVE - plan: there is no finding, and no `[]`, `{"issues": []}` or line `NO ISSUES` that says so
    ✗ Task #1 failed: a review could not be understood (unclear_review)
        Look at it: signoff show 1; go on: signoff retry 1
    ▪ Run 1 is blocked by #1 (a review could not be understood)
        signoff retry 1, signoff edit 1 --verdict APPROVED, or signoff cancel 1
        then: signoff run --resume 1
    "#);
    insta::assert_snapshot!(project.subjects(BRANCH), @"
    Add a greeting - design
    Add a greeting - plan
    ");
    insta::assert_snapshot!(project.calls().story(), @"
    brainstorm task 1 cycle 0: exit 0
    brainstorm task 1 cycle 0: exit 0
    brainstorm task 1 cycle 0: exit 0
    plan task 1 cycle 0: exit 0
    review plan task 1 cycle 1: exit 0
    review plan task 1 cycle 1: exit 0
    ");
    assert_eq!(project.checkout(), before);
}
