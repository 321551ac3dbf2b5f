//! What is known of all runs: folded fact by fact, and made into rows only when somebody looks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use signoff_core::group::RunStage;
use signoff_core::ids::{AttemptId, LoopId, RunId, TaskId};
use signoff_core::machine::Stage;
use signoff_core::view::{Overview, RunView, Status, TaskRow};
use signoff_core::wire::{Fact, LoopFact, QUEUE, Recorded};

use super::row::{Rank, Row, RowKey};
use super::standings::Standings;
use super::tally::{Progress, Tally};
use crate::dialogue::{Dialogue, Question};
use crate::fit::cut;
use crate::line::{LineRenderer, Naming};
use crate::progress;

/// How many lines of a loop's history are kept.
pub const EVENTS: usize = 500;

/// How wide one of them may be.
const LINE: usize = 300;

/// One run.
struct Watched {
    /// It folds the log and tells it, both at once.
    lines: LineRenderer,
    overview: Option<Overview>,
    /// When its last fact was recorded.
    last: Option<Timestamp>,
    loops: BTreeMap<LoopId, Kept>,
}

/// What is kept of a loop besides its state.
#[derive(Default)]
struct Kept {
    events: VecDeque<String>,
    /// When it was first begun, and when its stage last changed.
    begun: Option<Timestamp>,
    last: Option<Timestamp>,
    /// When its last fact was recorded.
    heard: Option<Timestamp>,
    /// What an agent said last.
    live: String,
    /// When the stage began in which it did; none while nobody has looked since.
    live_since: Option<Option<Timestamp>>,
}

/// All runs, and their loops as rows.
#[derive(Default)]
pub struct Fold {
    runs: BTreeMap<RunId, Watched>,
    queued: Vec<TaskRow>,
    queue: BTreeMap<RowKey, Row>,
    /// Where somebody knows more than the logs: a replay does not.
    standings: Option<Standings>,
    drives: bool,
    rows: BTreeMap<RowKey, Row>,
    stale: BTreeSet<RowKey>,
    moved: bool,
    order: Vec<RowKey>,
}

impl Fold {
    /// Takes one fact in. What it changes is only marked.
    pub fn take(&mut self, recorded: &Recorded) {
        let run = self.runs.entry(recorded.run).or_insert_with(|| Watched {
            lines: LineRenderer::new(Naming::Always),
            overview: None,
            last: None,
            loops: BTreeMap::new(),
        });
        run.last = Some(recorded.at);
        let told = run.lines.take(recorded);
        match &recorded.fact {
            Fact::Task(..) => {}
            Fact::Run(_) => {
                run.overview = None;
                // Whether a group is blocked shows in the rows of all its loops.
                if !told.is_empty() {
                    self.stale.extend(run.loops.keys().map(|loop_id| RowKey::new(recorded.run, loop_id)));
                }
            }
            Fact::Loop(loop_id, fact) => {
                run.heard(loop_id, fact, (recorded.at, told));
                let of = loop_id.of_checkpoint().map(|(of, _)| RowKey::new(recorded.run, &of));
                self.stale.extend(of);
                self.stale.insert(RowKey::new(recorded.run, loop_id));
            }
        }
    }

    /// A live line of an agent. That of a checkpoint's reviewer shows beside the loop that it looks at.
    pub fn said(&mut self, run: RunId, loop_id: &LoopId, line: &str) {
        let shown = loop_id.of_checkpoint().map_or_else(|| loop_id.clone(), |(of, _)| of);
        let kept = self.runs.get_mut(&run).and_then(|run| run.loops.get_mut(&shown));
        if let Some(kept) = kept {
            kept.speaks(line);
            self.stale.insert(RowKey { run, loop_id: shown });
        }
    }

    pub fn queue(&mut self, tasks: Vec<TaskRow>) {
        self.queued = tasks;
        self.list_queue();
    }

    fn list_queue(&mut self) {
        let row = |task: &TaskRow| match &self.standings {
            Some(known) => Row::queued(task).by(known),
            None => Row::queued(task),
        };
        self.queue = self.queued.iter().map(|task| (RowKey::queued(task.id), row(task))).collect();
        self.moved = true;
    }

    /// What is known besides the logs. It may change every row. Whoever drives knows that it does.
    pub fn standings(&mut self, standings: Standings, drives: bool) {
        (self.standings, self.drives) = (Some(standings), drives);
        self.stale.extend(self.rows.keys().cloned());
        self.list_queue();
    }

