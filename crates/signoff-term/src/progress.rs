//! What is drawn on a terminal while it works, and drawn again: a line for each run, a line for each loop at work.

use std::collections::BTreeMap;

use jiff::Timestamp;
use signoff_core::group::RunStage;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::review::Usage;
use signoff_core::view::{Badge, Counts, LoopView, Overview};

use crate::fit::{columns, cut, pad, shorten};
use crate::words;

/// How wide a title may be beside the rest.
const TITLE: usize = 40;

/// How many loops that block a group a line names.
const NAMED: usize = 4;

/// How much room there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub columns: usize,
    pub lines: usize,
}

/// All that is drawn: takes in what is new, gives the lines when somebody draws them.
#[derive(Debug, Clone, Default)]
pub struct List {
    runs: BTreeMap<RunId, Overview>,
    /// In the order of the task numbers; what serves the run comes first.
    loops: BTreeMap<(RunId, Option<TaskId>, LoopId), LoopView>,
}

impl List {
    /// How far a run is. One that has ended, or has only one task, needs no line.
    pub fn run(&mut self, run: RunId, overview: Overview) {
        let alone = overview.groups.is_none() && overview.tasks.all() < 2;
        if alone || matches!(overview.stage, RunStage::Done(_)) {
            self.runs.remove(&run);
        } else {
            self.runs.insert(run, overview);
        }
    }

    /// How a loop stands. One that is not at work needs no line.
    pub fn row(&mut self, run: RunId, mut row: LoopView) {
        let key = (run, row.task, row.id.clone());
        if is_at_work(row.badge) {
            // What agents say is not on record; it holds until something else is done.
            let known = self.loops.get(&key).filter(|known| known.since == row.since);
            if let (Some(known), true) = (known, row.last_line.is_empty()) {
                row.last_line.clone_from(&known.last_line);
            }
            self.loops.insert(key, row);
        } else {
            self.loops.remove(&key);
        }
    }

    /// The last line of an agent. That of a checkpoint's reviewer shows beside the loop that it looks at.
    pub fn said(&mut self, run: RunId, loop_id: &LoopId, line: &str) {
        let shown = loop_id.of_checkpoint().map_or_else(|| loop_id.clone(), |(of, _)| of);
        let own = self.loops.iter_mut().find(|((other, _, id), _)| *other == run && *id == shown);
        if let Some((_, row)) = own {
            row.last_line = line.to_owned();
        }
    }

    /// The lines, as many as there is room for; what is left out is counted.
    pub fn lines(&self, now: Timestamp, room: Room) -> Vec<String> {
        let runs = self.runs.values().map(|overview| run_line(overview, now, room.columns));
        let loops = self.loops.values().map(|row| line(row, now, room.columns));
        let mut lines: Vec<String> = runs.chain(loops).take(room.lines).collect();
        let all = self.runs.len() + self.loops.len();
        if all > lines.len() && lines.pop().is_some() {
            lines.push(shorten(format!("… and {} more", all - lines.len()), room.columns));
        }
        lines
    }
}

