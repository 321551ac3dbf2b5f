//! Walks through every state a run can reach, whatever its loops do, and checks the laws at each step.

use std::collections::{HashMap, VecDeque};

use signoff_core::group::{Run, RunEffect, RunEvent, RunPolicy, RunStage, Standing, step};
use signoff_core::ids::LoopId;
use signoff_core::machine::Outcome;
use signoff_core::workflow::{Arrangement, Landing};

/// A run to walk through: its policy, its plan, and how often loops may go back on one path.
#[derive(Debug, Clone)]
pub struct World {
    pub policy: RunPolicy,
    pub plan: Vec<Vec<LoopId>>,
    pub repeats: u8,
    pub checkpoints: bool,
    /// Slots: how many tasks there are to pick.
    pub supply: usize,
}

/// A state with what the explorer knows about how it came about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    pub run: Run,
    pub repeats: u8,
    /// Whether a loop ever ended badly, and whether an agent said that there are no more tasks.
    pub failed: bool,
    pub stopped: bool,
    /// How many more tasks there are to pick.
    pub supply: usize,
}

pub struct Explored {
    pub nodes: Vec<Node>,
    parents: Vec<Option<(usize, RunEvent)>>,
    /// Without those that cancel the run.
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

/// One step, as the laws see it.
pub struct Taken<'a> {
    pub world: &'a World,
    pub before: &'a Node,
    pub event: &'a RunEvent,
    pub fits: bool,
    pub after: &'a Node,
    pub effects: &'a [RunEffect],
}

