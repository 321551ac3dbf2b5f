//! `signoff watch`: shows the work of other signoff processes live.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use signoff_core::group::RunStage;
use signoff_core::ids::RunId;
use signoff_core::view::inbox::{Action, InboxHints, InboxTasks};
use signoff_core::view::{RunState, TaskRow, Transition};
use signoff_core::wire::{Fact, LoopFact, QUEUE, RecordedFact};
use signoff_engine::executor::AttemptKey;
use signoff_engine::transcript::TranscriptReader;
use signoff_store::Store;
use signoff_term::json;
use signoff_term::tui::{TuiMode, TuiRequest};

use super::replay::naming;
use crate::history_cache::SharedStore;
use crate::line_output::LineOutput;
use crate::queries::{self, AgentKinds, LogFollower, TaskContext};
use crate::run_loop::run_id;
use crate::screen::{
    BackgroundWorker, CloseReason, InboxWatcher, MAX_TRANSITIONS, RequestHandler, Screen, ScreenMessage, ScreenSender,
    StallDetector, TerminationSignals, TransitionSender, is_queued,
};
use crate::{CliError, CommandExit, Console, ReadOnlyProject, Result, host, project};

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Watch running tasks in a terminal UI
///
/// On a terminal it shows a screen with all open runs and the queue, or with one run; `?` lists the keys. Questions can
/// be answered there, and the running signoff continues. Otherwise, and with --plain, it prints lines: new events, or
/// all events of one run. If nothing is running it waits. With a RUN it ends with that run, otherwise with Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff watch\n  signoff watch 3 --plain")]
pub struct Args {
    /// Watch only this run
    #[arg(value_name = "RUN", value_parser = run_id)]
    run: Option<RunId>,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    reject_json(console)?;
    let root = project::root()?;
    if let Some(run) = args.run {
        check_run_exists(ReadOnlyProject::open_at(root.clone())?.as_ref(), run)?;
    }
    let (input_sender, inputs) = mpsc::channel();
    let screen = Screen::open(console, TuiMode::Watching, TerminationSignals::HandledByScreen, &root, |_| {
        Box::new(WatchHandler(input_sender))
    });
    match screen {
        Some(screen) => on_screen(&screen, &mut Feed::new(SharedStore::followed(root), args.run), &inputs),
        None => in_lines(&mut Feed::new(SharedStore::new(root), args.run), args.run, console),
    }
}

/// Rejects `--json`, because the output has no end.
pub fn reject_json(console: &Console) -> Result<()> {
    if console.json {
        return Err(CliError::usage("--json is for commands that end with a result")
            .hint("--json-events prints every recorded event as a line of JSON"));
    }
    Ok(())
}

/// Input from the screen.
enum WatchInput {
    Request(TuiRequest),
    Closed(CloseReason),
}

/// Sends the input of the screen to the watching thread.
struct WatchHandler(Sender<WatchInput>);

impl RequestHandler for WatchHandler {
    fn handle(&mut self, request: TuiRequest) {
        self.0.send(WatchInput::Request(request)).ok();
    }

    fn set_visible(&mut self, _visible: bool) {}

    fn closed(&mut self, reason: CloseReason) {
        self.0.send(WatchInput::Closed(reason)).ok();
    }
}

/// The exit when the screen is closed. A terminal that is gone is not an error.
pub fn exit(reason: CloseReason) -> CommandExit {
    match reason {
        CloseReason::Quit | CloseReason::Gone => CommandExit::Done,
        CloseReason::Interrupted => CommandExit::Interrupted,
    }
}

/// The error if the drawing thread has ended unexpectedly.
pub fn screen_error() -> CliError {
    CliError::failed("the terminal UI crashed").hint("--plain prints lines instead")
}

