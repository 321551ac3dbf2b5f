//! The state of one loop, computed from its events, and the transition that one event makes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;

use super::RunInfo;
use crate::ids::{AttemptId, Commit, LoopId, QuestionId, ReviewerName, TaskId};
use crate::machine::{
    self, AttemptFailure, Event, Fix, Job, JobKind, LandingReport, Loop, LoopCounters, Panel, Policy, Stage,
};
use crate::review::{Finding, Inconclusive, Review, ReviewerKind, Usage, Verdict};
use crate::session::Sessions;
use crate::source::planner::{PlannedTask, PlannerAnswer};
use crate::task::TaskSpec;
use crate::wire::{Fact, Launch, LoopFact, RecordedFact};

/// The state of one loop. Each event changes a copy of it, so what is large is shared between the copies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoopState {
    /// Whether the log has events of this loop. A planned loop has none yet.
    pub is_recorded: bool,
    pub task: Option<TaskId>,
    pub title: String,
    pub branch: String,
    pub workspace: Option<Workspace>,
    pub started: Option<Timestamp>,
    pub machine: Arc<Loop>,
    pub policy: Option<Arc<Policy>>,
    /// Usage of each attempt, as far as it is recorded.
    pub usage: Arc<BTreeMap<AttemptId, Usage>>,
    /// The attempts whose start is recorded.
    pub attempt_starts: Arc<AttemptStarts>,
    /// The attempts that ended with an answer or with work.
    pub answered: Arc<BTreeSet<AttemptId>>,
    /// The answers of the current round, parsable or not.
    pub round: BTreeMap<ReviewerName, Arc<RoundAnswer>>,
    /// The last finished round.
    pub last_round: Option<Arc<ReviewRound>>,
    /// The answers of the planners.
    pub tasks: Vec<PlannedTask>,
    pub groups: Vec<Vec<String>>,
    /// Why the last attempt failed; reset when work succeeds.
    pub last_failure: Option<AttemptFailure>,
    /// Number of checkpoint reviews.
    pub checkpoints: u32,
    /// The finished researchers of the current phase.
    pub researched: Vec<AttemptId>,
    /// The head when the current plan item was started.
    pub item_start: Option<Commit>,
    pub sessions: Arc<Sessions>,
    /// The commit of the last landing.
    pub landed_commit: Option<Commit>,
    /// The displayed number of the open question.
    pub question: Option<QuestionId>,
    /// The last recorded line of an agent.
    pub last_line: String,
    /// When the loop last started something new.
    pub since: Option<Timestamp>,
}

/// The start of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptStart {
    pub at: Timestamp,
    pub launch: Launch,
}

/// The starts of a loop's attempts.
pub type AttemptStarts = BTreeMap<AttemptId, Arc<AttemptStart>>;

/// The worktree of a loop, and the base of its diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    pub base: Commit,
    pub worktree: String,
}

/// The answer of one reviewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundAnswer {
    pub attempt: AttemptId,
    /// A failed reviewer counts as inconclusive.
    pub review: Review,
}

/// The answers of one panel of reviewers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewRound {
    pub pass: u32,
    pub phase: usize,
    pub cycle: u32,
    pub commit: Commit,
    pub reviews: Vec<Review>,
}

impl ReviewRound {
    /// The findings that block the gate and that no reviewer reported in this round.
    pub fn still_open(&self, mut before: Loop, after: &Loop, policy: &Policy) -> Vec<Finding> {
        before.ledger = after.ledger.clone();
        let is_same =
            |one: &Finding, other: &Finding| (&one.file, &one.description) == (&other.file, &other.description);
        let is_reported =
            |known: &Finding| self.reviews.iter().flat_map(|one| &one.findings).any(|one| is_same(one, known));
        let open = machine::blocking(&before, policy).into_iter().map(|entry| &entry.finding);
        open.filter(|finding| !is_reported(finding)).cloned().collect()
    }
}

