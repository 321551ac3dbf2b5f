//! The phases of a task: research, documents, items, checks.

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::calls::AgentCall;

use crate::PROGRAM;

const BRANCH: &str = "signoff/task-1-add-a-greeting";
const PLAN: &str = "docs/signoff/task-1-add-a-greeting-plan.md";
const CLEAN: &str = "NO ISSUES\n";

const TASKS: &str = "# Greeting\n\n### Task 1: Say hello\n\nWrite it to hello.txt.\n\n\
     **Acceptance Criteria:**\n- hello.txt says hello\n\n### Task 2: Say goodbye\n\nWrite it to bye.txt.\n";

/// The shortest workflow with documents and items.
const SHORT: &str = r#"
preset = "short"
[workflows.short]
arrangement = "chain"
phases = [
  { name = "brainstorm", kind = "agent", role = "brainstorm" },
  { name = "plan", kind = "agent", role = "plan" },
  { name = "plan_review", kind = "gate", reviewers = ["plan"], on_failure = "restart", max_fixes = 1, on_implementer_failure = ["retry", "stop"] },
  { name = "implement", kind = "agent", per_item = true },
  { name = "implement_review", kind = "gate", reviewers = ["code"], per_item = true, max_fixes = 2 },
]
[workflows.short.reviewers]
plan = { kind = "general", contract = "severity" }
code = { kind = "code", contract = "severity" }
"#;

/// The researchers.
fn researchers(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("brainstorm").prompt_contains("You are researcher 1").say("There is no greeting yet.\n"))
        .rule(ScriptRule::role("brainstorm").prompt_contains("You are researcher 2").say("It must be polite.\n"))
        .rule(ScriptRule::role("brainstorm").prompt_contains("You are researcher 3").say("It may offend.\n"))
        .rule(ScriptRule::role("plan").prompt_contains("You are researcher").say("Two files are enough.\n"))
}

/// The agents that brainstorm, plan and implement.
fn team(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("brainstorm").say("# Design\n\nOne file for each word.\n"))
        .rule(ScriptRule::role("plan").say(TASKS))
        .rule(
            ScriptRule::role("implement").prompt_contains("number 1 of 2").write("hello.txt", "hello\n").say("Done.\n"),
        )
        .rule(ScriptRule::role("implement").prompt_contains("number 2 of 2").write("bye.txt", "bye\n").say("Done.\n"))
        .rule(ScriptRule::role("simplify").say("Nothing to simplify.\n"))
        .rule(ScriptRule::role("review").say(CLEAN))
}

fn project(more: &str, script: impl FnOnce(AgentScript) -> AgentScript) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, script);
    project.configure(more);
    project.run(&["add", "Add a greeting"]);
    project
}

/// A project with the full workflow.
fn full_workflow(script: impl FnOnce(AgentScript) -> AgentScript) -> TestProject {
    project("preset = \"phases\"\n", script)
}

fn calls(project: &TestProject, phase: &str) -> Vec<AgentCall> {
    let calls = project.calls();
    calls.all().iter().filter(|call| call.start.phase == phase).cloned().collect()
}

/// The content of a file on the branch.
fn on_branch(project: &TestProject, file: &str) -> String {
    project.git(&format!("show {BRANCH}:{file}"))
}

/// The result if a fixer changes the plan like this in its first one or two calls.
fn plan_changed_by_fixer(
    times: u32,
    fix: impl Fn(ScriptRule) -> ScriptRule,
) -> (TestProject, signoff_testkit::ProgramOutput) {
    let fixing = SHORT.replace("on_failure = \"restart\"", "on_failure = \"mini-loop\"");
    let project = project(&fixing, |script| {
        let objects = ScriptRule::role("review").reviewer("plan").call(1);
        let script = script.rule(objects.say("HIGH: docs/plan.md:3 nobody bows\n"));
        let script = (1..=times).fold(script, |script, call| script.rule(fix(ScriptRule::role("fix").call(call))));
        let adds = ScriptRule::role("fix").append(PLAN, "Bow.\n").say("Fixed.\n");
        team(script.rule(adds).rule(ScriptRule::role("implement").append("some.txt", "more\n").say("Done.\n")))
    });
    let worked = project.run(&["work", "--no-ask"]);
    (project, worked)
}

