//! A run as the engine holds it: the fold of its log, with what attempts need besides the machines' states.
//!
//! Live facts and a log read back go through the same [`Board::take`], so a restart knows what the program
//! knew when it was killed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use signoff_core::group::{self, Run, RunEvent, RunOutcome, RunPolicy, RunStage};
use signoff_core::ids::{AttemptId, Commit, LoopId, ReviewerName, RunId, TaskId};
use signoff_core::machine::{
    self, Event, Failure, Job, JobKind, LandReport, Loop, Panel, Policy, Seat, Stage,
};
use signoff_core::review::{Finding, Inconclusive, Review, ReviewerKind, Usage, Verdict};
use signoff_core::session::Sessions;
use signoff_core::source::planner::{Planned, PlannedTask};
use signoff_core::task::TaskSpec;
use signoff_core::wire::{Fact, Launch, LoopFact, Recorded, RunFact, TaskFact};
use signoff_core::workflow::{Arrangement, Landing};

/// A run and its loops.
#[derive(Debug, Clone)]
pub struct Board {
    pub run: RunId,
    /// What holds for the run; none until its first fact.
    pub under: Option<(RunPolicy, Policy)>,
    pub machine: Run,
    pub loops: BTreeMap<LoopId, Worked>,
    /// What was asked for, where the run's own log says it.
    pub specs: BTreeMap<TaskId, TaskSpec>,
    /// What landed on the run's branch, and what was last.
    pub landed: BTreeMap<LoopId, Commit>,
    pub last_landed: Option<Commit>,
    /// Its branch went onto the default branch, and no loop has moved since.
    pub has_gone_on: bool,
    /// What the run as a whole is to bring about, where tasks are yet to be made of it.
    pub subject: Option<TaskSpec>,
    /// The last policy that a loop was given. Most loops of a run have the same one, and share it.
    given: Option<Arc<Policy>>,
}

/// One loop.
#[derive(Debug, Clone, Default)]
pub struct Worked {
    pub task: Option<TaskId>,
    pub title: String,
    pub branch: String,
    pub place: Option<Place>,
    pub started: Option<Timestamp>,
    pub state: Loop,
    pub policy: Option<Arc<Policy>>,
    /// What the attempts that ended have used.
    pub usage: BTreeMap<AttemptId, Usage>,
    /// The attempts whose start is on record.
    pub launched: BTreeMap<AttemptId, Launched>,
    /// Those that ended with an answer or with work.
    pub answered: BTreeSet<AttemptId>,
    /// The answers of the round at hand, readable or not.
    pub round: BTreeMap<ReviewerName, Review>,
    /// The last round that came to an end.
    pub last_round: Option<Round>,
    /// What planners answered.
    pub tasks: Vec<PlannedTask>,
    pub groups: Vec<Vec<String>>,
    /// Why the last attempt ended badly, until another ends well.
    pub last_failure: Option<Failure>,
    /// How often it was looked at while at work.
    pub checkpoints: u32,
    /// The helpers of the phase at hand that came back.
    pub researched: Vec<AttemptId>,
    /// The head when the item at hand was begun.
    pub item_began: Option<Commit>,
    pub sessions: Sessions,
}

/// Who was started, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launched {
    pub at: Timestamp,
    pub launch: Launch,
}

/// Where a loop is worked, and what its changes are counted from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub base: Commit,
    pub worktree: String,
}

/// One panel's answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    pub pass: u32,
    pub phase: usize,
    pub cycle: u32,
    pub commit: Commit,
    pub reviews: Vec<Review>,
}

impl Round {
    /// The findings that keep the gate shut and that no reviewer reported in this round.
    pub fn still_open(&self, mut before: Loop, after: &Loop, policy: &Policy) -> Vec<Finding> {
        before.ledger = after.ledger.clone();
        let is_same = |one: &Finding, other: &Finding| {
            (&one.file, &one.description) == (&other.file, &other.description)
        };
        let is_reported = |known: &Finding| {
            self.reviews.iter().flat_map(|one| &one.findings).any(|one| is_same(one, known))
        };
        let open = machine::blocking(&before, policy).into_iter().map(|entry| &entry.finding);
        open.filter(|finding| !is_reported(finding)).cloned().collect()
    }
}

