//! Line-by-line progress output, for output that is not a terminal.
//!
//! A single task prints plain lines: `  [1/3] Running review...`. From the first line that could belong to another
//! task on, each line names its task: `  #29 [1/3] Running review...`. In `[n/m]`, n is the number of the next
//! review and m the gate's limit; without a limit there is only n, without a review neither. A workflow with
//! several gates or checks names the phase: `[code_review 2/11]`. If a gate has several reviewers, the merged
//! review follows as a block, indented by four spaces.

mod checkpoint;
mod ending;
mod event_lines;
mod position;
mod run;

use std::collections::BTreeSet;

use signoff_core::group::RunEvent;
use signoff_core::ids::LoopId;
use signoff_core::machine::{Event, Loop, Stage};
use signoff_core::source::planner::PlannerAnswer;
use signoff_core::view::{LoopRow, LoopTransition, RunState, Transition};
use signoff_core::wire::{Fact, LoopFact, RunFact};

use self::checkpoint::CheckpointProgress;
use crate::fit::{MAX_SENTENCE_WIDTH, truncate_line};
use crate::labels;
use crate::review_round::GateRound;

/// When a line names its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineNaming {
    /// If it could belong to another task: others are active, or another one was announced since.
    #[default]
    WhenNeeded,
    /// Always, for runs that work on several tasks in parallel.
    Always,
}

/// A line before it is rendered.
enum ProgressLine {
    /// Not indented; the text already names its task.
    Prefixed(String),
    /// Not indented; the task is named if needed.
    Unindented(String),
    /// A step of a loop, with its position in the workflow.
    Step { position: String, text: String },
    /// Continues the line above it.
    Continuation(String),
}

impl ProgressLine {
    /// The text of the line; `name` is the prefix with the task's name.
    fn render(&self, name: &str) -> String {
        match self {
            Self::Prefixed(text) => text.clone(),
            Self::Unindented(text) => format!("{name}{text}"),
            Self::Step { position, text } => format!("  {name}{position}{text}"),
            Self::Continuation(text) => format!("    {text}").trim_end().to_owned(),
        }
    }
}

/// The lines about the end of a loop; empty if it has not ended.
pub fn ending_lines(state: &RunState, loop_id: &LoopId) -> Vec<String> {
    let current = state.loop_state(loop_id).zip(state.policy(loop_id)).zip(state.row(loop_id));
    let Some(((after, policy), row)) = current else { return Vec::new() };
    let (before, event) = (Loop::default(), Event::LandingGranted);
    let step = LoopTransition { before: &before, event: &event, after, policy, launch: None };
    ending::end(&step, &row).iter().map(|line| line.render("")).collect()
}

/// Turns the events of one run into lines.
#[derive(Default)]
pub struct LineRenderer {
    naming: LineNaming,
    state: RunState,
    past: PastDecisions,
    /// The current checkpoint round.
    checkpoint: CheckpointProgress,
    active: BTreeSet<LoopId>,
    announced: BTreeSet<LoopId>,
    /// The loop that was announced last; lines without a name belong to it.
    heading: Option<LoopId>,
    /// Several loops of this run or of other runs were active at the same time.
    names_required: bool,
    /// The program is shutting down and starts nothing new.
    shutting_down: bool,
}

/// Decisions that people made since the run was last displayed.
#[derive(Default)]
struct PastDecisions {
    /// The last events are a decision and its consequences.
    is_recent: bool,
    lines: Vec<String>,
}

impl LineRenderer {
    pub fn new(naming: LineNaming) -> Self {
        Self { naming, ..Self::default() }
    }

    /// Takes in a past event, whose lines are not printed again. [`Self::caught_up`] follows the last one.
    pub fn replay(&mut self, transition: &Transition) {
        let fact = &transition.event.fact;
        if is_decision(fact) {
            self.past.is_recent = true;
            self.announced.clear();
        } else {
            self.past.is_recent &= is_consequence(fact);
        }
        let lines = self.apply(transition);
        if !self.past.is_recent {
            self.past.lines.clear();
        } else if !self.is_over(fact) {
            // A decision that ended its loop was printed when it was made.
            self.past.lines.extend(lines);
        }
    }

