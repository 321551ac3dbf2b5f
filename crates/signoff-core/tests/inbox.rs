//! What the inbox decides about tasks and runs.

use std::collections::{BTreeMap, BTreeSet};

use signoff_core::group::{RunOutcome, RunStage, RunStageKind};
use signoff_core::ids::{RunId, TaskId};
use signoff_core::ledger::FindingState;
use signoff_core::machine::{OutcomeKind, Reason};
use signoff_core::view::inbox::{
    self, InboxHints, InvocationScope, InvocationSummary, ProjectSnapshot, TaskIndex, TaskResult, WorkedRuns,
};
use signoff_core::view::{RunRow, RunState, RunStatus, TaskRow, TaskState, TaskStatus};

fn task(id: u64, status: TaskStatus) -> TaskRow {
    TaskRow::new(id, "a task", status)
}

fn ended(id: u64, outcome: OutcomeKind) -> TaskRow {
    TaskRow { run_id: Some(3), outcome: Some(outcome), ..task(id, TaskStatus::Completed) }
}

fn after(id: u64, depends_on: &[u64]) -> TaskRow {
    TaskRow { depends_on: depends_on.to_vec(), ..task(id, TaskStatus::Pending) }
}

fn statuses(tasks: &[TaskRow]) -> Vec<TaskStatus> {
    tasks.iter().map(|task| task.status).collect()
}

#[test]
fn a_pending_task_waits_for_dependencies_that_did_not_pass() {
    let tasks = [
        ended(1, OutcomeKind::Approved),
        ended(2, OutcomeKind::Exhausted),
        task(3, TaskStatus::InProgress),
        task(4, TaskStatus::Cancelled),
        after(5, &[1, 2, 3, 4, 99]),
        TaskRow { run_id: Some(3), ..after(6, &[3, 4]) },
        TaskRow { depends_on: vec![3], ..task(7, TaskStatus::InProgress) },
    ];
    let index = TaskIndex::new(&tasks);
    assert_eq!(index.unmet_dependencies(&tasks[4]), [2, 3, 4]);
    assert_eq!(index.unmet_dependencies(&tasks[5]), [3], "a run continues past a cancelled task");
    assert_eq!(index.unmet_dependencies(&tasks[6]), [0; 0], "it has begun");
}

#[test]
fn a_failure_blocks_the_whole_chain_behind_it() {
    use TaskStatus::{Blocked, Cancelled, Failed, Pending};
    let mut tasks = [
        TaskRow { outcome: Some(OutcomeKind::Failed), ..task(1, TaskStatus::Failed) },
        after(2, &[1]),
        after(3, &[2]),
        task(4, TaskStatus::Cancelled),
        after(5, &[4]),
        TaskRow { run_id: Some(3), ..after(6, &[4]) },
        TaskRow { run_id: Some(7), ..after(7, &[]) },
        after(8, &[]),
    ];
    inbox::mark_blocked(&mut tasks, &BTreeSet::from([7]));
    assert_eq!(statuses(&tasks), [Failed, Blocked, Blocked, Cancelled, Blocked, Pending, Blocked, Pending]);
    assert_eq!(inbox::blocking_task(&tasks[2], &tasks).id, 1);
    assert_eq!(inbox::blocking_task(&tasks[6], &tasks).id, 7, "its run is blocked");
}

#[test]
fn a_task_that_may_begin_waits_for_nothing() {
    for status in [TaskStatus::Completed, TaskStatus::Cancelled, TaskStatus::Failed, TaskStatus::Pending] {
        for run_id in [None, Some(3)] {
            let tasks = [task(1, status), TaskRow { run_id, ..after(2, &[1]) }];
            let is_free = TaskIndex::new(&tasks).unmet_dependencies(&tasks[1]).is_empty();
            assert_eq!(inbox::can_begin(&tasks[1], &tasks), is_free, "{status:?} {run_id:?}");
        }
    }
}

#[test]
fn a_completed_run_has_the_state_of_its_tasks() {
    let run = |status| RunRow {
        id: 3,
        preset: "loops".to_owned(),
        specification: None,
        status,
        stage: RunStageKind::Done,
        group: None,
        groups: Some(1),
        branch: None,
        cost_usd: 0.0,
        cost_is_estimated: false,
    };
    let state = |tasks: &[TaskRow]| run(RunStatus::Completed).state(tasks);
    let cancelled = TaskRow { run_id: Some(3), ..task(2, TaskStatus::Cancelled) };
    let other = TaskRow { run_id: Some(4), ..task(9, TaskStatus::Failed) };
    let landed = TaskRow { landed_commit: Some("c1".to_owned()), ..ended(1, OutcomeKind::Approved) };
    let unreviewed = TaskRow { outcome: None, ..ended(4, OutcomeKind::Approved) };
    assert_eq!(state(&[ended(1, OutcomeKind::Approved), cancelled.clone(), other]), TaskState::Approved);
    assert_eq!(state(std::slice::from_ref(&landed)), TaskState::Landed);
    assert_eq!(state(&[landed, ended(2, OutcomeKind::Exhausted)]), TaskState::NeedsYou);
    assert_eq!(state(&[ended(1, OutcomeKind::Approved), unreviewed]), TaskState::Unreviewed);
    assert_eq!(state(&[cancelled]), TaskState::Cancelled);
    assert_eq!(run(RunStatus::Blocked).state(&[]), TaskState::Blocked);
}

