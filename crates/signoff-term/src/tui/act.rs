//! What keys do.

use jiff::{SignedDuration, Timestamp};
use signoff_core::ids::FindingId;

use super::dialog::{About, Dialog, Reply};
use super::list::Step;
use super::pane::{Opened, Pane};
use super::press::Press;
use super::row::RowKey;
use super::wish::{Tempo, Wish};
use super::{Mode, Tui};
use crate::dialogue::{Decided, Key};
use crate::fit::cut;

/// Keys that follow each other sooner were typed at one go.
const AT_ONE_GO: SignedDuration = SignedDuration::from_millis(400);

impl Tui {
    /// Takes in a key that was pressed at this time, and gives what it asks for.
    pub fn press(&mut self, key: Press, now: Timestamp) -> Vec<Wish> {
        // What is on the screen is what keys are about.
        self.refresh();
        self.dirty = true;
        self.note.clear();
        let mut wishes: Vec<_> = match (key, self.dialog.take()) {
            (Press::Ctrl('c'), dialog) => {
                self.dialog = dialog;
                Some(Wish::Interrupt)
            }
            (_, Some(Dialog::Question)) if self.was_meant_for_the_list(now) => {
                self.dialog = Some(Dialog::Question);
                None
            }
            (key, Some(Dialog::Question)) => self.answered(key),
            (key, Some(dialog)) => self.decided(dialog, key),
            (key, None) => {
                let wish = self.pressed(key);
                // Also a key that led back to the list, where a question may wait.
                self.listed_at = Some(now).filter(|_| self.opened.is_none());
                wish
            }
        }
        .into_iter()
        .collect();
        self.refresh();
        wishes.extend(self.wishes());
        wishes
    }

    /// Whether a key goes on with what was typed when a question came up: it must not answer that.
    fn was_meant_for_the_list(&mut self, now: Timestamp) -> bool {
        let soon = |at: Timestamp| now.duration_since(at).abs() < AT_ONE_GO;
        let goes_on = self.listed_at.is_some_and(soon);
        self.listed_at = Some(now).filter(|_| goes_on);
        goes_on
    }

    fn decided(&mut self, mut dialog: Dialog, key: Press) -> Option<Wish> {
        match dialog.press(key) {
            Reply::Closes(wish) => return wish,
            Reply::Stays => {}
            Reply::Refuses(why) => self.note(why),
        }
        self.dialog = Some(dialog);
        None
    }

    fn answered(&mut self, key: Press) -> Option<Wish> {
        let key = match (Step::of(key), key) {
            (Some(Step::Up), _) => Key::Up,
            (Some(Step::Down), _) => Key::Down,
            (None, Press::Char(digit @ '1'..='9')) => Key::Digit(digit as usize - '0' as usize),
            (None, Press::Enter) if !self.dialogue.has_chosen() => {
                self.look();
                return None;
            }
            (None, Press::Enter) => Key::Enter,
            (None, Press::Esc) => Key::Esc,
            (None, Press::Char('?')) => {
                self.dialog = Some(Dialog::Help { top: 0 });
                return None;
            }
            (None, Press::Char('o')) => {
                self.look();
                return None;
            }
            (Some(_) | None, _) => {
                self.dialog = Some(Dialog::Question);
                return None;
            }
        };
        match self.dialogue.press(key) {
            Some(decided) => {
                if let Decided::Later { how, .. } = &decided {
                    self.note(&format!("left for later: press a, or type {how}"));
                }
                Some(Wish::Settle(decided))
            }
            None => {
                self.dialog = Some(Dialog::Question);
                None
            }
        }
    }

