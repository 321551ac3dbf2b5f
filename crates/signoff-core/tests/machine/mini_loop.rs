//! The review mini-loop in every combination of settings: the result of a finding of each severity that no fix removes,
//! with two retries. A phase that restarts has two restarts.
//!
//! `next`: the gate passes. `noted`: the next phase begins, with the issue noted. `phase 1`: a new iteration begins.
//! `halt`: the workflow ends, as a failure. `ask`: a person decides.

use std::collections::BTreeSet;

use signoff_core::contract::{Contract, ReviewAnswer, ReviewRequest, parse};
use signoff_core::machine::{
    CheckReport, Event, GateEnd, Job, JobKind, Loop, Outcome, Policy, Reason, Stage, WorkReport,
};
use signoff_core::policy::{Bound, OnExhausted, OnFailure};
use signoff_core::review::{FailThreshold, Review, ReviewerKind, Severity};
use signoff_core::workflow::{GatePolicy, PhaseKind, preset};

use crate::machine::builders;
use crate::machine::story::Story;

/// Expected results at a review.
const AT_A_GATE: &str = "
onFailure | onMaxRetries | failOnSeverity | LOW              | MEDIUM           | HIGH
restart   | stop         | LOW            | phase 1          | phase 1          | phase 1
restart   | stop         | MEDIUM         | next             | phase 1          | phase 1
restart   | stop         | HIGH           | next             | next             | phase 1
restart   | stop         | NONE           | next             | next             | next
restart   | ask          | LOW            | phase 1          | phase 1          | phase 1
restart   | ask          | MEDIUM         | next             | phase 1          | phase 1
restart   | ask          | HIGH           | next             | next             | phase 1
restart   | ask          | NONE           | next             | next             | next
restart   | restart      | LOW            | phase 1          | phase 1          | phase 1
restart   | restart      | MEDIUM         | next             | phase 1          | phase 1
restart   | restart      | HIGH           | next             | next             | phase 1
restart   | restart      | NONE           | next             | next             | next
restart   | proceed      | LOW            | phase 1          | phase 1          | phase 1
restart   | proceed      | MEDIUM         | next             | phase 1          | phase 1
restart   | proceed      | HIGH           | next             | next             | phase 1
restart   | proceed      | NONE           | next             | next             | next
mini-loop | stop         | LOW            | 2 fixes, halt    | 2 fixes, halt    | 2 fixes, halt
mini-loop | stop         | MEDIUM         | next             | 2 fixes, halt    | 2 fixes, halt
mini-loop | stop         | HIGH           | next             | next             | 2 fixes, halt
mini-loop | stop         | NONE           | next             | next             | next
mini-loop | ask          | LOW            | 2 fixes, ask     | 2 fixes, ask     | 2 fixes, ask
mini-loop | ask          | MEDIUM         | next             | 2 fixes, ask     | 2 fixes, ask
mini-loop | ask          | HIGH           | next             | next             | 2 fixes, ask
mini-loop | ask          | NONE           | next             | next             | next
mini-loop | restart      | LOW            | 2 fixes, phase 1 | 2 fixes, phase 1 | 2 fixes, phase 1
mini-loop | restart      | MEDIUM         | next             | 2 fixes, phase 1 | 2 fixes, phase 1
mini-loop | restart      | HIGH           | next             | next             | 2 fixes, phase 1
mini-loop | restart      | NONE           | next             | next             | next
mini-loop | proceed      | LOW            | 2 fixes, noted   | 2 fixes, noted   | 2 fixes, noted
mini-loop | proceed      | MEDIUM         | next             | 2 fixes, noted   | 2 fixes, noted
mini-loop | proceed      | HIGH           | next             | next             | 2 fixes, noted
mini-loop | proceed      | NONE           | next             | next             | next
proceed   | stop         | LOW            | noted            | noted            | noted
proceed   | stop         | MEDIUM         | next             | noted            | noted
proceed   | stop         | HIGH           | next             | next             | noted
proceed   | stop         | NONE           | next             | next             | next
proceed   | ask          | LOW            | noted            | noted            | noted
proceed   | ask          | MEDIUM         | next             | noted            | noted
proceed   | ask          | HIGH           | next             | next             | noted
proceed   | ask          | NONE           | next             | next             | next
proceed   | restart      | LOW            | noted            | noted            | noted
proceed   | restart      | MEDIUM         | next             | noted            | noted
proceed   | restart      | HIGH           | next             | next             | noted
proceed   | restart      | NONE           | next             | next             | next
proceed   | proceed      | LOW            | noted            | noted            | noted
proceed   | proceed      | MEDIUM         | next             | noted            | noted
proceed   | proceed      | HIGH           | next             | next             | noted
proceed   | proceed      | NONE           | next             | next             | next
stop      | stop         | LOW            | halt             | halt             | halt
stop      | stop         | MEDIUM         | next             | halt             | halt
stop      | stop         | HIGH           | next             | next             | halt
stop      | stop         | NONE           | next             | next             | next
stop      | ask          | LOW            | halt             | halt             | halt
stop      | ask          | MEDIUM         | next             | halt             | halt
stop      | ask          | HIGH           | next             | next             | halt
stop      | ask          | NONE           | next             | next             | next
stop      | restart      | LOW            | halt             | halt             | halt
stop      | restart      | MEDIUM         | next             | halt             | halt
stop      | restart      | HIGH           | next             | next             | halt
stop      | restart      | NONE           | next             | next             | next
stop      | proceed      | LOW            | halt             | halt             | halt
stop      | proceed      | MEDIUM         | next             | halt             | halt
stop      | proceed      | HIGH           | next             | next             | halt
stop      | proceed      | NONE           | next             | next             | next
";