impl LoopState {
    /// Applies an event. `question_count` is the number of questions asked in the run.
    pub(super) fn apply(
        &mut self,
        fact: &LoopFact,
        at: Timestamp,
        run_policy: Option<&Policy>,
        question_count: &mut u64,
    ) {
        self.is_recorded = true;
        if let LoopFact::Session { .. } | LoopFact::Transitioned(_) = fact {
            Arc::make_mut(&mut self.sessions).apply(fact, &self.machine, &self.attempt_starts);
        }
        match fact {
            LoopFact::Added { task, title, branch } => {
                (self.task, self.title, self.branch) = (Some(*task), title.clone(), branch.clone());
                self.since = Some(at);
            }
            LoopFact::WorkspaceCreated { base, worktree } => {
                self.workspace = Some(Workspace { base: base.clone(), worktree: worktree.clone() });
            }
            LoopFact::AttemptStarted { attempt, launch } => {
                Arc::make_mut(&mut self.attempt_starts)
                    .insert(*attempt, Arc::new(AttemptStart { at, launch: launch.clone() }));
            }
            LoopFact::Used { attempt, usage } => {
                Arc::make_mut(&mut self.usage).insert(*attempt, *usage);
            }
            LoopFact::Answered { answer: PlannerAnswer::Tasks(tasks), .. } => self.tasks.clone_from(tasks),
            LoopFact::Answered { answer: PlannerAnswer::Groups(groups), .. } => self.groups.clone_from(groups),
            LoopFact::AgentOutput { line, .. } => self.last_line.clone_from(line),
            // `RunState` applies policies, to share equal ones.
            LoopFact::PolicySet { .. }
            | LoopFact::CheckpointReviewed { .. }
            | LoopFact::Session { .. }
            | LoopFact::Noted { .. } => {}
            LoopFact::Transitioned(event) => {
                let own = self.policy.clone();
                if let Some(policy) = own.as_deref().or(run_policy) {
                    self.apply_event(event, at, policy, question_count);
                }
            }
        }
    }

    fn apply_event(&mut self, event: &Event, at: Timestamp, policy: &Policy, question_count: &mut u64) {
        if let Event::Started { .. } | Event::Imported { .. } = event {
            self.started = self.started.or(Some(at));
        }
        if let Event::LandingEnded { report: LandingReport::Landed { commit }, .. } = event {
            self.landed_commit = Some(commit.clone());
        }
        self.checkpoints += u32::from(matches!(event, Event::CheckpointEnded { .. }));
        if let Event::AttemptFailed { failure, .. } = event {
            self.last_failure = Some(failure.clone());
        } else if let Event::WorkEnded { .. } = event {
            self.last_failure = None;
        }
        if let Event::WorkEnded { attempt, .. } | Event::ReviewArrived { attempt, .. } = event {
            Arc::make_mut(&mut self.answered).insert(*attempt);
        }
        let mut next = Loop::clone(&self.machine);
        machine::apply(&mut next, event.clone(), policy);
        if let Some(round) = self.closed_round(event, &next, policy) {
            self.last_round = Some(Arc::new(round));
        }
        if let Some(answer) = answer_in_event(event, &self.machine, policy) {
            self.round.insert(answer.review.reviewer.clone(), Arc::new(answer));
        }
        // A panel that a person sends back to work keeps its answers. A new panel starts without answers, even for a
        // reviewer that sat at the previous gate.
        if let Stage::Reviewing(panel) = &next.stage
            && !is_same_panel(panel, &self.machine, &next)
        {
            let missing = panel.missing();
            self.round.retain(|name, _| panel.reviewers.contains_key(name) && !missing.contains(name));
        }
        self.track_research(event, &next);
        self.track_item(&next, policy);
        self.track_question(&next, question_count);
        if activity_key(&next) != activity_key(&self.machine) {
            self.since = Some(at);
        }
        self.machine = Arc::new(next);
    }

    /// Numbers a new question within the run.
    fn track_question(&mut self, next: &Loop, question_count: &mut u64) {
        let now = next.open_question();
        if now != self.machine.open_question() {
            *question_count += u64::from(now.is_some());
            self.question = now.map(|_| QuestionId(*question_count));
        }
    }

    /// The landed commit, if the loop is still landed.
    pub fn current_landing(&self) -> Option<&Commit> {
        self.landed_commit.as_ref().filter(|_| self.machine.landed)
    }

    /// The sum over all attempts.
    pub fn total_usage(&self) -> Usage {
        self.usage.values().fold(Usage::default(), |sum, one| sum.plus(*one))
    }

