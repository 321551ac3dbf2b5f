//! Texts about the progress of runs and loops: stage, counts, badge, position, cost and time.

use jiff::Timestamp;
use signoff_core::group::RunStage;
use signoff_core::ids::{LoopId, TaskId};
use signoff_core::review::Usage;
use signoff_core::view::{Badge, LoopRow, RunOverview, RunTaskCounts};

use crate::fit::{self, join, truncate_line};

/// Maximum width of a title.
const MAX_TITLE_WIDTH: usize = 40;

/// Maximum number of blocking loops to name.
const MAX_NAMED_LOOPS: usize = 4;

/// The space available for the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DisplaySize {
    pub columns: usize,
    pub lines: usize,
}

/// `run 3: group 2/4, 5 done, 3 at work, 1 stuck`.
pub fn run_progress(overview: &RunOverview) -> String {
    let parts = [stage_text(overview), counts(&overview.tasks, 0, true)];
    format!("run {}: {}", overview.run, join(parts, ", "))
}

pub(crate) fn stage_text(overview: &RunOverview) -> String {
    let group = |group: usize| overview.groups.map(|all| format!("group {}/{all}", group + 1)).unwrap_or_default();
    match &overview.stage {
        RunStage::Queued | RunStage::Done(_) => String::new(),
        RunStage::Preparing => "planning".to_owned(),
        RunStage::Working { group: at } => {
            let landing = overview.landing.map(|task| format!(" landing #{task}")).unwrap_or_default();
            format!("{}{landing}", group(*at)).trim_start().to_owned()
        }
        RunStage::Blocked { group: at, .. } => {
            format!("{} blocked by {}", group(*at), blockers(overview)).trim_start().to_owned()
        }
        RunStage::Reviewing => "final review".to_owned(),
        RunStage::Landing(_) => "landing on the default branch".to_owned(),
    }
}

fn blockers(overview: &RunOverview) -> String {
    let by = &overview.blocked_by;
    let name = |task: &Option<TaskId>, id: &LoopId| {
        task.map_or_else(|| truncate_line(id.as_str(), MAX_TITLE_WIDTH), |task| format!("#{task}"))
    };
    let mut names: Vec<_> = by.iter().take(MAX_NAMED_LOOPS).map(|blocker| name(&blocker.task, &blocker.id)).collect();
    if by.len() > MAX_NAMED_LOOPS {
        names.push("…".to_owned());
    }
    names.join(", ")
}

/// `5 done, 3 at work, 1 unsettled`. Without a running process, active tasks are called `interrupted`.
pub(crate) fn counts(tasks: &RunTaskCounts, unsettled: usize, is_running: bool) -> String {
    fit::counts([
        (tasks.done, "done"),
        (tasks.signed_off, "signed off"),
        (tasks.at_work, if is_running { "at work" } else { "interrupted" }),
        (tasks.waiting, "waiting for you"),
        (unsettled, "unsettled"),
        (tasks.stuck, "stuck"),
        (tasks.cancelled, "cancelled"),
        (tasks.to_come, "to come"),
    ])
}

/// The label of the badge; a fix has its number.
pub(crate) fn badge(row: &LoopRow) -> String {
    if row.badge == Badge::Fix { format!("FIX {}", row.fixes.max(1)) } else { row.badge.into_str().to_owned() }
}

/// `review 2/3`, `implement, attempt 2`, `checkpoint 1`, `phase 5/9 code_review 2/11, iteration 1/10`.
pub fn phase_position(row: &LoopRow) -> String {
    if let Some(number) = row.checkpoint {
        return format!("checkpoint {number}");
    }
    let phase = match row.progress {
        Some(progress) => {
            format!("phase {}/{} {}", progress.phase, progress.phases, truncate_line(&row.phase, MAX_TITLE_WIDTH))
        }
        None => truncate_line(&row.phase, MAX_TITLE_WIDTH),
    };
    // A phase with researchers has many attempts, so the number would say nothing.
    let attempt = if row.badge == Badge::Work && row.attempt > 1 && row.progress.is_none() {
        format!(", attempt {}", row.attempt)
    } else {
        String::new()
    };
    // In workflows with counted phases only gates have a review number.
    let cycle = if row.badge == Badge::Work && row.progress.is_some() { 0 } else { row.cycle };
    let phase_text = match (phase.as_str(), cycle, row.max_cycles) {
        ("", ..) => String::new(),
        (phase, 0, _) => format!("{phase}{attempt}"),
        (phase, cycle, Some(max)) => format!("{phase} {cycle}/{}{attempt}", max.max(cycle)),
        (phase, cycle, None) => format!("{phase} {cycle}{attempt}"),
    };
    match row.progress {
        Some(progress) => format!("{phase_text}, iteration {}/{}", progress.pass, progress.max_passes),
        None => phase_text,
    }
}

/// `$1.24`, or `~$1.24` if computed from list prices; empty if no cost is known.
pub(crate) fn cost(usage: Usage) -> String {
    let approx = if usage.cost_is_estimated { "~" } else { "" };
    match usage.cost_micro_usd {
        0 => String::new(),
        1..5_000 => "<$0.01".to_owned(),
        micro => format!("{approx}${:.2}", micro as f64 / 1_000_000.0),
    }
}

/// `02:13`, `1:02:13`.
pub(crate) fn elapsed(since: Option<Timestamp>, now: Timestamp) -> String {
    let Some(since) = since else { return String::new() };
    let seconds = now.duration_since(since).as_secs().max(0);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes:02}:{seconds:02}") }
}
