//! The messages of refused commands.

use signoff_core::command::{CommandRefusal, LoopCommand, decide, parse_verdict};
use signoff_core::ids::{AttemptId, QuestionId};
use signoff_core::ledger::{FindingState, Ledger, Round};
use signoff_core::machine::{AttemptFailure, Choice, Event, FinalVerdict, Loop, Policy, replay, step};
use signoff_core::review::Verdict;

use crate::group::builders;

fn plan() -> Policy {
    builders::small("plan")
}

fn after(events: Vec<Event>) -> Loop {
    replay(events, &plan())
}

fn started() -> Event {
    Event::Started { head: builders::head(0) }
}

fn failed(attempt: u64) -> Event {
    Event::AttemptFailed { attempt: AttemptId(attempt), failure: AttemptFailure::TimedOut }
}

fn edited() -> LoopCommand {
    LoopCommand::Edit { verdict: FinalVerdict::Approved, by: "ann".into(), reason: "enough".into(), head: None }
}

fn accepted() -> Event {
    decide(&after(vec![started(), failed(1)]), edited(), &plan()).expect("a verdict")
}

fn answer(question: Option<u64>, choice: Choice) -> LoopCommand {
    LoopCommand::Answer { question: question.map(QuestionId), choice, by: "ann".into() }
}

/// A person disputes a finding a second time.
fn disputed_twice() -> (Loop, LoopCommand) {
    let round = Round { pass: 1, phase: 1, item: None, cycle: 1, commit: None, checkpoint: None, task: None };
    let mut ledger = Ledger::default();
    ledger.record(&round, &[builders::objects("code", "a.rs")]);
    let finding = ledger.entries().first().expect("a finding").finding.id.clone();
    let dispute = LoopCommand::Dispute { finding, by: "ann".into(), reason: "not so".into() };
    let machine = after(vec![Event::FindingsInherited { ledger }, started()]);
    let event = decide(&machine, dispute.clone(), &plan()).expect("a decision");
    (step(machine, event, &plan()).0, dispute)
}

/// An example of every refusal. A new refusal does not compile without one.
fn example(refusal: &CommandRefusal) -> (Loop, LoopCommand) {
    let fresh = || after(vec![started()]);
    let waiting = || after(vec![started(), failed(1)]);
    let ended = || after(vec![started(), accepted()]);
    let by = || "ann".to_owned();
    match refusal {
        CommandRefusal::NoQuestion => (fresh(), answer(None, Choice::Retry)),
        CommandRefusal::AnotherQuestion { .. } => (waiting(), answer(Some(7), Choice::Retry)),
        CommandRefusal::UnknownChoice { .. } => (waiting(), answer(None, Choice::Proceed)),
        CommandRefusal::UnknownVerdict { .. } => (fresh(), edited()),
        CommandRefusal::Unchanged => (ended(), edited()),
        CommandRefusal::NotStarted => (Loop::default(), edited()),
        CommandRefusal::AtWork => (fresh(), edited()),
        CommandRefusal::NotEnded => (fresh(), LoopCommand::Retry { by: by() }),
        CommandRefusal::NothingToRetry { .. } => (ended(), LoopCommand::Retry { by: by() }),
        CommandRefusal::Ended => (ended(), LoopCommand::Cancel { by: by() }),
        CommandRefusal::UnknownFinding { .. } => {
            (fresh(), LoopCommand::Dispute { finding: "f00".into(), by: by(), reason: "not so".into() })
        }
        CommandRefusal::FindingSettled { .. } => disputed_twice(),
        CommandRefusal::StaleReport { .. } => (waiting(), LoopCommand::Report(failed(1))),
        CommandRefusal::InvalidState => {
            let review = Box::new(builders::review("code", Verdict::Approved));
            (fresh(), LoopCommand::Report(Event::ReviewArrived { attempt: AttemptId(1), review }))
        }
    }
}

#[test]
fn every_refusal_has_a_message() {
    let all = [
        CommandRefusal::NoQuestion,
        CommandRefusal::AnotherQuestion { asked: QuestionId(7), open: QuestionId(1) },
        CommandRefusal::UnknownChoice { choice: String::new(), choices: Vec::new() },
        CommandRefusal::UnknownVerdict { verdict: String::new() },
        CommandRefusal::Unchanged,
        CommandRefusal::NotStarted,
        CommandRefusal::AtWork,
        CommandRefusal::NotEnded,
        CommandRefusal::NothingToRetry { outcome: None },
        CommandRefusal::Ended,
        CommandRefusal::UnknownFinding { finding: "f00".into() },
        CommandRefusal::FindingSettled { finding: "f00".into(), state: FindingState::Refuted },
        CommandRefusal::StaleReport { attempt: AttemptId(1) },
        CommandRefusal::InvalidState,
    ];
    let messages = all.iter().map(|refusal| {
        let (machine, command) = example(refusal);
        let refused = if matches!(refusal, CommandRefusal::UnknownVerdict { .. }) {
            parse_verdict("fine").expect_err("a refusal")
        } else {
            decide(&machine, command.clone(), &plan()).expect_err("a refusal")
        };
        assert_eq!(std::mem::discriminant(&refused), std::mem::discriminant(refusal), "{command:?}");
        refused.to_string()
    });
    insta::assert_snapshot!(messages.collect::<Vec<_>>().join("\n"), @r"
        there is no open question
        question q7 is not open; the open one is q1
        `proceed` is not a choice here: choose one of retry, stop
        unknown verdict `FINE`: choose one of APPROVED, CHANGES_REQUESTED, MAX_CYCLES_REACHED, NEEDS_DISCUSSION
        a person set this verdict already
        it has not started: there is nothing to judge
        the task is running: wait for it, or cancel it first
        it has not ended yet: cancel it first, or wait
        there is nothing to retry: it ended as accepted
        it has ended already
        there is no finding f00
        finding f-8652cee622 is refuted already: no review opens it again
        attempt a1 is not running: its report comes too late
        this does not fit the state of the task
    ");
}

#[test]
fn a_failed_loop_can_be_cancelled() {
    let stopped = Event::PersonAnswered { question: QuestionId(1), choice: Choice::Stop, by: "ann".into() };
    let failed = after(vec![started(), failed(1), stopped]);
    assert!(failed.is_done());
    let cancel = LoopCommand::Cancel { by: "ann".into() };
    let event = decide(&failed, cancel.clone(), &plan()).expect("it blocks others");
    let (called_off, effects) = step(failed, event, &plan());
    assert_eq!(effects, []);
    assert_eq!(decide(&called_off, cancel, &plan()), Err(CommandRefusal::Ended));
}
