//! The lines at the top: what needs a person, and how far each run is.

use jiff::Timestamp;
use ratatui::text::{Line, Span};
use signoff_core::review::Usage;
use signoff_core::view::Counts;

use super::fold::Fold;
use super::ink::Ink;
use super::row::Rank;
use super::sheet::{ends, span};
use super::tally::Progress;
use super::{Mode, Pace};
use crate::fit::cut;
use crate::progress;

/// How wide a bar is.
const BAR: usize = 20;

/// Who shows the screen, and of what.
pub struct Banner<'a> {
    pub project: &'a str,
    pub mode: Mode,
    pub pace: Option<&'a Pace>,
    pub ink: Ink,
}

/// `signoff demo  5/12 done  $1.24  02:13        2 need you`.
pub fn line(banner: &Banner<'_>, fold: &mut Fold, now: Timestamp, width: usize) -> Line<'static> {
    let ink = banner.ink;
    let runs = fold.progress(now);
    let clock = clock(&runs, now);
    let done: usize = runs.iter().map(|run| through(&run.tally.tasks)).sum();
    let all: usize = runs.iter().map(|run| run.overview.tasks.all()).sum();
    let usage = fold.overviews().iter().fold(Usage::default(), |sum, run| sum.plus(run.usage));
    let all = all + fold.queued();
    let parts = [
        if all > 0 { format!("{done}/{all} done") } else { "nothing to show yet".to_owned() },
        progress::cost(usage),
        clock,
        said(banner),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let name = format!("signoff {}", cut(banner.project, 40)).trim_end().to_owned();
    let left = vec![span(name, ink.bold()), Span::raw(format!("  {}", parts.join("  ")))];
    ends(left, vec![needs(fold, ink)], width)
}

/// How long what is at work has been; where nothing is, how long the last run was.
fn clock(runs: &[Progress], now: Timestamp) -> String {
    let open = runs.iter().filter(|run| run.goes_on).filter_map(|run| run.overview.since).min();
    match (open, runs.first()) {
        (Some(since), _) => progress::clock(Some(since), now),
        (None, Some(last)) => progress::clock(last.overview.since, last.until),
        (None, None) => String::new(),
    }
}

fn said(banner: &Banner<'_>) -> String {
    match (banner.mode, banner.pace) {
        (Mode::Driving, _) => String::new(),
        (Mode::Watching, _) => "watching".to_owned(),
        (Mode::Replaying, None) => "replay".to_owned(),
        (Mode::Replaying, Some(pace)) if pace.ended => "replay, at its end".to_owned(),
        (Mode::Replaying, Some(pace)) if pace.paused => format!("replay {}, paused", cut(&pace.speed, 8)),
        (Mode::Replaying, Some(pace)) => format!("replay {}", cut(&pace.speed, 8)),
    }
}

fn needs(fold: &Fold, ink: Ink) -> Span<'static> {
    match fold.needing() {
        0 => span("nothing needs you", ink.faint()),
        1 => span("! 1 needs you", ink.warning().patch(ink.bold())),
        many => span(format!("! {many} need you"), ink.warning().patch(ink.bold())),
    }
}

/// `1 ask, 2 stuck, 3 at work`: what is left of the head where there is no room.
pub fn short(fold: &Fold) -> String {
    let told = [
        (Rank::Asking, "ask"),
        (Rank::Stuck, "stuck"),
        (Rank::Unsettled, "unsettled"),
        (Rank::Interrupted, "interrupted"),
        (Rank::Paused, "paused"),
        (Rank::AtWork, "at work"),
        (Rank::Waiting, "wait"),
        (Rank::Done, "done"),
    ];
    let told = told.into_iter().map(|(rank, word)| (fold.rank(rank), word)).filter(|(number, _)| *number > 0);
    let told: Vec<_> = told.map(|(number, word)| format!("{number} {word}")).collect();
    if told.is_empty() { "nothing to show yet".to_owned() } else { told.join(", ") }
}

/// A line for each run, as far as there is room; the last one counts those that there is none for: `+3 more`.
pub fn runs(runs: &[Progress], lines: usize, ink: Ink, width: usize) -> Vec<Line<'static>> {
    let more = match runs.len().saturating_sub(lines) {
        0 => String::new(),
        more => format!("  +{more} more"),
    };
    let told = |(y, one): (usize, &Progress)| {
        let right = if y + 1 == lines { more.clone() } else { String::new() };
        ends(run(one, ink, width), vec![span(right, ink.faint())], width)
    };
    runs.iter().take(lines).enumerate().map(told).collect()
}

/// `run 3  ████████░░░░ 5/12  group 2/4  5 done, 3 at work  $1.24  02:13`.
fn run(run: &Progress, ink: Ink, width: usize) -> Vec<Span<'static>> {
    let (overview, tally) = (&run.overview, &run.tally);
    let name = overview.run.map(|run| format!("run {run}  ")).unwrap_or_default();
    let (done, all) = (through(&tally.tasks), overview.tasks.all());
    let bar = BAR.min(width / 4);
    let full = (bar * done).checked_div(all).unwrap_or(0);
    let parts = [
        format!("{done}/{all}"),
        progress::stage(overview),
        progress::counts(&tally.tasks, tally.unsettled, tally.driven),
        progress::cost(overview.usage),
        progress::clock(overview.since, run.until),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    vec![
        Span::raw(name),
        span("█".repeat(full), ink.progress()),
        span("░".repeat(bar - full), ink.faint()),
        Span::raw(format!(" {}", parts.join("  "))),
    ]
}

/// Whatever needs nothing more to be done: the same in the first line and in those of the runs.
fn through(tasks: &Counts) -> usize {
    tasks.done + tasks.cancelled
}
