//! A person is asked on a terminal, one question after the other, while everything else goes on.
//!
//! Nothing is chosen before a key chose it: whoever presses Enter just when one question makes room for another answers
//! neither.

mod key;
mod question;

pub use key::{Key, keys};
pub use question::Question;

use signoff_core::ids::{LoopId, QuestionId, RunId};
use signoff_core::machine::Choice;

use crate::fit::{columns, count, cut, pad, shorten, wrap};
use crate::progress::Room;

/// How many lines a question may take.
const TEXT: usize = 3;

/// How many findings are shown with it.
const FINDINGS: usize = 3;

/// What the person decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decided {
    Answer {
        run: RunId,
        loop_id: LoopId,
        question: QuestionId,
        choice: Choice,
    },
    /// It stays open; this is how it can be answered.
    Later {
        run: RunId,
        loop_id: LoopId,
        question: QuestionId,
        how: String,
    },
}

/// How far the person is with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stand {
    Asked,
    /// Answered here or left for later: facts that come in meanwhile do not ask it again.
    Settled,
}

/// The questions of all loops, oldest first, and what is chosen of the one that is shown.
#[derive(Debug, Clone, Default)]
pub struct Dialogue {
    questions: Vec<(Question, Stand)>,
    chosen: Option<usize>,
    closed: bool,
}

impl Dialogue {
    /// How a loop stands: what it asks, if it does.
    pub fn take(&mut self, (run, loop_id): (RunId, &LoopId), question: Option<Question>) {
        let shown = self.shown().map(Question::key);
        let own = |one: &Question| one.run == run && one.loop_id == *loop_id;
        let known = self.questions.iter().position(|(one, _)| own(one));
        match (known, question) {
            (Some(at), Some(question)) if self.questions[at].0.id == question.id => {
                self.questions[at].0 = question;
            }
            (known, question) => {
                known.map(|at| self.questions.remove(at));
                self.questions.extend(question.map(|question| (question, Stand::Asked)));
            }
        }
        if self.shown().map(Question::key) != shown {
            self.chosen = None;
        }
    }

    /// Asks a question again that was left for later: the one of this loop, or the oldest. Gives whether there is one.
    pub fn raise(&mut self, of: Option<(RunId, &LoopId)>) -> bool {
        let own = |(one, _): &(Question, Stand)| of == Some((one.run, &one.loop_id));
        let at =
            self.questions.iter().position(own).or(if self.questions.is_empty() { None } else { Some(0) });
        let Some(at) = at.filter(|_| !self.closed) else { return false };
        let (question, _) = self.questions.remove(at);
        self.questions.insert(0, (question, Stand::Asked));
        self.chosen = None;
        true
    }

    /// Nobody is asked any more: the program is about to end.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether there is something to ask.
    pub fn is_open(&self) -> bool {
        self.shown().is_some()
    }

    fn asked(&self) -> impl Iterator<Item = &Question> {
        let asked = self.questions.iter().filter(|(_, stand)| *stand == Stand::Asked && !self.closed);
        asked.map(|(question, _)| question)
    }

    /// The loop whose question is shown.
    pub fn asking(&self) -> Option<(RunId, &LoopId)> {
        self.shown().map(|question| (question.run, &question.loop_id))
    }

    /// Whether a choice was made, which Enter would give as the answer.
    pub fn has_chosen(&self) -> bool {
        self.chosen.is_some()
    }

    /// How many questions wait for an answer.
    pub fn waiting(&self) -> usize {
        self.asked().count()
    }

    fn shown(&self) -> Option<&Question> {
        self.asked().next()
    }

    /// Takes a key in.
    pub fn press(&mut self, key: Key) -> Option<Decided> {
        let last = self.shown()?.choices.len().checked_sub(1)?;
        match key {
            Key::Up => self.chosen = Some(self.chosen.map_or(last, |at| at.checked_sub(1).unwrap_or(last))),
            Key::Down => self.chosen = Some(self.chosen.map_or(0, |at| if at < last { at + 1 } else { 0 })),
            Key::Digit(digit) if (1..=last + 1).contains(&digit) => self.chosen = Some(digit - 1),
            Key::Digit(_) => {}
            Key::Enter => return self.answer(),
            Key::Esc => return self.later(),
        }
        None
    }

