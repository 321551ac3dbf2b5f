//! The lines at the top: the number of tasks that need a person, and the progress of each run.

use jiff::Timestamp;
use ratatui::text::{Line, Span};
use signoff_core::review::Usage;
use signoff_core::view::RunTaskCounts;

use super::canvas::{Theme, justified, span};
use super::model::TuiModel;
use super::row::Rank;
use super::tally::TuiRunProgress;
use super::{ReplayState, TuiMode};
use crate::fit::cut;
use crate::progress;

/// Width of a progress bar.
const BAR: usize = 20;

/// The data of the first line.
pub struct Banner<'a> {
    pub project: &'a str,
    pub mode: TuiMode,
    pub pace: Option<&'a ReplayState>,
    pub theme: Theme,
}

/// `signoff demo  5/12 done  $1.24  02:13        2 need you`.
pub fn line(banner: &Banner<'_>, model: &mut TuiModel, now: Timestamp, width: usize) -> Line<'static> {
    let theme = banner.theme;
    let runs = model.progress(now);
    let clock = clock(&runs, now);
    let done: usize = runs.iter().map(|run| finished(&run.tally.tasks)).sum();
    let all: usize = runs.iter().map(|run| run.overview.tasks.all()).sum();
    let usage = model.overviews().iter().fold(Usage::default(), |sum, run| sum.plus(run.usage));
    let all = all + model.queued();
    let parts = [
        if all > 0 { format!("{done}/{all} done") } else { "nothing to show yet".to_owned() },
        progress::cost(usage),
        clock,
        mode_text(banner),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let name = format!("signoff {}", cut(banner.project, 40)).trim_end().to_owned();
    let left = vec![span(name, theme.bold()), Span::raw(format!("  {}", parts.join("  ")))];
    justified(left, vec![attention_text(model, theme)], width)
}

/// The time since the oldest active run started; without an active run, the duration of the last one.
fn clock(runs: &[TuiRunProgress], now: Timestamp) -> String {
    let open = runs.iter().filter(|run| run.is_running).filter_map(|run| run.overview.since).min();
    match (open, runs.first()) {
        (Some(since), _) => progress::clock(Some(since), now),
        (None, Some(last)) => progress::clock(last.overview.since, last.until),
        (None, None) => String::new(),
    }
}

fn mode_text(banner: &Banner<'_>) -> String {
    match (banner.mode, banner.pace) {
        (TuiMode::Driving, _) => String::new(),
        (TuiMode::Watching, _) => "watching".to_owned(),
        (TuiMode::Replaying, None) => "replay".to_owned(),
        (TuiMode::Replaying, Some(pace)) if pace.ended => "replay, at its end".to_owned(),
        (TuiMode::Replaying, Some(pace)) if pace.paused => format!("replay {}, paused", cut(&pace.speed, 8)),
        (TuiMode::Replaying, Some(pace)) => format!("replay {}", cut(&pace.speed, 8)),
    }
}

fn attention_text(model: &TuiModel, theme: Theme) -> Span<'static> {
    match model.needing_attention() {
        0 => span("nothing needs you", theme.faint()),
        1 => span("! 1 needs you", theme.warning().patch(theme.bold())),
        many => span(format!("! {many} need you"), theme.warning().patch(theme.bold())),
    }
}

/// `1 ask, 2 stuck, 3 at work`: the head of a narrow screen.
pub fn short_line(model: &TuiModel) -> String {
    let counts = [
        (Rank::Asking, "ask"),
        (Rank::Stuck, "stuck"),
        (Rank::NotApproved, "unsettled"),
        (Rank::Interrupted, "interrupted"),
        (Rank::Paused, "paused"),
        (Rank::AtWork, "at work"),
        (Rank::Waiting, "wait"),
        (Rank::Done, "done"),
    ];
    let counts =
        counts.into_iter().map(|(rank, word)| (model.count_rank(rank), word)).filter(|(number, _)| *number > 0);
    let counts: Vec<_> = counts.map(|(number, word)| format!("{number} {word}")).collect();
    if counts.is_empty() { "nothing to show yet".to_owned() } else { counts.join(", ") }
}

/// A line per run, as many as fit; the last one counts the others: `+3 more`.
pub fn run_lines(runs: &[TuiRunProgress], lines: usize, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let more = match runs.len().saturating_sub(lines) {
        0 => String::new(),
        more => format!("  +{more} more"),
    };
    let line = |(y, one): (usize, &TuiRunProgress)| {
        let right = if y + 1 == lines { more.clone() } else { String::new() };
        justified(run_line(one, theme, width), vec![span(right, theme.faint())], width)
    };
    runs.iter().take(lines).enumerate().map(line).collect()
}

/// `run 3  ████████░░░░ 5/12  group 2/4  5 done, 3 at work  $1.24  02:13`.
fn run_line(run: &TuiRunProgress, theme: Theme, width: usize) -> Vec<Span<'static>> {
    let (overview, tally) = (&run.overview, &run.tally);
    let name = format!("run {}  ", overview.run);
    let (done, all) = (finished(&tally.tasks), overview.tasks.all());
    let bar = BAR.min(width / 4);
    let full = (bar * done).checked_div(all).unwrap_or(0);
    let parts = [
        format!("{done}/{all}"),
        progress::stage_text(overview),
        progress::counts(&tally.tasks, tally.not_approved, tally.driven),
        progress::cost(overview.usage),
        progress::clock(overview.since, run.until),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    vec![
        Span::raw(name),
        span("█".repeat(full), theme.progress()),
        span("░".repeat(bar - full), theme.faint()),
        Span::raw(format!(" {}", parts.join("  "))),
    ]
}

/// Number of tasks that are finished, for the first line and the lines of the runs.
fn finished(tasks: &RunTaskCounts) -> usize {
    tasks.done + tasks.cancelled
}
