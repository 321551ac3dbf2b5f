//! Explores every reachable state of a policy, and checks the invariants at each step.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use signoff_core::command::refusal_findings;
use signoff_core::ids::{AttemptId, Commit, FindingId, QuestionId, ReviewerName};
use signoff_core::machine::{
    AttemptFailure, AttemptLoss, AttemptSlot, CheckReport, Choice, Effect, Event, FinalVerdict, Head, Job, JobKind,
    LandingReport, LimitPlan, Loop, Outcome, PauseReason, Policy, ReviewScope, Stage, WorkReport, outstanding, step,
};
use signoff_core::review::{Review, ReviewedRevision, Severity, Verdict};
use signoff_core::workflow::{Completion, PhaseKind, Role};
use strum::VariantArray as _;

use crate::machine::builders;
use crate::machine::state_key::KeyWriter;

/// How many disturbances and repetitions one path may contain, in addition to the answers of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathBounds {
    /// Lost attempts, rate limits, pauses, foreign commits.
    pub disturbances: u8,
    /// Answers and commands of a person that repeat a part of the loop.
    pub repeats: u8,
}

/// A state, with facts about the path to it.
#[derive(Debug, Clone)]
pub struct Node {
    pub state: Loop,
    pub bounds: PathBounds,
    /// The commit that each reviewer last approved in a full, readable review.
    pub approved: BTreeMap<ReviewerName, Commit>,
    /// Findings that arrived during a panel review, with the number of that panel.
    pub late: BTreeMap<FindingId, u32>,
    /// The newest attempt that has run.
    pub newest: AttemptId,
    pub parent: Option<(usize, Event)>,
}

pub struct Explored {
    pub nodes: Vec<Node>,
    pub edges: Vec<(usize, usize)>,
    pub steps: usize,
}

impl Explored {
    /// The events that led to a node.
    pub fn path(&self, mut index: usize) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some((parent, event)) = &self.nodes[index].parent {
            events.push(event.clone());
            index = *parent;
        }
        events.reverse();
        events
    }
}

/// Visits every state. Calls `check` once for each step.
pub fn explore(policy: &Policy, bounds: PathBounds, check: impl Fn(&LoopStep)) -> Explored {
    let first = Node {
        state: Loop::default(),
        bounds,
        approved: BTreeMap::new(),
        late: BTreeMap::new(),
        newest: AttemptId(0),
        parent: None,
    };
    let mut known = HashMap::from([(key(&first), 0)]);
    let mut explored = Explored { nodes: vec![first], edges: Vec::new(), steps: 0 };
    let mut queue = VecDeque::from([0]);
    while let Some(index) = queue.pop_front() {
        let outstanding = outstanding(&explored.nodes[index].state, policy);
        for (event, cost) in events(&explored.nodes[index], &outstanding, policy) {
            let node = &explored.nodes[index];
            let Some(bounds) = cost.deduct_from(node.bounds) else { continue };
            let (state, effects) = step(node.state.clone(), event.clone(), policy);
            explored.steps += 1;
            let outstanding = outstanding.as_slice();
            check(&LoopStep { before: node, outstanding, event: &event, cost, after: &state, effects: &effects });
            if state == node.state {
                continue;
            }
            let approved = approvals(node, &event);
            let late = late(node, &event, &state);
            let newest = running(&state).into_iter().max().map_or(node.newest, |attempt| attempt.max(node.newest));
            let next = Node { state, bounds, approved, late, newest, parent: Some((index, event)) };
            let target = *known.entry(key(&next)).or_insert_with(|| {
                explored.nodes.push(next);
                queue.push_back(explored.nodes.len() - 1);
                explored.nodes.len() - 1
            });
            explored.edges.push((index, target));
        }
    }
    explored
}

/// The attempts that run in a state.
pub fn running(machine: &Loop) -> BTreeSet<AttemptId> {
    machine.slots().into_iter().filter_map(AttemptSlot::attempt).collect()
}

/// One step, as passed to the checks of invariants.
pub struct LoopStep<'a> {
    pub before: &'a Node,
    /// What the state before waits for.
    pub outstanding: &'a [Effect],
    pub event: &'a Event,
    pub cost: Cost,
    pub after: &'a Loop,
    pub effects: &'a [Effect],
}

/// How an event counts against the bounds of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    Free,
    Disturbance,
    Repeat,
    /// The event is invalid in this state and must change nothing.
    Invalid,
}