/// Expected results at the tests, which have no severity.
const AT_A_CHECK: &str = "
onFailure | onMaxRetries | the tests fail
restart   | stop         | phase 1
restart   | ask          | phase 1
restart   | restart      | phase 1
restart   | proceed      | phase 1
mini-loop | stop         | 2 fixes, halt
mini-loop | ask          | 2 fixes, ask
mini-loop | restart      | 2 fixes, phase 1
mini-loop | proceed      | 2 fixes, noted
proceed   | stop         | noted
proceed   | ask          | noted
proceed   | restart      | noted
proceed   | proceed      | noted
stop      | stop         | halt
stop      | ask          | halt
stop      | restart      | halt
stop      | proceed      | halt
";

const RETRIES: u32 = 2;

fn rows(table: &str) -> Vec<Vec<&str>> {
    table.trim().lines().skip(1).map(|row| row.split('|').map(str::trim).collect()).collect()
}

fn on_failure(word: &str) -> OnFailure {
    match word {
        "mini-loop" => OnFailure::MiniLoop,
        "restart" => OnFailure::Restart,
        "proceed" => OnFailure::Proceed,
        "stop" => OnFailure::Stop,
        _ => panic!("{word}"),
    }
}

fn on_exhausted(word: &str) -> OnExhausted {
    match word {
        "stop" => OnExhausted::Stop,
        "ask" => OnExhausted::Ask,
        "restart" => OnExhausted::Restart,
        "proceed" => OnExhausted::Proceed,
        _ => panic!("{word}"),
    }
}

fn threshold(word: &str) -> FailThreshold {
    match word {
        "LOW" => FailThreshold::Low,
        "MEDIUM" => FailThreshold::Medium,
        "HIGH" => FailThreshold::High,
        "NONE" => FailThreshold::None,
        _ => panic!("{word}"),
    }
}

/// The shipped phases, with the settings of a row at one of them.
fn policy(phase: &str, change: impl Fn(&mut GatePolicy)) -> Policy {
    let mut policy = Policy::new(preset("phases").expect("shipped"));
    for listed in &mut policy.workflow.phases {
        if let PhaseKind::Agent { researchers, .. } = &mut listed.kind {
            *researchers = 0;
        }
        let here = listed.name == phase;
        if let Some(gate_policy) = listed.policy_mut().filter(|_| here) {
            gate_policy.gate.enabled = true;
            gate_policy.gate.bound = Bound::MaxFixes(RETRIES);
            change(gate_policy);
        }
    }
    policy
}

/// A loop in which all gates pass except one reviewer or the tests.
struct Iteration {
    story: Story,
    phase: usize,
    severity: &'static str,
    fixes: u32,
}

impl Iteration {
    fn new(policy: Policy, phase: &str, severity: &'static str) -> Self {
        let phase = policy.workflow.phases.iter().position(|one| one.name == phase).expect("a phase");
        Self { story: Story::new(policy), phase, severity, fixes: 0 }
    }

    fn state(&self) -> &Loop {
        &self.story.state
    }

    /// Completes the next job. Returns false if there is none.
    fn complete_next_job(&mut self) -> bool {
        let Some(Job { attempt, phase, kind, .. }) = self.story.jobs().into_iter().next() else {
            return false;
        };
        let here = phase == self.phase;
        let event = match kind {
            JobKind::Work { .. } | JobKind::Fix { .. } => {
                self.fixes += u32::from(here);
                let head = self.story.new_head();
                Event::WorkEnded { attempt, report: WorkReport::Complete { head } }
            }
            JobKind::Review { reviewer, .. } => {
                let review =
                    if here { self.objection(reviewer.as_str()) } else { builders::approves(reviewer.as_str()) };
                Event::ReviewArrived { attempt, review: Box::new(review) }
            }
            JobKind::Check => {
                let findings = vec![builders::finding("test.rs", Severity::Critical)];
                let report = if here { CheckReport::Failed { findings } } else { CheckReport::Passed };
                Event::CheckEnded { attempt, report }
            }
            JobKind::Research { .. } | JobKind::Combine { .. } | JobKind::Land => panic!("{kind:?}"),
        };
        self.story.apply("", event);
        true
    }