    /// Whether some program works on a run, as far as anybody knows.
    fn is_driven(&self, run: RunId) -> bool {
        self.drives || self.standings.as_ref().is_none_or(|known| !known.left.contains(&run))
    }

    /// Makes rows of what has changed since, and hands what is asked to the dialogue.
    pub fn refresh(&mut self, dialogue: &mut Dialogue) {
        for key in std::mem::take(&mut self.stale) {
            let driven = self.is_driven(key.run);
            let Some(run) = self.runs.get_mut(&key.run) else { continue };
            let view = run.lines.view();
            let asks =
                view.loop_state(&key.loop_id).is_some_and(|this| matches!(this.stage, Stage::Waiting { .. }));
            let question = if asks { Question::of(view, &key.loop_id) } else { None };
            dialogue.take((key.run, &key.loop_id), question);
            if key.loop_id.of_checkpoint().is_some() {
                continue;
            }
            let known = self.standings.as_ref().map(|known| (known, driven));
            let Some(row) = run.row(&key.loop_id, known) else { continue };
            let known = self.rows.get(&key);
            self.moved |= known.is_none_or(|known| (known.rank, known.task) != (row.rank, row.task));
            self.rows.insert(key, row);
        }
        if std::mem::take(&mut self.moved) {
            self.sort();
        }
    }

    fn sort(&mut self) {
        let taken: BTreeSet<Option<TaskId>> = self.rows.values().map(|row| row.task).collect();
        self.queue.retain(|_, row| !taken.contains(&row.task));
        let all = self.rows.iter().chain(&self.queue);
        let mut order: Vec<_> = all
            .map(|(key, row)| ((row.rank, key.run == QUEUE, key.run, row.task, &key.loop_id), key))
            .collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        self.order = order.into_iter().map(|(_, key)| key.clone()).collect();
    }

    /// The rows in the order in which they are shown.
    pub fn order(&self) -> &[RowKey] {
        &self.order
    }

    /// The row of a task; of several, that of the latest run.
    pub fn row_of(&self, task: TaskId) -> Option<&RowKey> {
        self.order.iter().filter(|key| self.row(key).is_some_and(|row| row.task == Some(task))).max()
    }

    pub fn row(&self, key: &RowKey) -> Option<&Row> {
        self.rows.get(key).or_else(|| self.queue.get(key))
    }

    /// How many rows need a person.
    pub fn needing(&self) -> usize {
        let ranks = self.order.iter().filter_map(|key| self.row(key)).map(|row| row.rank);
        ranks.take_while(|rank| rank.needs_a_person()).count()
    }

    /// How many rows are waiting in the queue.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    pub fn rank(&self, rank: Rank) -> usize {
        self.order.iter().filter_map(|key| self.row(key)).filter(|row| row.rank == rank).count()
    }

    /// The runs as a whole, computed where something changed.
    pub fn overviews(&mut self) -> Vec<&Overview> {
        for run in self.runs.values_mut() {
            if run.overview.is_none() {
                run.overview = Some(run.lines.view().overview());
            }
        }
        self.runs
            .values()
            .filter_map(|run| run.overview.as_ref())
            .filter(|run| run.tasks.all() > 0 || run.since.is_some())
            .collect()
    }

    /// The runs that have tasks: first those that need somebody or are at work, then those that are over, the latest first.
    pub fn progress(&mut self, now: Timestamp) -> Vec<Progress> {
        self.overviews();
        let mut ended = self.ended();
        let told = |(id, run): (&RunId, &Watched)| {
            let overview = run.overview.clone().filter(|overview| overview.tasks.all() > 0)?;
            let driven = self.is_driven(*id);
            let over = matches!(overview.stage, RunStage::Done(_));
            let until = if over || !driven { run.last.unwrap_or(now) } else { now };
            let ended = ended.remove(id).unwrap_or_default();
            Some(Progress {
                tally: Tally::of(&overview, ended, driven),
                overview,
                until,
                goes_on: !over && driven,
            })
        };
        let mut runs: Vec<_> = self.runs.iter().filter_map(told).collect();
        runs.sort_by_key(|run| match run.is_over() {
            false => (false, std::cmp::Reverse(None)),
            true => (true, std::cmp::Reverse(Some(run.until))),
        });
        runs
    }

    /// Of each run, how many tasks came to an end that does not carry on: those that need somebody, and the others.
    fn ended(&self) -> BTreeMap<RunId, (usize, usize)> {
        let mut ended: BTreeMap<RunId, (usize, usize)> = BTreeMap::new();
        for (key, row) in self.rows.iter().filter(|(_, row)| row.stopped && row.task.is_some()) {
            let (unsettled, settled) = ended.entry(key.run).or_default();
            *(if row.rank.needs_a_person() { unsettled } else { settled }) += 1;
        }
        ended
    }

    pub fn view(&self, run: RunId) -> Option<&RunView> {
        self.runs.get(&run).map(|run| run.lines.view())
    }

    /// How long a loop was worked: until now, until it ended, or until it was last heard of where nobody works on it.
    pub fn elapsed(&self, key: &RowKey, now: Timestamp) -> String {
        let kept = self.runs.get(&key.run).and_then(|run| run.loops.get(&key.loop_id));
        let Some((kept, row)) = kept.zip(self.rows.get(key)) else { return String::new() };
        let until = match row.rank.is_over() {
            true => kept.last,
            false if self.is_driven(key.run) => None,
            false => kept.heard,
        };
        progress::clock(kept.begun, until.unwrap_or(now))
    }

    pub fn events(&self, key: &RowKey) -> Option<&VecDeque<String>> {
        Some(&self.runs.get(&key.run)?.loops.get(&key.loop_id)?.events)
    }

    /// The attempts of a loop, oldest first, with who was started for what.
    pub fn attempts(&self, key: &RowKey) -> Vec<(AttemptId, String)> {
        let Some(view) = self.view(key.run) else { return Vec::new() };
        let attempts = view.attempts(&key.loop_id).into_iter();
        attempts.map(|(attempt, launch, _)| (attempt, started(launch))).collect()
    }
}

