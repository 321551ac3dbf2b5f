//! Key handling of the terminal UI.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::{SignedDuration, Timestamp};
use signoff_core::ids::FindingId;
use signoff_core::view::inbox::{self, TaskActions};

use super::dialog::{Dialog, DialogReply, DialogTask};
use super::list::Navigation;
use super::pane::{OpenLoop, Pane};
use super::row::RowKey;
use super::{ReplayControl, Tui, TuiMode, TuiRequest};
use crate::fit::truncate_line;
use crate::question_queue::{OpenQuestion, QuestionDecision};

/// Keys that follow each other faster than this are type-ahead.
const TYPE_AHEAD: SignedDuration = SignedDuration::from_millis(400);

/// Whether the key is this letter together with the control key.
pub fn is_control(key: KeyEvent, letter: char) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char(letter)
}

/// The code of a key; `Null` if it is pressed together with the control key.
pub fn code_without_control(key: KeyEvent) -> KeyCode {
    if key.modifiers.contains(KeyModifiers::CONTROL) { KeyCode::Null } else { key.code }
}

impl Tui {
    /// Handles a key, and returns the requests that follow.
    pub fn handle_key(&mut self, key: impl Into<KeyEvent>, now: Timestamp) -> Vec<TuiRequest> {
        let key: KeyEvent = key.into();
        // Apply pending changes first: the key refers to what is on the screen.
        self.refresh();
        self.dirty = true;
        self.note.clear();
        let code = code_without_control(key);
        let mut requests: Vec<_> = match self.dialog.take() {
            dialog if is_control(key, 'c') => {
                self.dialog = dialog;
                Some(TuiRequest::Interrupt)
            }
            Some(Dialog::Question) if self.is_type_ahead(now) => {
                self.dialog = Some(Dialog::Question);
                None
            }
            Some(Dialog::Question) => self.question_key(code),
            Some(dialog) => self.dialog_key(dialog, key),
            None => {
                let request = self.command_key(code);
                self.note_list_input(now);
                request
            }
        }
        .into_iter()
        .collect();
        self.refresh();
        requests.extend(self.requests());
        requests
    }

    /// Inserts pasted text into an open text field. It is never a command.
    pub fn paste(&mut self, text: &str, now: Timestamp) {
        self.refresh();
        self.dirty = true;
        self.note.clear();
        match &mut self.dialog {
            Some(Dialog::Question) => {
                self.is_type_ahead(now);
            }
            Some(dialog) => dialog.paste(text),
            None => self.note_list_input(now),
        }
        self.refresh();
    }

    /// Records input for the list: a question may pop up over it. This includes a key that closed a pane.
    fn note_list_input(&mut self, now: Timestamp) {
        self.list_input_at = Some(now).filter(|_| self.opened.is_none());
    }

    /// Whether the key continues input that started before the question popped up. It must not answer the question.
    fn is_type_ahead(&mut self, now: Timestamp) -> bool {
        let is_recent = |at: Timestamp| now.duration_since(at).abs() < TYPE_AHEAD;
        let is_type_ahead = self.list_input_at.is_some_and(is_recent);
        self.list_input_at = Some(now).filter(|_| is_type_ahead);
        is_type_ahead
    }

    fn dialog_key(&mut self, mut dialog: Dialog, key: KeyEvent) -> Option<TuiRequest> {
        match dialog.handle_key(key) {
            DialogReply::Close(request) => return request,
            DialogReply::Stay => {}
            DialogReply::Refuse(why) => self.show_note(why),
        }
        self.dialog = Some(dialog);
        None
    }

    fn question_key(&mut self, key: KeyCode) -> Option<TuiRequest> {
        if key == KeyCode::Char('o') || (key == KeyCode::Enter && !self.questions.has_chosen()) {
            self.open_asking_loop();
            return None;
        }
        if key == KeyCode::Char('?') {
            self.dialog = Some(Dialog::Help { top: 0 });
            return None;
        }
        let decision = self.questions.handle_key(key);
        match &decision {
            Some(QuestionDecision::Later { answer_command, .. }) => {
                self.show_note(&format!("deferred: press a, or type {answer_command}"));
            }
            Some(QuestionDecision::Answer { .. }) => {}
            None => self.dialog = Some(Dialog::Question),
        }
        decision.map(TuiRequest::QuestionDecided)
    }

