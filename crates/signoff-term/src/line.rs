//! Progress, a line at a time, for where there is no terminal to draw on.
//!
//! One task at a time prints the plain lines: `  [1/3] Running review...`. As soon as a line could belong to
//! another task it says whose it is, and all lines after it do: `  #29 [1/3] Running review...`. In `[n/m]` n is the number of the coming
//! review and m the gate's bound; without a bound there is only n, without a review neither. A workflow with
//! several gates or checks names the phase: `[code_review 2/11]`. Where several reviewers sit at a gate, the
//! block with what they say together follows the review's line, four spaces in.

mod begin;
mod checkpoint;
mod ending;
mod person;
mod place;
mod run;
mod told;

use std::collections::{BTreeMap, BTreeSet};

use signoff_core::group::{RunEvent, RunPolicy};
use signoff_core::ids::LoopId;
use signoff_core::machine::{Event, Loop, Stage};
use signoff_core::source::planner::Planned;
use signoff_core::view::{LoopView, RunView};
use signoff_core::wire::{Fact, LoopFact, Recorded, RunFact};

use self::checkpoint::Checkpoint;
use crate::fit::{SENTENCE, cut};
use crate::round::{Rounds, Step};
use crate::words;

/// Whether a line says which task it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// Where it could be another's: when others are active, or another was begun since.
    WhenNeeded,
    /// Always, for runs that work several tasks at once.
    Always,
}

/// A line in the making.
enum Line {
    /// It names its task itself and stands at the margin.
    Own(String),
    /// At the margin too, but named only where it must be.
    Margin(String),
    /// A step of a loop, with its place in the workflow.
    Step { place: String, text: String },
    /// Belongs to the line above it.
    Below(String),
}

impl Line {
    /// With the task's name, where it takes one.
    fn written(&self, name: &str) -> String {
        match self {
            Self::Own(text) => text.clone(),
            Self::Margin(text) => format!("{name}{text}"),
            Self::Step { place, text } => format!("  {name}{place}{text}"),
            Self::Below(text) => format!("    {text}").trim_end().to_owned(),
        }
    }
}

/// How a loop ended, for itself; nothing as long as it has not.
pub fn end(log: &[Recorded], loop_id: &LoopId) -> Vec<String> {
    let mut view = RunView::default();
    log.iter().for_each(|recorded| view.apply(recorded));
    let known = view.loop_state(loop_id).zip(view.loop_policy(loop_id)).zip(view.row(loop_id));
    let Some(((after, policy), row)) = known else { return Vec::new() };
    let (before, event) = (Loop::default(), Event::LandingGranted);
    let step = Step { before: &before, event: &event, after, policy, launch: None };
    ending::end(&step, &row).iter().map(|line| line.written("")).collect()
}

/// Turns recorded facts into lines, one fact after the other.
pub struct LineRenderer {
    naming: Naming,
    view: RunView,
    policy: Option<RunPolicy>,
    groups: Vec<Vec<LoopId>>,
    rounds: BTreeMap<LoopId, Rounds>,
    /// The checkpoint round under way.
    checkpoint: Checkpoint,
    active: BTreeSet<LoopId>,
    announced: BTreeSet<LoopId>,
    /// The loop that was announced last: unnamed lines belong to it.
    heading: Option<LoopId>,
    /// Several loops were active at the same time, of this run or of others.
    several: bool,
    /// The program is about to end: nothing new is begun.
    ends: bool,
}

impl LineRenderer {
    pub fn new(naming: Naming) -> Self {
        Self {
            naming,
            view: RunView::default(),
            policy: None,
            groups: Vec::new(),
            rounds: BTreeMap::new(),
            checkpoint: Checkpoint::default(),
            active: BTreeSet::new(),
            announced: BTreeSet::new(),
            heading: None,
            several: false,
            ends: false,
        }
    }

