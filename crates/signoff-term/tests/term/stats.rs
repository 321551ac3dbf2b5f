//! `signoff stats`: what all runs tell together.

use proptest::prelude::*;
use serde_json::json;
use signoff_core::ledger::{DecidedBy, Decision, State};
use signoff_core::machine::{Event, Failure};
use signoff_core::review::Severity::{Critical, Important};
use signoff_term::stats::{Convergence, Filter, Stats, text};

use crate::fits::{fits, schema};
use crate::laws::log;
use crate::story::{Story, finding, id, reviewed};

/// One task approved at once, one at the second review with a finding refuted, one that failed, one under way.
fn runs() -> Vec<Story> {
    let at_once = Story::task(reviewed("plan")).works().approves("spec").approves("code");
    let race = finding("code", Important, "b.rs:7", "two logins race").id;
    let by = DecidedBy::Person("ann".into());
    let decision = Decision { state: State::Refuted, by, commit: None, evidence: "there is a lock".into() };
    let second = Story::task(reviewed("plan"))
        .works()
        .objects("spec", &[(Critical, "a.rs:1", "missing input validation")])
        .objects("code", &[(Important, "b.rs:7", "two logins race")])
        .then(Event::FindingDecided { finding: race, decision })
        .works()
        .reviewer_fails("spec", Failure::TimedOut)
        .approves("code")
        .approves("spec");
    let gives_up = Story::task(reviewed("task")).gives_up("no way");
    let under_way =
        Story::task(reviewed("task")).works().objects("general", &[(Critical, "a.rs:1", "wrong")]);
    vec![at_once, second, gives_up, under_way]
}

fn stats(filter: Filter) -> Stats {
    let mut stats = Stats::new(filter);
    runs().iter().for_each(|story| stats.take(&story.log));
    stats
}

#[test]
fn all_runs_in_tables() {
    insta::assert_snapshot!(text(&stats(Filter::default()).report()), @"");
}

#[test]
fn the_json_of_all_runs() {
    let report = json!(stats(Filter::default()).report());
    assert_eq!(fits(&report, &schema("stats")), Ok(()));
    insta::assert_snapshot!(format!("{report:#}"), @"");
}

#[test]
fn only_what_is_asked_for_counts() {
    let plan = Filter { preset: Some("plan".into()), ..Filter::default() };
    let report = stats(plan).report();
    assert_eq!((report.runs, report.tasks.all, report.tasks.approved), (2, 2, 2));
    let late = Filter { since: "2026-01-30T00:00:00Z".parse().ok(), ..Filter::default() };
    assert_eq!(stats(late.clone()).report().runs, 0);
    insta::assert_snapshot!(text(&stats(late).report()), @"");
    let early = Filter { since: "2026-01-29T00:00:00Z".parse().ok(), ..Filter::default() };
    assert_eq!(stats(early).report().runs, 4);
    assert_eq!(text(&Stats::default().report()), "No runs.\n  signoff work    works the tasks\n");
}

#[test]
fn how_a_task_converges() {
    let one = (Critical, "a.rs:1", "one");
    let two = (Critical, "b.rs:2", "two");
    let story = Story::task(reviewed("task"))
        .works()
        .objects("general", &[one])
        .works()
        .objects("general", &[one, two])
        .works()
        .approves("general");
    let task = crate::rows::row(29, "It", signoff_core::view::Status::Completed);
    let report = signoff_term::show::Report::of(task, &story.log, &id(29), Vec::new());
    let told: Vec<_> = report.cycles.iter().map(|cycle| cycle.convergence).collect();
    let none = Convergence::default();
    assert_eq!(
        told,
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
        let mut stats = Stats::default();
        stats.take(&story.log);
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
        for one in &report.reviewers {
            prop_assert_eq!(one.raised, one.upheld + one.refuted + one.out_of_scope + one.open);
        }
        for phase in &report.phases {
            prop_assert!(phase.median_ms <= phase.p90_ms && phase.p90_ms <= phase.max_ms);
        }
        let shown = text(&report);
        prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    }

    #[test]
    fn convergence_adds_up_in_every_log(story in log()) {
        let task = crate::rows::row(29, "It", signoff_core::view::Status::InProgress);
        let report = signoff_term::show::Report::of(task, &story.log, &id(29), Vec::new());
        let found: u32 = report.cycles.iter().map(|cycle| cycle.convergence.new).sum();
        prop_assert!(found as usize <= report.ledger.len());
        for cycle in &report.cycles {
            let round = cycle.convergence;
            prop_assert_eq!(round.open_after, round.new + round.carried + round.regressed, "{:?}", round);
        }
    }
}
