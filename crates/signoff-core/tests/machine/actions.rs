//! The actions that the inbox offers for a task are those that the machine accepts, in every reachable state.

use signoff_core::command::{LoopCommand, decide};
use signoff_core::ids::QuestionId;
use signoff_core::machine::{Choice, FinalVerdict, Loop, Policy, Reason, Stage};
use signoff_core::view::inbox::{self, TaskActions};
use signoff_core::view::{QuestionView, TaskRow, TaskState, TaskStatus};
use strum::VariantArray as _;

use crate::machine::builders;
use crate::machine::explore::{PathBounds, explore};

#[test]
fn a_task_offers_what_its_loop_accepts() {
    check(&builders::bounded(builders::reviewed("task"), 3, 1), PathBounds { disturbances: 0, repeats: 1 });
}

#[test]
fn a_task_of_a_group_offers_what_its_loop_accepts() {
    check(&builders::small("loops"), PathBounds { disturbances: 0, repeats: 0 });
}

#[test]
fn a_disturbed_slot_offers_what_its_loop_accepts() {
    check(&builders::small("slots"), PathBounds { disturbances: 1, repeats: 0 });
}

/// The row of the loop's task, once a run has taken it.
fn row(machine: &Loop) -> TaskRow {
    let ending = if let Stage::Done(ending) = &machine.stage { Some(ending) } else { None };
    TaskRow {
        run_id: Some(1),
        base: machine.has_started().then(|| "base".to_owned()),
        state: TaskState::for_loop(machine, false),
        outcome: ending.and_then(|ending| ending.outcome.kind()),
        reason: ending.and_then(|ending| ending.reason),
        ..TaskRow::new(1, "a task", TaskStatus::for_loop(machine, false))
    }
}

fn check(policy: &Policy, bounds: PathBounds) {
    let explored = explore(policy, bounds, |_| {});
    for (index, node) in explored.nodes.iter().enumerate() {
        let machine = &node.state;
        let accepts = |command: LoopCommand| decide(machine, command, policy).is_ok();
        let offered = TaskActions::for_loop(&row(machine), machine.is_being_written());
        let why = || format!("{:?} after {:#?}", machine.stage, explored.path(index));
        let retries = accepts(LoopCommand::Retry { by: "ann".into() });
        assert_eq!(offered.retry, retries && !is_better_improved(machine), "retry: {}", why());
        assert_eq!(offered.cancel, accepts(LoopCommand::Cancel { by: "ann".into() }), "cancel: {}", why());
        let edits = |verdict| accepts(LoopCommand::Edit { verdict, by: "ann".into(), reason: "so".into(), head: None });
        let is_editable = edits(FinalVerdict::Approved) || edits(FinalVerdict::ChangesRequested);
        assert_eq!(offered.edit, is_editable, "edit: {}", why());
        // Before a run has started the task there is nothing to judge.
        assert!(!is_editable || !machine.head.commit.as_str().is_empty(), "edit: {}", why());
        for entry in machine.ledger.entries() {
            let (finding, by) = (entry.finding.id.clone(), "ann".into());
            let disputes = accepts(LoopCommand::Dispute { finding, by, reason: "not so".into() });
            assert_eq!(inbox::can_be_disputed(entry.state), disputes, "dispute: {}", why());
        }
        let question = QuestionView::for_loop(machine, QuestionId(1), None);
        let answers =
            |choice: &Choice| accepts(LoopCommand::Answer { question: None, choice: *choice, by: "ann".into() });
        let answerable: Vec<Choice> = Choice::VARIANTS.iter().copied().filter(answers).collect();
        let choices = question.map(|question| question.choices).unwrap_or_default();
        assert!(answerable.iter().all(|choice| choices.contains(choice)), "answer: {}", why());
        assert!(choices.iter().all(|choice| answerable.contains(choice)), "answer: {}", why());
    }
}

/// A retry is possible, but the inbox offers another command: `improve` for work that a person refused, or that ended
/// without an approval but without needing a decision.
fn is_better_improved(machine: &Loop) -> bool {
    let Stage::Done(ending) = &machine.stage else { return false };
    ending.reason == Some(Reason::EditedByPerson) || ending.outcome.is_completed()
}