impl Board {
    pub fn new(run: RunId) -> Self {
        Self {
            run,
            under: None,
            machine: Run::default(),
            loops: BTreeMap::new(),
            specs: BTreeMap::new(),
            landed: BTreeMap::new(),
            last_landed: None,
            has_gone_on: false,
            subject: None,
            given: None,
        }
    }

    /// The board of a whole log.
    pub fn of(run: RunId, log: &[Recorded]) -> Self {
        let mut board = Self::new(run);
        log.iter().for_each(|recorded| board.take(recorded));
        board
    }

    /// Takes one fact in.
    pub fn take(&mut self, recorded: &Recorded) {
        match &recorded.fact {
            Fact::Task(task, TaskFact::Added { spec, .. }) => {
                self.specs.insert(*task, (**spec).clone());
            }
            Fact::Task(_, TaskFact::Withdrawn { .. }) => {}
            Fact::Run(RunFact::Opened { policy, workflow }) => {
                self.under = Some((policy.clone(), (**workflow).clone()));
            }
            Fact::Run(RunFact::Specified { name, text }) => {
                self.subject =
                    Some(TaskSpec { title: name.clone(), description: text.clone(), ..TaskSpec::default() });
            }
            Fact::Run(RunFact::Moved(event)) => {
                let moves = matches!(event, RunEvent::LoopMoved { .. });
                self.has_gone_on = *event == RunEvent::Landed || self.has_gone_on && !moves;
                // A loop that belongs to no task is known by its place in the plan alone.
                if let RunEvent::GroupsPlanned { groups } = event {
                    for loop_id in groups.iter().flatten() {
                        self.loops.entry(loop_id.clone()).or_default();
                    }
                }
                if let Some((policy, _)) = &self.under {
                    let machine = std::mem::take(&mut self.machine);
                    self.machine = group::step(machine, event.clone(), policy).0;
                }
            }
            Fact::Loop(loop_id, LoopFact::Governed { policy }) => {
                let same = self.given.take().filter(|given| **given == **policy);
                self.given = same.or_else(|| Some(Arc::new((**policy).clone())));
                self.loops.entry(loop_id.clone()).or_default().policy.clone_from(&self.given);
            }
            Fact::Loop(loop_id, fact) => {
                self.note_landed(loop_id, fact);
                let run_policy = self.under.as_ref().map(|(_, policy)| policy);
                self.loops.entry(loop_id.clone()).or_default().take(fact, recorded.at, run_policy);
            }
        }
    }

    fn note_landed(&mut self, loop_id: &LoopId, fact: &LoopFact) {
        let LoopFact::Moved(Event::LandingEnded { report: LandReport::Landed { commit }, .. }) = fact else {
            return;
        };
        // What a person merges goes elsewhere.
        if self.policy(loop_id).is_some_and(|policy| policy.workflow.landing != Landing::None) {
            self.landed.insert(loop_id.clone(), commit.clone());
            self.last_landed = Some(commit.clone());
        }
    }

    /// The policy of a loop: its own, or the run's.
    pub fn policy(&self, loop_id: &LoopId) -> Option<&Policy> {
        let own = self.loops.get(loop_id).and_then(|worked| worked.policy.as_deref());
        own.or(self.under.as_ref().map(|(_, policy)| policy))
    }

    /// The heads of the loops that are landing.
    pub fn landing_heads(&self) -> Vec<Commit> {
        let landing = |worked: &&Worked| matches!(worked.state.stage, Stage::Landing { .. });
        self.loops.values().filter(landing).map(|worked| worked.state.head.commit.clone()).collect()
    }

    pub fn run_policy(&self) -> Option<&RunPolicy> {
        self.under.as_ref().map(|(policy, _)| policy)
    }

    /// Whether the work of the run's tasks comes together on the run's branch.
    pub fn shares_a_branch(&self) -> bool {
        self.run_policy()
            .is_some_and(|policy| policy.landing != Landing::None || policy.arrangement == Arrangement::Chain)
    }

