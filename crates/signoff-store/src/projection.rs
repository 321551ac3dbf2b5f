//! Projects the facts of one run into table rows.
//!
//! The projector applies each event to the core's `RunState`, and adds what the state does not keep — start and end
//! times, the order of questions, which ledger entry a finding became — fact by fact, so the result does not depend on
//! how facts are grouped into transactions.

mod loop_tracker;
mod rows;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use signoff_core::group::RunStage;
use signoff_core::ids::{LoopId, QuestionId, RunId, TaskId};
use signoff_core::ledger::Round;
use signoff_core::machine::{Event, Loop, Stage};
use signoff_core::review::{IntentSatisfied, Review, Usage};
use signoff_core::view::{QuestionView, RunState, Snapshot, Transition};
use signoff_core::wire::{Fact, LoopFact, RecordedFact, RunFact};

use crate::record::{TableKey, TableName, TableRow};
use loop_tracker::{LoopTracker, QuestionRecord};
pub(crate) use tasks::task_row;

/// The ids that a run's questions already have.
pub type QuestionIds = BTreeMap<(LoopId, QuestionId), u64>;

/// The state of one run, from which its rows are computed.
pub struct Projector {
    run: RunId,
    run_state: RunState,
    ended_at: Option<Timestamp>,
    loops: BTreeMap<LoopId, LoopTracker>,
    /// The loop of each task: the last one it was assigned to.
    task_loops: BTreeMap<TaskId, LoopId>,
    question_ids: QuestionIds,
    /// The last written version of each row that can change.
    written: BTreeMap<(TableName, TableKey), TableRow>,
    /// Rows that are written once.
    new_rows: Vec<TableRow>,
    /// The loops whose rows must be recomputed.
    changed_loops: BTreeSet<LoopId>,
}

/// A review that arrived.
struct ReceivedReview {
    id: String,
    run: RunId,
    loop_id: LoopId,
    /// `None` for checkpoint reviews.
    task: Option<TaskId>,
    at: Timestamp,
    review: Box<Review>,
    usage: Usage,
    phase: String,
    cycle: u32,
    /// The ledger round of its findings.
    round: Round,
}

impl ReceivedReview {
    fn row(&self) -> TableRow {
        let review = &self.review;
        let satisfied = match review.intent_satisfied {
            IntentSatisfied::Yes => Some(true),
            IntentSatisfied::No => Some(false),
            IntentSatisfied::Unstated => None,
        };
        let columns = vec![
            ("run_id", self.run.0.into()),
            ("loop_id", self.loop_id.as_str().into()),
            ("task_id", self.task.map(|task| task.0).into()),
            ("passed", review.verdict.approves().into()),
            ("interpreted_intent", review.interpreted_intent.as_deref().into()),
            ("intent_satisfied", satisfied.into()),
            ("reviewed_at", self.at.into()),
            ("cost_usd", rows::dollars(self.usage).into()),
            ("cost_is_estimated", self.usage.cost_is_estimated.into()),
            ("reviewer", review.reviewer.as_str().into()),
            ("verdict", review.verdict.into_str().into()),
            ("pass", self.round.pass.into()),
            ("phase", self.phase.as_str().into()),
            ("cycle", self.cycle.into()),
            ("commit_id", review.judged.commit.as_ref().map(|commit| commit.as_str()).into()),
            ("summary", review.summary.as_str().into()),
        ];
        TableRow::put(TableName::LoopReviews, vec![self.id.as_str().into()], columns)
    }
}

fn is_blocked(state: &Snapshot) -> bool {
    matches!(state.run.machine.stage, RunStage::Blocked { .. })
}

impl Projector {
    pub fn new(run: RunId) -> Self {
        Self {
            run,
            run_state: RunState::new(run),
            ended_at: None,
            loops: BTreeMap::new(),
            task_loops: BTreeMap::new(),
            question_ids: QuestionIds::new(),
            written: BTreeMap::new(),
            new_rows: Vec::new(),
            changed_loops: BTreeSet::new(),
        }
    }

