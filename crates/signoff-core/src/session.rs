//! Which session an agent goes on with, told from the facts of its loop.
//!
//! An agent that was cut off in the middle of a job knows more about it than any prompt can tell. One that is asked
//! about something else is better off without what it thought before.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

use crate::ids::AttemptId;
use crate::machine::{Duty, Event, Failure, Loop, Loss, Position, Stage};
use crate::wire::LoopFact;

/// When an agent goes on with a session that it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resuming {
    /// Never.
    Fresh,
    /// Where it was cut off, and is at the same job once more.
    Retry,
    /// Also where it fixes what it wrote itself.
    Fix,
}

/// The session that an attempt goes on with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// Whose it was.
    pub attempt: AttemptId,
    /// As the agent calls it.
    pub session: String,
}

/// The sessions of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sessions {
    agents: BTreeMap<AttemptId, String>,
    known: BTreeMap<AttemptId, String>,
    /// What they go on with.
    resumed: BTreeMap<AttemptId, String>,
    /// Those that their agents do not know any more, each with its agent: nobody asks for them again.
    gone: BTreeSet<(String, String)>,
    /// The jobs whose last attempt was cut off.
    cut_off: Vec<(Job, AttemptId)>,
    /// Whoever changed the work last.
    wrote: Option<AttemptId>,
}

/// Whether an agent's word for a session can be given back to its program: it becomes an argument, and agents may have put
/// it together themselves.
fn is_name(word: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | ':');
    word.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && word.len() <= 128
        && word.chars().all(plain)
}

/// The same through all attempts at it.
type Job = (Position, u32, Duty);

/// What an event means for the session of the attempt that it ends.
enum Means {
    CutOff,
    /// It was not its turn yet.
    Nothing,
    Over,
}

impl Sessions {
    /// Takes a fact in; `this` is the loop before it.
    pub fn take(&mut self, fact: &LoopFact, this: &Loop) {
        match fact {
            LoopFact::AttemptStarted { attempt, launch } => {
                self.agents.insert(*attempt, launch.agent.clone());
                let resumed = launch.resumes.as_ref().map(|resumed| (*attempt, resumed.session.clone()));
                self.resumed.extend(resumed);
            }
            LoopFact::Session { attempt, session } => {
                if is_name(session) {
                    self.known.insert(*attempt, session.clone());
                }
            }
            LoopFact::Moved(event) => self.moved(event, this),
            LoopFact::Added { .. }
            | LoopFact::Governed { .. }
            | LoopFact::Placed { .. }
            | LoopFact::CheckpointReviewed { .. }
            | LoopFact::Answered { .. }
            | LoopFact::Used { .. }
            | LoopFact::Said { .. }
            | LoopFact::Noted { .. } => {}
        }
    }

    fn moved(&mut self, event: &Event, this: &Loop) {
        if let Event::AttemptLost { attempt, loss: Loss::SessionGone } = event {
            self.lose(*attempt);
        }
        let ended = event.ends_attempt().and_then(|attempt| Some((attempt, job(this, attempt)?)));
        let Some((attempt, job)) = ended else { return };
        match means(event) {
            Means::Nothing => {}
            // One that did not come to say anything leaves the session that it was to go on with.
            Means::CutOff if !self.known.contains_key(&attempt) => {}
            Means::CutOff => {
                self.forget(&job);
                self.cut_off.push((job, attempt));
            }
            Means::Over => self.forget(&job),
        }
        if let (Event::WorkEnded { .. }, Stage::Working { .. } | Stage::Fixing { .. }) = (event, &this.stage)
        {
            self.wrote = Some(attempt);
        }
    }

    /// What an attempt was to go on with is gone, whoever else had it.
    fn lose(&mut self, attempt: AttemptId) {
        let session = self.agents.get(&attempt).zip(self.resumed.get(&attempt));
        self.gone.extend(session.map(|(agent, session)| (agent.clone(), session.clone())));
    }

    fn forget(&mut self, job: &Job) {
        self.cut_off.retain(|(other, _)| other != job);
    }