    /// Whether the run lands only after a review of its branch. Tasks of a run that was called off land by themselves.
    pub fn has_final_review(&self) -> bool {
        let is_off = self.machine.stage == RunStage::Done(RunOutcome::Cancelled);
        !is_off && self.shares_a_branch() && self.run_policy().is_some_and(|policy| policy.after)
    }
}

impl Worked {
    fn take(&mut self, fact: &LoopFact, at: Timestamp, run_policy: Option<&Policy>) {
        self.sessions.take(fact, &self.state);
        match fact {
            LoopFact::Added { task, title, branch } => {
                (self.task, self.title, self.branch) = (Some(*task), title.clone(), branch.clone());
            }
            LoopFact::Placed { base, worktree } => {
                self.place = Some(Place { base: base.clone(), worktree: worktree.clone() });
            }
            LoopFact::AttemptStarted { attempt, launch } => {
                self.launched.insert(*attempt, Launched { at, launch: launch.clone() });
            }
            LoopFact::Used { attempt, usage } => {
                self.usage.insert(*attempt, *usage);
            }
            LoopFact::Answered { answer: Planned::Tasks(tasks), .. } => self.tasks.clone_from(tasks),
            LoopFact::Answered { answer: Planned::Groups(groups), .. } => self.groups.clone_from(groups),
            // A policy is the board's to share.
            LoopFact::Governed { .. }
            | LoopFact::CheckpointReviewed { .. }
            | LoopFact::Session { .. }
            | LoopFact::Said { .. }
            | LoopFact::Noted { .. } => {}
            LoopFact::Moved(event) => {
                let own = self.policy.clone();
                if let Some(policy) = own.as_deref().or(run_policy) {
                    self.moved(event, at, policy);
                }
            }
        }
    }

    fn moved(&mut self, event: &Event, at: Timestamp, policy: &Policy) {
        if let Event::Started { .. } | Event::Imported { .. } = event {
            self.started = self.started.or(Some(at));
        }
        self.checkpoints += u32::from(matches!(event, Event::CheckpointEnded { .. }));
        if let Event::AttemptFailed { failure, .. } = event {
            self.last_failure = Some(failure.clone());
        } else if let Event::WorkEnded { .. } = event {
            self.last_failure = None;
        }
        if let Event::WorkEnded { attempt, .. } | Event::ReviewArrived { attempt, .. } = event {
            self.answered.insert(*attempt);
        }
        let next = machine::step(self.state.clone(), event.clone(), policy).0;
        if let Some(round) = self.closed_round(event, &next, policy) {
            self.last_round = Some(round);
        }
        if let Some(review) = said(event, &self.state, policy) {
            self.round.insert(review.reviewer.clone(), review);
        }
        // A panel that a person sends back to work keeps the answers it had; a new one begins without any, whoever
        // sat at the gate before it.
        if let Stage::Reviewing(panel) = &next.stage
            && !is_same_panel(panel, &self.state, &next)
        {
            let missing = panel.missing();
            self.round.retain(|name, _| panel.seats.contains_key(name) && !missing.contains(name));
        }
        self.note_research(event, &next);
        self.note_item(&next, policy);
        self.state = next;
    }

    /// The sessions as they are when this has happened; `state` is that of the event.
    pub fn sessions_after(&self, before: &[LoopFact], event: &Event, state: &Loop) -> Sessions {
        let mut sessions = self.sessions.clone();
        for fact in before {
            sessions.take(fact, &self.state);
        }
        sessions.take(&LoopFact::Moved(event.clone()), state);
        sessions
    }

    /// Why the last answer was refused, if the last attempt ended so.
    pub fn refused(&self) -> Option<String> {
        match &self.last_failure {
            Some(Failure::BadAnswer { message }) => Some(message.clone()),
            Some(_) | None => None,
        }
    }

