//! The state of all runs in the terminal UI. Events update it; rows are built only when a frame is drawn.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use signoff_core::group::RunStage;
use signoff_core::ids::{AttemptId, LoopId, RunId, TaskId};
use signoff_core::machine::Stage;
use signoff_core::view::inbox::InboxHints;
use signoff_core::view::{RunOverview, RunState, TaskRow, Transition};
use signoff_core::wire::{Fact, LoopFact, QUEUE};

use super::head::{RunTally, TuiRunProgress};
use super::row::{RowKey, RowOrder, TuiRow};
use crate::fit::truncate_line;
use crate::line::{LineNaming, LineRenderer};
use crate::progress;
use crate::question_queue::{OpenQuestion, QuestionQueue};

/// Maximum number of history lines per loop.
pub const MAX_EVENTS: usize = 500;

/// Maximum width of a history line.
const MAX_LINE_WIDTH: usize = 300;

/// One run.
struct RunModel {
    /// Holds the state of the run, and turns its events into lines.
    lines: LineRenderer,
    overview: Option<RunOverview>,
    loops: BTreeMap<LoopId, LoopModel>,
}

/// The history of a loop.
#[derive(Default)]
struct LoopModel {
    events: VecDeque<String>,
    /// The last line of an agent.
    live_line: String,
    /// When the stage of that line began; `None` until the next refresh.
    live_since: Option<Option<Timestamp>>,
}

/// All runs, and their loops as rows.
#[derive(Default)]
pub struct TuiModel {
    runs: BTreeMap<RunId, RunModel>,
    queued: Vec<TaskRow>,
    queue: BTreeMap<RowKey, TuiRow>,
    /// Information from outside the logs; `None` in a replay.
    hints: Option<InboxHints>,
    drives: bool,
    rows: BTreeMap<RowKey, TuiRow>,
    stale: BTreeSet<RowKey>,
    needs_sort: bool,
    order: Vec<RowKey>,
}

impl TuiModel {
    /// Takes in one event. Changed rows are only marked as stale.
    pub fn apply(&mut self, transition: &Transition) {
        let event = &*transition.event;
        let run = self.runs.entry(event.run).or_insert_with(|| RunModel {
            lines: LineRenderer::new(LineNaming::Always),
            overview: None,
            loops: BTreeMap::new(),
        });
        let lines = run.lines.apply(transition);
        match &event.fact {
            Fact::Task(..) => {}
            Fact::Run(_) => {
                run.overview = None;
                // A blocked group changes the rows of all its loops.
                if !lines.is_empty() {
                    self.stale.extend(run.loops.keys().map(|loop_id| RowKey::new(event.run, loop_id)));
                }
            }
            Fact::Loop(loop_id, fact) => {
                run.apply(loop_id, fact, event.at, &lines);
                let reviewed_row = loop_id.checkpoint_target().map(|(reviewed, _)| RowKey::new(event.run, &reviewed));
                self.stale.extend(reviewed_row);
                self.stale.insert(RowKey::new(event.run, loop_id));
            }
        }
    }

    /// Sets the live line of an agent. A checkpoint reviewer's line is shown at the loop under review.
    pub fn set_live_line(&mut self, run: RunId, loop_id: &LoopId, line: &str) {
        let shown = loop_id.checkpoint_target().map_or_else(|| loop_id.clone(), |(reviewed, _)| reviewed);
        let model = self.runs.get_mut(&run).and_then(|run| run.loops.get_mut(&shown));
        if let Some(model) = model {
            model.set_live_line(line);
            self.stale.insert(RowKey { run, loop_id: shown });
        }
    }

    pub fn set_queue(&mut self, tasks: Vec<TaskRow>) {
        self.queued = tasks;
        self.list_queue();
    }

    fn list_queue(&mut self) {
        let row = |task: &TaskRow| match &self.hints {
            Some(hints) => TuiRow::queued(task).with_hint(&hints.for_queued(TaskId(task.id))),
            None => TuiRow::queued(task),
        };
        self.queue = self.queued.iter().map(|task| (RowKey::queued(task.id), row(task))).collect();
        self.needs_sort = true;
    }

    /// Sets the information from outside the logs. It may change every row. `drives`: this process works on the runs.
    pub fn set_hints(&mut self, hints: InboxHints, drives: bool) {
        (self.hints, self.drives) = (Some(hints), drives);
        self.stale.extend(self.rows.keys().cloned());
        self.list_queue();
    }

