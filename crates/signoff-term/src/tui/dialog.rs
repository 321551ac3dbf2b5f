//! What lies over the screen while a person decides something.

use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Widget};
use signoff_core::ids::{FindingId, TaskId};
use signoff_core::machine::FinalWord;

use super::ink::Ink;
use super::keys::{self, Key};
use super::list::Step;
use super::press::Press;
use super::sheet::{Sheet, narrow, span};
use super::wish::{Decision, Wish};
use crate::fit::{columns, cut, pad, wrap};

/// How wide a dialogue is at most.
const WIDTH: usize = 78;

/// How long a reason may be.
const REASON: usize = 1_000;

/// The task that a decision is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    pub task: TaskId,
    /// `#29 Add user authentication`.
    pub name: String,
}

/// What is being decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dialog {
    /// What a loop asks: the dialogue of questions has it.
    Question,
    Retry(About),
    Cancel(About),
    /// First the verdict, then the reason.
    Edit {
        about: About,
        chosen: Option<usize>,
        reason: Option<String>,
    },
    Dispute {
        about: About,
        finding: FindingId,
        /// The finding in words.
        what: String,
        reason: String,
    },
    Help {
        top: usize,
    },
    Quit,
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    Stays,
    Closes(Option<Wish>),
    /// It stays, and says why.
    Refuses(&'static str),
}

impl Dialog {
    /// Takes a key in. Questions are answered elsewhere.
    pub fn press(&mut self, key: Press) -> Reply {
        match self {
            Self::Question => Reply::Stays,
            Self::Retry(about) => confirmed(key, Wish::Decide(about.task, Decision::Retry)),
            Self::Cancel(about) => confirmed(key, Wish::Decide(about.task, Decision::Cancel)),
            Self::Quit => confirmed(key, Wish::Quit),
            Self::Help { top } => helped(top, key),
            Self::Edit { about, chosen, reason } => edited(about.task, chosen, reason, key),
            Self::Dispute { about, finding, reason, .. } => {
                let (task, finding) = (about.task, finding.clone());
                match typed(reason, key) {
                    Typed::Sent if reason.trim().is_empty() => Reply::Refuses("say why it is wrong"),
                    Typed::Sent => Reply::Closes(Some(Wish::Decide(
                        task,
                        Decision::Dispute { finding, reason: reason.trim().to_owned() },
                    ))),
                    Typed::Left => Reply::Closes(None),
                    Typed::On => Reply::Stays,
                }
            }
        }
    }

    pub fn keys(&self) -> &'static [Key] {
        match self {
            Self::Question => &keys::QUESTION,
            Self::Retry(_) | Self::Cancel(_) | Self::Quit => &keys::CONFIRM,
            Self::Edit { reason: None, .. } => &keys::CHOOSE,
            Self::Edit { reason: Some(_), .. } | Self::Dispute { .. } => &keys::TYPE,
            Self::Help { .. } => &keys::HELP,
        }
    }

    fn title(&self) -> &'static str {
        match self {
            Self::Question => " Question ",
            Self::Retry(_) => " Retry ",
            Self::Cancel(_) => " Cancel ",
            Self::Edit { .. } => " Edit the verdict ",
            Self::Dispute { .. } => " Dispute a finding ",
            Self::Help { .. } => " Keys ",
            Self::Quit => " Leave ",
        }
    }

    /// Its lines; those of a question are given.
    pub fn lines(&self, ink: Ink, width: usize, question: Vec<String>) -> Vec<Line<'static>> {
        let told = |text: &str| wrap(text, width, 6).into_iter().map(Line::from).collect::<Vec<_>>();
        match self {
            Self::Question => question.into_iter().enumerate().map(|(y, line)| asked(y, line, ink)).collect(),
            Self::Retry(about) => told(&format!("Retry {}? It goes on where it ended.", about.name)),
            Self::Cancel(about) => {
                told(&format!("Cancel {}? Its agents are stopped; its branch stays.", about.name))
            }
            Self::Quit => told("Leave the screen? The work goes on as lines. Ctrl-C would stop it."),
            Self::Help { top } => help(ink, width).split_off((*top).min(help(ink, width).len())),
            Self::Edit { about, chosen, reason } => edit(about, *chosen, reason.as_deref(), (ink, width)),
            Self::Dispute { about, what, reason, .. } => {
                let mut lines = vec![Line::from(span(cut(&about.name, width), ink.bold()))];
                lines.extend(told(what));
                lines.extend(field("Why is it wrong?", reason, (ink, width)));
                lines
            }
        }
    }
}

