//! `signoff replay`: replays a recorded run.

mod clock;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use signoff_core::ids::{RunId, TaskId};
use signoff_core::view::{RunState, Transition};
use signoff_core::wire::{Fact, LoopFact, RecordedFact, RunFact};
use signoff_store::Store;
use signoff_term::json;
use signoff_term::line::LineNaming;
use signoff_term::show::{RunHistory, TaskReport};
use signoff_term::tui::{DataRequest, ReplayControl, TuiData, TuiMode, TuiRequest};

use self::clock::{ReplayClock, Speed, speed};
use super::watch::{exit, reject_json, screen_error};
use crate::history_cache::SharedStore;
use crate::line_output::LineOutput;
use crate::run_loop::run_id;
use crate::screen::{
    BackgroundWorker, CloseReason, MAX_TRANSITIONS, RequestHandler, Screen, ScreenMessage, StallDetector,
    TerminationSignals, TransitionSender,
};
use crate::{CommandExit, Console, ReadOnlyProject, Result, host};

/// Interval at which the clock of the replay advances.
const TICK: Duration = Duration::from_millis(100);

/// Replay a recorded run
///
/// On a terminal it shows a screen, with keys to pause and to change the speed, until you close it. Otherwise, and with
/// --plain, it prints lines. Without --speed it runs ten times as fast as recorded and pauses at most two seconds
/// between two events.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff replay 3\n  signoff replay 3 --speed max --plain")]
pub struct Args {
    /// The run
    #[arg(value_name = "RUN", value_parser = run_id)]
    run: RunId,
    /// The speed, as a multiple of the recorded one; `max` does not wait at all
    #[arg(long, value_name = "N|max", value_parser = speed)]
    speed: Option<Speed>,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    reject_json(console)?;
    let project = ReadOnlyProject::find()?;
    super::watch::check_run_exists(project.as_ref(), args.run)?;
    let Some(project) = project else { return Ok(CommandExit::Done) };
    let log = project.store.log(args.run)?;
    let clock = ReplayClock::new(args.speed);
    let (input_sender, inputs) = mpsc::channel();
    let screen =
        Screen::open(console, TuiMode::Replaying, TerminationSignals::HandledByScreen, &project.root, |sender| {
            Box::new(ReplayHandler {
                background: BackgroundWorker::new(SharedStore::new(project.root.clone()), &sender),
                inputs: input_sender,
            })
        });
    match screen {
        Some(screen) => {
            let log = log.into_iter().map(Arc::new).collect();
            let replayed = ReplayedRun { project, log, applied: 0, history: RunHistory::default() };
            on_screen(&screen, replayed, clock, &inputs)
        }
        None => in_lines(log, clock, console),
    }
}

/// Input from the screen.
enum ReplayInput {
    Report(TaskId),
    Speed(ReplayControl),
    Closed(CloseReason),
}

/// Handles the requests of the screen. Reports come from the replayed part of the log; diffs and transcripts are the
/// current ones.
struct ReplayHandler {
    background: BackgroundWorker,
    inputs: Sender<ReplayInput>,
}

impl RequestHandler for ReplayHandler {
    fn handle(&mut self, request: TuiRequest) {
        let input = match request {
            TuiRequest::Load(DataRequest::Report(task)) => ReplayInput::Report(task),
            TuiRequest::Replay(control) => ReplayInput::Speed(control),
            TuiRequest::Load(DataRequest::Diff(_) | DataRequest::Transcript { .. }) => {
                return self.background.handle(request);
            }
            // A replay takes no decisions.
            TuiRequest::Quit | TuiRequest::Interrupt | TuiRequest::QuestionDecided(_) | TuiRequest::Decide(..) => {
                return;
            }
        };
        self.inputs.send(input).ok();
    }

    fn set_visible(&mut self, _visible: bool) {}

    fn closed(&mut self, reason: CloseReason) {
        self.inputs.send(ReplayInput::Closed(reason)).ok();
    }
}

