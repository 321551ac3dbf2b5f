//! Asks a person the open questions on a terminal, one after the other, while the work continues.
//!
//! No choice is preselected, so that an Enter pressed just when the next question appears answers nothing.

mod question;

pub use question::DialogueQuestion;

use signoff_core::ids::{LoopId, QuestionId, RunId};
use signoff_core::machine::Choice;

use crate::fit::{columns, count, cut, pad, shorten, wrap};
use crate::progress::DisplaySize;

/// Maximum number of lines of a question's text.
const TEXT: usize = 3;

/// Maximum number of findings shown with a question.
const FINDINGS: usize = 3;

/// A key with a meaning in the dialogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialogueKey {
    Up,
    Down,
    Digit(usize),
    Enter,
    Esc,
}

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

/// The questions of all loops, oldest first, and the selected choice of the one that is shown.
#[derive(Debug, Clone, Default)]
pub struct QuestionDialogue {
    questions: Vec<(DialogueQuestion, QuestionStatus)>,
    chosen: Option<usize>,
    closed: bool,
}

impl QuestionDialogue {
    /// Updates the question of a loop; `None` if it has none.
    pub fn update(&mut self, run: RunId, loop_id: &LoopId, question: Option<DialogueQuestion>) {
        let shown = self.shown().map(DialogueQuestion::key);
        let own = |one: &DialogueQuestion| one.run == run && one.loop_id == *loop_id;
        let known = self.questions.iter().position(|(one, _)| own(one));
        match (known, question) {
            (Some(at), Some(question)) if self.questions[at].0.id == question.id => {
                self.questions[at].0 = question;
            }
            (known, question) => {
                known.map(|at| self.questions.remove(at));
                self.questions.extend(question.map(|question| (question, QuestionStatus::Pending)));
            }
        }
        if self.shown().map(DialogueQuestion::key) != shown {
            self.chosen = None;
        }
    }

    /// Shows a postponed question again: the preferred one, or the oldest. Returns whether there is one.
    pub fn ask_again(&mut self, is_preferred: impl Fn(&DialogueQuestion) -> bool) -> bool {
        let preferred = self.questions.iter().position(|(question, _)| is_preferred(question));
        let at = preferred.or(if self.questions.is_empty() { None } else { Some(0) });
        let Some(at) = at.filter(|_| !self.closed) else { return false };
        let (question, _) = self.questions.remove(at);
        self.questions.insert(0, (question, QuestionStatus::Pending));
        self.chosen = None;
        true
    }

    /// Stops asking, because the program is shutting down.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether a question is shown.
    pub fn is_open(&self) -> bool {
        self.shown().is_some()
    }