/// `review by spec, claude`.
fn started(launch: &signoff_core::wire::Launch) -> String {
    let by = launch.reviewer.as_ref().map(|name| format!(" by {name}")).unwrap_or_default();
    cut(&format!("{}{by}, {}", launch.role, launch.agent), LINE)
}

impl Watched {
    fn heard(&mut self, loop_id: &LoopId, fact: &LoopFact, (at, told): (Timestamp, Vec<String>)) {
        let kept = self.loops.entry(loop_id.clone()).or_default();
        kept.heard = Some(at);
        let time = at.strftime("%H:%M:%S");
        match fact {
            LoopFact::AttemptStarted { attempt, launch } => {
                kept.begun = kept.begun.or(Some(at));
                kept.event(format!("{time}  {attempt} started: {}", started(launch)));
            }
            LoopFact::Noted { attempt, note } => {
                kept.event(format!("{time}  {attempt}: {}", cut(note, LINE)))
            }
            LoopFact::Moved(_) => {
                (kept.begun, kept.last) = (kept.begun.or(Some(at)), Some(at));
                self.overview = None;
            }
            LoopFact::Used { .. } => self.overview = None,
            LoopFact::Said { line, .. } => kept.speaks(line),
            LoopFact::Added { .. }
            | LoopFact::Governed { .. }
            | LoopFact::Placed { .. }
            | LoopFact::CheckpointReviewed { .. }
            | LoopFact::Answered { .. }
            | LoopFact::Session { .. } => {}
        }
        for line in told.iter().filter(|line| !line.trim().is_empty()) {
            kept.event(format!("{time}  {}", line.trim_end()));
        }
    }

    /// A row with what its agent said last, as long as it does the same; and with what is known besides, and whether
    /// somebody works on the run.
    fn row(&mut self, loop_id: &LoopId, known: Option<(&Standings, bool)>) -> Option<Row> {
        let view = self.lines.view().row(loop_id)?;
        let row = Row::of(&view);
        let mut row = match known {
            Some((known, false)) if view.status == Status::InProgress => {
                let run = self.lines.view().run.filter(|_| row.task.is_none());
                let resume = run.map(|run| format!("signoff run --resume {run}"));
                let next = known.next(row.task).or(resume.as_deref());
                row.interrupted(next)
            }
            Some((known, _)) => row.by(known),
            None => row,
        };
        if let Some(kept) = self.loops.get_mut(loop_id) {
            let same = *kept.live_since.get_or_insert(row.since) == row.since;
            if !row.speaks() || !same {
                kept.live.clear();
            } else if !kept.live.is_empty() {
                row.said = cut(&kept.live, LINE);
            }
        }
        Some(row)
    }
}

impl Kept {
    fn speaks(&mut self, line: &str) {
        line.clone_into(&mut self.live);
        self.live_since = None;
    }

    fn event(&mut self, line: String) {
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(line);
    }
}

impl std::fmt::Debug for Fold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let runs: Vec<_> = self.runs.keys().collect();
        f.debug_struct("Fold").field("runs", &runs).field("rows", &self.rows).finish_non_exhaustive()
    }
}
