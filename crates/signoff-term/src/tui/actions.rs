//! Key handling of the terminal UI.

use jiff::{SignedDuration, Timestamp};
use signoff_core::ids::FindingId;

use super::dialog::{Dialog, DialogReply, DialogTask};
use super::key::TuiKey;
use super::list::Navigation;
use super::pane::{OpenLoop, Pane};
use super::row::RowKey;
use super::{ReplayControl, Tui, TuiMode, TuiRequest};
use crate::dialogue::{DialogueKey, QuestionDecision};
use crate::fit::cut;

/// Keys that follow each other faster than this are type-ahead.
const TYPE_AHEAD: SignedDuration = SignedDuration::from_millis(400);

impl Tui {
    /// Handles a key, and returns the requests that follow.
    pub fn press(&mut self, key: TuiKey, now: Timestamp) -> Vec<TuiRequest> {
        // Apply pending changes first: the key refers to what is on the screen.
        self.refresh();
        self.dirty = true;
        self.note.clear();
        let mut requests: Vec<_> = match (key, self.dialog.take()) {
            (TuiKey::Ctrl('c'), dialog) => {
                self.dialog = dialog;
                Some(TuiRequest::Interrupt)
            }
            (_, Some(Dialog::Question)) if self.is_type_ahead(now) => {
                self.dialog = Some(Dialog::Question);
                None
            }
            (key, Some(Dialog::Question)) => self.question_key(key),
            (key, Some(dialog)) => self.dialog_key(dialog, key),
            (key, None) => {
                let request = self.command_key(key);
                // This includes a key that closed a pane, since a question may pop up over the list.
                self.listed_at = Some(now).filter(|_| self.opened.is_none());
                request
            }
        }
        .into_iter()
        .collect();
        self.refresh();
        requests.extend(self.requests());
        requests
    }

    /// Whether the key continues input that started before the question popped up. It must not answer the question.
    fn is_type_ahead(&mut self, now: Timestamp) -> bool {
        let soon = |at: Timestamp| now.duration_since(at).abs() < TYPE_AHEAD;
        let goes_on = self.listed_at.is_some_and(soon);
        self.listed_at = Some(now).filter(|_| goes_on);
        goes_on
    }

    fn dialog_key(&mut self, mut dialog: Dialog, key: TuiKey) -> Option<TuiRequest> {
        match dialog.press(key) {
            DialogReply::Close(wish) => return wish,
            DialogReply::Stay => {}
            DialogReply::Refuse(why) => self.show_note(why),
        }
        self.dialog = Some(dialog);
        None
    }

    fn question_key(&mut self, key: TuiKey) -> Option<TuiRequest> {
        let key = match (Navigation::from_key(key), key) {
            (Some(Navigation::Up), _) => DialogueKey::Up,
            (Some(Navigation::Down), _) => DialogueKey::Down,
            (None, TuiKey::Char(digit @ '1'..='9')) => DialogueKey::Digit(digit as usize - '0' as usize),
            (None, TuiKey::Enter) if !self.dialogue.has_chosen() => {
                self.open_asking_loop();
                return None;
            }
            (None, TuiKey::Enter) => DialogueKey::Enter,
            (None, TuiKey::Esc) => DialogueKey::Esc,
            (None, TuiKey::Char('?')) => {
                self.dialog = Some(Dialog::Help { top: 0 });
                return None;
            }
            (None, TuiKey::Char('o')) => {
                self.open_asking_loop();
                return None;
            }
            (Some(_) | None, _) => {
                self.dialog = Some(Dialog::Question);
                return None;
            }
        };
        match self.dialogue.press(key) {
            Some(decided) => {
                if let QuestionDecision::Later { answer_command: how, .. } = &decided {
                    self.show_note(&format!("left for later: press a, or type {how}"));
                }
                Some(TuiRequest::QuestionDecided(decided))
            }
            None => {
                self.dialog = Some(Dialog::Question);
                None
            }
        }
    }

