//! Decides when to notify people who are not watching, from the event log.
//!
//! A notification is sent only when something new needs a person, or when a run is finished. A run of a thousand
//! tasks is reported once when it is done. Each question and each failed loop is reported once. Work that is paused
//! because of a cap is reported once until it continues, and a cap of the run once for all its loops. For events
//! before a run was resumed, only what still applies is reported; the sender records deliveries and skips
//! delivered ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::group::RunOutcome;
use crate::ids::{LoopId, RunId};
use crate::machine::{FinalVerdict, OutcomeKind, Reason};
pub use crate::policy::{BindingCap, CapOwner};
use crate::policy::{Caps, binding_cap};
use crate::review::Usage;
use crate::view::inbox::{self, LoopNeeds, RunNeeds};
use crate::view::{LoopRow, RunOverview, RunState, Snapshot, Transition};
use crate::wire::{Fact, LoopFact, RecordedFact, RunFact};

/// The kind of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray, strum::VariantNames)]
#[strum(const_into_str, serialize_all = "lowercase")]
pub enum NotificationKind {
    /// A run is finished.
    Done,
    /// A loop ended and only a person can resolve it.
    Stuck,
    /// A person is asked.
    Question,
    /// A cap is reached, and work is paused.
    Budget,
}

impl NotificationKind {
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;
}

/// A notification for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub kind: NotificationKind,
    pub at: Timestamp,
    pub run: RunId,
    /// The sequence number of the event that caused it.
    pub seq: u64,
    /// The loop it is about; none if it is about a run of several loops.
    pub about: Option<Box<LoopRow>>,
    /// The cap that is reached, if it is about a known one.
    pub cap: Option<BindingCap>,
    /// The run as a whole.
    pub overview: Box<RunOverview>,
}

/// Identifies a notification, also after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationKey {
    pub run: RunId,
    pub seq: u64,
    pub event: NotificationKind,
    pub about: Option<LoopId>,
}

impl Notification {
    pub fn key(&self) -> NotificationKey {
        let about = self.about.as_ref().map(|row| row.id.clone());
        NotificationKey { run: self.run, seq: self.seq, event: self.kind, about }
    }
}

/// What a notification is about.
struct NotificationTopic {
    kind: NotificationKind,
    /// None if it is about the run.
    loop_id: Option<LoopId>,
}

/// Watches one run and creates its notifications.
#[derive(Debug, Clone, Default)]
pub struct NotificationWatcher {
    run_state: RunState,
    /// The topics of past events that may still apply, each with its last event.
    past: BTreeMap<(LoopId, NotificationKind), Arc<RecordedFact>>,
    task_caps: Caps,
    run_caps: Caps,
}

impl NotificationWatcher {
    /// Creates a watcher with the caps of each task and of the run.
    pub fn new(task_caps: Caps, run_caps: Caps) -> Self {
        Self { task_caps, run_caps, ..Self::default() }
    }

    /// Applies an earlier event.
    pub fn replay(&mut self, transition: &Transition) {
        for NotificationTopic { kind, loop_id } in self.new_topics(transition) {
            self.past.extend(loop_id.map(|loop_id| ((loop_id, kind), transition.event.clone())));
        }
    }

    /// The notifications about earlier events that still apply: they may not have been delivered.
    pub fn pending_notifications(&mut self) -> Vec<Notification> {
        let mut open = std::mem::take(&mut self.past);
        let blockers = RunNeeds::for_run(&self.run_state).blockers;
        open.retain(|(loop_id, kind), _| self.still_applies(*kind, loop_id, &blockers));
        let entries = open.into_iter();
        entries
            .filter_map(|((loop_id, kind), event)| {
                self.notification(NotificationTopic { kind, loop_id: Some(loop_id) }, &event)
            })
            .collect()
    }

    fn still_applies(&self, kind: NotificationKind, loop_id: &LoopId, blockers: &[LoopId]) -> bool {
        let needs = LoopNeeds::for_loop(self.run_state.loop_state(loop_id));
        match kind {
            NotificationKind::Question => needs.question.is_some(),
            NotificationKind::Stuck => needs.stuck || blockers.contains(loop_id),
            NotificationKind::Budget => needs.over_budget,
            NotificationKind::Done => false,
        }
    }

    /// Applies one event, and returns the notifications it causes.
    pub fn apply(&mut self, transition: &Transition) -> Vec<Notification> {
        let news = self.new_topics(transition);
        news.into_iter().filter_map(|one| self.notification(one, &transition.event)).collect()
    }

    fn new_topics(&mut self, transition: &Transition) -> Vec<NotificationTopic> {
        let before = match &transition.event.fact {
            Fact::Run(RunFact::Transitioned(_)) => RunNeeds::for_run(&self.run_state),
            Fact::Task(..) | Fact::Run(_) | Fact::Loop(..) => RunNeeds::default(),
        };
        self.run_state.apply_transition(transition);
        match &transition.event.fact {
            Fact::Loop(loop_id, LoopFact::Transitioned(_)) => self.loop_topics(loop_id, transition),
            Fact::Run(RunFact::Transitioned(_)) => self.run_topics(&before),
            Fact::Task(..) | Fact::Run(_) | Fact::Loop(..) => Vec::new(),
        }
    }

