//! Short constructors of facts, tasks and reviews.

use jiff::{SignedDuration, Timestamp};
use signoff_core::group::{RunEvent, RunPolicy};
use signoff_core::ids::{AttemptId, LoopId, TaskId};
use signoff_core::machine::{Event, Head, Policy, WorkReport};
use signoff_core::review::{Finding, Review, ReviewerKind, Severity, Usage, Verdict};
use signoff_core::task::TaskSpec;
use signoff_core::wire::{Fact, Launch, LoopFact, RunFact};
use signoff_core::workflow::{PhaseKind, preset};
use signoff_store::NewTask;

/// The time this many seconds after the Unix epoch.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

pub fn task(title: &str) -> NewTask {
    NewTask { spec: TaskSpec::from_text(title), auto_review: true, max_review_cycles: Some(3) }
}

/// A preset with all gates enabled.
pub fn policy(name: &str) -> Policy {
    let mut workflow = preset(name).expect(name);
    for phase in &mut workflow.phases {
        if let PhaseKind::Gate(gate_policy) = &mut phase.kind {
            gate_policy.gate.enabled = true;
        }
    }
    Policy::new(workflow)
}

pub fn opened(name: &str) -> Fact {
    let workflow = policy(name);
    let policy = RunPolicy::new(&workflow.workflow, 2);
    Fact::Run(RunFact::Opened { policy, workflow: Box::new(workflow) })
}

pub fn run(event: RunEvent) -> Fact {
    Fact::Run(RunFact::Transitioned(event))
}

pub fn loop_fact(id: &str, fact: LoopFact) -> Fact {
    Fact::Loop(LoopId::from(id), fact)
}

pub fn transitioned(id: &str, event: Event) -> Fact {
    loop_fact(id, LoopFact::Transitioned(event))
}

pub fn taken(id: &str, task: TaskId) -> Fact {
    loop_fact(id, LoopFact::Added { task, title: format!("task {task}"), branch: format!("signoff/task-{task}") })
}

pub fn head(number: u64) -> Head {
    Head { commit: format!("c{number}").as_str().into(), tree: format!("t{number}").as_str().into() }
}

pub fn started(id: &str) -> Fact {
    transitioned(id, Event::Started { head: head(0) })
}

pub fn work_ended(id: &str, attempt: u64, number: u64) -> Fact {
    let report = WorkReport::Complete { head: head(number) };
    transitioned(id, Event::WorkEnded { attempt: AttemptId(attempt), report })
}

pub fn finding(reviewer: &str, description: &str) -> Finding {
    let mut finding = Finding::new(&reviewer.into(), "bug", Severity::Critical, description);
    finding.file = Some("src/a.rs".into());
    finding.line = Some(7);
    finding
}

pub fn review(reviewer: &str, verdict: Verdict, descriptions: &[&str]) -> Box<Review> {
    let mut findings: Vec<_> = descriptions.iter().map(|words| finding(reviewer, words)).collect();
    signoff_core::similarity::assign_ids(&mut findings);
    Box::new(Review { findings, ..Review::new(reviewer.into(), ReviewerKind::Code, verdict) })
}

pub fn reviewed(id: &str, attempt: u64, review: Box<Review>) -> Fact {
    transitioned(id, Event::ReviewArrived { attempt: AttemptId(attempt), review })
}

/// An attempt that was started and cost this many cents.
pub fn attempt(id: &str, number: u64, cents: u64) -> [Fact; 2] {
    let attempt = AttemptId(number);
    let usage = Usage {
        cost_micro_usd: cents * 10_000,
        input_tokens: 100,
        output_tokens: 10,
        duration_ms: 1,
        ..Usage::default()
    };
    [
        loop_fact(
            id,
            LoopFact::AttemptStarted { attempt, launch: Launch { agent: "fake".to_owned(), ..Launch::default() } },
        ),
        loop_fact(id, LoopFact::Used { attempt, usage }),
    ]
}