    fn command_key(&mut self, key: KeyCode) -> Option<TuiRequest> {
        match (key, self.mode) {
            (KeyCode::Char('?'), _) => self.dialog = Some(Dialog::Help { top: 0 }),
            (KeyCode::Char('q'), TuiMode::Driving) if !self.shutting_down => self.dialog = Some(Dialog::Quit),
            (KeyCode::Char('q'), _) => return Some(TuiRequest::Quit),
            (KeyCode::Char(' '), TuiMode::Replaying) => return Some(TuiRequest::Replay(ReplayControl::Pause)),
            (KeyCode::Char('+' | '='), TuiMode::Replaying) => {
                return Some(TuiRequest::Replay(ReplayControl::Faster));
            }
            (KeyCode::Char('-'), TuiMode::Replaying) => {
                return Some(TuiRequest::Replay(ReplayControl::Slower));
            }
            (KeyCode::Char('a' | 'r' | 'c' | 'e' | 'x'), TuiMode::Replaying) => {
                self.show_note("not available in a replay");
            }
            (KeyCode::Char('a'), _) => self.show_question(),
            (KeyCode::Char('r'), _) => match self.actions() {
                Some(TaskActions { retry: false, .. }) => self.show_note("nothing to retry: the task has not stopped"),
                Some(_) | None => self.open_task_dialog(Dialog::Retry),
            },
            (KeyCode::Char('c'), _) => match self.actions() {
                Some(TaskActions { cancel: false, .. }) => self.show_note("nothing to cancel: the task has ended"),
                Some(_) | None => self.open_task_dialog(Dialog::Cancel),
            },
            (KeyCode::Char('e'), _) => match self.actions() {
                Some(TaskActions { edit: false, .. }) => self.show_note("no verdict to set: the task has not started"),
                Some(_) | None => self.open_task_dialog(|task| Dialog::Edit { task, chosen: None, reason: None }),
            },
            (key, _) => self.navigation_key(key),
        }
        None
    }

    fn navigation_key(&mut self, key: KeyCode) {
        let step = Navigation::from_key(key);
        match (&mut self.opened, step, key) {
            (Some(opened), Some(step), _) => opened.step(step),
            (None, Some(step), _) => self.list.step(step, &self.model),
            (Some(_), None, KeyCode::Esc | KeyCode::Left | KeyCode::Backspace) => self.opened = None,
            (Some(opened), None, KeyCode::Tab | KeyCode::Right) => opened.rotate(1),
            (Some(opened), None, KeyCode::BackTab) => opened.rotate(Pane::ALL.len() - 1),
            (Some(opened), None, KeyCode::Char(digit @ '1'..='5')) => {
                opened.show(Pane::ALL[digit as usize - '1' as usize]);
            }
            (Some(opened), None, KeyCode::Char(side @ ('[' | ']'))) => opened.select_adjacent(side == ']', &self.model),
            (Some(_), None, KeyCode::Char('x')) => self.open_dispute(),
            (None, None, KeyCode::Enter | KeyCode::Right) => self.open(),
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
        let Some((run, loop_id)) = self.questions.shown_loop() else { return };
        let key = match loop_id.checkpoint_target() {
            Some((reviewed, _)) => RowKey::new(run, &reviewed),
            None => RowKey::new(run, loop_id),
        };
        let task = self.model.row(&key).and_then(|row| row.task);
        if self.opened.as_ref().is_none_or(|opened| opened.key != key) {
            self.opened = Some(OpenLoop::new(key, task));
        }
    }

    /// The loop that keys act on: the open one, or the selected one.
    fn subject(&self) -> Option<RowKey> {
        let selected = || self.list.chosen(&self.model).map(|(key, _)| key.clone());
        self.opened.as_ref().map(|opened| opened.key.clone()).or_else(selected)
    }

    /// What a person can do with the chosen task.
    fn actions(&self) -> Option<TaskActions> {
        let row = self.subject().and_then(|key| self.model.row(&key));
        row.filter(|row| row.task.is_some()).map(|row| row.actions)
    }

    fn open_task_dialog(&mut self, dialog: impl FnOnce(DialogTask) -> Dialog) {
        let row = self.subject().and_then(|key| self.model.row(&key));
        let task = row.and_then(|row| Some(DialogTask { task: row.task?, name: row.name.clone() }));
        match task {
            Some(task) => self.dialog = Some(dialog(task)),
            None => self.show_note("choose a task first"),
        }
    }

    /// Shows the question of the selected loop, or the oldest postponed one.
    fn show_question(&mut self) {
        let key = self.subject();
        let is_subject = |question: &OpenQuestion| {
            key.as_ref().is_some_and(|key| key.run == question.run && key.loop_id == question.loop_id)
        };
        if self.shutting_down {
            self.show_note("no more questions: the program is shutting down");
        } else if self.questions.ask_again(is_subject) {
            // The question was requested, so the next key is meant for it.
            self.list_input_at = None;
            self.dialog = Some(Dialog::Question);
        } else {
            self.show_note("there is no open question");
        }
    }

    fn open_dispute(&mut self) {
        let selected = self.opened.as_ref().and_then(|opened| opened.finding());
        if selected.is_some_and(|line| !inbox::can_be_disputed(line.state)) {
            self.show_note("nothing to dispute: no review opens the finding again");
            return;
        }
        let selected = selected.map(|line| {
            let text = format!("{}: {}", line.finding.severity, line.finding.description);
            (FindingId::new(line.finding.id.clone()), truncate_line(&text, 400))
        });
        match selected {
            Some((finding, what)) => {
                self.open_task_dialog(|task| Dialog::Dispute { task, finding, what, reason: String::new() });
            }
            None => self.show_note("choose a finding first: pane 2"),
        }
    }
}
