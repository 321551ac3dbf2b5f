//! `signoff status`, and `signoff` without a command.

use std::collections::BTreeSet;

use signoff_core::machine::Reason;
use signoff_core::view::inbox::{NextStep, ProjectSnapshot};
use signoff_core::view::{QuestionRow, RateLimitWait, RunRow, RunStatus, TaskRow, TaskStatus};
use signoff_term::inbox;
use signoff_term::status;

use crate::rows::{all, ended, parsed, question, row};

/// All runs have a running process.
fn inbox_text(tasks: &[TaskRow], questions: &[QuestionRow]) -> String {
    let driven = tasks.iter().filter_map(|task| task.run_id).collect();
    inbox::text(&ProjectSnapshot { tasks, runs: &[], driven: &driven }, questions, 30)
}

fn listed(tasks: &[TaskRow], questions: &[QuestionRow], title: usize) -> String {
    status::text(&ProjectSnapshot { tasks, runs: &[], driven: &BTreeSet::new() }, questions, title)
}

#[test]
fn the_three_lines() {
    let tasks = &all()[..3];
    let lines = [
        "  ✓ 29. implement Add feature X    completed  APPROVED (3 cycles)\n",
        "  ! 30. implement Add feature Y    completed  MAX_CYCLES_REACHED (3 cycles)\n",
        "  → 31. implement Add feature Z    in_progress (cycle 2/3)\n",
    ];
    assert_eq!(listed(tasks, &[], status::MAX_TITLE_WIDTH), lines.concat());
}