    /// Ends the past: a loop that continues is announced again.
    ///
    /// Returns the progress of the run, and lines for decisions that people made since it was last displayed.
    pub fn caught_up(&mut self) -> Vec<String> {
        let mut unseen = std::mem::take(&mut self.past).lines;
        if self.active.is_empty() {
            unseen.clear();
        }
        if unseen.is_empty() {
            self.announced.clear();
            self.heading = None;
        }
        self.resume_lines().into_iter().chain(unseen).collect()
    }

    /// Whether the loop of this event has ended.
    fn is_over(&self, fact: &Fact) -> bool {
        let loop_id = if let Fact::Loop(loop_id, _) = fact { Some(loop_id) } else { loop_with_new_status(fact) };
        loop_id.and_then(|loop_id| self.state.loop_state(loop_id)).is_some_and(Loop::is_done)
    }

    /// Number of active loops.
    pub fn active(&self) -> usize {
        self.active.len()
    }

    /// Loops of other runs are active too: from now on each line names its task.
    pub fn set_other_runs_active(&mut self) {
        self.names_required = true;
    }

    /// The program is shutting down: from now on, no new steps are announced.
    pub fn set_shutting_down(&mut self) {
        self.shutting_down = true;
    }

    /// Takes in an event and returns its lines. Events that change nothing have none.
    pub fn apply(&mut self, transition: &Transition) -> Vec<String> {
        self.state.apply_transition(transition);
        match &transition.event.fact {
            Fact::Run(fact) => self.run_lines(fact, &transition.before.run.machine.stage),
            Fact::Loop(loop_id, LoopFact::Transitioned(_)) => self.loop_lines(loop_id, transition),
            Fact::Loop(loop_id, LoopFact::AttemptStarted { .. }) => self.resumed_loop(loop_id),
            // The plan of a task is reported by its number of items instead.
            Fact::Loop(loop_id, LoopFact::Answered { answer, .. }) if *loop_id == LoopId::planning() => {
                self.planner_answer(loop_id, answer)
            }
            Fact::Loop(loop_id, LoopFact::CheckpointReviewed { review }) => {
                self.checkpoint.add_review(loop_id, review);
                Vec::new()
            }
            Fact::Task(..) | Fact::Loop(..) => Vec::new(),
        }
    }

    /// The run after the last event.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    fn loop_lines(&mut self, loop_id: &LoopId, transition: &Transition) -> Vec<String> {
        let Some(step) = transition.loop_transition().filter(|step| step.before != step.after) else {
            return Vec::new();
        };
        let Some(row) = self.state.row(loop_id) else { return Vec::new() };
        if let Some((reviewed, _)) = loop_id.checkpoint_target() {
            let lines = checkpoint::failure_lines(&step, !self.shutting_down);
            return self.state.row(&reviewed).map_or_else(Vec::new, |row| self.render(&lines, &row, None));
        }
        self.checkpoint.end_review(loop_id, &step);
        let round = GateRound::ended_by(transition);
        let lines = event_lines::lines(&step, round.as_ref(), &row, !self.shutting_down, self.state.branch());
        if is_active(step.after) {
            self.active.insert(loop_id.clone());
        } else {
            self.active.remove(loop_id);
        }
        self.names_required |= self.active.len() > 1;
        self.render(&lines, &row, header_verb(step.before, step.event))
    }

    /// The lines for a planner's answer, which does not change the state of its loop.
    fn planner_answer(&mut self, loop_id: &LoopId, answer: &PlannerAnswer) -> Vec<String> {
        let current = self.state.loop_state(loop_id).zip(self.state.policy(loop_id)).zip(self.state.row(loop_id));
        let Some(((machine, policy), row)) = current else { return Vec::new() };
        let step =
            LoopTransition { before: machine, event: &Event::LandingGranted, after: machine, policy, launch: None };
        let lines = event_lines::planner_answer(&step, answer);
        self.render(&lines, &row, None)
    }

    /// The current step of a loop that continues after a restart, printed once as if it began now.
    fn resumed_loop(&mut self, loop_id: &LoopId) -> Vec<String> {
        let current = self.state.loop_state(loop_id).zip(self.state.policy(loop_id)).zip(self.state.row(loop_id));
        let new = !self.announced.contains(loop_id) && loop_id.checkpoint_target().is_none();
        let Some(((after, policy), row)) = current.filter(|_| new) else { return Vec::new() };
        let (before, event) = (Loop::default(), Event::Started { head: after.head.clone() });
        let step = LoopTransition { before: &before, event: &event, after, policy, launch: None };
        let lines = position::start_lines(&step);
        self.active.insert(loop_id.clone());
        self.names_required |= self.active.len() > 1;
        self.render(&lines, &row, None)
    }

    fn render(&mut self, lines: &[ProgressLine], row: &LoopRow, header: Option<&str>) -> Vec<String> {
        let steps = lines.iter().any(|line| matches!(line, ProgressLine::Step { .. } | ProgressLine::Unindented(_)));
        let verb = header.or((!self.announced.contains(&row.id)).then_some("Resuming"));
        let mut rendered = Vec::new();
        if let (Some(verb), true) = (verb, steps) {
            rendered.push(self.header(verb, row));
            self.announced.insert(row.id.clone());
            self.heading = Some(row.id.clone());
        }
        // Tasks from a tracker are known by their tracker id: each line has it.
        let is_named = row.tracker_id.is_some() || self.is_named(&row.id);
        let name = if is_named { self.name(row) } else { String::new() };
        rendered.extend(lines.iter().map(|line| line.render(&name)));
        rendered
    }

    /// `Running task #29: Add user authentication`, `Run 3: planning`.
    fn header(&self, verb: &str, row: &LoopRow) -> String {
        if !row.id.is_run_level() {
            return format!("{verb} {}", announcement(row));
        }
        let run = self.state.run;
        let title = labels::lowercase_first(&truncate_line(&row.title, MAX_SENTENCE_WIDTH));
        let run = if verb == "Running" { format!("Run {run}") } else { format!("{verb} run {run}") };
        let branch = self.state.branch().filter(|_| row.id == LoopId::final_review());
        format!("{run}: {title}{}", branch.map(|branch| format!(" of {branch}")).unwrap_or_default())
    }

    /// The prefix of a line that could belong to another task.
    fn name(&self, row: &LoopRow) -> String {
        match row.task {
            Some(task) => {
                format!("#{task} {}", tracker_id(row).map(|id| format!("{id} ")).unwrap_or_default())
            }
            None if row.id.is_run_level() => format!("run {} ", self.state.run),
            None => format!("{}: ", labels::subject(row)),
        }
    }

    fn is_named(&self, loop_id: &LoopId) -> bool {
        self.naming == LineNaming::Always
            || self.names_required
            || self.heading.as_ref() != Some(loop_id)
            || self.active.iter().any(|other| other != loop_id)
    }
}