    /// The same for an agent that is at the same job once more.
    pub fn refused_again(&self) -> Option<String> {
        let again = match &self.state.stage {
            Stage::Working { failures, .. } => *failures > 0,
            // Of several, nobody knows here whose failure was the last.
            Stage::Fixing { fixes, .. } => matches!(fixes.as_slice(), [one] if one.failures > 0),
            Stage::Queued
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::Combining { .. }
            | Stage::AwaitingLanding { .. }
            | Stage::Landing { .. }
            | Stage::Waiting { .. }
            | Stage::Done(_) => false,
        };
        self.refused().filter(|_| again)
    }

    /// Why a reviewer's last answer about the commit at hand could not be read, if that is how it ended.
    pub fn unreadable(&self, job: &Job) -> Option<Inconclusive> {
        let JobKind::Review { reviewer, commit, .. } = &job.kind else { return None };
        let last = self.last_round.as_ref().filter(|round| round.commit == *commit);
        let earlier = || last?.reviews.iter().find(|review| review.reviewer == *reviewer);
        match &self.round.get(reviewer).or_else(earlier)?.verdict {
            Verdict::Inconclusive(Inconclusive::Missing(_))
            | Verdict::Approved
            | Verdict::ApprovedWithMinor
            | Verdict::ChangesRequested
            | Verdict::NeedsDiscussion => None,
            Verdict::Inconclusive(why) => Some(why.clone()),
        }
    }

    /// Whoever brings together what helpers found must know which of them came back.
    fn note_research(&mut self, event: &Event, next: &Loop) {
        if let (Event::WorkEnded { attempt, .. }, Stage::Researching { .. }) = (event, &self.state.stage)
            && self.state.runs(*attempt)
        {
            self.researched.push(*attempt);
        }
        if (next.at.pass, next.at.phase) != (self.state.at.pass, self.state.at.phase) {
            self.researched.clear();
        }
    }

    /// What is reviewed item by item is counted from where its item began.
    fn note_item(&mut self, next: &Loop, policy: &Policy) {
        let item = |one: &Loop| {
            let phase = policy.workflow.phases.get(one.at.phase);
            phase.filter(|phase| phase.per_item).map(|_| (one.at.pass, one.at.item))
        };
        let (before, now) = (item(&self.state), item(next));
        if now.is_none() || before != now {
            self.item_began = now.map(|_| next.head.commit.clone());
        }
    }

    /// The round that an event brings to its end, if it does.
    pub fn closed_round(&self, event: &Event, next: &Loop, policy: &Policy) -> Option<Round> {
        let Stage::Reviewing(panel) = &self.state.stage else { return None };
        if is_same_panel(panel, next, &self.state) {
            return None;
        }
        let mut answers = self.round.clone();
        if let Some(review) = said(event, &self.state, policy) {
            answers.insert(review.reviewer.clone(), review);
        }
        let position = self.state.at;
        Some(Round {
            pass: position.pass,
            phase: position.phase,
            cycle: self.state.tally.cycle,
            commit: panel.commit.clone(),
            reviews: answers.into_values().collect(),
        })
    }
}

/// What a reviewer who is waited for says with this event; one that failed says that it could not.
fn said(event: &Event, state: &Loop, policy: &Policy) -> Option<Review> {
    let attempt = event.ends_attempt()?;
    if let Event::ReviewArrived { review, .. } = event {
        return state.runs(attempt).then(|| (**review).clone());
    }
    let (Event::AttemptFailed { failure, .. }, Stage::Reviewing(panel)) = (event, &state.stage) else {
        return None;
    };
    let is_it = |seat: &Seat| matches!(seat, Seat::Out { slot, .. } if slot.attempt() == Some(attempt));
    let (name, _) = panel.seats.iter().find(|(_, seat)| is_it(seat))?;
    let kind = policy.workflow.reviewers.get(name).map_or(ReviewerKind::General, |reviewer| reviewer.kind);
    Some(Review::inconclusive(name.clone(), kind, Inconclusive::Missing(failure.to_string())))
}

/// Whether `other` sits in the same round as `this`, whose panel is given.
fn is_same_panel(panel: &Panel, other: &Loop, this: &Loop) -> bool {
    let Stage::Reviewing(now) = &other.stage else { return false };
    let same_place = other.at == this.at && other.tally.cycle == this.tally.cycle;
    same_place && now.commit == panel.commit && now.scope == panel.scope
}
