//! Explores every reachable state of a run, for any behaviour of its loops, and checks the invariants at each step.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use signoff_core::group::{LoopStatus, Run, RunEffect, RunEvent, RunPolicy, RunStage, step};
use signoff_core::ids::LoopId;
use signoff_core::machine::Outcome;
use signoff_core::workflow::{Landing, Scheduling};

use crate::fast_hash::FastHasher;

/// The run to explore: its policy, its plan, and how often loops may move backwards on one path.
#[derive(Debug, Clone)]
pub struct RunScenario {
    pub policy: RunPolicy,
    pub plan: Vec<Vec<LoopId>>,
    pub repeats: u8,
    pub checkpoints: bool,
    /// For slots: the number of tasks that can be picked.
    pub available_tasks: usize,
}

/// A state, with facts about the path to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    pub run: Run,
    pub repeats: u8,
    /// Whether a loop on the path failed. `stopped`: whether an agent reported that there are no more tasks.
    pub failed: bool,
    pub stopped: bool,
    /// The number of tasks that can still be picked.
    pub available_tasks: usize,
}

pub struct Explored {
    pub nodes: Vec<Node>,
    parents: Vec<Option<(usize, RunEvent)>>,
    /// All edges except those that cancel the run.
    pub edges: Vec<(usize, usize)>,
    pub steps: usize,
}

impl Explored {
    pub fn path(&self, mut index: usize) -> Vec<RunEvent> {
        let mut events = Vec::new();
        while let Some((parent, event)) = &self.parents[index] {
            events.push(event.clone());
            index = *parent;
        }
        events.reverse();
        events
    }
}

/// One step, as passed to the checks of invariants.
pub struct RunStep<'a> {
    pub scenario: &'a RunScenario,
    pub before: &'a Node,
    pub event: &'a RunEvent,
    pub fits: bool,
    pub after: &'a Node,
    pub effects: &'a [RunEffect],
}

pub fn explore(scenario: &RunScenario, check: impl Fn(&RunStep)) -> Explored {
    let RunScenario { repeats, available_tasks, .. } = *scenario;
    let first = Node { run: Run::default(), repeats, failed: false, stopped: false, available_tasks };
    let mut known = HashMap::from([(key(&first), 0)]);
    let mut explored = Explored { nodes: vec![first], parents: vec![None], edges: Vec::new(), steps: 0 };
    let mut queue = VecDeque::from([0]);
    while let Some(index) = queue.pop_front() {
        let before = explored.nodes[index].clone();
        for PossibleEvent { event, repeats, fits } in events(&before, scenario) {
            let Some(left) = before.repeats.checked_sub(u8::from(repeats)) else { continue };
            let (run, effects) = step(before.run.clone(), event.clone(), &scenario.policy);
            let after = observe_event(&before, &event, run, left);
            explored.steps += 1;
            check(&RunStep { scenario, before: &before, event: &event, fits, after: &after, effects: &effects });
            if after.run == before.run {
                continue;
            }
            let cancels = matches!(event, RunEvent::Cancelled { .. });
            let target = *known.entry(key(&after)).or_insert_with(|| {
                explored.nodes.push(after);
                explored.parents.push(Some((index, event)));
                queue.push_back(explored.nodes.len() - 1);
                explored.nodes.len() - 1
            });
            if !cancels {
                explored.edges.push((index, target));
            }
        }
    }
    explored
}

/// The hash of a node, which identifies it.
fn key(node: &Node) -> u128 {
    let mut hasher = FastHasher::default();
    node.hash(&mut hasher);
    hasher.finish_wide()
}

/// The next node: the state of the run, and what the explorer derives from the event alone.
fn observe_event(before: &Node, event: &RunEvent, run: Run, repeats: u8) -> Node {
    let Node { failed, stopped, available_tasks, .. } = *before;
    let mut node = Node { run, repeats, failed, stopped, available_tasks };
    match event {
        RunEvent::LoopStatusChanged { status, .. } => node.failed |= status.blocks(),
        RunEvent::PickingStopped => node.stopped = true,
        RunEvent::TaskPicked { .. } if before.run.picks > 0 => {
            node.available_tasks = before.available_tasks.saturating_sub(1)
        }
        RunEvent::Started
        | RunEvent::PreparationEnded { .. }
        | RunEvent::GroupsPlanned { .. }
        | RunEvent::TaskPicked { .. }
        | RunEvent::NothingToPick
        | RunEvent::TaskClosed { .. }
        | RunEvent::AttemptSpent { .. }
        | RunEvent::CheckpointReviewed { .. }
        | RunEvent::FinalReviewEnded { .. }
        | RunEvent::Landed
        | RunEvent::Cancelled { .. } => {}
    }
    node
}

