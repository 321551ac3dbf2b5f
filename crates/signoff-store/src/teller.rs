//! Tells the rows of the tables from the facts of one run.
//!
//! The core's own fold does the telling. A teller only watches it: what it cannot see afterwards — when something
//! began and ended, which question came first, where in the ledger a finding went — it notes fact by fact, so that
//! it makes no difference how facts are cut into transactions.

mod rows;
mod track;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use signoff_core::group::RunStage;
use signoff_core::ids::{LoopId, QuestionId, RunId, TaskId};
use signoff_core::ledger::Round;
use signoff_core::machine::{Event, Loop, Stage};
use signoff_core::review::{Inconclusive, Review, Usage, Verdict, Violation, ViolationCode};
use signoff_core::view::{RunView, Status, TaskState};
use signoff_core::wire::{Fact, LoopFact, QUEUE, Recorded, RunFact, TaskFact};

use crate::record::{Key, ReviewRecord, Row, TaskAdded, TaskMoved, TaskTaken};
use track::Track;

/// The numbers that a run's questions have already.
pub(crate) type Numbered = BTreeMap<(LoopId, QuestionId), u64>;

pub(crate) struct Teller {
    run: RunId,
    view: RunView,
    ended_at: Option<Timestamp>,
    loops: BTreeMap<LoopId, Track>,
    /// The loop that has each task: the last one that was given it.
    takers: BTreeMap<TaskId, LoopId>,
    numbered: Numbered,
    /// The rows that can change, as they were last told.
    told: BTreeMap<(u8, Key), Row>,
    /// Rows that are written once.
    fresh: Vec<Row>,
    /// The loops whose rows have to be told again.
    stale: BTreeSet<LoopId>,
}

/// A review, and the round of the ledger it belongs to.
struct Arrived {
    record: ReviewRecord,
    round: Round,
}

/// The row that a fact about a task makes, whichever log it stands in.
pub(crate) fn task_row(run: RunId, at: Timestamp, id: TaskId, fact: &TaskFact) -> Row {
    match fact {
        TaskFact::Added { spec, auto_review, max_review_cycles } => Row::TaskAdded(TaskAdded {
            id,
            run: Some(run).filter(|run| *run != QUEUE),
            title: spec.title.clone(),
            kind: spec.kind,
            auto_review: *auto_review,
            max_review_cycles: *max_review_cycles,
            depends_on: spec.depends_on.clone(),
            continues: spec.continues,
            tracked: spec.tracked.clone(),
            at,
        }),
        TaskFact::Withdrawn { .. } => Row::TaskMoved(TaskMoved {
            status: Status::Cancelled,
            state: TaskState::Cancelled,
            outcome: Some("cancelled"),
            reason: Some("cancelled_by_person".to_owned()),
            ended_at: Some(at),
            ..TaskMoved::untouched(id)
        }),
    }
}

impl Teller {
    pub fn new(run: RunId, numbered: Numbered) -> Self {
        Self {
            run,
            view: RunView::default(),
            ended_at: None,
            loops: BTreeMap::new(),
            takers: BTreeMap::new(),
            numbered,
            told: BTreeMap::new(),
            fresh: Vec::new(),
            stale: BTreeSet::new(),
        }
    }

    /// The number of the last fact it took in.
    pub fn seq(&self) -> u64 {
        self.view.seq
    }

    /// Takes one fact in. `last` is the number of the last question that anybody asked.
    pub fn take(&mut self, recorded: &Recorded, last: &mut u64) {
        match &recorded.fact {
            Fact::Task(task, fact) => {
                self.view.apply(recorded);
                self.fresh.push(task_row(self.run, recorded.at, *task, fact));
            }
            Fact::Run(fact) => {
                let before = self.is_blocked();
                self.view.apply(recorded);
                let ended = matches!(self.view.stage(), RunStage::Done(_)) && !self.is_reopened();
                self.ended_at = ended.then(|| self.ended_at.unwrap_or(recorded.at));
                // Its policy and whether it is blocked show in every loop, and nothing else of it does.
                if matches!(fact, RunFact::Opened { .. }) || self.is_blocked() != before {
                    self.stale.extend(self.loops.keys().cloned());
                }
            }
            Fact::Loop(loop_id, fact) => {
                let review = self.review(recorded, loop_id, fact);
                self.view.apply(recorded);
                self.watch(recorded.at, loop_id, fact, last);
                if let Some(review) = review {
                    self.arrived(loop_id, review);
                }
                self.link(loop_id);
                // The row of the reviewed loop includes the cost of its checkpoint reviews.
                self.stale.extend(loop_id.of_checkpoint().map(|(of, _)| of));
            }
        }
    }

    fn is_blocked(&self) -> bool {
        matches!(self.view.stage(), RunStage::Blocked { .. })
    }