    /// The same finding every time, parsed from a reviewer's answer.
    fn objection(&self, reviewer: &str) -> Review {
        let gate_policy = self.story.policy.workflow.phases[self.phase].policy().expect("a gate");
        let ask = ReviewRequest {
            reviewer: reviewer.into(),
            kind: ReviewerKind::Code,
            nonce: None,
            require_nonce: false,
            fail_on: gate_policy.gate.fail_on,
            commit: None,
            loop_id: None,
            task: None,
        };
        let text = format!(
            r#"[{{"severity": "{}", "message": "the error is thrown away", "location": "a.rs:7"}}]"#,
            self.severity
        );
        parse(Contract::Severity, ReviewAnswer { text: text.as_bytes(), tool: None }, &ask).expect("an answer")
    }

    /// The result of the finding at its gate.
    fn gate_result(&mut self) -> String {
        let gate_result = loop {
            let state = self.state();
            let recorded = state.gates.iter().find(|record| record.phase == self.phase);
            match (&state.stage, recorded.map(|record| &record.end)) {
                (Stage::Waiting { .. }, _) => break "ask",
                (_, Some(GateEnd::Approved { .. })) => break "next",
                (_, Some(GateEnd::LeftFindings { .. })) => break "noted",
                (Stage::Done(ending), _) => {
                    assert_eq!(ending.outcome, Outcome::Failed);
                    break "halt";
                }
                (_, _) if state.position.pass > 1 => {
                    assert_eq!(state.position.phase, 0);
                    break "phase 1";
                }
                (_, _) => assert!(self.complete_next_job()),
            }
        };
        if self.fixes == 0 { gate_result.to_owned() } else { format!("{} fixes, {gate_result}", self.fixes) }
    }

    /// Runs to the end without a person, and returns the outcome.
    fn outcome(&mut self) -> (Outcome, Option<Reason>) {
        while self.complete_next_job() {}
        let Stage::Done(ending) = &self.state().stage else { panic!("{:?}", self.state().stage) };
        (ending.outcome.clone(), ending.reason)
    }
}

/// Checks the end of an iteration.
fn check_end(iteration: &mut Iteration, gate_result: &str, row: &str) {
    if gate_result.ends_with("ask") {
        assert!(iteration.story.jobs().is_empty(), "{row}: no agent runs while a question is open");
        return;
    }
    if gate_result == "phase 1" {
        return check_end_after_restarts(iteration, row);
    }
    let (outcome, reason) = iteration.outcome();
    match gate_result.rsplit(", ").next().unwrap_or(gate_result) {
        "next" => assert!(matches!(outcome, Outcome::Approved { .. }), "{row}: {outcome:?}"),
        "noted" => assert_eq!(outcome, Outcome::CompletedWithIssues, "{row}"),
        "halt" => assert_eq!(outcome, Outcome::Failed, "{row}"),
        "phase 1" => {
            assert_eq!((outcome, reason), (Outcome::Failed, Some(Reason::PassesExhausted)), "{row}");
        }
        other => panic!("{row}: {other}"),
    }
}

/// A phase may restart twice. Then it behaves like a mini-loop without retries left.
fn check_end_after_restarts(iteration: &mut Iteration, row: &str) {
    let gate_policy = iteration.story.policy.workflow.phases[iteration.phase].policy().expect("a gate");
    let on_exhausted = gate_policy.gate.on_exhausted;
    while iteration.complete_next_job() {}
    let ending = if let Stage::Done(ending) = &iteration.state().stage {
        Some((ending.outcome.clone(), ending.reason))
    } else {
        None
    };
    let expected = match on_exhausted {
        OnExhausted::Stop => Some((Outcome::Failed, Some(Reason::CyclesExhausted))),
        OnExhausted::Restart => Some((Outcome::Failed, Some(Reason::PassesExhausted))),
        OnExhausted::Proceed => Some((Outcome::CompletedWithIssues, Some(Reason::CyclesExhausted))),
        OnExhausted::Ask => None,
    };
    assert_eq!(ending, expected, "{row}");
    let passes = iteration.state().position.pass;
    assert!(on_exhausted == OnExhausted::Restart || passes == RETRIES + 1, "{row}: {passes} passes");
}