    fn pending(&self) -> impl Iterator<Item = &DialogueQuestion> {
        let asked = self.questions.iter().filter(|(_, stand)| *stand == QuestionStatus::Pending && !self.closed);
        asked.map(|(question, _)| question)
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

    fn shown(&self) -> Option<&DialogueQuestion> {
        self.pending().next()
    }

    /// Handles a key.
    pub fn press(&mut self, key: DialogueKey) -> Option<QuestionDecision> {
        let last = self.shown()?.choices.len().checked_sub(1)?;
        match key {
            DialogueKey::Up => self.chosen = Some(self.chosen.map_or(last, |at| at.checked_sub(1).unwrap_or(last))),
            DialogueKey::Down => self.chosen = Some(self.chosen.map_or(0, |at| if at < last { at + 1 } else { 0 })),
            DialogueKey::Digit(digit) if (1..=last + 1).contains(&digit) => self.chosen = Some(digit - 1),
            DialogueKey::Digit(_) => {}
            DialogueKey::Enter => return self.answer(),
            DialogueKey::Esc => return self.later(),
        }
        None
    }

    fn answer(&mut self) -> Option<QuestionDecision> {
        let chosen = self.chosen?;
        let question = self.settle()?;
        let choice = question.choices.get(chosen)?.0;
        Some(QuestionDecision::Answer { run: question.run, loop_id: question.loop_id, question: question.id, choice })
    }

    fn later(&mut self) -> Option<QuestionDecision> {
        let question = self.settle()?;
        let DialogueQuestion { run, loop_id, id, answer_command: how, .. } = question;
        Some(QuestionDecision::Later { run, loop_id, question: id, answer_command: how })
    }

    /// Marks the shown question as handled.
    fn settle(&mut self) -> Option<DialogueQuestion> {
        let shown = self.questions.iter_mut().find(|(_, stand)| *stand == QuestionStatus::Pending)?;
        shown.1 = QuestionStatus::Handled;
        self.chosen = None;
        Some(shown.0.clone())
    }

    /// The question as lines that fit. The choices and the keys are dropped last.
    pub fn lines(&self, size: DisplaySize) -> Vec<String> {
        let Some(question) = self.shown() else { return Vec::new() };
        let mut lines = vec![heading(question, self.pending().count() - 1, size.columns)];
        let choices = self.choices(question, size);
        let last = keys_line(question.choices.len(), size.columns);
        let left = size.lines.saturating_sub(choices.len() + 2);
        let text = wrap(&question.text, size.columns.saturating_sub(2), left.min(TEXT));
        let left = left - text.len();
        lines.extend(text.iter().map(|line| shorten(format!("  {line}"), size.columns)));
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
    fn choices(&self, question: &DialogueQuestion, size: DisplaySize) -> Vec<String> {
        let all = question.choices.len();
        let width = question.choices.iter().map(|(choice, _)| columns(choice.as_str())).max().unwrap_or(0);
        let line = |at: usize, (choice, meaning): &(Choice, String)| {
            let mark = if self.chosen == Some(at) { '›' } else { ' ' };
            let line = format!("  {mark} {} {}  {meaning}", at + 1, pad(choice.as_str(), width));
            shorten(line, size.columns)
        };
        // Three more lines: the heading, one line of text, and the keys.
        if all + 3 <= size.lines {
            return question.choices.iter().enumerate().map(|(at, choice)| line(at, choice)).collect();
        }
        match self.chosen.and_then(|at| Some((at, question.choices.get(at)?))) {
            Some((at, choice)) => vec![line(at, choice)],
            None => {
                let words: Vec<_> = question.choices.iter().map(|(choice, _)| choice.as_str()).collect();
                vec![shorten(format!("    {}", words.join(", ")), size.columns)]
            }
        }
    }
}

/// `? Task #29 Add user authentication  review 3/3  (2 more questions)`.
fn heading(question: &DialogueQuestion, others: usize, width: usize) -> String {
    let place = if question.place.is_empty() { String::new() } else { format!("  {}", question.place) };
    let head = format!("? {}", question.subject);
    let long = match others {
        0 => String::new(),
        1 => "  (1 more question)".to_owned(),
        others => format!("  ({others} more questions)"),
    };
    let fits = columns(&head) + columns(&place) + columns(&long) <= width;
    let others = if fits { long } else { format!("  (+{others})") };
    let left = width.saturating_sub(columns(&head) + columns(&place) + columns(&others) + 1);
    let title = if left > 3 { cut(&question.title, left) } else { String::new() };
    let head = format!("{head} {title}").trim_end().to_owned();
    shorten(format!("{head}{place}{others}"), width)
}

/// The most severe blocking findings, and the number of the others.
fn findings(question: &DialogueQuestion, left: usize, width: usize) -> Vec<String> {
    let all = question.findings.len();
    let shown = all.min(FINDINGS).min(if all > left { left.saturating_sub(1) } else { left });
    let mut lines: Vec<_> =
        question.findings.iter().take(shown).map(|one| shorten(format!("    - {}", cut(one, width)), width)).collect();
    if all > shown && lines.len() < left {
        let more = if shown == 0 { count(all as u64, "open finding") } else { format!("… and {} more", all - shown) };
        lines.push(shorten(format!("    {more}"), width));
    }
    lines
}

fn keys_line(choices: usize, width: usize) -> String {
    let long = format!("  ↑/↓ or 1–{choices} choose, Enter answers, Esc leaves it for later");
    if columns(&long) <= width {
        return long;
    }
    shorten(format!("  ↑/↓ 1–{choices}, Enter; Esc: later"), width)
}
