//! Accepted commands change the state; refused commands would not have changed it.

use proptest::prelude::*;
use signoff_core::command::{CommandRefusal, LoopCommand, decide, refusal_findings};
use signoff_core::ids::{AttemptId, QuestionId};
use signoff_core::ledger::{DecidedBy, FindingDecision, FindingState};
use signoff_core::machine::{AttemptFailure, Choice, Event, FinalVerdict, Loop, Policy, Stage, step};
use strum::VariantArray as _;

use crate::group::{builders, loop_events};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn accepted_commands_change_the_state_and_refused_ones_would_not(
        preset in prop::sample::select(vec!["task", "slots", "plan", "loops", "phases"]),
        no_ask in any::<bool>(),
        dice in prop::collection::vec(any::<u16>(), 1..60),
    ) {
        let policy = Policy { no_ask, ..builders::small(preset) };
        let mut machine = Loop::default();
        for die in dice {
            for command in commands(&machine, &policy) {
                check_command(&machine, command, &policy);
            }
            let mut next_events: Vec<_> = loop_events::granted(&machine).into_iter().collect();
            next_events.extend(loop_events::answers(&machine, &policy));
            next_events.extend(loop_events::answers(&machine, &policy));
            next_events.extend(loop_events::disturbances(&machine, &policy));
            let people = commands(&machine, &policy).into_iter();
            next_events.extend(people.filter_map(|command| decide(&machine, command, &policy).ok()));
            machine = step(machine, next_events[usize::from(die) % next_events.len()].clone(), &policy).0;
        }
    }
}

fn by() -> String {
    "ann".to_owned()
}

fn commands(machine: &Loop, policy: &Policy) -> Vec<LoopCommand> {
    let mut all = vec![LoopCommand::Retry { by: by() }, LoopCommand::Cancel { by: by() }];
    for choice in Choice::VARIANTS.iter().copied() {
        for question in [None, Some(QuestionId(1)), Some(QuestionId(99))] {
            all.push(LoopCommand::Answer { question, choice, by: by() });
        }
    }
    let edit = |verdict: FinalVerdict| LoopCommand::Edit { verdict, by: by(), reason: by(), head: None };
    all.extend(FinalVerdict::ALL.iter().copied().map(edit));
    let known = machine.ledger.entries().iter().map(|entry| entry.finding.id.clone());
    all.extend(known.chain(["nothing".into()]).map(|finding| LoopCommand::Dispute { finding, by: by(), reason: by() }));
    let late = Event::AttemptFailed { attempt: AttemptId(999), failure: AttemptFailure::Silent };
    all.extend([late, Event::LandingGranted, Event::BudgetReached].map(LoopCommand::Report));
    all.extend(loop_events::answers(machine, policy).into_iter().map(LoopCommand::Report));
    all
}

fn check_command(machine: &Loop, command: LoopCommand, policy: &Policy) {
    match decide(machine, command.clone(), policy) {
        Ok(event) => {
            let after = step(machine.clone(), event, policy).0;
            assert_ne!(after, *machine, "{command:?} was accepted and did nothing");
        }
        // The machine would accept it, but the person's files would be lost.
        Err(CommandRefusal::AtWork) => assert!(machine.is_being_written(), "{command:?}"),
        // It would, but there is nothing to judge, or a decision closed the finding.
        Err(CommandRefusal::NotStarted) => assert!(!machine.has_started(), "{command:?}"),
        Err(CommandRefusal::FindingSettled { state, .. }) => assert!(state.is_settled(), "{command:?}"),
        Err(refusal) => {
            let after = step(machine.clone(), unchecked_event(machine, command.clone()), policy).0;
            assert_eq!(after, *machine, "{command:?} was refused ({refusal}) but would have done something");
        }
    }
}

/// The event that a command would record without the check.
fn unchecked_event(machine: &Loop, command: LoopCommand) -> Event {
    let open = if let Stage::Waiting { question, .. } = &machine.stage { question.id } else { QuestionId(1) };
    match command {
        LoopCommand::Answer { question, choice, by } => {
            Event::PersonAnswered { question: question.unwrap_or(open), choice, by }
        }
        LoopCommand::Retry { by } => Event::PersonRetried { by },
        LoopCommand::Edit { verdict, by, reason, head } => {
            let findings = refusal_findings(verdict, &by, &reason);
            Event::PersonEdited { verdict, by, reason, head, findings }
        }
        LoopCommand::Cancel { by } => Event::Cancelled { by },
        LoopCommand::Dispute { finding, by, reason } => {
            let by = DecidedBy::Person(by);
            let decision = FindingDecision { state: FindingState::Refuted, by, commit: None, evidence: reason };
            Event::FindingDecided { finding, decision }
        }
        LoopCommand::Report(event) => event,
    }
}
