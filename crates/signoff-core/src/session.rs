//! Decides which session an agent resumes, from the events of its loop.
//!
//! An interrupted agent still has context that a prompt cannot repeat. An agent with
//! another job works better without its earlier context.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

use crate::ids::AttemptId;
use crate::machine::{AttemptFailure, AttemptLoss, Event, JobKey, Loop, Position, Stage};
use crate::view::AttemptStarts;
use crate::wire::{Launch, LoopFact};

/// When an agent resumes an earlier session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResumePolicy {
    /// Never.
    Fresh,
    /// After an interruption of the same job.
    #[default]
    Retry,
    /// Also when it fixes its own work.
    Fix,
}

/// The session that an attempt resumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumedSession {
    /// The attempt that the session belonged to.
    pub attempt: AttemptId,
    /// The agent's id of the session.
    pub session: String,
}

/// The sessions of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sessions {
    /// The session of each attempt that has one.
    sessions: BTreeMap<AttemptId, AgentSession>,
    /// They are not resumed again.
    lost: BTreeSet<AgentSession>,
    /// The jobs whose last attempt was interrupted.
    cut_off: Vec<(JobPosition, AttemptId)>,
    /// The last attempt that changed the work.
    last_writer: Option<AttemptId>,
}

/// A session of an agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct AgentSession {
    agent: String,
    session: String,
}

/// Whether a session id can be passed to the agent's program. It becomes an argument, and an agent may have made it
/// up.
fn is_session_name(word: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | ':');
    word.starts_with(|letter: char| letter.is_ascii_alphanumeric()) && word.len() <= 128 && word.chars().all(plain)
}

/// Identifies a job across all its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct JobPosition {
    position: Position,
    cycle: u32,
    job: JobKey,
}

impl Sessions {
    /// Applies an event. `machine` is the loop's state before it, and `starts` are its started attempts.
    pub fn apply(&mut self, fact: &LoopFact, machine: &Loop, starts: &AttemptStarts) {
        if let LoopFact::Session { attempt, session } = fact
            && is_session_name(session)
            && let Some(start) = starts.get(attempt)
        {
            let agent = start.launch.agent.clone();
            self.sessions.insert(*attempt, AgentSession { agent, session: session.clone() });
        } else if let LoopFact::Transitioned(event) = fact {
            self.apply_event(event, machine, starts);
        }
    }

    fn apply_event(&mut self, event: &Event, machine: &Loop, starts: &AttemptStarts) {
        if let Event::AttemptLost { attempt, loss: AttemptLoss::SessionGone } = event
            && let Some(Launch { agent, resumes: Some(resumed), .. }) = starts.get(attempt).map(|start| &start.launch)
        {
            // The session that the attempt tried to resume is lost, also for other attempts.
            self.lost.insert(AgentSession { agent: agent.clone(), session: resumed.session.clone() });
        }
        let ended = event.ends_attempt().and_then(|attempt| Some((attempt, job_position(machine, attempt)?)));
        let Some((attempt, job)) = ended else { return };
        let is_cut_off = matches!(
            event,
            Event::AttemptFailed { failure: AttemptFailure::TimedOut | AttemptFailure::Silent, .. }
                | Event::AttemptLost { loss: AttemptLoss::Crashed | AttemptLoss::Interrupted, .. }
        );
        let did_not_run = matches!(event, Event::RateLimited { .. } | Event::BudgetRefused { .. });
        // An attempt without a session of its own leaves the one that it was to resume.
        let is_unchanged = did_not_run || is_cut_off && !self.sessions.contains_key(&attempt);
        if !is_unchanged {
            self.cut_off.retain(|(other, _)| *other != job);
        }
        if !is_unchanged && is_cut_off {
            self.cut_off.push((job, attempt));
        }
        if let (Event::WorkEnded { .. }, Stage::Working { .. } | Stage::Fixing { .. }) = (event, &machine.stage) {
            self.last_writer = Some(attempt);
        }
    }

