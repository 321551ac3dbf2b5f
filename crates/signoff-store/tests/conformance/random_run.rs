//! Generates random valid histories: agents, reviewers and users do anything that the state machine allows.

use signoff_core::group::{LoopStatus, RunEvent};
use signoff_core::ids::{Commit, FindingId, LoopId, QuestionId, RunId, TaskId};
use signoff_core::ledger::{DecidedBy, FindingDecision, FindingState};
use signoff_core::machine::{
    AttemptFailure, AttemptLoss, CheckReport, Choice, Effect, Event, FinalVerdict, Job, JobKind, LandingReport,
    LimitPlan, Loop, Policy, Question, Stage, WorkReport, outstanding,
};
use signoff_core::review::{Inconclusive, Verdict};
use signoff_core::view::RunState;
use signoff_core::wire::{Fact, LoopFact, RecordedFact};

use crate::conformance::make;

const WORDS: [&str; 4] = [
    "the error is thrown away",
    "errors are thrown away here",
    "the file handle stays open",
    "a test for the empty list is missing",
];

/// A run that is extended with random events.
pub struct RandomRun {
    run_state: RunState,
    policy: Policy,
    heads: u64,
    seq: u64,
    fresh: Vec<Fact>,
}

impl RandomRun {
    /// Creates a run with two loops that have not started.
    pub fn new(preset: &str, tasks: [TaskId; 2]) -> Self {
        let (run_state, policy) = (RunState::default(), make::policy(preset));
        let mut this = Self { run_state, policy, heads: 0, seq: 0, fresh: Vec::new() };
        this.record(make::opened(preset));
        this.record(make::run(RunEvent::Started));
        for (id, task) in ["A", "B"].into_iter().zip(tasks) {
            this.record(make::taken(id, task));
        }
        this.record(make::run(RunEvent::GroupsPlanned { groups: vec![vec!["A".into(), "B".into()]] }));
        this
    }

    /// Takes the facts since the last call.
    pub fn facts(&mut self) -> Vec<Fact> {
        std::mem::take(&mut self.fresh)
    }

    fn record(&mut self, fact: Fact) {
        self.seq += 1;
        let at = make::at(self.seq as i64);
        self.run_state.apply(RecordedFact { run: RunId(1), seq: self.seq, at, fact: fact.clone() });
        self.fresh.push(fact);
    }

    /// Applies one random event to one loop.
    pub fn step(&mut self, choice: u32) {
        let id = LoopId::from(if choice.is_multiple_of(2) { "A" } else { "B" });
        let state = self.run_state.loop_state(&id).cloned().unwrap_or_default();
        let (kind, pick) = (choice / 2 % 16, (choice / 32) as usize);
        match kind {
            0 => {
                make::attempt(id.as_str(), 1 + u64::from(choice % 5), 3).into_iter().for_each(|fact| self.record(fact))
            }
            1 => {
                let wants = make::review("code", Verdict::ChangesRequested, &[WORDS[pick % 4]]);
                self.record(Fact::Loop(id, LoopFact::CheckpointReviewed { review: wants }));
            }
            2 => self.interrupt(&id, &state, pick),
            _ => {
                let events = self.events(&state);
                let Some(event) = events.get(pick % events.len().max(1)) else { return };
                self.transition(&id, event.clone());
            }
        }
    }

    fn transition(&mut self, id: &LoopId, event: Event) {
        self.record(Fact::Loop(id.clone(), LoopFact::Transitioned(event)));
        let status = LoopStatus::for_loop(self.run_state.loop_state(id).expect("a loop"));
        self.record(make::run(RunEvent::LoopStatusChanged { loop_id: id.clone(), status }));
    }

    /// Applies an event that is allowed at any time.
    fn interrupt(&mut self, id: &LoopId, state: &Loop, pick: usize) {
        self.heads += 1;
        let by = || "ann".to_owned();
        let finding = state.ledger.entries().first().map_or("f-none".into(), |entry| entry.finding.id.clone());
        let events = [
            Event::HeadMoved { head: make::head(self.heads) },
            Event::BudgetReached,
            decided(finding.clone(), FindingState::Refuted),
            decided(finding, FindingState::OutOfScope),
            Event::Cancelled { by: by() },
            Event::PersonEdited {
                verdict: FinalVerdict::ALL[pick % 4],
                by: by(),
                reason: by(),
                head: None,
                findings: Vec::new(),
            },
        ];
        self.transition(id, events[pick % events.len()].clone());
    }

