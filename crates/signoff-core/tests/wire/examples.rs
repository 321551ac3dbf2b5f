//! One example of every kind of fact. A new kind does not compile without one.

use jiff::Timestamp;
use signoff_core::agent_output::{AgentError, AgentErrorKind};
use signoff_core::group::{LoopStatus, RunEvent, RunPolicy};
use signoff_core::ids::{AttemptId, QuestionId, RunId, TaskId};
use signoff_core::ledger::{ClaimKind, DecidedBy, FindingDecision, FindingState, FixClaim, Ledger, Round};
use signoff_core::machine::{
    AttemptFailure, AttemptLoss, CheckReport, Choice, EarlierFindings, Event, FinalVerdict, GateEnd, GateRecord, Head,
    ImportedProgress, LandingReport, LimitPlan, NextAgent, Outcome, PauseReason, Policy, Position, Reason, WorkReport,
};
use signoff_core::review::{Finding, Review, ReviewerKind, Severity, Usage, Verdict};
use signoff_core::sandbox;
use signoff_core::source::planner::PlannerAnswer;
use signoff_core::task::TaskSpec;
use signoff_core::wire::{Fact, Launch, LoopFact, RecordedFact, RunFact, TaskFact};
use signoff_core::workflow::preset;
use strum::VariantArray as _;

pub const AT: Timestamp = Timestamp::UNIX_EPOCH;
const ATTEMPT: AttemptId = AttemptId(4);

pub fn recorded(fact: Fact) -> RecordedFact {
    RecordedFact { run: RunId(3), seq: 17, at: AT, fact }
}

pub fn head() -> Head {
    Head { commit: "c1".into(), tree: "t1".into() }
}

pub fn finding() -> Finding {
    Finding {
        id: "f1".into(),
        sources: vec!["code".into()],
        kind: "bug".into(),
        severity: Severity::Important,
        file: Some("src/a.rs".into()),
        line: Some(7),
        description: "the error is thrown away".into(),
        requirement: None,
        suggestion: None,
    }
}

/// The ledger of an earlier task on the branch.
fn left() -> Ledger {
    let (mut ledger, commit) = (Ledger::default(), Some("c1".into()));
    let round = Round { pass: 1, phase: 1, item: None, cycle: 2, commit, checkpoint: None, task: None };
    let review = Review::new("code".into(), ReviewerKind::Code, Verdict::ChangesRequested);
    ledger.record(&round, &[Review { findings: vec![finding()], ..review }]);
    Ledger::from_earlier_tasks([(TaskId(1), &ledger)])
}

fn by() -> String {
    "ann".to_owned()
}

/// The example after this one. The match must name every kind.
fn after(event: &Event) -> Option<Event> {
    let attempt = ATTEMPT;
    Some(match event {
        Event::Started { .. } => Event::BaseSet { tree: "t0".into() },
        Event::BaseSet { .. } => Event::FindingsInherited { ledger: left() },
        Event::FindingsInherited { .. } => Event::Imported {
            head: head(),
            position: Position { pass: 2, phase: 3, item: 0 },
            progress: ImportedProgress {
                fixes: 1,
                findings: vec![finding()],
                earlier: vec![EarlierFindings { pass: 1, phase: 3, findings: vec![finding()] }],
                gates: vec![GateRecord {
                    phase: 1,
                    item: 0,
                    end: GateEnd::LeftFindings { reason: Reason::CyclesExhausted },
                }],
            },
        },
        Event::Imported { .. } => Event::ItemsPlanned { count: 2 },
        Event::ItemsPlanned { .. } => Event::WorkEnded { attempt, report: WorkReport::Complete { head: head() } },
        Event::WorkEnded { .. } => {
            let claim = FixClaim { finding: "f1".into(), kind: ClaimKind::Refuted, evidence: "a macro uses it".into() };
            Event::FindingsClaimed { attempt, commit: "c1".into(), claims: vec![claim] }
        }
        Event::FindingsClaimed { .. } => {
            Event::CheckEnded { attempt, report: CheckReport::Failed { findings: vec![finding()] } }
        }
        Event::CheckEnded { .. } => {
            let review = Review::new("code".into(), ReviewerKind::Code, Verdict::ApprovedWithMinor);
            Event::ReviewArrived { attempt, review: Box::new(review) }
        }
        Event::ReviewArrived { .. } => Event::FixesCombined { attempt, head: head() },
        Event::FixesCombined { .. } => Event::FixesOverlapped { attempt, kept: vec![0, 2], head: head() },
        Event::FixesOverlapped { .. } => {
            Event::LandingEnded { attempt, report: LandingReport::Landed { commit: "m".into() } }
        }
        Event::LandingEnded { .. } => Event::AttemptFailed { attempt, failure: AttemptFailure::Exit { code: 1 } },
        Event::AttemptFailed { .. } => Event::AttemptLost { attempt, loss: AttemptLoss::Crashed },
        Event::AttemptLost { .. } => {
            Event::RateLimited { attempt, plan: LimitPlan::WaitUntil(AT), error: None, next_agent: None }
        }
        Event::RateLimited { .. } => Event::BudgetReached,
        Event::BudgetReached => Event::BudgetRefused { attempt },
        Event::BudgetRefused { .. } => Event::Resumed { reason: PauseReason::RateLimit { until: AT } },
        Event::Resumed { .. } => Event::CheckpointBegan { number: 2 },
        Event::CheckpointBegan { .. } => Event::CheckpointEnded { findings: Vec::new(), number: Some(2) },
        Event::CheckpointEnded { .. } => Event::LandingGranted,
        Event::LandingGranted => Event::HeadMoved { head: head() },
        Event::HeadMoved { .. } => {
            Event::PersonAnswered { question: QuestionId(1), choice: Choice::Continue, by: by() }
        }
        Event::PersonAnswered { .. } => Event::PersonRetried { by: by() },
        Event::PersonRetried { .. } => Event::PersonEdited {
            verdict: FinalVerdict::MaxCyclesReached,
            by: by(),
            reason: "enough".into(),
            head: None,
            findings: Vec::new(),
        },
        Event::PersonEdited { .. } => Event::FindingDecided {
            finding: "f1".into(),
            decision: FindingDecision {
                state: FindingState::OutOfScope,
                by: DecidedBy::Person(by()),
                commit: Some("c1".into()),
                evidence: "not asked for".into(),
            },
        },
        Event::FindingDecided { .. } => Event::Cancelled { by: by() },
        Event::Cancelled { .. } => return None,
    })
}

