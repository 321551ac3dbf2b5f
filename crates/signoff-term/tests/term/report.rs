//! `signoff report`: the report of a task or a run in each format.

mod laws;
mod many;
mod waiting;

use std::collections::BTreeSet;

use signoff_core::ids::LoopId;
use signoff_core::ledger::{DecidedBy, FindingDecision, FindingState};
use signoff_core::machine::{AttemptFailure, Choice, Event};
use signoff_core::review::Severity::{Critical, Important, Minor};
use signoff_core::view::{RunRow, RunStatus, TaskRow, TaskStatus};
use signoff_term::report::{
    Changes, DocumentSubject, PartSection, ReportDocument, ReportResult, RunSection, TaskSection, junit, markdown,
    result_of_report, sarif,
};
use signoff_term::show::{RunHistory, TaskReport};

use crate::rows::{ended, next_step, row, section};
use crate::show::approved;
use crate::story::{Story, finding, history, id, reviewed, task_report};

const STAT: &str =
    " src/auth.rs  | 12 ++++++++++--\n src/login.rs |  3 +++\n 2 files changed, 13 insertions(+), 2 deletions(-)\n";

fn task_document(report: TaskReport, asked: &str, changes: Changes) -> ReportDocument {
    let id = report.task.id;
    let task = section(report, asked, changes);
    ReportDocument::new(DocumentSubject::task(id), "2026-01-29T11:00:00Z".to_owned(), None, Vec::new(), vec![task])
}

/// The report of an approved task.
pub fn approved_document() -> ReportDocument {
    task_document(approved(), "Add user authentication\n\nWith a form, and OAuth.", Changes::parse_stat(STAT))
}

/// The first task is approved; a review of the second one is inconclusive.
fn asking() -> Story {
    let groups: &[&[(u64, &str)]] = &[&[(29, "Add login"), (30, "Add logout")], &[(31, "Add tests")]];
    let open = [(Critical, "src/a.rs:3", "the session stays open"), (Minor, "src/a.rs:9", "a typo")];
    let story = Story::new(reviewed("plan")).plan(groups).starts(29).works().approves("spec").approves("code");
    story.starts(30).works().objects("spec", &open).answers_unclearly("code").answers_unclearly("code")
}

/// One task approved, one failed, and one never started.
fn stopped() -> RunHistory {
    history(asking().person(Choice::Proceed).writer_fails(AttemptFailure::TimedOut).log)
}

/// A run with one approved task, one failed, and one never started.
pub fn mixed_run() -> ReportDocument {
    let folded = stopped();
    let rows = [
        ended(row(29, "Add login", TaskStatus::Completed), "approved", "APPROVED", "", 1),
        ended(row(30, "Add logout", TaskStatus::Failed), "failed", "CHANGES_REQUESTED", "fixer_failed", 1),
        TaskRow { base: None, worktree: None, started_at: None, ..row(31, "Add tests", TaskStatus::Pending) },
    ];
    let tasks = rows.map(|row| {
        let changes = match row.id {
            29 => Changes::parse_stat(STAT),
            30 => Changes::unknown("the branch signoff/task-30 is gone, and git does not have its commits any more"),
            _ => Changes::unknown("nothing was changed: it was never started"),
        };
        let (loop_id, asked) = (id(row.id), row.title.clone());
        section(folded.report(row, &loop_id, Vec::new()), &asked, changes)
    });
    let run = RunSection::new(run(3, "running", "working"), &folded, &task_results(&tasks), &[], false);
    let parts = PartSection::all(&folded, &[29, 30, 31].map(id).into());
    ReportDocument::new(DocumentSubject::run(3), "2026-01-29T11:00:00Z".to_owned(), Some(run), parts, tasks.into())
}

fn task_results(tasks: &[TaskSection]) -> Vec<ReportResult> {
    tasks.iter().map(|task| task.result.clone()).collect()
}

fn run(id: u64, status: &str, stage: &str) -> RunRow {
    RunRow {
        id,
        preset: "plan".to_owned(),
        specification: Some("docs/plan.md".to_owned()),
        status: status.parse::<RunStatus>().expect(status),
        stage: stage.parse().expect(stage),
        group: None,
        groups: None,
        branch: Some(format!("signoff/run-{id}")),
        cost_usd: 0.6,
        cost_is_estimated: false,
    }
}