/// Whether the event is a person's decision.
fn is_decision(fact: &Fact) -> bool {
    let Fact::Loop(_, LoopFact::Transitioned(event)) = fact else { return false };
    matches!(event, Event::PersonRetried { .. } | Event::PersonAnswered { .. } | Event::PersonEdited { .. })
}

/// The loop of an event that updates a loop's status in its run.
fn loop_with_new_status(fact: &Fact) -> Option<&LoopId> {
    let Fact::Run(RunFact::Transitioned(RunEvent::LoopStatusChanged { loop_id, .. })) = fact else {
        return None;
    };
    Some(loop_id)
}

/// Whether the event is recorded together with a decision, as its effect on the run.
fn is_consequence(fact: &Fact) -> bool {
    loop_with_new_status(fact).is_some()
        || matches!(fact, Fact::Loop(_, LoopFact::Transitioned(Event::HeadMoved { .. })))
}

/// Whether the loop is active, so that lines about it will follow.
fn is_active(machine: &Loop) -> bool {
    position::is_in_a_phase(&machine.stage) || matches!(machine.stage, Stage::Landing { .. })
}

fn header_verb(before: &Loop, event: &Event) -> Option<&'static str> {
    if matches!(event, Event::PersonRetried { .. }) {
        Some("Retrying")
    } else {
        (before.stage == Stage::Queued).then_some("Running")
    }
}

/// The tracker id of the task, truncated.
fn tracker_id(row: &LoopRow) -> Option<String> {
    row.tracker_id.as_ref().map(|id| truncate_line(id, labels::MAX_TRACKER_ID_WIDTH))
}

/// `task #29: Add user authentication`.
fn announcement(row: &LoopRow) -> String {
    match row.task {
        Some(task) => {
            format!("task #{task}{}: {}", labels::bracketed_id(row), truncate_line(&row.title, MAX_SENTENCE_WIDTH))
        }
        None if row.title.is_empty() => truncate_line(row.id.as_str(), MAX_SENTENCE_WIDTH),
        None => truncate_line(&row.title, MAX_SENTENCE_WIDTH),
    }
}