impl Cost {
    fn deduct_from(self, bounds: PathBounds) -> Option<PathBounds> {
        let PathBounds { disturbances, repeats } = bounds;
        match self {
            Self::Free | Self::Invalid => Some(bounds),
            Self::Disturbance => disturbances.checked_sub(1).map(|disturbances| PathBounds { disturbances, repeats }),
            Self::Repeat => repeats.checked_sub(1).map(|repeats| PathBounds { disturbances, repeats }),
        }
    }
}

/// Two states with the same key behave the same.
fn key(node: &Node) -> u128 {
    let mut key = KeyWriter::default();
    key.write(&node.state);
    key.write(&[node.bounds.disturbances, node.bounds.repeats]);
    for (name, commit) in &node.approved {
        key.write(name);
        key.write_commit(commit.as_str());
    }
    key.finish()
}

/// All possible next events.
fn events(node: &Node, outstanding: &[Effect], policy: &Policy) -> Vec<(Event, Cost)> {
    let machine = &node.state;
    let free = |events: Vec<Event>| events.into_iter().map(|event| (event, Cost::Free));
    let mut all: Vec<(Event, Cost)> = Vec::new();
    if machine.base.is_none() {
        return vec![(Event::BaseSet { tree: builders::head(0).tree }, Cost::Free)];
    }
    if machine.stage == Stage::Queued {
        all.push((Event::Started { head: builders::head(0) }, Cost::Free));
    }
    for effect in outstanding {
        match effect {
            Effect::Spawn(job) => {
                all.extend(free(reports(machine, job, policy)));
                all.extend(disturbances(job));
                all.extend(again(job, policy));
            }
            Effect::Ask(question) => {
                all.extend(question.choices.iter().map(|choice| answer(question.id, *choice)));
                let refused = Choice::VARIANTS.iter().copied().filter(|choice| !question.choices.contains(choice));
                let late = answered(QuestionId(99), Choice::Stop);
                let invalid_events = refused.map(|choice| answered(question.id, choice)).chain([late]);
                all.extend(invalid_events.map(|event| (event, Cost::Invalid)));
            }
            Effect::Wait { reason: PauseReason::Checkpoint } => all.extend(free(checkpoint_results())),
            Effect::Wait { reason } => all.push((Event::Resumed { reason: *reason }, Cost::Free)),
            Effect::AwaitLanding => all.push((Event::LandingGranted, Cost::Free)),
            Effect::Kill { .. } | Effect::Finish(_) => unreachable!("never outstanding"),
        }
    }
    if machine.checkpoint.is_some() {
        all.extend(free(checkpoint_results()));
    }
    all.extend(always(machine));
    all.extend(workflow_specific_events(policy));
    all.extend(invalid_events(machine, outstanding, policy).into_iter().map(|event| (event, Cost::Invalid)));
    all
}

/// The possible results of a checkpoint review: no findings, or one of the gate's reviewer.
fn checkpoint_results() -> Vec<Event> {
    let finding = builders::finding("w.rs", Severity::Important);
    let findings = vec![signoff_core::review::Finding { sources: vec!["general".into()], ..finding }];
    vec![
        Event::CheckpointEnded { findings: vec![], number: Some(1) },
        Event::CheckpointEnded { findings, number: Some(1) },
    ]
}

fn next_head(machine: &Loop) -> Head {
    let number: u32 = machine.head.commit.as_str().trim_start_matches('c').parse().unwrap_or(0);
    builders::head(number + 1)
}

/// A commit that reverts all changes.
fn reverting_head(machine: &Loop) -> Head {
    Head { tree: builders::head(0).tree, ..next_head(machine) }
}

