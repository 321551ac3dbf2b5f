//! `signoff watch`: what other programs do, as they do it.

mod feed;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use signoff_core::ids::RunId;
use signoff_core::wire::{Fact, LoopFact, Recorded};
use signoff_term::json;
use signoff_term::tui::{Mode, Wish};

use self::feed::Feed;
pub use self::feed::known;
use super::replay::naming;
use crate::console::Console;
use crate::drive::run_id;
use crate::failure::{Exit, Failure};
use crate::screen::{Clerk, Ends, Fulfil, Left, Patience, Screen};
use crate::show::Tale;
use crate::{desk, door};

/// How often it is looked whether somebody recorded something.
const MOMENT: Duration = Duration::from_millis(100);

/// Watch what other signoffs do
///
/// On a terminal it is a screen with all open runs and the queue, or one run, and whatever comes; `?` lists its keys.
/// Questions are answered there too: whoever works goes on. Elsewhere, and with --plain, it prints lines, from now on, or
/// of one run from its beginning. Where nothing is at work it waits; with a RUN it ends with the run, otherwise when you
/// end it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff watch\n  signoff watch 3 --plain")]
pub struct Args {
    /// Only this run
    #[arg(value_name = "RUN", value_parser = run_id)]
    run: Option<RunId>,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    no_document(console)?;
    let root = desk::root()?;
    let mut feed = Feed::new(root.clone(), args.run)?;
    let (tell, left) = mpsc::channel();
    let screen = Screen::open(console, (Mode::Watching, Ends::Here), &root, |teller| {
        Box::new(Watching { clerk: Clerk::new(root.clone(), &teller), left: tell })
    });
    match screen {
        Some(screen) => on_screen(&screen, &mut feed, &left),
        None => in_lines(&mut feed, args.run, console),
    }
}

/// What goes on has no end that could be a document.
pub fn no_document(console: &Console) -> Result<(), Failure> {
    if console.json {
        return Err(Failure::usage("--json is for commands that end with a result")
            .hint("--json-events prints every recorded fact as a line of JSON"));
    }
    Ok(())
}

/// What the screen wishes for while others work.
struct Watching {
    clerk: Clerk,
    left: Sender<Left>,
}

impl Fulfil for Watching {
    fn fulfil(&mut self, wish: Wish) {
        self.clerk.fulfil(wish);
    }

    fn seen(&mut self, _seen: bool) {}

    fn left(&mut self, left: Left) {
        self.left.send(left).ok();
    }
}

/// How the command ends when the screen is left. A terminal that is gone has seen enough.
pub fn exit(left: Left) -> Exit {
    match left {
        Left::Quit | Left::Gone => Exit::Done,
        Left::Interrupted => Exit::Interrupted,
    }
}

/// What is said when nobody draws any more.
pub fn broken() -> Failure {
    Failure::failed("the screen broke").hint("--plain shows the same in lines")
}

fn on_screen(screen: &Screen, feed: &mut Feed, left: &Receiver<Left>) -> Result<Exit, Failure> {
    let (teller, mut patience) = (screen.teller(), Patience::default());
    loop {
        if feed.begins_anew()? {
            teller.anew();
        }
        let standings = feed.standings()?;
        let news = feed.news()?;
        let moved = news.iter().any(moves_the_queue);
        if !news.is_empty() {
            teller.facts(news);
        }
        // A task that was taken up is in a run by now.
        if let Some(queue) = feed.queue(moved)? {
            teller.queue(queue);
        }
        if let Some(standings) = standings {
            teller.standings(standings);
        }
        feed.say(teller);
        break_for_a_test();
        match left.recv_timeout(MOMENT) {
            Ok(left) => return Ok(exit(left)),
            Err(RecvTimeoutError::Timeout) if screen.is_deaf(&mut patience) => return Ok(Exit::Interrupted),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(broken()),
        }
    }
}

/// Whether a task was added, called off or taken up.
fn moves_the_queue(recorded: &Recorded) -> bool {
    matches!(recorded.fact, Fact::Task(..) | Fact::Loop(_, LoopFact::Added { .. }))
}

fn in_lines(feed: &mut Feed, run: Option<RunId>, console: &Console) -> Result<Exit, Failure> {
    let mut news = if run.is_some() { feed.news()? } else { Vec::new() };
    let mut tale = Tale::new(naming(&news));
    if run.is_none() {
        for (run, log) in feed.so_far()? {
            tale.catch_up(run, &log);
        }
        console.note("Watching; Ctrl-C ends it");
    }
    loop {
        if feed.begins_anew()? {
            tale = Tale::new(naming(&[]));
        }
        news.extend(feed.news()?);
        for recorded in news.drain(..) {
            let lines = if console.json_events { vec![json::event(&recorded)] } else { tale.take(&recorded) };
            for line in lines {
                if !console.line(&line)? {
                    return Ok(Exit::Done);
                }
            }
        }
        if feed.is_over() || !console.is_read() {
            return Ok(Exit::Done);
        }
        door::wait_a_moment();
    }
}

/// A test may want to see what a panic leaves behind.
fn break_for_a_test() {
    let wanted = door::test_word("SIGNOFF_TEST_PANIC").is_some_and(|place| place == "watching");
    assert!(!wanted, "a test wants to see this");
}
