//! Tests of `signoff stats`.

use proptest::prelude::*;
use serde_json::json;
use signoff_core::ledger::{DecidedBy, FindingDecision, FindingState};
use signoff_core::machine::{AttemptFailure, Event};
use signoff_core::review::Severity::{Critical, Important};
use signoff_core::wire::RecordedFact;
use signoff_term::show::{AttemptRow, RunHistory};
use signoff_term::stats::{Convergence, Filter, PhaseTimes, StatsCollector, text};

use crate::fits::{fits, schema};
use crate::laws::log;
use crate::story::{Story, finding, history, id, reviewed, task_report};

/// One task approved in the first review, one in the second with a refuted finding, one failed, one in progress.
fn runs() -> Vec<Story> {
    let at_once = Story::task(reviewed("plan")).works().approves("spec").approves("code");
    let race = finding("code", Important, "b.rs:7", "two logins race").id;
    let by = DecidedBy::Person("ann".into());
    let decision =
        FindingDecision { state: FindingState::Refuted, by, commit: None, evidence: "there is a lock".into() };
    let second = Story::task(reviewed("plan"))
        .works()
        .objects("spec", &[(Critical, "a.rs:1", "missing input validation")])
        .objects("code", &[(Important, "b.rs:7", "two logins race")])
        .then(Event::FindingDecided { finding: race, decision })
        .works()
        .reviewer_fails("spec", AttemptFailure::TimedOut)
        .approves("code")
        .approves("spec");
    let gives_up = Story::task(reviewed("task")).gives_up("no way");
    let under_way = Story::task(reviewed("task")).works().objects("general", &[(Critical, "a.rs:1", "wrong")]);
    vec![at_once, second, gives_up, under_way]
}

/// A run whose log was read for statistics.
fn attempts(log: &[RecordedFact]) -> RunHistory {
    let mut history = RunHistory::default();
    history.extend_attempts(log);
    history
}

fn stats(filter: Filter) -> StatsCollector {
    let mut stats = StatsCollector::new(filter);
    runs().iter().for_each(|story| stats.add_run(&attempts(&story.log)));
    stats
}

