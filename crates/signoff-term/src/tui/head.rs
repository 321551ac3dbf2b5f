//! The lines at the top: the number of tasks that need a person, and the progress of each run.

use jiff::Timestamp;
use ratatui::text::{Line, Span};
use signoff_core::group::RunStage;
use signoff_core::review::Usage;
use signoff_core::view::inbox::Attention;
use signoff_core::view::{RunOverview, RunTaskCounts};

use super::canvas::{Theme, justified, span};
use super::model::TuiModel;
use super::row::RowOrder;
use super::{ReplayState, TuiMode};
use crate::fit::{counts, join, truncate_line};
use crate::progress;

/// Width of a progress bar.
const MAX_BAR_WIDTH: usize = 20;

/// The data of the first line.
pub struct Banner<'a> {
    pub project: &'a str,
    pub mode: TuiMode,
    pub replay: Option<&'a ReplayState>,
    pub theme: Theme,
}

/// `signoff demo  5/12 done  $1.24  02:13        2 need you`.
pub fn line(banner: &Banner<'_>, model: &mut TuiModel, now: Timestamp, width: usize) -> Line<'static> {
    let theme = banner.theme;
    let runs = model.progress(now);
    let elapsed = elapsed(&runs, now);
    let done: usize = runs.iter().map(|run| finished(&run.tally.tasks)).sum();
    let all: usize = runs.iter().map(|run| run.overview.tasks.all()).sum();
    let usage = model.overviews().iter().fold(Usage::default(), |sum, run| sum.plus(run.usage));
    let all = all + model.queued();
    let parts = [
        if all > 0 { format!("{done}/{all} done") } else { "nothing to show yet".to_owned() },
        progress::cost(usage),
        elapsed,
        mode_text(banner),
    ];
    let name = format!("signoff {}", truncate_line(banner.project, 40)).trim_end().to_owned();
    let left = vec![span(name, theme.bold()), Span::raw(format!("  {}", join(parts, "  ")))];
    justified(left, vec![attention_text(model, theme)], width)
}

/// The time since the oldest active run started; without an active run, the duration of the last one.
fn elapsed(runs: &[TuiRunProgress], now: Timestamp) -> String {
    let open = runs.iter().filter(|run| run.is_running).filter_map(|run| run.overview.since).min();
    match (open, runs.first()) {
        (Some(since), _) => progress::elapsed(Some(since), now),
        (None, Some(last)) => progress::elapsed(last.overview.since, last.until),
        (None, None) => String::new(),
    }
}

fn mode_text(banner: &Banner<'_>) -> String {
    match (banner.mode, banner.replay) {
        (TuiMode::Driving, _) => String::new(),
        (TuiMode::Watching, _) => "watching".to_owned(),
        (TuiMode::Replaying, None) => "replay".to_owned(),
        (TuiMode::Replaying, Some(replay)) if replay.ended => "replay ended".to_owned(),
        (TuiMode::Replaying, Some(replay)) if replay.paused => {
            format!("replay {}, paused", truncate_line(&replay.speed, 8))
        }
        (TuiMode::Replaying, Some(replay)) => format!("replay {}", truncate_line(&replay.speed, 8)),
    }
}

fn attention_text(model: &TuiModel, theme: Theme) -> Span<'static> {
    match model.needing_attention() {
        0 => span("no attention needed", theme.faint()),
        1 => span("! 1 needs you", theme.warning().patch(theme.bold())),
        many => span(format!("! {many} need you"), theme.warning().patch(theme.bold())),
    }
}

/// `1 ask, 2 stuck, 3 at work`: the head of a narrow screen.
pub fn short_line(model: &TuiModel) -> String {
    let ranks = [
        (RowOrder::Needs(Attention::Asking), "ask"),
        (RowOrder::Needs(Attention::Stuck), "stuck"),
        (RowOrder::Needs(Attention::NotApproved), "unsettled"),
        (RowOrder::Needs(Attention::Interrupted), "interrupted"),
        (RowOrder::Needs(Attention::Paused), "paused"),
        (RowOrder::AtWork, "at work"),
        (RowOrder::Waiting, "wait"),
        (RowOrder::Done, "done"),
    ];
    let counts = counts(ranks.map(|(rank, word)| (model.count_rank(rank), word)));
    if counts.is_empty() { "nothing to show yet".to_owned() } else { counts }
}

/// A line per run, as many as fit; the last one counts the others: `+3 more`.
pub fn run_lines(runs: &[TuiRunProgress], lines: usize, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let more = match runs.len().saturating_sub(lines) {
        0 => String::new(),
        more => format!("  +{more} more"),
    };
    let line = |(y, run): (usize, &TuiRunProgress)| {
        let right = if y + 1 == lines { more.clone() } else { String::new() };
        justified(run_line(run, theme, width), vec![span(right, theme.faint())], width)
    };
    runs.iter().take(lines).enumerate().map(line).collect()
}

/// `run 3  ████████░░░░ 5/12  group 2/4  5 done, 3 at work  $1.24  02:13`.
fn run_line(run: &TuiRunProgress, theme: Theme, width: usize) -> Vec<Span<'static>> {
    let (overview, tally) = (&run.overview, &run.tally);
    let name = format!("run {}  ", overview.run);
    let (done, all) = (finished(&tally.tasks), overview.tasks.all());
    let bar = MAX_BAR_WIDTH.min(width / 4);
    let full = (bar * done).checked_div(all).unwrap_or(0);
    let parts = [
        format!("{done}/{all}"),
        progress::stage_text(overview),
        progress::counts(&tally.tasks, tally.not_approved, tally.driven),
        progress::cost(overview.usage),
        progress::elapsed(overview.since, run.until),
    ];
    vec![
        Span::raw(name),
        span("█".repeat(full), theme.progress()),
        span("░".repeat(bar - full), theme.faint()),
        Span::raw(format!(" {}", join(parts, "  "))),
    ]
}

/// Number of tasks that are finished, for the first line and the lines of the runs.
fn finished(tasks: &RunTaskCounts) -> usize {
    tasks.done + tasks.cancelled
}

/// The progress of one run.
#[derive(Debug, Clone)]
pub struct TuiRunProgress {
    pub overview: RunOverview,
    pub tally: RunTally,
    /// The time at which its clock stopped, or now.
    pub until: Timestamp,
    /// Whether its clock is running: a process is working on it.
    pub is_running: bool,
}

impl TuiRunProgress {
    /// Whether the run is finished.
    pub fn is_over(&self) -> bool {
        let open = self.overview.tasks.open() + self.tally.needing_attention;
        let done = matches!(self.overview.stage, RunStage::Done(_));
        done || (!self.is_running && open == 0 && self.overview.groups.is_none())
    }
}

/// Number of tasks of a run by state.
#[derive(Debug, Clone, Copy)]
pub struct RunTally {
    pub tasks: RunTaskCounts,
    /// Ended, but not approved.
    pub not_approved: usize,
    /// All tasks that need a person.
    needing_attention: usize,
    pub driven: bool,
}

impl RunTally {
    pub fn new(overview: &RunOverview, unsettled: usize, settled: usize, driven: bool) -> Self {
        let RunTaskCounts { stuck, done, .. } = overview.tasks;
        let stuck = stuck.saturating_sub(unsettled + settled);
        let tasks = RunTaskCounts { stuck, done: done + settled, ..overview.tasks };
        Self { tasks, not_approved: unsettled, needing_attention: stuck + unsettled, driven }
    }
}
