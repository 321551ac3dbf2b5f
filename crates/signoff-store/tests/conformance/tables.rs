//! The tables while runs make progress.

use signoff_core::group::{LoopStatus, RunEvent};
use signoff_core::ids::{AttemptId, QuestionId, RunId, TaskId};
use signoff_core::machine::{AttemptFailure, Choice, Event, FinalVerdict, Outcome, WorkReport};
use signoff_core::review::Verdict;
use signoff_core::view::RunStatus;
use signoff_core::wire::{Fact, LoopFact};
use signoff_store::{Lease, QuestionRef, Store};

use crate::conformance::factory::StoreFactory;
use crate::conformance::make;

/// Opens a run with new tasks, one loop each.
fn working(store: &dyn Store, preset: &str, tasks: u64) -> Lease {
    let new: Vec<_> = (0..tasks).map(|number| make::task(&format!("Task {number}"))).collect();
    let ids = store.add_tasks(make::at(1), &new).expect("added");
    let lease = store.open_run(make::at(2)).expect("a run");
    let mut facts = vec![make::opened(preset), make::run(RunEvent::Started)];
    for id in ids {
        let name = format!("L{id}");
        facts.push(make::taken(&name, id));
        let (base, worktree) = ("c0".into(), format!("worktrees/{id}"));
        facts.push(make::loop_fact(&name, LoopFact::WorkspaceCreated { base, worktree }));
        facts.push(make::started(&name));
    }
    store.append(&lease, make::at(3), &facts).expect("appended");
    lease
}

fn line(store: &dyn Store, task: u64) -> String {
    let row = store.task(TaskId(task)).expect("a row").expect("a task");
    let word = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    format!(
        "{} {}, cycle {}/{}, {} open, ${:.2}, {} {} {}",
        row.status.into_str(),
        word(row.phase),
        row.review_cycle,
        row.max_review_cycles.map_or("-".into(), |most| most.to_string()),
        row.open_findings,
        row.cost_usd,
        word(row.outcome.map(|outcome| outcome.into_str().to_owned())),
        word(row.final_verdict.map(|verdict| verdict.into_str().to_owned())),
        word(row.ended_at),
    )
}