    /// Whether a process is working on a run, as far as known.
    fn is_driven(&self, run: RunId) -> bool {
        self.drives || self.hints.as_ref().is_none_or(|hints| !hints.interrupted.contains(&run))
    }

    /// Rebuilds stale rows, and updates the open questions.
    pub fn refresh(&mut self, questions: &mut QuestionQueue) {
        for key in std::mem::take(&mut self.stale) {
            let driven = self.is_driven(key.run);
            let Some(run) = self.runs.get_mut(&key.run) else { continue };
            let state = run.lines.state();
            let asks =
                state.loop_state(&key.loop_id).is_some_and(|machine| matches!(machine.stage, Stage::Waiting { .. }));
            let question = if asks { OpenQuestion::from_state(state, &key.loop_id) } else { None };
            questions.update(key.run, &key.loop_id, question);
            if key.loop_id.checkpoint_target().is_some() {
                continue;
            }
            let Some(row) = run.row(&key.loop_id, self.hints.as_ref(), driven) else { continue };
            let old = self.rows.get(&key);
            self.needs_sort |= old.is_none_or(|old| (old.rank, old.task) != (row.rank, row.task));
            self.rows.insert(key, row);
        }
        if std::mem::take(&mut self.needs_sort) {
            self.sort();
        }
    }

    fn sort(&mut self) {
        let taken: BTreeSet<Option<TaskId>> = self.rows.values().map(|row| row.task).collect();
        self.queue.retain(|_, row| !taken.contains(&row.task));
        let all = self.rows.iter().chain(&self.queue);
        let mut order: Vec<_> =
            all.map(|(key, row)| ((row.rank, key.run == QUEUE, key.run, row.task, &key.loop_id), key)).collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        self.order = order.into_iter().map(|(_, key)| key.clone()).collect();
    }

    /// The rows in display order.
    pub fn order(&self) -> &[RowKey] {
        &self.order
    }

    /// The row of a task; if there are several, that of the latest run.
    pub fn row_of_task(&self, task: TaskId) -> Option<&RowKey> {
        self.order.iter().filter(|key| self.row(key).is_some_and(|row| row.task == Some(task))).max()
    }

    pub fn row(&self, key: &RowKey) -> Option<&TuiRow> {
        self.rows.get(key).or_else(|| self.queue.get(key))
    }

    /// Number of rows that need a person.
    pub fn needing_attention(&self) -> usize {
        let ranks = self.order.iter().filter_map(|key| self.row(key)).map(|row| row.rank);
        ranks.take_while(|rank| rank.needs_a_person()).count()
    }

    /// Number of rows in the queue.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    pub fn count_rank(&self, rank: RowOrder) -> usize {
        self.order.iter().filter_map(|key| self.row(key)).filter(|row| row.rank == rank).count()
    }

    /// The overviews of the runs, recomputed where something changed.
    pub fn overviews(&mut self) -> Vec<&RunOverview> {
        for run in self.runs.values_mut() {
            if run.overview.is_none() {
                run.overview = Some(run.lines.state().overview());
            }
        }
        self.runs
            .values()
            .filter_map(|run| run.overview.as_ref())
            .filter(|run| run.tasks.all() > 0 || run.since.is_some())
            .collect()
    }

    /// The runs with tasks: first those that are not over, then those that are, latest first.
    pub fn progress(&mut self, now: Timestamp) -> Vec<TuiRunProgress> {
        self.overviews();
        let mut ended = self.ended();
        let progress = |(id, run): (&RunId, &RunModel)| {
            let overview = run.overview.clone().filter(|overview| overview.tasks.all() > 0)?;
            let driven = self.is_driven(*id);
            let over = matches!(overview.stage, RunStage::Done(_));
            let until = if over || !driven { run.lines.state().last_at.unwrap_or(now) } else { now };
            let (unsettled, settled) = ended.remove(id).unwrap_or_default();
            Some(TuiRunProgress {
                tally: RunTally::new(&overview, unsettled, settled, driven),
                overview,
                until,
                is_running: !over && driven,
            })
        };
        let mut runs: Vec<_> = self.runs.iter().filter_map(progress).collect();
        runs.sort_by_key(|run| match run.is_over() {
            false => (false, std::cmp::Reverse(None)),
            true => (true, std::cmp::Reverse(Some(run.until))),
        });
        runs
    }

    /// Number of stopped tasks per run: those that need a person, and the others.
    fn ended(&self) -> BTreeMap<RunId, (usize, usize)> {
        let mut ended: BTreeMap<RunId, (usize, usize)> = BTreeMap::new();
        for (key, row) in self.rows.iter().filter(|(_, row)| row.stopped && row.task.is_some()) {
            let (unsettled, settled) = ended.entry(key.run).or_default();
            *(if row.rank.needs_a_person() { unsettled } else { settled }) += 1;
        }
        ended
    }

    pub fn state(&self, run: RunId) -> Option<&RunState> {
        self.runs.get(&run).map(|run| run.lines.state())
    }

    /// The time since the loop started: until now, until it ended, or until the last event of its run if no process
    /// works on it.
    pub fn elapsed(&self, key: &RowKey, now: Timestamp) -> String {
        let state = self.state(key.run);
        let loop_state = state.and_then(|state| Some((state, state.loops.get(&key.loop_id)?)));
        let Some(((state, loop_state), row)) = loop_state.zip(self.rows.get(key)) else { return String::new() };
        let until = match row.rank.is_over() {
            true => loop_state.since,
            false if self.is_driven(key.run) => None,
            false => state.last_at,
        };
        progress::elapsed(loop_state.started, until.unwrap_or(now))
    }

    pub fn events(&self, key: &RowKey) -> Option<&VecDeque<String>> {
        Some(&self.runs.get(&key.run)?.loops.get(&key.loop_id)?.events)
    }

    /// The attempts of a loop, oldest first, with role and agent.
    pub fn attempts(&self, key: &RowKey) -> Vec<(AttemptId, String)> {
        let Some(state) = self.state(key.run) else { return Vec::new() };
        let attempts = state.attempts(&key.loop_id).into_iter();
        attempts.map(|(attempt, launch, _)| (attempt, launch_text(launch))).collect()
    }
}