#[test]
fn a_fixer_that_leaves_no_valid_plan_has_failed_and_the_plan_is_restored() {
    let ways: [(&str, String); 3] = [
        ("is missing or empty", format!("rm {PLAN}")),
        ("not a plain file", format!("ln -sf /etc/passwd {PLAN}")),
        ("is larger than", format!("head -c 2000000 /dev/zero | tr '\\0' x > {PLAN}")),
    ];
    for (reason, script) in &ways {
        let (project, worked) = plan_changed_by_fixer(1, |rule| rule.shell(script).say("Fixed.\n"));
        assert_eq!(worked.code, Some(0), "{reason}: {worked}");
        assert!(worked.stdout.contains(reason), "{reason}: {worked}");
        let prompt = &calls(&project, "plan_review")[2].prompt;
        assert!(prompt.contains("## Your Last Answer Was Refused") && prompt.contains(reason), "{prompt}");
        let plan = on_branch(&project, PLAN);
        assert_eq!(plan, format!("{TASKS}Bow.\n"), "{reason}");
    }
    let many = ("has 201 tasks", format!("for i in $(seq 201); do echo \"### Task $i: Do\"; done > {PLAN}"));
    for (reason, script) in ways.into_iter().chain([many]) {
        let (project, worked) = plan_changed_by_fixer(2, |rule| rule.shell(&script).say("Fixed.\n"));
        assert_eq!(worked.code, Some(1), "{reason}: {worked}");
        assert!(worked.stdout.contains(reason), "{reason}: {worked}");
        assert!(calls(&project, "implement").is_empty(), "{reason}");
    }
}

