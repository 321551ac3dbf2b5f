//! A command that is accepted changes something; one that is refused would have changed nothing.

use proptest::prelude::*;
use signoff_core::command::{Command, Refusal, decide, refusal};
use signoff_core::ids::{AttemptId, QuestionId};
use signoff_core::ledger::{DecidedBy, Decision, State};
use signoff_core::machine::{Choice, Event, Failure, FinalWord, Loop, Policy, Stage, step};

use crate::{say, world};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn what_is_accepted_changes_something_and_what_is_refused_would_not(
        preset in prop::sample::select(vec!["task", "slots", "plan", "loops", "phases"]),
        no_ask in any::<bool>(),
        dice in prop::collection::vec(any::<u16>(), 1..60),
    ) {
        let policy = Policy { no_ask, ..say::small(preset) };
        let mut this = Loop::default();
        for die in dice {
            for command in commands(&this, &policy) {
                holds(&this, command, &policy);
            }
            let mut nexts: Vec<_> = world::granted(&this).into_iter().collect();
            nexts.extend(world::answers(&this, &policy));
            nexts.extend(world::answers(&this, &policy));
            nexts.extend(world::disturbances(&this, &policy));
            let people = commands(&this, &policy).into_iter();
            nexts.extend(people.filter_map(|command| decide(&this, command, &policy).ok()));
            this = step(this, nexts[usize::from(die) % nexts.len()].clone(), &policy).0;
        }
    }
}

fn by() -> String {
    "ann".to_owned()
}

fn commands(this: &Loop, policy: &Policy) -> Vec<Command> {
    let mut all = vec![Command::Retry { by: by() }, Command::Cancel { by: by() }];
    for choice in Choice::ALL {
        for question in [None, Some(QuestionId(1)), Some(QuestionId(99))] {
            all.push(Command::Answer { question, choice: choice.word().into(), by: by() });
        }
    }
    let edit = |verdict: FinalWord| Command::Edit {
        verdict: verdict.word().into(),
        by: by(),
        reason: by(),
        head: None,
    };
    all.extend(FinalWord::ALL.map(edit));
    let known = this.ledger.entries().iter().map(|entry| entry.finding.id.clone());
    all.extend(known.chain(["nothing".into()]).map(|finding| Command::Dispute {
        finding,
        by: by(),
        reason: by(),
    }));
    let late = Event::AttemptFailed { attempt: AttemptId(999), failure: Failure::Silent };
    all.extend([late, Event::LandingGranted, Event::BudgetReached].map(Command::Report));
    all.extend(world::answers(this, policy).into_iter().map(Command::Report));
    all
}

fn holds(this: &Loop, command: Command, policy: &Policy) {
    match decide(this, command.clone(), policy) {
        Ok(event) => {
            let after = step(this.clone(), event, policy).0;
            assert_ne!(after, *this, "{command:?} was accepted and did nothing");
        }
        // The machine would take it; the person's files would be lost.
        Err(Refusal::AtWork) => assert!(this.is_being_written(), "{command:?}"),
        Err(refusal) => {
            let after = step(this.clone(), regardless(this, command.clone()), policy).0;
            assert_eq!(after, *this, "{command:?} was refused ({refusal}) but would have done something");
        }
    }
}

/// What a command would be recorded as if nobody checked it.
fn regardless(this: &Loop, command: Command) -> Event {
    let open = if let Stage::Waiting { question, .. } = &this.stage { question.id } else { QuestionId(1) };
    match command {
        Command::Answer { question, choice, by } => {
            let choice = Choice::from_word(&choice).expect("a choice");
            Event::PersonAnswered { question: question.unwrap_or(open), choice, by }
        }
        Command::Retry { by } => Event::PersonRetried { by },
        Command::Edit { verdict, by, reason, head } => {
            let verdict = FinalWord::from_word(&verdict).expect("a verdict");
            let findings = refusal(verdict, &by, &reason);
            Event::PersonEdited { verdict, by, reason, head, findings }
        }
        Command::Cancel { by } => Event::Cancelled { by },
        Command::Dispute { finding, by, reason } => {
            let by = DecidedBy::Person(by);
            let decision = Decision { state: State::Refuted, by, commit: None, evidence: reason };
            Event::FindingDecided { finding, decision }
        }
        Command::Report(event) => event,
    }
}
