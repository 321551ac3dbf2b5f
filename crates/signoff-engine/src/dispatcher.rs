//! One task owns the state of all loops: it takes one input, records what it means, and carries out what follows.
//!
//! A fact is in the log before its effects begin. What cannot be told from the log is never decided upon.

mod apart;
mod budget;
mod carry_out;
mod inherited;
mod input;
mod interrupt;
mod items;
mod part;
mod person;
mod pick;
mod queueing;
mod record;
mod recover;
mod request;
mod track;

pub use input::{Drive, Input, Interrupt, Notice, Placed, Renderer, Summary};
pub use pick::{is_through, loop_id, ready};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use signoff_core::group::RunEffect;
use signoff_core::ids::{AttemptId, LoopId, QuestionId, RunId};
use signoff_core::machine::{self, Effect, Event, Head, Loss, WorkReport};
use signoff_core::source::planner::Planned;
use signoff_core::state_v4;
use signoff_core::wire::{Fact, LoopFact};
use signoff_store::{Lease, Store};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::attempt::{End, NOTHING_TO_CHECK, Report, Workshop};
use crate::board::{Board, Place};
use crate::error::EngineError;
use crate::occupied::Occupied;
use crate::process::Stopper;
use crate::tick::{self, Missed};
use track::Tracking;

/// A run that is being driven.
struct Driven {
    lease: Lease,
    board: Board,
    /// The attempts under way, with the way to stop them once they run.
    at_work: BTreeMap<(LoopId, AttemptId), Option<Stopper>>,
    /// Loops whose worktree is being made.
    placing: BTreeSet<LoopId>,
    /// Loops beside whose worktree others were made.
    apart: BTreeSet<LoopId>,
    /// The worktrees that are ours while their loops are at work.
    occupied: BTreeMap<LoopId, Occupied>,
    /// Its branch is being brought onto the default branch.
    landing: Onto,
    /// What is under way with its tracker.
    tracking: Tracking,
}

impl Driven {
    fn new(lease: Lease, board: Board) -> Self {
        let (at_work, occupied) = (BTreeMap::new(), BTreeMap::new());
        let (placing, apart, tracking) = (BTreeSet::new(), BTreeSet::new(), Tracking::default());
        Self { lease, board, at_work, placing, apart, occupied, landing: Onto::Nothing, tracking }
    }
}

/// How far a run is on its way onto the default branch.
#[derive(Debug)]
enum Onto {
    /// It is not on its way.
    Nothing,
    Begun,
    Stoppable(Stopper),
}

impl Driven {
    /// Whether anything is under way that ends by itself.
    fn is_at_work(&self) -> bool {
        !self.at_work.is_empty() || !matches!(self.landing, Onto::Nothing)
    }

    /// The ways to stop what is under way.
    fn stoppers(&self) -> impl Iterator<Item = &Stopper> {
        let landing = match &self.landing {
            Onto::Stoppable(stopper) => Some(stopper),
            Onto::Nothing | Onto::Begun => None,
        };
        self.at_work.values().flatten().chain(landing)
    }
}

/// What is still to be done after a fact was recorded.
enum Todo {
    Loop(RunId, LoopId, Effect),
    Run(RunId, RunEffect),
}

pub struct Dispatcher<'r> {
    shop: Arc<Workshop>,
    store: Arc<dyn Store>,
    drive: Drive,
    runs: BTreeMap<RunId, Driven>,
    inputs: mpsc::UnboundedReceiver<Input>,
    tell: mpsc::UnboundedSender<Input>,
    renderer: &'r mut dyn Renderer,
    todo: VecDeque<Todo>,
    /// Launches that wait for a free agent, or for money that is promised to others.
    waiting: VecDeque<queueing::Waiting>,
    /// How often the clock ticked.
    ticks: u32,
    /// Runs that would take another task if fewer were worked, in whatever run.
    deferred: BTreeSet<RunId>,
    interrupt: Option<Interrupt>,
    /// The questions that the person who sits there leaves for later.
    left: BTreeSet<(RunId, LoopId, QuestionId)>,
    /// The other programs' last sign of life in the store.
    seen: u64,
    summary: Summary,
    /// What is tidied up meanwhile.
    chores: JoinSet<()>,
}