    /// Takes in what was told before, without telling it again. A loop that goes on is announced anew.
    ///
    /// What people decided since was recorded while nobody showed the run: that is told now.
    pub fn catch_up<'a>(&mut self, log: impl IntoIterator<Item = &'a Recorded>) -> Vec<String> {
        let (mut untold, mut meanwhile) = (Vec::new(), false);
        for recorded in log {
            if is_decision(&recorded.fact) {
                meanwhile = true;
                self.announced.clear();
            } else {
                meanwhile &= is_consequence(&recorded.fact);
            }
            if meanwhile {
                let lines = self.take(recorded);
                // A decision that ended its loop was told when it was made.
                untold.extend(lines.into_iter().filter(|_| !self.is_over(&recorded.fact)));
            } else {
                self.take(recorded);
                untold.clear();
            }
        }
        if self.active.is_empty() {
            untold.clear();
        }
        if untold.is_empty() {
            self.announced.clear();
            self.heading = None;
        }
        self.goes_on().into_iter().chain(untold).collect()
    }

    /// Whether the loop that a fact is about has ended.
    fn is_over(&self, fact: &Fact) -> bool {
        let own = if let Fact::Loop(loop_id, _) = fact { Some(loop_id) } else { moved_loop(fact) };
        own.and_then(|loop_id| self.view.loop_state(loop_id)).is_some_and(Loop::is_done)
    }

    /// Of how many loops lines are to be expected.
    pub fn active(&self) -> usize {
        self.active.len()
    }

    /// Loops of other runs are active too: from now on each line says whose it is.
    pub fn beside_others(&mut self) {
        self.several = true;
    }

    /// From now on nothing is announced that will not happen any more.
    pub fn end_soon(&mut self) {
        self.ends = true;
    }

    /// The lines that a fact gives. Facts that change nothing give none.
    pub fn take(&mut self, recorded: &Recorded) -> Vec<String> {
        match &recorded.fact {
            Fact::Run(fact) => self.run_fact(recorded, fact),
            Fact::Loop(loop_id, LoopFact::Moved(event)) => self.moved(recorded, loop_id, event),
            Fact::Loop(loop_id, LoopFact::AttemptStarted { .. }) => {
                self.view.apply(recorded);
                self.taken_up(loop_id)
            }
            // Of a task's own plan its items are told.
            Fact::Loop(loop_id, LoopFact::Answered { answer, .. }) if *loop_id == LoopId::planning() => {
                self.view.apply(recorded);
                self.answered(loop_id, answer)
            }
            Fact::Loop(loop_id, LoopFact::CheckpointReviewed { review }) => {
                self.view.apply(recorded);
                self.checkpoint.reviewed(loop_id, review);
                Vec::new()
            }
            Fact::Task(..) | Fact::Loop(..) => {
                self.view.apply(recorded);
                Vec::new()
            }
        }
    }

    /// The run as it stands after the last fact.
    pub fn view(&self) -> &RunView {
        &self.view
    }

    fn moved(&mut self, recorded: &Recorded, loop_id: &LoopId, event: &Event) -> Vec<String> {
        let before = self.view.loop_state(loop_id).cloned().unwrap_or_default();
        self.view.apply(recorded);
        let (Some(after), Some(policy)) = (self.view.loop_state(loop_id), self.view.loop_policy(loop_id))
        else {
            return Vec::new();
        };
        if before == *after {
            return Vec::new();
        }
        let Some(row) = self.view.row(loop_id) else { return Vec::new() };
        let launch = event.ends_attempt().and_then(|attempt| self.view.launch(loop_id, attempt));
        let step = Step { before: &before, event, after, policy, launch };
        if let Some((of, _)) = loop_id.of_checkpoint() {
            let lines = checkpoint::trouble(&step, !self.ends);
            return self.view.row(&of).map_or_else(Vec::new, |row| self.written(&lines, &row, None));
        }
        self.checkpoint.heard(loop_id, &step);
        let round = self.rounds.entry(loop_id.clone()).or_default().take(&step);
        let lines = told::told(&step, round.as_ref(), &row, (!self.ends, self.view.branch()));
        if is_active(after) {
            self.active.insert(loop_id.clone());
        } else {
            self.active.remove(loop_id);
        }
        self.several |= self.active.len() > 1;
        self.written(&lines, &row, header_word(&before, event))
    }

    /// A planner's answer, while its loop stands as it stood.
    fn answered(&mut self, loop_id: &LoopId, answer: &Planned) -> Vec<String> {
        let known =
            self.view.loop_state(loop_id).zip(self.view.loop_policy(loop_id)).zip(self.view.row(loop_id));
        let Some(((this, policy), row)) = known else { return Vec::new() };
        let step = Step { before: this, event: &Event::LandingGranted, after: this, policy, launch: None };
        let lines = told::answered(&step, answer);
        self.written(&lines, &row, None)
    }

    /// What a loop is at that goes on where it was left: told once, as if it began now.
    fn taken_up(&mut self, loop_id: &LoopId) -> Vec<String> {
        let known =
            self.view.loop_state(loop_id).zip(self.view.loop_policy(loop_id)).zip(self.view.row(loop_id));
        let new = !self.announced.contains(loop_id) && loop_id.of_checkpoint().is_none();
        let Some(((after, policy), row)) = known.filter(|_| new) else { return Vec::new() };
        let (before, event) = (Loop::default(), Event::Started { head: after.head.clone() });
        let step = Step { before: &before, event: &event, after, policy, launch: None };
        let lines = begin::begins(&step);
        self.active.insert(loop_id.clone());
        self.several |= self.active.len() > 1;
        self.written(&lines, &row, None)
    }

    fn written(&mut self, lines: &[Line], row: &LoopView, header: Option<&str>) -> Vec<String> {
        let steps = lines.iter().any(|line| matches!(line, Line::Step { .. } | Line::Margin(_)));
        let word = header.or((!self.announced.contains(&row.id)).then_some("Resuming"));
        let mut written = Vec::new();
        if let (Some(word), true) = (word, steps) {
            written.push(self.header(word, row));
            self.announced.insert(row.id.clone());
            self.heading = Some(row.id.clone());
        }
        // What came from a tracker is known by its id there: each of its lines has it.
        let named = row.tracker_id.is_some() || self.is_named(&row.id);
        let name = if named { self.name(row) } else { String::new() };
        written.extend(lines.iter().map(|line| line.written(&name)));
        written
    }

    /// `Running task #29: Add user authentication`, `Run 3: planning`.
    fn header(&self, word: &str, row: &LoopView) -> String {
        let Some(run) = self.view.run.filter(|_| row.id.serves_the_run()) else {
            return format!("{word} {}", announcement(row));
        };
        let title = words::small(&cut(&row.title, SENTENCE));
        let run = if word == "Running" { format!("Run {run}") } else { format!("{word} run {run}") };
        let branch = self.view.branch().filter(|_| row.id == LoopId::whole());
        format!("{run}: {title}{}", branch.map(|branch| format!(" of {branch}")).unwrap_or_default())
    }

    /// What stands before a line that could be another's.
    fn name(&self, row: &LoopView) -> String {
        match (row.task, self.view.run) {
            (Some(task), _) => {
                format!("#{task} {}", tracker_id(row).map(|id| format!("{id} ")).unwrap_or_default())
            }
            (None, Some(run)) if row.id.serves_the_run() => format!("run {run} "),
            (None, _) => format!("{}: ", words::subject(row)),
        }
    }

    fn is_named(&self, loop_id: &LoopId) -> bool {
        self.naming == Naming::Always
            || self.several
            || self.heading.as_ref() != Some(loop_id)
            || self.active.iter().any(|other| other != loop_id)
    }
}