    /// What a running attempt of `this` goes on with, made by `agent`.
    pub fn resumed(&self, by: Resuming, this: &Loop, attempt: AttemptId, agent: &str) -> Option<Resumed> {
        let cut_off = || self.cut_off_before(this, attempt);
        let known = |earlier| self.usable(earlier, agent);
        match by {
            Resuming::Fresh => None,
            Resuming::Retry => cut_off().and_then(known),
            Resuming::Fix => {
                cut_off().and_then(known).or_else(|| self.written_before(this, attempt).and_then(known))
            }
        }
    }

    /// The session of an attempt, if it is there. It is no use to anybody else.
    fn usable(&self, earlier: AttemptId, agent: &str) -> Option<Resumed> {
        self.agents.get(&earlier).filter(|known| *known == agent)?;
        let session = self.known.get(&earlier)?.clone();
        let gone = self.gone.contains(&(agent.to_owned(), session.clone()));
        (!gone).then_some(Resumed { attempt: earlier, session })
    }

    fn cut_off_before(&self, this: &Loop, attempt: AttemptId) -> Option<AttemptId> {
        let job = job(this, attempt)?;
        self.cut_off.iter().find(|(other, _)| *other == job).map(|(_, earlier)| *earlier)
    }

    /// Fixers side by side cannot share what they go on with.
    fn written_before(&self, this: &Loop, attempt: AttemptId) -> Option<AttemptId> {
        let alone = matches!(&this.stage, Stage::Fixing { fixes, .. } if fixes.len() == 1);
        self.wrote.filter(|earlier| alone && *earlier < attempt)
    }
}

fn job(this: &Loop, attempt: AttemptId) -> Option<Job> {
    Some((this.at, this.tally.cycle, this.duty(attempt)?))
}