fn reports(machine: &Loop, job: &Job, policy: &Policy) -> Vec<Event> {
    let attempt = job.attempt;
    let (same, changed, reverted) = (machine.head.clone(), next_head(machine), reverting_head(machine));
    let work = |report| Event::WorkEnded { attempt, report };
    let failed = Event::AttemptFailed { attempt, failure: AttemptFailure::Exit { code: 1 } };
    match &job.kind {
        JobKind::Work { .. } if policy.workflow.completion == Completion::Marker => vec![
            work(WorkReport::Complete { head: changed.clone() }),
            work(WorkReport::Complete { head: reverted }),
            work(WorkReport::Incomplete { head: changed }),
            work(WorkReport::Stuck { head: same, reason: "no way on".into() }),
            failed,
        ],
        JobKind::Work { role: Role::Implement | Role::Simplify, .. } => vec![
            work(WorkReport::Complete { head: changed }),
            work(WorkReport::Complete { head: reverted }),
            work(WorkReport::NoWorkLeft { head: same }),
            failed,
        ],
        JobKind::Work { .. } => vec![work(WorkReport::Complete { head: changed }), failed],
        JobKind::Research { .. } => vec![work(WorkReport::Complete { head: same }), failed],
        JobKind::Fix { parallel, .. } => {
            let mut reports = vec![work(WorkReport::Complete { head: changed }), failed];
            if !parallel {
                reports.push(work(WorkReport::Complete { head: same }));
                reports.push(work(WorkReport::Complete { head: reverted }));
            }
            reports
        }
        JobKind::Check => vec![
            Event::CheckEnded { attempt, report: CheckReport::Passed },
            Event::CheckEnded { attempt, report: CheckReport::Failed { findings: vec![check_finding()] } },
            Event::CheckEnded { attempt, report: CheckReport::NothingToCheck },
            failed,
        ],
        JobKind::Review { reviewer, .. } => {
            let name = reviewer.as_str();
            let elsewhere = Review {
                judged: ReviewedRevision { commit: Some("elsewhere".into()), diff_digest: None },
                ..builders::approves(name)
            };
            let answers = [
                builders::approves(name),
                builders::objects(name, &["x.rs"]),
                builders::objects(name, &["x.rs", "y.rs"]),
                builders::discusses(name),
                builders::unreadable(name),
                elsewhere,
            ];
            let arrived = |review: Review| Event::ReviewArrived { attempt, review: Box::new(review) };
            answers.into_iter().map(arrived).chain([failed]).collect()
        }
        JobKind::Combine { .. } => vec![
            Event::FixesCombined { attempt, head: changed.clone() },
            Event::FixesOverlapped { attempt, kept: vec![0], head: changed },
            failed,
        ],
        JobKind::Land => vec![
            Event::LandingEnded { attempt, report: LandingReport::Landed { commit: "m".into() } },
            Event::LandingEnded {
                attempt,
                report: LandingReport::SentBack { head: changed, findings: vec![landing_finding()] },
            },
            failed,
        ],
    }
}

fn check_finding() -> signoff_core::review::Finding {
    signoff_core::review::Finding { sources: vec!["checks".into()], ..builders::finding("test.rs", Severity::Critical) }
}

fn landing_finding() -> signoff_core::review::Finding {
    signoff_core::review::Finding { sources: vec!["landing".into()], ..builders::finding("z.rs", Severity::Critical) }
}

fn disturbances(job: &Job) -> Vec<(Event, Cost)> {
    let attempt = job.attempt;
    let until = jiff_epoch();
    [
        Event::AttemptLost { attempt, loss: AttemptLoss::Crashed },
        Event::RateLimited { attempt, plan: LimitPlan::WaitUntil(until), error: None, next_agent: None },
        Event::BudgetReached,
    ]
    .into_iter()
    .map(|event| (event, Cost::Disturbance))
    .collect()
}

/// Fallback agents and lost sessions, which behave the same in every workflow.
fn again(job: &Job, policy: &Policy) -> Vec<(Event, Cost)> {
    let attempt = job.attempt;
    let all = [
        Event::RateLimited { attempt, plan: LimitPlan::FallBack, error: None, next_agent: None },
        Event::AttemptLost { attempt, loss: AttemptLoss::SessionGone },
    ];
    let is_task_preset = policy.workflow.name == "task";
    all.into_iter().filter(|_| is_task_preset).map(|event| (event, Cost::Disturbance)).collect()
}

fn jiff_epoch() -> jiff::Timestamp {
    jiff::Timestamp::UNIX_EPOCH
}

fn answered(question: QuestionId, choice: Choice) -> Event {
    Event::PersonAnswered { question, choice, by: "ann".into() }
}

fn answer(question: QuestionId, choice: Choice) -> (Event, Cost) {
    let cost = match choice {
        Choice::Retry | Choice::Continue | Choice::Restart | Choice::Fix => Cost::Repeat,
        Choice::Proceed | Choice::Skip | Choice::Stop => Cost::Free,
    };
    (answered(question, choice), cost)
}

fn always(machine: &Loop) -> Vec<(Event, Cost)> {
    let edited = |verdict| Event::PersonEdited {
        verdict,
        by: "ann".into(),
        reason: "enough".into(),
        head: None,
        findings: refusal_findings(verdict, "ann", "enough"),
    };
    vec![
        (Event::Cancelled { by: "ann".into() }, Cost::Free),
        (Event::PersonRetried { by: "ann".into() }, Cost::Repeat),
        (edited(FinalVerdict::Approved), Cost::Repeat),
        (edited(FinalVerdict::ChangesRequested), Cost::Repeat),
        (Event::HeadMoved { head: next_head(machine) }, Cost::Disturbance),
        (Event::LandingGranted, Cost::Repeat),
    ]
}