impl<'r> Dispatcher<'r> {
    pub fn new(
        shop: Arc<Workshop>,
        store: Arc<dyn Store>,
        drive: Drive,
        renderer: &'r mut dyn Renderer,
    ) -> Self {
        let (tell, inputs) = mpsc::unbounded_channel();
        Self {
            shop,
            store,
            drive,
            runs: BTreeMap::new(),
            inputs,
            tell,
            renderer,
            todo: VecDeque::new(),
            waiting: VecDeque::new(),
            ticks: 0,
            deferred: BTreeSet::new(),
            interrupt: None,
            left: BTreeSet::new(),
            seen: 0,
            summary: Summary::default(),
            chores: JoinSet::new(),
        }
    }

    /// Where signals and other outside inputs are sent.
    pub fn door(&self) -> mpsc::UnboundedSender<Input> {
        self.tell.clone()
    }

    /// Takes a run up where its log ends.
    pub fn take_up(&mut self, lease: Lease) -> Result<(), EngineError> {
        let run = lease.run();
        let log = self.store.log(run)?;
        let board = Board::of(run, &log);
        self.renderer.take(&Notice::TakenUp { run, log: &log });
        self.runs.insert(run, Driven::new(lease, board));
        self.recover(run)?;
        // At once, so that whatever is opened next knows how much is at work.
        self.carry_out_all()
    }

    /// Opens a run with its first facts.
    pub fn open(&mut self, lease: Lease, facts: Vec<Fact>) -> Result<(), EngineError> {
        let run = lease.run();
        let board = Board::new(run);
        self.runs.insert(run, Driven::new(lease, board));
        match pick::begun(&facts) {
            Some((_, policy)) if policy.supply.is_tracker() => self.open_for_tracker(run, facts, policy),
            Some(begun) => self.record_and_pick(run, facts, begun, None),
            None => self.append(run, facts),
        }
    }

    /// Works until nothing is left that could go on without a person.
    pub async fn drive(mut self) -> Result<Summary, EngineError> {
        let ticker = self.start_ticking();
        let end = self.work_off().await;
        ticker.abort();
        if end.is_err() {
            self.stop_all(Interrupt::Kill);
            self.await_agents().await;
        }
        if end.is_ok() {
            self.tick_plans().await;
            self.note_unlanded();
        }
        while self.chores.join_next().await.is_some() {}
        let stage = |(run, driven): (&RunId, &Driven)| (*run, driven.board.machine.stage.clone());
        self.summary.runs = self.runs.iter().map(stage).collect();
        end.map(|()| self.summary)
    }

    /// What is done is ticked in the plan it came from, before the program ends.
    async fn tick_plans(&mut self) {
        for (run, driven) in &self.runs {
            let done = tick::through(&driven.board);
            let worktree = self.shop.layout.run_worktree(*run);
            let (shop, in_file, run) = (self.shop.clone(), self.drive.tick, *run);
            let ticking = move || {
                let in_branch =
                    if worktree.is_dir() { tick::in_branch(&shop, run, &done)? } else { Missed::default() };
                let in_file = if in_file { tick::in_checkout(&shop, &done)? } else { Missed::default() };
                Ok::<Missed, EngineError>(in_branch.max(in_file))
            };
            match tokio::task::spawn_blocking(ticking).await {
                Err(_) => {}
                Ok(Ok(missed)) => {
                    for note in missed.notes() {
                        self.renderer.take(&Notice::Note(&note));
                    }
                }
                Ok(Err(error)) => self.summary.troubles.push(error),
            }
        }
    }

    async fn work_off(&mut self) -> Result<(), EngineError> {
        self.carry_out_all()?;
        while !self.is_idle() {
            let Some(input) = self.inputs.recv().await else { break };
            self.take(input)?;
            self.carry_out_all()?;
        }
        Ok(())
    }

    fn is_idle(&self) -> bool {
        let is_quiet = |run: &Driven| !run.is_at_work() && run.placing.is_empty() && run.tracking.is_still();
        let quiet = self.runs.values().all(is_quiet);
        let waits = self.drive.watch && self.interrupt.is_none();
        quiet && !waits && !self.waits_for_time() && !self.waits_for_an_answer()
    }

