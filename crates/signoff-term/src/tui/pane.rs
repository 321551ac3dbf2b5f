//! The panes of an open loop: reviews, findings, diff, transcript and events.

mod diff;
mod log;
mod reviews;

use ratatui::text::{Line, Span};
use signoff_core::ids::{AttemptId, LoopId, RunId, TaskId};
use signoff_core::wire::QUEUE;
use strum::VariantArray as _;

use self::diff::DiffPane;
use self::log::TranscriptPane;
use self::reviews::Findings;
use super::canvas::{Canvas, Theme, span};
use super::list::{Navigation, Scroll, TailScroll};
use super::model::TuiModel;
use super::row::RowKey;
use super::{DataRequest, TuiData, TuiRequest};
use crate::fit::truncate_line;
use crate::show::{LedgerLine, TaskReport};

/// A pane of the open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(const_into_str)]
pub enum Pane {
    Reviews,
    Findings,
    Diff,
    Transcript,
    Events,
}

impl Pane {
    pub const ALL: &[Self] = Self::VARIANTS;
}

/// Data that has to be requested: at most one request at a time, and another one if the data changed meanwhile.
#[derive(Debug, Clone, Copy, Default)]
struct PendingRequest {
    needed: bool,
    requested: bool,
}

impl PendingRequest {
    /// Marks the data as requested, if it has to be requested now.
    fn start_if_needed(&mut self) -> bool {
        let starts = self.needed && !self.requested;
        if starts {
            *self = Self { needed: false, requested: true };
        }
        starts
    }

    /// Requests the data again, even if an earlier request was never answered.
    fn restart(&mut self) {
        *self = Self { needed: true, requested: false };
    }
}

/// The open loop.
#[derive(Debug)]
pub struct OpenLoop {
    pub key: RowKey,
    pub task: Option<TaskId>,
    pub pane: Pane,
    report: Option<Box<TaskReport>>,
    report_request: PendingRequest,
    cycle: Option<usize>,
    reviews: Scroll,
    findings: Findings,
    diff: Option<DiffPane>,
    diff_request: PendingRequest,
    transcript: TranscriptPane,
    /// The attempt that the person selected; `None` follows the latest.
    attempt: Option<AttemptId>,
    events: TailScroll,
}

impl OpenLoop {
    pub fn new(key: RowKey, task: Option<TaskId>) -> Self {
        let first = if task.is_some() { Pane::Reviews } else { Pane::Events };
        let request = PendingRequest { needed: true, requested: false };
        Self {
            key,
            task,
            pane: first,
            report: None,
            report_request: request,
            cycle: None,
            reviews: Scroll::default(),
            findings: Findings::default(),
            diff: None,
            diff_request: request,
            transcript: TranscriptPane::default(),
            attempt: None,
            events: TailScroll::default(),
        }
    }

    /// An event of this loop arrived: the displayed data may be outdated.
    pub fn invalidate(&mut self) {
        self.report_request.needed = true;
        self.diff_request.needed = true;
    }

    /// Switches from a queued task to its loop once a run has one.
    pub fn follow(&mut self, model: &TuiModel) {
        let taken = self.task.filter(|_| self.key.run == QUEUE && model.row(&self.key).is_none());
        if let Some(key) = taken.and_then(|task| model.row_of_task(task)) {
            self.key = key.clone();
            self.invalidate();
        }
    }

    /// The requests for data that the pane needs and that is not requested yet.
    pub fn requests(&mut self, model: &TuiModel) -> Vec<TuiRequest> {
        let mut requests = Vec::new();
        if let Some(task) = self.task {
            if self.report_request.start_if_needed() {
                requests.push(TuiRequest::Load(DataRequest::Report(task)));
            }
            if self.pane == Pane::Diff && self.diff_request.start_if_needed() {
                requests.push(TuiRequest::Load(DataRequest::Diff(task)));
            }
        }
        if self.pane == Pane::Transcript {
            let latest = || model.state(self.key.run)?.attempts(&self.key.loop_id).last().map(|(attempt, ..)| *attempt);
            let wanted = self.attempt.or_else(latest);
            if let Some(attempt) = wanted.filter(|attempt| self.transcript.attempt != Some(*attempt)) {
                self.transcript = TranscriptPane::new(attempt);
                let RowKey { run, loop_id } = self.key.clone();
                requests.push(TuiRequest::Load(DataRequest::Transcript { run, loop_id, attempt }));
            }
        }
        requests
    }

    pub fn receive(&mut self, data: TuiData) {
        match data {
            TuiData::Report { task, report } if Some(task) == self.task => {
                self.report_request.requested = false;
                if let Some(diff) = &mut self.diff {
                    diff.mark(Some(&report));
                }
                self.report = Some(report);
            }
            TuiData::Diff { task, patch, stat } if Some(task) == self.task => {
                self.diff_request.requested = false;
                let top = self.diff.take().map(|diff| diff.scroll).unwrap_or_default();
                let mut diff = DiffPane::new(&patch, &stat);
                diff.scroll = top;
                diff.mark(self.report.as_deref());
                self.diff = Some(diff);
            }
            TuiData::Transcript { run, loop_id, attempt, text } => {
                let is_own = self.key.run == run && self.key.loop_id == loop_id;
                if is_own && self.transcript.attempt == Some(attempt) {
                    self.transcript.push_chunk(&text);
                }
            }
            TuiData::Report { .. } | TuiData::Diff { .. } | TuiData::ReplayState(_) => {}
        }
    }