pub fn a_task_from_queue_to_sign_off(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    let lease = working(&*store, "task", 1);
    let mut lines = vec![line(&*store, 1)];
    let bad = make::review("reviewer", Verdict::ChangesRequested, &["the error is thrown away"]);
    let good = make::review("reviewer", Verdict::Approved, &[]);
    let [launch, used] = make::attempt("L1", 1, 25);
    let steps: [&[Fact]; 4] = [
        &[launch, used, make::work_ended("L1", 1, 1)],
        &[make::reviewed("L1", 2, bad)],
        &[make::work_ended("L1", 3, 2)],
        &[make::reviewed("L1", 4, good)],
    ];
    for (second, facts) in (10..).zip(steps) {
        store.append(&lease, make::at(second), facts).expect("appended");
        assert_eq!(store.check().expect("checked"), [""; 0]);
        lines.push(line(&*store, 1));
    }
    insta::allow_duplicates! { insta::assert_snapshot!(lines.join("\n"), @r"
        in_progress implement, cycle 0/3, 0 open, $0.00, - - -
        in_progress review, cycle 1/3, 0 open, $0.25, - - -
        in_progress review, cycle 1/3, 1 open, $0.25, - - -
        in_progress review, cycle 2/3, 1 open, $0.25, - - -
        completed -, cycle 2/3, 0 open, $0.25, approved APPROVED 1970-01-01T00:00:13Z
        "); }
}

/// Makes the agent of a loop fail, which asks the user a question.
fn ask(store: &dyn Store, lease: &Lease, id: &str) {
    let failed = Event::AttemptFailed { attempt: AttemptId(1), failure: AttemptFailure::TimedOut };
    store.append(lease, make::at(20), &[make::transitioned(id, failed)]).expect("appended");
}

pub fn questions_are_numbered_across_runs(factory: &dyn StoreFactory) {
    let (one, other) = (factory.open_store(), factory.open_store());
    let (first, second) = (working(&*one, "plan", 2), working(&*other, "plan", 1));
    for (store, lease, id) in [(&one, &first, "L2"), (&other, &second, "L3"), (&one, &first, "L1")] {
        ask(&**store, lease, id);
    }
    let open = |store: &dyn Store| -> Vec<String> {
        let rows = store.questions().expect("questions").into_iter();
        rows.map(|row| format!("{} run {} task {:?}: {}", row.id, row.run_id, row.task_id, row.choices.join(" ")))
            .collect()
    };
    insta::allow_duplicates! { insta::assert_snapshot!(open(&*one).join("\n"), @r"
        q1 run 1 task Some(2): retry stop
        q2 run 2 task Some(3): retry stop
        q3 run 1 task Some(1): retry stop
        "); }
    let place = QuestionRef { run: RunId(2), loop_id: "L3".into(), question: QuestionId(1), open: true };
    assert_eq!(one.question(2).expect("query"), Some(place.clone()));
    assert_eq!(one.question(9).expect("query"), None);

    let answered = Event::PersonAnswered { question: QuestionId(1), choice: Choice::Stop, by: "ann".into() };
    other.append(&second, make::at(30), &[make::transitioned("L3", answered)]).expect("appended");
    assert_eq!(one.questions().expect("questions").len(), 2);
    assert_eq!(one.question(2).expect("query"), Some(QuestionRef { open: false, ..place }));

    let before = open(&*one);
    one.rebuild().expect("rebuilt");
    assert_eq!(open(&*one), before, "the printed numbers stay");
}

pub fn findings_are_found_by_id_prefix(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    let lease = working(&*store, "task", 2);
    for (id, words) in [("L1", "the error is thrown away"), ("L2", "the file stays open")] {
        let bad = make::review("reviewer", Verdict::ChangesRequested, &[words]);
        store.append(&lease, make::at(9), &[make::work_ended(id, 1, 1), make::reviewed(id, 2, bad)]).expect("appended");
    }
    let all = store.findings("f-").expect("findings");
    assert_eq!(all.len(), 2);
    let one = store.findings(&all[0].finding.as_str()[..6]).expect("findings");
    assert_eq!(one, all[..1]);
    assert_eq!(store.findings("").expect("findings"), all);
    assert_eq!(store.findings("%").expect("findings"), []);
    let tasks: Vec<_> = all.iter().map(|place| (place.run, place.task)).collect();
    assert!(tasks.contains(&(RunId(1), Some(TaskId(1)))) && tasks.contains(&(RunId(1), Some(TaskId(2)))));
}

pub fn runs_are_open_until_all_work_is_done(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    let lease = working(&*store, "task", 1);
    let words = |store: &dyn Store| -> Vec<String> {
        let rows = store.open_runs().expect("runs").into_iter();
        rows.map(|row| format!("{} {} {}", row.id, row.preset, row.status.into_str())).collect()
    };
    assert_eq!(words(&*store), ["1 task running"]);
    let cancelled = make::run(RunEvent::Cancelled { by: "ann".into() });
    let groups = vec![vec!["L1".into()]];
    store.append(&lease, make::at(5), &[make::run(RunEvent::GroupsPlanned { groups }), cancelled]).expect("appended");
    assert_eq!(words(&*store), ["1 task cancelled"], "its loop is still open");

    let status = LoopStatus::Ended(Outcome::Cancelled);
    let off = [
        make::transitioned("L1", Event::Cancelled { by: "ann".into() }),
        make::run(RunEvent::LoopStatusChanged { loop_id: "L1".into(), status }),
    ];
    store.append(&lease, make::at(6), &off).expect("appended");
    assert_eq!(words(&*store), [""; 0]);
    let row = store.run(RunId(1)).expect("a row").expect("a run");
    assert_eq!((row.started_at, row.ended_at), (Some(make::at(3)), Some(make::at(5))));
    assert_eq!((row.stage.into_str(), row.group, row.groups), ("done", None, None));
    assert_eq!(store.last_run().expect("a row"), Some(row));
}

pub fn reopening_a_loop_reopens_its_run(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    let lease = working(&*store, "task", 1);
    let open = || store.open_runs().expect("runs").len();
    let (attempt, head) = (AttemptId(1), make::head(1));
    let report = WorkReport::Stuck { head, reason: "no way on".into() };
    let ended = [
        make::run(RunEvent::GroupsPlanned { groups: vec![vec!["L1".into()]] }),
        make::transitioned("L1", Event::WorkEnded { attempt, report }),
        make::run(RunEvent::Cancelled { by: "ann".into() }),
    ];
    store.append(&lease, make::at(5), &ended).expect("appended");
    assert_eq!(open(), 0);
    let again = make::transitioned("L1", Event::PersonRetried { by: "ann".into() });
    store.append(&lease, make::at(7), &[again]).expect("appended");
    assert_eq!(open(), 1);
    assert_eq!(store.task(TaskId(1)).expect("a row").expect("a task").ended_at, None);
}

pub fn a_reopened_run_ends_again(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    let lease = working(&*store, "task", 1);
    let run = || {
        let row = store.run(RunId(1)).expect("a row").expect("a run");
        (row.status, row.ended_at)
    };
    let report = WorkReport::Stuck { head: make::head(1), reason: "no way on".into() };
    let status = |status| make::run(RunEvent::LoopStatusChanged { loop_id: "L1".into(), status });
    let stuck = [
        make::run(RunEvent::GroupsPlanned { groups: vec![vec!["L1".into()]] }),
        make::transitioned("L1", Event::WorkEnded { attempt: AttemptId(1), report }),
        status(LoopStatus::Ended(Outcome::Stuck)),
    ];
    store.append(&lease, make::at(5), &stuck).expect("appended");
    assert_eq!(run(), (RunStatus::Failed, Some(make::at(5))));
    let again = [make::transitioned("L1", Event::PersonRetried { by: "ann".into() }), status(LoopStatus::Active)];
    store.append(&lease, make::at(6), &again).expect("appended");
    assert_eq!(run(), (RunStatus::Running, None));
    let by = "ann".to_owned();
    let edited = Event::PersonEdited {
        verdict: FinalVerdict::Approved,
        by: by.clone(),
        reason: by.clone(),
        head: None,
        findings: Vec::new(),
    };
    let well = [make::transitioned("L1", edited), status(LoopStatus::Ended(Outcome::Accepted { by }))];
    store.append(&lease, make::at(7), &well).expect("appended");
    assert_eq!(run(), (RunStatus::Completed, Some(make::at(7))));
}

pub fn a_rebuild_changes_nothing(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    let lease = working(&*store, "plan", 3);
    ask(&*store, &lease, "L2");
    let tasks = store.tasks().expect("tasks");
    let rebuilt = store.rebuild().expect("rebuilt");
    assert_eq!((rebuilt.runs, rebuilt.facts), (1, 3 + 2 + 9 + 1));
    assert_eq!(store.tasks().expect("tasks"), tasks);
    let next = store.append(&lease, make::at(40), &[make::work_ended("L1", 1, 1)]).expect("appended");
    assert_eq!(next[0].seq, 13);
    assert_eq!(store.check().expect("checked"), [""; 0]);
}