    /// The run after the last applied event.
    pub fn run_state(&self) -> &RunState {
        &self.run_state
    }

    /// Sets the ids of the questions that are in the table.
    pub fn set_question_ids(&mut self, ids: QuestionIds) {
        self.question_ids = ids;
    }

    /// Applies one event. `last_question` is the id of the last question in any run.
    pub fn apply(&mut self, recorded: RecordedFact, last_question: &mut u64) -> Transition {
        let transition = self.run_state.apply(recorded);
        self.project(&transition, last_question);
        transition
    }

    /// Updates what the rows need apart from the state of the run.
    fn project(&mut self, transition: &Transition, last_question: &mut u64) {
        let at = transition.event.at;
        match &transition.event.fact {
            Fact::Task(task, fact) => self.new_rows.push(task_row(self.run, at, *task, fact)),
            Fact::Run(fact) => {
                let ended = matches!(self.run_state.stage(), RunStage::Done(_)) && !self.is_reopened();
                self.ended_at = ended.then(|| self.ended_at.unwrap_or(at));
                // Only the run's policy and whether it is blocked affect the rows of its loops.
                let was_blocked = is_blocked(&transition.before);
                if matches!(fact, RunFact::Opened { .. }) || is_blocked(&transition.after) != was_blocked {
                    self.changed_loops.extend(self.loops.keys().cloned());
                }
            }
            Fact::Loop(loop_id, fact) => {
                let review = self.received_review(transition, loop_id, fact);
                self.track_fact(at, loop_id, fact, last_question);
                if let Some(review) = review {
                    // A review of the run itself belongs to no loop: only its findings are kept.
                    self.new_rows.extend((!loop_id.is_run_level()).then(|| review.row()));
                    if let Some(tracker) = self.loops.get_mut(loop_id) {
                        tracker.add_review(&review);
                    }
                }
                if let (Some(tracker), Some(state)) = (self.loops.get_mut(loop_id), self.run_state.loop_state(loop_id))
                {
                    tracker.link_issues(&state.ledger);
                }
                // The row of the reviewed loop includes the cost of its checkpoint reviews.
                self.changed_loops.extend(loop_id.checkpoint_target().map(|(of, _)| of));
            }
        }
    }

    /// The task of a loop; none for parts of the run and for checkpoint reviews.
    fn task(&self, loop_id: &LoopId) -> Option<TaskId> {
        self.run_state.loops.get(loop_id)?.task
    }

    fn track_fact(&mut self, at: Timestamp, loop_id: &LoopId, fact: &LoopFact, last_question: &mut u64) {
        let task = self.task(loop_id);
        let tracker = self.loops.entry(loop_id.clone()).or_default();
        match fact {
            LoopFact::AgentOutput { .. }
            | LoopFact::Session { .. }
            | LoopFact::Noted { .. }
            | LoopFact::Answered { .. } => {
                return;
            }
            LoopFact::Added { task, branch, .. } => {
                self.task_loops.insert(*task, loop_id.clone());
                self.new_rows.push(tasks::assigned_row(self.run, loop_id, *task, branch));
            }
            LoopFact::Transitioned(event) => {
                if let Some(state) = self.run_state.loop_state(loop_id) {
                    tracker.update_times(at, state);
                    tracker.close_questions(at, state, event);
                    if let Some(number) = tracker.new_question(state) {
                        let known = self.question_ids.entry((loop_id.clone(), number));
                        let id = *known.or_insert_with(|| {
                            *last_question += 1;
                            *last_question
                        });
                        if let Some(question) = QuestionView::for_loop(state, QuestionId(id), task) {
                            tracker.questions.push(QuestionRecord {
                                id,
                                run: self.run,
                                loop_id: loop_id.clone(),
                                number,
                                task,
                                text: question.text,
                                choices: question.choices,
                                asked_at: at,
                                closed_at: None,
                                answer: None,
                            });
                        }
                    }
                }
            }
            LoopFact::PolicySet { .. }
            | LoopFact::WorkspaceCreated { .. }
            | LoopFact::AttemptStarted { .. }
            | LoopFact::CheckpointReviewed { .. }
            | LoopFact::Used { .. } => {}
        }
        self.changed_loops.insert(loop_id.clone());
    }

