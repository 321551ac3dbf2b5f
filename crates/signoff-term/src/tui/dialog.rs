//! Dialogs over the screen: confirmations, verdicts, disputes and help.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Widget};
use signoff_core::ids::{FindingId, TaskId};
use signoff_core::machine::FinalVerdict;

use super::actions::{code_without_control, is_control};
use super::canvas::{Canvas, Theme, span, to_u16};
use super::key_hints::{self, KeyHint};
use super::list::Navigation;
use super::{TaskDecision, TuiRequest};
use crate::fit::{columns, pad, truncate, truncate_line, wrap};

/// Maximum width of a dialog.
const MAX_WIDTH: usize = 78;

/// Maximum length of a reason.
const MAX_REASON_BYTES: usize = 1_000;

/// The task of a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialogTask {
    pub task: TaskId,
    /// `#29 Add user authentication`.
    pub name: String,
}

/// An open dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dialog {
    /// A question of a loop; its state is in the `QuestionQueue`.
    Question,
    Retry(DialogTask),
    Cancel(DialogTask),
    /// First the verdict, then the reason.
    Edit {
        task: DialogTask,
        chosen: Option<usize>,
        reason: Option<String>,
    },
    Dispute {
        task: DialogTask,
        finding: FindingId,
        /// The finding as text.
        what: String,
        reason: String,
    },
    Help {
        top: usize,
    },
    Quit,
}

/// The effect of a key on a dialog.
#[derive(Debug, PartialEq, Eq)]
pub enum DialogReply {
    Stay,
    Close(Option<TuiRequest>),
    /// The dialog stays open and shows this message.
    Refuse(&'static str),
}

impl Dialog {
    /// Handles a key. The keys of questions are handled elsewhere.
    pub fn handle_key(&mut self, key: KeyEvent) -> DialogReply {
        if let Some(text) = self.text_field().filter(|_| is_control(key, 'u')) {
            text.clear();
            return DialogReply::Stay;
        }
        let key = code_without_control(key);
        match self {
            Self::Question => DialogReply::Stay,
            Self::Retry(task) => confirm_key(key, TuiRequest::Decide(task.task, TaskDecision::Retry)),
            Self::Cancel(task) => confirm_key(key, TuiRequest::Decide(task.task, TaskDecision::Cancel)),
            Self::Quit => confirm_key(key, TuiRequest::Quit),
            Self::Help { top } => help_key(top, key),
            Self::Edit { task, chosen, reason } => edit_key(task.task, chosen, reason, key),
            Self::Dispute { task, finding, reason, .. } => {
                let (task, finding) = (task.task, finding.clone());
                match text_key(reason, key) {
                    TextInput::Submitted if reason.trim().is_empty() => DialogReply::Refuse("enter a reason"),
                    TextInput::Submitted => DialogReply::Close(Some(TuiRequest::Decide(
                        task,
                        TaskDecision::Dispute { finding, reason: reason.trim().to_owned() },
                    ))),
                    TextInput::Cancelled => DialogReply::Close(None),
                    TextInput::Editing => DialogReply::Stay,
                }
            }
        }
    }

    /// Inserts pasted text into the text field, if the dialog has one.
    pub fn paste(&mut self, text: &str) {
        if let Some(field) = self.text_field() {
            text.chars().for_each(|c| push_char(field, c));
        }
    }

    fn text_field(&mut self) -> Option<&mut String> {
        match self {
            Self::Edit { reason, .. } => reason.as_mut(),
            Self::Dispute { reason, .. } => Some(reason),
            Self::Question | Self::Retry(_) | Self::Cancel(_) | Self::Help { .. } | Self::Quit => None,
        }
    }