    fn answer(&mut self) -> Option<Decided> {
        let chosen = self.chosen?;
        let question = self.settle()?;
        let choice = question.choices.get(chosen)?.0;
        Some(Decided::Answer { run: question.run, loop_id: question.loop_id, question: question.id, choice })
    }

    fn later(&mut self) -> Option<Decided> {
        let question = self.settle()?;
        let Question { run, loop_id, id, how, .. } = question;
        Some(Decided::Later { run, loop_id, question: id, how })
    }

    /// The person is done with the question that is shown.
    fn settle(&mut self) -> Option<Question> {
        let shown = self.questions.iter_mut().find(|(_, stand)| *stand == Stand::Asked)?;
        shown.1 = Stand::Settled;
        self.chosen = None;
        Some(shown.0.clone())
    }

    /// The question as lines, as many as there is room for: the choices and the keys are the last to go.
    pub fn lines(&self, room: Room) -> Vec<String> {
        let Some(question) = self.shown() else { return Vec::new() };
        let mut lines = vec![heading(question, self.asked().count() - 1, room.columns)];
        let choices = self.choices(question, room);
        let last = keys_line(question.choices.len(), room.columns);
        let left = room.lines.saturating_sub(choices.len() + 2);
        let text = wrap(&question.text, room.columns.saturating_sub(2), left.min(TEXT));
        let left = left - text.len();
        lines.extend(text.iter().map(|line| shorten(format!("  {line}"), room.columns)));
        lines.extend(findings(question, left, room.columns));
        lines.extend(choices);
        lines.push(last);
        // The heading and the keys are left out where there is no room for anything but the choices.
        match room.lines {
            0 => Vec::new(),
            1 => lines.split_off(lines.len() - 2).into_iter().take(1).collect(),
            2 => lines.split_off(lines.len() - 2),
            _ => lines,
        }
    }

    /// One below the other, or where they do not fit the one that is chosen.
    fn choices(&self, question: &Question, room: Room) -> Vec<String> {
        let all = question.choices.len();
        let width = question.choices.iter().map(|(choice, _)| columns(choice.word())).max().unwrap_or(0);
        let line = |at: usize, (choice, meaning): &(Choice, String)| {
            let mark = if self.chosen == Some(at) { '›' } else { ' ' };
            let line = format!("  {mark} {} {}  {meaning}", at + 1, pad(choice.word(), width));
            shorten(line, room.columns)
        };
        // Below a heading and a line of the question, above the keys.
        if all + 3 <= room.lines {
            return question.choices.iter().enumerate().map(|(at, choice)| line(at, choice)).collect();
        }
        match self.chosen.and_then(|at| Some((at, question.choices.get(at)?))) {
            Some((at, choice)) => vec![line(at, choice)],
            None => {
                let words: Vec<_> = question.choices.iter().map(|(choice, _)| choice.word()).collect();
                vec![shorten(format!("    {}", words.join(", ")), room.columns)]
            }
        }
    }
}

/// `? Task #29 Add user authentication  review 3/3  (2 more questions)`.
fn heading(question: &Question, others: usize, width: usize) -> String {
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

/// The worst of what keeps the gate shut; what is left out is counted.
fn findings(question: &Question, left: usize, width: usize) -> Vec<String> {
    let all = question.findings.len();
    let shown = all.min(FINDINGS).min(if all > left { left.saturating_sub(1) } else { left });
    let mut lines: Vec<_> = question
        .findings
        .iter()
        .take(shown)
        .map(|one| shorten(format!("    - {}", cut(one, width)), width))
        .collect();
    if all > shown && lines.len() < left {
        let more = if shown == 0 {
            count(all as u64, "open finding")
        } else {
            format!("… and {} more", all - shown)
        };
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
