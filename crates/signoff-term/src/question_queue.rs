//! Asks a person the open questions on a terminal, one after the other, while the work continues.
//!
//! No choice is preselected, so that an Enter pressed just when the next question appears answers nothing.

mod question;

pub use question::OpenQuestion;

use crossterm::event::KeyCode;
use signoff_core::ids::{LoopId, QuestionId, RunId};
use signoff_core::machine::Choice;

use crate::fit::{columns, count, pad, truncate, truncate_line, wrap};
use crate::progress::DisplaySize;

/// Maximum number of lines of a question's text.
const MAX_TEXT_LINES: usize = 3;

/// Maximum number of findings shown with a question.
const MAX_FINDINGS: usize = 3;

/// The person's decision about a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionDecision {
    Answer {
        run: RunId,
        loop_id: LoopId,
        question: QuestionId,
        choice: Choice,
    },
    /// The question stays open; `answer_command` answers it later.
    Later {
        run: RunId,
        loop_id: LoopId,
        question: QuestionId,
        answer_command: String,
    },
}

/// Whether a question still has to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuestionStatus {
    Pending,
    /// Answered here or postponed; later updates do not show it again.
    Handled,
}

#[derive(Debug, Clone)]
struct QueuedQuestion {
    question: OpenQuestion,
    status: QuestionStatus,
}

/// The questions of all loops, oldest first, and the selected choice of the one that is shown.
#[derive(Debug, Clone, Default)]
pub struct QuestionQueue {
    questions: Vec<QueuedQuestion>,
    chosen: Option<usize>,
    closed: bool,
}

impl QuestionQueue {
    /// Updates the question of a loop; `None` if it has none.
    pub fn update(&mut self, run: RunId, loop_id: &LoopId, question: Option<OpenQuestion>) {
        let shown = self.shown().map(OpenQuestion::key);
        let index = self.position(run, loop_id);
        match (index, question) {
            (Some(index), Some(question)) if self.questions[index].question.id == question.id => {
                self.questions[index].question = question;
            }
            (index, question) => {
                index.map(|index| self.questions.remove(index));
                let status = QuestionStatus::Pending;
                self.questions.extend(question.map(|question| QueuedQuestion { question, status }));
            }
        }
        if self.shown().map(OpenQuestion::key) != shown {
            self.chosen = None;
        }
    }

    /// Shows a postponed question again: the preferred one, or the oldest. Returns whether there is one.
    pub fn ask_again(&mut self, is_preferred: impl Fn(&OpenQuestion) -> bool) -> bool {
        let index = self.questions.iter().position(|queued| is_preferred(&queued.question)).unwrap_or(0);
        if self.closed || self.questions.is_empty() {
            return false;
        }
        let question = self.questions.remove(index).question;
        self.questions.insert(0, QueuedQuestion { question, status: QuestionStatus::Pending });
        self.chosen = None;
        true
    }

    fn position(&self, run: RunId, loop_id: &LoopId) -> Option<usize> {
        self.questions.iter().position(|queued| queued.question.run == run && queued.question.loop_id == *loop_id)
    }

    /// Stops asking, because the program is shutting down.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether a question is shown.
    pub fn is_open(&self) -> bool {
        self.shown().is_some()
    }

    fn pending(&self) -> impl Iterator<Item = &OpenQuestion> {
        let is_pending = |queued: &&QueuedQuestion| queued.status == QuestionStatus::Pending && !self.closed;
        self.questions.iter().filter(is_pending).map(|queued| &queued.question)
    }

    /// The loop whose question is shown.
    pub fn shown_loop(&self) -> Option<(RunId, &LoopId)> {
        self.shown().map(|question| (question.run, &question.loop_id))
    }

    /// Whether a choice is selected, which Enter would send.
    pub fn has_chosen(&self) -> bool {
        self.chosen.is_some()
    }

    /// Number of questions that wait for an answer.
    pub fn waiting(&self) -> usize {
        self.pending().count()
    }

    fn shown(&self) -> Option<&OpenQuestion> {
        self.pending().next()
    }

    /// Handles a key; keys without a meaning are ignored.
    pub fn handle_key(&mut self, key: KeyCode) -> Option<QuestionDecision> {
        let last = self.shown()?.choices.len().checked_sub(1)?;
        if key == KeyCode::Enter {
            return self.answer();
        } else if key == KeyCode::Esc {
            return self.later();
        } else if matches!(key, KeyCode::Up | KeyCode::Char('k')) {
            self.chosen = Some(self.chosen.map_or(last, |index| index.checked_sub(1).unwrap_or(last)));
        } else if matches!(key, KeyCode::Down | KeyCode::Char('j')) {
            self.chosen = Some(self.chosen.map_or(0, |index| if index < last { index + 1 } else { 0 }));
        } else if let KeyCode::Char(digit @ '1'..='9') = key {
            let index = digit as usize - '1' as usize;
            self.chosen = if index <= last { Some(index) } else { self.chosen };
        }
        None
    }