/// Events that can occur at any time, in the workflows that use them.
fn workflow_specific_events(policy: &Policy) -> Vec<(Event, Cost)> {
    let workflow = &policy.workflow;
    let checkpoint = workflow.checkpoint_interval.map(|_| Event::CheckpointBegan { number: 1 });
    let per_item = workflow.phases.iter().any(|phase| phase.per_item);
    let items = per_item.then_some(Event::ItemsPlanned { count: 2 });
    checkpoint.into_iter().chain(items).map(|event| (event, Cost::Disturbance)).collect()
}

/// Invalid reports: from an attempt that does not exist, and of the wrong kind from a running one.
fn invalid_events(machine: &Loop, outstanding: &[Effect], policy: &Policy) -> Vec<Event> {
    let mut all = every_report(builders::UNKNOWN_ATTEMPT, machine);
    for effect in outstanding {
        if let Effect::Spawn(job) = effect {
            let fits = reports(machine, job, policy);
            let kind = std::mem::discriminant::<Event>;
            let wrong = every_report(job.attempt, machine)
                .into_iter()
                .filter(|event| !fits.iter().any(|fit| kind(fit) == kind(event)));
            all.extend(wrong);
        }
    }
    all
}

fn every_report(attempt: AttemptId, machine: &Loop) -> Vec<Event> {
    let head = next_head(machine);
    vec![
        Event::WorkEnded { attempt, report: WorkReport::Complete { head: head.clone() } },
        Event::CheckEnded { attempt, report: CheckReport::Passed },
        Event::ReviewArrived { attempt, review: Box::new(builders::approves("general")) },
        Event::FixesCombined { attempt, head: head.clone() },
        Event::FixesOverlapped { attempt, kept: vec![], head },
        Event::LandingEnded { attempt, report: LandingReport::Landed { commit: "m".into() } },
    ]
}

/// The approvals of each reviewer, derived from the events alone.
fn approvals(node: &Node, event: &Event) -> BTreeMap<ReviewerName, Commit> {
    let mut approved = node.approved.clone();
    let (Event::ReviewArrived { attempt, review }, Stage::Reviewing(panel)) = (event, &node.state.stage) else {
        return approved;
    };
    let running = node.state.runs(*attempt);
    let bound = review.judged.commit.as_ref().is_none_or(|commit| *commit == panel.commit);
    if !running {
        return approved;
    }
    approved.remove(&review.reviewer);
    if review.verdict == Verdict::Approved && bound && panel.scope == ReviewScope::Full {
        approved.insert(review.reviewer.clone(), panel.commit.clone());
    }
    approved
}

/// The findings of checkpoint reviews, with the number of the panel at the time.
fn late(node: &Node, event: &Event, after: &Loop) -> BTreeMap<FindingId, u32> {
    let mut late = node.late.clone();
    if let Event::CheckpointEnded { findings, .. } = event {
        late.extend(findings.iter().map(|finding| (finding.id.clone(), after.counters.reviews)));
    }
    late
}

/// The reviewers whose approval decides the outcome of this workflow.
pub fn last_panel(policy: &Policy) -> Vec<ReviewerName> {
    let mut gates = policy.workflow.phases.iter().rev().filter_map(|phase| match &phase.kind {
        PhaseKind::Gate(gate_policy) if gate_policy.gate.enabled => Some(gate_policy.gate.reviewers.clone()),
        PhaseKind::Gate(_) | PhaseKind::Check(_) | PhaseKind::Agent { .. } => None,
    });
    gates.next().unwrap_or_default()
}

/// The outcome of a state that is done or about to land.
pub fn outcome(machine: &Loop) -> Option<&Outcome> {
    match &machine.stage {
        Stage::Done(ending) => Some(&ending.outcome),
        Stage::AwaitingLanding { outcome, .. } | Stage::Landing { outcome, .. } => Some(outcome),
        Stage::Queued
        | Stage::Working { .. }
        | Stage::Researching { .. }
        | Stage::Checking { .. }
        | Stage::Reviewing(_)
        | Stage::Fixing { .. }
        | Stage::Combining { .. }
        | Stage::Waiting { .. } => None,
    }
}
