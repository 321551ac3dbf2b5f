//! What people are told who are not looking: one fold over the log, which says something only when something new needs
//! them, or all is over.
//!
//! A run of a thousand tasks is told once when it is done. A question is told once, whoever asks it, and so is each loop
//! that ended badly. Work that is paused because a cap is reached is told once until it goes on: a cap of the run once for
//! all its loops. Of what was recorded before a run was taken up, that is said which still holds: whoever sends it knows
//! what got through, and does not send that again.

mod message;
mod whose_cap;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use message::{Message, MessageQuestion, VERSION};
pub use whose_cap::{Cap, Whose};

use crate::group::{RunOutcome, RunStage};
use crate::ids::{LoopId, QuestionId, RunId};
use crate::machine::{Loop, Outcome, Reason, Stage};
use crate::policy::Caps;
use crate::review::Usage;
use crate::view::{LoopView, Overview, RunView};
use crate::wire::{Fact, LoopFact, Recorded, RunFact};

/// What people are told of.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Occasion {
    /// A run is through.
    Done,
    /// A loop ended so that only a person can resolve it.
    Stuck,
    /// A person is asked.
    Question,
    /// A cap is reached, and work is paused.
    Budget,
}

impl Occasion {
    pub const ALL: [Self; 4] = [Self::Done, Self::Stuck, Self::Question, Self::Budget];

    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Stuck => "stuck",
            Self::Question => "question",
            Self::Budget => "budget",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|occasion| occasion.word() == word)
    }
}

/// Something to tell a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub occasion: Occasion,
    pub at: Timestamp,
    pub run: RunId,
    /// The number of the fact that made it so.
    pub seq: u64,
    /// The loop it is about; none where it is about a run of several.
    pub about: Option<Box<LoopView>>,
    /// The cap that is reached, where it is about one and it is known.
    pub cap: Option<Cap>,
    /// The run as a whole.
    pub overview: Box<Overview>,
}

/// Which notification it is: the same one after a restart, and never that of something else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occurrence {
    pub run: RunId,
    pub seq: u64,
    pub event: Occasion,
    pub about: Option<LoopId>,
}

impl Notification {
    pub fn occurrence(&self) -> Occurrence {
        let about = self.about.as_ref().map(|row| row.id.clone());
        Occurrence { run: self.run, seq: self.seq, event: self.occasion, about }
    }
}

/// What is new: about a loop, or about the run.
type News = (Occasion, Option<LoopId>);

/// When something was recorded.
#[derive(Debug, Clone, Copy)]
struct Mark {
    run: RunId,
    seq: u64,
    at: Timestamp,
}

impl Mark {
    fn of(recorded: &Recorded) -> Self {
        Self { run: recorded.run, seq: recorded.seq, at: recorded.at }
    }
}

/// Watches one run.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    view: RunView,
    task_caps: Caps,
    run_caps: Caps,
}

impl Watch {
    /// Of a run whose tasks, and which as a whole, have these caps.
    pub fn within(task_caps: Caps, run_caps: Caps) -> Self {
        Self { task_caps, run_caps, ..Self::default() }
    }