pub fn explore(world: &World, check: impl Fn(&Taken)) -> Explored {
    let World { repeats, supply, .. } = *world;
    let first = Node { run: Run::default(), repeats, failed: false, stopped: false, supply };
    let mut known = HashMap::from([(first.clone(), 0)]);
    let mut explored = Explored { nodes: vec![first], parents: vec![None], edges: Vec::new(), steps: 0 };
    let mut queue = VecDeque::from([0]);
    while let Some(index) = queue.pop_front() {
        let before = explored.nodes[index].clone();
        for Possible { event, repeats, fits } in events(&before, world) {
            let Some(left) = before.repeats.checked_sub(u8::from(repeats)) else { continue };
            let (run, effects) = step(before.run.clone(), event.clone(), &world.policy);
            let after = Node { run, repeats: left, ..told(&before, &event) };
            explored.steps += 1;
            check(&Taken { world, before: &before, event: &event, fits, after: &after, effects: &effects });
            if after.run == before.run {
                continue;
            }
            let cancels = matches!(event, RunEvent::Cancelled { .. });
            let target = *known.entry(after.clone()).or_insert_with(|| {
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

/// What the event itself says, whatever the run makes of it.
fn told(before: &Node, event: &RunEvent) -> Node {
    let mut node = before.clone();
    match event {
        RunEvent::LoopMoved { standing, .. } => node.failed |= standing.blocks(),
        RunEvent::PickingStopped => node.stopped = true,
        RunEvent::TaskPicked { .. } if before.run.picks > 0 => node.supply = before.supply.saturating_sub(1),
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

/// Something that could happen next.
pub struct Possible {
    pub event: RunEvent,
    /// Whether it leads back, and so counts against the path's patience.
    pub repeats: bool,
    /// Whether it fits the state; otherwise it must change nothing.
    pub fits: bool,
}

fn free(event: RunEvent) -> Possible {
    Possible { event, repeats: false, fits: true }
}

fn misfit(event: RunEvent) -> Possible {
    Possible { event, repeats: false, fits: false }
}

pub fn approved() -> Outcome {
    Outcome::Approved { commit: "c".into() }
}

fn events(node: &Node, world: &World) -> Vec<Possible> {
    let run = &node.run;
    let mut all = vec![free(RunEvent::Cancelled { by: "ann".into() })];
    match &run.stage {
        RunStage::Queued => all.push(free(RunEvent::Started)),
        RunStage::Preparing => {
            all.push(free(RunEvent::GroupsPlanned { groups: world.plan.clone() }));
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
        if node.supply > 0 {
            let loop_id = LoopId::new(format!("p{}", node.supply));
            all.push(free(RunEvent::TaskPicked { loop_id }));
        }
    }
    let closed = |loop_id: &LoopId| free(RunEvent::TaskClosed { loop_id: loop_id.clone() });
    all.extend(run.unclosed.iter().map(closed));
    if slots(world) && run.active() > 0 && !run.is_done() {
        all.push(free(RunEvent::PickingStopped));
    }
    for (loop_id, standing) in &run.loops {
        let moves = moves(run, loop_id, standing, world).into_iter().map(|(standing, repeats)| Possible {
            event: RunEvent::LoopMoved { loop_id: loop_id.clone(), standing },
            repeats,
            fits: true,
        });
        all.extend(moves);
        if run.checkpoint.waits_for(loop_id) {
            all.push(free(RunEvent::CheckpointReviewed { loop_id: loop_id.clone() }));
        }
    }
    all.extend(misfits(node, world).into_iter().map(misfit));
    all
}

pub fn slots(world: &World) -> bool {
    world.policy.arrangement == Arrangement::Slots
}

/// Where a loop can go from where it stands; and whether that leads back.
fn moves(run: &Run, loop_id: &LoopId, standing: &Standing, world: &World) -> Vec<(Standing, bool)> {
    let signed_off = match world.policy.landing {
        Landing::None => Standing::Ended(approved()),
        Landing::Each => Standing::Landing,
        Landing::Group => Standing::Ready,
    };
    let accepted = match world.policy.landing {
        Landing::None => Standing::Ended(Outcome::Accepted { by: "ann".into() }),
        Landing::Each | Landing::Group => signed_off.clone(),
    };
    let ended = |outcome| (Standing::Ended(outcome), false);
    let mut moves = match standing {
        Standing::Queued if run.called.contains(loop_id) => vec![(Standing::Active, false)],
        Standing::Queued => vec![(accepted, true)],
        Standing::Active => vec![
            (signed_off, false),
            (Standing::Waiting, false),
            ended(Outcome::Failed),
            (Standing::Ended(Outcome::Exhausted), true),
        ],
        Standing::AtCheckpoint => Vec::new(),
        Standing::Waiting => vec![(Standing::Active, false), ended(Outcome::Stuck)],
        Standing::Ready if run.landing.as_ref() == Some(loop_id) => {
            vec![(Standing::Landing, false), (Standing::Active, true)]
        }
        Standing::Ready => vec![(Standing::Active, true)],
        Standing::Landing => vec![ended(approved()), (Standing::Active, true), ended(Outcome::Stuck)],
        Standing::Ended(Outcome::Approved { .. }) => vec![(Standing::Ended(Outcome::Discussion), true)],
        Standing::Ended(Outcome::Cancelled) => vec![(accepted, true)],
        Standing::Ended(Outcome::Accepted { .. }) => Vec::new(),
        Standing::Ended(_) => vec![
            ended(Outcome::Cancelled),
            (Standing::Active, true),
            (accepted, true),
            (Standing::Ended(Outcome::Accepted { by: "ann".into() }), true),
        ],
    };
    if *standing == Standing::Active && world.checkpoints {
        moves.push((Standing::AtCheckpoint, true));
    }
    if *standing == Standing::AtCheckpoint && run.checkpoint.waits_for(loop_id) {
        // The loop may tell of its review before the run hears of it.
        moves.push((Standing::Active, false));
    }
    if !standing.has_ended() {
        moves.push(ended(Outcome::Cancelled));
    }
    moves
}

fn misfits(node: &Node, world: &World) -> Vec<RunEvent> {
    let run = &node.run;
    let nobody = || LoopId::new("nobody");
    let mut all = vec![
        RunEvent::LoopMoved { loop_id: nobody(), standing: Standing::Active },
        RunEvent::CheckpointReviewed { loop_id: nobody() },
        RunEvent::TaskClosed { loop_id: nobody() },
        RunEvent::AttemptSpent { since_checkpoint: [(nobody(), 99)].into() },
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
        all.push(RunEvent::TaskPicked { loop_id: nobody() });
    }
    if !slots(world) || run.is_done() {
        all.push(RunEvent::PickingStopped);
    }
    if let Some((loop_id, standing)) = run.loops.iter().next() {
        all.push(RunEvent::TaskPicked { loop_id: loop_id.clone() });
        if !run.is_done() && *standing != Standing::Queued {
            all.push(RunEvent::LoopMoved { loop_id: loop_id.clone(), standing: Standing::Queued });
        }
    }
    all
}