    fn watch(&mut self, at: Timestamp, loop_id: &LoopId, fact: &LoopFact, last: &mut u64) {
        let track = self.loops.entry(loop_id.clone()).or_default();
        match fact {
            LoopFact::Said { .. }
            | LoopFact::Session { .. }
            | LoopFact::Noted { .. }
            | LoopFact::Answered { .. } => return,
            LoopFact::Added { task, branch, .. } => {
                track.task = Some(*task);
                self.takers.insert(*task, loop_id.clone());
                let (run, loop_id, branch) = (self.run, loop_id.clone(), branch.clone());
                self.fresh.push(Row::TaskTaken(TaskTaken { id: *task, run, loop_id, branch }));
            }
            LoopFact::Moved(event) => {
                if let Some(state) = self.view.loop_state(loop_id) {
                    track.moved(at, state);
                    track.closed(at, state, event);
                    track.landed(event);
                    if let Some(number) = track.unasked(state) {
                        let known = self.numbered.entry((loop_id.clone(), number));
                        let id = *known.or_insert_with(|| {
                            *last += 1;
                            *last
                        });
                        track.asked((self.run, loop_id), state, id, at);
                    }
                }
            }
            LoopFact::Governed { .. }
            | LoopFact::Placed { .. }
            | LoopFact::AttemptStarted { .. }
            | LoopFact::CheckpointReviewed { .. }
            | LoopFact::Used { .. } => {}
        }
        self.stale.insert(loop_id.clone());
    }

    /// The review in a fact, if it counts: one of an attempt that no longer runs is no review of anything.
    fn review(&self, recorded: &Recorded, loop_id: &LoopId, fact: &LoopFact) -> Option<Arrived> {
        self.view.preset()?;
        let unknown = Loop::default();
        let state = self.view.loop_state(loop_id).unwrap_or(&unknown);
        let round = Round {
            pass: state.at.pass,
            phase: state.at.phase,
            item: None,
            cycle: state.tally.cycle,
            commit: Some(state.head.commit.clone()),
            checkpoint: None,
            task: None,
        };
        let (review, task, used) = match fact {
            LoopFact::Moved(Event::ReviewArrived { attempt, review }) if state.runs(*attempt) => {
                let attempts = self.view.attempts(loop_id);
                let used = attempts.into_iter().find(|(known, ..)| known == attempt);
                let task = self.loops.get(loop_id).and_then(|track| track.task);
                (self.as_counted(loop_id, state, review), task, used.map(|(.., usage)| usage))
            }
            LoopFact::CheckpointReviewed { review } => (review.clone(), None, None),
            LoopFact::Moved(_)
            | LoopFact::Added { .. }
            | LoopFact::Governed { .. }
            | LoopFact::Placed { .. }
            | LoopFact::AttemptStarted { .. }
            | LoopFact::Answered { .. }
            | LoopFact::Used { .. }
            | LoopFact::Said { .. }
            | LoopFact::Session { .. }
            | LoopFact::Noted { .. } => return None,
        };
        let own = Some(review.usage).filter(|usage| *usage != Usage::default());
        let record = ReviewRecord {
            id: format!("{}-{}", recorded.run, recorded.seq),
            run: self.run,
            loop_id: loop_id.clone(),
            task,
            at: recorded.at,
            usage: own.or(used).unwrap_or_default(),
            review,
            pass: round.pass,
            phase: self.phase(loop_id, state).unwrap_or_default(),
            cycle: round.cycle,
        };
        let of_checkpoint = matches!(fact, LoopFact::CheckpointReviewed { .. });
        let round = if of_checkpoint { self.checkpoint_round(loop_id, state, round) } else { round };
        Some(Arrived { record, round })
    }

    /// The round under which the ledger has what a checkpoint review found: that of the gate which judges it.
    fn checkpoint_round(&self, loop_id: &LoopId, state: &Loop, round: Round) -> Round {
        let gate = self.view.loop_policy(loop_id).and_then(|policy| policy.workflow.first_gate_index());
        let phase = gate.unwrap_or(round.phase);
        let cycle = state.cycles.get(&phase).copied().unwrap_or(0);
        Round { phase, cycle, checkpoint: Some(state.checkpoint.unwrap_or(0)), ..round }
    }

    fn phase(&self, loop_id: &LoopId, state: &Loop) -> Option<String> {
        let phase = self.view.loop_policy(loop_id)?.workflow.phases.get(state.at.phase)?;
        Some(phase.name.clone())
    }

    /// The review as the gate takes it: bound to its commit, findings before words.
    fn as_counted(&self, loop_id: &LoopId, state: &Loop, review: &Review) -> Box<Review> {
        let mut review = review.clone();
        if let Stage::Reviewing(panel) = &state.stage {
            let judged = review.judged.commit.get_or_insert_with(|| panel.commit.clone());
            if *judged != panel.commit {
                let message = format!("the review judged another commit than {}", panel.commit);
                let violation = Violation::new(ViolationCode::CommitMismatch, 0, message);
                review.verdict = Verdict::Inconclusive(Inconclusive::from(violation));
            }
        }
        let phases = self.view.loop_policy(loop_id).map(|policy| &policy.workflow.phases);
        let judge = phases.and_then(|phases| phases.get(state.at.phase)?.judge());
        Box::new(match judge {
            Some(judge) => review.with_findings_outranking_words(judge.gate.fail_on),
            None => review,
        })
    }

    fn arrived(&mut self, loop_id: &LoopId, arrived: Arrived) {
        if let Some(track) = self.loops.get_mut(loop_id) {
            track.arrived(&arrived);
        }
        // What was said of the run is no review of any loop: only what it found is kept.
        if !loop_id.serves_the_run() {
            self.fresh.push(Row::Review(arrived.record));
        }
    }

    fn link(&mut self, loop_id: &LoopId) {
        if let (Some(track), Some(state)) = (self.loops.get_mut(loop_id), self.view.loop_state(loop_id)) {
            track.link(&state.ledger);
        }
    }
}
