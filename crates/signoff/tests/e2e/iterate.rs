//! `signoff iterate`: think, plan, review the plan, implement, review, test, simplify, final review.

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};

use crate::PROGRAM;

pub const BRANCH: &str = "signoff/task-1-add-a-greeting";

pub const BEGIN: [&str; 2] = ["iterate", "Add a greeting"];

/// Two researchers before the design, none before the plan; the project's test is a script.
pub const SETTINGS: &str = "\
[presets.phases.phase.1]
researchers = 2
[presets.phases.phase.2]
parallel = false
[checks]
test = \"sh test.sh\"
";

/// The project's test: the list must contain the greeting.
pub const TEST: &str =
    "test -f hello.txt || exit 0\ngrep -qs hello.txt list.txt && exit\necho 'hello.txt is not in list.txt'\nexit 1\n";

/// A team that needs three iterations. The agents' actions depend only on their prompts, so a repeated call has the
/// same result.
pub fn team(script: AgentScript) -> AgentScript {
    let plan = |more: &str| {
        format!(
            "# Greeting\n\n### Task 1: Say hello\n\nWrite hello.txt.\n\n### Task 2: Say goodbye\n\n\
             Write bye.txt.{more}\n"
        )
    };
    script
        .rule(ScriptRule::role("brainstorm").prompt_contains("You are researcher 1").say("There is no greeting yet.\n"))
        .rule(ScriptRule::role("brainstorm").prompt_contains("You are researcher 2").say("It must be polite.\n"))
        .rule(
            ScriptRule::role("brainstorm")
                .prompt_contains("not in list.txt")
                .say("# Design\n\nTwo files, on the list.\n"),
        )
        .rule(ScriptRule::role("brainstorm").prompt_contains("nobody can leave").say("# Design\n\nTwo files.\n"))
        .rule(ScriptRule::role("brainstorm").say("# Design\n\nOne file.\n"))
        .rule(ScriptRule::role("plan").prompt_contains("on the list").say(&plan(" Put both on the list.")))
        .rule(ScriptRule::role("plan").prompt_contains("Two files").say(&plan("")))
        .rule(ScriptRule::role("plan").say("# Greeting\n\n### Task 1: Say hello\n\nWrite hello.txt.\n"))
        .rule(ScriptRule::role("review").reviewer("plan").prompt_contains("Say goodbye").say("NO ISSUES\n"))
        .rule(
            ScriptRule::role("review")
                .reviewer("plan")
                .say("HIGH plan.md:1 nobody can leave\nLOW plan.md:3 no word about the file\n"),
        )
        .rule(
            ScriptRule::role("implement").prompt_contains("number 1 of 2").write("hello.txt", "hello\n").say("Done.\n"),
        )
        .rule(
            ScriptRule::role("implement")
                .prompt_contains("on the list")
                .write("list.txt", "hello.txt bye.txt\n")
                .say("Done.\n"),
        )
        .rule(ScriptRule::role("implement").prompt_contains("number 2 of 2").write("bye.txt", "bye\n").say("Done.\n"))
        .rule(ScriptRule::role("review").reviewer("code").prompt_contains("fix-2.txt").say("NO ISSUES\n"))
        .rule(ScriptRule::role("review").reviewer("code").say("HIGH hello.txt:1 greets nobody\n"))
        .rule(ScriptRule::role("fix").write("fix-{cycle}.txt", "fixed\n").say("Fixed.\n"))
        .rule(ScriptRule::role("implement").write("hello.txt", "hello\n").say("Done.\n"))
        .rule(ScriptRule::role("simplify").write("simple.txt", "simple\n").say("Simpler.\n"))
        .rule(ScriptRule::role("review").say("NO ISSUES\n"))
}

pub fn project(agent: impl FnOnce(AgentScript) -> AgentScript) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, agent);
    project.env.write("test.sh", TEST);
    project.configure(SETTINGS);
    project
}

/// The names of the review files without their dates.
fn reviews(project: &TestProject) -> String {
    let names = project.list(".signoff/reviews");
    names.iter().map(|name| name.get(9..).unwrap_or(name)).collect::<Vec<_>>().join("\n")
}