fn means(event: &Event) -> Means {
    match event {
        Event::AttemptFailed { failure: Failure::TimedOut | Failure::Silent, .. }
        | Event::AttemptLost { loss: Loss::Crashed | Loss::Interrupted, .. } => Means::CutOff,
        Event::RateLimited { .. } | Event::BudgetRefused { .. } => Means::Nothing,
        Event::AttemptFailed { .. }
        | Event::AttemptLost { loss: Loss::SessionGone, .. }
        | Event::WorkEnded { .. }
        | Event::CheckEnded { .. }
        | Event::ReviewArrived { .. }
        | Event::FixesCombined { .. }
        | Event::FixesOverlapped { .. }
        | Event::LandingEnded { .. }
        | Event::BaseSet { .. }
        | Event::FindingsInherited { .. }
        | Event::Started { .. }
        | Event::Imported { .. }
        | Event::ItemsPlanned { .. }
        | Event::FindingsClaimed { .. }
        | Event::BudgetReached
        | Event::Resumed { .. }
        | Event::CheckpointBegan { .. }
        | Event::CheckpointEnded { .. }
        | Event::LandingGranted
        | Event::HeadMoved { .. }
        | Event::PersonAnswered { .. }
        | Event::PersonRetried { .. }
        | Event::PersonEdited { .. }
        | Event::FindingDecided { .. }
        | Event::Cancelled { .. } => Means::Over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Head, LimitPlan, Policy, WorkReport, step};
    use crate::review::{Finding, Review, ReviewerKind, Severity, Verdict};
    use crate::wire::Launch;
    use crate::workflow::{PhaseKind, preset};
    use jiff::Timestamp;
    use proptest::prelude::*;

    /// One job, made by this agent and that, each attempt with a session of its own.
    struct Told {
        state: Loop,
        sessions: Sessions,
        policy: Policy,
    }

    impl Told {
        fn new() -> Self {
            let policy = Policy::of(preset("task").expect("shipped"));
            let mut told = Self { state: Loop::default(), sessions: Sessions::default(), policy };
            told.take(LoopFact::Moved(Event::Started { head: head(1) }));
            told
        }

        fn take(&mut self, fact: LoopFact) {
            self.sessions.take(&fact, &self.state);
            if let LoopFact::Moved(event) = fact {
                self.state = step(self.state.clone(), event, &self.policy).0;
            }
        }

        fn running(&self) -> Option<AttemptId> {
            (1..200).map(AttemptId).find(|attempt| self.state.runs(*attempt))
        }

        /// The next attempt begins, has a session and ends; what it went on with.
        fn attempt(&mut self, agent: &str, end: End) -> Option<AttemptId> {
            let attempt = self.next();
            self.attempt_by((Resuming::Retry, agent), &format!("s{attempt}"), end).map(|one| one.attempt)
        }

        fn next(&mut self) -> AttemptId {
            if self.running().is_none() {
                self.take(LoopFact::Moved(Event::PersonRetried { by: "ann".into() }));
            }
            self.running().expect("somebody is at it")
        }

        fn attempt_by(&mut self, (by, agent): (Resuming, &str), session: &str, end: End) -> Option<Resumed> {
            let attempt = self.next();
            let resumed = self.sessions.resumed(by, &self.state, attempt, agent);
            let launch = Launch { resumes: resumed.clone(), ..Launch::of(agent) };
            self.take(LoopFact::AttemptStarted { attempt, launch });
            self.take(LoopFact::Session { attempt, session: session.to_owned() });
            self.take(LoopFact::Moved(end.event(attempt)));
            if let End::Limited = end {
                let hold = crate::machine::Hold::RateLimit { until: Timestamp::UNIX_EPOCH };
                self.take(LoopFact::Moved(Event::Resumed { hold }));
            }
            resumed
        }

        /// Written with a session, reviewed, and about to be fixed.
        fn to_be_fixed() -> Self {
            let mut told = Self::new();
            if let PhaseKind::Gate(judge) = &mut told.policy.workflow.phases[1].kind {
                judge.gate.enabled = true;
            }
            let attempt = AttemptId(1);
            told.take(LoopFact::AttemptStarted { attempt, launch: Launch::of("claude") });
            told.take(LoopFact::Session { attempt, session: "s1".into() });
            let report = WorkReport::Complete { head: head(2) };
            told.take(LoopFact::Moved(Event::WorkEnded { attempt, report }));
            told
        }

        fn is_reviewed(&mut self) {
            let attempt = self.running().expect("a reviewer");
            let mut review =
                Box::new(Review::of("general".into(), ReviewerKind::General, Verdict::ChangesRequested));
            review.findings = vec![Finding::of(&"general".into(), "bug", Severity::Critical, "wrong")];
            self.take(LoopFact::Moved(Event::ReviewArrived { attempt, review }));
            assert!(matches!(self.state.stage, Stage::Fixing { .. }), "{:?}", self.state.stage);
        }
    }

    fn head(number: u32) -> Head {
        Head { commit: format!("c{number}").as_str().into(), tree: format!("t{number}").as_str().into() }
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum End {
        TimedOut,
        Silent,
        Stopped,
        Gone,
        Limited,
        Failed,
    }

    impl End {
        const ALL: [Self; 6] =
            [Self::TimedOut, Self::Silent, Self::Stopped, Self::Gone, Self::Limited, Self::Failed];

        fn event(self, attempt: AttemptId) -> Event {
            let failed = |failure| Event::AttemptFailed { attempt, failure };
            match self {
                Self::TimedOut => failed(Failure::TimedOut),
                Self::Silent => failed(Failure::Silent),
                Self::Failed => failed(Failure::Exit { code: 1 }),
                Self::Stopped => Event::AttemptLost { attempt, loss: Loss::Interrupted },
                Self::Gone => Event::AttemptLost { attempt, loss: Loss::SessionGone },
                Self::Limited => {
                    let plan = LimitPlan::WaitUntil(Timestamp::UNIX_EPOCH);
                    Event::RateLimited { attempt, plan, why: None, turn: None }
                }
            }
        }

        fn cuts_off(self) -> bool {
            matches!(self, Self::TimedOut | Self::Silent | Self::Stopped)
        }
    }

    #[test]
    fn who_fixes_begins_anew_unless_it_is_asked_to_go_on() {
        let mut told = Told::to_be_fixed();
        let reviewer = told.running().expect("a reviewer");
        let by = |by, told: &Told, attempt, agent| {
            told.sessions.resumed(by, &told.state, attempt, agent).map(|one: Resumed| one.session)
        };
        assert_eq!(by(Resuming::Fix, &told, reviewer, "claude"), None, "a reviewer did not write it");
        told.is_reviewed();
        let fixer = told.running().expect("a fixer");
        assert_eq!(by(Resuming::Retry, &told, fixer, "claude"), None);
        assert_eq!(by(Resuming::Fix, &told, fixer, "claude"), Some("s1".to_owned()));
        assert_eq!(by(Resuming::Fix, &told, fixer, "codex"), None);
        assert_eq!(by(Resuming::Fresh, &told, fixer, "claude"), None);
    }

    proptest! {
        /// Only whoever was cut off last at this job goes on, whoever was refused in between.
        #[test]
        fn the_last_one_goes_on_if_it_was_cut_off(
            ends in prop::collection::vec((0usize..6, any::<bool>()), 1..12)
        ) {
            let mut told = Told::new();
            let mut last: Option<(AttemptId, bool)> = None;
            for (number, (end, other)) in ends.into_iter().enumerate() {
                let (end, agent) = (End::ALL[end], if other { "codex" } else { "claude" });
                let resumed = told.attempt(agent, end);
                let expected = last.filter(|(_, by)| *by == other).map(|(attempt, _)| attempt);
                prop_assert_eq!(resumed, expected);
                let attempt = AttemptId(u64::try_from(number).unwrap_or_default() + 1);
                if end.cuts_off() {
                    last = Some((attempt, other));
                } else if end != End::Limited {
                    last = None;
                }
            }
        }
    }

    #[test]
    fn a_session_that_is_gone_is_not_asked_for_again() {
        for by in [Resuming::Fresh, Resuming::Retry, Resuming::Fix] {
            let mut told = Told::to_be_fixed();
            told.is_reviewed();
            let resumed: Vec<_> = (0..3)
                .map(|_| told.attempt_by((by, "claude"), "s1", End::Gone).map(|one| one.session))
                .collect();
            let first = (by == Resuming::Fix).then(|| "s1".to_owned());
            assert_eq!(resumed, [first, None, None], "{by:?}");
        }
    }

    proptest! {
        /// Whenever agents go on, and however many attempts had the same session: what was gone stays gone, and so each
        /// session is lost once.
        #[test]
        fn what_is_gone_is_gone(
            by in prop::sample::select(vec![Resuming::Fresh, Resuming::Retry, Resuming::Fix]),
            fixes: bool,
            ends in prop::collection::vec((0usize..6, any::<bool>(), 0u8..3), 1..40)
        ) {
            let mut told = if fixes { Told::to_be_fixed() } else { Told::new() };
            told.policy.workflow.limits.max_recoveries = 100;
            if fixes {
                told.is_reviewed();
            }
            let mut gone = BTreeSet::new();
            for (end, other, session) in ends {
                let agent = if other { "codex" } else { "claude" };
                let attempt = told.next();
                let goes_on = told.sessions.resumed(by, &told.state, attempt, agent).is_some();
                // Who begins anew has no session to miss.
                let end = if goes_on || End::ALL[end] != End::Gone { End::ALL[end] } else { End::Failed };
                let resumed = told.attempt_by((by, agent), &format!("s{session}"), end);
                let Some(resumed) = resumed else { continue };
                prop_assert_ne!(by, Resuming::Fresh);
                let session = (agent, resumed.session);
                prop_assert!(!gone.contains(&session), "{session:?} was gone");
                if end == End::Gone {
                    gone.insert(session);
                }
            }
        }
    }

    #[test]
    fn a_session_is_no_flag_and_no_path() {
        let names = ["ses_1", "0195-a1", "d73f950d-e581-44e1-9dbc-c61352909cd3", "sess:1.2"];
        assert!(names.into_iter().all(is_name));
        let others = ["", "--allow-all-tools", "../x", "/etc/passwd", "a b", "a\n", "é", &"a".repeat(129)];
        assert!(!others.into_iter().any(is_name));
    }
}