    pub fn add_live_line(&mut self, run: RunId, loop_id: &LoopId, attempt: AttemptId, line: &str) {
        let is_own = self.key.run == run && self.key.loop_id == *loop_id;
        if is_own && self.transcript.attempt == Some(attempt) {
            self.transcript.push_live_line(line);
        }
    }

    pub fn show(&mut self, pane: Pane) {
        self.pane = pane;
        self.report_request.restart();
        if pane == Pane::Diff {
            self.diff_request.restart();
        }
    }

    /// Shows the pane `by` positions further.
    pub fn rotate(&mut self, by: usize) {
        let at = Pane::ALL.iter().position(|pane| *pane == self.pane).unwrap_or(0);
        self.show(Pane::ALL[(at + by) % Pane::ALL.len()]);
    }

    pub fn step(&mut self, step: Navigation) {
        match (self.pane, &self.report) {
            (Pane::Reviews, _) => self.reviews.step(step),
            (Pane::Findings, Some(report)) => self.findings.step(step, report),
            (Pane::Findings, None) => {}
            (Pane::Diff, _) => {
                if let Some(diff) = &mut self.diff {
                    diff.scroll.step(step);
                }
            }
            (Pane::Transcript, _) => self.transcript.tail.step(step),
            (Pane::Events, _) => self.events.step(step),
        }
    }

    /// Selects the previous or next cycle or attempt.
    pub fn select_adjacent(&mut self, newer: bool, model: &TuiModel) {
        let moved = |at: usize, last: usize| {
            let to = if newer { at + 1 } else { at.saturating_sub(1) };
            (to < last).then_some(to)
        };
        match self.pane {
            Pane::Reviews | Pane::Findings | Pane::Diff => {
                let last = self.report.as_ref().map_or(0, |report| report.cycles.len()).saturating_sub(1);
                self.cycle = moved(self.cycle.unwrap_or(last).min(last), last);
                self.reviews = Scroll::default();
            }
            Pane::Transcript => {
                let attempts = model.attempts(&self.key);
                let last = attempts.len().saturating_sub(1);
                let shown = self.transcript.attempt;
                let at = attempts.iter().position(|(attempt, _)| Some(*attempt) == shown).unwrap_or(last);
                self.attempt = moved(at, last).map(|to| attempts[to].0);
            }
            Pane::Events => {}
        }
    }

    /// The selected finding, which can be disputed.
    pub fn finding(&self) -> Option<&LedgerLine> {
        let report = self.report.as_deref().filter(|_| self.pane == Pane::Findings)?;
        self.findings.chosen(report)
    }

    /// `1 Reviews  2 Findings  [3 Diff]`; on a narrow screen, the other panes have only their number.
    pub fn tabs(&self, theme: Theme, width: usize) -> Line<'static> {
        let wide = width >= 60;
        let mut spans = Vec::new();
        for (at, pane) in Pane::ALL.iter().copied().enumerate() {
            let shown = pane == self.pane;
            let word = if wide || shown { format!("{} {}", at + 1, pane.into_str()) } else { (at + 1).to_string() };
            let text = if shown { format!("[{word}]") } else { format!(" {word} ") };
            spans.push(span(text, if shown { theme.chosen() } else { theme.faint() }));
        }
        Line::from(spans)
    }

    pub fn draw(&mut self, canvas: &mut Canvas<'_>, model: &TuiModel, theme: Theme) {
        let report = self.report.as_deref();
        match (self.pane, report) {
            (Pane::Reviews | Pane::Findings | Pane::Diff, _) if self.task.is_none() => {
                draw_message(canvas, "run-level loops have no reviews of their own", theme);
            }
            (Pane::Reviews | Pane::Findings, None) => draw_message(canvas, "reading the log…", theme),
            (Pane::Reviews, Some(report)) => reviews::draw(canvas, report, self.cycle, &mut self.reviews, theme),
            (Pane::Findings, Some(report)) => self.findings.draw(canvas, report, theme),
            (Pane::Diff, report) => match &mut self.diff {
                Some(diff) => diff.draw(canvas, report, theme),
                None => draw_message(canvas, "reading the diff…", theme),
            },
            (Pane::Transcript, _) => self.draw_transcript(canvas, model, theme),
            (Pane::Events, _) => self.draw_events(canvas, model, theme),
        }
    }

    fn draw_transcript(&mut self, canvas: &mut Canvas<'_>, model: &TuiModel, theme: Theme) {
        let attempts = model.attempts(&self.key);
        let at = attempts.iter().position(|(attempt, _)| Some(*attempt) == self.transcript.attempt);
        let Some(at) = at else { return draw_message(canvas, "no agent was started yet", theme) };
        let (attempt, what) = &attempts[at];
        let heading = format!("{attempt} {what}  ({} of {})", at + 1, attempts.len());
        canvas.line(0, &Line::from(span(truncate_line(&heading, canvas.width()), theme.bold())));
        self.transcript.draw(&mut canvas.part(1, usize::MAX), theme);
    }

    fn draw_events(&mut self, canvas: &mut Canvas<'_>, model: &TuiModel, theme: Theme) {
        match model.events(&self.key).filter(|events| !events.is_empty()) {
            Some(events) => log::draw(canvas, &mut self.events, events.len(), |at| &events[at]),
            None => draw_message(canvas, "no events yet", theme),
        }
    }
}

fn draw_message(canvas: &mut Canvas<'_>, text: &str, theme: Theme) {
    let text = truncate_line(text, canvas.width());
    canvas.line(0, &Line::from(Span::styled(text, theme.faint())));
}