#[test]
fn three_iterations_until_the_final_review() {
    let project = project(team);
    let before = project.checkout();
    insta::assert_snapshot!(project.run(&BEGIN), @"
    exit 0
    --- stdout
    Running task #1: Add a greeting
    Iteration 1/10
      Phase 1/9: Brainstorm: 2 researchers first...
      Phase 1/9: Brainstorm: Combining the results...
      Phase 1/9: Brainstorm complete
      Phase 2/9: Plan...
      Phase 2/9: Plan complete
      Phase 3/9: Plan Review...
      Phase 3/9: Plan Review: CHANGES_REQUESTED - nobody can leave
      Phase 3/9: Plan Review: 2 issues, back to phase 1 (iteration 2/10)
    Iteration 2/10
      Phase 1/9: Brainstorm: 2 researchers first...
      Phase 1/9: Brainstorm: Combining the results...
      Phase 1/9: Brainstorm complete
      Phase 2/9: Plan...
      Phase 2/9: Plan: 2 items planned
      Phase 2/9: Plan complete
      Phase 3/9: Plan Review...
      Phase 3/9: Plan Review: APPROVED
      Phase 4/9: Implement, item 1/2...
      Phase 4/9: Implement, item 1/2 complete
      Phase 4/9: Implement, item 2/2...
      Phase 4/9: Implement, item 2/2 complete
      Phase 5/9: Code Review...
      Phase 5/9: Code Review: CHANGES_REQUESTED - greets nobody
      Phase 5/9: Code Review 2/11: Improving...
      Phase 5/9: Code Review 2/11...
      Phase 5/9: Code Review 2/11: CHANGES_REQUESTED - greets nobody
      Phase 5/9: Code Review 3/11: Improving...
      Phase 5/9: Code Review 3/11...
      Phase 5/9: Code Review 3/11: APPROVED
      Phase 6/9: Test...
      Phase 6/9: Test: FAILED - `test` (`sh test.sh`) exited with 1. The end of its output: hello.txt is not in list.txt
      Phase 6/9: Test: 1 issue, back to phase 1 (iteration 3/10)
    Iteration 3/10
      Phase 1/9: Brainstorm: 2 researchers first...
      Phase 1/9: Brainstorm: Combining the results...
      Phase 1/9: Brainstorm complete
      Phase 2/9: Plan...
      Phase 2/9: Plan complete
      Phase 3/9: Plan Review...
      Phase 3/9: Plan Review: APPROVED
      Phase 4/9: Implement, item 1/2...
      Phase 4/9: Implement, item 1/2 complete
      Phase 4/9: Implement, item 2/2...
      Phase 4/9: Implement, item 2/2 complete
      Phase 5/9: Code Review...
      Phase 5/9: Code Review: APPROVED
      Phase 6/9: Test...
      Phase 6/9: Test: PASSED
      Phase 7/9: Simplify...
      Phase 7/9: Simplify complete
      Phase 8/9: Final Review...
      Phase 8/9: Final Review: APPROVED
      Phase 9/9: Codex Final...
      Phase 9/9: Codex Final: APPROVED
    ✓ Task #1 completed (APPROVED after 9 reviews in 3 iterations)
    --- stderr
    item 1 of 2 changed nothing: Say hello
    ");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"  ✓ 1. implement Add a greeting    completed  APPROVED (1 cycle)");
    insta::assert_snapshot!(project.subjects(BRANCH), @"
    Add a greeting - design
    Add a greeting - plan
    Add a greeting - design
    Add a greeting - plan
    Add a greeting - item 1 of 2: Say hello
    Add a greeting - item 2 of 2: Say goodbye
    Address review feedback (cycle 1)
    Address review feedback (cycle 2)
    Add a greeting - design
    Add a greeting - plan
    Add a greeting - item 2 of 2: Say goodbye
    Add a greeting - simplify
    ");
    insta::assert_snapshot!(calls(&project), @"
    brainstorm       brainstorm 0
    brainstorm       brainstorm 0
    brainstorm       brainstorm 0
    plan             plan 0
    plan_review      review plan 1
    brainstorm       brainstorm 0
    brainstorm       brainstorm 0
    brainstorm       brainstorm 0
    plan             plan 0
    plan_review      review plan 1
    implement        implement 0
    implement        implement 0
    code_review      review code 1
    code_review      fix 1
    code_review      review code 2
    code_review      fix 2
    code_review      review code 3
    brainstorm       brainstorm 0
    brainstorm       brainstorm 0
    brainstorm       brainstorm 0
    plan             plan 0
    plan_review      review plan 1
    implement        implement 0
    implement        implement 0
    code_review      review code 1
    simplify         simplify 0
    final_review     review final 1
    codex_final      review codex 1
    ");
    insta::assert_snapshot!(reviews(&project), @"
    task-1-p1-plan_review-review-1.md
    task-1-p1-plan_review-review-1.plan.txt
    task-1-p2-code_review-review-1.code.txt
    task-1-p2-code_review-review-1.md
    task-1-p2-code_review-review-2.code.txt
    task-1-p2-code_review-review-2.md
    task-1-p2-code_review-review-3.code.txt
    task-1-p2-code_review-review-3.md
    task-1-p2-plan_review-review-1.md
    task-1-p2-plan_review-review-1.plan.txt
    task-1-p3-code_review-review-1.code.txt
    task-1-p3-code_review-review-1.md
    task-1-p3-codex_final-review-1.codex.txt
    task-1-p3-codex_final-review-1.md
    task-1-p3-final_review-review-1.final.txt
    task-1-p3-final_review-review-1.md
    task-1-p3-plan_review-review-1.md
    task-1-p3-plan_review-review-1.plan.txt
    ");
    let documents = format!("docs/signoff/{}", &BRANCH["signoff/".len()..]);
    insta::assert_snapshot!(project.git(&format!("show {BRANCH}:{documents}-design.md")), @"
    # Design

    Two files, on the list.
    ");
    insta::assert_snapshot!(project.git(&format!("show {BRANCH}:{documents}-plan.md")), @"
    # Greeting

    ### Task 1: Say hello

    Write hello.txt.

    ### Task 2: Say goodbye

    Write bye.txt. Put both on the list.
    ");
    let shown = project.run(&["show", "1", "--json"]).json();
    insta::assert_snapshot!(shown["task"]["place"], @r#"{"phase":9,"phases":9,"pass":3,"max_passes":10}"#);
    assert_eq!(project.checkout(), before);
}

/// The calls of each phase, in order.
fn calls(project: &TestProject) -> String {
    let line = |call: &signoff_testkit::calls::AgentCall| {
        let start = &call.start;
        let reviewer =
            if start.reviewer.is_empty() { start.role.clone() } else { format!("{} {}", start.role, start.reviewer) };
        format!("{:<16} {reviewer} {}\n", start.phase, start.cycle)
    };
    project.calls().all().iter().map(line).collect()
}

/// All reviewers approve at once.
fn approving_agent(script: AgentScript) -> AgentScript {
    let script = script.rule(ScriptRule::role("review").say("NO ISSUES\n"));
    team(script)
}

const QUICK: &str = "[presets.phases.phase.1]\nparallel = false\n[presets.phases.phase.2]\nparallel = false\n";

fn short_workflow(agent: impl FnOnce(AgentScript) -> AgentScript, more: &str) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, agent);
    project.configure(&format!("{more}{QUICK}"));
    project
}

#[test]
fn lite_has_no_final_review() {
    let project = short_workflow(approving_agent, "");
    insta::assert_snapshot!(project.env.run_with_input(&["iterate", "--lite", "-"], "Add a greeting\n\nA short one."), @"
    exit 0
    --- stdout
    Running task #1: Add a greeting
    Iteration 1/10
      Phase 1/8: Brainstorm...
      Phase 1/8: Brainstorm complete
      Phase 2/8: Plan...
      Phase 2/8: Plan complete
      Phase 3/8: Plan Review...
      Phase 3/8: Plan Review: APPROVED
      Phase 4/8: Implement...
      Phase 4/8: Implement complete
      Phase 5/8: Code Review...
      Phase 5/8: Code Review: APPROVED
      Phase 6/8: Test...
      Phase 6/8: Test: Nothing to check: no checks are configured, and none were found
      Phase 7/8: Simplify...
      Phase 7/8: Simplify complete
      Phase 8/8: Final Review...
      Phase 8/8: Final Review: APPROVED
    ✓ Task #1 completed (APPROVED after 3 reviews in 1 iteration): there was nothing to check (nothing_to_check)
    ");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"  ✓ 1. implement Add a greeting    completed  APPROVED (1 cycle)  nothing_to_check");
    insta::assert_snapshot!(calls(&project), @"
    brainstorm       brainstorm 0
    plan             plan 0
    plan_review      review plan 1
    implement        implement 0
    code_review      review code 1
    simplify         simplify 0
    final_review     review final 1
    ");
    let task = project.run(&["show", "1"]).stdout;
    assert!(task.contains("nothing to check"), "{task}");
}

#[test]
fn a_tool_without_an_agent_is_an_error_except_with_lite() {
    let project = short_workflow(approving_agent, "");
    let tool = "[presets.phases.phase.3]\ntool = \"mcp__codex__codex\"\n[presets.phases.phase.8]\ntool = \"mcp__codex__codex\"\n";
    project.configure(&format!("{QUICK}{tool}"));
    insta::assert_snapshot!(project.run(&BEGIN), @r#"
    exit 2
    --- stderr
    error: phase `plan_review` names the tool `mcp__codex__codex`, which is mapped to no agent: configure an agent of kind "codex", or write `"mcp__codex__codex" = "AGENT"` in [presets.phases.tools]
      --> signoff.toml:8
    hint: fix the file, then check it with `signoff config`
    "#);
    assert_eq!(project.run(&["status", "--json"]).json()["tasks"].as_array().map(Vec::len), Some(0));
    assert_eq!(project.calls().all().len(), 0);
    assert_eq!(project.run(&["iterate", "Add a greeting", "--lite"]).code, Some(0));
}

#[test]
fn lite_reviews_with_the_main_agent_even_if_another_is_configured() {
    let project = short_workflow(approving_agent, "");
    let other = "[roles]\nimplement = \"scripted\"\n[agents.other]\nkind = \"command\"\ncommand = [\"false\"]\n[presets.phases.phase.8]\nagent = \"other\"\nmodel = \"its-own\"\n";
    project.configure(&format!("{QUICK}{other}"));
    let ended = project.run(&["iterate", "Add a greeting", "--lite"]);
    assert_eq!(ended.code, Some(0), "{ended}");
}

#[test]
fn the_iteration_limit_must_be_a_number() {
    let project = short_workflow(approving_agent, "");
    for wrong in ["0", "1001", "-1", "often", ""] {
        let output = project.run(&["iterate", "Add a greeting", &format!("--max-iterations={wrong}")]);
        assert_eq!(output.code, Some(2), "{wrong}: {output}");
        assert!(output.stderr.contains("--max-iterations"), "{wrong}: {output}");
    }
    insta::assert_snapshot!(project.run(&["iterate", " "]), @r#"
    exit 2
    --- stderr
    error: a task needs a text
    hint: signoff iterate "Add user authentication"
    "#);
    assert_eq!(project.calls().all().len(), 0);
}

#[test]
fn a_missing_agent_is_an_error_before_anything_starts() {
    let project = short_workflow(approving_agent, "");
    let missing = "[presets.phases.phase.7]\nagent = \"tidy\"\n[agents.tidy]\nkind = \"command\"\ncommand = [\"no-such-program\"]\n[roles]\nimplement = \"scripted\"\n";
    project.configure(&format!("{QUICK}{missing}"));
    insta::assert_snapshot!(project.run(&BEGIN), @"
    exit 2
    --- stderr
    error: agent tidy: program no-such-program was not found
      --> signoff.toml:11
    hint: install it, or set [agents.tidy] command in signoff.toml
    ");
    project.configure(&format!("{QUICK}[prompts]\nsimplify = \"nowhere.md\"\n"));
    insta::assert_snapshot!(project.run(&BEGIN), @"
    exit 2
    --- stderr
    error: there is no prompt nowhere.md
      --> signoff.toml:8
    hint: create it, or name another file
    ");
    assert_eq!(project.calls().all().len(), 0);
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"");
}

#[test]
fn an_iterated_task_can_be_queued_and_cancelled() {
    let project = short_workflow(approving_agent, "");
    insta::assert_snapshot!(project.run(&["iterate", "Add a greeting", "--queue"]), @"
    exit 0
    --- stdout
    Added task #1: Add a greeting
    --- stderr
    `signoff work` starts it
    ");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"  · 1. implement Add a greeting    pending");
    assert_eq!(project.calls().all().len(), 0);
    project.run(&["iterate", "Another", "--queue", "--lite"]);
    insta::assert_snapshot!(project.run(&["cancel", "2"]).stdout, @"Task #2 cancelled");
    insta::assert_snapshot!(project.run(&["work"]).stdout, @"
    Running task #1: Add a greeting
    Iteration 1/10
      Phase 1/9: Brainstorm...
      Phase 1/9: Brainstorm complete
      Phase 2/9: Plan...
      Phase 2/9: Plan complete
      Phase 3/9: Plan Review...
      Phase 3/9: Plan Review: APPROVED
      Phase 4/9: Implement...
      Phase 4/9: Implement complete
      Phase 5/9: Code Review...
      Phase 5/9: Code Review: APPROVED
      Phase 6/9: Test...
      Phase 6/9: Test: Nothing to check: no checks are configured, and none were found
      Phase 7/9: Simplify...
      Phase 7/9: Simplify complete
      Phase 8/9: Final Review...
      Phase 8/9: Final Review: APPROVED
      Phase 9/9: Codex Final...
      Phase 9/9: Codex Final: APPROVED
    ✓ Task #1 completed (APPROVED after 4 reviews in 1 iteration): there was nothing to check (nothing_to_check)
    ");
}