    fn command_key(&mut self, key: TuiKey) -> Option<TuiRequest> {
        match (key, self.mode) {
            // Pasted text is not a command.
            (TuiKey::Pasted(_), _) => {}
            (TuiKey::Char('?'), _) => self.dialog = Some(Dialog::Help { top: 0 }),
            (TuiKey::Char('q'), TuiMode::Driving) if !self.ending => self.dialog = Some(Dialog::Quit),
            (TuiKey::Char('q'), _) => return Some(TuiRequest::Quit),
            (TuiKey::Char(' '), TuiMode::Replaying) => return Some(TuiRequest::Replay(ReplayControl::Pause)),
            (TuiKey::Char('+' | '='), TuiMode::Replaying) => {
                return Some(TuiRequest::Replay(ReplayControl::Faster));
            }
            (TuiKey::Char('-'), TuiMode::Replaying) => {
                return Some(TuiRequest::Replay(ReplayControl::Slower));
            }
            (TuiKey::Char('a' | 'r' | 'c' | 'e' | 'x'), TuiMode::Replaying) => {
                self.show_note("a replay only shows what has happened");
            }
            (TuiKey::Char('a'), _) => self.show_question(),
            (TuiKey::Char('r'), _) => self.open_task_dialog(Dialog::Retry),
            (TuiKey::Char('c'), _) => self.open_task_dialog(Dialog::Cancel),
            (TuiKey::Char('e'), _) => {
                self.open_task_dialog(|about| Dialog::Edit { about, chosen: None, reason: None });
            }
            (key, _) => self.navigation_key(key),
        }
        None
    }

    fn navigation_key(&mut self, key: TuiKey) {
        let step = Navigation::from_key(key);
        match (&mut self.opened, step, key) {
            (Some(opened), Some(step), _) => opened.step(step),
            (None, Some(step), _) => self.list.step(step, &self.model),
            (Some(_), None, TuiKey::Esc | TuiKey::Left | TuiKey::Backspace) => self.opened = None,
            (Some(opened), None, TuiKey::Tab | TuiKey::Right) => opened.rotate(1),
            (Some(opened), None, TuiKey::BackTab) => opened.rotate(Pane::ALL.len() - 1),
            (Some(opened), None, TuiKey::Char(digit @ '1'..='5')) => {
                opened.show(Pane::ALL[digit as usize - '1' as usize]);
            }
            (Some(opened), None, TuiKey::Char(side @ ('[' | ']'))) => opened.select_adjacent(side == ']', &self.model),
            (Some(_), None, TuiKey::Char('x')) => self.open_dispute(),
            (None, None, TuiKey::Enter | TuiKey::Right) => self.open(),
            (Some(_) | None, None, _) => {}
        }
    }

    fn open(&mut self) {
        if let Some((key, row)) = self.list.chosen(&self.model) {
            self.opened = Some(OpenLoop::new(key.clone(), row.task));
        }
    }

    /// Opens the loop of the question. The question stays open meanwhile.
    fn open_asking_loop(&mut self) {
        let Some((run, loop_id)) = self.dialogue.shown_loop() else { return };
        let key = match loop_id.checkpoint_target() {
            Some((of, _)) => RowKey::new(run, &of),
            None => RowKey::new(run, loop_id),
        };
        let task = self.model.row(&key).and_then(|row| row.task);
        if self.opened.as_ref().is_none_or(|opened| opened.key != key) {
            self.opened = Some(OpenLoop::new(key, task));
        }
    }

    /// The loop that keys act on: the open one, or the selected one.
    fn subject(&self) -> Option<(RowKey, DialogTask)> {
        let key = match &self.opened {
            Some(opened) => opened.key.clone(),
            None => self.list.chosen(&self.model)?.0.clone(),
        };
        let row = self.model.row(&key)?;
        Some((key, DialogTask { task: row.task?, name: row.name.clone() }))
    }

    fn open_task_dialog(&mut self, dialog: impl FnOnce(DialogTask) -> Dialog) {
        match self.subject() {
            Some((_, about)) => self.dialog = Some(dialog(about)),
            None => self.show_note("choose a task first"),
        }
    }

    /// Shows the question of the selected loop, or the oldest postponed one.
    fn show_question(&mut self) {
        let key = match &self.opened {
            Some(opened) => Some(opened.key.clone()),
            None => self.list.chosen(&self.model).map(|(key, _)| key.clone()),
        };
        if self.ending {
            self.show_note("no more questions: the program is shutting down");
        } else if self.dialogue.ask_again(key.as_ref().map(|key| (key.run, &key.loop_id))) {
            // The question was requested, so the next key is meant for it.
            self.listed_at = None;
            self.dialog = Some(Dialog::Question);
        } else {
            self.show_note("there is no open question");
        }
    }

    fn open_dispute(&mut self) {
        let found = self.opened.as_ref().and_then(|opened| opened.finding());
        let what = found.map(|line| {
            let what = format!("{}: {}", line.finding.severity, line.finding.description);
            (FindingId::new(line.finding.id.clone()), cut(&what, 400))
        });
        match what {
            Some((finding, what)) => {
                self.open_task_dialog(|about| Dialog::Dispute { about, finding, what, reason: String::new() });
            }
            None => self.show_note("choose a finding first: pane 2"),
        }
    }
}
