//! `signoff status` and `signoff` alone.

use signoff_core::view::{Status, TaskRow};
use signoff_term::{attention, status};

use crate::rows::{all, ended, question, row};

#[test]
fn the_three_lines() {
    let tasks = &all()[..3];
    let lines = [
        "  ✓ 29. implement Add feature X    completed  APPROVED (3 cycles)\n",
        "  ✓ 30. implement Add feature Y    completed  MAX_CYCLES_REACHED (3 cycles)\n",
        "  → 31. implement Add feature Z    in_progress (cycle 2/3)\n",
    ];
    assert_eq!(status::text(tasks, &[], status::TITLE), lines.concat());
}

#[test]
fn every_status() {
    insta::assert_snapshot!(status::text(&all(), &[question("q1", 33)], 30), @"
          ✓  29. implement Add feature X                    completed  APPROVED (3 cycles)
          ✓  30. implement Add feature Y                    completed  MAX_CYCLES_REACHED (3 cycles)
          →  31. implement Add feature Z                    in_progress (cycle 2/3)
          →  32. implement Add a very long feature that…    in_progress (implement)
          ?  33. implement Ask about it                     waiting     (cycle 3/3)
          ‖  34. implement Wait for money                   paused      (cycle 1/3)
          ✗  35. implement Break␛[31m it                    failed     CHANGES_REQUESTED (1 cycle)  reviewer_failed
          ✗  36. implement Never begun well                 failed     implementer_failed
          ✗  37. implement Give up                          stuck      task_stuck
          ▪  38. implement Wait for 37                      blocked     (cycle 1/3)
          –  39. implement Call off                         cancelled
          ✓  40. plan      Not reviewed                     completed  not reviewed
          ✓  41. implement Accepted                         completed  APPROVED (by a person)
          ✓  42. implement Talk                             completed  NEEDS_DISCUSSION (1 cycle)
          ✓  43. implement Skip                             completed  not approved  review_skipped
          ✓  44. implement Again                            completed  CHANGES_REQUESTED (2 cycles)  same_finding
          ·  45. implement Later                            pending     (waits for 37)
          → 104. improve   漢字の題                         in_progress (cycle 4)

        Questions:
          q1 task 33: 3 reviews did not lead to approval. One more fix and review, proceed with the findings open, or stop?
              signoff answer 33 CHOICE    (continue, proceed, stop)
    ");
}

#[test]
fn nothing_yet() {
    insta::assert_snapshot!(status::text(&[], &[], 40), @r#"
        No tasks yet.
          signoff add "what is to be done" -a    adds one, reviewed until approved
    "#);
    insta::assert_snapshot!(attention::text(&[], &[], 40), @r#"
        Nothing to do yet.

          signoff add "what is to be done" -a    a task, reviewed until it is approved
          signoff work                           works the tasks
          signoff run PLAN                       works a plan file or a specification

        `signoff --help` lists all commands.
    "#);
}

#[test]
fn what_needs_attention_comes_first() {
    insta::assert_snapshot!(attention::text(&all(), &[question("q1", 33)], 30), @"
        Needs attention:
          q1 task 33: 3 reviews did not lead to approval. One more fix and review, proceed with the findings open, or stop?
              signoff answer 33 CHOICE    (continue, proceed, stop)
          ✗ 35. Break␛[31m it: failed CHANGES_REQUESTED (1 cycle) reviewer_failed
              signoff show 35, then signoff retry 35
          ✗ 36. Never begun well: failed implementer_failed
              signoff show 36, then signoff retry 36
          ✗ 37. Give up: stuck task_stuck
              signoff show 37, then signoff retry 37
          ✓ 30. Add feature Y: completed MAX_CYCLES_REACHED (3 cycles)
              signoff show 30, then signoff improve 30 --review or signoff edit 30 --verdict APPROVED
          ✓ 44. Again: completed CHANGES_REQUESTED (2 cycles) same_finding
              signoff show 44, then signoff improve 44 --review or signoff edit 44 --verdict APPROVED
          ✓ 42. Talk: completed NEEDS_DISCUSSION (1 cycle)
              signoff show 42, then signoff retry 42 or signoff edit 42 --verdict APPROVED
          ✓ 43. Skip: completed not approved review_skipped
              signoff show 43, then signoff improve 43 --review
          ▪ 38. Wait for 37: blocked (cycle 1/3)
              its group waits for another task; settle that one first
          ‖ 34. Wait for money: paused (cycle 1/3)
              raise the budget or wait, then signoff work 34

        Running:
          →  31. implement Add feature Z                    in_progress (cycle 2/3)
          →  32. implement Add a very long feature that…    in_progress (implement)
          → 104. improve   漢字の題                         in_progress (cycle 4)

        1 pending, 3 in_progress, 1 waiting, 1 paused, 7 completed, 2 failed, 1 stuck, 1 blocked, 1 cancelled
          signoff work    works what is pending
    ");
}

#[test]
fn what_was_taken_up_again_needs_no_attention() {
    let old =
        ended(row(1, "Add it", Status::Completed), "exhausted", "MAX_CYCLES_REACHED", "cycles_exhausted", 3);
    let new = TaskRow {
        continues: Some(1),
        ..ended(row(2, "Improve it", Status::Completed), "approved", "APPROVED", "", 1)
    };
    insta::assert_snapshot!(attention::text(&[old, new], &[], 30), @"2 completed");
}

#[test]
fn a_long_list_stays_readable() {
    let failed = |id| ended(row(id, "Break it", Status::Failed), "failed", "", "implementer_failed", 0);
    let tasks: Vec<_> = (1..=10_000).map(failed).collect();
    assert_eq!(status::text(&tasks, &[], 40).lines().count(), 10_000);
    let text = attention::text(&tasks, &[], 40);
    assert!(text.contains("… and 9980 more: signoff status"), "{text}");
}
