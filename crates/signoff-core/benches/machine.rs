//! Measures the speed of machine steps and the time to replay a large log.

use divan::{Bencher, black_box};
use jiff::Timestamp;
use signoff_core::group::{LoopStatus, RunEvent, RunPolicy};
use signoff_core::ids::{AttemptId, LoopId, RunId, TaskId};
use signoff_core::machine::{Event, Head, Loop, Outcome, Policy, WorkReport, replay, step};
use signoff_core::review::{Finding, Review, ReviewerKind, Severity, Usage, Verdict};
use signoff_core::similarity::assign_ids;
use signoff_core::view::RunState;
use signoff_core::wire::{Fact, Launch, LoopFact, RecordedFact, RunFact, from_json, to_json};
use signoff_core::workflow::preset;

const EVENTS: usize = 100_000;

fn main() {
    divan::main();
}

fn policy() -> Policy {
    Policy::new(preset("plan").expect("shipped"))
}

/// The events of one loop: implement, two reviews, fix, two reviews again.
fn life() -> Vec<Event> {
    let attempt = AttemptId;
    let worked =
        |id, number| Event::WorkEnded { attempt: attempt(id), report: WorkReport::Complete { head: head(number) } };
    let arrived =
        |id, name: &str, count| Event::ReviewArrived { attempt: attempt(id), review: Box::new(review(name, count)) };
    vec![
        Event::Started { head: head(0) },
        worked(1, 1),
        arrived(2, "spec", 3),
        arrived(3, "code", 4),
        worked(4, 2),
        arrived(5, "spec", 0),
        arrived(6, "code", 0),
    ]
}

fn head(number: u32) -> Head {
    Head { commit: format!("{number:040x}").as_str().into(), tree: format!("{number:039x}t").as_str().into() }
}

fn review(name: &str, count: u32) -> Review {
    let finding = |number: u32| Finding {
        id: "".into(),
        sources: vec![name.into()],
        kind: "bug".into(),
        severity: Severity::Important,
        file: Some(format!("src/part{number}.rs")),
        line: Some(number * 20 + 1),
        description: format!("{name}: the error of the call in part {number} is thrown away"),
        requirement: None,
        suggestion: Some("hand it to the caller".into()),
    };
    let mut findings: Vec<_> = (0..count).map(finding).collect();
    assign_ids(&mut findings);
    let verdict = if count > 0 { Verdict::ChangesRequested } else { Verdict::Approved };
    Review { findings, ..Review::new(name.into(), ReviewerKind::General, verdict) }
}

/// The log of a large run with many loops.
fn log() -> Vec<RecordedFact> {
    let policy = policy();
    let run_policy = RunPolicy::new(&policy.workflow, 4);
    let mut facts = vec![Fact::Run(RunFact::Opened { policy: run_policy, workflow: Box::new(policy) })];
    let ids: Vec<_> = (0..EVENTS / 25).map(|number| LoopId::new(format!("task-{number}"))).collect();
    facts.push(Fact::Run(RunFact::Transitioned(RunEvent::Started)));
    let groups = ids.iter().map(|id| vec![id.clone()]).collect();
    facts.push(Fact::Run(RunFact::Transitioned(RunEvent::GroupsPlanned { groups })));
    for (number, id) in (1..).zip(&ids) {
        of_loop(&mut facts, id, number);
    }
    let at = Timestamp::UNIX_EPOCH;
    let recorded = |(seq, fact)| RecordedFact { run: RunId(1), seq, at, fact };
    (1..).zip(facts).map(recorded).take(EVENTS).collect()
}

fn of_loop(facts: &mut Vec<Fact>, id: &LoopId, number: u64) {
    let moved = |status| Fact::Run(RunFact::Transitioned(RunEvent::LoopStatusChanged { loop_id: id.clone(), status }));
    let mut push = |fact| facts.push(Fact::Loop(id.clone(), fact));
    let (title, branch) = (format!("task {number}"), format!("signoff/task-{number}"));
    push(LoopFact::Added { task: TaskId(number), title, branch });
    for event in life() {
        let attempt = event.ends_attempt().unwrap_or(AttemptId(1));
        push(LoopFact::AttemptStarted { attempt, launch: Launch { agent: "claude".to_owned(), ..Launch::default() } });
        push(LoopFact::Used { attempt, usage: Usage { cost_micro_usd: 12_000, ..Usage::default() } });
        push(LoopFact::Transitioned(event));
    }
    push(LoopFact::AgentOutput { attempt: AttemptId(6), line: "the code is fine".into() });
    facts.push(moved(LoopStatus::Active));
    facts.push(moved(LoopStatus::Ended(Outcome::Approved { commit: head(2).commit })));
}

#[divan::bench]
fn one_life_by_steps(bencher: Bencher<'_, '_>) {
    let policy = policy();
    let events = life();
    bencher.counter(events.len()).with_inputs(|| events.clone()).bench_values(|events| {
        events.into_iter().fold(Loop::default(), |machine, event| step(machine, event, &policy).0)
    });
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn replay_100_000_events(bencher: Bencher<'_, '_>) {
    let policy = policy();
    let lives: Vec<_> = (0..EVENTS / life().len()).map(|_| life()).collect();
    bencher
        .with_inputs(|| lives.clone())
        .bench_values(|lives| lives.into_iter().map(|events| replay(events, &policy)).filter(Loop::is_done).count());
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn view_of_100_000_facts(bencher: Bencher<'_, '_>) {
    let log = log();
    bencher.bench(|| RunState::from_log(black_box(&log)));
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn read_100_000_lines(bencher: Bencher<'_, '_>) {
    let lines: Vec<_> = log().iter().map(|recorded| to_json(recorded).to_string()).collect();
    bencher.bench(|| {
        let read = |line: &String| from_json(&serde_json::from_str(line).ok()?).ok();
        black_box(&lines).iter().filter_map(read).count()
    });
}

/// The cost to open a large run: parse the log and build the view.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn read_and_view_100_000_lines(bencher: Bencher<'_, '_>) {
    let lines: Vec<_> = log().iter().map(|recorded| to_json(recorded).to_string()).collect();
    bencher.bench(|| {
        let mut view = RunState::default();
        for line in black_box(&lines) {
            let value = serde_json::from_str(line).expect("JSON");
            view.replay(&from_json(&value).expect("a fact"));
        }
        view.rows().len()
    });
}