/// A possible next event.
pub struct PossibleEvent {
    pub event: RunEvent,
    /// Whether it moves a loop backwards, and so counts against `repeats`.
    pub repeats: bool,
    /// Whether it is valid in the state. An invalid event must change nothing.
    pub fits: bool,
}

fn free(event: RunEvent) -> PossibleEvent {
    PossibleEvent { event, repeats: false, fits: true }
}

fn invalid(event: RunEvent) -> PossibleEvent {
    PossibleEvent { event, repeats: false, fits: false }
}

pub fn approved() -> Outcome {
    Outcome::Approved { commit: "c".into() }
}

fn events(node: &Node, scenario: &RunScenario) -> Vec<PossibleEvent> {
    let run = &node.run;
    let mut all = vec![free(RunEvent::Cancelled { by: "ann".into() })];
    match &run.stage {
        RunStage::Queued => all.push(free(RunEvent::Started)),
        RunStage::Preparing => {
            all.push(free(RunEvent::GroupsPlanned { groups: scenario.plan.clone() }));
            let failed = [Outcome::Failed, Outcome::Exhausted, Outcome::Cancelled];
            all.extend(failed.map(|outcome| free(RunEvent::PreparationEnded { outcome })));
        }
        RunStage::Reviewing => {
            let ends = [approved(), Outcome::CompletedWithIssues, Outcome::Failed, Outcome::Cancelled];
            all.extend(ends.map(|outcome| free(RunEvent::FinalReviewEnded { outcome })));
        }
        RunStage::Landing(_) => all.push(free(RunEvent::Landed)),
        RunStage::Working { .. } | RunStage::Blocked { .. } | RunStage::Done(_) => {}
    }
    if run.picks > 0 {
        all.push(free(RunEvent::NothingToPick));
        if node.available_tasks > 0 {
            let loop_id = LoopId::new(format!("p{}", node.available_tasks));
            all.push(free(RunEvent::TaskPicked { loop_id }));
        }
    }
    let closed = |loop_id: &LoopId| free(RunEvent::TaskClosed { loop_id: loop_id.clone() });
    all.extend(run.unclosed.iter().map(closed));
    if slots(scenario) && run.active() > 0 && !run.is_done() {
        all.push(free(RunEvent::PickingStopped));
    }
    for (loop_id, status) in &run.loops {
        let moves = moves(run, loop_id, status, scenario).into_iter().map(|(status, repeats)| PossibleEvent {
            event: RunEvent::LoopStatusChanged { loop_id: loop_id.clone(), status },
            repeats,
            fits: true,
        });
        all.extend(moves);
        if run.checkpoint.waits_for(loop_id) {
            all.push(free(RunEvent::CheckpointReviewed { loop_id: loop_id.clone() }));
        }
    }
    all.extend(invalid_events(node, scenario).into_iter().map(invalid));
    all
}

pub fn slots(scenario: &RunScenario) -> bool {
    scenario.policy.scheduling == Scheduling::Slots
}

