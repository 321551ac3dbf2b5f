//! Random but lawful histories: agents, reviewers and people who do whatever the machine allows.

use signoff_core::group::{RunEvent, Standing};
use signoff_core::ids::{Commit, FindingId, LoopId, QuestionId, RunId, TaskId};
use signoff_core::ledger::{DecidedBy, Decision, State};
use signoff_core::machine::{
    CheckReport, Choice, Effect, Event, Failure, FinalWord, Job, JobKind, LandReport, LimitPlan, Loop, Loss,
    Policy, Question, Stage, WorkReport, outstanding,
};
use signoff_core::review::{Inconclusive, Verdict};
use signoff_core::view::RunView;
use signoff_core::wire::{Fact, LoopFact, Recorded};

use crate::say;

const WORDS: [&str; 4] = [
    "the error is thrown away",
    "errors are thrown away here",
    "the file handle stays open",
    "a test for the empty list is missing",
];

/// A run in the making.
pub struct World {
    view: RunView,
    policy: Policy,
    heads: u64,
    seq: u64,
    fresh: Vec<Fact>,
}

impl World {
    /// Two loops, about to start.
    pub fn new(preset: &str, tasks: [TaskId; 2]) -> Self {
        let (view, policy) = (RunView::default(), say::policy(preset));
        let mut world = Self { view, policy, heads: 0, seq: 0, fresh: Vec::new() };
        world.take(say::opened(preset));
        world.take(say::run(RunEvent::Started));
        for (id, task) in ["A", "B"].into_iter().zip(tasks) {
            world.take(say::taken(id, task));
        }
        world.take(say::run(RunEvent::GroupsPlanned { groups: vec![vec!["A".into(), "B".into()]] }));
        world
    }

    /// What happened since the last time.
    pub fn facts(&mut self) -> Vec<Fact> {
        std::mem::take(&mut self.fresh)
    }

    fn take(&mut self, fact: Fact) {
        self.seq += 1;
        let at = say::at(self.seq as i64);
        self.view.apply(&Recorded { run: RunId(1), seq: self.seq, at, fact: fact.clone() });
        self.fresh.push(fact);
    }

    /// Lets one thing happen to one loop.
    pub fn happen(&mut self, choice: u32) {
        let id = LoopId::from(if choice.is_multiple_of(2) { "A" } else { "B" });
        let state = self.view.loop_state(&id).cloned().unwrap_or_default();
        let (kind, pick) = (choice / 2 % 16, (choice / 32) as usize);
        match kind {
            0 => say::attempt(id.as_str(), 1 + u64::from(choice % 5), 3)
                .into_iter()
                .for_each(|fact| self.take(fact)),
            1 => {
                let wants = say::review("code", Verdict::ChangesRequested, &[WORDS[pick % 4]]);
                self.take(Fact::Loop(id, LoopFact::CheckpointReviewed { review: wants }));
            }
            2 => self.odd(&id, &state, pick),
            _ => {
                let events = self.events(&state);
                let Some(event) = events.get(pick % events.len().max(1)) else { return };
                self.moved(&id, event.clone());
            }
        }
    }

    fn moved(&mut self, id: &LoopId, event: Event) {
        self.take(Fact::Loop(id.clone(), LoopFact::Moved(event)));
        let standing = Standing::of(self.view.loop_state(id).expect("a loop"));
        self.take(say::run(RunEvent::LoopMoved { loop_id: id.clone(), standing }));
    }

    /// What can come at any time.
    fn odd(&mut self, id: &LoopId, state: &Loop, pick: usize) {
        self.heads += 1;
        let by = || "ann".to_owned();
        let finding =
            state.ledger.entries().first().map_or("f-none".into(), |entry| entry.finding.id.clone());
        let events = [
            Event::HeadMoved { head: say::head(self.heads) },
            Event::BudgetReached,
            decided(finding.clone(), State::Refuted),
            decided(finding, State::OutOfScope),
            Event::Cancelled { by: by() },
            Event::PersonEdited {
                verdict: FinalWord::ALL[pick % 4],
                by: by(),
                reason: by(),
                head: None,
                findings: Vec::new(),
            },
        ];
        self.moved(id, events[pick % events.len()].clone());
    }

    /// Every answer to what the loop waits for.
    fn events(&mut self, state: &Loop) -> Vec<Event> {
        if state.stage == Stage::Queued {
            return vec![Event::Started { head: say::head(0) }];
        }
        if state.is_done() {
            return vec![Event::PersonRetried { by: "ann".into() }];
        }
        let mut events = Vec::new();
        for wish in outstanding(state, &self.policy) {
            match wish {
                Effect::Spawn(job) => events.extend(self.reports(&job)),
                Effect::Ask(question) => events.extend(answers(&question)),
                Effect::Wait { hold } => events.push(Event::Resumed { hold }),
                Effect::AwaitLanding => events.push(Event::LandingGranted),
                Effect::Kill { .. } | Effect::Finish(_) => {}
            }
        }
        events
    }

    fn reports(&mut self, job: &Job) -> Vec<Event> {
        self.heads += 1;
        let (attempt, head) = (job.attempt, say::head(self.heads));
        let findings = || vec![say::finding("checks", WORDS[2])];
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
                Event::LandingEnded { attempt, report: LandReport::Landed { commit: head.commit.clone() } },
                Event::LandingEnded { attempt, report: LandReport::SentBack { head, findings: findings() } },
            ],
        };
        let late = signoff_core::ids::AttemptId(attempt.0 + 100);
        events.extend([
            Event::AttemptFailed { attempt, failure: Failure::TimedOut },
            Event::AttemptLost { attempt, loss: Loss::Crashed },
            Event::RateLimited { attempt, plan: LimitPlan::WaitUntil(say::at(9)), why: None, turn: None },
            Event::ReviewArrived { attempt: late, review: say::review("code", Verdict::Approved, &[]) },
        ]);
        events
    }
}

fn reviews(job: &Job, reviewer: &str, commit: &Commit) -> Vec<Event> {
    let said = |verdict, words: &[&str]| {
        let mut review = say::review(reviewer, verdict, words);
        review.judged.commit = Some(commit.clone());
        Event::ReviewArrived { attempt: job.attempt, review }
    };
    let mut elsewhere = say::review(reviewer, Verdict::Approved, &[]);
    elsewhere.judged.commit = Some("elsewhere".into());
    let unread = Verdict::Inconclusive(Inconclusive::Missing("nothing said".into()));
    vec![
        said(Verdict::Approved, &[]),
        said(Verdict::Approved, &[]),
        said(Verdict::Approved, &WORDS[3..]),
        said(Verdict::ChangesRequested, &WORDS[..1]),
        said(Verdict::ChangesRequested, &WORDS[1..3]),
        said(Verdict::ChangesRequested, &[WORDS[0], WORDS[0]]),
        said(Verdict::NeedsDiscussion, &[]),
        said(unread, &WORDS[..1]),
        Event::ReviewArrived { attempt: job.attempt, review: elsewhere },
    ]
}

fn answers(question: &Question) -> Vec<Event> {
    let answered = |(id, choice): (QuestionId, Choice)| Event::PersonAnswered {
        question: id,
        choice,
        by: "ann".to_owned(),
    };
    question.choices.iter().map(|choice| answered((question.id, *choice))).collect()
}

fn decided(finding: FindingId, state: State) -> Event {
    let by = DecidedBy::Person("ann".to_owned());
    Event::FindingDecided { finding, decision: Decision { state, by, commit: None, evidence: "so".into() } }
}