fn after_run(event: &RunEvent) -> Option<RunEvent> {
    let loop_id = || "a".into();
    Some(match event {
        RunEvent::Started => RunEvent::PreparationEnded { outcome: Outcome::CompletedWithIssues },
        RunEvent::PreparationEnded { .. } => {
            RunEvent::GroupsPlanned { groups: vec![vec!["a".into(), "b".into()], vec!["c".into()]] }
        }
        RunEvent::GroupsPlanned { .. } => RunEvent::TaskPicked { loop_id: loop_id() },
        RunEvent::TaskPicked { .. } => RunEvent::NothingToPick,
        RunEvent::NothingToPick => RunEvent::PickingStopped,
        RunEvent::PickingStopped => RunEvent::TaskClosed { loop_id: loop_id() },
        RunEvent::TaskClosed { .. } => RunEvent::LoopStatusChanged {
            loop_id: loop_id(),
            status: LoopStatus::Ended(Outcome::Approved { commit: "c1".into() }),
        },
        RunEvent::LoopStatusChanged { .. } => RunEvent::AttemptSpent { since_checkpoint: [(loop_id(), 5)].into() },
        RunEvent::AttemptSpent { .. } => RunEvent::CheckpointReviewed { loop_id: loop_id() },
        RunEvent::CheckpointReviewed { .. } => RunEvent::FinalReviewEnded { outcome: Outcome::Accepted { by: by() } },
        RunEvent::FinalReviewEnded { .. } => RunEvent::Landed,
        RunEvent::Landed => RunEvent::Cancelled { by: by() },
        RunEvent::Cancelled { .. } => return None,
    })
}

fn after_loop_fact(fact: &LoopFact) -> Option<LoopFact> {
    let attempt = ATTEMPT;
    Some(match fact {
        LoopFact::Added { .. } => {
            let workflow = signoff_core::workflow::preset("task").expect("shipped");
            LoopFact::PolicySet { policy: Box::new(Policy::new(workflow)) }
        }
        LoopFact::PolicySet { .. } => {
            let review = Review::new("code".into(), ReviewerKind::Code, Verdict::ChangesRequested);
            LoopFact::CheckpointReviewed { review: Box::new(review) }
        }
        LoopFact::CheckpointReviewed { .. } => {
            LoopFact::WorkspaceCreated { base: head().commit, worktree: ".signoff/worktrees/task-29".into() }
        }
        LoopFact::WorkspaceCreated { .. } => LoopFact::AttemptStarted {
            attempt,
            launch: Launch {
                sandbox: Some(sandbox::SandboxBackend::Landlock),
                agent: "claude".to_owned(),
                ..Launch::default()
            },
        },
        LoopFact::AttemptStarted { .. } => {
            let usage =
                Usage { cost_micro_usd: 1, input_tokens: 2, output_tokens: 3, duration_ms: 4, ..Usage::default() };
            LoopFact::Used { attempt, usage }
        }
        LoopFact::Used { .. } => LoopFact::Session { attempt, session: "0195-a1".into() },
        LoopFact::Session { .. } => LoopFact::AgentOutput { attempt, line: "Reading src/a.rs".into() },
        LoopFact::AgentOutput { .. } => LoopFact::Noted { attempt, note: "your checkout changed".into() },
        LoopFact::Noted { .. } => {
            LoopFact::Answered { attempt, answer: PlannerAnswer::Groups(vec![vec!["a".into(), "b".into()]]) }
        }
        LoopFact::Answered { .. } => LoopFact::Transitioned(Event::Started { head: head() }),
        LoopFact::Transitioned(event) => LoopFact::Transitioned(after(event)?),
    })
}

