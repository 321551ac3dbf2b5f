//! `signoff show ID`, as text and as JSON.

use signoff_core::ledger::{DecidedBy, FindingDecision, FindingState};
use signoff_core::machine::{AttemptFailure, CheckReport, Event};
use signoff_core::review::Severity::{Critical, Important};
use signoff_core::review::{Review, Verdict};
use signoff_core::view::{TaskRow, TaskStatus};
use signoff_term::show::TaskReport;

use crate::rows::{ended, row, shown};
use crate::story::{Story, finding, id, note, review, reviewed, task_report};

fn task() -> TaskRow {
    ended(row(29, "Add user authentication", TaskStatus::Completed), "approved", "APPROVED", "", 2)
}

fn report(task: TaskRow, story: &Story, artifacts: &[&str]) -> TaskReport {
    task_report(task, story.log.clone(), &id(29), artifacts.iter().map(|path| (*path).to_owned()).collect())
}

/// Two reviewers, two cycles, one finding refuted by a person.
pub fn approved() -> TaskReport {
    let with_notes = Review {
        minor: vec![note("src/auth.rs", 30, "a magic number")],
        summary: "Good, but for one thing.".into(),
        ..review("code", Verdict::ChangesRequested, &[(Important, "src/auth.rs:78", "two logins race")])
    };
    let missing = (Critical, "src/auth.rs:12", "missing input validation");
    let story = Story::task(reviewed("plan")).works().objects("spec", &[missing]).answers("code", with_notes);
    let race = finding("code", Important, "src/auth.rs:78", "two logins race").id;
    let by = DecidedBy::Person("ann".into());
    let decision =
        FindingDecision { state: FindingState::Refuted, by, commit: None, evidence: "there is a lock".into() };
    let story = story.then(Event::FindingDecided { finding: race, decision });
    let story = story.works().reviewer_fails("spec", AttemptFailure::TimedOut).approves("code").approves("spec");
    let artifacts = [".signoff/reviews/20260129-task-29-review-1.md", ".signoff/reviews/20260129-task-29-review-2.md"];
    report(task(), &story, &artifacts)
}