/// `review by spec, claude`.
fn launch_text(launch: &signoff_core::wire::Launch) -> String {
    let by = launch.reviewer.as_ref().map(|name| format!(" by {name}")).unwrap_or_default();
    truncate_line(&format!("{}{by}, {}", launch.role, launch.agent), MAX_LINE_WIDTH)
}

impl RunModel {
    fn apply(&mut self, loop_id: &LoopId, fact: &LoopFact, at: Timestamp, lines: &[String]) {
        let model = self.loops.entry(loop_id.clone()).or_default();
        let time = at.strftime("%H:%M:%S");
        match fact {
            LoopFact::AttemptStarted { attempt, launch } => {
                model.push_event(format!("{time}  {attempt} started: {}", launch_text(launch)));
            }
            LoopFact::Noted { attempt, note } => {
                model.push_event(format!("{time}  {attempt}: {}", truncate_line(note, MAX_LINE_WIDTH)))
            }
            LoopFact::Transitioned(_) | LoopFact::Used { .. } => self.overview = None,
            LoopFact::AgentOutput { line, .. } => model.set_live_line(line),
            LoopFact::Added { .. }
            | LoopFact::PolicySet { .. }
            | LoopFact::WorkspaceCreated { .. }
            | LoopFact::CheckpointReviewed { .. }
            | LoopFact::Answered { .. }
            | LoopFact::Session { .. } => {}
        }
        for line in lines.iter().filter(|line| !line.trim().is_empty()) {
            model.push_event(format!("{time}  {}", line.trim_end()));
        }
    }

    /// Builds a row, with the last line of its agent while the stage is the same. `driven`: a process works on the run.
    fn row(&mut self, loop_id: &LoopId, hints: Option<&InboxHints>, driven: bool) -> Option<TuiRow> {
        let loop_row = self.lines.state().row(loop_id)?;
        let row = TuiRow::from_view(&loop_row);
        let mut row = match hints {
            Some(hints) => row.with_hint(&hints.for_loop(&loop_row, driven)),
            None => row,
        };
        if let Some(model) = self.loops.get_mut(loop_id) {
            let is_same_stage = *model.live_since.get_or_insert(row.since) == row.since;
            if !row.shows_live_line() || !is_same_stage {
                model.live_line.clear();
            } else if !model.live_line.is_empty() {
                row.message = truncate_line(&model.live_line, MAX_LINE_WIDTH);
            }
        }
        Some(row)
    }
}

impl LoopModel {
    fn set_live_line(&mut self, line: &str) {
        line.clone_into(&mut self.live_line);
        self.live_since = None;
    }

    fn push_event(&mut self, line: String) {
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(line);
    }
}

impl std::fmt::Debug for TuiModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let runs: Vec<_> = self.runs.keys().collect();
        f.debug_struct("TuiModel").field("runs", &runs).field("rows", &self.rows).finish_non_exhaustive()
    }
}