    /// The sessions after `before` and `event` are applied; `state` is the state that `event` applies to.
    pub fn sessions_after(&self, before: &[LoopFact], event: &Event, state: &Loop) -> Sessions {
        let mut sessions = Sessions::clone(&self.sessions);
        for fact in before {
            sessions.apply(fact, &self.machine, &self.attempt_starts);
        }
        sessions.apply(&LoopFact::Transitioned(event.clone()), state, &self.attempt_starts);
        sessions
    }

    /// Why the last answer was rejected, if the last attempt failed that way.
    pub fn rejected_answer(&self) -> Option<String> {
        if let Some(AttemptFailure::BadAnswer { message }) = &self.last_failure { Some(message.clone()) } else { None }
    }

    /// Like `rejected_answer`, only for an agent that retries the same job.
    pub fn rejected_answer_of_retry(&self) -> Option<String> {
        // With several fixes it is unknown which of them failed last.
        let is_retried = |fixes: &[Fix]| matches!(fixes, [one] if one.failures > 0);
        let stage = &self.machine.stage;
        let again = matches!(stage, Stage::Working { failures, .. } if *failures > 0)
            || matches!(stage, Stage::Fixing { fixes, .. } if is_retried(fixes));
        self.rejected_answer().filter(|_| again)
    }

    /// Why a reviewer's last answer about this commit could not be parsed.
    pub fn unreadable(&self, job: &Job) -> Option<Inconclusive> {
        let JobKind::Review { reviewer, commit, .. } = &job.kind else { return None };
        let last = self.last_round.as_ref().filter(|round| round.commit == *commit);
        let earlier = || last?.reviews.iter().find(|review| review.reviewer == *reviewer);
        let Verdict::Inconclusive(why) =
            &self.round.get(reviewer).map(|answer| &answer.review).or_else(earlier)?.verdict
        else {
            return None;
        };
        (!matches!(why, Inconclusive::Missing(_))).then(|| why.clone())
    }

    /// Collects the finished researchers of a phase, whose reports the phase's agent gets.
    fn track_research(&mut self, event: &Event, next: &Loop) {
        if let (Event::WorkEnded { attempt, .. }, Stage::Researching { .. }) = (event, &self.machine.stage)
            && self.machine.runs(*attempt)
        {
            self.researched.push(*attempt);
        }
        if (next.position.pass, next.position.phase) != (self.machine.position.pass, self.machine.position.phase) {
            self.researched.clear();
        }
    }

    /// Records where the current plan item starts: its reviewers see the diff from there.
    fn track_item(&mut self, next: &Loop, policy: &Policy) {
        let item = |one: &Loop| {
            let phase = policy.workflow.phases.get(one.position.phase);
            phase.filter(|phase| phase.per_item).map(|_| (one.position.pass, one.position.item))
        };
        let (before, now) = (item(&self.machine), item(next));
        if now.is_none() || before != now {
            self.item_start = now.map(|_| next.head.commit.clone());
        }
    }

    /// The round that an event ends.
    pub fn closed_round(&self, event: &Event, next: &Loop, policy: &Policy) -> Option<ReviewRound> {
        let Stage::Reviewing(panel) = &self.machine.stage else { return None };
        if is_same_panel(panel, next, &self.machine) {
            return None;
        }
        let mut answers = self.round.clone();
        if let Some(answer) = answer_in_event(event, &self.machine, policy) {
            answers.insert(answer.review.reviewer.clone(), Arc::new(answer));
        }
        let position = self.machine.position;
        Some(ReviewRound {
            pass: position.pass,
            phase: position.phase,
            cycle: self.machine.counters.cycle,
            commit: panel.commit.clone(),
            reviews: answers.into_values().map(|answer| answer.review.clone()).collect(),
        })
    }
}