/// `run 3  group 2/4  5 done, 3 at work, 1 stuck  $1.24  02:13`, in so many columns.
pub fn run_line(overview: &Overview, now: Timestamp, width: usize) -> String {
    let run = overview.run.map(|run| format!("run {run}")).unwrap_or_default();
    let parts = [
        run,
        stage(overview),
        counts(&overview.tasks, 0, true),
        cost(overview.usage),
        clock(overview.since, now),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    shorten(parts.join("  "), width)
}

/// `run 3: group 2/4, 5 done, 3 at work, 1 stuck`.
pub fn how_far(overview: &Overview) -> String {
    let run = overview.run.map(|run| format!("run {run}: ")).unwrap_or_default();
    let parts = [stage(overview), counts(&overview.tasks, 0, true)];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{run}{}", parts.join(", "))
}

pub(crate) fn stage(overview: &Overview) -> String {
    let group =
        |group: usize| overview.groups.map(|all| format!("group {}/{all}", group + 1)).unwrap_or_default();
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

fn blockers(overview: &Overview) -> String {
    let by = &overview.blocked_by;
    let name = |task: &Option<TaskId>, id: &LoopId| {
        task.map_or_else(|| cut(id.as_str(), TITLE), |task| format!("#{task}"))
    };
    let mut names: Vec<_> = by.iter().take(NAMED).map(|one| name(&one.task, &one.id)).collect();
    if by.len() > NAMED {
        names.push("…".to_owned());
    }
    names.join(", ")
}

/// `5 done, 3 at work, 1 unsettled`; what nobody works on now is begun.
pub(crate) fn counts(tasks: &Counts, unsettled: usize, driven: bool) -> String {
    let told = [
        (tasks.done, "done"),
        (tasks.signed_off, "signed off"),
        (tasks.at_work, if driven { "at work" } else { "begun" }),
        (tasks.waiting, "waiting for you"),
        (unsettled, "unsettled"),
        (tasks.stuck, "stuck"),
        (tasks.cancelled, "cancelled"),
        (tasks.to_come, "to come"),
    ];
    let told = told.into_iter().filter(|(number, _)| *number > 0);
    told.map(|(number, word)| format!("{number} {word}")).collect::<Vec<_>>().join(", ")
}

/// `REVIEW   #29 Add user authentication  review 2/3  $0.36  00:41  Reading src/auth.rs`, in so many columns.
pub fn line(row: &LoopView, now: Timestamp, width: usize) -> String {
    let id = row.tracker_id.as_ref().map(|id| format!(" {}", cut(id, TITLE))).unwrap_or_default();
    let task = row.task.map_or_else(|| words::subject(row), |task| format!("#{task}{id}"));
    let title = row.task.map(|_| cut(&row.title, TITLE)).unwrap_or_default();
    let mut line = format!("{} {task} {title}", pad(&badge(row), 8)).trim_end().to_owned();
    let said = row.wait.as_ref().map_or_else(|| cut(&row.last_line, width), words::wait);
    for part in [place(row), cost(row.usage), clock(row.since, now), said] {
        if !part.is_empty() && columns(&line) + 2 < width {
            line = format!("{line}  {part}");
        }
    }
    shorten(line, width)
}

/// A fix says which one it is.
pub(crate) fn badge(row: &LoopView) -> String {
    match row.badge {
        Badge::Fix => format!("FIX {}", row.fixes.max(1)),
        Badge::Wait
        | Badge::Spawn
        | Badge::Work
        | Badge::Review
        | Badge::Check
        | Badge::Land
        | Badge::Ask
        | Badge::Paused
        | Badge::Done
        | Badge::Stuck => row.badge.word().to_owned(),
    }
}

/// `review 2/3`, `implement, attempt 2`, `checkpoint 1`, `phase 5/9 code_review 2/11, iteration 1/10`.
pub fn place(row: &LoopView) -> String {
    if let Some(number) = row.checkpoint {
        return format!("checkpoint {number}");
    }
    let phase = match row.place {
        Some(place) => format!("phase {}/{} {}", place.phase, place.phases, cut(&row.phase, TITLE)),
        None => cut(&row.phase, TITLE),
    };
    // Researchers and what they are brought together by are all attempts of one phase: a number would say nothing.
    let attempt = if row.badge == Badge::Work && row.attempt > 1 && row.place.is_none() {
        format!(", attempt {}", row.attempt)
    } else {
        String::new()
    };
    // Where the phases are counted, reviews are those of a gate; others have none.
    let cycle = if row.badge == Badge::Work && row.place.is_some() { 0 } else { row.cycle };
    let told = match (phase.as_str(), cycle, row.max_cycles) {
        ("", ..) => String::new(),
        (phase, 0, _) => format!("{phase}{attempt}"),
        (phase, cycle, Some(max)) => format!("{phase} {cycle}/{}{attempt}", max.max(cycle)),
        (phase, cycle, None) => format!("{phase} {cycle}{attempt}"),
    };
    match row.place {
        Some(place) => format!("{told}, iteration {}/{}", place.pass, place.max_passes),
        None => told,
    }
}

/// `$1.24`, `~$1.24` where that is worked out from list prices; nothing where nothing is known to have been spent.
pub(crate) fn cost(usage: Usage) -> String {
    let about = if usage.cost_is_estimated { "~" } else { "" };
    match usage.cost_micro_usd {
        0 => String::new(),
        1..5_000 => "<$0.01".to_owned(),
        micro => format!("{about}${:.2}", micro as f64 / 1_000_000.0),
    }
}

/// `02:13`, `1:02:13`.
pub(crate) fn clock(since: Option<Timestamp>, now: Timestamp) -> String {
    let Some(since) = since else { return String::new() };
    let seconds = now.duration_since(since).as_secs().max(0);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes:02}:{seconds:02}")
    }
}

pub(crate) fn is_at_work(badge: Badge) -> bool {
    match badge {
        Badge::Spawn | Badge::Work | Badge::Review | Badge::Fix | Badge::Check | Badge::Land => true,
        Badge::Wait | Badge::Ask | Badge::Paused | Badge::Done | Badge::Stuck => false,
    }
}
