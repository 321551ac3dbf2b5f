//! The phases of a task: research, documents, items. Attempts have files: agents read documents in their prompts, and
//! the program commits what they answer.

use signoff_core::view::TaskRow;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::story::{GitProject, ScriptedCall, Story};

use crate::dispatcher::scripts::lines;

const BRANCH: &str = "signoff/task-1-add-a-greeting";
const DESIGN: &str = "docs/signoff/task-1-add-a-greeting-design.md";
const PLAN: &str = "docs/signoff/task-1-add-a-greeting-plan.md";
const TITLE: &str = "Add a greeting";

const TASKS: &str = "# Greeting\n\n### Task 1: Say hello\n\nWrite it to hello.txt.\n\n\
     **Acceptance Criteria:**\n- hello.txt says hello\n\n### Task 2: Say goodbye\n\nWrite it to bye.txt.\n";

/// The full workflow.
const FULL: &str = "preset = \"phases\"\n";

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

fn researcher(role: &str, number: u32, report: &str) -> ScriptRule {
    ScriptRule::role(role).prompt_contains(&format!("You are researcher {number}")).say(report)
}

fn researchers(script: AgentScript) -> AgentScript {
    script
        .rule(researcher("brainstorm", 1, "There is no greeting yet.\n"))
        .rule(researcher("brainstorm", 2, "It must be polite.\n"))
        .rule(researcher("brainstorm", 3, "It may offend.\n"))
        .rule(ScriptRule::role("plan").prompt_contains("You are researcher").say("Two files are enough.\n"))
}

fn implements(item: &str, file: &str, text: &str) -> ScriptRule {
    ScriptRule::role("implement").prompt_contains(item).write(file, text).say("Done.\n")
}

/// The agents that brainstorm, plan and implement.
fn team(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("brainstorm").say("# Design\n\nOne file for each word.\n"))
        .rule(ScriptRule::role("plan").say(TASKS))
        .rule(implements("number 1 of 2", "hello.txt", "hello\n"))
        .rule(implements("number 2 of 2", "bye.txt", "bye\n"))
        .rule(ScriptRule::role("simplify").say("Nothing to simplify.\n"))
        .rule(ScriptRule::role("review").say("NO ISSUES\n"))
}

/// Works one task.
fn work(settings: &str, script: impl FnOnce(AgentScript) -> AgentScript) -> (Story, GitProject) {
    let (story, project) = Story::with_files(settings, script);
    story.add(TITLE);
    story.work();
    (story, project)
}

fn calls(story: &Story, phase: &str) -> Vec<ScriptedCall> {
    story.calls().into_iter().filter(|call| call.phase == phase).collect()
}

/// The subjects of the branch's commits, oldest first.
fn subjects(project: &GitProject) -> String {
    project.git(&["log", "--reverse", "--format=%s", &format!("main..{BRANCH}")])
}

fn status(story: &Story) -> (&'static str, Option<&'static str>) {
    let TaskRow { status, outcome, .. } = story.task(1);
    (status.into_str(), outcome.map(<&str>::from))
}