    /// Takes in what was recorded before, and says what of it still holds: it may not have got through to anybody.
    pub fn catch_up<'a>(&mut self, log: impl IntoIterator<Item = &'a Recorded>) -> Vec<Notification> {
        let mut standing = BTreeMap::new();
        for recorded in log {
            for (occasion, about) in self.news(recorded) {
                standing.extend(about.map(|about| ((about, occasion), Mark::of(recorded))));
            }
        }
        let blockers = self.blockers();
        standing.retain(|(loop_id, occasion), _| self.holds(*occasion, loop_id, &blockers));
        let told = standing.into_iter();
        told.filter_map(|((loop_id, occasion), mark)| self.told((occasion, Some(loop_id)), mark)).collect()
    }

    fn holds(&self, occasion: Occasion, loop_id: &LoopId, blockers: &[LoopId]) -> bool {
        let sign = Sign::of(self.view.loop_state(loop_id));
        match occasion {
            Occasion::Question => sign.question.is_some(),
            Occasion::Stuck => sign.stuck || blockers.contains(loop_id),
            Occasion::Budget => sign.short,
            Occasion::Done => false,
        }
    }

    /// Takes one fact in, and says what is to be told.
    pub fn take(&mut self, recorded: &Recorded) -> Vec<Notification> {
        let news = self.news(recorded);
        news.into_iter().filter_map(|one| self.told(one, Mark::of(recorded))).collect()
    }

    fn news(&mut self, recorded: &Recorded) -> Vec<News> {
        match &recorded.fact {
            Fact::Loop(loop_id, LoopFact::Moved(_)) => self.loop_moved(loop_id, recorded),
            Fact::Run(RunFact::Moved(_)) => self.run_moved(recorded),
            Fact::Task(..) | Fact::Run(_) | Fact::Loop(..) => {
                self.view.apply(recorded);
                Vec::new()
            }
        }
    }

    fn loop_moved(&mut self, loop_id: &LoopId, recorded: &Recorded) -> Vec<News> {
        let before = Sign::of(self.view.loop_state(loop_id));
        self.view.apply(recorded);
        let after = Sign::of(self.view.loop_state(loop_id));
        let new = [
            (Occasion::Question, after.question.is_some() && after.question != before.question),
            // A checkpoint that fails is made up for by the loop that it looks at.
            (Occasion::Stuck, after.stuck && !before.stuck && loop_id.of_checkpoint().is_none()),
            (Occasion::Budget, after.short && !before.short && self.is_news_of_a_cap(loop_id)),
        ];
        let told = new.into_iter().filter(|(_, is_new)| *is_new);
        told.map(|(occasion, _)| (occasion, Some(loop_id.clone()))).collect()
    }

    /// A cap of the run stops all its loops; one of them is enough to tell.
    fn is_news_of_a_cap(&self, loop_id: &LoopId) -> bool {
        let mut others = self.view.short_of_budget().filter(|other| *other != loop_id);
        self.is_own_cap(loop_id) || others.all(|other| self.is_own_cap(other))
    }

    /// Whether a loop is short because of a cap of its task.
    fn is_own_cap(&self, loop_id: &LoopId) -> bool {
        let own = self.view.row(loop_id).map(|row| row.usage).unwrap_or_default();
        self.cap(own).is_some_and(|cap| cap.whose == Whose::Task)
    }

    /// The cap that stops a loop which used so much itself.
    fn cap(&self, own: Usage) -> Option<Cap> {
        whose_cap::nearest((own, &self.task_caps), (self.view.usage(), &self.run_caps))
    }

    fn run_moved(&mut self, recorded: &Recorded) -> Vec<News> {
        let (blockers, was_over) = (self.blockers(), self.is_over());
        self.view.apply(recorded);
        let new = self.blockers().into_iter().filter(|loop_id| !blockers.contains(loop_id));
        let mut told: Vec<News> = new.map(|loop_id| (Occasion::Stuck, Some(loop_id))).collect();
        told.extend((self.is_over() && !was_over).then_some((Occasion::Done, None)));
        told
    }

    /// The loops that hold up their group although they did not fail: those were told when they did.
    fn blockers(&self) -> Vec<LoopId> {
        let RunStage::Blocked { by, .. } = self.view.stage() else { return Vec::new() };
        let told = |loop_id: &&LoopId| Sign::of(self.view.loop_state(loop_id)).stuck;
        let stopped = |loop_id: &&LoopId| ending(self.view.loop_state(loop_id)).is_some_and(by_a_person);
        by.iter().filter(|loop_id| !told(loop_id) && !stopped(loop_id)).cloned().collect()
    }

    /// Whether nothing is left to do. A person can reopen a loop of a run that was.
    fn is_over(&self) -> bool {
        matches!(self.view.stage(), RunStage::Done(_)) && self.view.overview().tasks.open() == 0
    }

    /// The end of a run, unless it says nothing new: a person called it off, or its one loop was told as stuck.
    fn done(&self, mark: Mark) -> Option<Notification> {
        let rows = self.view.rows();
        let only = if let [only] = rows.as_slice() { Some(only) } else { None };
        let worth = match self.view.stage() {
            RunStage::Done(RunOutcome::Approved | RunOutcome::Attention) => true,
            RunStage::Done(RunOutcome::Failed) => rows.len() > 1,
            RunStage::Done(RunOutcome::Cancelled)
            | RunStage::Queued
            | RunStage::Preparing
            | RunStage::Working { .. }
            | RunStage::Blocked { .. }
            | RunStage::Reviewing
            | RunStage::Landing(_) => false,
        };
        let called_off = only.is_some_and(|row| row.reason.is_some_and(is_of_a_person));
        worth.then(|| self.tell(Occasion::Done, only.cloned(), mark)).filter(|_| !called_off)
    }

    fn told(&self, (occasion, about): News, mark: Mark) -> Option<Notification> {
        match about {
            Some(loop_id) => Some(self.tell(occasion, Some(self.view.row(&loop_id)?), mark)),
            None => self.done(mark),
        }
    }

    fn tell(&self, occasion: Occasion, about: Option<LoopView>, Mark { run, seq, at }: Mark) -> Notification {
        let short = about.as_ref().filter(|_| occasion == Occasion::Budget);
        Notification {
            cap: short.and_then(|row| self.cap(row.usage)),
            occasion,
            at,
            run,
            seq,
            about: about.map(Box::new),
            overview: Box::new(self.view.overview()),
        }
    }
}

/// As much of a loop as tells whether a person is needed.
#[derive(Debug, Default)]
struct Sign {
    question: Option<QuestionId>,
    stuck: bool,
    short: bool,
}

impl Sign {
    fn of(this: Option<&Loop>) -> Self {
        let Some(this) = this else { return Self::default() };
        let question =
            if let Stage::Waiting { question, .. } = &this.stage { Some(question.id) } else { None };
        let bad = |(outcome, _): &(&Outcome, _)| matches!(outcome, Outcome::Failed | Outcome::Stuck);
        let stuck = ending(Some(this)).filter(|end| !by_a_person(*end)).as_ref().is_some_and(bad);
        Self { question, stuck, short: this.paused_for() == Some(Reason::Budget) }
    }
}

fn ending(this: Option<&Loop>) -> Option<(&Outcome, Option<Reason>)> {
    let Stage::Done(ending) = &this?.stage else { return None };
    Some((&ending.outcome, ending.reason))
}

/// Whoever ended it knows.
fn by_a_person((_, reason): (&Outcome, Option<Reason>)) -> bool {
    reason.is_some_and(is_of_a_person)
}

fn is_of_a_person(reason: Reason) -> bool {
    matches!(reason, Reason::StoppedByPerson | Reason::CancelledByPerson | Reason::EditedByPerson)
}