impl Dialog {
    /// So many of its lines, among them the one that keys change.
    fn within(&self, mut lines: Vec<Line<'static>>, most: usize) -> Vec<Line<'static>> {
        let changed = match self {
            Self::Edit { reason: Some(_), .. } | Self::Dispute { .. } => lines.len(),
            // The first line is the task.
            Self::Edit { chosen, reason: None, .. } => chosen.map_or(0, |at| at + 2),
            Self::Question | Self::Retry(_) | Self::Cancel(_) | Self::Help { .. } | Self::Quit => 0,
        };
        lines.split_off(changed.saturating_sub(most))
    }
}

fn confirmed(key: Press, wish: Wish) -> Reply {
    if matches!(key, Press::Char('y' | 'Y')) {
        Reply::Closes(Some(wish))
    } else if matches!(key, Press::Char('n' | 'N' | 'q') | Press::Esc) {
        Reply::Closes(None)
    } else {
        Reply::Stays
    }
}

fn helped(top: &mut usize, key: Press) -> Reply {
    let last = help(Ink::Plain, WIDTH).len() - 1;
    match (Step::of(key), key) {
        (Some(Step::Up), _) => *top = top.saturating_sub(1),
        (Some(Step::Down), _) => *top = (*top + 1).min(last),
        (Some(Step::PageUp | Step::First), _) => *top = 0,
        (Some(Step::PageDown | Step::Last), _) => *top = (*top + 10).min(last),
        (None, Press::Esc | Press::Enter | Press::Char('?' | 'q')) => return Reply::Closes(None),
        (None, _) => {}
    }
    Reply::Stays
}

fn edited(task: TaskId, chosen: &mut Option<usize>, reason: &mut Option<String>, key: Press) -> Reply {
    let last = FinalWord::ALL.len() - 1;
    if let (Some(text), Some(at)) = (reason.as_mut(), *chosen) {
        match typed(text, key) {
            Typed::Sent => {
                let (verdict, reason) = (FinalWord::ALL[at.min(last)], text.trim().to_owned());
                return Reply::Closes(Some(Wish::Decide(task, Decision::Edit { verdict, reason })));
            }
            Typed::Left => *reason = None,
            Typed::On => {}
        }
        return Reply::Stays;
    }
    match (Step::of(key), key) {
        (Some(Step::Up), _) => *chosen = Some(chosen.map_or(last, |at| at.checked_sub(1).unwrap_or(last))),
        (Some(Step::Down), _) => *chosen = Some(chosen.map_or(0, |at| if at < last { at + 1 } else { 0 })),
        (None, Press::Char(digit @ '1'..='4')) => *chosen = Some(digit as usize - '1' as usize),
        (None, Press::Enter) if chosen.is_some() => *reason = Some(String::new()),
        (None, Press::Esc) => return Reply::Closes(None),
        (Some(_) | None, _) => {}
    }
    Reply::Stays
}

/// What a key did to a text that is being typed.
enum Typed {
    On,
    Sent,
    Left,
}

fn typed(text: &mut String, key: Press) -> Typed {
    match (key, text.len() < REASON) {
        (Press::Char(c) | Press::Pasted(c), true) if !c.is_control() => text.push(c),
        (Press::Backspace, _) => {
            text.pop();
        }
        (Press::Ctrl('u'), _) => text.clear(),
        (Press::Enter, _) => return Typed::Sent,
        (Press::Esc, _) => return Typed::Left,
        (_, _) => {}
    }
    Typed::On
}

/// The lines of a question: its heading and its chosen answer stand out.
fn asked(y: usize, line: String, ink: Ink) -> Line<'static> {
    let style = if y == 0 {
        ink.bold()
    } else if line.starts_with("  › ") {
        ink.chosen()
    } else {
        ratatui::style::Style::new()
    };
    Line::from(span(line, style))
}