    pub fn keys(&self) -> &'static [KeyHint] {
        match self {
            Self::Question => &key_hints::QUESTION,
            Self::Retry(_) | Self::Cancel(_) | Self::Quit => &key_hints::CONFIRM,
            Self::Edit { reason: None, .. } => &key_hints::CHOOSE,
            Self::Edit { reason: Some(_), .. } | Self::Dispute { .. } => &key_hints::TYPE,
            Self::Help { .. } => &key_hints::HELP,
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

    /// The lines of the dialog; those of a question are passed in.
    pub fn lines(&self, theme: Theme, width: usize, question: Vec<String>) -> Vec<Line<'static>> {
        let wrapped = |text: &str| wrap(text, width, 6).into_iter().map(Line::from).collect::<Vec<_>>();
        match self {
            Self::Question => question.into_iter().enumerate().map(|(y, line)| question_line(y, line, theme)).collect(),
            Self::Retry(task) => wrapped(&format!("Retry {}? It continues where it stopped.", task.name)),
            Self::Cancel(task) => wrapped(&format!("Cancel {}? Stops its agents, keeps its branch.", task.name)),
            Self::Quit => wrapped("Leave the screen? The work continues, with progress as lines. Ctrl-C stops it."),
            Self::Help { top } => help(theme, width).split_off((*top).min(help(theme, width).len())),
            Self::Edit { task, chosen, reason } => edit(task, *chosen, reason.as_deref(), theme, width),
            Self::Dispute { task, what, reason, .. } => {
                let mut lines = vec![Line::from(span(truncate_line(&task.name, width), theme.bold()))];
                lines.extend(wrapped(what));
                lines.extend(field("Why is it wrong?", reason, theme, width));
                lines
            }
        }
    }
}

impl Dialog {
    /// At most `max` lines, including the one that keys change.
    fn visible_lines(&self, mut lines: Vec<Line<'static>>, max: usize) -> Vec<Line<'static>> {
        let changed = match self {
            Self::Edit { reason: Some(_), .. } | Self::Dispute { .. } => lines.len(),
            // The first line is the task.
            Self::Edit { chosen, reason: None, .. } => chosen.map_or(0, |at| at + 2),
            Self::Question | Self::Retry(_) | Self::Cancel(_) | Self::Help { .. } | Self::Quit => 0,
        };
        lines.split_off(changed.saturating_sub(max))
    }
}

fn confirm_key(key: KeyCode, request: TuiRequest) -> DialogReply {
    if matches!(key, KeyCode::Char('y' | 'Y')) {
        DialogReply::Close(Some(request))
    } else if matches!(key, KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc) {
        DialogReply::Close(None)
    } else {
        DialogReply::Stay
    }
}

fn help_key(top: &mut usize, key: KeyCode) -> DialogReply {
    let last = help(Theme::Plain, MAX_WIDTH).len() - 1;
    match (Navigation::from_key(key), key) {
        (Some(Navigation::Up), _) => *top = top.saturating_sub(1),
        (Some(Navigation::Down), _) => *top = (*top + 1).min(last),
        (Some(Navigation::PageUp | Navigation::First), _) => *top = 0,
        (Some(Navigation::PageDown | Navigation::Last), _) => *top = (*top + 10).min(last),
        (None, KeyCode::Esc | KeyCode::Enter | KeyCode::Char('?' | 'q')) => return DialogReply::Close(None),
        (None, _) => {}
    }
    DialogReply::Stay
}

fn edit_key(task: TaskId, chosen: &mut Option<usize>, reason: &mut Option<String>, key: KeyCode) -> DialogReply {
    let last = FinalVerdict::ALL.len() - 1;
    if let (Some(text), Some(at)) = (reason.as_mut(), *chosen) {
        match text_key(text, key) {
            TextInput::Submitted => {
                let (verdict, reason) = (FinalVerdict::ALL[at.min(last)], text.trim().to_owned());
                return DialogReply::Close(Some(TuiRequest::Decide(task, TaskDecision::Edit { verdict, reason })));
            }
            TextInput::Cancelled => *reason = None,
            TextInput::Editing => {}
        }
        return DialogReply::Stay;
    }
    match (Navigation::from_key(key), key) {
        (Some(Navigation::Up), _) => *chosen = Some(chosen.map_or(last, |at| at.checked_sub(1).unwrap_or(last))),
        (Some(Navigation::Down), _) => *chosen = Some(chosen.map_or(0, |at| if at < last { at + 1 } else { 0 })),
        (None, KeyCode::Char(digit @ '1'..='4')) => *chosen = Some(digit as usize - '1' as usize),
        (None, KeyCode::Enter) if chosen.is_some() => *reason = Some(String::new()),
        (None, KeyCode::Esc) => return DialogReply::Close(None),
        (Some(_) | None, _) => {}
    }
    DialogReply::Stay
}

/// The effect of a key on a text field.
enum TextInput {
    Editing,
    Submitted,
    Cancelled,
}

fn text_key(text: &mut String, key: KeyCode) -> TextInput {
    if let KeyCode::Char(c) = key {
        push_char(text, c);
    } else if key == KeyCode::Backspace {
        text.pop();
    } else if key == KeyCode::Enter {
        return TextInput::Submitted;
    } else if key == KeyCode::Esc {
        return TextInput::Cancelled;
    }
    TextInput::Editing
}

fn push_char(text: &mut String, c: char) {
    if text.len() < MAX_REASON_BYTES && !c.is_control() {
        text.push(c);
    }
}

/// A line of a question; the heading and the selected answer are highlighted.
fn question_line(y: usize, line: String, theme: Theme) -> Line<'static> {
    let style = if y == 0 {
        theme.bold()
    } else if line.starts_with("  › ") {
        theme.chosen()
    } else {
        ratatui::style::Style::new()
    };
    Line::from(span(line, style))
}

fn edit(
    task: &DialogTask,
    chosen: Option<usize>,
    reason: Option<&str>,
    theme: Theme,
    width: usize,
) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(span(truncate_line(&task.name, width), theme.bold()))];
    for (at, verdict) in FinalVerdict::ALL.iter().copied().enumerate() {
        let is_chosen = chosen == Some(at);
        let mark = if is_chosen { '>' } else { ' ' };
        let style = if is_chosen { theme.chosen() } else { ratatui::style::Style::new() };
        lines.push(Line::from(span(format!("{mark} {} {}", at + 1, verdict.into_str()), style)));
    }
    lines.extend(reason.into_iter().flat_map(|reason| field("Why?", reason, theme, width)));
    lines
}