/// The answer in an event, if the loop waits for it.
fn answer_in_event(event: &Event, state: &Loop, policy: &Policy) -> Option<RoundAnswer> {
    let attempt = event.ends_attempt()?;
    let review = if let Event::ReviewArrived { review, .. } = event {
        state.runs(attempt).then(|| (**review).clone())?
    } else {
        let (Event::AttemptFailed { failure, .. }, Stage::Reviewing(panel)) = (event, &state.stage) else {
            return None;
        };
        let name = panel.reviewer_of(attempt)?;
        let kind = policy.workflow.reviewers.get(name).map_or(ReviewerKind::General, |reviewer| reviewer.kind);
        Review::inconclusive(name.clone(), kind, Inconclusive::Missing(failure.to_string()))
    };
    Some(RoundAnswer { attempt, review })
}

/// Whether `other` is in the same review round as `machine`, whose panel is given.
fn is_same_panel(panel: &Panel, other: &Loop, machine: &Loop) -> bool {
    let Stage::Reviewing(now) = &other.stage else { return false };
    let same_place = other.position == machine.position && other.counters.cycle == machine.counters.cycle;
    same_place && now.commit == panel.commit && now.scope == panel.scope
}

/// A key that changes when the loop starts something new. A single reviewer's answer does not change it.
fn activity_key(machine: &Loop) -> impl PartialEq + use<> {
    let LoopCounters { cycle, attempts, reviews, .. } = machine.counters;
    let outcome = if let Stage::Done(ending) = &machine.stage { ending.outcome.kind() } else { None };
    (std::mem::discriminant(&machine.stage), outcome, machine.position, (cycle, attempts, reviews))
}

/// One applied event, with the state of its run and of its loop before and after it.
///
/// The snapshots share their content with the run's state, so a transition is cheap to clone and to send to another
/// thread.
#[derive(Debug, Clone)]
pub struct Transition {
    pub before: Snapshot,
    pub event: Arc<RecordedFact>,
    pub after: Snapshot,
}

/// The parts of a run's state that one event can change.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub run: Arc<RunInfo>,
    /// The loop of the event; none for events of the run and of tasks, and before the loop exists.
    pub loop_state: Option<Arc<LoopState>>,
    /// The specification of the task of the event.
    pub(super) spec: Option<Arc<TaskSpec>>,
    /// The loops that the event plans.
    pub(super) planned: Vec<(LoopId, Arc<LoopState>)>,
    pub(super) question_count: u64,
}

/// An event of a loop's state machine, with the state of the machine before and after it.
#[derive(Debug, Clone, Copy)]
pub struct LoopTransition<'a> {
    pub before: &'a Loop,
    pub event: &'a Event,
    pub after: &'a Loop,
    pub policy: &'a Policy,
    /// How the attempt that this event ends was started.
    pub launch: Option<&'a Launch>,
}

/// The state machine of a loop without events.
static NEW_LOOP: LazyLock<Loop> = LazyLock::new(Loop::default);

impl Transition {
    /// The answers of a panel of reviewers after this event, if the event is one of them.
    pub fn round_with_answer(&self) -> Option<BTreeMap<ReviewerName, Arc<RoundAnswer>>> {
        let step = self.loop_transition()?;
        let Stage::Reviewing(panel) = &step.before.stage else { return None };
        let answer = answer_in_event(step.event, step.before, step.policy)?;
        let name = panel.reviewer_of(answer.attempt)?.clone();
        let mut round = self.before.loop_state.as_ref().map(|state| state.round.clone()).unwrap_or_default();
        round.insert(name, Arc::new(answer));
        Some(round)
    }

    /// The transition of the loop's state machine; none for events that do not reach it.
    pub fn loop_transition(&self) -> Option<LoopTransition<'_>> {
        let Fact::Loop(_, LoopFact::Transitioned(event)) = &self.event.fact else { return None };
        let after = self.after.loop_state.as_deref()?;
        let started = event.ends_attempt().and_then(|attempt| after.attempt_starts.get(&attempt));
        Some(LoopTransition {
            before: self.before.loop_state.as_deref().map_or(&*NEW_LOOP, |before| &before.machine),
            event,
            after: &after.machine,
            policy: self.after.policy()?,
            launch: started.map(|start| &start.launch),
        })
    }
}

impl Snapshot {
    /// The policy of the loop: its own, or the run's.
    pub fn policy(&self) -> Option<&Policy> {
        let own = self.loop_state.as_ref().and_then(|state| state.policy.as_deref());
        own.or(self.run.policies.as_ref().map(|policies| &policies.workflow))
    }
}
