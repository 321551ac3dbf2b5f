//! What people are told when a command is not carried out.

use signoff_core::command::{Command, Refusal, decide};
use signoff_core::ids::{AttemptId, QuestionId};
use signoff_core::machine::{Event, Failure, Loop, Policy, replay};
use signoff_core::review::Verdict;

use crate::say;

fn plan() -> Policy {
    say::small("plan")
}

fn after(events: Vec<Event>) -> Loop {
    replay(events, &plan())
}

fn started() -> Event {
    Event::Started { head: say::head(0) }
}

fn failed(attempt: u64) -> Event {
    Event::AttemptFailed { attempt: AttemptId(attempt), failure: Failure::TimedOut }
}

fn edited(verdict: &str) -> Command {
    Command::Edit { verdict: verdict.into(), by: "ann".into(), reason: "enough".into(), head: None }
}

fn accepted() -> Event {
    decide(&after(vec![started(), failed(1)]), edited("APPROVED"), &plan()).expect("a verdict")
}

fn answer(question: Option<u64>, choice: &str) -> Command {
    Command::Answer { question: question.map(QuestionId), choice: choice.into(), by: "ann".into() }
}

/// Every refusal once; a new one does not compile until it is here.
fn example(refusal: &Refusal) -> (Loop, Command) {
    let fresh = || after(vec![started()]);
    let asked = || after(vec![started(), failed(1)]);
    let ended = || after(vec![started(), accepted()]);
    let by = || "ann".to_owned();
    match refusal {
        Refusal::NoQuestion => (fresh(), answer(None, "retry")),
        Refusal::AnotherQuestion { .. } => (asked(), answer(Some(7), "retry")),
        Refusal::UnknownChoice { .. } => (asked(), answer(None, "dance")),
        Refusal::UnknownVerdict { .. } => (fresh(), edited("FINE")),
        Refusal::Unchanged => (ended(), edited("APPROVED")),
        Refusal::AtWork => (fresh(), edited("APPROVED")),
        Refusal::NotEnded => (fresh(), Command::Retry { by: by() }),
        Refusal::NothingToRetry { .. } => (ended(), Command::Retry { by: by() }),
        Refusal::Ended => (ended(), Command::Cancel { by: by() }),
        Refusal::UnknownFinding { .. } => {
            (fresh(), Command::Dispute { finding: "f00".into(), by: by(), reason: "not so".into() })
        }
        Refusal::Stale { .. } => (asked(), Command::Report(failed(1))),
        Refusal::Misfit => {
            let review = Box::new(say::review("code", Verdict::Approved));
            (fresh(), Command::Report(Event::ReviewArrived { attempt: AttemptId(1), review }))
        }
    }
}

#[test]
fn every_refusal_says_why() {
    let all = [
        Refusal::NoQuestion,
        Refusal::AnotherQuestion { asked: QuestionId(7), open: QuestionId(1) },
        Refusal::UnknownChoice { choice: String::new(), choices: Vec::new() },
        Refusal::UnknownVerdict { verdict: String::new() },
        Refusal::Unchanged,
        Refusal::AtWork,
        Refusal::NotEnded,
        Refusal::NothingToRetry { outcome: "" },
        Refusal::Ended,
        Refusal::UnknownFinding { finding: "f00".into() },
        Refusal::Stale { attempt: AttemptId(1) },
        Refusal::Misfit,
    ];
    let told = all.iter().map(|refusal| {
        let (this, command) = example(refusal);
        let said = decide(&this, command.clone(), &plan()).expect_err("a refusal");
        assert_eq!(std::mem::discriminant(&said), std::mem::discriminant(refusal), "{command:?}");
        said.to_string()
    });
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @r"
        there is no open question
        question q7 is not open; the open one is q1
        `dance` is not a choice here: choose one of retry, stop
        unknown verdict `FINE`: choose one of APPROVED, CHANGES_REQUESTED, MAX_CYCLES_REACHED, NEEDS_DISCUSSION
        a person set this verdict already
        it is being worked on: wait for it, or cancel it first
        it has not ended yet: cancel it first, or wait
        there is nothing to retry: it ended as accepted
        it has ended already
        there is no finding f00
        attempt a1 is not running: its report comes too late
        this does not fit the state of the task
    ");
}

#[test]
fn a_loop_that_ended_badly_can_be_called_off() {
    let stopped = Event::PersonAnswered {
        question: QuestionId(1),
        choice: signoff_core::machine::Choice::Stop,
        by: "ann".into(),
    };
    let failed = after(vec![started(), failed(1), stopped]);
    assert!(failed.is_done());
    let cancel = Command::Cancel { by: "ann".into() };
    let event = decide(&failed, cancel.clone(), &plan()).expect("it blocks others");
    let (called_off, effects) = signoff_core::machine::step(failed, event, &plan());
    assert_eq!(effects, []);
    assert_eq!(decide(&called_off, cancel, &plan()), Err(Refusal::Ended));
}