/// A text field; the end of the text is always visible.
fn field(label: &str, text: &str, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let room = width.saturating_sub(3);
    let mut shown = text;
    while columns(shown) > room {
        let mut rest = shown.chars();
        rest.next();
        shown = rest.as_str();
    }
    vec![
        Line::from(span(truncate_line(label, width), theme.bold())),
        Line::from(format!("> {}_", super::canvas::sanitize(shown))),
    ]
}

fn help(theme: Theme, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (heading, keys) in key_hints::ALL {
        lines.push(Line::from(span(heading, theme.bold())));
        lines.extend(keys.iter().map(|(key, what)| Line::from(truncate(format!("  {} {what}", pad(key, 15)), width))));
    }
    lines
}

/// Draws a dialog over the screen: in a frame, or full-screen if there is no room for one. If possible, the frame
/// does not cover the line `keep_visible`.
pub fn draw(
    dialog: &Dialog,
    canvas: &mut Canvas<'_>,
    keep_visible: Option<usize>,
    theme: Theme,
    question: impl Fn(usize, usize) -> Vec<String>,
) {
    let (width, height) = (canvas.width(), canvas.height());
    let framed = width >= 30 && height >= 8;
    let inner = if framed { (width - 4).min(MAX_WIDTH) } else { width };
    let max = if framed { height - 2 } else { height };
    let lines = dialog.lines(theme, inner, question(inner, max));
    let lines = dialog.visible_lines(lines, max);
    if !framed {
        Clear.render(canvas.area, canvas.buffer);
        canvas.lines(&lines);
        return;
    }
    let (wide, high) = (inner + 4, lines.len().min(max) + 2);
    let area = Rect {
        x: canvas.area.x + to_u16((width - wide) / 2),
        y: canvas.area.y + to_u16(first_line(height, high, keep_visible)),
        width: to_u16(wide),
        height: to_u16(high),
    };
    Clear.render(area, canvas.buffer);
    Block::bordered().title(dialog.title()).border_style(theme.warning()).render(area, canvas.buffer);
    let within = Rect { x: area.x + 2, y: area.y + 1, width: area.width - 4, height: area.height - 2 };
    Canvas::new(canvas.buffer, within).lines(&lines);
}

/// The first line of a box `high` lines tall: centered, unless it would cover the line `keep_visible` and fits below
/// or above it.
fn first_line(height: usize, high: usize, keep_visible: Option<usize>) -> usize {
    let centered = (height - high) / 2;
    match keep_visible {
        Some(line) if (centered..centered + high).contains(&line) => {
            let below = Some(line + 1).filter(|first| first + high <= height);
            below.or_else(|| line.checked_sub(high)).unwrap_or(centered)
        }
        Some(_) | None => centered,
    }
}
