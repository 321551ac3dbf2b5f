//! One loop, opened: its reviews, its findings, its diff, what its agent says, what happened.

mod colour;
mod diff;
mod findings;
mod log;
mod reviews;
mod scroll;

use ratatui::text::{Line, Span};
use signoff_core::ids::{AttemptId, LoopId, RunId, TaskId};
use signoff_core::wire::QUEUE;

use self::diff::Diff;
use self::findings::Findings;
use self::log::Transcript;
use self::scroll::{Page, Tail};
use super::fold::Fold;
use super::ink::Ink;
use super::list::Step;
use super::row::RowKey;
use super::sheet::{Sheet, span};
use super::wish::{Errand, Material, Wish};
use crate::fit::cut;
use crate::show::{LedgerLine, Report};

/// What is shown of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pane {
    Reviews,
    Findings,
    Diff,
    Transcript,
    Events,
}

impl Pane {
    pub const ALL: [Self; 5] = [Self::Reviews, Self::Findings, Self::Diff, Self::Transcript, Self::Events];

    fn word(self) -> &'static str {
        match self {
            Self::Reviews => "Reviews",
            Self::Findings => "Findings",
            Self::Diff => "Diff",
            Self::Transcript => "Transcript",
            Self::Events => "Events",
        }
    }
}

/// Something that must be had from elsewhere: one wish at a time, and one more if it has changed meanwhile.
#[derive(Debug, Clone, Copy, Default)]
struct Need {
    needed: bool,
    wished: bool,
}

impl Need {
    fn wish(&mut self) -> bool {
        let now = self.needed && !self.wished;
        if now {
            *self = Self { needed: false, wished: true };
        }
        now
    }

    /// Asks even if an earlier wish was never fulfilled.
    fn anew(&mut self) {
        *self = Self { needed: true, wished: false };
    }
}

/// The loop that is open.
#[derive(Debug)]
pub struct Opened {
    pub key: RowKey,
    pub task: Option<TaskId>,
    pub pane: Pane,
    report: Option<Box<Report>>,
    report_need: Need,
    cycle: Option<usize>,
    reviews: Page,
    findings: Findings,
    diff: Option<Diff>,
    diff_need: Need,
    transcript: Transcript,
    /// The attempt that a person chose; none follows the latest.
    attempt: Option<AttemptId>,
    events: Tail,
}

impl Opened {
    pub fn new(key: RowKey, task: Option<TaskId>) -> Self {
        let first = if task.is_some() { Pane::Reviews } else { Pane::Events };
        let need = Need { needed: true, wished: false };
        Self {
            key,
            task,
            pane: first,
            report: None,
            report_need: need,
            cycle: None,
            reviews: Page::default(),
            findings: Findings::default(),
            diff: None,
            diff_need: need,
            transcript: Transcript::default(),
            attempt: None,
            events: Tail::default(),
        }
    }

    /// A fact of this loop came in: what is shown of it may be old.
    pub fn moved(&mut self) {
        self.report_need.needed = true;
        self.diff_need.needed = true;
    }

    /// A task that no run had taken up has a loop now.
    pub fn follow(&mut self, fold: &Fold) {
        let taken = self.task.filter(|_| self.key.run == QUEUE && fold.row(&self.key).is_none());
        if let Some(key) = taken.and_then(|task| fold.row_of(task)) {
            self.key = key.clone();
            self.moved();
        }
    }

    /// What is needed for what is shown, and not under way.
    pub fn wishes(&mut self, fold: &Fold) -> Vec<Wish> {
        let mut wishes = Vec::new();
        if let Some(task) = self.task {
            if self.report_need.wish() {
                wishes.push(Wish::Look(Errand::Report(task)));
            }
            if self.pane == Pane::Diff && self.diff_need.wish() {
                wishes.push(Wish::Look(Errand::Diff(task)));
            }
        }
        if self.pane == Pane::Transcript {
            let latest = || fold.view(self.key.run)?.attempts(&self.key.loop_id).last().map(|one| one.0);
            let wanted = self.attempt.or_else(latest);
            if let Some(attempt) = wanted.filter(|attempt| self.transcript.attempt != Some(*attempt)) {
                self.transcript = Transcript::of(attempt);
                let RowKey { run, loop_id } = self.key.clone();
                wishes.push(Wish::Look(Errand::Transcript { run, loop_id, attempt }));
            }
        }
        wishes
    }

    pub fn supply(&mut self, material: Material) {
        match material {
            Material::Report { task, report } if Some(task) == self.task => {
                self.report_need.wished = false;
                if let Some(diff) = &mut self.diff {
                    diff.mark(Some(&report));
                }
                self.report = Some(report);
            }
            Material::Diff { task, patch, stat } if Some(task) == self.task => {
                self.diff_need.wished = false;
                let top = self.diff.take().map(|diff| diff.page).unwrap_or_default();
                let mut diff = Diff::of(patch, &stat);
                diff.page = top;
                diff.mark(self.report.as_deref());
                self.diff = Some(diff);
            }
            Material::Transcript { run, loop_id, attempt, text } => {
                let own = self.key.run == run && self.key.loop_id == loop_id;
                if own && self.transcript.attempt == Some(attempt) {
                    self.transcript.piece(&text);
                }
            }
            Material::Report { .. } | Material::Diff { .. } | Material::Pace(_) => {}
        }
    }