/// Whether a person said so.
fn is_decision(fact: &Fact) -> bool {
    let Fact::Loop(_, LoopFact::Moved(event)) = fact else { return false };
    matches!(event, Event::PersonRetried { .. } | Event::PersonAnswered { .. } | Event::PersonEdited { .. })
}

/// The loop whose standing in the run a fact tells.
fn moved_loop(fact: &Fact) -> Option<&LoopId> {
    let Fact::Run(RunFact::Moved(RunEvent::LoopMoved { loop_id, .. })) = fact else { return None };
    Some(loop_id)
}

/// What a decision means for the run is recorded with it.
fn is_consequence(fact: &Fact) -> bool {
    moved_loop(fact).is_some() || matches!(fact, Fact::Loop(_, LoopFact::Moved(Event::HeadMoved { .. })))
}

/// Whether lines of it are to be expected.
fn is_active(this: &Loop) -> bool {
    match &this.stage {
        Stage::Working { .. }
        | Stage::Researching { .. }
        | Stage::Checking { .. }
        | Stage::Reviewing(_)
        | Stage::Fixing { .. }
        | Stage::Combining { .. }
        | Stage::Landing { .. } => true,
        Stage::Queued | Stage::AwaitingLanding { .. } | Stage::Waiting { .. } | Stage::Done(_) => false,
    }
}

fn header_word(before: &Loop, event: &Event) -> Option<&'static str> {
    if matches!(event, Event::PersonRetried { .. }) {
        Some("Retrying")
    } else {
        (before.stage == Stage::Queued).then_some("Running")
    }
}

/// `task #29: Add user authentication`.
fn tracker_id(row: &LoopView) -> Option<String> {
    row.tracker_id.as_ref().map(|id| cut(id, words::TRACKER_ID))
}

fn announcement(row: &LoopView) -> String {
    match row.task {
        Some(task) => format!("task #{task}{}: {}", words::bracketed_id(row), cut(&row.title, SENTENCE)),
        None if row.title.is_empty() => cut(row.id.as_str(), SENTENCE),
        None => cut(&row.title, SENTENCE),
    }
}