fn after_run_fact(fact: &RunFact) -> Option<RunFact> {
    Some(match fact {
        RunFact::Opened { .. } => RunFact::Specified { name: "SPEC.md".into(), text: "Two endpoints.\n".into() },
        RunFact::Specified { .. } => RunFact::Transitioned(RunEvent::Started),
        RunFact::Transitioned(event) => RunFact::Transitioned(after_run(event)?),
    })
}

/// Every kind of fact, once.
pub fn all() -> Vec<RecordedFact> {
    let workflow = preset("loops").expect("shipped");
    let policy = RunPolicy::new(&workflow, 2);
    let opened = RunFact::Opened { policy, workflow: Box::new(Policy::new(workflow)) };
    let title = "Parse the header".to_owned();
    let added = LoopFact::Added { task: TaskId(29), title, branch: "signoff/task-29".into() };
    let of_run = std::iter::successors(Some(opened), after_run_fact).map(Fact::Run);
    let of_loop = std::iter::successors(Some(added), after_loop_fact).map(|fact| Fact::Loop("a".into(), fact));
    of_run.chain(of_loop).chain(of_task()).map(recorded).collect()
}

fn of_task() -> impl Iterator<Item = Fact> {
    let spec = Box::new(TaskSpec::from_text("Parse the header"));
    let added = TaskFact::Added { spec, auto_review: true, max_review_cycles: Some(3) };
    [added, TaskFact::Withdrawn { by: by() }].into_iter().map(|fact| Fact::Task(TaskId(29), fact))
}

fn overload() -> AgentError {
    AgentError::new(AgentErrorKind::Overloaded, "529 Overloaded")
}

/// The other values that an event can contain.
pub fn inner() -> Vec<RecordedFact> {
    let attempt = ATTEMPT;
    let failures = [
        AttemptFailure::Signal { number: 9 },
        AttemptFailure::TimedOut,
        AttemptFailure::Silent,
        AttemptFailure::NotStarted { message: "no such file".into() },
        AttemptFailure::RateLimited { times: 21, error: None, too_long: false },
        AttemptFailure::RateLimited { times: 1, error: Some(overload()), too_long: true },
    ];
    let mut events: Vec<_> = failures.into_iter().map(|failure| Event::AttemptFailed { attempt, failure }).collect();
    events.extend([
        Event::WorkEnded { attempt, report: WorkReport::Incomplete { head: head() } },
        Event::WorkEnded { attempt, report: WorkReport::Stuck { head: head(), reason: "no way".into() } },
        Event::CheckEnded { attempt, report: CheckReport::Passed },
        Event::CheckEnded { attempt, report: CheckReport::NothingToCheck },
        Event::LandingEnded { attempt, report: LandingReport::SentBack { head: head(), findings: vec![finding()] } },
        Event::AttemptLost { attempt, loss: AttemptLoss::Interrupted },
        Event::AttemptLost { attempt, loss: AttemptLoss::SessionGone },
        Event::RateLimited {
            attempt,
            plan: LimitPlan::FallBack,
            error: Some(overload()),
            next_agent: Some(NextAgent { available_at: Some(AT), next: 1 }),
        },
        Event::Resumed { reason: PauseReason::Budget },
        Event::Resumed { reason: PauseReason::Checkpoint },
    ]);
    events.extend(FinalVerdict::ALL.iter().copied().map(|verdict| Event::PersonEdited {
        verdict,
        by: by(),
        reason: by(),
        head: None,
        findings: Vec::new(),
    }));
    let answered = |choice| Event::PersonAnswered { question: QuestionId(1), choice, by: by() };
    events.extend(Choice::VARIANTS.iter().copied().map(answered));
    let standings = [
        LoopStatus::Queued,
        LoopStatus::Active,
        LoopStatus::AtCheckpoint,
        LoopStatus::Waiting,
        LoopStatus::Ready,
        LoopStatus::Landing,
        LoopStatus::Ended(Outcome::Unreviewed),
        LoopStatus::Ended(Outcome::Exhausted),
        LoopStatus::Ended(Outcome::Discussion),
        LoopStatus::Ended(Outcome::Failed),
        LoopStatus::Ended(Outcome::Stuck),
        LoopStatus::Ended(Outcome::Cancelled),
    ];
    let moved = |status| RunFact::Transitioned(RunEvent::LoopStatusChanged { loop_id: "a".into(), status });
    let of_loop = events.into_iter().map(|event| Fact::Loop("a".into(), LoopFact::Transitioned(event)));
    of_loop.chain(standings.map(moved).map(Fact::Run)).map(recorded).collect()
}
