//! The prompts of working agents: implement, fix, resolve, plan, research, simplify.

use signoff_core::prompt::{
    self, BrainstormContext, EarlierCycle, EnumerateContext, FixContext, ImplementContext, PlanContext,
    PlanDocumentContext, PlanItemContext, PromptTask, ResearchContext, RetryContext, SimplifyContext, SynthesisContext,
    TaskPromptContext,
};

use crate::prompt::fixture::{DIFF, OTHERS, PLAN, TASK, WORKTREE, code_finding, refuted, spec_finding};

fn implement() -> ImplementContext<'static> {
    ImplementContext { task: TASK, worktree: WORKTREE, attempt: 1, ..ImplementContext::default() }
}

fn fix<'a>() -> FixContext<'a> {
    FixContext { task: TASK, worktree: WORKTREE, ..FixContext::default() }
}

fn brainstorm<'a>() -> BrainstormContext<'a> {
    BrainstormContext { task: TASK, worktree: WORKTREE, pass: 1, ..BrainstormContext::default() }
}

#[test]
fn a_first_attempt_that_ends_by_its_exit_code() {
    insta::assert_snapshot!("implement_exit", prompt::implement(&implement()));
}

#[test]
fn a_later_attempt_that_ends_with_a_marker() {
    let finding = code_finding();
    let context = ImplementContext {
        task: TaskPromptContext { plan: Some(PLAN), ..TASK },
        other_loops: &OTHERS,
        agents_at_once: 3,
        attempt: 4,
        previous_message: Some("The redirect works.\nITERATION_DONE"),
        findings: &[&finding],
        ends_with_marker: true,
        ..implement()
    };
    insta::assert_snapshot!("implement_marker", prompt::implement(&context));
}

#[test]
fn a_fix_prompt_has_the_merged_review() {
    let finding = code_finding();
    let results = "Review Results:\n  Spec Review: ISSUES (high confidence)\n";
    let prompt = prompt::fix(&FixContext { findings: &[&finding], results: Some(results), ..fix() });
    let (block, list) = (prompt.find(results).unwrap(), prompt.find("## Findings to Fix").unwrap());
    assert!(block < list, "{prompt}");
}

#[test]
fn one_item_of_a_plan() {
    let item = PlanItemContext {
        number: 2,
        title: "End the session",
        description: "After 30 minutes.\n\nAcceptance criteria:\n- a test waits",
        done: &["Begin the flow"],
        later: &["Log out", "Say so\n## Section"],
        begun_elsewhere: false,
    };
    let task = TaskPromptContext { design_file: "docs/design.md", plan_file: "docs/plan.md", ..TASK };
    let context = ImplementContext { task, item: Some(item), ..implement() };
    insta::assert_snapshot!("implement_item", prompt::implement(&context));
}

#[test]
fn a_custom_opening_for_a_tracker_task() {
    let context = ImplementContext { opening: Some("You are our developer."), may_stop_picking: true, ..implement() };
    insta::assert_snapshot!("implement_own_opening", prompt::implement(&context));
}

#[test]
fn a_fix_prompt_lists_only_its_findings() {
    let (spec, code, refuted) = (spec_finding(), code_finding(), refuted());
    let earlier = [
        EarlierCycle { cycle: 1, reported: 4, fixed: 3, refuted: 1, regressed: 0 },
        EarlierCycle { cycle: 2, reported: 1, fixed: 0, refuted: 0, regressed: 1 },
    ];
    let context = FixContext {
        findings: &[&spec, &code],
        conflicts: &[(&spec, &code)],
        earlier: &earlier,
        settled: &[&refuted],
        only_files: &["src/auth.ts"],
        diff: Some(DIFF),
        guidance: Some("Keep the old cookie name."),
        ..fix()
    };
    insta::assert_snapshot!("fix_findings", prompt::fix(&context));
}

#[test]
fn a_fix_by_follow_up() {
    let context =
        FixContext { follow_up: Some("Missing error handling in auth module."), may_stop_picking: true, ..fix() };
    insta::assert_snapshot!("fix_follow_up", prompt::fix(&context));
}

#[test]
fn a_fix_of_an_unparsable_review() {
    let context = FixContext { unread_review: Some("Hm, line 46 looks off to me."), ..fix() };
    insta::assert_snapshot!("fix_unread_review", prompt::fix(&context));
}

