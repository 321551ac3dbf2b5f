//! What the drawing thread does: it hears keys, takes in what is new, and draws.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rustix::process::{Signal, getpgrp, getpid, kill_process, kill_process_group};
use signoff_term::tui::{Press, Tui, Wish};

use super::keys::{Heard, Keys};
use super::signals::{Ends, Told};
use super::terminal::{self, Taken, Whose};
use super::{Fulfil, Left, News};
use crate::console::Console;
use crate::door;

/// No two frames follow each other sooner.
const FRAME: Duration = Duration::from_nanos(33_333_333);

/// How much is taken in before a frame is drawn: what comes faster than that must not keep it from being drawn, nor keys
/// from being heard.
const MOST: usize = 20_000;

/// How long it may take.
const LONGEST: SignedDuration = SignedDuration::from_millis(20);

/// The same where facts are taken in: a long log is there the sooner the less often it is drawn on the way.
const LONGEST_LOG: SignedDuration = SignedDuration::from_millis(100);

/// What the drawing thread owns.
pub struct Drawing {
    tui: Tui,
    fulfil: Box<dyn Fulfil>,
    console: Console,
    keys: Keys,
    /// Who ends by signals, and the signals.
    ends: Ends,
    signals: Receiver<Told>,
    /// None while the terminal is another's, or was given back for good.
    taken: Option<Taken>,
    /// The person left it, or it is gone: it is not taken again.
    left: bool,
    /// It is about to be stopped, or was: the terminal is not taken before it goes on.
    stopped: bool,
    /// The next frame is drawn in any case.
    anew: bool,
    drawn_at: Option<Timestamp>,
    begun_at: Timestamp,
    /// What time it is in what is shown, where that is not now.
    time: Option<Timestamp>,
    frames: u64,
}

impl Drawing {
    pub fn new(
        tui: Tui,
        fulfil: Box<dyn Fulfil>,
        console: Console,
        (ends, signals): (Ends, Receiver<Told>),
    ) -> Self {
        Self {
            tui,
            fulfil,
            console,
            keys: Keys::default(),
            ends,
            signals,
            taken: None,
            left: false,
            stopped: false,
            anew: true,
            drawn_at: None,
            begun_at: door::now(),
            time: None,
            frames: 0,
        }
    }

    /// Takes the terminal.
    pub fn begin(&mut self) -> io::Result<()> {
        self.taken = Some(Taken::take()?);
        self.anew = true;
        Ok(())
    }

    /// Draws what is new until nothing more will come, and gives the terminal back.
    pub fn draw_until_told_off(mut self, news: &Receiver<News>) {
        while self.hear_keys() && self.hear_news(news) {
            self.follow_the_foreground();
            self.draw();
            break_for_a_test(self.frames);
        }
        drop(self.taken.take());
        let seconds = door::now().duration_since(self.begun_at).as_secs_f64();
        self.console.detail(&format!("{} frames in {seconds:.1} s", self.frames));
    }

    /// Waits for keys, at most until the next frame is due. It always goes on.
    fn hear_keys(&mut self) -> bool {
        if self.taken.is_none() {
            return true;
        }
        match self.keys.wait(self.until_due()) {
            Heard::Keys(keys) => keys.into_iter().for_each(|key| self.press(key)),
            Heard::Gone => self.leave(Left::Gone),
        }
        true
    }

    /// How long until a frame may be drawn; a whole frame where none waits for that.
    fn until_due(&self) -> Duration {
        let now = door::now();
        let waits = self.anew || self.tui.needs_frame(self.time.unwrap_or(now));
        let passed = self.drawn_at.map_or(FRAME, |at| now.duration_since(at).unsigned_abs());
        if waits { FRAME.saturating_sub(passed) } else { FRAME }
    }

    fn press(&mut self, key: Press) {
        if key == Press::Ctrl('z') {
            // As the terminal would have done it: all that were started together are stopped.
            kill_process_group(getpgrp(), Signal::TSTP).ok();
            return;
        }
        let wishes = self.tui.press(key, door::now());
        self.fulfil(wishes);
    }

    fn fulfil(&mut self, wishes: Vec<Wish>) {
        for wish in wishes {
            match wish {
                Wish::Quit => self.leave(Left::Quit),
                Wish::Interrupt if self.ends == Ends::Here => self.leave(Left::Interrupted),
                // Not by a signal: two that come at once would be one.
                Wish::Interrupt | Wish::Settle(_) | Wish::Decide(..) | Wish::Look(_) | Wish::Replay(_) => {
                    self.fulfil.fulfil(wish)
                }
            }
        }
    }

    /// Gives the terminal back, for good.
    fn leave(&mut self, left: Left) {
        drop(self.taken.take());
        if !std::mem::replace(&mut self.left, true) {
            self.fulfil.left(left);
        }
    }