    fn answer(&mut self) -> Option<QuestionDecision> {
        let chosen = self.chosen?;
        let question = self.mark_handled()?;
        let choice = question.choices.get(chosen)?.0;
        Some(QuestionDecision::Answer { run: question.run, loop_id: question.loop_id, question: question.id, choice })
    }

    fn later(&mut self) -> Option<QuestionDecision> {
        let question = self.mark_handled()?;
        let OpenQuestion { run, loop_id, id, answer_command, .. } = question;
        Some(QuestionDecision::Later { run, loop_id, question: id, answer_command })
    }

    /// Marks the shown question as handled.
    fn mark_handled(&mut self) -> Option<OpenQuestion> {
        let shown = self.questions.iter_mut().find(|queued| queued.status == QuestionStatus::Pending)?;
        shown.status = QuestionStatus::Handled;
        self.chosen = None;
        Some(shown.question.clone())
    }

    /// The question as lines that fit. The choices and the keys are dropped last.
    pub fn lines(&self, size: DisplaySize) -> Vec<String> {
        let Some(question) = self.shown() else { return Vec::new() };
        let mut lines = vec![heading(question, self.pending().count() - 1, size.columns)];
        let choices = self.choices(question, size);
        let last = keys_line(question.choices.len(), size.columns);
        let left = size.lines.saturating_sub(choices.len() + 2);
        let text = wrap(&question.text, size.columns.saturating_sub(2), left.min(MAX_TEXT_LINES));
        let left = left - text.len();
        lines.extend(text.iter().map(|line| truncate(format!("  {line}"), size.columns)));
        lines.extend(findings(question, left, size.columns));
        lines.extend(choices);
        lines.push(last);
        // With very few lines, only the choices are shown.
        match size.lines {
            0 => Vec::new(),
            1 => lines.split_off(lines.len() - 2).into_iter().take(1).collect(),
            2 => lines.split_off(lines.len() - 2),
            _ => lines,
        }
    }

    /// One line per choice; if they do not fit, only the selected one.
    fn choices(&self, question: &OpenQuestion, size: DisplaySize) -> Vec<String> {
        let all = question.choices.len();
        let width = question.choices.iter().map(|(choice, _)| columns(choice.into_str())).max().unwrap_or(0);
        let line = |at: usize, (choice, meaning): &(Choice, String)| {
            let mark = if self.chosen == Some(at) { '›' } else { ' ' };
            let line = format!("  {mark} {} {}  {meaning}", at + 1, pad(choice.into_str(), width));
            truncate(line, size.columns)
        };
        // Three more lines: the heading, one line of text, and the keys.
        if all + 3 <= size.lines {
            return question.choices.iter().enumerate().map(|(at, choice)| line(at, choice)).collect();
        }
        match self.chosen.and_then(|at| Some((at, question.choices.get(at)?))) {
            Some((at, choice)) => vec![line(at, choice)],
            None => {
                let words: Vec<_> = question.choices.iter().map(|(choice, _)| choice.into_str()).collect();
                vec![truncate(format!("    {}", words.join(", ")), size.columns)]
            }
        }
    }
}

/// `? Task #29 Add user authentication  review 3/3  (2 more questions)`.
fn heading(question: &OpenQuestion, others: usize, width: usize) -> String {
    let position = if question.position.is_empty() { String::new() } else { format!("  {}", question.position) };
    let head = format!("? {}", question.subject);
    let long = match others {
        0 => String::new(),
        1 => "  (1 more question)".to_owned(),
        others => format!("  ({others} more questions)"),
    };
    let fits = columns(&head) + columns(&position) + columns(&long) <= width;
    let others = if fits { long } else { format!("  (+{others})") };
    let left = width.saturating_sub(columns(&head) + columns(&position) + columns(&others) + 1);
    let title = if left > 3 { truncate_line(&question.title, left) } else { String::new() };
    let head = format!("{head} {title}").trim_end().to_owned();
    truncate(format!("{head}{position}{others}"), width)
}

/// The most severe blocking findings, and the number of the others.
fn findings(question: &OpenQuestion, left: usize, width: usize) -> Vec<String> {
    let all = question.findings.len();
    let shown = all.min(MAX_FINDINGS).min(if all > left { left.saturating_sub(1) } else { left });
    let mut lines: Vec<_> = question
        .findings
        .iter()
        .take(shown)
        .map(|text| truncate(format!("    - {}", truncate_line(text, width)), width))
        .collect();
    if all > shown && lines.len() < left {
        let more = if shown == 0 { count(all as u64, "open finding") } else { format!("… and {} more", all - shown) };
        lines.push(truncate(format!("    {more}"), width));
    }
    lines
}

fn keys_line(choices: usize, width: usize) -> String {
    let long = format!("  ↑/↓ or 1–{choices} choose, Enter answers, Esc defers it");
    if columns(&long) <= width {
        return long;
    }
    truncate(format!("  ↑/↓ 1–{choices}, Enter; Esc: later"), width)
}
