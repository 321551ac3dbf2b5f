//! The exit code for every status, outcome and reason.

use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::machine::Reason;
use signoff_core::view::inbox::{InvocationSummary, TaskResult};
use signoff_core::view::{TaskRow, TaskState, TaskStatus};
use signoff_term::exit::code;
use strum::VariantArray as _;

use crate::rows::{ended, question, row};

const OUTCOMES: [&str; 9] =
    ["", "approved", "accepted", "completed_with_issues", "exhausted", "discussion", "failed", "stuck", "cancelled"];

fn invocation(tasks: &[TaskRow]) -> InvocationSummary<'_> {
    InvocationSummary { tasks, questions: &[], run: None, no_ask: false, interrupted: false }
}

#[test]
fn every_status_and_outcome() {
    let mut table = format!("{:<12}", "");
    for outcome in OUTCOMES {
        table += &format!(" {:<9}", if outcome.is_empty() { "none" } else { &outcome[..outcome.len().min(9)] });
    }
    for &status in TaskStatus::ALL {
        table = table.trim_end().to_owned() + &format!("\n{:<12}", status.into_str());
        for outcome in OUTCOMES {
            let task = ended(row(1, "a task", status), outcome, "", "", 0);
            table += &format!(" {:<9}", format!("{:?}", TaskResult::for_task(&task)));
        }
    }
    insta::assert_snapshot!(table, @"
                 none      approved  accepted  completed exhausted discussio failed    stuck     cancelled
    pending      Attention Attention Attention Attention Attention Attention Failed    Failed    Attention
    in_progress  Attention Attention Attention Attention Attention Attention Failed    Failed    Attention
    waiting      Attention Attention Attention Attention Attention Attention Failed    Failed    Attention
    paused       Attention Attention Attention Attention Attention Attention Failed    Failed    Attention
    completed    Done      Done      Done      Attention Attention Attention Failed    Failed    Attention
    failed       Failed    Failed    Failed    Failed    Failed    Failed    Failed    Failed    Failed
    stuck        Failed    Failed    Failed    Failed    Failed    Failed    Failed    Failed    Failed
    blocked      Failed    Failed    Failed    Failed    Failed    Failed    Failed    Failed    Failed
    cancelled    Done      Done      Done      Done      Done      Done      Failed    Failed    Done
    ");
}

/// The state and mark of each situation, and the exit code of an invocation with only this task.
#[test]
fn every_situation_has_one_state_one_mark_and_one_exit_code() {
    let at = |status, state| TaskRow { state, ..row(1, "a task", status) };
    let ended = |status, outcome| ended(row(1, "a task", status), outcome, "", "", 0);
    let landed = TaskRow { landed_commit: Some("c1".into()), ..ended(TaskStatus::Completed, "approved") };
    let situations = [
        ("in the queue", row(1, "a task", TaskStatus::Pending)),
        ("implementing", at(TaskStatus::InProgress, TaskState::Working)),
        ("reviewing", at(TaskStatus::InProgress, TaskState::Reviewing)),
        ("fixing", at(TaskStatus::InProgress, TaskState::Fixing)),
        ("landing", at(TaskStatus::InProgress, TaskState::Landing)),
        ("paused", at(TaskStatus::Paused, TaskState::Reviewing)),
        ("waits for a task that failed", row(1, "a task", TaskStatus::Blocked)),
        ("open question", at(TaskStatus::Waiting, TaskState::Fixing)),
        ("bound reached", ended(TaskStatus::Completed, "exhausted")),
        ("discussion", ended(TaskStatus::Completed, "discussion")),
        ("completed with issues", ended(TaskStatus::Completed, "completed_with_issues")),
        ("nothing to review", ended(TaskStatus::Completed, "nothing_to_review")),
        ("stuck", ended(TaskStatus::Stuck, "stuck")),
        ("approved", ended(TaskStatus::Completed, "approved")),
        ("approved by a person", ended(TaskStatus::Completed, "accepted")),
        ("approved, its group waits", at(TaskStatus::Blocked, TaskState::Approved)),
        ("in the default branch", landed),
        ("review turned off", ended(TaskStatus::Completed, "")),
        ("rejected by a person", ended(TaskStatus::Failed, "rejected")),
        ("failed", ended(TaskStatus::Failed, "failed")),
        ("cancelled", ended(TaskStatus::Cancelled, "cancelled")),
    ];
    let line = |(what, task): &(&str, TaskRow)| {
        let code = code(&invocation(std::slice::from_ref(task)));
        format!("{what:<29} {:<11} {} {code}", task.state().into_str(), task.state().mark())
    };
    let table: Vec<String> = situations.iter().map(line).collect();
    insta::assert_snapshot!(table.join("\n"), @"
    in the queue                  queued      · 3
    implementing                  working     → 3
    reviewing                     reviewing   → 3
    fixing                        fixing      → 3
    landing                       landing     → 3
    paused                        paused      ‖ 3
    waits for a task that failed  blocked     ▪ 1
    open question                 needs_you   ! 3
    bound reached                 needs_you   ! 3
    discussion                    needs_you   ! 3
    completed with issues         needs_you   ! 3
    nothing to review             needs_you   ! 3
    stuck                         needs_you   ! 1
    approved                      approved    ✓ 0
    approved by a person          approved    ✓ 0
    approved, its group waits     approved    ✓ 0
    in the default branch         landed      ✓ 0
    review turned off             unreviewed  ○ 0
    rejected by a person          rejected    ✗ 3
    failed                        failed      ✗ 1
    cancelled                     cancelled   - 0
    ");
    for (what, task) in &situations {
        let passes = code(&invocation(std::slice::from_ref(task))) == 0;
        let may_pass = matches!(
            task.state(),
            TaskState::Approved | TaskState::Landed | TaskState::Unreviewed | TaskState::Cancelled
        );
        assert_eq!(passes, may_pass, "{what}");
        assert_eq!(task.state().mark() == '✓', task.state().is_approved(), "{what}");
    }
    for &state in TaskState::ALL {
        assert_eq!(state.into_str().parse::<TaskState>().ok(), Some(state));
    }
}

#[test]
fn no_reason_makes_failed_work_pass_or_good_work_fail() {
    for &status in TaskStatus::ALL {
        for outcome in OUTCOMES {
            let plain = ended(row(1, "a task", status), outcome, "", "", 0);
            for reason in Reason::VARIANTS {
                let code = serde_json::to_value(reason).unwrap();
                let row = ended(plain.clone(), outcome, "", code.as_str().unwrap(), 0);
                assert_eq!(TaskResult::for_task(&row), TaskResult::for_task(&plain), "{status:?} {outcome} {reason:?}");
            }
        }
    }
}

#[test]
fn failed_work_never_exits_with_0() {
    for &status in TaskStatus::ALL {
        for outcome in OUTCOMES {
            let tasks = [ended(row(1, "a task", status), outcome, "", "", 0), row(2, "b", TaskStatus::Completed)];
            let failed =
                matches!(outcome, "failed" | "stuck") || matches!(status, TaskStatus::Failed | TaskStatus::Stuck);
            for no_ask in [false, true] {
                let code = code(&InvocationSummary { no_ask, ..invocation(&tasks) });
                assert!(!failed || code == 1, "{status:?} {outcome}: {code}");
            }
        }
    }
}

#[test]
fn the_rule() {
    let tasks = |outcome| [ended(row(1, "a task", TaskStatus::Completed), outcome, "", "", 0)];
    let (good, exhausted) = (tasks("approved"), tasks("exhausted"));
    let open_questions = [question("q1", 1)];
    let blocked = RunStage::Blocked { group: 0, by: vec!["a".into()] };
    let failed = RunStage::Done(RunOutcome::Failed);
    let noted = RunStage::Done(RunOutcome::Attention);
    let unreviewed = tasks("");
    let both = [tasks("exhausted"), [row(2, "b", TaskStatus::Failed)]].concat();
    let good = invocation(&good);
    let codes = [
        ("approved", code(&good)),
        ("nothing to do", code(&invocation(&[]))),
        ("bound reached", code(&invocation(&exhausted))),
        ("open question", code(&InvocationSummary { questions: &open_questions, ..good })),
        ("open question, no one to ask", code(&InvocationSummary { questions: &open_questions, no_ask: true, ..good })),
        ("blocked run", code(&InvocationSummary { run: Some(&blocked), ..good })),
        ("run that failed as a whole", code(&InvocationSummary { run: Some(&failed), ..good })),
        ("final review noted", code(&InvocationSummary { run: Some(&noted), ..good })),
        ("unreviewed", code(&InvocationSummary { run: Some(&noted), ..invocation(&unreviewed) })),
        ("failed beside a bound reached", code(&invocation(&both))),
        ("interrupted", code(&InvocationSummary { interrupted: true, run: Some(&failed), ..good })),
    ];
    let table: Vec<_> = codes.iter().map(|(what, code)| format!("{what:<30}{code}")).collect();
    insta::assert_snapshot!(table.join("\n"), @"
        approved                      0
        nothing to do                 0
        bound reached                 3
        open question                 3
        open question, no one to ask  1
        blocked run                   1
        run that failed as a whole    1
        final review noted            3
        unreviewed                    0
        failed beside a bound reached 1
        interrupted                   130
    ");
    assert_eq!(good.result(), TaskResult::Done);
}