fn on_screen(screen: &Screen, feed: &mut Feed, inputs: &Receiver<WatchInput>) -> Result<CommandExit> {
    let (sender, mut stall) = (screen.sender(), StallDetector::default());
    let (background, mut requests) = (BackgroundWorker::new(feed.store.clone(), sender), Vec::new());
    let (mut hints, mut queue_changed) = (None, false);
    let mut transition_sender = TransitionSender::new(sender.clone());
    loop {
        if feed.was_replaced()? {
            sender.send(ScreenMessage::Reset);
        }
        if !feed.is_behind() {
            hints = feed.inbox()?.or(hints);
            feed.poll()?;
        }
        if transition_sender.has_room() {
            let transitions = std::iter::from_fn(|| feed.next_transition().transpose());
            let next = transitions.take(MAX_TRANSITIONS).collect::<Result<Vec<_>>>()?;
            // A fact adds, cancels or starts a task.
            let is_change = |fact: &Fact| matches!(fact, Fact::Task(..) | Fact::Loop(_, LoopFact::Added { .. }));
            queue_changed |= next.iter().any(|transition| is_change(&transition.event.fact));
            if !next.is_empty() {
                transition_sender.send(next);
            }
        }
        let is_loading = feed.is_behind();
        if !is_loading {
            // Handled only now: a request applies all events of its run at once, and their transitions need memory.
            requests.drain(..).for_each(|request| background.handle(request));
            // Sent after the events, so that a task taken from the queue is already in its run.
            let queue = feed.queue(std::mem::take(&mut queue_changed))?.map(ScreenMessage::Queue);
            queue.into_iter().chain(hints.take().map(ScreenMessage::Inbox)).for_each(|message| sender.send(message));
            feed.send_agent_lines(sender);
        }
        host::panic_for_test("watching");
        match inputs.recv_timeout(if is_loading { transition_sender.load_interval() } else { POLL_INTERVAL }) {
            Ok(WatchInput::Request(request)) => requests.push(request),
            Ok(WatchInput::Closed(reason)) => return Ok(exit(reason)),
            Err(RecvTimeoutError::Timeout) if screen.is_unresponsive(&mut stall) => {
                return Ok(CommandExit::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(screen_error()),
        }
    }
}

fn in_lines(feed: &mut Feed, run: Option<RunId>, console: &Console) -> Result<CommandExit> {
    feed.poll()?;
    let mut output = LineOutput::new(naming(&feed.log()?));
    if run.is_none() {
        let mut runs = BTreeSet::new();
        while let Some(transition) = feed.next_transition()? {
            runs.insert(transition.event.run);
            output.replay(&transition);
        }
        runs.into_iter().for_each(|run| drop(output.caught_up(run)));
        console.note("Watching; Ctrl-C ends it");
    }
    loop {
        if feed.was_replaced()? {
            output = LineOutput::new(naming(&[]));
        }
        feed.poll()?;
        while let Some(transition) = feed.next_transition()? {
            let event = &transition.event;
            let lines = if console.json_events { vec![json::event(event)] } else { output.apply(&transition) };
            for line in lines {
                if !console.line(&line)? {
                    return Ok(CommandExit::Done);
                }
            }
        }
        if feed.is_over() || !console.has_reader() {
            return Ok(CommandExit::Done);
        }
        host::sleep_briefly();
    }
}

/// Poll interval for the output of agents.
const OUTPUT_INTERVAL: SignedDuration = SignedDuration::from_millis(300);

/// Number of bytes at the end of a transcript that are searched for its last line.
const TAIL: u64 = 16 * 1024;

/// Polls the store and the transcripts for changes by other processes.
struct Feed {
    /// If it is followed, its cache applies the events, also for the panes and decisions of the screen.
    store: Arc<SharedStore>,
    run: Option<RunId>,
    /// `None` as long as there is no store.
    open: Option<WatchedStore>,
    /// The watched store was deleted or replaced, and `was_replaced` has not reported it yet.
    replaced: bool,
    output_read_at: Option<Timestamp>,
    transcripts: BTreeMap<AttemptKey, TranscriptReader>,
}

struct WatchedStore {
    project: ReadOnlyProject,
    run: Option<RunId>,
    follower: LogFollower,
    kinds: AgentKinds,
    states: BTreeMap<RunId, RunState>,
    /// The runs with unread facts, each with the last fact before them.
    unread: BTreeMap<RunId, u64>,
    /// The next transitions.
    transitions: VecDeque<Transition>,
    queue: Option<Vec<TaskRow>>,
    inbox: InboxWatcher,
}

impl WatchedStore {
    fn new(project: ReadOnlyProject, run: Option<RunId>) -> Result<Self> {
        let shown = run.map_or_else(|| runs_needing_attention(&project), |run| Ok(BTreeSet::from([run])))?;
        let seen = shown.into_iter().map(|run| (run, 0)).collect();
        let follower = LogFollower::new(project.store.clone(), seen)?;
        let kinds = AgentKinds::load(&project);
        let (states, unread, transitions) = (BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        let (queue, inbox) = (None, InboxWatcher::default());
        Ok(Self { project, run, follower, kinds, states, unread, transitions, queue, inbox })
    }

    /// Applies the next facts of a run after `seq`.
    fn read(&mut self, run: RunId, seq: u64) -> Result<()> {
        let is_followed = self.project.histories.iter().any(|histories| histories.is_followed());
        // The earlier facts of the queue are not shown, so the cache does not need them.
        let is_complete = if is_followed && run != QUEUE {
            self.project.store.advance(run, MAX_TRANSITIONS)?
        } else {
            let state = self.states.entry(run).or_default();
            let new = self.project.store.log_page(run, seq.max(state.seq), MAX_TRANSITIONS)?;
            let is_complete = new.len() < MAX_TRANSITIONS;
            self.transitions.extend(new.into_iter().map(|recorded| state.apply(recorded)));
            is_complete
        };
        if is_complete {
            self.unread.remove(&run);
        }
        self.take_transitions();
        Ok(())
    }

    /// Takes the transitions of the events that the cache of the store has applied.
    fn take_transitions(&mut self) {
        for transition in self.project.histories.iter().flat_map(|histories| histories.take_transitions()) {
            let state = self.states.entry(transition.event.run).or_default();
            // The cache applies the events of a run that it has dropped again.
            if transition.event.seq > state.seq && self.run.is_none_or(|run| run == transition.event.run) {
                state.apply_transition(&transition);
                self.transitions.push_back(transition);
            }
        }
    }
}

impl Feed {
    fn new(store: SharedStore, run: Option<RunId>) -> Self {
        let (store, transcripts) = (Arc::new(store), BTreeMap::new());
        Self { store, run, open: None, replaced: false, output_read_at: None, transcripts }
    }

    /// Opens the store if there is one. A store may be created, deleted or replaced at any time.
    fn open(&mut self) -> Result<()> {
        if let Some(open) = &self.open
            && self.store.is_replaced(&open.project)?
        {
            (self.open, self.replaced) = (None, true);
            self.transcripts.clear();
        }
        if self.open.is_none()
            && let Some(project) = self.store.project()?
        {
            self.open = Some(WatchedStore::new(project, self.run)?);
        }
        Ok(())
    }

    /// Whether the store was deleted or replaced since the last call.
    fn was_replaced(&mut self) -> Result<bool> {
        self.open()?;
        Ok(std::mem::take(&mut self.replaced))
    }

    /// Finds the runs with new facts; first the open runs or the watched run.
    fn poll(&mut self) -> Result<()> {
        if self.open.is_none() {
            self.open()?;
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let changed = open.follower.poll()?.into_iter();
        open.unread.extend(changed.filter(|(run, _)| self.run.is_none_or(|watched| watched == *run)));
        open.take_transitions();
        Ok(())
    }

    /// The log of the watched run; empty if all runs are watched.
    fn log(&self) -> Result<Vec<RecordedFact>> {
        let watched = self.open.as_ref().zip(self.run);
        watched.map_or(Ok(Vec::new()), |(open, run)| Ok(open.project.store.log(run)?))
    }

    /// Whether `next_transition` may have more.
    fn is_behind(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.unread.is_empty() || !open.transitions.is_empty())
    }

    /// Returns the next transition.
    fn next_transition(&mut self) -> Result<Option<Transition>> {
        let Some(open) = &mut self.open else { return Ok(None) };
        while open.transitions.is_empty()
            && let Some((&run, &seq)) = open.unread.first_key_value()
        {
            open.read(run, seq)?;
        }
        Ok(open.transitions.pop_front())
    }

    /// Returns the queued tasks if they changed. The queue is empty if only one run is watched.
    fn queue(&mut self, changed: bool) -> Result<Option<Vec<TaskRow>>> {
        let Some(open) = self.open.as_mut().filter(|open| changed || open.queue.is_none()) else {
            return Ok(None);
        };
        let tasks = if self.run.is_some() { Vec::new() } else { open.project.store.tasks()? };
        let tasks: Vec<TaskRow> = tasks.into_iter().filter(is_queued).collect();
        let unchanged = open.queue.as_ref() == Some(&tasks);
        open.queue = Some(tasks.clone());
        Ok((!unchanged).then_some(tasks))
    }

    /// Returns the state of all tasks and runs if it changed. Call `poll` only after it.
    fn inbox(&mut self) -> Result<Option<InboxHints>> {
        let Some(open) = &mut self.open else { return Ok(None) };
        match open.inbox.poll(&open.project) {
            // The store is being deleted.
            Err(_) if self.store.is_replaced(&open.project)? => Ok(None),
            polled => polled,
        }
    }

    /// Whether the run that is watched is over.
    fn is_over(&self) -> bool {
        let state = self.open.as_ref().zip(self.run).and_then(|(open, run)| open.states.get(&run));
        state.is_some_and(|state| matches!(state.stage(), RunStage::Done(_)))
    }

    /// Sends the last line of every running agent if it is new.
    fn send_agent_lines(&mut self, sender: &ScreenSender) {
        let now = host::now();
        if self.output_read_at.is_some_and(|at| now.duration_since(at).abs() < OUTPUT_INTERVAL) {
            return;
        }
        self.output_read_at = Some(now);
        let Some(open) = &self.open else { return };
        let running = running_attempts(&open.states);
        self.transcripts.retain(|attempt, _| running.contains(attempt));
        for attempt in running {
            let transcript = self.transcripts.entry(attempt.clone()).or_insert_with(|| {
                let dir = queries::attempt_dir(&open.project, &attempt);
                let state = open.states.get(&attempt.run);
                let kind = state.and_then(|state| open.kinds.kind(state, &attempt.loop_id, attempt.attempt));
                TranscriptReader::tail(&dir, kind, TAIL)
            });
            // If an agent writes faster than this polls, skip to the end.
            transcript.skip_to_tail(TAIL);
            // A file that cannot be read may be written later.
            let lines = transcript.read_more().unwrap_or_default();
            if let Some(line) = lines.iter().rev().find(|line| !line.trim().is_empty()) {
                sender.agent_line(attempt, line, &Arc::default());
            }
        }
    }
}

/// The runs with tasks that need the user, including finished runs.
fn runs_needing_attention(project: &ReadOnlyProject) -> Result<BTreeSet<RunId>> {
    let context = TaskContext::load(project, project.tasks_from_tables()?)?;
    let sorted = InboxTasks::new(&context.snapshot());
    Ok(sorted.needs_attention.iter().filter_map(|task| task.run_id).map(RunId).collect())
}

/// The running attempts of all runs.
fn running_attempts(states: &BTreeMap<RunId, RunState>) -> Vec<AttemptKey> {
    let mut found = Vec::new();
    for (run, state) in states.iter().filter(|(_, state)| !matches!(state.stage(), RunStage::Done(_))) {
        for loop_id in state.loop_ids() {
            let attempts = queries::running_attempts(state, loop_id);
            found.extend(attempts.into_iter().map(|attempt| AttemptKey::new(*run, loop_id, attempt)));
        }
    }
    found
}

/// Fails if the run does not exist.
pub fn check_run_exists(project: Option<&ReadOnlyProject>, run: RunId) -> Result<()> {
    let runs = project.map_or(Ok(Vec::new()), |project| project.store.runs())?;
    if runs.iter().any(|row| row.id == run) {
        return Ok(());
    }
    let hint = match runs.as_slice() {
        [] => format!("there are no runs yet: `{}` runs the queued tasks", Action::WorkQueue),
        [one] => format!("the only one is run {}", one.id),
        [first, .., last] => format!("there are runs {} to {}", first.id, last.id),
    };
    Err(CliError::usage(format!("there is no run {run}")).hint(hint))
}