    fn loop_topics(&self, loop_id: &LoopId, transition: &Transition) -> Vec<NotificationTopic> {
        let flags = |state: &Snapshot| LoopNeeds::for_loop(state.loop_state.as_ref().map(|state| &*state.machine));
        let (before, after) = (flags(&transition.before), flags(&transition.after));
        let new = [
            (NotificationKind::Question, after.question.is_some() && after.question != before.question),
            // A failed checkpoint review is not reported: its loop continues.
            (NotificationKind::Stuck, after.stuck && !before.stuck && loop_id.checkpoint_target().is_none()),
            (NotificationKind::Budget, after.over_budget && !before.over_budget && self.is_new_cap(loop_id)),
        ];
        let topics = new.into_iter().filter(|(_, is_new)| *is_new);
        topics.map(|(kind, _)| NotificationTopic { kind, loop_id: Some(loop_id.clone()) }).collect()
    }

    /// Whether a reached cap was not reported yet. A cap of the run pauses all its loops and is reported once.
    fn is_new_cap(&self, loop_id: &LoopId) -> bool {
        let mut others = self.run_state.loops_over_budget().filter(|other| *other != loop_id);
        self.is_own_cap(loop_id) || others.all(|other| self.is_own_cap(other))
    }

    /// Whether a loop is paused by a cap of its task.
    fn is_own_cap(&self, loop_id: &LoopId) -> bool {
        let own = self.run_state.row(loop_id).map(|row| row.usage).unwrap_or_default();
        self.cap(own).is_some_and(|cap| cap.owner == CapOwner::Task)
    }

    /// The cap that pauses a loop with this usage of its own.
    fn cap(&self, own: Usage) -> Option<BindingCap> {
        binding_cap(own, &self.task_caps, self.run_state.usage(), &self.run_caps)
    }

    fn run_topics(&self, before: &RunNeeds) -> Vec<NotificationTopic> {
        let now = RunNeeds::for_run(&self.run_state);
        let new = now.blockers.into_iter().filter(|loop_id| !before.blockers.contains(loop_id));
        let stuck = |loop_id| NotificationTopic { kind: NotificationKind::Stuck, loop_id: Some(loop_id) };
        let done = NotificationTopic { kind: NotificationKind::Done, loop_id: None };
        new.map(stuck).chain((now.is_over && !before.is_over).then_some(done)).collect()
    }

    /// The notification of a run's end, unless it is not new.
    fn done(&self, event: &RecordedFact) -> Option<Notification> {
        let mut rows = self.run_state.rows();
        let only = if rows.len() == 1 { rows.pop() } else { None };
        inbox::end_is_news(&self.run_state).then(|| self.build(NotificationKind::Done, only, event))
    }

    fn notification(&self, topic: NotificationTopic, event: &RecordedFact) -> Option<Notification> {
        match topic.loop_id {
            Some(loop_id) => Some(self.build(topic.kind, Some(self.run_state.row(&loop_id)?), event)),
            None => self.done(event),
        }
    }

    fn build(&self, kind: NotificationKind, about: Option<LoopRow>, event: &RecordedFact) -> Notification {
        let over_budget = about.as_ref().filter(|_| kind == NotificationKind::Budget);
        Notification {
            cap: over_budget.and_then(|row| self.cap(row.usage)),
            kind,
            at: event.at,
            run: event.run,
            seq: event.seq,
            about: about.map(Box::new),
            overview: Box::new(self.run_state.overview()),
        }
    }
}

/// The version of the JSON shape. It changes when a key is removed or changes its meaning.
pub const VERSION: u32 = 1;

/// The JSON that a webhook receives as its body and a command on its stdin.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct NotificationMessage {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub event: NotificationKind,
    /// The name of the repository's directory.
    pub project: String,
    pub run_id: u64,
    /// The task it is about; null if it is about a run of several tasks, or about a loop without a task.
    pub task_id: Option<u64>,
    /// What happened, on one line.
    pub title: String,
    /// The title with the reason.
    pub text: String,
    /// The open question; null if there is none.
    pub question: Option<MessageQuestion>,
    /// `approved`, `accepted`, `completed_with_issues`, `exhausted`, `discussion`,
    /// `nothing_to_review`, `failed`, `stuck`, of a task; of a run
    /// `approved`, `attention`, `failed`.
    #[schemars(with = "Option<String>")]
    pub outcome: Option<NotifiedOutcome>,
    /// `APPROVED`, `CHANGES_REQUESTED`, `MAX_CYCLES_REACHED`, `NEEDS_DISCUSSION`.
    #[schemars(with = "Option<String>")]
    pub final_verdict: Option<FinalVerdict>,
    /// Why it ended or is paused: a code of the documented list.
    #[schemars(with = "Option<String>")]
    pub reason: Option<Reason>,
    /// The cost so far.
    pub cost_usd: f64,
    /// The branch that holds the work.
    pub branch: Option<String>,
    /// The command to type next.
    pub next: Option<String>,
    /// When it was recorded, UTC.
    pub at: String,
}

/// How a task or a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum NotifiedOutcome {
    Task(OutcomeKind),
    Run(RunOutcome),
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct MessageQuestion {
    /// `q1`, `q2`, …: unique in the repository.
    pub id: String,
    pub text: String,
    /// The possible answers.
    pub choices: Vec<String>,
}
