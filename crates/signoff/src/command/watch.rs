//! `signoff watch`: shows the work of other signoff processes live.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use signoff_core::group::RunStage;
use signoff_core::ids::RunId;
use signoff_core::view::inbox::{Action, InboxHints, InboxTasks};
use signoff_core::view::{RunState, TaskRow, Transition};
use signoff_core::wire::{Fact, LoopFact, RecordedFact};
use signoff_engine::executor::AttemptKey;
use signoff_engine::layout::DIRECTORY;
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
    StallDetector, TerminationSignals, is_queued,
};
use crate::web_backend::StoreId;
use crate::{CliError, CommandExit, Console, ReadOnlyProject, Result, host, project};

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The same while a part of a long log is sent to the screen.
pub const LOAD_INTERVAL: Duration = Duration::from_millis(5);

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
    let mut feed = Feed::new(root.clone(), args.run)?;
    let (close_sender, close_reasons) = mpsc::channel();
    let screen = Screen::open(console, TuiMode::Watching, TerminationSignals::HandledByScreen, &root, |sender| {
        Box::new(WatchHandler {
            background: BackgroundWorker::new(SharedStore::new(root.clone()), &sender),
            close_sender,
        })
    });
    match screen {
        Some(screen) => on_screen(&screen, &mut feed, &close_reasons),
        None => in_lines(&mut feed, args.run, console),
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

/// Handles the requests of the screen while other processes work.
struct WatchHandler {
    background: BackgroundWorker,
    close_sender: Sender<CloseReason>,
}

impl RequestHandler for WatchHandler {
    fn handle(&mut self, request: TuiRequest) {
        self.background.handle(request);
    }

    fn set_visible(&mut self, _visible: bool) {}

    fn closed(&mut self, reason: CloseReason) {
        self.close_sender.send(reason).ok();
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

fn on_screen(screen: &Screen, feed: &mut Feed, close_reasons: &Receiver<CloseReason>) -> Result<CommandExit> {
    let (sender, mut stall) = (screen.sender(), StallDetector::default());
    let (mut hints, mut queue_changed) = (None, false);
    let in_flight = Arc::default();
    loop {
        if feed.was_replaced()? {
            sender.send(ScreenMessage::Reset);
        }
        if !feed.has_unapplied() {
            hints = feed.inbox()?.or(hints);
            feed.poll()?;
        }
        if Arc::strong_count(&in_flight) == 1 {
            let next: Vec<_> = std::iter::from_fn(|| feed.next_transition()).take(MAX_TRANSITIONS).collect();
            // A fact adds, cancels or starts a task.
            let is_change = |fact: &Fact| matches!(fact, Fact::Task(..) | Fact::Loop(_, LoopFact::Added { .. }));
            queue_changed |= next.iter().any(|transition| is_change(&transition.event.fact));
            if !next.is_empty() {
                sender.send(ScreenMessage::Transitions(next, Arc::clone(&in_flight)));
            }
        }
        let is_loading = feed.has_unapplied();
        if !is_loading {
            // Sent after the events, so that a task taken from the queue is already in its run.
            let queue = feed.queue(std::mem::take(&mut queue_changed))?.map(ScreenMessage::Queue);
            queue.into_iter().chain(hints.take().map(ScreenMessage::Inbox)).for_each(|message| sender.send(message));
            feed.send_agent_lines(sender);
        }
        host::panic_for_test("watching");
        match close_reasons.recv_timeout(if is_loading { LOAD_INTERVAL } else { POLL_INTERVAL }) {
            Ok(reason) => return Ok(exit(reason)),
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
    let mut output = LineOutput::new(naming(if run.is_some() { feed.unapplied() } else { &[] }));
    if run.is_none() {
        let mut runs = BTreeSet::new();
        while let Some(transition) = feed.next_transition() {
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
        while let Some(transition) = feed.next_transition() {
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
    root: PathBuf,
    run: Option<RunId>,
    /// `None` as long as there is no store.
    open: Option<WatchedStore>,
    /// The watched store was deleted or replaced, and `was_replaced` has not reported it yet.
    replaced: bool,
    output_read_at: Option<Timestamp>,
    transcripts: BTreeMap<AttemptKey, TranscriptReader>,
}

struct WatchedStore {
    id: Option<StoreId>,
    project: ReadOnlyProject,
    follower: LogFollower,
    kinds: AgentKinds,
    states: BTreeMap<RunId, RunState>,
    /// The facts that were read and not applied yet.
    unapplied: VecDeque<RecordedFact>,
    queue: Option<Vec<TaskRow>>,
    inbox: InboxWatcher,
}

impl WatchedStore {
    fn new(project: ReadOnlyProject, store_id: Option<StoreId>, run: Option<RunId>) -> Result<Self> {
        let before = match run {
            // A replaced store may not have a run with this number.
            Some(run) if project.store.runs()?.iter().any(|row| row.id == run) => project.store.log(run)?,
            Some(_) | None => Vec::new(),
        };
        let mut seen: BTreeMap<_, _> = before.last().map(|last| (last.run, last.seq)).into_iter().collect();
        if run.is_none() {
            seen.extend(runs_needing_attention(&project)?.into_iter().map(|run| (run, 0)));
        }
        let follower = LogFollower::new(project.store.clone(), seen)?;
        let kinds = AgentKinds::load(&project);
        let (states, inbox) = (BTreeMap::new(), InboxWatcher::default());
        Ok(Self { id: store_id, project, follower, kinds, states, unapplied: before.into(), queue: None, inbox })
    }
}

impl Feed {
    fn new(root: PathBuf, run: Option<RunId>) -> Result<Self> {
        if let Some(run) = run {
            check_run_exists(ReadOnlyProject::open_at(root.clone())?.as_ref(), run)?;
        }
        Ok(Self { root, run, open: None, replaced: false, output_read_at: None, transcripts: BTreeMap::new() })
    }

    /// Opens the store if there is one. A store may be created, deleted or replaced at any time.
    fn open(&mut self) -> Result<()> {
        let store_id = StoreId::from_directory(&self.root.join(DIRECTORY));
        if self.open.take_if(|open| open.id != store_id).is_some() {
            self.replaced = true;
            self.transcripts.clear();
        }
        // A store that is just being created is opened by the next poll.
        if self.open.is_none()
            && store_id.is_some()
            && let Some(project) = ReadOnlyProject::open_at(self.root.clone())?
        {
            self.open = Some(WatchedStore::new(project, store_id, self.run)?);
        }
        Ok(())
    }

    /// Whether the store was deleted or replaced since the last call.
    fn was_replaced(&mut self) -> Result<bool> {
        self.open()?;
        Ok(std::mem::take(&mut self.replaced))
    }

    /// Reads the facts recorded since the last call; first those of the open runs or of the watched run.
    fn poll(&mut self) -> Result<()> {
        if self.open.is_none() {
            self.open()?;
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let mut facts = open.follower.poll()?;
        facts.retain(|recorded| self.run.is_none_or(|run| run == recorded.run));
        open.unapplied.extend(facts);
        Ok(())
    }

    /// The facts that were read and not applied yet.
    fn unapplied(&mut self) -> &[RecordedFact] {
        self.open.as_mut().map_or(&[], |open| open.unapplied.make_contiguous())
    }

    /// Whether `next_transition` has more.
    fn has_unapplied(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.unapplied.is_empty())
    }

    /// Applies the next fact.
    fn next_transition(&mut self) -> Option<Transition> {
        let open = self.open.as_mut()?;
        let recorded = open.unapplied.pop_front()?;
        Some(open.states.entry(recorded.run).or_default().apply(recorded))
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
            Err(_) if StoreId::from_directory(&self.root.join(DIRECTORY)) != open.id => Ok(None),
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
    let context = TaskContext::load(project, project.tasks()?)?;
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