#[test]
fn a_task_that_was_approved() {
    insta::assert_snapshot!(shown(&approved()), @"
    ✓ 29. Add user authentication
      type      implement
      status    completed APPROVED (2 cycles)
      branch    signoff/task-29
      base      c0ffee
      worktree  .signoff/worktrees/29
      cost      $0.36, 2700 tokens in, 240 out
      time      2026-01-29 10:00:00 to 2026-01-29 10:12:30 (12m 30s)

    Cycle 1 (review, c1): CHANGES_REQUESTED
      code  changes_requested  20s  $0.12  Good, but for one thing.
      spec  changes_requested  20s  $0.12
      1. [critical] src/auth.rs:12 missing input validation
      2. [important] src/auth.rs:78 two logins race
      note by code: src/auth.rs:30 a magic number

    Cycle 2 (review, c2): APPROVED
      code  approved  20s  $0.12
      spec  approved  20s  $0.12

    Findings:
      refuted      f-3848bab3b9 [important] src/auth.rs:78 two logins race
                   reported by code in review 1
                   refuted by ann: there is a lock
      fixed        f-84289c36aa [critical] src/auth.rs:12 missing input validation
                   reported by spec in review 1
                   fixed by spec: approved without reporting it again in cycle 2 of pass 1

    Attempts:
      a1  implement       claude large  2026-01-29 10:01:10  20s  $0.12  complete
      a2  review by spec  claude large  2026-01-29 10:02:00  20s  $0.12  reviewed: changes_requested
      a3  review by code  claude large  2026-01-29 10:01:50  20s  $0.12  reviewed: changes_requested
      a4  fix             claude large  2026-01-29 10:03:10  20s  $0.12  complete
      a5  review by spec  claude large  2026-01-29 10:04:20  20s  $0.12  failed: timed out
      a6  review by code  claude large  2026-01-29 10:04:10  20s  $0.12  reviewed: approved
      a7  review by spec  claude large  2026-01-29 10:05:00  20s  $0.12  reviewed: approved

    Notes:
      a5  hint: `[reviewers.spec] timeout` sets the timeout; `signoff config` shows the settings in effect

    Decisions:
      2026-01-29 10:03:30 ann: dispute f-3848bab3b9 - there is a lock

    Artifacts:
      .signoff/reviews/20260129-task-29-review-1.md
      .signoff/reviews/20260129-task-29-review-2.md

    Next: signoff diff 29, then signoff merge 29
    ");
}

#[test]
fn a_task_that_waits_for_an_answer() {
    let story = Story::task(reviewed("plan"));
    let story = story.works().answers_unclearly("code").approves("spec").answers_unclearly("code");
    let task = TaskRow {
        review_cycle: 1,
        phase: Some("review".into()),
        ..row(29, "Add user authentication", TaskStatus::Waiting)
    };
    insta::assert_snapshot!(shown(&report(task, &story, &[])), @"
    ! 29. Add user authentication
      type      implement
      status    waiting (cycle 1/3)
      branch    signoff/task-29
      base      c0ffee
      worktree  .signoff/worktrees/29
      cost      $0.36, 2700 tokens in, 240 out
      time      since 2026-01-29 10:00:00

    Cycle 1 (review, c1): INCONCLUSIVE
      code  inconclusive  20s  $0.12  there is no verdict line
      spec  approved      20s  $0.12

    Attempts:
      a1  implement       claude large  2026-01-29 10:01:10  20s  $0.12  complete
      a2  review by spec  claude large  2026-01-29 10:02:00  20s  $0.12  reviewed: approved
      a3  review by code  claude large  2026-01-29 10:01:50  20s  $0.12  unclear: there is no verdict line
      a4  review by code  claude large  2026-01-29 10:02:40  20s  $0.12  unclear: there is no verdict line

    Question:
      q1 task 29: code gave no usable review; the others did. Retry, proceed without, or stop?
          signoff answer 29 CHOICE (retry, proceed, stop, restart)
    ");
}

#[test]
fn a_task_that_starts_over_after_its_checks() {
    let mut story = Story::task(reviewed("phases"));
    for _ in 0..8 {
        story = story.works();
    }
    let failed = CheckReport::Failed { findings: vec![finding("checks", Critical, "", "2 tests failed")] };
    let story = story.approves("plan").works().approves("code").checks(failed);
    let task =
        TaskRow { phase: Some("brainstorm".into()), ..row(29, "Add user authentication", TaskStatus::InProgress) };
    let text = shown(&report(task, &story, &[]));
    let upto = text.find("Attempts:").unwrap();
    insta::assert_snapshot!(&text[..upto], @"
    → 29. Add user authentication
      type      implement
      status    in_progress (iteration 2/10, phase 1/9 brainstorm)
      branch    signoff/task-29
      base      c0ffee
      worktree  .signoff/worktrees/29
      cost      $0.36, 2700 tokens in, 240 out
      time      since 2026-01-29 10:00:00

    Cycle 1 (plan_review, c8): APPROVED
      plan  approved  20s  $0.12

    Cycle 1 (code_review, c9): APPROVED
      code  approved  20s  $0.12

    Cycle 1 (test, c9): CHANGES_REQUESTED
      checks  changes_requested  20s  $0.12
      1. [critical] 2 tests failed

    Findings:
      open         f-f8b1426c28 [critical] 2 tests failed
                   reported by checks in test 1
    ");
}

#[test]
fn a_task_without_a_run() {
    let pending =
        TaskRow { started_at: None, branch: None, base: None, worktree: None, ..row(29, "Later", TaskStatus::Pending) };
    let report = task_report(pending, Vec::new(), &id(29), Vec::new());
    insta::assert_snapshot!(shown(&report), @"
        · 29. Later
          type      implement
          status    pending
          cost      $0.36, 2700 tokens in, 240 out

        Next: signoff work 29
    ");
}

#[test]
fn the_json_of_a_task() {
    let mut json = serde_json::to_value(approved()).unwrap();
    json["task"] = serde_json::json!("the row of `status --json`");
    for cycle in json["cycles"].as_array_mut().unwrap() {
        cycle["merged"] = serde_json::json!("a merged review");
    }
    json["cycles"].as_array_mut().unwrap().truncate(1);
    json["attempts"].as_array_mut().unwrap().truncate(2);
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap(), @r#"
    {
      "version": 1,
      "task": "the row of `status --json`",
      "cycles": [
        {
          "n": 1,
          "phase": "review",
          "pass": 1,
          "scope": "full",
          "commit": "c1",
          "ended_at": "2026-01-29T10:03:00Z",
          "verdict": "CHANGES_REQUESTED",
          "reviews": [
            {
              "reviewer": "code",
              "kind": "code",
              "verdict": "changes_requested",
              "reason": null,
              "confidence": "high",
              "findings": [
                {
                  "id": "f-3848bab3b9",
                  "severity": "important",
                  "kind": "bug",
                  "file": "src/auth.rs",
                  "line": 78,
                  "description": "two logins race",
                  "requirement": null,
                  "suggestion": null,
                  "sources": [
                    "code"
                  ]
                }
              ],
              "minor": [
                {
                  "file": "src/auth.rs",
                  "line": 30,
                  "description": "a magic number"
                }
              ],
              "checked": [],
              "summary": "Good, but for one thing.",
              "follow_up_prompt": null,
              "interpreted_intent": null,
              "intent_satisfied": null,
              "raw": null,
              "duration_ms": 20000,
              "cost_usd": 0.12,
              "input_tokens": 900,
              "output_tokens": 80
            },
            {
              "reviewer": "spec",
              "kind": "spec",
              "verdict": "changes_requested",
              "reason": null,
              "confidence": "high",
              "findings": [
                {
                  "id": "f-84289c36aa",
                  "severity": "critical",
                  "kind": "bug",
                  "file": "src/auth.rs",
                  "line": 12,
                  "description": "missing input validation",
                  "requirement": null,
                  "suggestion": null,
                  "sources": [
                    "spec"
                  ]
                }
              ],
              "minor": [],
              "checked": [],
              "summary": "",
              "follow_up_prompt": null,
              "interpreted_intent": null,
              "intent_satisfied": null,
              "raw": null,
              "duration_ms": 20000,
              "cost_usd": 0.12,
              "input_tokens": 900,
              "output_tokens": 80
            }
          ],
          "merged": "a merged review",
          "convergence": {
            "new": 2,
            "carried": 0,
            "regressed": 0,
            "fixed": 0,
            "refuted": 0,
            "out_of_scope": 0,
            "open_after": 2
          }
        }
      ],
      "ledger": [
        {
          "id": "f-3848bab3b9",
          "severity": "important",
          "kind": "bug",
          "file": "src/auth.rs",
          "line": 78,
          "description": "two logins race",
          "requirement": null,
          "suggestion": null,
          "sources": [
            "code"
          ],
          "state": "refuted",
          "blocks": false,
          "seen": [
            {
              "pass": 1,
              "phase": "review",
              "cycle": 1,
              "commit": "c1"
            }
          ],
          "decisions": [
            {
              "state": "refuted",
              "by_kind": "person",
              "by": "ann",
              "commit": null,
              "evidence": "there is a lock"
            }
          ]
        },
        {
          "id": "f-84289c36aa",
          "severity": "critical",
          "kind": "bug",
          "file": "src/auth.rs",
          "line": 12,
          "description": "missing input validation",
          "requirement": null,
          "suggestion": null,
          "sources": [
            "spec"
          ],
          "state": "fixed",
          "blocks": false,
          "seen": [
            {
              "pass": 1,
              "phase": "review",
              "cycle": 1,
              "commit": "c1"
            }
          ],
          "decisions": [
            {
              "state": "fixed",
              "by_kind": "reviewer",
              "by": "spec",
              "commit": "c2",
              "evidence": "approved without reporting it again in cycle 2 of pass 1"
            }
          ]
        }
      ],
      "attempts": [
        {
          "id": "a1",
          "role": "implement",
          "reviewer": null,
          "agent": "claude",
          "model": "large",
          "phase": "implement",
          "cycle": 0,
          "hold": null,
          "session": null,
          "resumes": null,
          "started_at": "2026-01-29T10:01:10Z",
          "ended_at": "2026-01-29T10:01:40Z",
          "outcome": "complete",
          "detail": null,
          "hint": null,
          "notes": [],
          "duration_ms": 20000,
          "cost_usd": 0.12,
          "input_tokens": 900,
          "output_tokens": 80
        },
        {
          "id": "a2",
          "role": "review",
          "reviewer": "spec",
          "agent": "claude",
          "model": "large",
          "phase": "review",
          "cycle": 1,
          "hold": null,
          "session": null,
          "resumes": null,
          "started_at": "2026-01-29T10:02:00Z",
          "ended_at": "2026-01-29T10:02:30Z",
          "outcome": "reviewed",
          "detail": "changes_requested",
          "hint": null,
          "notes": [],
          "duration_ms": 20000,
          "cost_usd": 0.12,
          "input_tokens": 900,
          "output_tokens": 80
        }
      ],
      "artifacts": [
        ".signoff/reviews/20260129-task-29-review-1.md",
        ".signoff/reviews/20260129-task-29-review-2.md"
      ],
      "decisions": [
        {
          "at": "2026-01-29T10:03:30Z",
          "by": "ann",
          "what": "dispute",
          "choice": "f-3848bab3b9",
          "reason": "there is a lock"
        }
      ],
      "approved_commit": "c2",
      "voided": null,
      "question": null
    }
    "#);
}