    /// The review in a fact. Reviews of attempts that no longer run are ignored.
    fn received_review(&self, transition: &Transition, loop_id: &LoopId, fact: &LoopFact) -> Option<ReceivedReview> {
        self.run_state.preset()?;
        let recorded = &transition.event;
        let unknown = Loop::default();
        let state = transition.before.loop_state.as_ref().map_or(&unknown, |state| &state.machine);
        let round = Round {
            pass: state.position.pass,
            phase: state.position.phase,
            item: None,
            cycle: state.counters.cycle,
            commit: Some(state.head.commit.clone()),
            checkpoint: None,
            task: None,
        };
        let (review, task, used) = match fact {
            LoopFact::Transitioned(Event::ReviewArrived { attempt, review }) if state.runs(*attempt) => {
                let attempts = self.run_state.attempts(loop_id);
                let used = attempts.into_iter().find(|(known, ..)| known == attempt);
                (self.counted_review(loop_id, state, review), self.task(loop_id), used.map(|(.., usage)| usage))
            }
            LoopFact::CheckpointReviewed { review } => (review.clone(), None, None),
            LoopFact::Transitioned(_)
            | LoopFact::Added { .. }
            | LoopFact::PolicySet { .. }
            | LoopFact::WorkspaceCreated { .. }
            | LoopFact::AttemptStarted { .. }
            | LoopFact::Answered { .. }
            | LoopFact::Used { .. }
            | LoopFact::AgentOutput { .. }
            | LoopFact::Session { .. }
            | LoopFact::Noted { .. } => return None,
        };
        let own = Some(review.usage).filter(|usage| *usage != Usage::default());
        let of_checkpoint = matches!(fact, LoopFact::CheckpointReviewed { .. });
        Some(ReceivedReview {
            id: format!("{}-{}", recorded.run, recorded.seq),
            run: self.run,
            loop_id: loop_id.clone(),
            task,
            at: recorded.at,
            usage: own.or(used).unwrap_or_default(),
            review,
            phase: self.phase(loop_id, state).unwrap_or_default(),
            cycle: round.cycle,
            round: if of_checkpoint { self.checkpoint_round(loop_id, state, round) } else { round },
        })
    }

    /// The ledger round of a checkpoint review's findings: that of the gate that judges them.
    fn checkpoint_round(&self, loop_id: &LoopId, state: &Loop, round: Round) -> Round {
        let gate = self.run_state.policy(loop_id).and_then(|policy| policy.workflow.first_gate_index());
        let phase = gate.unwrap_or(round.phase);
        let cycle = state.cycles.get(&phase).copied().unwrap_or(0);
        Round { phase, cycle, checkpoint: Some(state.checkpoint.unwrap_or(0)), ..round }
    }

    fn phase(&self, loop_id: &LoopId, state: &Loop) -> Option<String> {
        let phase = self.run_state.policy(loop_id)?.workflow.phases.get(state.position.phase)?;
        Some(phase.name.clone())
    }

    /// The review as the gate counts it: bound to its commit, with findings overriding the stated verdict.
    fn counted_review(&self, loop_id: &LoopId, state: &Loop, review: &Review) -> Box<Review> {
        let mut review = review.clone();
        let phases = self.run_state.policy(loop_id).map(|policy| &policy.workflow.phases);
        let gate_policy = phases.and_then(|phases| phases.get(state.position.phase)?.policy());
        if let (Stage::Reviewing(panel), Some(gate_policy)) = (&state.stage, gate_policy) {
            review.judged.commit.get_or_insert_with(|| panel.commit.clone());
            review = review.counted(&panel.commit, gate_policy.gate.fail_on);
        }
        Box::new(review)
    }
}
