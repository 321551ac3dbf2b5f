//! The tables that users query with SQL.

use signoff_core::group::{RunEvent, RunStageKind};
use signoff_core::ids::{AttemptId, QuestionId, TaskId};
use signoff_core::ledger::{DecidedBy, FindingDecision, FindingState};
use signoff_core::machine::{Choice, Event};
use signoff_core::review::Verdict;
use signoff_core::wire::{Fact, LoopFact};
use signoff_store::{Lease, SqliteStore, Store};

use crate::conformance::make;
use crate::sqlite::fixture::StoreFixture;

fn begin(store: &SqliteStore) -> Lease {
    store.add_tasks(make::at(1), &[make::task("Add login")]).expect("added");
    let lease = store.open_run(make::at(2)).expect("a run");
    let facts = [
        make::opened("plan"),
        make::run(RunEvent::Started),
        make::taken("A", TaskId(1)),
        make::loop_fact("A", LoopFact::WorkspaceCreated { base: "c0".into(), worktree: ".signoff/worktrees/1".into() }),
        make::started("A"),
    ];
    store.append(&lease, make::at(3), &facts).expect("appended");
    lease
}

fn append(store: &SqliteStore, lease: &Lease, second: i64, facts: &[Fact]) {
    store.append(lease, make::at(second), facts).expect("appended");
    assert_eq!(store.check().expect("checked"), [""; 0]);
}