#[test]
fn tasks_are_listed_as_json() {
    let finding = spec_finding();
    let refused = EnumerateContext {
        name: "SHOP.md",
        specification: "# Shop\n\nA shop with a login.\n",
        retry: RetryContext::Refused { reason: "task `b` depends on `c`, which is not in the list" },
        ..EnumerateContext::default()
    };
    insta::assert_snapshot!("enumerate_refused", prompt::enumerate(&refused));
    let retry = RetryContext::Reviewed { answer: r#"{"tasks":[]}"#, findings: &[&finding] };
    let reviewed = EnumerateContext { retry, ..refused };
    insta::assert_snapshot!("enumerate_reviewed", prompt::enumerate(&reviewed));
}

#[test]
fn groups_are_given_as_json() {
    let tasks = [
        PromptTask { id: "login", title: "Login", description: "OAuth", depends_on: &[] },
        PromptTask { id: "cart", title: "Cart", description: "A cart", depends_on: &["login"] },
    ];
    let context = PlanContext { tasks: &tasks, ..PlanContext::default() };
    insta::assert_snapshot!("plan", prompt::plan(&context));
}

#[test]
fn the_phases_before_a_plan() {
    let finding = spec_finding();
    insta::assert_snapshot!("brainstorm", prompt::brainstorm(&brainstorm()));
    let again = BrainstormContext { pass: 2, findings: &[&finding], ..brainstorm() };
    insta::assert_snapshot!("brainstorm_second_pass", prompt::brainstorm(&again));
    for number in 1..=3 {
        let context = ResearchContext { base: brainstorm(), number, researchers: 3, question: None };
        insta::assert_snapshot!(format!("research_{number}"), prompt::research(&context));
    }
    let reports = ["Sessions live in src/session.ts:12.", "```\nThey live in Redis."];
    let context = SynthesisContext { base: brainstorm(), reports: &reports };
    insta::assert_snapshot!("synthesis", prompt::synthesis(&context));
}

#[test]
fn a_plan_document_after_a_failed_pass() {
    let finding = spec_finding();
    let context = PlanDocumentContext {
        task: TASK,
        worktree: WORKTREE,
        preparation: Some("Use the library that is there."),
        pass: 2,
        previous_plan: Some(PLAN),
        findings: &[&finding],
        ..PlanDocumentContext::default()
    };
    insta::assert_snapshot!("plan_document", prompt::plan_document(&context));
}

#[test]
fn document_prompts_name_their_files() {
    let document = Some("docs/signoff/task-29-design.md");
    let last_review = Some("I do not like it.\n");
    let design = BrainstormContext { document, pass: 2, last_review, ..brainstorm() };
    insta::assert_snapshot!("design_file", prompt::brainstorm(&design));
    let plan = PlanDocumentContext {
        task: TASK,
        worktree: WORKTREE,
        pass: 1,
        reports: &["Sessions live in src/session.ts:12."],
        refused: Some("it has 201 tasks; at most 200 are worked"),
        document: Some("docs/signoff/task-29-plan.md"),
        ..PlanDocumentContext::default()
    };
    insta::assert_snapshot!("plan_file", prompt::plan_document(&plan));
}

#[test]
fn simplify_prompt() {
    let context = SimplifyContext { task: TASK, worktree: WORKTREE, diff: DIFF, ..SimplifyContext::default() };
    insta::assert_snapshot!("simplify", prompt::simplify(&context));
}

#[test]
fn contributor_files_are_named() {
    let instructions = ["AGENTS.md", "CONTRIBUTING.md"];
    let line = "Read first what the project asks of its contributors: `AGENTS.md`, `CONTRIBUTING.md`.";
    let prompt = prompt::implement(&ImplementContext { instructions: &instructions, ..implement() });
    assert_eq!(prompt.replace(&format!("\n\n{line}"), ""), prompt::implement(&implement()));
    let prompt = prompt::fix(&FixContext { instructions: &instructions, ..fix() });
    assert_eq!(prompt.replace(&format!("\n\n{line}"), ""), prompt::fix(&fix()));
    assert!(prompt.contains(line));
}