    /// The session that a running attempt of `machine` with this agent resumes.
    pub fn session_for(
        &self,
        policy: ResumePolicy,
        machine: &Loop,
        attempt: AttemptId,
        agent: &str,
    ) -> Option<ResumedSession> {
        let cut_off = || self.cut_off_before(machine, attempt);
        let known = |earlier| self.usable_session(earlier, agent);
        match policy {
            ResumePolicy::Fresh => None,
            ResumePolicy::Retry => cut_off().and_then(known),
            ResumePolicy::Fix => {
                cut_off().and_then(known).or_else(|| self.previous_writer(machine, attempt).and_then(known))
            }
        }
    }

    /// The session of an attempt, if it exists and belongs to the same agent.
    fn usable_session(&self, earlier: AttemptId, agent: &str) -> Option<ResumedSession> {
        let known = self.sessions.get(&earlier).filter(|known| known.agent == agent && !self.lost.contains(known))?;
        Some(ResumedSession { attempt: earlier, session: known.session.clone() })
    }

    fn cut_off_before(&self, machine: &Loop, attempt: AttemptId) -> Option<AttemptId> {
        let job = job_position(machine, attempt)?;
        self.cut_off.iter().find(|(other, _)| *other == job).map(|(_, earlier)| *earlier)
    }

    /// Parallel fixers cannot share a session.
    fn previous_writer(&self, machine: &Loop, attempt: AttemptId) -> Option<AttemptId> {
        let alone = matches!(&machine.stage, Stage::Fixing { fixes, .. } if fixes.len() == 1);
        self.last_writer.filter(|earlier| alone && *earlier < attempt)
    }
}