/// The possible moves of a loop, and whether each moves it backwards.
fn moves(run: &Run, loop_id: &LoopId, status: &LoopStatus, scenario: &RunScenario) -> Vec<(LoopStatus, bool)> {
    let signed_off = match scenario.policy.landing {
        Landing::None => LoopStatus::Ended(approved()),
        Landing::Each => LoopStatus::Landing,
        Landing::Group => LoopStatus::Ready,
    };
    let accepted = match scenario.policy.landing {
        Landing::None => LoopStatus::Ended(Outcome::Accepted { by: "ann".into() }),
        Landing::Each | Landing::Group => signed_off.clone(),
    };
    let ended = |outcome| (LoopStatus::Ended(outcome), false);
    let mut moves = match status {
        LoopStatus::Queued if run.starting.contains(loop_id) => vec![(LoopStatus::Active, false)],
        LoopStatus::Queued => vec![(accepted, true)],
        LoopStatus::Active => vec![
            (signed_off, false),
            (LoopStatus::Waiting, false),
            ended(Outcome::Failed),
            (LoopStatus::Ended(Outcome::Exhausted), true),
        ],
        LoopStatus::AtCheckpoint => Vec::new(),
        LoopStatus::Waiting => vec![(LoopStatus::Active, false), ended(Outcome::Stuck)],
        LoopStatus::Ready if run.landing.as_ref() == Some(loop_id) => {
            vec![(LoopStatus::Landing, false), (LoopStatus::Active, true)]
        }
        LoopStatus::Ready => vec![(LoopStatus::Active, true)],
        LoopStatus::Landing => vec![ended(approved()), (LoopStatus::Active, true), ended(Outcome::Stuck)],
        LoopStatus::Ended(Outcome::Approved { .. }) => vec![(LoopStatus::Ended(Outcome::Discussion), true)],
        LoopStatus::Ended(Outcome::Cancelled) => vec![(accepted, true)],
        LoopStatus::Ended(Outcome::Accepted { .. }) => Vec::new(),
        LoopStatus::Ended(_) => vec![
            ended(Outcome::Cancelled),
            (LoopStatus::Active, true),
            (accepted, true),
            (LoopStatus::Ended(Outcome::Accepted { by: "ann".into() }), true),
        ],
    };
    if *status == LoopStatus::Active && scenario.checkpoints {
        moves.push((LoopStatus::AtCheckpoint, true));
    }
    if *status == LoopStatus::AtCheckpoint && run.checkpoint.waits_for(loop_id) {
        // The loop may report its review before the run receives the event.
        moves.push((LoopStatus::Active, false));
    }
    if !status.has_ended() {
        moves.push(ended(Outcome::Cancelled));
    }
    moves
}

fn invalid_events(node: &Node, scenario: &RunScenario) -> Vec<RunEvent> {
    let run = &node.run;
    let unknown_loop = || LoopId::new("unknown");
    let mut all = vec![
        RunEvent::LoopStatusChanged { loop_id: unknown_loop(), status: LoopStatus::Active },
        RunEvent::CheckpointReviewed { loop_id: unknown_loop() },
        RunEvent::TaskClosed { loop_id: unknown_loop() },
        RunEvent::AttemptSpent { since_checkpoint: [(unknown_loop(), 99)].into() },
        RunEvent::GroupsPlanned { groups: vec![vec!["a".into()], vec!["a".into()]] },
    ];
    if run.stage != RunStage::Queued {
        all.push(RunEvent::Started);
    }
    if run.stage != RunStage::Preparing {
        all.push(RunEvent::GroupsPlanned { groups: vec![vec!["x".into(), "y".into()]] });
        all.push(RunEvent::GroupsPlanned { groups: Vec::new() });
        all.push(RunEvent::PreparationEnded { outcome: Outcome::Failed });
    }
    if !matches!(run.stage, RunStage::Landing(_)) {
        all.push(RunEvent::Landed);
    }
    if run.stage != RunStage::Reviewing {
        all.push(RunEvent::FinalReviewEnded { outcome: approved() });
        all.push(RunEvent::FinalReviewEnded { outcome: Outcome::Failed });
    }
    if run.picks == 0 {
        all.push(RunEvent::NothingToPick);
        all.push(RunEvent::TaskPicked { loop_id: unknown_loop() });
    }
    if !slots(scenario) || run.is_done() {
        all.push(RunEvent::PickingStopped);
    }
    if let Some((loop_id, status)) = run.loops.iter().next() {
        all.push(RunEvent::TaskPicked { loop_id: loop_id.clone() });
        if !run.is_done() && *status != LoopStatus::Queued {
            all.push(RunEvent::LoopStatusChanged { loop_id: loop_id.clone(), status: LoopStatus::Queued });
        }
    }
    all
}