#[test]
fn an_approved_task_for_a_pull_request() {
    insta::assert_snapshot!(markdown::markdown(&approved_document()), @"
    ## ✓ Add user authentication

    **Approved after 2 reviews**, reviewed by code, spec.

    2 review cycles, findings: 1 fixed, 1 refuted. $0.84, 4m 50s. 2 files changed, 13 insertions(+), 2 deletions(-).

    | Finding | Severity | Where | By | State |
    |---|---|---|---|---|
    | two logins race | important | `src/auth.rs:78` | code | refuted |
    | missing input validation | critical | `src/auth.rs:12` | spec | fixed |

    <details><summary>What was asked</summary>

    Add user authentication

    With a form, and OAuth.

    </details>

    <details><summary>Findings in full (2)</summary>

    - `f-3848bab3b9` **important** `src/auth.rs:78`, refuted

      two logins race

      Reported by code in review 1

      Then refuted by ann: there is a lock

    - `f-84289c36aa` **critical** `src/auth.rs:12`, fixed

      missing input validation

      Reported by spec in review 1

      Then fixed by spec: approved without reporting it again in cycle 2 of pass 1


    </details>

    <details><summary>Reviews (2)</summary>

    **review 1**, pass 1, commit `c1`: CHANGES REQUESTED (2 new, 0 carried, 0 back again, 0 fixed)

    - code changes requested, 20s, $0.12: Good, but for one thing.
    - spec changes requested, 20s, $0.12

    **review 2**, pass 1, commit `c2`: APPROVED (0 new, 0 carried, 0 back again, 1 fixed)

    - code approved, 20s, $0.12
    - spec approved, 20s, $0.12


    </details>

    <details><summary>Decisions of people</summary>

    - 2026-01-29 10:03:30 ann: dispute f-3848bab3b9: there is a lock

    </details>

    <details><summary>Attempts (7)</summary>

    | | Who | Agent | Time | Cost | End |
    |---|---|---|--:|--:|---|
    | a1 | implement | claude large | 20s | $0.12 | complete |
    | a2 | review by spec | claude large | 20s | $0.12 | reviewed: changes_requested |
    | a3 | review by code | claude large | 20s | $0.12 | reviewed: changes_requested |
    | a4 | fix | claude large | 20s | $0.12 | complete |
    | a5 | review by spec | claude large | 20s | $0.12 | failed: timed out |
    | a6 | review by code | claude large | 20s | $0.12 | reviewed: approved |
    | a7 | review by spec | claude large | 20s | $0.12 | reviewed: approved |

    </details>

    <details><summary>Changes</summary>

    ```text
     src/auth.rs  | 12 ++++++++++--
     src/login.rs |  3 +++
     2 files changed, 13 insertions(+), 2 deletions(-)
    ```

    </details>

    <details><summary>Cost and time: $0.84, 2m 20s of work</summary>

    | Role | Attempts | Time | Cost | Tokens in | out |
    |---|--:|--:|--:|--:|--:|
    | review | 5 | 1m 40s | $0.60 | 4500 | 400 |
    | fix | 1 | 20s | $0.12 | 900 | 80 |
    | implement | 1 | 20s | $0.12 | 900 | 80 |

    </details>

    <sub>Written by signoff.</sub>
    ");
}

#[test]
fn a_run_that_stopped_halfway_for_a_pull_request() {
    insta::assert_snapshot!(markdown::markdown(&mixed_run()), @"
    ## … Run 3: docs/plan.md

    **Left unfinished (working) with 3 tasks, and no process is running: `signoff run --resume 3` continues**, reviewed by code, spec.

    2 review cycles, findings: 2 open. $0.96, 6m 00s. 3 tasks.

    | Task | Title | Standing | Reviews | Cost | Changes |
    |--:|---|---|--:|--:|---|
    | 30 | Add logout | ✗ Failed: the fixer failed (fixer_failed) | 1 | $0.36 | the branch signoff/task-30 is gone, and git does not have its commits any more |
    | 31 | Add tests | · Not started yet | 0 | $0.36 | nothing was changed: it was never started |
    | 29 | Add login | ✓ Approved after 1 review | 1 | $0.36 | 2 files changed, 13 insertions(+), 2 deletions(-) |

    | Task | Finding | Severity | Where | By | State |
    |---|---|---|---|---|---|
    | 30 | the session stays open | critical | `src/a.rs:3` | spec | **open** |
    | 30 | a typo | minor | `src/a.rs:9` | spec | open |

    <details><summary>Task 30: What was asked</summary>

    Add logout

    </details>

    <details><summary>Task 30: Findings in full (2)</summary>

    - `f-a5616c7f75` **critical** `src/a.rs:3`, open

      the session stays open

      Reported by spec in review 1

    - `f-39866e08c8` **minor** `src/a.rs:9`, open

      a typo

      Reported by spec in review 1


    </details>

    <details><summary>Task 30: Reviews (1)</summary>

    **review 1**, pass 1, commit `c2`: INCONCLUSIVE (2 new, 0 carried, 0 back again, 0 fixed)

    - code inconclusive, 20s, $0.12: there is no verdict line
    - spec changes requested, 20s, $0.12
      - critical: the session stays open
      - minor: a typo


    </details>

    <details><summary>Task 30: Decisions of people</summary>

    - 2026-01-29 10:06:50 ann: answer proceed

    </details>

    <details><summary>Task 30: Attempts (5)</summary>

    | | Who | Agent | Time | Cost | End |
    |---|---|---|--:|--:|---|
    | a1 | implement | claude large | 20s | $0.12 | complete |
    | a2 | review by spec | claude large | 20s | $0.12 | reviewed: changes_requested |
    | a3 | review by code | claude large | 20s | $0.12 | unclear: there is no verdict line |
    | a4 | review by code | claude large | 20s | $0.12 | unclear: there is no verdict line |
    | a5 | fix | claude large | 20s | $0.12 | failed: timed out |

    </details>

    <details><summary>Task 30: Changes</summary>

    the branch signoff/task-30 is gone, and git does not have its commits any more


    </details>

    <details><summary>Task 31: What was asked</summary>

    Add tests

    </details>

    <details><summary>Task 31: Changes</summary>

    nothing was changed: it was never started


    </details>

    <details><summary>Task 29: What was asked</summary>

    Add login

    </details>

    <details><summary>Task 29: Reviews (1)</summary>

    **review 1**, pass 1, commit `c1`: APPROVED (0 new, 0 carried, 0 back again, 0 fixed)

    - code approved, 20s, $0.12
    - spec approved, 20s, $0.12


    </details>

    <details><summary>Task 29: Attempts (3)</summary>

    | | Who | Agent | Time | Cost | End |
    |---|---|---|--:|--:|---|
    | a1 | implement | claude large | 20s | $0.12 | complete |
    | a2 | review by spec | claude large | 20s | $0.12 | reviewed: approved |
    | a3 | review by code | claude large | 20s | $0.12 | reviewed: approved |

    </details>

    <details><summary>Task 29: Changes</summary>

    ```text
     src/auth.rs  | 12 ++++++++++--
     src/login.rs |  3 +++
     2 files changed, 13 insertions(+), 2 deletions(-)
    ```

    </details>

    <details><summary>Cost and time: $0.96, 2m 40s of work</summary>

    | Role | Attempts | Time | Cost | Tokens in | out |
    |---|--:|--:|--:|--:|--:|
    | review | 5 | 1m 40s | $0.60 | 4500 | 400 |
    | implement | 2 | 40s | $0.24 | 1800 | 160 |
    | fix | 1 | 20s | $0.12 | 900 | 80 |

    </details>

    <sub>Written by signoff.</sub>
    ");
}

#[test]
fn a_run_that_stopped_halfway_for_continuous_integration() {
    insta::assert_snapshot!(junit::junit(&mixed_run()), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="signoff" tests="10" failures="1" errors="4" skipped="0" time="160.000">
      <testsuite name="run 3" tests="1" failures="0" errors="1" skipped="0" time="0.000" timestamp="2026-01-29T10:00:10Z">
        <properties>
          <property name="preset" value="plan"/>
          <property name="status" value="running"/>
          <property name="specification" value="docs/plan.md"/>
        </properties>
        <testcase classname="signoff.run-3" name="end" time="0.000">
          <error message="Left unfinished (working) with 3 tasks, and no process is running: `signoff run --resume 3` continues" type="unfinished"/>
        </testcase>
      </testsuite>
      <testsuite name="task 29: Add login" tests="3" failures="0" errors="0" skipped="0" time="60.000" timestamp="2026-01-29T10:00:00Z">
        <properties>
          <property name="status" value="completed"/>
          <property name="cost_usd" value="0.36"/>
          <property name="verdict" value="APPROVED"/>
          <property name="branch" value="signoff/task-29"/>
          <property name="approved_commit" value="c1"/>
        </properties>
        <testcase classname="signoff.task-29" name="end" time="20.000">
          <system-out>Approved after 1 review</system-out>
        </testcase>
        <testcase classname="signoff.task-29.review" name="review 1 by code" time="20.000">
          <system-out>approved</system-out>
        </testcase>
        <testcase classname="signoff.task-29.review" name="review 1 by spec" time="20.000">
          <system-out>approved</system-out>
        </testcase>
      </testsuite>
      <testsuite name="task 30: Add logout" tests="5" failures="1" errors="2" skipped="0" time="100.000" timestamp="2026-01-29T10:00:00Z">
        <properties>
          <property name="status" value="failed"/>
          <property name="cost_usd" value="0.36"/>
          <property name="verdict" value="CHANGES_REQUESTED"/>
          <property name="reason" value="fixer_failed"/>
          <property name="branch" value="signoff/task-30"/>
        </properties>
        <testcase classname="signoff.task-30" name="end" time="60.000">
          <error message="Failed: the fixer failed (fixer_failed)" type="failed"/>
        </testcase>
        <testcase classname="signoff.task-30.review" name="review 1 by code" time="20.000">
          <error message="there is no verdict line" type="inconclusive"/>
        </testcase>
        <testcase classname="signoff.task-30.review" name="review 1 by spec" time="20.000">
          <system-out>changes requested</system-out>
        </testcase>
        <testcase classname="signoff.task-30.review" name="f-a5616c7f75 [critical] src/a.rs:3 the session stays open" file="src/a.rs" time="0.000">
          <failure message="the session stays open" type="critical">[critical] src/a.rs:3
    the session stays open
    Reported by spec</failure>
        </testcase>
        <testcase classname="signoff.task-30.review" name="f-39866e08c8 [minor] src/a.rs:9 a typo" file="src/a.rs" time="0.000">
          <system-out>open, below fail_on</system-out>
        </testcase>
      </testsuite>
      <testsuite name="task 31: Add tests" tests="1" failures="0" errors="1" skipped="0" time="0.000">
        <properties>
          <property name="status" value="pending"/>
          <property name="cost_usd" value="0.36"/>
          <property name="branch" value="signoff/task-31"/>
        </properties>
        <testcase classname="signoff.task-31" name="end" time="0.000">
          <error message="Not started yet" type="unfinished"/>
        </testcase>
      </testsuite>
    </testsuites>
    "#);
}

#[test]
fn an_approved_task_for_continuous_integration() {
    insta::assert_snapshot!(junit::junit(&approved_document()), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="signoff" tests="5" failures="0" errors="0" skipped="1" time="140.000">
      <testsuite name="task 29: Add user authentication" tests="5" failures="0" errors="0" skipped="1" time="140.000" timestamp="2026-01-29T10:00:00Z">
        <properties>
          <property name="status" value="completed"/>
          <property name="cost_usd" value="0.36"/>
          <property name="asked" value="Add user authentication With a form, and OAuth."/>
          <property name="verdict" value="APPROVED"/>
          <property name="branch" value="signoff/task-29"/>
          <property name="approved_commit" value="c2"/>
        </properties>
        <testcase classname="signoff.task-29" name="end" time="100.000">
          <system-out>Approved after 2 reviews</system-out>
        </testcase>
        <testcase classname="signoff.task-29.review" name="review 2 by code" time="20.000">
          <system-out>approved</system-out>
        </testcase>
        <testcase classname="signoff.task-29.review" name="review 2 by spec" time="20.000">
          <system-out>approved</system-out>
        </testcase>
        <testcase classname="signoff.task-29.review" name="f-3848bab3b9 [important] src/auth.rs:78 two logins race" file="src/auth.rs" time="0.000">
          <skipped message="refuted by ann: there is a lock"/>
        </testcase>
        <testcase classname="signoff.task-29.review" name="f-84289c36aa [critical] src/auth.rs:12 missing input validation" file="src/auth.rs" time="0.000">
          <system-out>fixed by spec: approved without reporting it again in cycle 2 of pass 1</system-out>
        </testcase>
      </testsuite>
    </testsuites>
    "#);
}

#[test]
fn an_approved_task_for_code_scanning() {
    let text = sarif::sarif(&approved_document()).replace(env!("CARGO_PKG_VERSION"), "VERSION");
    insta::assert_snapshot!(text, @r#"
    {
      "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
      "version": "2.1.0",
      "runs": [
        {
          "tool": {
            "driver": {
              "name": "signoff",
              "version": "VERSION",
              "rules": [
                {
                  "id": "bug"
                }
              ]
            }
          },
          "automationDetails": {
            "id": "signoff/task-29/",
            "description": {
              "text": "Add user authentication"
            }
          },
          "invocations": [
            {
              "executionSuccessful": true,
              "toolExecutionNotifications": [
                {
                  "level": "note",
                  "message": {
                    "text": "Approved after 2 reviews"
                  }
                }
              ]
            }
          ],
          "results": [
            {
              "ruleId": "bug",
              "level": "warning",
              "message": {
                "text": "two logins race"
              },
              "locations": [
                {
                  "physicalLocation": {
                    "artifactLocation": {
                      "uri": "src/auth.rs"
                    },
                    "region": {
                      "startLine": 78
                    }
                  }
                }
              ],
              "partialFingerprints": {
                "signoff/v1": "task-29/f-3848bab3b9"
              },
              "baselineState": "unchanged",
              "suppressions": [
                {
                  "kind": "external",
                  "status": "accepted",
                  "justification": "refuted by ann: there is a lock"
                }
              ],
              "properties": {
                "task": 29,
                "sources": [
                  "code"
                ],
                "state": "refuted",
                "blocks": false,
                "suggestion": null
              }
            }
          ],
          "properties": {
            "task": 29,
            "title": "Add user authentication",
            "asked": "Add user authentication\n\nWith a form, and OAuth.",
            "standing": "Approved after 2 reviews",
            "branch": "signoff/task-29",
            "approvedCommit": "c2",
            "voided": null
          }
        }
      ]
    }
    "#);
}

#[test]
fn an_approved_task_as_json_without_the_show_report() {
    let mut json: serde_json::Value = serde_json::from_str(&approved_document().json()).unwrap();
    json["tasks"][0]["report"] = "what `show --json` prints".into();
    insta::assert_snapshot!(format!("{json:#}"), @r#"
    {
      "version": 1,
      "about": {
        "kind": "task",
        "id": 29
      },
      "made_at": "2026-01-29T11:00:00Z",
      "run": null,
      "parts": [],
      "tasks": [
        {
          "asked": "Add user authentication\n\nWith a form, and OAuth.",
          "standing": {
            "kind": "passed",
            "text": "Approved after 2 reviews"
          },
          "report": "what `show --json` prints",
          "changes": {
            "stat": " src/auth.rs  | 12 ++++++++++--\n src/login.rs |  3 +++\n 2 files changed, 13 insertions(+), 2 deletions(-)\n",
            "files": 2,
            "insertions": 13,
            "deletions": 2,
            "note": null
          }
        }
      ],
      "totals": {
        "findings": {
          "open": 0,
          "blocking": 0,
          "fixed": 1,
          "refuted": 1,
          "deferred": 0,
          "out_of_scope": 0
        },
        "cycles": 2,
        "attempts": 7,
        "cost_usd": 0.84,
        "cost_is_estimated": false,
        "input_tokens": 6300,
        "output_tokens": 560,
        "worked_ms": 140000,
        "passed_ms": 290000,
        "roles": [
          {
            "role": "review",
            "attempts": 5,
            "duration_ms": 100000,
            "cost_usd": 0.6,
            "input_tokens": 4500,
            "output_tokens": 400
          },
          {
            "role": "fix",
            "attempts": 1,
            "duration_ms": 20000,
            "cost_usd": 0.12,
            "input_tokens": 900,
            "output_tokens": 80
          },
          {
            "role": "implement",
            "attempts": 1,
            "duration_ms": 20000,
            "cost_usd": 0.12,
            "input_tokens": 900,
            "output_tokens": 80
          }
        ],
        "reviewers": [
          {
            "reviewer": "code",
            "attempts": 2,
            "raised": 1,
            "upheld": 0,
            "refuted": 1,
            "out_of_scope": 0,
            "open": 0,
            "pending": 0,
            "precision": 0.0,
            "duration_ms": 40000,
            "cost_usd": 0.24
          },
          {
            "reviewer": "spec",
            "attempts": 3,
            "raised": 1,
            "upheld": 1,
            "refuted": 0,
            "out_of_scope": 0,
            "open": 0,
            "pending": 0,
            "precision": 1.0,
            "duration_ms": 60000,
            "cost_usd": 0.36
          }
        ]
      }
    }
    "#);
}

#[test]
fn every_state_of_a_finding_is_reported() {
    let all = ["one", "two", "three", "four", "five"].map(|text| (Important, "a.rs:1", text));
    let mut story = Story::task(reviewed("task")).works().objects("general", &all);
    for (text, state) in
        [("one", FindingState::Refuted), ("two", FindingState::Deferred), ("three", FindingState::OutOfScope)]
    {
        let by = DecidedBy::Person("ann".into());
        let decision = FindingDecision { state, by, commit: None, evidence: format!("{text} is so") };
        let finding = finding("general", Important, "a.rs:1", text).id;
        story = story.then(Event::FindingDecided { finding, decision });
    }
    let decision = FindingDecision {
        state: FindingState::Fixed,
        by: DecidedBy::Check("test".into()),
        commit: None,
        evidence: "it passes".into(),
    };
    let story =
        story.then(Event::FindingDecided { finding: finding("general", Important, "a.rs:1", "four").id, decision });
    let row = row(29, "Add user authentication", TaskStatus::InProgress);
    let account =
        task_document(task_report(row, story.log.clone(), &id(29), Vec::new()), "It", Changes::parse_stat(STAT));
    let counts = account.totals.findings;
    assert_eq!((counts.refuted, counts.deferred, counts.out_of_scope, counts.fixed), (1, 1, 1, 1));
    assert_eq!((counts.open, counts.blocking), (1, 1));
    let sarif: serde_json::Value = serde_json::from_str(&sarif::sarif(&account)).unwrap();
    let mut lines: Vec<String> = sarif["runs"][0]["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| {
            let justification = result["suppressions"][0]["justification"].as_str().unwrap_or("-");
            format!("{} {} {} {justification}", result["message"]["text"], result["baselineState"], result["level"])
        })
        .collect();
    lines.sort();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    "five" "new" "warning" -
    "one" "new" "warning" refuted by ann: one is so
    "three" "new" "warning" out_of_scope by ann: three is so
    "two" "new" "warning" deferred by ann: two is so
    "#);
    let xml = junit::junit(&account);
    let xml = roxmltree::Document::parse(&xml).unwrap();
    let counted = xml.root_element();
    let number = |name: &str| counted.attribute(name).unwrap().parse::<usize>().unwrap();
    assert_eq!(
        (number("failures"), number("skipped"), number("errors")),
        (1, 3, 1),
        "unfinished without a running process"
    );
}

#[test]
fn results_of_tasks() {
    let lines: Vec<String> = crate::rows::all()
        .into_iter()
        .chain([TaskRow { run_id: None, ..row(50, "Never", TaskStatus::Pending) }])
        .map(|row| {
            let standing = signoff_term::report::result_of_task(&row, &next_step(&row), row.id == 31);
            format!("{} {}", standing.mark, standing.text)
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    ✓ Approved after 3 reviews
    ! Not approved after 3 reviews: the review cycles are used up (cycles_exhausted)
    → Unfinished in phase review, review 2; the work continues
    → Unfinished in phase implement, and no process is running: `signoff work 32` continues
    ! Waits for an answer: `signoff show 33` shows the question
    ‖ Paused, and no process is running: raise the budget, then signoff work 34
    ✗ Failed: a reviewer or check failed (reviewer_failed)
    ✗ Failed: the implementer failed (implementer_failed)
    ! Stuck: the agent reports that it is stuck (task_stuck)
    ▪ Signed off, but its group is blocked: `signoff run --resume 3`
    - Cancelled
    ○ Done, not reviewed
    ✓ Approved by a person
    ! To be discussed after 1 review: a reviewer asks for a discussion (discussion)
    ! Not approved after 1 review: not every reviewer answered (review_skipped)
    ! Not approved after 2 reviews: the same finding keeps coming back (same_finding)
    · Not started yet
    → Unfinished in phase review, review 4, and no process is running: `signoff work 104` continues
    · Never started: `signoff work 50` works it
    ");
}

#[test]
fn a_run_without_tasks_has_a_report_in_every_format() {
    let story = Story::new(reviewed("plan"));
    let folded = history(story.log.clone());
    let failed = RunRow { groups: Some(0), ..run(3, "failed", "done") };
    let run = RunSection::new(failed, &folded, &[], &[], false);
    let account = ReportDocument::new(DocumentSubject::run(3), String::new(), Some(run), Vec::new(), Vec::new());
    for text in [markdown::markdown(&account), junit::junit(&account), sarif::sarif(&account), account.json()] {
        assert!(text.contains("Failed in planning"), "{text}");
    }
}

#[test]
fn checkpoints_and_planning_are_part_of_the_run_report() {
    let part = reviewed("loops");
    let story = Story::new(reviewed("loops")).serves(LoopId::planning(), part).writer_fails(AttemptFailure::TimedOut);
    let parts = PartSection::all(&history(story.log.clone()), &BTreeSet::new());
    let counts: Vec<_> = parts.iter().map(|part| (part.name.as_str(), part.attempts.len())).collect();
    assert_eq!(counts, [("Planning", 2)], "the first attempt and the one after it");
}

/// A completed run whose only task has this row.
fn completed_run(row: TaskRow, voided: Option<&str>) -> ReportDocument {
    let story = Story::new(reviewed("plan")).plan(&[&[(29, "Add login")]]).starts(29).works();
    let folded = history(story.approves("spec").approves("code").log);
    let mut report = folded.report(row, &id(29), Vec::new());
    report.voided = voided.map(str::to_owned);
    let tasks = vec![section(report, "Add login", Changes::parse_stat(STAT))];
    let run = RunSection::new(run(3, "completed", "done"), &folded, &task_results(&tasks), &[], false);
    ReportDocument::new(DocumentSubject::run(3), String::new(), Some(run), Vec::new(), tasks)
}

#[test]
fn an_unapproved_run_passes_in_no_format() {
    let moved = "signoff/task-29 has moved to c9, which is not reviewed: `signoff review 29`";
    let accounts = [
        completed_run(ended(row(29, "Add login", TaskStatus::Completed), "exhausted", "", "cycles_exhausted", 3), None),
        completed_run(
            ended(row(29, "Add login", TaskStatus::Completed), "completed_with_issues", "", "changed_after_review", 1),
            Some(moved),
        ),
        completed_run(
            ended(row(29, "Add login", TaskStatus::Cancelled), "cancelled", "", "cancelled_by_person", 0),
            None,
        ),
    ];
    let mut texts = Vec::new();
    for account in &accounts {
        let sarif: serde_json::Value = serde_json::from_str(&sarif::sarif(account)).unwrap();
        assert_eq!(sarif["runs"][0]["invocations"][0]["executionSuccessful"], false);
        let xml = junit::junit(account);
        let xml = roxmltree::Document::parse(&xml).unwrap();
        let ends = xml.descendants().filter(|node| node.attribute("name") == Some("end"));
        assert!(ends.clone().count() == 2, "of the run and of its task");
        for end in ends {
            assert!(end.children().any(|node| node.has_tag_name("failure") || node.has_tag_name("error")));
        }
        let (run, task) = (account.result(), &account.tasks[0].result);
        let kind = serde_json::to_value(run.kind).unwrap();
        let kind = kind.as_str().unwrap();
        texts.push(format!("{} {} {}\n  {} {}", run.mark, kind, run.text, task.mark, task.text));
    }
    insta::assert_snapshot!(texts.join("\n"), @"
    ! open Ended with 1 task, 1 of them not signed off
      ! Not approved after 3 reviews: the review cycles are used up (cycles_exhausted)
    ! open Ended with 1 task, 1 of them not signed off
      ! Not approved after 1 review: something was committed after the review (changed_after_review); signoff/task-29 has moved to c9, which is not reviewed: `signoff review 29`
    ✗ broken Ended with 1 task, 1 of them not signed off
      - Cancelled
    ");
}

#[test]
fn a_void_approval_is_reported_in_every_format() {
    let row =
        ended(row(29, "Add login", TaskStatus::Completed), "completed_with_issues", "", "changed_after_review", 1);
    let account =
        completed_run(row, Some("signoff/task-29 has moved to c9, which is not reviewed: `signoff review 29`"));
    for text in [markdown::markdown(&account), junit::junit(&account), sarif::sarif(&account), account.json()] {
        assert!(text.contains("has moved to c9, which is not reviewed"), "{text}");
    }
    assert!(markdown::markdown(&account).contains("`signoff review 29`"), "a command is code");
    assert!(!junit::junit(&account).contains("approved_commit"));
    let sarif: serde_json::Value = serde_json::from_str(&sarif::sarif(&account)).unwrap();
    assert_eq!(sarif["runs"][0]["properties"]["tasks"][0]["approvedCommit"], serde_json::Value::Null);
}

#[test]
fn an_approved_task_that_waits_for_its_group() {
    let waits = TaskRow { run_id: Some(3), ..row(29, "Add login", TaskStatus::Blocked) };
    let behind = TaskRow { base: None, ..waits.clone() };
    let texts =
        [waits, behind].map(|row| signoff_term::report::result_of_task(&row, &next_step(&row), false).text.to_string());
    assert_eq!(
        texts,
        ["Signed off, but its group is blocked: `signoff run --resume 3`", "Blocked by its dependencies"]
    );
}

#[test]
fn a_report_of_many_tasks_is_one_sarif_run() {
    let account = mixed_run();
    let sarif: serde_json::Value = serde_json::from_str(&sarif::sarif(&account)).unwrap();
    assert_eq!(sarif["runs"].as_array().unwrap().len(), 1);
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let texts: Vec<String> = results
        .iter()
        .map(|result| format!("{} {}", result["properties"]["task"], result["partialFingerprints"]["signoff/v1"]))
        .collect();
    insta::assert_snapshot!(texts.join("\n"), @r#"
    30 "task-30/f-a5616c7f75"
    30 "task-30/f-39866e08c8"
    "#);
}

#[test]
fn times_add_up_to_the_working_time_of_the_agents() {
    for account in [approved_document(), mixed_run()] {
        let xml = junit::junit(&account);
        let xml = roxmltree::Document::parse(&xml).unwrap();
        let seconds: f64 = xml.root_element().attribute("time").unwrap().parse().unwrap();
        assert_eq!((seconds * 1000.0).round() as u64, account.totals.worked_ms);
    }
}

#[test]
fn running_tasks_are_skipped_and_interrupted_tasks_are_errors() {
    for (driven, expected) in [(true, "skipped"), (false, "error")] {
        let story = Story::task(reviewed("task"));
        let report = task_report(row(29, "Add login", TaskStatus::InProgress), story.log.clone(), &id(29), Vec::new());
        let next = next_step(&report.task);
        assert!(!result_of_report(&report, &next, driven).kind.has_ended());
        let task = TaskSection::new(report, "Add login".to_owned(), Changes::default(), next, driven);
        let account = ReportDocument::new(DocumentSubject::task(29), String::new(), None, Vec::new(), vec![task]);
        let xml = junit::junit(&account);
        let xml = roxmltree::Document::parse(&xml).unwrap();
        let end = xml.descendants().find(|node| node.attribute("name") == Some("end")).unwrap();
        assert!(end.children().any(|node| node.has_tag_name(expected)), "{driven}");
    }
}

#[test]
fn the_specification_is_truncated_in_a_pull_request() {
    let mut account = mixed_run();
    let description = format!("People log in. {}", "And out again. ".repeat(10_000));
    account.run.as_mut().unwrap().asked = Some(description.clone());
    let markdown = markdown::markdown(&account);
    assert!(markdown.contains("What was asked") && markdown.contains("People log in."), "{markdown}");
    assert!(markdown.matches("And out again.").count() < 1_000);
    assert!(account.json().contains(&description));
    assert!(sarif::sarif(&account).contains(&description) && junit::junit(&account).contains("People log in."));
}
