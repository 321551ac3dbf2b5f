//! `signoff replay`: a run once more, as it was recorded.

mod pace;
mod scene;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use signoff_core::ids::{RunId, TaskId};
use signoff_core::wire::{Fact, LoopFact, Recorded, RunFact};
use signoff_store::Store;
use signoff_term::json;
use signoff_term::line::Naming;
use signoff_term::tui::{Errand, Material, Mode, Tempo, Wish};

use self::pace::{Pacing, Speed, speed};
use self::scene::Scene;
use super::watch::{broken, exit, no_document};
use crate::console::Console;
use crate::desk::Desk;
use crate::door;
use crate::drive::run_id;
use crate::failure::{Exit, Failure};
use crate::screen::{Clerk, Ends, Fulfil, Left, Patience, Screen};
use crate::show::Tale;

/// How often the clocks of a replay go on.
const MOMENT: Duration = Duration::from_millis(100);

/// How many facts the screen is handed at once.
const PIECE: usize = 1000;

/// Show a run once more
///
/// On a terminal on the screen, with keys to pause it and to change its speed; it stays until you leave it. Elsewhere, and
/// with --plain, in lines. Without --speed it goes ten times as fast as it was, and nothing is waited for longer than two
/// seconds.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff replay 3\n  signoff replay 3 --speed max --plain")]
pub struct Args {
    /// The run
    #[arg(value_name = "RUN", value_parser = run_id)]
    run: RunId,
    /// How many times as fast as it was; `max` waits for nothing
    #[arg(long, value_name = "N|max", value_parser = speed)]
    speed: Option<Speed>,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    no_document(console)?;
    let desk = Desk::find()?;
    super::watch::known(desk.as_ref(), args.run)?;
    let Some(desk) = desk else { return Ok(Exit::Done) };
    let log = desk.store.log(args.run)?;
    let pacing = Pacing::new(args.speed);
    let (tell, told) = mpsc::channel();
    let screen = Screen::open(console, (Mode::Replaying, Ends::Here), &desk.root, |teller| {
        Box::new(Replaying { clerk: Clerk::new(desk.root.clone(), &teller), told: tell })
    });
    match screen {
        Some(screen) => on_screen(&screen, &Scene { desk, log }, pacing, &told),
        None => in_lines(&log, pacing, console),
    }
}

/// What comes from the screen.
enum Told {
    Report(TaskId),
    Tempo(Tempo),
    Left(Left),
}

/// What the screen wishes for: how a task stood is told by the log, the rest is as it is today.
struct Replaying {
    clerk: Clerk,
    told: Sender<Told>,
}

impl Fulfil for Replaying {
    fn fulfil(&mut self, wish: Wish) {
        let told = match wish {
            Wish::Look(Errand::Report(task)) => Told::Report(task),
            Wish::Replay(tempo) => Told::Tempo(tempo),
            Wish::Look(Errand::Diff(_) | Errand::Transcript { .. }) => return self.clerk.fulfil(wish),
            // What has happened cannot be decided any more.
            Wish::Quit | Wish::Interrupt | Wish::Settle(_) | Wish::Decide(..) => return,
        };
        self.told.send(told).ok();
    }

    fn seen(&mut self, _seen: bool) {}

    fn left(&mut self, left: Left) {
        self.told.send(Told::Left(left)).ok();
    }
}

fn on_screen(
    screen: &Screen,
    scene: &Scene,
    mut pacing: Pacing,
    told: &Receiver<Told>,
) -> Result<Exit, Failure> {
    let (teller, mut patience) = (screen.teller(), Patience::default());
    let mut shown = 0;
    teller.supply(Material::Pace(pacing.told(scene.log.is_empty())));
    loop {
        let due = pacing.due(scene.log.get(shown..).unwrap_or_default(), door::now());
        if due > 0 {
            let next = scene.log.get(shown..shown + due).unwrap_or_default();
            next.chunks(PIECE).for_each(|piece| teller.facts(piece.to_vec()));
            shown += due;
            if shown == scene.log.len() {
                teller.supply(Material::Pace(pacing.told(true)));
            }
        }
        pacing.time().into_iter().for_each(|time| teller.time(time));
        match told.recv_timeout(MOMENT) {
            Ok(Told::Left(left)) => return Ok(exit(left)),
            Ok(Told::Report(task)) => {
                if let Some(report) = scene.report(task, shown)? {
                    teller.supply(Material::Report { task, report: Box::new(report) });
                }
            }
            Ok(Told::Tempo(tempo)) => {
                pacing.change(tempo);
                teller.supply(Material::Pace(pacing.told(shown == scene.log.len())));
            }
            Err(RecvTimeoutError::Timeout) if screen.is_deaf(&mut patience) => return Ok(Exit::Interrupted),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(broken()),
        }
    }
}

fn in_lines(log: &[Recorded], mut pacing: Pacing, console: &Console) -> Result<Exit, Failure> {
    let mut tale = Tale::new(naming(log));
    for recorded in log {
        let lines = if console.json_events { vec![json::event(recorded)] } else { tale.take(recorded) };
        // What nobody sees is not waited for by itself.
        let wait = pacing.wait(recorded.at);
        if !wait.is_zero() && !lines.is_empty() {
            door::let_pass(pacing.waited());
        }
        for line in lines {
            if !console.line(&line)? {
                return Ok(Exit::Done);
            }
        }
    }
    Ok(Exit::Done)
}

/// Whether lines say whose they are, as they did when it was worked.
pub fn naming(log: &[Recorded]) -> Naming {
    let several = log.iter().any(
        |recorded| matches!(&recorded.fact, Fact::Run(RunFact::Opened { policy, .. }) if policy.jobs > 1),
    );
    let added = |recorded: &&Recorded| matches!(recorded.fact, Fact::Loop(_, LoopFact::Added { .. }));
    if several && log.iter().filter(added).count() > 1 { Naming::Always } else { Naming::WhenNeeded }
}