    pub fn said(&mut self, (run, loop_id, attempt): (RunId, &LoopId, AttemptId), line: &str) {
        let own = self.key.run == run && self.key.loop_id == *loop_id;
        if own && self.transcript.attempt == Some(attempt) {
            self.transcript.said(line);
        }
    }

    pub fn show(&mut self, pane: Pane) {
        self.pane = pane;
        self.report_need.anew();
        if pane == Pane::Diff {
            self.diff_need.anew();
        }
    }

    /// The pane so many further.
    pub fn turn(&mut self, by: usize) {
        let at = Pane::ALL.iter().position(|pane| *pane == self.pane).unwrap_or(0);
        self.show(Pane::ALL[(at + by) % Pane::ALL.len()]);
    }

    pub fn step(&mut self, step: Step) {
        match (self.pane, &self.report) {
            (Pane::Reviews, _) => self.reviews.step(step),
            (Pane::Findings, Some(report)) => self.findings.step(step, report),
            (Pane::Findings, None) => {}
            (Pane::Diff, _) => {
                if let Some(diff) = &mut self.diff {
                    diff.page.step(step);
                }
            }
            (Pane::Transcript, _) => self.transcript.tail.step(step),
            (Pane::Events, _) => self.events.step(step),
        }
    }

    /// The cycle or the attempt before or after the one that is shown.
    pub fn leaf(&mut self, newer: bool, fold: &Fold) {
        let moved = |at: usize, last: usize| {
            let to = if newer { at + 1 } else { at.saturating_sub(1) };
            (to < last).then_some(to)
        };
        match self.pane {
            Pane::Reviews | Pane::Findings | Pane::Diff => {
                let last = self.report.as_ref().map_or(0, |report| report.cycles.len()).saturating_sub(1);
                self.cycle = moved(self.cycle.unwrap_or(last).min(last), last);
                self.reviews = Page::default();
            }
            Pane::Transcript => {
                let attempts = fold.attempts(&self.key);
                let last = attempts.len().saturating_sub(1);
                let shown = self.transcript.attempt;
                let at = attempts.iter().position(|(attempt, _)| Some(*attempt) == shown).unwrap_or(last);
                self.attempt = moved(at, last).map(|to| attempts[to].0);
            }
            Pane::Events => {}
        }
    }

    /// The finding that a person may dispute.
    pub fn finding(&self) -> Option<&LedgerLine> {
        let report = self.report.as_deref().filter(|_| self.pane == Pane::Findings)?;
        self.findings.chosen(report)
    }

    /// `1 Reviews  2 Findings  [3 Diff]`, where there is room; the number of the pane otherwise.
    pub fn tabs(&self, ink: Ink, width: usize) -> Line<'static> {
        let wide = width >= 60;
        let mut spans = Vec::new();
        for (at, pane) in Pane::ALL.into_iter().enumerate() {
            let shown = pane == self.pane;
            let word =
                if wide || shown { format!("{} {}", at + 1, pane.word()) } else { (at + 1).to_string() };
            let text = if shown { format!("[{word}]") } else { format!(" {word} ") };
            spans.push(span(text, if shown { ink.chosen() } else { ink.faint() }));
        }
        Line::from(spans)
    }

    pub fn draw(&mut self, sheet: &mut Sheet<'_>, fold: &Fold, ink: Ink) {
        let report = self.report.as_deref();
        match (self.pane, report) {
            (Pane::Reviews | Pane::Findings | Pane::Diff, _) if self.task.is_none() => {
                said(sheet, "this serves the whole run; only tasks have reviews of their own", ink);
            }
            (Pane::Reviews | Pane::Findings, None) => said(sheet, "reading the log…", ink),
            (Pane::Reviews, Some(report)) => reviews::draw(sheet, report, self.cycle, &mut self.reviews, ink),
            (Pane::Findings, Some(report)) => self.findings.draw(sheet, report, ink),
            (Pane::Diff, report) => match &mut self.diff {
                Some(diff) => diff.draw(sheet, report, ink),
                None => said(sheet, "reading the diff…", ink),
            },
            (Pane::Transcript, _) => self.transcript(sheet, fold, ink),
            (Pane::Events, _) => self.happened(sheet, fold, ink),
        }
    }

    fn transcript(&mut self, sheet: &mut Sheet<'_>, fold: &Fold, ink: Ink) {
        let attempts = fold.attempts(&self.key);
        let at = attempts.iter().position(|(attempt, _)| Some(*attempt) == self.transcript.attempt);
        let Some(at) = at else { return said(sheet, "no agent was started yet", ink) };
        let (attempt, what) = &attempts[at];
        let heading = format!("{attempt} {what}  ({} of {})", at + 1, attempts.len());
        sheet.line(0, &Line::from(span(cut(&heading, sheet.width()), ink.bold())));
        self.transcript.draw(&mut sheet.part(1, usize::MAX), ink);
    }

    fn happened(&mut self, sheet: &mut Sheet<'_>, fold: &Fold, ink: Ink) {
        match fold.events(&self.key).filter(|events| !events.is_empty()) {
            Some(events) => log::draw(sheet, &mut self.events, events.len(), |at| &events[at]),
            None => said(sheet, "nothing has happened yet", ink),
        }
    }
}

fn said(sheet: &mut Sheet<'_>, text: &str, ink: Ink) {
    let text = cut(text, sheet.width());
    sheet.line(0, &Line::from(Span::styled(text, ink.faint())));
}