#[test]
fn results_of_a_finding_at_a_review() {
    const SEVERITIES: [&str; 3] = ["LOW", "MEDIUM", "HIGH"];
    let rows = rows(AT_A_GATE);
    assert_eq!(rows.len(), 4 * 4 * 4);
    let combinations: BTreeSet<_> = rows.iter().map(|row| &row[..3]).collect();
    assert_eq!(combinations.len(), rows.len());
    let mut seen = 0;
    for gate in ["plan_review", "code_review", "final_review"] {
        for row in &rows {
            for (severity, expected) in SEVERITIES.into_iter().zip(&row[3..]) {
                let policy = policy(gate, |gate_policy| {
                    gate_policy.gate.on_failure = on_failure(row[0]);
                    gate_policy.gate.on_exhausted = on_exhausted(row[1]);
                    gate_policy.gate.fail_on = threshold(row[2]);
                });
                let mut iteration = Iteration::new(policy, gate, severity);
                let name = format!("{gate}, {}, {severity}", row[..3].join(", "));
                let gate_result = iteration.gate_result();
                assert_eq!(gate_result, *expected, "{name}");
                check_end(&mut iteration, &gate_result, &name);
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 3 * 64 * 3);
}

#[test]
fn results_of_failing_tests() {
    let rows = rows(AT_A_CHECK);
    assert_eq!(rows.len(), 4 * 4);
    for row in rows {
        let policy = policy("test", |gate_policy| {
            gate_policy.gate.on_failure = on_failure(row[0]);
            gate_policy.gate.on_exhausted = on_exhausted(row[1]);
        });
        let mut iteration = Iteration::new(policy, "test", "HIGH");
        let gate_result = iteration.gate_result();
        assert_eq!(gate_result, row[2], "{row:?}");
        check_end(&mut iteration, &gate_result, &row.join(", "));
    }
}

/// Every phase that can restart an iteration.
const REVIEW_PHASES: [&str; 6] =
    ["plan_review", "implement_review", "code_review", "test", "final_review", "codex_final"];

#[test]
fn exhausted_restarts_stop_and_never_pass() {
    for phase in REVIEW_PHASES {
        for (failure, exhausted) in
            [(OnFailure::Restart, OnExhausted::Proceed), (OnFailure::MiniLoop, OnExhausted::Restart)]
        {
            for passes in [1, 2, 3] {
                let mut policy = policy(phase, |gate_policy| {
                    gate_policy.gate.on_failure = failure;
                    gate_policy.gate.on_exhausted = exhausted;
                    gate_policy.gate.bound = Bound::MaxFixes(passes);
                });
                policy.workflow.limits.max_passes = passes;
                let mut iteration = Iteration::new(policy, phase, "HIGH");
                let failed = (Outcome::Failed, Some(Reason::PassesExhausted));
                assert_eq!(iteration.outcome(), failed, "{phase}, {failure:?}, {passes}");
                assert_eq!(iteration.state().position.pass, passes, "{phase}, {failure:?}");
            }
        }
    }
}

#[test]
fn an_iteration_that_proceeds_with_issues_is_never_approved() {
    for phase in REVIEW_PHASES {
        for (failure, exhausted) in
            [(OnFailure::Proceed, OnExhausted::Stop), (OnFailure::MiniLoop, OnExhausted::Proceed)]
        {
            let policy = policy(phase, |gate_policy| {
                gate_policy.gate.on_failure = failure;
                gate_policy.gate.on_exhausted = exhausted;
            });
            let mut iteration = Iteration::new(policy, phase, "HIGH");
            let (outcome, reason) = iteration.outcome();
            assert_eq!(outcome, Outcome::CompletedWithIssues, "{phase}, {failure:?}");
            assert!(reason.is_some(), "{phase}, {failure:?}");
        }
    }
}

#[test]
fn retries_without_limit_end_with_the_attempts() {
    for phase in REVIEW_PHASES {
        for exhausted in [OnExhausted::Stop, OnExhausted::Ask, OnExhausted::Restart, OnExhausted::Proceed] {
            let mut policy = policy(phase, |gate_policy| {
                gate_policy.gate.on_failure = OnFailure::MiniLoop;
                gate_policy.gate.on_exhausted = exhausted;
                gate_policy.gate.bound = Bound::Unlimited;
            });
            policy.workflow.limits.max_attempts = 20;
            let mut iteration = Iteration::new(policy, phase, "HIGH");
            let failed = (Outcome::Failed, Some(Reason::AttemptsExhausted));
            assert_eq!(iteration.outcome(), failed, "{phase}, {exhausted:?}");
            assert_eq!(iteration.state().counters.attempts, 20, "{phase}");
        }
    }
}

#[test]
fn retries_without_limit_end_with_the_budget() {
    let unlimited = policy("code_review", |gate_policy| gate_policy.gate.bound = Bound::Unlimited);
    let mut iteration = Iteration::new(unlimited, "code_review", "HIGH");
    while iteration.fixes < 7 {
        assert!(iteration.complete_next_job());
    }
    let story = iteration.story.budget();
    assert!(story.jobs().is_empty());
    assert!(!story.state.is_done());
}