fn on_screen(
    screen: &Screen,
    mut replayed: ReplayedRun,
    mut clock: ReplayClock,
    inputs: &Receiver<ReplayInput>,
) -> Result<CommandExit> {
    let (sender, mut stall) = (screen.sender(), StallDetector::default());
    let (mut due, mut sent_time) = (0, None);
    let mut transition_sender = TransitionSender::new(sender.clone());
    sender.send_data(TuiData::ReplayState(clock.state(replayed.is_over())), &Arc::default());
    loop {
        due += clock.due(replayed.log.get(due..).unwrap_or_default(), host::now());
        if replayed.applied < due && transition_sender.has_room() {
            let next = replayed.advance(due.min(replayed.applied + MAX_TRANSITIONS));
            transition_sender.send(next);
            if replayed.is_over() {
                sender.send_data(TuiData::ReplayState(clock.state(true)), &Arc::default());
            }
        }
        if let Some(time) = clock.time().filter(|time| sent_time != Some(*time)) {
            sender.send(ScreenMessage::Time(time));
            sent_time = Some(time);
        }
        match inputs.recv_timeout(if replayed.applied < due { transition_sender.load_interval() } else { TICK }) {
            Ok(ReplayInput::Closed(reason)) => return Ok(exit(reason)),
            Ok(ReplayInput::Report(task)) => {
                if let Some(report) = replayed.report(task)? {
                    sender.send_data(TuiData::Report { task, report: Box::new(report) }, &Arc::default());
                }
            }
            Ok(ReplayInput::Speed(control)) => {
                clock.change(control);
                sender.send_data(TuiData::ReplayState(clock.state(replayed.is_over())), &Arc::default());
            }
            Err(RecvTimeoutError::Timeout) if screen.is_unresponsive(&mut stall) => {
                return Ok(CommandExit::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(screen_error()),
        }
    }
}

fn in_lines(log: Vec<RecordedFact>, mut clock: ReplayClock, console: &Console) -> Result<CommandExit> {
    let mut output = LineOutput::new(naming(&log));
    let mut state = RunState::default();
    for recorded in log {
        let at = recorded.at;
        let lines =
            if console.json_events { vec![json::event(&recorded)] } else { output.apply(&state.apply(recorded)) };
        // Facts without lines do not cause a wait of their own.
        let wait = clock.wait(at);
        if !wait.is_zero() && !lines.is_empty() {
            host::sleep(clock.take_wait());
        }
        for line in lines {
            if !console.line(&line)? {
                return Ok(CommandExit::Done);
            }
        }
    }
    Ok(CommandExit::Done)
}

/// Whether lines name their task, as they did when the run was recorded.
pub fn naming(log: &[RecordedFact]) -> LineNaming {
    let several = log
        .iter()
        .any(|recorded| matches!(&recorded.fact, Fact::Run(RunFact::Opened { policy, .. }) if policy.jobs > 1));
    let added = |recorded: &&RecordedFact| matches!(recorded.fact, Fact::Loop(_, LoopFact::Added { .. }));
    if several && log.iter().filter(added).count() > 1 { LineNaming::Always } else { LineNaming::WhenNeeded }
}

/// A replayed run: its log, and its state at the current point of the replay.
struct ReplayedRun {
    project: ReadOnlyProject,
    log: Vec<Arc<RecordedFact>>,
    /// The number of facts that are replayed.
    applied: usize,
    history: RunHistory,
}

impl ReplayedRun {
    /// Whether all facts are replayed.
    fn is_over(&self) -> bool {
        self.applied == self.log.len()
    }

    /// Replays the facts up to this one.
    fn advance(&mut self, until: usize) -> Vec<Transition> {
        let next = self.log.get(self.applied..until).unwrap_or_default();
        self.applied += next.len();
        next.iter().map(|recorded| self.history.apply(recorded.clone())).collect()
    }

    /// The report of a task so far; `None` if the replayed facts do not mention it.
    fn report(&self, task: TaskId) -> Result<Option<TaskReport>> {
        let state = &self.history.state;
        let own = state.loops.iter().find(|(_, loop_state)| loop_state.task == Some(task));
        let Some((loop_id, _)) = own else { return Ok(None) };
        let Some(row) = self.project.store.task(task)? else { return Ok(None) };
        let row = match state.row(loop_id) {
            Some(then) => row.with_progress(then),
            None => row,
        };
        Ok(Some(self.history.report(row, loop_id, Vec::new())))
    }
}
