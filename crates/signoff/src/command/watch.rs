//! `signoff watch`: shows the work of other signoff processes live.

mod feed;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use signoff_core::ids::RunId;
use signoff_core::wire::{Fact, LoopFact, RecordedFact};
use signoff_term::json;
use signoff_term::tui::{TuiMode, TuiRequest};

use self::feed::Feed;
pub use self::feed::check_run_exists;
use super::replay::naming;
use crate::run_loop::run_id;
use crate::screen::{
    BackgroundWorker, CloseReason, MAX_TRANSITIONS, RequestHandler, Screen, ScreenMessage, StallDetector,
    TerminationSignals,
};
use crate::show::LineOutput;
use crate::{CliError, CommandExit, Console, host, project};

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The same while a part of a long log is on its way to the screen.
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
pub fn run(args: &Args, console: &Console) -> Result<CommandExit, CliError> {
    reject_json(console)?;
    let root = project::root()?;
    let mut feed = Feed::new(root.clone(), args.run)?;
    let (tell, left) = mpsc::channel();
    let screen = Screen::open(console, TuiMode::Watching, TerminationSignals::HandledByScreen, &root, |sender| {
        Box::new(WatchHandler { background: BackgroundWorker::new(root.clone(), &sender), left: tell })
    });
    match screen {
        Some(screen) => on_screen(&screen, &mut feed, &left),
        None => in_lines(&mut feed, args.run, console),
    }
}

/// Rejects `--json`, because the output has no end.
pub fn reject_json(console: &Console) -> Result<(), CliError> {
    if console.json {
        return Err(CliError::usage("--json is for commands that end with a result")
            .hint("--json-events prints every recorded event as a line of JSON"));
    }
    Ok(())
}

/// Handles the requests of the screen while other processes work.
struct WatchHandler {
    background: BackgroundWorker,
    left: Sender<CloseReason>,
}

impl RequestHandler for WatchHandler {
    fn handle(&mut self, request: TuiRequest) {
        self.background.handle(request);
    }

    fn set_visible(&mut self, _seen: bool) {}

    fn closed(&mut self, left: CloseReason) {
        self.left.send(left).ok();
    }
}

/// The exit when the screen is closed. A terminal that is gone is not an error.
pub fn exit(left: CloseReason) -> CommandExit {
    match left {
        CloseReason::Quit | CloseReason::Gone => CommandExit::Done,
        CloseReason::Interrupted => CommandExit::Interrupted,
    }
}

/// The error if the drawing thread has ended unexpectedly.
pub fn screen_error() -> CliError {
    CliError::failed("the screen broke").hint("--plain shows the same in lines")
}

fn on_screen(screen: &Screen, feed: &mut Feed, left: &Receiver<CloseReason>) -> Result<CommandExit, CliError> {
    let (sender, mut stall) = (screen.sender(), StallDetector::default());
    let (mut hints, mut queue_changed) = (None, false);
    let on_its_way = Arc::default();
    loop {
        if feed.was_replaced()? {
            sender.send(ScreenMessage::Reset);
        }
        if !feed.has_unapplied() {
            hints = feed.inbox()?.or(hints);
            feed.poll()?;
        }
        if Arc::strong_count(&on_its_way) == 1 {
            let next: Vec<_> = std::iter::from_fn(|| feed.next_transition()).take(MAX_TRANSITIONS).collect();
            queue_changed |= next.iter().any(|transition| changes_queue(&transition.event));
            if !next.is_empty() {
                sender.send(ScreenMessage::Transitions(next, Arc::clone(&on_its_way)));
            }
        }
        let is_loading = feed.has_unapplied();
        if !is_loading {
            // Sent after the events, so that a task taken from the queue is already in its run.
            let queue = feed.queue(std::mem::take(&mut queue_changed))?.map(ScreenMessage::Queue);
            queue.into_iter().chain(hints.take().map(ScreenMessage::Inbox)).for_each(|message| sender.send(message));
            feed.send_agent_lines(sender);
        }
        panic_for_test();
        match left.recv_timeout(if is_loading { LOAD_INTERVAL } else { POLL_INTERVAL }) {
            Ok(left) => return Ok(exit(left)),
            Err(RecvTimeoutError::Timeout) if screen.is_unresponsive(&mut stall) => {
                return Ok(CommandExit::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(screen_error()),
        }
    }
}

/// Whether a fact adds, cancels or starts a task.
fn changes_queue(recorded: &RecordedFact) -> bool {
    matches!(recorded.fact, Fact::Task(..) | Fact::Loop(_, LoopFact::Added { .. }))
}

fn in_lines(feed: &mut Feed, run: Option<RunId>, console: &Console) -> Result<CommandExit, CliError> {
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

/// Panics if a test asks for it.
fn panic_for_test() {
    let wanted = host::test_string("SIGNOFF_TEST_PANIC").is_some_and(|place| place == "watching");
    assert!(!wanted, "panic requested by a test");
}