fn job_position(machine: &Loop, attempt: AttemptId) -> Option<JobPosition> {
    Some(JobPosition { position: machine.position, cycle: machine.counters.cycle, job: machine.job_key(attempt)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Head, LimitPlan, Policy, WorkReport, step};
    use crate::review::{Finding, Review, ReviewerKind, Severity, Verdict};
    use crate::view::AttemptStart;
    use crate::workflow::{PhaseKind, preset};
    use jiff::Timestamp;
    use proptest::prelude::*;
    use std::sync::Arc;

    /// One job with attempts of two agents, each attempt with its own session.
    struct Scenario {
        state: Loop,
        sessions: Sessions,
        starts: AttemptStarts,
        policy: Policy,
    }

    impl Scenario {
        fn new() -> Self {
            let policy = Policy::new(preset("task").expect("shipped"));
            let (state, sessions, starts) = Default::default();
            let mut scenario = Self { state, sessions, starts, policy };
            scenario.apply(LoopFact::Transitioned(Event::Started { head: head(1) }));
            scenario
        }

        fn apply(&mut self, fact: LoopFact) {
            self.sessions.apply(&fact, &self.state, &self.starts);
            if let LoopFact::AttemptStarted { attempt, launch } = fact {
                let at = Timestamp::UNIX_EPOCH;
                self.starts.insert(attempt, Arc::new(AttemptStart { at, launch }));
            } else if let LoopFact::Transitioned(event) = fact {
                self.state = step(self.state.clone(), event, &self.policy).0;
            }
        }

        fn running(&self) -> Option<AttemptId> {
            (1..200).map(AttemptId).find(|attempt| self.state.runs(*attempt))
        }

        /// Runs the next attempt with a session of its own, and returns what it resumed.
        fn attempt(&mut self, agent: &str, end: TestEnd) -> Option<AttemptId> {
            let attempt = self.next();
            self.attempt_by(ResumePolicy::Retry, agent, &format!("s{attempt}"), end).map(|one| one.attempt)
        }

        fn next(&mut self) -> AttemptId {
            if self.running().is_none() {
                self.apply(LoopFact::Transitioned(Event::PersonRetried { by: "ann".into() }));
            }
            self.running().expect("an attempt is running")
        }

        fn attempt_by(&mut self, by: ResumePolicy, agent: &str, session: &str, end: TestEnd) -> Option<ResumedSession> {
            let attempt = self.next();
            let resumed = self.sessions.session_for(by, &self.state, attempt, agent);
            let launch = Launch { resumes: resumed.clone(), agent: agent.to_owned(), ..Launch::default() };
            self.apply(LoopFact::AttemptStarted { attempt, launch });
            self.apply(LoopFact::Session { attempt, session: session.to_owned() });
            self.apply(LoopFact::Transitioned(end.event(attempt)));
            if let TestEnd::Limited = end {
                let reason = crate::machine::PauseReason::RateLimit { until: Timestamp::UNIX_EPOCH };
                self.apply(LoopFact::Transitioned(Event::Resumed { reason }));
            }
            resumed
        }

        /// A loop whose work was written in a session and is about to be reviewed.
        fn ready_to_fix() -> Self {
            let mut scenario = Self::new();
            if let PhaseKind::Gate(gate_policy) = &mut scenario.policy.workflow.phases[1].kind {
                gate_policy.gate.enabled = true;
            }
            let attempt = AttemptId(1);
            scenario.apply(LoopFact::AttemptStarted {
                attempt,
                launch: Launch { agent: "claude".to_owned(), ..Launch::default() },
            });
            scenario.apply(LoopFact::Session { attempt, session: "s1".into() });
            let report = WorkReport::Complete { head: head(2) };
            scenario.apply(LoopFact::Transitioned(Event::WorkEnded { attempt, report }));
            scenario
        }

        fn request_changes(&mut self) {
            let attempt = self.running().expect("a reviewer");
            let mut review = Box::new(Review::new("general".into(), ReviewerKind::General, Verdict::ChangesRequested));
            review.findings = vec![Finding::new(&"general".into(), "bug", Severity::Critical, "wrong")];
            self.apply(LoopFact::Transitioned(Event::ReviewArrived { attempt, review }));
            assert!(matches!(self.state.stage, Stage::Fixing { .. }), "{:?}", self.state.stage);
        }
    }

    fn head(number: u32) -> Head {
        Head { commit: format!("c{number}").as_str().into(), tree: format!("t{number}").as_str().into() }
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum TestEnd {
        TimedOut,
        Silent,
        Stopped,
        Gone,
        Limited,
        Failed,
    }

    impl TestEnd {
        const ALL: [Self; 6] = [Self::TimedOut, Self::Silent, Self::Stopped, Self::Gone, Self::Limited, Self::Failed];

        fn event(self, attempt: AttemptId) -> Event {
            let failed = |failure| Event::AttemptFailed { attempt, failure };
            match self {
                Self::TimedOut => failed(AttemptFailure::TimedOut),
                Self::Silent => failed(AttemptFailure::Silent),
                Self::Failed => failed(AttemptFailure::Exit { code: 1 }),
                Self::Stopped => Event::AttemptLost { attempt, loss: AttemptLoss::Interrupted },
                Self::Gone => Event::AttemptLost { attempt, loss: AttemptLoss::SessionGone },
                Self::Limited => {
                    let plan = LimitPlan::WaitUntil(Timestamp::UNIX_EPOCH);
                    Event::RateLimited { attempt, plan, error: None, next_agent: None }
                }
            }
        }

        fn cuts_off(self) -> bool {
            matches!(self, Self::TimedOut | Self::Silent | Self::Stopped)
        }
    }

    #[test]
    fn fixers_start_fresh_unless_configured_to_resume() {
        let mut scenario = Scenario::ready_to_fix();
        let reviewer = scenario.running().expect("a reviewer");
        let by = |by, scenario: &Scenario, attempt, agent| {
            scenario.sessions.session_for(by, &scenario.state, attempt, agent).map(|one: ResumedSession| one.session)
        };
        assert_eq!(by(ResumePolicy::Fix, &scenario, reviewer, "claude"), None, "a reviewer did not write it");
        scenario.request_changes();
        let fixer = scenario.running().expect("a fixer");
        assert_eq!(by(ResumePolicy::Retry, &scenario, fixer, "claude"), None);
        assert_eq!(by(ResumePolicy::Fix, &scenario, fixer, "claude"), Some("s1".to_owned()));
        assert_eq!(by(ResumePolicy::Fix, &scenario, fixer, "codex"), None);
        assert_eq!(by(ResumePolicy::Fresh, &scenario, fixer, "claude"), None);
    }

    proptest! {
        /// Only the last interrupted attempt at this job is resumed, whatever was refused in between.
        #[test]
        fn only_an_interrupted_last_attempt_is_resumed(
            ends in prop::collection::vec((0usize..6, any::<bool>()), 1..12)
        ) {
            let mut scenario = Scenario::new();
            let mut last: Option<(AttemptId, bool)> = None;
            for (number, (end, other)) in ends.into_iter().enumerate() {
                let (end, agent) = (TestEnd::ALL[end], if other { "codex" } else { "claude" });
                let resumed = scenario.attempt(agent, end);
                let expected = last.filter(|(_, by)| *by == other).map(|(attempt, _)| attempt);
                prop_assert_eq!(resumed, expected);
                let attempt = AttemptId(u64::try_from(number).unwrap_or_default() + 1);
                if end.cuts_off() {
                    last = Some((attempt, other));
                } else if end != TestEnd::Limited {
                    last = None;
                }
            }
        }
    }

    #[test]
    fn lost_sessions_are_not_resumed_again() {
        for by in [ResumePolicy::Fresh, ResumePolicy::Retry, ResumePolicy::Fix] {
            let mut scenario = Scenario::ready_to_fix();
            scenario.request_changes();
            let resumed: Vec<_> =
                (0..3).map(|_| scenario.attempt_by(by, "claude", "s1", TestEnd::Gone).map(|one| one.session)).collect();
            let first = (by == ResumePolicy::Fix).then(|| "s1".to_owned());
            assert_eq!(resumed, [first, None, None], "{by:?}");
        }
    }

    proptest! {
        /// With any policy and any shared sessions, a lost session is never resumed again.
        #[test]
        fn a_lost_session_is_never_resumed(
            by in prop::sample::select(vec![ResumePolicy::Fresh, ResumePolicy::Retry, ResumePolicy::Fix]),
            fixes: bool,
            ends in prop::collection::vec((0usize..6, any::<bool>(), 0u8..3), 1..40)
        ) {
            let mut scenario = if fixes { Scenario::ready_to_fix() } else { Scenario::new() };
            scenario.policy.workflow.limits.max_recoveries = 100;
            if fixes {
                scenario.request_changes();
            }
            let mut gone = BTreeSet::new();
            for (end, other, session) in ends {
                let agent = if other { "codex" } else { "claude" };
                let attempt = scenario.next();
                let goes_on = scenario.sessions.session_for(by, &scenario.state, attempt, agent).is_some();
                // A new session cannot be lost.
                let end = if goes_on || TestEnd::ALL[end] != TestEnd::Gone { TestEnd::ALL[end] } else { TestEnd::Failed };
                let resumed = scenario.attempt_by(by, agent, &format!("s{session}"), end);
                let Some(resumed) = resumed else { continue };
                prop_assert_ne!(by, ResumePolicy::Fresh);
                let session = (agent, resumed.session);
                prop_assert!(!gone.contains(&session), "{session:?} was gone");
                if end == TestEnd::Gone {
                    gone.insert(session);
                }
            }
        }
    }

    #[test]
    fn session_names_cannot_be_flags_or_paths() {
        let names = ["ses_1", "0195-a1", "d73f950d-e581-44e1-9dbc-c61352909cd3", "sess:1.2"];
        assert!(names.into_iter().all(is_session_name));
        let others = ["", "--allow-all-tools", "../x", "/etc/passwd", "a b", "a\n", "é", &"a".repeat(129)];
        assert!(!others.into_iter().any(is_session_name));
    }
}