#[test]
fn all_runs_in_tables() {
    insta::assert_snapshot!(text(&stats(Filter::default()).report()), @"
    4 tasks in 4 runs: 2 approved, 1 not approved, 1 unfinished
      $1.56 in all, 11700 tokens in, 1040 out
      an approved task cost $0.60, $0.78 including all other spending

    Reviews until approval (median 1.5, mean 1.5):
      1 review   1 task
      2 reviews  1 task

    Why tasks ended:
      approved              2 tasks
      stuck     task_stuck  1 task

    Reviewers:
      reviewer  raised  upheld  refuted  out of scope  open  precision   cost    time
      code           1       0        1             0     0         0%  $0.36  1m 00s
      general        0       0        0             0     0          -  $0.12     20s
      spec           1       1        0             0     0       100%  $0.48  1m 20s

    Slowest phases:
      phase      visits  median     p90  longest
      review          3  1m 10s  3m 50s   3m 50s
      implement       4     30s     30s      30s

    Roles:
      role       attempts    time   cost  tokens in  out
      review            8  2m 40s  $0.96       7200  640
      implement         4  1m 20s  $0.48       3600  320
      fix               2     20s  $0.12        900   80

    Failed attempts:
      claude  gave up    1 time
      claude  timed out  1 time
    ");
}

#[test]
fn merged_stats_equal_stats_of_all_runs() {
    let mut sum = StatsCollector::default();
    for story in runs() {
        let mut folded = signoff_term::show::RunHistory::default();
        story.log.chunks(3).for_each(|part| folded.extend_attempts(part));
        let mut collector = StatsCollector::default();
        collector.add_run(&folded);
        sum.merge(&collector);
    }
    assert_eq!(sum, stats(Filter::default()));
}

#[test]
fn the_json_of_all_runs() {
    let report = json!(stats(Filter::default()).report());
    assert_eq!(fits(&report, &schema("stats")), Ok(()));
    insta::assert_snapshot!(format!("{report:#}"), @r#"
    {
      "version": 1,
      "since": null,
      "preset": null,
      "runs": 4,
      "tasks": {
        "all": 4,
        "approved": 2,
        "accepted": 0,
        "not_approved": 1,
        "unfinished": 1
      },
      "cycles_to_approval": {
        "median": 1.5,
        "mean": 1.5,
        "distribution": [
          {
            "cycles": 1,
            "tasks": 1
          },
          {
            "cycles": 2,
            "tasks": 1
          }
        ]
      },
      "stop_reasons": [
        {
          "outcome": "approved",
          "reason": null,
          "tasks": 2
        },
        {
          "outcome": "stuck",
          "reason": "task_stuck",
          "tasks": 1
        }
      ],
      "cost": {
        "total_usd": 1.56,
        "is_estimated": false,
        "per_approved_usd": 0.6,
        "all_in_per_approved_usd": 0.78,
        "input_tokens": 11700,
        "output_tokens": 1040
      },
      "reviewers": [
        {
          "reviewer": "code",
          "attempts": 3,
          "raised": 1,
          "upheld": 0,
          "refuted": 1,
          "out_of_scope": 0,
          "open": 0,
          "pending": 0,
          "precision": 0.0,
          "duration_ms": 60000,
          "cost_usd": 0.36
        },
        {
          "reviewer": "general",
          "attempts": 1,
          "raised": 0,
          "upheld": 0,
          "refuted": 0,
          "out_of_scope": 0,
          "open": 0,
          "pending": 1,
          "precision": null,
          "duration_ms": 20000,
          "cost_usd": 0.12
        },
        {
          "reviewer": "spec",
          "attempts": 4,
          "raised": 1,
          "upheld": 1,
          "refuted": 0,
          "out_of_scope": 0,
          "open": 0,
          "pending": 0,
          "precision": 1.0,
          "duration_ms": 80000,
          "cost_usd": 0.48
        }
      ],
      "roles": [
        {
          "role": "review",
          "attempts": 8,
          "duration_ms": 160000,
          "cost_usd": 0.96,
          "input_tokens": 7200,
          "output_tokens": 640
        },
        {
          "role": "implement",
          "attempts": 4,
          "duration_ms": 80000,
          "cost_usd": 0.48,
          "input_tokens": 3600,
          "output_tokens": 320
        },
        {
          "role": "fix",
          "attempts": 2,
          "duration_ms": 20000,
          "cost_usd": 0.12,
          "input_tokens": 900,
          "output_tokens": 80
        }
      ],
      "phases": [
        {
          "phase": "review",
          "visits": 3,
          "median_ms": 70000,
          "p90_ms": 230000,
          "max_ms": 230000
        },
        {
          "phase": "implement",
          "visits": 4,
          "median_ms": 30000,
          "p90_ms": 30000,
          "max_ms": 30000
        }
      ],
      "failures": [
        {
          "agent": "claude",
          "outcome": "gave_up",
          "times": 1
        },
        {
          "agent": "claude",
          "outcome": "timed_out",
          "times": 1
        }
      ]
    }
    "#);
}

#[test]
fn filter_selects_runs() {
    let plan = Filter { preset: Some("plan".into()), ..Filter::default() };
    let report = stats(plan).report();
    assert_eq!((report.runs, report.tasks.all, report.tasks.approved), (2, 2, 2));
    let late = Filter { since: "2026-01-30T00:00:00Z".parse().ok(), ..Filter::default() };
    assert_eq!(stats(late.clone()).report().runs, 0);
    insta::assert_snapshot!(text(&stats(late).report()), @"
    No runs since 2026-01-30T00:00:00Z.
      signoff work    works the tasks
    ");
    let early = Filter { since: "2026-01-29T00:00:00Z".parse().ok(), ..Filter::default() };
    assert_eq!(stats(early).report().runs, 4);
    assert_eq!(text(&StatsCollector::default().report()), "No runs.\n  signoff work    works the tasks\n");
}

#[test]
fn convergence_of_a_task() {
    let finding = (Critical, "a.rs:1", "one");
    let two = (Critical, "b.rs:2", "two");
    let story = Story::task(reviewed("task"))
        .works()
        .objects("general", &[finding])
        .works()
        .objects("general", &[finding, two])
        .works()
        .approves("general");
    let task = crate::rows::row(29, "It", signoff_core::view::TaskStatus::Completed);
    let report = task_report(task, story.log.clone(), &id(29), Vec::new());
    let convergence: Vec<_> = report.cycles.iter().map(|cycle| cycle.convergence).collect();
    let none = Convergence::default();
    assert_eq!(
        convergence,
        [
            Convergence { new: 1, open_after: 1, ..none },
            Convergence { new: 1, carried: 1, open_after: 2, ..none },
            Convergence { fixed: 2, ..none },
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn the_numbers_of_every_log_agree(story in log()) {
        let mut stats = StatsCollector::default();
        stats.add_run(&attempts(&story.log));
        let report = stats.report();
        prop_assert_eq!(fits(&json!(report), &schema("stats")), Ok(()));
        let tasks = report.tasks;
        prop_assert_eq!(tasks.all, tasks.approved + tasks.accepted + tasks.not_approved + tasks.unfinished);
        let stopped: u64 = report.stop_reasons.iter().map(|stop| stop.tasks).sum();
        prop_assert_eq!(stopped, tasks.all - tasks.unfinished);
        let used = story.view.usage();
        prop_assert_eq!((used.input_tokens, used.output_tokens), (report.cost.input_tokens, report.cost.output_tokens));
        let by_role: u64 = report.roles.iter().map(|role| role.attempts).sum();
        prop_assert_eq!(by_role, story.view.attempts(&id(29)).len() as u64);
        for reviewer in &report.reviewers {
            prop_assert_eq!(reviewer.raised, reviewer.upheld + reviewer.refuted + reviewer.out_of_scope + reviewer.open);
        }
        for phase in &report.phases {
            prop_assert!(phase.median_ms <= phase.p90_ms && phase.p90_ms <= phase.max_ms);
        }
        let shown = text(&report);
        prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    }

    #[test]
    fn convergence_adds_up_in_every_log(story in log()) {
        let task = crate::rows::row(29, "It", signoff_core::view::TaskStatus::InProgress);
        let report = task_report(task, story.log.clone(), &id(29), Vec::new());
        let found: u32 = report.cycles.iter().map(|cycle| cycle.convergence.new).sum();
        prop_assert!(found as usize <= report.ledger.len());
        for cycle in &report.cycles {
            let round = cycle.convergence;
            prop_assert_eq!(round.open_after, round.new + round.carried + round.regressed, "{:?}", round);
        }
    }
}

/// One attempt in a phase that took this many seconds.
fn attempt(phase: &str, seconds: i64) -> AttemptRow {
    let story = Story::task(reviewed("task")).works();
    let mut attempt = history(story.log.clone()).attempts(&id(29)).remove(0);
    let from: jiff::Timestamp = "2026-01-29T10:00:00Z".parse().expect("a time");
    attempt.phase = phase.to_owned();
    attempt.started_at = from.to_string();
    attempt.ended_at = Some((from + jiff::SignedDuration::from_secs(seconds)).to_string());
    attempt
}

#[test]
fn phases_are_sorted_by_median_then_total_time() {
    let mut phases = PhaseTimes::default();
    for (phase, seconds) in
        [("once", 50), ("even", 10), ("even", 90), ("often", 50), ("often", 50), ("often", 50), ("short", 49)]
    {
        phases.add_attempts(&[attempt(phase, seconds)]);
    }
    let medians: Vec<_> = phases.all().iter().map(|phase| (phase.phase.clone(), phase.median_ms)).collect();
    let medians: Vec<_> = medians.iter().map(|(phase, median)| (phase.as_str(), *median)).collect();
    assert_eq!(medians, [("often", 50_000), ("even", 50_000), ("once", 50_000), ("short", 49_000)]);
}