#[test]
fn every_status() {
    insta::assert_snapshot!(listed(&all(), &[question("q1", 33)], 30), @"
      ✓  29. implement Add feature X                    completed  APPROVED (3 cycles)
      !  30. implement Add feature Y                    completed  MAX_CYCLES_REACHED (3 cycles)
      →  31. implement Add feature Z                    in_progress (cycle 2/3)
      →  32. implement Add a very long feature that…    in_progress (implement)
      !  33. implement Ask about it                     waiting     (cycle 3/3)
      ‖  34. implement Wait for money                   paused      (cycle 1/3)
      ✗  35. implement Break␛[31m it                    failed     CHANGES_REQUESTED (1 cycle)  reviewer_failed
      ✗  36. implement Never begun well                 failed     implementer_failed
      !  37. implement Give up                          stuck      task_stuck
      ▪  38. implement Wait for 37                      blocked     (cycle 1/3)
      -  39. implement Call off                         cancelled
      ○  40. plan      Not reviewed                     completed  not reviewed
      ✓  41. implement Accepted                         completed  APPROVED (by a person)
      !  42. implement Talk                             completed  NEEDS_DISCUSSION (1 cycle)
      !  43. implement Skip                             completed  not approved  review_skipped
      !  44. implement Again                            completed  CHANGES_REQUESTED (2 cycles)  same_finding
      ·  45. implement Later                            pending     (waits for 37)
      → 104. improve   漢字の題                         in_progress (cycle 4)

    Questions:
      q1 task 33: 3 reviews did not lead to approval. One more fix and review, proceed with the findings open, or stop?
          signoff answer 33 CHOICE (continue, proceed, stop)
    ");
}

#[test]
fn nothing_yet() {
    insta::assert_snapshot!(listed(&[], &[], 40), @r#"
        No tasks yet.
          signoff add "what is to be done" -a    adds one, reviewed until approved
    "#);
    insta::assert_snapshot!(inbox_text(&[], &[]), @r#"
        Nothing to do yet.

          signoff add "what is to be done" -a    a task, reviewed until it is approved
          signoff work                           works the tasks
          signoff run PLAN                       works the tasks of a plan file

        `signoff --help` lists all commands.
    "#);
}

#[test]
fn a_paused_task_says_what_it_waits_for() {
    let paused = |reason: &str, wait| TaskRow { reason: parsed(reason), wait, ..row(1, "Wait", TaskStatus::Paused) };
    let until = "2026-01-29T12:31:00Z".parse().unwrap();
    let wait = RateLimitWait {
        agent: "claude".to_owned(),
        until,
        overloaded: false,
        why: Some("429 Too Many Requests".into()),
        fallbacks: vec!["codex".into()],
    };
    let both = RateLimitWait { fallbacks: vec!["codex".into(), "gemini".into()], ..wait.clone() };
    let limited = |wait| paused("rate_limited", Some(wait));
    let tasks = [limited(wait), limited(both), paused("rate_limited", None), paused("budget", None)];
    insta::assert_snapshot!(tasks.map(|task| status::status_line(&task)).join("\n"), @"
    paused waits for claude until 12:31 UTC (rate limit: 429 Too Many Requests; codex was rate limited too)
    paused waits for claude until 12:31 UTC (rate limit: 429 Too Many Requests; codex and gemini were rate limited too)
    paused waits for its agent (rate limit)
    paused waits for budget
    ");
}

#[test]
fn a_rate_limited_task_needs_no_person_while_a_process_waits() {
    let until = "2026-01-29T12:31:08Z".parse().unwrap();
    let wait = RateLimitWait { agent: "claude".to_owned(), until, overloaded: false, why: None, fallbacks: Vec::new() };
    let tasks = [TaskRow {
        reason: Some(Reason::RateLimited),
        wait: Some(wait),
        run_id: Some(7),
        ..row(1, "Wait", TaskStatus::Paused)
    }];
    let inbox_text = |driven: &[u64]| {
        let driven = driven.iter().copied().collect();
        let scene = ProjectSnapshot { tasks: &tasks, runs: &[], driven: &driven };
        format!("{}next: {}", inbox::text(&scene, &[], 30), NextStep::for_task(&tasks[0], &scene))
    };
    insta::assert_snapshot!(inbox_text(&[]), @"
    Needs attention:
      ‖ 1. Wait: paused waits for claude until 12:31:08 UTC (rate limit)
          signoff work 1 continues when the rate limit ends

    1 paused
    next: signoff work 1 continues when the rate limit ends
    ");
    insta::assert_snapshot!(inbox_text(&[7]), @"
    Running:
      ‖ 1. implement Wait    paused      waits for claude until 12:31:08 UTC (rate limit)

    1 paused
    next: it continues by itself; signoff logs 1 -f
    ");
}

#[test]
fn tasks_that_need_attention_come_first() {
    insta::assert_snapshot!(inbox_text(&all(), &[question("q1", 33)]), @"
    Needs attention:
      q1 task 33: 3 reviews did not lead to approval. One more fix and review, proceed with the findings open, or stop?
          signoff answer 33 CHOICE (continue, proceed, stop)
      ✗ 35. Break␛[31m it: failed CHANGES_REQUESTED (1 cycle) reviewer_failed
          signoff show 35, then signoff retry 35
      ✗ 36. Never begun well: failed implementer_failed
          signoff show 36, then signoff retry 36
      ! 37. Give up: stuck task_stuck
          signoff show 37, then signoff retry 37
      ! 30. Add feature Y: completed MAX_CYCLES_REACHED (3 cycles)
          signoff show 30, then signoff improve 30 --review or signoff edit 30 --verdict APPROVED
      ! 44. Again: completed CHANGES_REQUESTED (2 cycles) same_finding
          signoff show 44, then signoff improve 44 --review or signoff edit 44 --verdict APPROVED
      ! 42. Talk: completed NEEDS_DISCUSSION (1 cycle)
          signoff show 42, then signoff retry 42 or signoff edit 42 --verdict APPROVED
      ! 43. Skip: completed not approved review_skipped
          signoff show 43, then signoff improve 43 --review
      ▪ 38. Wait for 37: blocked (cycle 1/3)
          it waits for another task; resolve that task first
      ‖ 34. Wait for money: paused (cycle 1/3)
          raise the budget, then signoff work 34

    Running:
      →  31. implement Add feature Z                    in_progress (cycle 2/3)
      →  32. implement Add a very long feature that…    in_progress (implement)
      → 104. improve   漢字の題                         in_progress (cycle 4)

    1 pending, 3 in_progress, 1 waiting, 1 paused, 7 completed, 2 failed, 1 stuck, 1 blocked, 1 cancelled
    ");
}

#[test]
fn a_continued_task_needs_no_attention() {
    let old = ended(row(1, "Add it", TaskStatus::Completed), "exhausted", "MAX_CYCLES_REACHED", "cycles_exhausted", 3);
    let new = TaskRow {
        continues: Some(1),
        ..ended(row(2, "Improve it", TaskStatus::Completed), "approved", "APPROVED", "", 1)
    };
    insta::assert_snapshot!(inbox_text(&[old, new], &[]), @"2 completed");
}

#[test]
fn a_long_list_stays_readable() {
    let failed = |id| ended(row(id, "Break it", TaskStatus::Failed), "failed", "", "implementer_failed", 0);
    let tasks: Vec<_> = (1..=10_000).map(failed).collect();
    assert_eq!(listed(&tasks, &[], 40).lines().count(), 10_000);
    let text = inbox_text(&tasks, &[]);
    assert!(text.contains("… and 9980 more: signoff status"), "{text}");
}

#[test]
fn only_the_latest_task_of_a_branch_needs_attention() {
    let on = |id, root, task: TaskRow| TaskRow { id, continues: root, ..task };
    let exhausted =
        || ended(row(1, "Add it", TaskStatus::Completed), "exhausted", "MAX_CYCLES_REACHED", "cycles_exhausted", 3);
    let refused = || ended(row(1, "Add it", TaskStatus::Failed), "failed", "CHANGES_REQUESTED", "gate_failed", 1);
    let approved = ended(row(1, "Add it", TaskStatus::Completed), "approved", "APPROVED", "", 1);
    let tasks = [on(1, None, exhausted()), on(2, Some(1), exhausted()), on(3, Some(1), refused())];
    insta::assert_snapshot!(inbox_text(&tasks, &[]), @"
    Needs attention:
      ✗ 3. Add it: failed CHANGES_REQUESTED (1 cycle) gate_failed
          signoff show 3, then signoff retry 3

    2 completed, 1 failed
    ");
    let [first, second, third] = tasks;
    let tasks = [first, second, third, on(4, Some(1), approved), row(5, "Other", TaskStatus::Cancelled)];
    insta::assert_snapshot!(inbox_text(&tasks, &[]), @"3 completed, 1 failed, 1 cancelled");
}

#[test]
fn a_verdict_that_a_person_set_is_not_retried() {
    let set = ended(row(1, "Add it", TaskStatus::Failed), "failed", "CHANGES_REQUESTED", "edited_by_person", 1);
    insta::assert_snapshot!(inbox_text(&[set], &[]), @"
    Needs attention:
      ✗ 1. Add it: failed CHANGES_REQUESTED (1 cycle) edited_by_person
          signoff improve 1 --review

    1 failed
    ");
}

#[test]
fn a_blocked_task_names_its_blockers() {
    let behind = |id, tasks: &[u64]| TaskRow {
        run_id: None,
        branch: None,
        depends_on: tasks.to_vec(),
        ..row(id, "Wait", TaskStatus::Blocked)
    };
    let tasks = [
        ended(row(1, "Fail", TaskStatus::Failed), "failed", "", "implementer_failed", 0),
        ended(row(2, "Tire", TaskStatus::Completed), "exhausted", "MAX_CYCLES_REACHED", "cycles_exhausted", 3),
        ended(row(3, "Leave", TaskStatus::Cancelled), "cancelled", "", "cancelled_by_person", 0),
        behind(4, &[1, 2]),
        behind(5, &[3]),
        behind(6, &[4]),
    ];
    insta::assert_snapshot!(inbox_text(&tasks, &[]), @"
    Needs attention:
      ✗ 1. Fail: failed implementer_failed
          signoff show 1, then signoff retry 1
      ! 2. Tire: completed MAX_CYCLES_REACHED (3 cycles)
          signoff show 2, then signoff improve 2 --review or signoff edit 2 --verdict APPROVED
      ▪ 4. Wait: blocked
          waits for #1 (failed): signoff retry 1 or signoff edit 1 --verdict APPROVED; waits for #2 (MAX_CYCLES_REACHED): signoff retry 2 or signoff edit 2 --verdict APPROVED
      ▪ 5. Wait: blocked
          waits for #3, which was cancelled: signoff cancel 5, and add it again without --depends-on 3
      ▪ 6. Wait: blocked
          waits for #4, which is blocked too

    1 completed, 1 failed, 3 blocked, 1 cancelled
    ");
}

#[test]
fn a_plan_that_waits_for_an_answer_has_nothing_to_work() {
    let planned = |id, status| TaskRow { branch: Some("signoff/run-3".to_owned()), ..row(id, "Step", status) };
    let tasks = [planned(1, TaskStatus::Waiting), planned(2, TaskStatus::Pending)];
    insta::assert_snapshot!(inbox_text(&tasks, &[question("q1", 1)]), @"
    Needs attention:
      q1 task 1: 3 reviews did not lead to approval. One more fix and review, proceed with the findings open, or stop?
          signoff answer 1 CHOICE (continue, proceed, stop)

    1 pending, 1 waiting
    ");
    let late = TaskRow { run_id: None, branch: None, depends_on: vec![1], ..row(3, "Late", TaskStatus::Pending) };
    let [first, second] = tasks;
    insta::assert_snapshot!(inbox_text(&[first, second, late], &[]), @"2 pending, 1 waiting");
}

#[test]
fn a_task_without_a_process_is_interrupted() {
    let planned =
        TaskRow { branch: Some("signoff/run-4".to_owned()), run_id: Some(4), ..row(2, "Step", TaskStatus::InProgress) };
    let tasks = [row(1, "Add it", TaskStatus::InProgress), planned];
    let scene = ProjectSnapshot { tasks: &tasks, runs: &[], driven: &BTreeSet::new() };
    insta::assert_snapshot!(inbox::text(&scene, &[], 30), @"
    Interrupted:
      → 1. Add it: in_progress
          signoff work 1
      → 2. Step: in_progress
          signoff run --resume

    2 in_progress
    ");
    let driven = BTreeSet::from([3]);
    insta::assert_snapshot!(inbox::text(&ProjectSnapshot { driven: &driven, ..scene }, &[], 30), @"
    Interrupted:
      → 2. Step: in_progress
          signoff run --resume

    Running:
      → 1. implement Add it    in_progress

    2 in_progress
    ");
}

pub fn run(id: u64, status: &str, stage: &str, (group, groups): (Option<u64>, u64)) -> RunRow {
    RunRow {
        id,
        preset: "loops".to_owned(),
        specification: Some("SPEC\x1b[31m.md".to_owned()),
        status: status.parse::<RunStatus>().expect(status),
        stage: stage.parse().expect(stage),
        group,
        groups: Some(groups),
        branch: Some(format!("signoff/run-{id}")),
        cost_usd: 0.36,
        cost_is_estimated: false,
    }
}

/// The output of `signoff`, then that of `signoff status`.
fn inbox_and_status(tasks: &[TaskRow], runs: &[RunRow], driven: &[u64]) -> String {
    let driven = driven.iter().copied().collect();
    let scene = ProjectSnapshot { tasks, runs, driven: &driven };
    format!("{}----\n{}", inbox::text(&scene, &[], 30), status::text(&scene, &[], 30))
}

#[test]
fn a_blocked_group_is_listed_once_with_commands() {
    let tasks = [
        ended(row(4, "Add the table", TaskStatus::Stuck), "stuck", "", "task_stuck", 0),
        row(5, "Add the page", TaskStatus::Blocked),
        row(6, "Join them", TaskStatus::Blocked),
    ];
    insta::assert_snapshot!(inbox_and_status(&tasks, &[run(3, "blocked", "blocked", (Some(1), 2))], &[]), @"
    Needs attention:
      ▪ run 3 SPEC␛[31m.md: group 1/2 is blocked by #4 (task_stuck)
          signoff retry 4, signoff edit 4 --verdict APPROVED, or signoff cancel 4
          then signoff run --resume 3
      ! 4. Add the table: stuck task_stuck
          signoff show 4, then signoff retry 4

    1 stuck, 2 blocked
    ----
      ! 4. implement Add the table    stuck      task_stuck
      ▪ 5. implement Add the page     blocked
      ▪ 6. implement Join them        blocked

    Runs:
      ▪ run 3 SPEC␛[31m.md: group 1/2 is blocked by #4 (task_stuck)
          signoff retry 4, signoff edit 4 --verdict APPROVED, or signoff cancel 4
          then signoff run --resume 3
    ");
}

#[test]
fn a_run_without_tasks_is_listed() {
    let planning = run(3, "running", "preparing", (None, 0));
    insta::assert_snapshot!(inbox_and_status(&[], std::slice::from_ref(&planning), &[3]), @"
    Running:
      → run 3 SPEC␛[31m.md: planning
    ----
    Runs:
      → run 3 SPEC␛[31m.md: planning
    ");
    insta::assert_snapshot!(inbox_and_status(&[], &[planning], &[]), @"
    Interrupted:
      → run 3 SPEC␛[31m.md: planning
          signoff run --resume 3
    ----
    Runs:
      → run 3 SPEC␛[31m.md: planning
          signoff run --resume 3
    ");
    insta::assert_snapshot!(inbox_and_status(&[], &[run(3, "failed", "done", (None, 2))], &[]), @"
    Needs attention:
      ✗ run 3 SPEC␛[31m.md: final review failed
          its reviews are .signoff/reviews/*-run-3-*
          signoff retry run-3, or signoff edit run-3 --verdict APPROVED --reason TEXT
    ----
    Runs:
      ✗ run 3 SPEC␛[31m.md: final review failed
          its reviews are .signoff/reviews/*-run-3-*
          signoff retry run-3, or signoff edit run-3 --verdict APPROVED --reason TEXT
    ");
    insta::assert_snapshot!(inbox_and_status(&[], &[run(3, "failed", "done", (None, 0))], &[]), @"
    Needs attention:
      ✗ run 3 SPEC␛[31m.md: failed in planning
          its reviews are .signoff/reviews/*-run-3-*
    ----
    Runs:
      ✗ run 3 SPEC␛[31m.md: failed in planning
          its reviews are .signoff/reviews/*-run-3-*
    ");
}

#[test]
fn a_group_without_a_process_is_interrupted() {
    let tasks = [row(4, "Add the table", TaskStatus::InProgress)];
    let working = || run(3, "running", "working", (Some(2), 2));
    insta::assert_snapshot!(inbox_and_status(&tasks, &[working()], &[]), @"
    Interrupted:
      → run 3 SPEC␛[31m.md: group 2/2
          signoff run --resume 3

    1 in_progress
    ----
      → 4. implement Add the table    in_progress

    Runs:
      → run 3 SPEC␛[31m.md: group 2/2
          signoff run --resume 3
    ");
    insta::assert_snapshot!(inbox_and_status(&tasks, &[working()], &[3]), @"
    Running:
      → run 3 SPEC␛[31m.md: group 2/2
      → 4. implement Add the table    in_progress

    1 in_progress
    ----
      → 4. implement Add the table    in_progress

    Runs:
      → run 3 SPEC␛[31m.md: group 2/2
    ");
    let whole = run(3, "running", "reviewing", (None, 2));
    insta::assert_snapshot!(inbox_and_status(&[], &[whole], &[3]), @"
    Running:
      → run 3 SPEC␛[31m.md: final review
    ----
    Runs:
      → run 3 SPEC␛[31m.md: final review
    ");
}