    /// Takes in what is there. Where no keys were waited for, it waits for the first. False if nothing more will come.
    fn hear_news(&mut self, news: &Receiver<News>) -> bool {
        if self.taken.is_none() {
            match news.recv_timeout(if self.left { Duration::from_secs(60) } else { FRAME }) {
                Ok(first) => {
                    if !self.take(first) {
                        return false;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        let (begun, mut longest) = (door::now(), LONGEST);
        for _ in 0..MOST {
            self.hear_signals();
            if door::now().duration_since(begun).abs() > longest {
                return true;
            }
            match news.try_recv() {
                Ok(next) => {
                    longest = if matches!(next, News::Facts(_)) { LONGEST_LOG } else { longest };
                    if !self.take(next) {
                        return false;
                    }
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
        true
    }

    fn hear_signals(&mut self) {
        while let Ok(told) = self.signals.try_recv() {
            match told {
                // A terminal that hung up is no interruption.
                Told::End if terminal::whose() == Whose::Nobodys => self.leave(Left::Gone),
                Told::End => self.leave(Left::Interrupted),
                Told::Stop => self.stop(),
                Told::GoOn => self.go_on(),
                Told::Resized => self.anew = true,
            }
        }
    }

    /// False if it is the last.
    fn take(&mut self, news: News) -> bool {
        match news {
            // Nobody will see it.
            News::Facts(_)
            | News::Queue(_)
            | News::Standings(_)
            | News::Anew
            | News::Supply(_)
            | News::SupplySlowly(..)
            | News::Note(_)
            | News::Said { .. }
                if self.left => {}
            News::Facts(facts) => self.tui.catch_up(&facts),
            News::Said { run, loop_id, attempt, line, unheard: _heard } => {
                self.tui.said(run, &loop_id, attempt, &line);
            }
            News::Queue(tasks) => self.tui.queue(tasks),
            News::Standings(standings) => self.tui.standings(standings),
            News::Anew => self.tui.begin_anew(),
            News::Time(time) => self.time = Some(time),
            News::Supply(material) => self.tui.supply(*material),
            News::SupplySlowly(material, _heard) => self.tui.supply(*material),
            News::Note(note) => self.tui.note(&note),
            News::Ending => self.tui.ending(),
            News::Ring(bytes) => terminal::ring(&bytes),
            News::Signal => self.hear_signals(),
            News::Over => return false,
        }
        true
    }

    /// Gives the terminal back and stops, until somebody lets it go on.
    fn stop(&mut self) {
        // Where no shell is there, nobody would: the system does not stop such a program either.
        if !terminal::is_a_job() {
            return;
        }
        drop(self.taken.take());
        // It need not have happened when this returns: some other thread may hear of it first.
        self.stopped = kill_process(getpid(), Signal::STOP).is_ok();
    }

    /// Somebody let it go on: what was done to the terminal meanwhile is done over.
    fn go_on(&mut self) {
        self.stopped = false;
        if self.taken.as_ref().is_some_and(|taken| !taken.is_as_taken()) {
            // It is taken anew at once, if it is ours.
            drop(self.taken.take());
        }
        if let Some(taken) = &mut self.taken {
            taken.forget().ok();
        }
        self.anew = true;
    }

    /// Gives the terminal back when it is another's, and takes it when it is ours again.
    fn follow_the_foreground(&mut self) {
        if self.left || self.stopped {
            return;
        }
        match (terminal::whose(), self.taken.is_some()) {
            (Whose::Ours, true) | (Whose::Anothers, false) => {}
            (Whose::Ours, false) => {
                if self.begin().is_ok() {
                    self.fulfil.seen(true);
                }
            }
            (Whose::Anothers, true) => {
                drop(self.taken.take());
                self.fulfil.seen(false);
            }
            (Whose::Nobodys, _) => self.leave(Left::Gone),
        }
    }

    fn draw(&mut self) {
        let wishes = self.tui.wishes();
        self.fulfil(wishes);
        if !self.until_due().is_zero() {
            return;
        }
        let Some(taken) = &mut self.taken else { return };
        let now = door::now();
        let shown = self.time.unwrap_or(now);
        let drawn = taken.draw(|frame| self.tui.draw(frame, shown));
        (self.drawn_at, self.anew) = (Some(now), false);
        self.frames += 1;
        if drawn.is_err() {
            self.leave(Left::Gone);
        }
    }
}

/// A test may want to see what a panic leaves behind.
fn break_for_a_test(frames: u64) {
    assert!(
        frames < 1 || door::test_word("SIGNOFF_TEST_PANIC").is_none_or(|place| place != "drawing"),
        "a test wants to see this"
    );
}