    /// Lists all events that the loop waits for.
    fn events(&mut self, state: &Loop) -> Vec<Event> {
        if state.stage == Stage::Queued {
            return vec![Event::Started { head: make::head(0) }];
        }
        if state.is_done() {
            return vec![Event::PersonRetried { by: "ann".into() }];
        }
        let mut events = Vec::new();
        for effect in outstanding(state, &self.policy) {
            match effect {
                Effect::Spawn(job) => events.extend(self.reports(&job)),
                Effect::Ask(question) => events.extend(answers(&question)),
                Effect::Wait { reason } => events.push(Event::Resumed { reason }),
                Effect::AwaitLanding => events.push(Event::LandingGranted),
                Effect::Kill { .. } | Effect::Finish(_) => {}
            }
        }
        events
    }

    fn reports(&mut self, job: &Job) -> Vec<Event> {
        self.heads += 1;
        let (attempt, head) = (job.attempt, make::head(self.heads));
        let findings = || vec![make::finding("checks", WORDS[2])];
        let mut events = match &job.kind {
            JobKind::Work { .. } | JobKind::Research { .. } | JobKind::Fix { .. } => vec![
                Event::WorkEnded { attempt, report: WorkReport::Complete { head: head.clone() } },
                Event::WorkEnded { attempt, report: WorkReport::Complete { head: head.clone() } },
                Event::WorkEnded { attempt, report: WorkReport::Incomplete { head } },
            ],
            JobKind::Check => vec![
                Event::CheckEnded { attempt, report: CheckReport::Passed },
                Event::CheckEnded { attempt, report: CheckReport::Failed { findings: findings() } },
            ],
            JobKind::Review { reviewer, commit, .. } => reviews(job, reviewer.as_str(), commit),
            JobKind::Combine { .. } => vec![
                Event::FixesCombined { attempt, head: head.clone() },
                Event::FixesOverlapped { attempt, kept: vec![0], head },
            ],
            JobKind::Land => vec![
                Event::LandingEnded { attempt, report: LandingReport::Landed { commit: head.commit.clone() } },
                Event::LandingEnded { attempt, report: LandingReport::SentBack { head, findings: findings() } },
            ],
        };
        let late = signoff_core::ids::AttemptId(attempt.0 + 100);
        events.extend([
            Event::AttemptFailed { attempt, failure: AttemptFailure::TimedOut },
            Event::AttemptLost { attempt, loss: AttemptLoss::Crashed },
            Event::RateLimited { attempt, plan: LimitPlan::WaitUntil(make::at(9)), error: None, next_agent: None },
            Event::ReviewArrived { attempt: late, review: make::review("code", Verdict::Approved, &[]) },
        ]);
        events
    }
}

fn reviews(job: &Job, reviewer: &str, commit: &Commit) -> Vec<Event> {
    let review_event = |verdict, words: &[&str]| {
        let mut review = make::review(reviewer, verdict, words);
        review.judged.commit = Some(commit.clone());
        Event::ReviewArrived { attempt: job.attempt, review }
    };
    let mut elsewhere = make::review(reviewer, Verdict::Approved, &[]);
    elsewhere.judged.commit = Some("elsewhere".into());
    let unread = Verdict::Inconclusive(Inconclusive::Missing("no verdict".into()));
    vec![
        review_event(Verdict::Approved, &[]),
        review_event(Verdict::Approved, &[]),
        review_event(Verdict::Approved, &WORDS[3..]),
        review_event(Verdict::ChangesRequested, &WORDS[..1]),
        review_event(Verdict::ChangesRequested, &WORDS[1..3]),
        review_event(Verdict::ChangesRequested, &[WORDS[0], WORDS[0]]),
        review_event(Verdict::NeedsDiscussion, &[]),
        review_event(unread, &WORDS[..1]),
        Event::ReviewArrived { attempt: job.attempt, review: elsewhere },
    ]
}

fn answers(question: &Question) -> Vec<Event> {
    let answered =
        |(id, choice): (QuestionId, Choice)| Event::PersonAnswered { question: id, choice, by: "ann".to_owned() };
    question.choices.iter().map(|choice| answered((question.id, *choice))).collect()
}

fn decided(finding: FindingId, state: FindingState) -> Event {
    let by = DecidedBy::Person("ann".to_owned());
    Event::FindingDecided { finding, decision: FindingDecision { state, by, commit: None, evidence: "so".into() } }
}