#[test]
fn documents_are_committed_even_if_ignored_and_other_ignored_files_are_not() {
    let project = project(SHORT, |script| {
        let plan = ScriptRule::role("plan").write(PLAN, TASKS).write("docs/secret.txt", "mine\n").say("Written.\n");
        team(script.rule(plan))
    });
    project.env.write(".gitignore", "docs/\n*-plan.md\n");
    project.commit("Ignore the documents");
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    insta::assert_snapshot!(project.git(&format!("ls-tree -r --name-only {BRANCH} docs")), @"
    docs/signoff/task-1-add-a-greeting-design.md
    docs/signoff/task-1-add-a-greeting-plan.md
    ");
}

#[test]
fn finished_researchers_are_not_called_again_after_a_kill() {
    let project = full_workflow(|script| team(researchers(script)));
    // Three attempts for research; the fourth combines their reports.
    project.env.run_with(&["work"], &[("SIGNOFF_FAILPOINT", "prepare:4")]);
    assert_eq!(calls(&project, "brainstorm").len(), 3);
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    let thinking = calls(&project, "brainstorm");
    assert_eq!(thinking.len(), 4);
    for text in ["There is no greeting yet.", "It must be polite.", "It may offend."] {
        assert!(thinking[3].prompt.contains(text), "{text}: {}", thinking[3].prompt);
    }
}

#[test]
fn detected_checks_run_and_a_failing_one_starts_the_next_pass() {
    let project = full_workflow(|script| {
        let makefile = "test:\n\t@test -f fixed.txt || { echo 'hello.txt:1: too loud'; exit 1; }\n";
        let script = script
            .rule(ScriptRule::role("implement").call(1).write("Makefile", makefile).say("Done.\n"))
            .rule(ScriptRule::role("implement").prompt_contains("too loud").write("fixed.txt", "f\n").say("Done.\n"));
        team(researchers(script))
    });
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert!(worked.to_string().contains("no [checks] are configured; found and run: make test"), "{worked}");
    let thinking = calls(&project, "brainstorm");
    assert_eq!(thinking.len(), 8, "two passes");
    for call in &thinking[4..] {
        assert!(call.prompt.contains("too loud"), "{}", call.prompt);
    }
    let reviews: Vec<String> = project.list(".signoff/reviews");
    let count_of = |part: &str| reviews.iter().filter(|name| name.contains(part)).count();
    assert_eq!(count_of("-task-1-p2-final_review-review-1.md"), 1, "{reviews:?}");
    assert_eq!(count_of("-task-1-p1-plan_review-review-1.md"), 1, "{reviews:?}");
}

#[test]
fn a_check_whose_program_is_missing_starts_no_pass() {
    let project = full_workflow(|script| team(researchers(script)));
    project.configure("preset = \"phases\"\n[checks]\ntest = \"nosuchtool test ./...\"\n");
    let worked = project.run(&["work", "--no-ask"]);
    assert_eq!(worked.code, Some(1), "{worked}");
    let message = "Checks could not run: could not be started: check `test` needs `nosuchtool`, which is not installed";
    assert!(worked.stdout.contains(message), "{worked}");
    assert!(!worked.stdout.contains("Iteration 2/"), "{worked}");
}

#[test]
fn a_rejected_plan_does_not_block_the_next_attempt() {
    let ways = [
        "rm -rf docs && echo file > docs".to_owned(),
        "rm -rf docs && ln -s ../../../.. docs".to_owned(),
        format!("mkdir -p docs/signoff && ln -s /etc/passwd {PLAN}"),
        format!("mkdir -p {PLAN} && touch {PLAN}/x"),
        format!("mkdir -p docs/signoff && head -c 2000000 /dev/zero | tr '\\0' x > {PLAN}"),
    ];
    for script in &ways {
        let bad = ScriptRule::role("plan").call(1).shell(script).say("Done.\n");
        let project = project(SHORT, |all| team(all.rule(bad)));
        let worked = project.run(&["work", "--no-ask"]);
        assert_eq!(worked.code, Some(0), "{script}: {worked}");
        assert_eq!(on_branch(&project, PLAN), TASKS, "{script}");
    }
}

/// The error for a plan written in this way; nothing outside of the worktree may change.
fn plan_error(plan: impl Fn(ScriptRule) -> ScriptRule) -> String {
    let project = project(SHORT, |script| team(script.rule(plan(ScriptRule::role("plan")))));
    project.env.write("../outside.md", "mine\n");
    let before = project.checkout();
    let worked = project.run(&["work", "--no-ask"]);
    assert_eq!(worked.code, Some(1), "{worked}");
    assert_eq!(project.checkout(), before);
    assert_eq!(project.read("../outside.md"), "mine\n");
    let prompt = calls(&project, "plan").last().expect("a planner").prompt.clone();
    let refused = prompt.contains("## Your Last Answer Was Refused");
    let failed = |line: &&str| line.contains("refused:") || line.contains("failed:");
    let failure = worked.stdout.lines().find(failed).unwrap_or(&worked.stdout).trim().to_owned();
    assert_eq!(refused, failure.contains("refused:"), "{prompt}");
    failure
}

#[test]
fn a_hostile_plan_writes_nothing_outside_and_is_rejected_with_a_reason() {
    let many: String = (1..=201).map(|number| format!("### Task {number}: Do it\n\nNow.\n\n")).collect();
    let outputs = [
        plan_error(|rule| rule.shell("rm -rf docs && echo file > docs").say(TASKS)),
        plan_error(|rule| rule.shell(&format!("rm -f {PLAN}; ln -s ../../../../../outside.md {PLAN}")).say(TASKS)),
        plan_error(|rule| rule.shell("rm -rf docs && ln -s ../../../.. docs").say(TASKS)),
        plan_error(|rule| rule.shell(&format!("head -c 10000000 /dev/zero | tr '\\0' x > {PLAN}")).say("Done.\n")),
        plan_error(|rule| rule.say(&many)),
        plan_error(|rule| rule.say(" \n")),
        plan_error(|rule| rule.say("# Plan\n\n### Task 1: \u{0}\n")),
        plan_error(|rule| rule.shell(&format!("mkdir -p docs/signoff; printf '### Task 1: \\377' > {PLAN}"))),
    ];
    insta::assert_snapshot!(outputs.join("\n"), @"
    [plan] The plan was refused: docs is not a directory
    [plan] The plan was refused: docs/signoff/task-1-add-a-greeting-plan.md is not a plain file
    [plan] The plan was refused: docs is not a directory
    [plan] The plan was refused: docs/signoff/task-1-add-a-greeting-plan.md is larger than 1 MiB
    [plan] The plan was refused: docs/signoff/task-1-add-a-greeting-plan.md has 201 tasks; the maximum is 200
    [plan] Plan failed: ended without changing anything
    [plan] The plan was refused: docs/signoff/task-1-add-a-greeting-plan.md:3: a NUL byte: this is not a text file
    [plan] The plan was refused: docs/signoff/task-1-add-a-greeting-plan.md:1: not UTF-8 text
    ");
}

#[test]
fn control_characters_in_a_plan_do_not_reach_the_terminal() {
    let project = project(SHORT, |script| {
        let plan = "### Task 1: Say \u{1b}[2Jhello\u{7}\n\nNow.\n";
        let script = script
            .rule(ScriptRule::role("plan").say(plan))
            .rule(ScriptRule::role("implement").say("It is there.\n").write("hello.txt", "hello\n"));
        team(script)
    });
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert!(!worked.to_string().contains('\u{1b}'), "{worked}");
    insta::assert_snapshot!(project.subjects(BRANCH), @"
    Add a greeting - design
    Add a greeting - plan
    Add a greeting - item 1 of 1: Say [2Jhello
    ");
}