#[test]
fn reviews_and_their_issues_follow_the_ledger() {
    let fixture = StoreFixture::new();
    let store = fixture.open();
    let lease = begin(&store);
    let loops = "SELECT status, review_status, iteration, revision_attempts, last_review_id FROM loops";
    let issues = "SELECT loop_review_id, state, finding_id, description FROM review_issues ORDER BY id";
    let mut dumps = Vec::new();
    let mut dump_as = |what: &str| dumps.push(format!("{what}\n{}\n{}", fixture.query(loops), fixture.query(issues)));

    append(&store, &lease, 4, &[make::work_ended("A", 1, 1)]);
    dump_as("under review");
    let [launch, used] = make::attempt("A", 2, 7);
    let spec = make::review("spec", Verdict::ChangesRequested, &["the error is thrown away"]);
    append(&store, &lease, 5, &[launch, used, make::reviewed("A", 2, spec.clone())]);
    dump_as("one of two is in");
    let code = make::review("code", Verdict::ChangesRequested, &["errors are thrown away here", "no test"]);
    append(&store, &lease, 6, &[make::reviewed("A", 3, code)]);
    dump_as("both are in");
    append(&store, &lease, 7, &[make::work_ended("A", 4, 2)]);
    let silent = |name| make::review(name, Verdict::Approved, &[]);
    append(&store, &lease, 8, &[make::reviewed("A", 5, silent("code")), make::reviewed("A", 6, silent("spec"))]);
    dump_as("both approve");
    insta::assert_snapshot!(dumps.join("\n\n"), @r"
        under review
        running | in_progress | 1 | 0 | -


        one of two is in
        running | in_progress | 1 | 0 | 1-9
        1-9 | - | f-6d0fb4abc3 | the error is thrown away

        both are in
        needs_revision | failed | 2 | 1 | 1-10
        1-10 | open | f-6d0fb4abc3 | errors are thrown away here
        1-10 | open | f-85dc4fddb8 | no test
        1-9 | open | f-6d0fb4abc3 | the error is thrown away

        both approve
        completed | passed | 2 | 1 | 1-13
        1-10 | fixed | f-6d0fb4abc3 | errors are thrown away here
        1-10 | fixed | f-85dc4fddb8 | no test
        1-9 | fixed | f-6d0fb4abc3 | the error is thrown away
        ");
    insta::assert_snapshot!(fixture.query(
        "SELECT id, reviewer, task_id, passed, verdict, cycle, commit_id, reviewed_at, cost_usd FROM loop_reviews"
    ), @r"
        1-10 | code | 1 | 0 | changes_requested | 1 | c1 | 1970-01-01T00:00:06Z | 0.00
        1-12 | code | 1 | 1 | approved | 2 | c2 | 1970-01-01T00:00:08Z | 0.00
        1-13 | spec | 1 | 1 | approved | 2 | c2 | 1970-01-01T00:00:08Z | 0.00
        1-9 | spec | 1 | 0 | changes_requested | 1 | c1 | 1970-01-01T00:00:05Z | 0.07
        ");
    insta::assert_snapshot!(fixture.query("SELECT * FROM tasks"), @"1 | 1 | A | Add login | implement | completed | approved | APPROVED | - | 1 | 2 | 3 | signoff/task-1 | c0 | .signoff/worktrees/1 | - | 2 | 0 | 0.07 | 100 | 10 | [] | - | 1970-01-01T00:00:01Z | 1970-01-01T00:00:03Z | 1970-01-01T00:00:08Z | c2 | - | - | 0 | approved | - | -");
}

/// A database of an older version lacks columns; they are filled from the log.
#[test]
fn a_new_column_is_filled_from_the_log() {
    let fixture = StoreFixture::new();
    let store = fixture.open();
    let lease = begin(&store);
    append(&store, &lease, 4, &[make::work_ended("A", 1, 1)]);
    let approves = |name| make::review(name, Verdict::Approved, &[]);
    let reviews = [make::reviewed("A", 2, approves("spec")), make::reviewed("A", 3, approves("code"))];
    append(&store, &lease, 5, &reviews);
    drop((lease, store));
    let of_runs = ["stage", "group_number", "group_count", "branch", "specification", "cost_is_estimated"];
    let of_runs: String = of_runs.map(|column| format!("ALTER TABLE runs DROP COLUMN {column};")).concat();
    let of_tasks =
        ["approved_commit", "tracker", "tracker_id", "cost_is_estimated", "state", "landed_commit", "run_commit"];
    let of_tasks: String = of_tasks.map(|column| format!("ALTER TABLE tasks DROP COLUMN {column};")).concat();
    let of_loops: String =
        ["loops", "loop_reviews"].map(|table| format!("ALTER TABLE {table} DROP COLUMN cost_is_estimated;")).concat();
    let older = format!(
        "DROP INDEX tasks_by_tracker; DROP INDEX events_by_loop; DROP TABLE receipts; \
         {of_tasks} {of_runs} {of_loops} PRAGMA user_version = 1"
    );
    fixture.sql().execute_batch(&older).unwrap();
    let store = fixture.open();
    assert_eq!(store.last_run().unwrap().unwrap().stage, RunStageKind::Preparing);
    assert_eq!(store.task(TaskId(1)).unwrap().unwrap().approved_commit.as_deref(), Some("c1"));
    assert_eq!(store.check().unwrap(), [""; 0]);
}

#[test]
fn decisions_of_the_user_are_in_the_tables() {
    let fixture = StoreFixture::new();
    let store = fixture.open();
    let lease = begin(&store);
    let wrong = make::review("spec", Verdict::ChangesRequested, &["the error is thrown away"]);
    let finding = wrong.findings[0].id.clone();
    let code = make::review("code", Verdict::NeedsDiscussion, &[]);
    append(
        &store,
        &lease,
        4,
        &[make::work_ended("A", 1, 1), make::reviewed("A", 2, wrong), make::reviewed("A", 3, code)],
    );
    let by = DecidedBy::Person("ann".into());
    let decision = FindingDecision { state: FindingState::Refuted, by, commit: None, evidence: "it is logged".into() };
    append(&store, &lease, 5, &[make::transitioned("A", Event::FindingDecided { finding, decision })]);
    insta::assert_snapshot!(fixture.query("SELECT state FROM review_issues UNION ALL SELECT state FROM findings"), @r"
        refuted
        refuted
        ");

    let (question, by) = (QuestionId(1), "ann".to_owned());
    let open = "SELECT id, task_id, text, choices, closed_at, answer, answered_by FROM questions";
    insta::assert_snapshot!(fixture.query(open), @r#"1 | 1 | code requests a discussion. Fix, proceed, or stop? | ["fix","proceed","stop","restart"] | - | - | -"#);
    append(
        &store,
        &lease,
        6,
        &[make::transitioned("A", Event::PersonAnswered { question, choice: Choice::Proceed, by })],
    );
    insta::assert_snapshot!(fixture.query(open), @r#"1 | 1 | code requests a discussion. Fix, proceed, or stop? | ["fix","proceed","stop","restart"] | 1970-01-01T00:00:06Z | proceed | ann"#);
}

#[test]
fn checkpoints_and_late_reviews_belong_to_no_task() {
    let fixture = StoreFixture::new();
    let store = fixture.open();
    let lease = begin(&store);
    let review = make::review("code", Verdict::ChangesRequested, &["going in circles"]);
    let late = Event::ReviewArrived { attempt: AttemptId(99), review: review.clone() };
    let facts = [make::loop_fact("A", LoopFact::CheckpointReviewed { review }), make::transitioned("A", late)];
    append(&store, &lease, 4, &facts);
    insta::assert_snapshot!(
        fixture.query("SELECT id, loop_id, task_id, passed, reviewer FROM loop_reviews"), @"1-6 | A | - | 0 | code"
    );
    insta::assert_snapshot!(fixture.query("SELECT id, loop_id, task_id, state, type FROM review_issues"), @"1-6-1 | A | - | - | bug");
}

#[test]
fn a_rebuild_gives_identical_tables() {
    let fixture = StoreFixture::new();
    let store = fixture.open();
    let lease = begin(&store);
    let wants = make::review("spec", Verdict::ChangesRequested, &["the error is thrown away"]);
    let code = make::review("code", Verdict::NeedsDiscussion, &[]);
    append(&store, &lease, 4, &[make::work_ended("A", 1, 1), make::reviewed("A", 2, wants)]);
    append(&store, &lease, 5, &[make::reviewed("A", 3, code)]);
    let before = fixture.dump();
    assert!(before.contains("q") && before.contains("the error is thrown away"));
    store.rebuild().expect("rebuilt");
    assert_eq!(fixture.dump(), before);
}