#[test]
fn a_task_goes_through_all_phases() {
    let (story, project) = work(FULL, |script| team(researchers(script)));
    insta::assert_snapshot!(lines(&story), @"
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
    insta::assert_snapshot!(subjects(&project), @"
    Add a greeting - design
    Add a greeting - plan
    Add a greeting - item 1 of 2: Say hello
    Add a greeting - item 2 of 2: Say goodbye
    ");
    assert_eq!(project.file_names(BRANCH), format!("bye.txt {DESIGN} {PLAN} hello.txt"));
    let called = story.calls().into_iter().map(|call| format!("{} {}{}", call.phase, call.role, call.reviewer));
    insta::assert_snapshot!(called.collect::<Vec<_>>().join("\n"), @"
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
    assert_eq!(project.file(BRANCH, PLAN), TASKS.trim());
    assert_eq!(project.git(&["status", "--porcelain"]), "", "the checkout is unchanged");
}

/// Each of these texts is in the prompt.
fn assert_contains(prompt: &str, texts: &[&str]) {
    for text in texts {
        assert!(prompt.contains(text), "{text}: {prompt}");
    }
}

#[test]
fn every_phase_gets_the_results_of_earlier_phases() {
    let (story, _project) = work(FULL, |script| team(researchers(script)));
    let prompt = |phase: &str, index: usize| calls(&story, phase)[index].prompt.clone();
    let reports = ["There is no greeting yet.", "It must be polite.", "It may offend.", DESIGN];
    assert_contains(&prompt("brainstorm", 3), &reports);
    assert_contains(&prompt("plan", 0), &[&format!("- Design: {DESIGN}")]);
    let planned = ["One file for each word.", "Two files are enough.", PLAN, "### Task 1: Title"];
    assert_contains(&prompt("plan", 3), &planned);
    let judged = ["# PLAN REVIEW PHASE", "One file for each word.", "Say goodbye", PLAN, DESIGN, "diff --git"];
    assert_contains(&prompt("plan_review", 0), &judged);
    let first = ["**Say hello**", "- hello.txt says hello", "Coming later:\n- Say goodbye", PLAN, DESIGN];
    assert_contains(&prompt("implement", 0), &first);
    let second = ["**Say goodbye**", "Done before:\n- Say hello", "Write it to bye.txt."];
    assert_contains(&prompt("implement", 1), &second);
    for phase in ["code_review", "final_review", "codex_final"] {
        assert_contains(&prompt(phase, 0), &["hello.txt", "bye.txt"]);
    }
    assert_contains(&prompt("simplify", 0), &["+hello"]);
}

#[test]
fn a_restart_gets_the_findings_and_the_last_plan() {
    let (story, project) = work(SHORT, |script| {
        let objects = ScriptRule::role("review").reviewer("plan").call(1);
        team(script.rule(objects.say("HIGH: docs/plan.md:3 nobody greets the cat\n")))
    });
    insta::assert_snapshot!(lines(&story), @"
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
        assert_contains(&calls(&story, phase)[1].prompt, &["nobody greets the cat"]);
    }
    assert_contains(&calls(&story, "plan")[1].prompt, &["## The Last Plan"]);
    insta::assert_snapshot!(subjects(&project), @"
    Add a greeting - design
    Add a greeting - plan
    Add a greeting - item 1 of 2: Say hello
    Add a greeting - item 2 of 2: Say goodbye
    ");
}

#[test]
fn each_item_is_reviewed_by_its_own_changes() {
    let (story, _project) = work(SHORT, team);
    let reviews = calls(&story, "implement_review");
    let [first, second] = reviews.as_slice() else { panic!("{reviews:?}") };
    assert!(first.prompt.contains("This is the review of number 1 of 2"), "{}", first.prompt);
    assert!(first.prompt.contains("hello.txt") && !first.prompt.contains("+# Design"), "{}", first.prompt);
    assert!(second.prompt.contains("+bye") && !second.prompt.contains("+hello"), "{}", second.prompt);
    assert!(!second.prompt.contains("Re-review"), "{}", second.prompt);
}

#[test]
fn reviews_are_counted_for_each_item() {
    let one = SHORT.replace("per_item = true, max_fixes = 2", "per_item = true, max_fixes = 1, on_exhausted = \"ask\"");
    let (story, _project) = work(&one, |script| {
        let objects = |call| ScriptRule::role("review").reviewer("code").call(call);
        let script = script
            .rule(objects(1).say("HIGH: hello.txt:1 too short\n"))
            .rule(objects(3).say("HIGH: bye.txt:1 too short\n"))
            .rule(objects(4).say("HIGH: bye.txt:1 too short\n"))
            .rule(ScriptRule::role("fix").append("more.txt", "more\n").say("Fixed.\n"));
        team(script)
    });
    let worked = lines(&story);
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
    assert_eq!(story.questions().len(), 1);
}

#[test]
fn a_plan_changed_by_a_fix_is_parsed_again() {
    let mended = TASKS.replace("### Task 2: Say goodbye", "### Task 2: Wave") + "\n### Task 3: Bow\n";
    let fixing = SHORT.replace("on_failure = \"restart\"", "on_failure = \"mini-loop\"");
    let (_story, project) = work(&fixing, |script| {
        let objects = ScriptRule::role("review").reviewer("plan").call(1);
        let script = script
            .rule(objects.say("HIGH: docs/plan.md:3 nobody bows\n"))
            .rule(ScriptRule::role("fix").write(PLAN, &mended).say("Fixed.\n"))
            .rule(implements("number 3 of 3", "bow.txt", "bow\n"))
            .rule(ScriptRule::role("implement").append("some.txt", "more\n").say("Done.\n"));
        team(script)
    });
    insta::assert_snapshot!(subjects(&project), @"
    Add a greeting - design
    Add a greeting - plan
    Address review feedback (cycle 1)
    Add a greeting - item 1 of 3: Say hello
    Add a greeting - item 2 of 3: Wave
    Add a greeting - item 3 of 3: Bow
    ");
}

/// The titles of the items that were worked.
fn items(project: &GitProject) -> String {
    let subjects = subjects(project);
    subjects.lines().filter_map(|line| line.split_once(" - item ")).map(|(_, item)| format!("{item}\n")).collect()
}

const THREE: &str = "1 of 3: Say hello\n2 of 3: Say goodbye\n3 of 3: Bow\n";

/// Two parallel fixers, one of which changes the plan, and a second review that fails.
fn changed_by_parallel_fixers(settings: &str, fixes: ScriptRule) -> (Story, GitProject) {
    let fixing = SHORT.replace(
        "on_failure = \"restart\", max_fixes = 1",
        &format!("on_failure = \"mini-loop\", parallel_fixes = true, {settings}"),
    );
    work(&fixing, |script| {
        let objects = format!("HIGH: {DESIGN}:1 says too little\nHIGH: {PLAN}:3 nobody bows\n");
        let script = script
            .rule(ScriptRule::role("review").reviewer("plan").call(1).say(&objects))
            .rule(ScriptRule::role("review").reviewer("plan").exit(1))
            .rule(fixes.say("Fixed.\n"))
            .rule(ScriptRule::role("fix").append(DESIGN, "More.\n").say("Fixed.\n"))
            .rule(ScriptRule::role("implement").append("some.txt", "more\n").say("Done.\n"));
        team(script)
    })
}

/// The fixer of the finding about the plan.
fn plan_fixer() -> ScriptRule {
    ScriptRule::role("fix").prompt_contains("nobody bows")
}

/// Answers the question and continues.
fn answer(story: &Story, choice: &str) {
    story.answer(1, choice);
    story.resume();
}

#[test]
fn a_plan_changed_by_parallel_fixers_is_parsed_again_even_without_a_review() {
    let adds = || plan_fixer().append(PLAN, "\n### Task 3: Bow\n\nDo it deeply.\n");
    let asked = "on_reviewer_failure = \"ask\", max_fixes = 2";
    let noted = "on_reviewer_failure = \"not-passed\", max_fixes = 1, on_exhausted = \"proceed\"";
    for settings in [asked, noted] {
        let (story, project) = changed_by_parallel_fixers(settings, adds());
        if settings == asked {
            answer(&story, "skip");
            assert_eq!(status(&story), ("completed", Some("completed_with_issues")));
        }
        assert!(lines(&story).contains("3 items planned"), "{settings}: {}", lines(&story));
        assert_eq!(items(&project), THREE, "{settings}");
    }
}

#[test]
fn an_item_changed_by_parallel_fixers_is_worked_as_changed() {
    let renames = plan_fixer().write(PLAN, &TASKS.replace("bye.txt", "wave.txt"));
    let (story, _project) = changed_by_parallel_fixers("on_reviewer_failure = \"ask\", max_fixes = 2", renames);
    answer(&story, "skip");
    let implementers = calls(&story, "implement");
    assert_eq!(implementers.len(), 2);
    assert!(implementers[1].prompt.contains("Write it to wave.txt."), "{}", implementers[1].prompt);
}

/// Stops with a question about the plan.
fn asks_about_the_plan() -> (Story, GitProject) {
    let asking = SHORT.replace(
        "on_failure = \"restart\", max_fixes = 1",
        "on_failure = \"mini-loop\", max_fixes = 0, on_exhausted = \"ask\"",
    );
    work(&asking, |script| {
        let objects = ScriptRule::role("review").reviewer("plan").say("HIGH: docs/plan.md:3 nobody bows\n");
        let more = ScriptRule::role("implement").append("some.txt", "more\n").say("Done.\n");
        team(script.rule(objects).rule(more))
    })
}

#[test]
fn a_plan_that_a_person_changes_during_a_question_is_worked_as_changed() {
    let (story, project) = asks_about_the_plan();
    let file = format!(".signoff/worktrees/task-1/{PLAN}");
    project.write(&file, &format!("{TASKS}\n### Task 3: Bow\n"));
    answer(&story, "proceed");
    assert!(lines(&story).contains("[implement, item 1/2] 3 items planned"), "{}", lines(&story));
    assert_eq!(items(&project), THREE);
    // If the plan was deleted, the parsed items are worked.
    let (story, project) = asks_about_the_plan();
    project.git(&["-C", ".signoff/worktrees/task-1", "rm", "-q", PLAN]);
    answer(&story, "proceed");
    let note = "the tasks read before are implemented";
    assert!(story.notes().iter().any(|one| one.contains(note)), "{:?}", story.notes());
    assert_eq!(items(&project).lines().count(), 2);
}

#[test]
fn a_plan_without_tasks_is_worked_as_one_item() {
    let (story, project) = work(SHORT, |script| {
        let script = script
            .rule(ScriptRule::role("plan").write(PLAN, "Just do it.\n").write("stray.txt", "oops\n").say("Written.\n"))
            .rule(ScriptRule::role("implement").write("hello.txt", "hello\n").say("Done.\n"));
        team(script)
    });
    insta::assert_snapshot!(lines(&story), @"
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
    ");
    insta::assert_snapshot!(story.notes().join("\n"), @"
    the plan writer also changed other files, which are kept: stray.txt
    docs/signoff/task-1-add-a-greeting-plan.md: found no tasks; it is implemented as a whole
    ");
    assert_eq!(project.file(BRANCH, PLAN), "Just do it.");
    insta::assert_snapshot!(subjects(&project), @"
    Add a greeting - design
    Add a greeting - plan
    Add a greeting - initial implementation
    ");
}

#[test]
fn an_item_without_changes_is_reported_and_a_task_without_changes_fails() {
    let (one_of_two, _project) = work(SHORT, |script| {
        team(script.rule(ScriptRule::role("implement").prompt_contains("number 1 of 2").say("It is there.\n")))
    });
    assert_eq!(one_of_two.notes(), ["item 1 of 2 changed nothing: Say hello"]);
    assert_eq!(status(&one_of_two), ("completed", Some("approved")));
    let (none, _project) = work(SHORT, |script| team(script.rule(ScriptRule::role("implement").say("It is there.\n"))));
    assert!(lines(&none).contains("ended without changing anything"), "{}", lines(&none));
    assert_eq!(status(&none), ("failed", Some("failed")));
}

#[test]
fn a_failed_researcher_is_skipped_and_one_that_writes_is_undone() {
    let (story, project) = work(FULL, |script| {
        let second = ScriptRule::role("brainstorm").prompt_contains("You are researcher 2").exit(3);
        let third = ScriptRule::role("brainstorm").prompt_contains("You are researcher 3");
        let script = script.rule(second).rule(third.write("planted.txt", "here\n").say("It may offend.\n"));
        team(researchers(script))
    });
    assert_eq!(status(&story), ("completed", Some("approved")));
    let undone = "changed files while researching; undone: added planted.txt";
    assert!(story.notes().iter().any(|note| note.contains(undone)), "{:?}", story.notes());
    let thinking = calls(&story, "brainstorm");
    let design = &thinking.last().expect("a designer").prompt;
    assert_eq!(thinking.len(), 5, "one was called twice");
    assert_contains(design, &["There is no greeting yet.", "It may offend.", "### Report 2"]);
    assert!(!design.contains("### Report 3"), "{design}");
    assert!(!project.file_names(BRANCH).contains("planted"));
}

/// The user's prompts replace the built-in opening.
#[test]
fn custom_prompts_are_used() {
    let (story, project) = Story::with_files(&format!("{SHORT}\n[prompts]\nplan = \"plan-prompt.md\"\n"), team);
    project.write(".signoff/prompts/brainstorm.md", "Think like a cat.\n");
    project.write("plan-prompt.md", "Plan like a cat.\n");
    story.add(TITLE);
    story.work();
    assert!(calls(&story, "brainstorm")[0].prompt.starts_with("Think like a cat.\n"));
    let plan = &calls(&story, "plan")[0].prompt;
    assert!(plan.starts_with("Plan like a cat.\n") && plan.contains(PLAN), "{plan}");
}