fn edit(
    about: &About,
    chosen: Option<usize>,
    reason: Option<&str>,
    (ink, width): (Ink, usize),
) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(span(cut(&about.name, width), ink.bold()))];
    for (at, verdict) in FinalWord::ALL.into_iter().enumerate() {
        let is_chosen = chosen == Some(at);
        let mark = if is_chosen { '>' } else { ' ' };
        let style = if is_chosen { ink.chosen() } else { ratatui::style::Style::new() };
        lines.push(Line::from(span(format!("{mark} {} {}", at + 1, verdict.word()), style)));
    }
    lines.extend(reason.into_iter().flat_map(|reason| field("Why?", reason, (ink, width))));
    lines
}

/// A line to type in; its end is always to be seen.
fn field(label: &str, text: &str, (ink, width): (Ink, usize)) -> Vec<Line<'static>> {
    let room = width.saturating_sub(3);
    let mut shown = text;
    while columns(shown) > room {
        let mut rest = shown.chars();
        rest.next();
        shown = rest.as_str();
    }
    vec![
        Line::from(span(cut(label, width), ink.bold())),
        Line::from(format!("> {}_", super::sheet::clean(shown))),
    ]
}

fn help(ink: Ink, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (heading, keys) in keys::ALL {
        lines.push(Line::from(span(heading, ink.bold())));
        lines.extend(
            keys.iter().map(|(key, what)| Line::from(cut_line(&format!("  {} {what}", pad(key, 15)), width))),
        );
    }
    lines
}

fn cut_line(text: &str, width: usize) -> String {
    crate::fit::shorten(text.to_owned(), width)
}

/// Lays a dialogue over what is there: in a frame, or over everything where there is no room for one. The frame does not
/// cover the line `keep_visible` where that can be avoided.
pub fn lay(
    dialog: &Dialog,
    sheet: &mut Sheet<'_>,
    keep_visible: Option<usize>,
    ink: Ink,
    question: impl Fn(usize, usize) -> Vec<String>,
) {
    let (width, height) = (sheet.width(), sheet.height());
    let framed = width >= 30 && height >= 8;
    let inner = if framed { (width - 4).min(WIDTH) } else { width };
    let most = if framed { height - 2 } else { height };
    let lines = dialog.lines(ink, inner, question(inner, most));
    let lines = dialog.within(lines, most);
    if !framed {
        Clear.render(sheet.area, sheet.buffer);
        sheet.lines(&lines);
        return;
    }
    let (wide, high) = (inner + 4, lines.len().min(most) + 2);
    let area = Rect {
        x: sheet.area.x + narrow((width - wide) / 2),
        y: sheet.area.y + narrow(first_line(height, high, keep_visible)),
        width: narrow(wide),
        height: narrow(high),
    };
    Clear.render(area, sheet.buffer);
    Block::bordered().title(dialog.title()).border_style(ink.warning()).render(area, sheet.buffer);
    let within = Rect { x: area.x + 2, y: area.y + 1, width: area.width - 4, height: area.height - 2 };
    Sheet::new(sheet.buffer, within).lines(&lines);
}

/// The first line of a box `high` lines tall: centred, unless it would cover the line `keep_visible` and fits below
/// or above it.
fn first_line(height: usize, high: usize, keep_visible: Option<usize>) -> usize {
    let centred = (height - high) / 2;
    match keep_visible {
        Some(line) if (centred..centred + high).contains(&line) => {
            let below = Some(line + 1).filter(|first| first + high <= height);
            below.or_else(|| line.checked_sub(high)).unwrap_or(centred)
        }
        Some(_) | None => centred,
    }
}