    fn pressed(&mut self, key: Press) -> Option<Wish> {
        match (key, self.mode) {
            // What was copied elsewhere is no key.
            (Press::Pasted(_), _) => {}
            (Press::Char('?'), _) => self.dialog = Some(Dialog::Help { top: 0 }),
            (Press::Char('q'), Mode::Driving) if !self.ending => self.dialog = Some(Dialog::Quit),
            (Press::Char('q'), _) => return Some(Wish::Quit),
            (Press::Char(' '), Mode::Replaying) => return Some(Wish::Replay(Tempo::Pause)),
            (Press::Char('+' | '='), Mode::Replaying) => return Some(Wish::Replay(Tempo::Faster)),
            (Press::Char('-'), Mode::Replaying) => return Some(Wish::Replay(Tempo::Slower)),
            (Press::Char('a' | 'r' | 'c' | 'e' | 'x'), Mode::Replaying) => {
                self.note("a replay only shows what has happened");
            }
            (Press::Char('a'), _) => self.ask(),
            (Press::Char('r'), _) => self.about_task(Dialog::Retry),
            (Press::Char('c'), _) => self.about_task(Dialog::Cancel),
            (Press::Char('e'), _) => {
                self.about_task(|about| Dialog::Edit { about, chosen: None, reason: None });
            }
            (key, _) => self.moved(key),
        }
        None
    }

    fn moved(&mut self, key: Press) {
        let step = Step::of(key);
        match (&mut self.opened, step, key) {
            (Some(opened), Some(step), _) => opened.step(step),
            (None, Some(step), _) => self.list.step(step, &self.fold),
            (Some(_), None, Press::Esc | Press::Left | Press::Backspace) => self.opened = None,
            (Some(opened), None, Press::Tab | Press::Right) => opened.turn(1),
            (Some(opened), None, Press::BackTab) => opened.turn(Pane::ALL.len() - 1),
            (Some(opened), None, Press::Char(digit @ '1'..='5')) => {
                opened.show(Pane::ALL[digit as usize - '1' as usize]);
            }
            (Some(opened), None, Press::Char(side @ ('[' | ']'))) => opened.leaf(side == ']', &self.fold),
            (Some(_), None, Press::Char('x')) => self.dispute(),
            (None, None, Press::Enter | Press::Right) => self.open(),
            (Some(_) | None, None, _) => {}
        }
    }

    fn open(&mut self) {
        if let Some((key, row)) = self.list.chosen(&self.fold) {
            self.opened = Some(Opened::new(key.clone(), row.task));
        }
    }

    /// Opens the loop that asks. Its question waits meanwhile, and nobody is told anything.
    fn look(&mut self) {
        let Some((run, loop_id)) = self.dialogue.asking() else { return };
        let key = match loop_id.of_checkpoint() {
            Some((of, _)) => RowKey::new(run, &of),
            None => RowKey::new(run, loop_id),
        };
        let task = self.fold.row(&key).and_then(|row| row.task);
        if self.opened.as_ref().is_none_or(|opened| opened.key != key) {
            self.opened = Some(Opened::new(key, task));
        }
    }

    /// The loop that keys are about: the one that is open, or the one that is chosen.
    fn subject(&self) -> Option<(RowKey, About)> {
        let key = match &self.opened {
            Some(opened) => opened.key.clone(),
            None => self.list.chosen(&self.fold)?.0.clone(),
        };
        let row = self.fold.row(&key)?;
        Some((key, About { task: row.task?, name: row.name.clone() }))
    }

    fn about_task(&mut self, dialog: impl FnOnce(About) -> Dialog) {
        match self.subject() {
            Some((_, about)) => self.dialog = Some(dialog(about)),
            None => self.note("choose a task first"),
        }
    }

    /// The question of the chosen loop, or the oldest one that was left for later.
    fn ask(&mut self) {
        let key = match &self.opened {
            Some(opened) => Some(opened.key.clone()),
            None => self.list.chosen(&self.fold).map(|(key, _)| key.clone()),
        };
        if self.ending {
            self.note("nobody is asked any more: the program is about to end");
        } else if self.dialogue.raise(key.as_ref().map(|key| (key.run, &key.loop_id))) {
            // Whoever wants to be asked means the question.
            self.listed_at = None;
            self.dialog = Some(Dialog::Question);
        } else {
            self.note("nothing is asked");
        }
    }

    fn dispute(&mut self) {
        let found = self.opened.as_ref().and_then(|opened| opened.finding());
        let what = found.map(|line| {
            let what = format!("{}: {}", line.finding.severity, line.finding.description);
            (FindingId::new(line.finding.id.clone()), cut(&what, 400))
        });
        match what {
            Some((finding, what)) => {
                self.about_task(|about| Dialog::Dispute { about, finding, what, reason: String::new() });
            }
            None => self.note("choose a finding first: pane 2"),
        }
    }
}
