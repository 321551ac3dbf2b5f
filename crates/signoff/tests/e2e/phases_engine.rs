//! The phases of a task: research, documents, items, checks.

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::calls::AgentCall;

use crate::PROGRAM;

const BRANCH: &str = "signoff/task-1-add-a-greeting";
const DESIGN: &str = "docs/signoff/task-1-add-a-greeting-design.md";
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

#[test]
fn a_task_goes_through_all_phases() {
    let project = full_workflow(|script| team(researchers(script)));
    let before = project.checkout();
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 0
    --- stdout
    Running task #1: Add a greeting
    Iteration 1/10
      Phase 1/9: Brainstorm: 3 researchers first...
      Phase 1/9: Brainstorm: Combining the results...
      Phase 1/9: Brainstorm complete
      Phase 2/9: Plan: 3 researchers first...
      Phase 2/9: Plan: Combining the results...
      Phase 2/9: Plan: 2 items planned
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
      Phase 6/9: Test: Nothing to check: no checks are configured, and none were found
      Phase 7/9: Simplify...
      Phase 7/9: Simplify complete
      Phase 8/9: Final Review...
      Phase 8/9: Final Review: APPROVED
      Phase 9/9: Codex Final...
      Phase 9/9: Codex Final: APPROVED
    ✓ Task #1 completed (APPROVED after 4 reviews in 1 iteration): there was nothing to check (nothing_to_check)
    ");
    insta::assert_snapshot!(project.subjects(BRANCH), @"
    Add a greeting - design
    Add a greeting - plan
    Add a greeting - item 1 of 2: Say hello
    Add a greeting - item 2 of 2: Say goodbye
    ");
    insta::assert_snapshot!(project.git(&format!("ls-tree -r --name-only {BRANCH}")), @"
    README.md
    bye.txt
    docs/signoff/task-1-add-a-greeting-design.md
    docs/signoff/task-1-add-a-greeting-plan.md
    hello.txt
    signoff.toml
    ");
    let called = |call: &AgentCall| format!("{} {}{}", call.start.phase, call.start.role, call.start.reviewer);
    let called: Vec<String> = project.calls().all().iter().map(called).collect();
    insta::assert_snapshot!(called.join("\n"), @"
    brainstorm brainstorm
    brainstorm brainstorm
    brainstorm brainstorm
    brainstorm brainstorm
    plan plan
    plan plan
    plan plan
    plan plan
    plan_review reviewplan
    implement implement
    implement implement
    code_review reviewcode
    simplify simplify
    final_review reviewfinal
    codex_final reviewcodex
    ");
    let shown = project.run(&["show", "1"]).stdout;
    assert!(shown.contains("nothing to check: no [checks] are configured"), "{shown}");
    assert_eq!(on_branch(&project, PLAN), TASKS);
    assert_eq!(project.checkout(), before);
}

#[test]
fn every_phase_gets_the_results_of_earlier_phases() {
    let project = full_workflow(|script| team(researchers(script)));
    project.run(&["work"]);
    let prompt = |phase: &str, index: usize| calls(&project, phase)[index].prompt.clone();
    let design = prompt("brainstorm", 3);
    for text in ["There is no greeting yet.", "It must be polite.", "It may offend.", DESIGN] {
        assert!(design.contains(text), "{text}: {design}");
    }
    assert!(prompt("plan", 0).contains(&format!("- Design: {DESIGN}")), "researchers know the design");
    let plan = prompt("plan", 3);
    for text in ["One file for each word.", "Two files are enough.", PLAN, "### Task 1: Title"] {
        assert!(plan.contains(text), "{text}: {plan}");
    }
    let review = prompt("plan_review", 0);
    for text in ["# PLAN REVIEW PHASE", "One file for each word.", "Say goodbye", PLAN, DESIGN, "diff --git"] {
        assert!(review.contains(text), "{text}: {review}");
    }
    let (first, second) = (prompt("implement", 0), prompt("implement", 1));
    for text in ["**Say hello**", "- hello.txt says hello", "Coming later:\n- Say goodbye", PLAN, DESIGN] {
        assert!(first.contains(text), "{text}: {first}");
    }
    for text in ["**Say goodbye**", "Done before:\n- Say hello", "Write it to bye.txt."] {
        assert!(second.contains(text), "{text}: {second}");
    }
    for phase in ["code_review", "final_review", "codex_final"] {
        let review = prompt(phase, 0);
        assert!(review.contains("hello.txt") && review.contains("bye.txt"), "{phase}: {review}");
    }
    assert!(prompt("simplify", 0).contains("+hello"), "what is made simpler is shown");
}

#[test]
fn a_restart_gets_the_findings_and_the_last_plan() {
    let project = project(SHORT, |script| {
        let objects = ScriptRule::role("review").reviewer("plan").call(1);
        team(script.rule(objects.say("HIGH: docs/plan.md:3 nobody greets the cat\n")))
    });
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 0
    --- stdout
    Running task #1: Add a greeting
      [brainstorm] Brainstorming...
      [brainstorm] Brainstorm complete
      [plan] Planning...
      [plan] 2 items planned
      [plan] Plan complete
      [plan_review 1/2] Running review...
      [plan_review 1/2] Review: CHANGES_REQUESTED - nobody greets the cat
      [plan_review 1/2] Starting over at brainstorm (pass 2/10)
      [brainstorm] Brainstorming...
      [brainstorm] Brainstorm complete
      [plan] Planning...
      [plan] Plan complete
      [plan_review 1/2] Running review...
      [plan_review 1/2] Review: APPROVED
      [implement, item 1/2] Implementing...
      [implement, item 1/2] Implementation complete
      [implement_review 1/3, item 1/2] Running review...
      [implement_review 1/3, item 1/2] Review: APPROVED
      [implement, item 2/2] Implementing...
      [implement, item 2/2] Implementation complete
      [implement_review 1/3, item 2/2] Running review...
      [implement_review 1/3, item 2/2] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 4 reviews)
    ");
    for phase in ["brainstorm", "plan"] {
        let prompt = calls(&project, phase).last().unwrap().prompt.clone();
        assert!(prompt.contains("nobody greets the cat"), "{phase}: {prompt}");
    }
    assert!(calls(&project, "plan")[1].prompt.contains("## The Last Plan"));
    insta::assert_snapshot!(project.subjects(BRANCH), @"
    Add a greeting - design
    Add a greeting - plan
    Add a greeting - item 1 of 2: Say hello
    Add a greeting - item 2 of 2: Say goodbye
    ");
}

#[test]
fn each_item_is_reviewed_by_its_own_changes() {
    let project = project(SHORT, team);
    project.run(&["work"]);
    let reviews = calls(&project, "implement_review");
    let [first, second] = reviews.as_slice() else { panic!("{reviews:?}") };
    assert!(first.prompt.contains("This is the review of number 1 of 2"), "{}", first.prompt);
    assert!(first.prompt.contains("hello.txt") && !first.prompt.contains("+# Design"), "{}", first.prompt);
    assert!(second.prompt.contains("+bye") && !second.prompt.contains("+hello"), "{}", second.prompt);
    assert!(!second.prompt.contains("Re-review"), "{}", second.prompt);
}

#[test]
fn reviews_are_counted_for_each_item() {
    let workflow =
        SHORT.replace("per_item = true, max_fixes = 2", "per_item = true, max_fixes = 1, on_exhausted = \"ask\"");
    let project = project(&workflow, |script| {
        let objects = |call| ScriptRule::role("review").reviewer("code").call(call);
        let script = script
            .rule(objects(1).say("HIGH: hello.txt:1 too short\n"))
            .rule(objects(3).say("HIGH: bye.txt:1 too short\n"))
            .rule(objects(4).say("HIGH: bye.txt:1 too short\n"))
            .rule(ScriptRule::role("fix").append("more.txt", "more\n").say("Fixed.\n"));
        team(script)
    });
    let worked = project.run(&["work"]).stdout;
    let of_review: Vec<&str> = worked.lines().filter(|line| line.contains("implement_review")).map(str::trim).collect();
    insta::assert_snapshot!(of_review.join("\n"), @"
    [implement_review 1/2, item 1/2] Running review...
    [implement_review 1/2, item 1/2] Review: CHANGES_REQUESTED - too short
    [implement_review 2/2, item 1/2] Improving...
    [implement_review 2/2, item 1/2] Running review...
    [implement_review 2/2, item 1/2] Review: APPROVED
    [implement_review 1/2, item 2/2] Running review...
    [implement_review 1/2, item 2/2] Review: CHANGES_REQUESTED - too short
    [implement_review 2/2, item 2/2] Improving...
    [implement_review 2/2, item 2/2] Running review...
    [implement_review 2/2, item 2/2] Review: CHANGES_REQUESTED - too short
    [implement_review 2/2, item 2/2] Question: 2 reviews did not lead to approval. One more fix and review, proceed with the findings open, or stop?
    ");
}

#[test]
fn a_plan_changed_by_a_fix_is_parsed_again() {
    let mended = TASKS.replace("### Task 2: Say goodbye", "### Task 2: Wave") + "\n### Task 3: Bow\n";
    let fixing = SHORT.replace("on_failure = \"restart\"", "on_failure = \"mini-loop\"");
    let project = project(&fixing, |script| {
        let objects = ScriptRule::role("review").reviewer("plan").call(1);
        let script = script
            .rule(objects.say("HIGH: docs/plan.md:3 nobody bows\n"))
            .rule(ScriptRule::role("fix").write(PLAN, &mended).say("Fixed.\n"))
            .rule(
                ScriptRule::role("implement").prompt_contains("number 3 of 3").write("bow.txt", "bow\n").say("Done.\n"),
            )
            .rule(ScriptRule::role("implement").append("some.txt", "more\n").say("Done.\n"));
        team(script)
    });
    project.run(&["work"]);
    insta::assert_snapshot!(project.subjects(BRANCH), @"
    Add a greeting - design
    Add a greeting - plan
    Address review feedback (cycle 1)
    Add a greeting - item 1 of 3: Say hello
    Add a greeting - item 2 of 3: Wave
    Add a greeting - item 3 of 3: Bow
    ");
}

/// Two parallel fixers, one of which changes the plan, and a second review that fails.
fn changed_together(settings: &str, change: &str) -> TestProject {
    let fixing = SHORT.replace(
        "on_failure = \"restart\", max_fixes = 1",
        &format!("on_failure = \"mini-loop\", parallel_fixes = true, {settings}"),
    );
    project(&fixing, |script| {
        let objects = format!("HIGH: {DESIGN}:1 says too little\nHIGH: {PLAN}:3 nobody bows\n");
        let script = script
            .rule(ScriptRule::role("review").reviewer("plan").call(1).say(&objects))
            .rule(ScriptRule::role("review").reviewer("plan").exit(1))
            .rule(
                ScriptRule::role("fix")
                    .prompt_contains("nobody bows")
                    .shell(&format!("{change} {PLAN}"))
                    .say("Fixed.\n"),
            )
            .rule(ScriptRule::role("fix").append(DESIGN, "More.\n").say("Fixed.\n"))
            .rule(ScriptRule::role("implement").append("some.txt", "more\n").say("Done.\n"));
        team(script)
    })
}

const ADDS: &str = "printf '\\n### Task 3: Bow\\n\\nDo it deeply.\\n' >>";

/// The titles of the items that were worked.
fn items(project: &TestProject) -> String {
    let subjects = project.subjects(BRANCH);
    subjects.lines().filter(|line| line.contains(" - item ")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_plan_changed_by_parallel_fixers_is_parsed_again_even_without_a_review() {
    let worked = "Add a greeting - item 1 of 3: Say hello\nAdd a greeting - item 2 of 3: Say goodbye\n\
                  Add a greeting - item 3 of 3: Bow\n";
    let project = changed_together("on_reviewer_failure = \"ask\", max_fixes = 2", ADDS);
    project.run(&["work"]);
    assert_eq!(project.run(&["answer", "1", "skip"]).code, Some(0));
    let output = project.run(&["work"]);
    assert_eq!(output.code, Some(3), "{output}");
    assert!(output.stdout.contains("3 items planned"), "{output}");
    assert_eq!(items(&project), worked);
    let noted = "on_reviewer_failure = \"not-passed\", max_fixes = 1, on_exhausted = \"proceed\"";
    let noted = changed_together(noted, ADDS);
    let output = noted.run(&["work"]);
    assert!(output.stdout.contains("3 items planned"), "{output}");
    assert_eq!(items(&noted), worked);
}

#[test]
fn an_item_changed_by_parallel_fixers_is_worked_as_changed() {
    let project = changed_together("on_reviewer_failure = \"ask\", max_fixes = 2", "sed -i 's/bye.txt/wave.txt/'");
    project.run(&["work"]);
    project.run(&["answer", "1", "skip"]);
    project.run(&["work"]);
    let implementers = calls(&project, "implement");
    assert_eq!(implementers.len(), 2);
    assert!(implementers[1].prompt.contains("Write it to wave.txt."), "{}", implementers[1].prompt);
}

#[test]
fn a_plan_that_a_person_changes_during_a_question_is_worked_as_changed() {
    let asking = SHORT.replace(
        "on_failure = \"restart\", max_fixes = 1",
        "on_failure = \"mini-loop\", max_fixes = 0, on_exhausted = \"ask\"",
    );
    let objecting = || {
        project(&asking, |script| {
            let objects = ScriptRule::role("review").reviewer("plan").say("HIGH: docs/plan.md:3 nobody bows\n");
            let more = ScriptRule::role("implement").append("some.txt", "more\n").say("Done.\n");
            team(script.rule(objects).rule(more))
        })
    };
    let project = objecting();
    project.run(&["work"]);
    let mut plan = project.read(&format!(".signoff/worktrees/task-1/{PLAN}"));
    plan.push_str("\n### Task 3: Bow\n");
    project.env.write(&format!(".signoff/worktrees/task-1/{PLAN}"), plan);
    assert_eq!(project.run(&["answer", "1", "proceed"]).code, Some(0));
    let output = project.run(&["work"]);
    assert_eq!(output.code, Some(3), "{output}");
    assert!(output.stdout.contains("[implement, item 1/2] 3 items planned"), "{output}");
    insta::assert_snapshot!(items(&project), @"
    Add a greeting - item 1 of 3: Say hello
    Add a greeting - item 2 of 3: Say goodbye
    Add a greeting - item 3 of 3: Bow
    ");
    // If the plan was deleted, the parsed items are worked.
    let project = objecting();
    project.run(&["work"]);
    project.git(&format!("-C .signoff/worktrees/task-1 rm -q {PLAN}"));
    project.run(&["answer", "1", "proceed"]);
    let output = project.run(&["work"]);
    assert!(output.to_string().contains("the tasks read before are implemented"), "{output}");
    assert_eq!(items(&project).lines().count(), 2);
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
fn a_plan_without_tasks_is_worked_as_one_item() {
    let project = project(SHORT, |script| {
        let script = script
            .rule(ScriptRule::role("plan").write(PLAN, "Just do it.\n").write("stray.txt", "oops\n").say("Written.\n"))
            .rule(ScriptRule::role("implement").write("hello.txt", "hello\n").say("Done.\n"));
        team(script)
    });
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 0
    --- stdout
    Running task #1: Add a greeting
      [brainstorm] Brainstorming...
      [brainstorm] Brainstorm complete
      [plan] Planning...
      [plan] Plan complete
      [plan_review 1/2] Running review...
      [plan_review 1/2] Review: APPROVED
      [implement] Implementing...
      [implement] Implementation complete
      [implement_review 1/3] Running review...
      [implement_review 1/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 reviews)
    --- stderr
    the plan writer also changed other files, which are kept: stray.txt
    docs/signoff/task-1-add-a-greeting-plan.md: found no tasks; it is implemented as a whole
    ");
    assert_eq!(on_branch(&project, PLAN), "Just do it.\n");
    insta::assert_snapshot!(project.subjects(BRANCH), @"
    Add a greeting - design
    Add a greeting - plan
    Add a greeting - initial implementation
    ");
}

#[test]
fn an_item_without_changes_is_reported_and_a_task_without_changes_fails() {
    let one_of_two = project(SHORT, |script| {
        team(script.rule(ScriptRule::role("implement").prompt_contains("number 1 of 2").say("It is there.\n")))
    });
    let worked = one_of_two.run(&["work"]);
    assert!(worked.to_string().contains("item 1 of 2 changed nothing: Say hello"), "{worked}");
    assert_eq!(worked.code, Some(0), "{worked}");
    let none = project(SHORT, |script| team(script.rule(ScriptRule::role("implement").say("It is there.\n"))));
    let worked = none.run(&["work", "--no-ask"]);
    assert!(worked.to_string().contains("ended without changing anything"), "{worked}");
    assert_eq!(worked.code, Some(1), "{worked}");
}

#[test]
fn a_failed_researcher_is_skipped_and_one_that_writes_is_undone() {
    let project = full_workflow(|script| {
        let second = || ScriptRule::role("brainstorm").prompt_contains("You are researcher 2");
        let third = ScriptRule::role("brainstorm").prompt_contains("You are researcher 3");
        let script = script.rule(second().exit(3)).rule(third.write("planted.txt", "here\n").say("It may offend.\n"));
        team(researchers(script))
    });
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    let printed = worked.to_string();
    assert!(printed.contains("changed files while researching; undone: added planted.txt"), "{worked}");
    let thinking = calls(&project, "brainstorm");
    let design = &thinking.last().unwrap().prompt;
    assert_eq!(thinking.len(), 5, "one researcher ran twice");
    assert!(design.contains("There is no greeting yet.") && design.contains("It may offend."), "{design}");
    assert!(design.contains("### Report 2") && !design.contains("### Report 3"), "{design}");
    assert!(!project.git(&format!("ls-tree -r --name-only {BRANCH}")).contains("planted"));
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
fn custom_prompts_are_used() {
    let project = project(SHORT, team);
    project.env.write(".signoff/prompts/brainstorm.md", "Think like a cat.\n");
    project.env.write("plan-prompt.md", "Plan like a cat.\n");
    project.configure(&format!("{SHORT}\n[prompts]\nplan = \"plan-prompt.md\"\n"));
    project.run(&["work"]);
    assert!(calls(&project, "brainstorm")[0].prompt.starts_with("Think like a cat.\n"));
    let plan = &calls(&project, "plan")[0].prompt;
    assert!(plan.starts_with("Plan like a cat.\n") && plan.contains(PLAN), "{plan}");
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