#[test]
fn the_exit_counts_named_tasks_and_open_ones() {
    let tasks = [
        ended(1, OutcomeKind::Approved),
        ended(2, OutcomeKind::Exhausted),
        TaskRow { run_id: Some(4), ..task(3, TaskStatus::InProgress) },
        TaskRow { continues: Some(5), ..ended(6, OutcomeKind::Approved) },
        ended(5, OutcomeKind::Exhausted),
    ];
    let counted = |scope: InvocationScope, changed: &[u64]| -> Vec<u64> {
        let changed = changed.iter().copied().map(TaskId).collect();
        scope.counted(&tasks, &changed).iter().map(|task| task.id).collect()
    };
    assert_eq!(counted(InvocationScope::Everything, &[]), [2, 3], "task 6 continues task 5");
    assert_eq!(counted(InvocationScope::Runs(&BTreeSet::from([3])), &[]), [2]);
    assert_eq!(counted(InvocationScope::named(&[TaskId(1)]), &[]), [1]);
    assert_eq!(counted(InvocationScope::named(&[TaskId(1)]), &[5]), [1, 5]);
    assert_eq!(counted(InvocationScope::named(&[]), &[]), [2, 3]);
}

#[test]
fn a_run_that_did_not_move_counts_only_if_nothing_did() {
    let runs = BTreeMap::from([(RunId(3), RunState::new(RunId(3)))]);
    let (none, one) = (BTreeSet::new(), BTreeSet::from([TaskId(1)]));
    let stopped = |changed: &BTreeSet<TaskId>| WorkedRuns { runs: &runs, changed }.stopped_stage(&[], &[]).is_some();
    assert!(!stopped(&none) && !stopped(&one), "a run in the queue has not stopped");
}

/// A blocked task has the result of the tasks that block it.
#[test]
fn a_blocked_task_counts_as_its_blockers() {
    let blocked = TaskRow { status: TaskStatus::Blocked, ..after(2, &[1]) };
    let result = |tasks: &[TaskRow]| {
        InvocationSummary { tasks, questions: &[], run: None, no_ask: false, interrupted: false }.result()
    };
    assert_eq!(result(&[ended(1, OutcomeKind::Exhausted), blocked.clone()]), TaskResult::Attention);
    assert_eq!(result(std::slice::from_ref(&blocked)), TaskResult::Failed, "its blocker is not known");
    let stage = RunStage::Done(RunOutcome::Failed);
    let done = [ended(1, OutcomeKind::Approved)];
    let summary =
        InvocationSummary { tasks: &done, questions: &[], run: Some(&stage), no_ask: false, interrupted: false };
    assert_eq!(summary.result(), TaskResult::Failed);
}

#[test]
fn a_person_decides_about_what_a_retry_would_not_help() {
    let refused = TaskRow {
        outcome: Some(OutcomeKind::Failed),
        reason: Some(Reason::EditedByPerson),
        ..task(1, TaskStatus::Failed)
    };
    assert!(inbox::awaits_decision(&refused));
    assert!(inbox::awaits_decision(&ended(1, OutcomeKind::Exhausted)));
    assert!(!inbox::awaits_decision(&task(1, TaskStatus::Stuck)));
    assert!(!inbox::awaits_decision(&ended(1, OutcomeKind::Approved)));
}

#[test]
fn settled_findings_cannot_be_disputed() {
    let states = [
        FindingState::Open,
        FindingState::Fixed,
        FindingState::Refuted,
        FindingState::Deferred,
        FindingState::OutOfScope,
    ];
    let disputable: Vec<FindingState> = states.into_iter().filter(|state| inbox::can_be_disputed(*state)).collect();
    assert_eq!(disputable, [FindingState::Open, FindingState::Fixed]);
}

#[test]
fn a_queued_task_needs_a_person_if_the_inbox_lists_it() {
    let tasks = [after(1, &[]), TaskRow { status: TaskStatus::Blocked, ..after(2, &[1]) }];
    let driven = BTreeSet::new();
    let hints = InboxHints::new(&ProjectSnapshot { tasks: &tasks, runs: &[], driven: &driven }, BTreeSet::new());
    assert_eq!(hints.for_queued(TaskId(1)).attention, None);
    assert_eq!(hints.for_queued(TaskId(2)).attention, Some(inbox::Attention::NotApproved));
}