    /// Whether a loop waits for nothing but the clock.
    fn waits_for_time(&self) -> bool {
        let timed = |hold: &machine::Hold| matches!(hold, machine::Hold::RateLimit { .. });
        let loops = self.runs.values().flat_map(|run| run.board.loops.values());
        self.interrupt.is_none() && loops.into_iter().any(|worked| worked.state.holds().iter().any(timed))
    }

    /// Looks every now and then for what other programs left in the store.
    fn start_ticking(&self) -> tokio::task::JoinHandle<()> {
        let tell = self.tell.clone();
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(std::time::Duration::from_millis(200));
            ticks.tick().await;
            while tell.send(Input::Tick).is_ok() {
                ticks.tick().await;
            }
        })
    }

    fn take(&mut self, input: Input) -> Result<(), EngineError> {
        match input {
            Input::Placed { run, loop_id, result } => self.placed(run, &loop_id, result),
            Input::Running { run, loop_id, attempt, stopper } => {
                self.running(run, loop_id, attempt, stopper);
                Ok(())
            }
            Input::Said { run, loop_id, attempt, line, unheard } => {
                let (loop_id, line, unheard) = (&loop_id, line.as_str(), &unheard);
                self.renderer.take(&Notice::Said { run, loop_id, attempt, line, unheard });
                Ok(())
            }
            Input::Reported(report) => self.reported(*report),
            Input::Elapsed { run, loop_id, hold } => {
                self.loop_event(run, &loop_id, Event::Resumed { hold }, vec![])
            }
            Input::Offered { run, result } => self.offered(run, result),
            Input::Lost { run, loop_id, id, why } => self.lost_to_others(run, &loop_id, (id, why)),
            Input::Closed { run, loop_id, result } => self.closed(run, loop_id, result),
            Input::Interrupted(interrupt) => {
                self.interrupted(interrupt);
                Ok(())
            }
            Input::Decided { run, loop_id, command } => self.decided(run, &loop_id, command),
            Input::Left { run, loop_id, question } => {
                self.left.insert((run, loop_id, question));
                Ok(())
            }
            Input::Attended(attended) => {
                self.drive.attended = attended;
                Ok(())
            }
            Input::Note(note) => {
                self.renderer.take(&Notice::Note(&note));
                Ok(())
            }
            Input::Landing { run, stopper } => {
                self.landing(run, stopper);
                Ok(())
            }
            Input::Landed { run, result } => self.whole_landed(run, result),
            Input::Tick => {
                self.count_usage()?;
                self.look_around()
            }
        }
    }

    fn placed(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        result: Result<Placed, EngineError>,
    ) -> Result<(), EngineError> {
        if let Some(driven) = self.runs.get_mut(&run) {
            driven.placing.remove(loop_id);
        }
        match result {
            Ok(Placed { place, head, base_tree, note }) => {
                if let Some(note) = note {
                    self.renderer.take(&Notice::Note(&note));
                }
                let Place { base, worktree } = place;
                let begins = self.begins(run, loop_id, head);
                let mut before = vec![LoopFact::Placed { base, worktree }];
                before.extend(base_tree.map(|tree| LoopFact::Moved(Event::BaseSet { tree })));
                before.extend(self.inherited(run, loop_id)?);
                before.extend(self.planned_elsewhere(run, loop_id));
                self.loop_event(run, loop_id, begins, before)
            }
            Err(error) => {
                self.trouble(run, loop_id, error);
                Ok(())
            }
        }
    }

    /// The tasks of the plan that another program left. They answer no attempt of ours.
    fn planned_elsewhere(&self, run: RunId, loop_id: &LoopId) -> Vec<LoopFact> {
        let taken_over = self.spec(run, loop_id).and_then(|spec| spec.taken_over);
        let items = taken_over.map(|taken_over| taken_over.items).filter(|items| !items.is_empty());
        items.map_or_else(Vec::new, |items| {
            let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
            let answer = LoopFact::Answered { attempt: AttemptId(0), answer: Planned::Tasks(items) };
            vec![answer, LoopFact::Moved(Event::ItemsPlanned { count })]
        })
    }

    /// A loop begins at its first phase, or where another program left it.
    fn begins(&self, run: RunId, loop_id: &LoopId, head: Head) -> Event {
        let taken_over = self.spec(run, loop_id).and_then(|spec| spec.taken_over);
        let policy = self.runs.get(&run).and_then(|driven| driven.board.policy(loop_id));
        match taken_over.zip(policy) {
            Some((taken_over, policy)) => state_v4::resume(&taken_over.state, head, policy),
            None => Event::Started { head },
        }
    }

    fn running(&mut self, run: RunId, loop_id: LoopId, attempt: AttemptId, stopper: Stopper) {
        let Some(driven) = self.runs.get_mut(&run) else { return };
        let wanted = driven.board.loops.get(&loop_id).is_some_and(|worked| worked.state.runs(attempt));
        match self.interrupt {
            Some(Interrupt::Kill) => stopper.kill(),
            Some(Interrupt::Stop) => stopper.stop(),
            Some(Interrupt::Finish) | None if !wanted => stopper.stop(),
            Some(Interrupt::Finish) | None => {}
        }
        if let Some(place) = driven.at_work.get_mut(&(loop_id, attempt)) {
            *place = Some(stopper);
        }
    }

    /// Takes the worktree for a loop that goes on. If somebody else has it, the loop stays where it is.
    fn occupy(&mut self, run: RunId, loop_id: &LoopId, worktree: &Path) -> bool {
        let Some(driven) = self.runs.get_mut(&run) else { return false };
        if driven.occupied.contains_key(loop_id) {
            return true;
        }
        // The tasks of a chain follow each other in one worktree: the one before gives it up.
        driven
            .occupied
            .retain(|other, _| driven.board.loops.get(other).is_some_and(|worked| !worked.state.is_done()));
        match Occupied::take(&self.shop.layout, worktree) {
            Ok(occupied) => driven.occupied.insert(loop_id.clone(), occupied).is_none(),
            Err(error) => {
                self.trouble(run, loop_id, error);
                false
            }
        }
    }

    /// An attempt ended.
    fn reported(&mut self, report: Report) -> Result<(), EngineError> {
        let Report { run, loop_id, attempt, end, usage, notes, facts, stops_picking } = report;
        if let Some(driven) = self.runs.get_mut(&run) {
            driven.at_work.remove(&(loop_id.clone(), attempt));
        }
        self.give_up_worktree(run, &loop_id);
        self.clear_apart(run, &loop_id)?;
        self.forget_homes(run, &loop_id);
        let usage = usage.at_least(self.known_usage(run, &loop_id, attempt));
        self.settle_usage(run, &loop_id, (attempt, usage))?;
        for note in notes.iter().filter(|note| *note != NOTHING_TO_CHECK) {
            self.renderer.take(&Notice::Note(note));
        }
        if stops_picking {
            self.stop_picking(run)?;
        }
        let noted = notes.into_iter().map(|note| LoopFact::Noted { attempt, note });
        let before = [LoopFact::Used { attempt, usage }].into_iter().chain(noted).chain(facts).collect();
        match end {
            End::Event(event) => {
                let no_work =
                    matches!(*event, Event::WorkEnded { report: WorkReport::NoWorkLeft { .. }, .. });
                self.loop_event(run, &loop_id, *event, before)?;
                if no_work {
                    self.give_back(run, &loop_id);
                }
                Ok(())
            }
            End::Stopped => {
                let lost = Event::AttemptLost { attempt, loss: Loss::Interrupted };
                self.loop_event(run, &loop_id, lost, before)
            }
            End::SessionGone => {
                let lost = Event::AttemptLost { attempt, loss: Loss::SessionGone };
                self.loop_event(run, &loop_id, lost, before)
            }
            End::Limited(refused) => match self.refused(run, &loop_id, attempt, refused) {
                Some(event) => self.loop_event(run, &loop_id, event, before),
                None => Ok(()),
            },
            End::Trouble(error) => {
                self.trouble(run, &loop_id, error);
                Ok(())
            }
        }
    }

    /// What nobody's agent is to blame for: the loop stays where it is, and goes on next time.
    fn trouble(&mut self, run: RunId, loop_id: &LoopId, error: EngineError) {
        let title = self.runs.get(&run).and_then(|run| run.board.loops.get(loop_id)).and_then(|one| one.task);
        if let Some(task) = title {
            self.summary.tasks.insert(task);
        }
        self.summary.troubles.push(error);
    }
}
