//! Drives one loop and records a transcript with one line per event.

use signoff_core::command::refusal_findings;
use signoff_core::ids::AttemptId;
use signoff_core::machine::{
    AttemptFailure, AttemptLoss, CONFLICT, CheckReport, Choice, Effect, Event, FallbackChain, FinalVerdict, Head, Job,
    JobKind, LandingReport, LimitPlan, Loop, Outcome, PauseReason, Policy, ReviewScope, Stage, WorkReport, outstanding,
    rate_limit_event, step,
};
use signoff_core::policy::TimeSpan;
use signoff_core::rate_limit::{Backoff, RateLimited};
use signoff_core::review::{Finding, Review, Severity};

use crate::machine::builders;

pub struct Story {
    pub policy: Policy,
    pub state: Loop,
    /// All events so far.
    pub events: Vec<Event>,
    lines: Vec<String>,
    heads: u32,
}

impl Story {
    pub fn new(policy: Policy) -> Self {
        let mut story = Self::queued(policy);
        story.happens(Event::BaseSet { tree: builders::head(0).tree });
        story.then("started", Event::Started { head: builders::head(0) })
    }

    /// A loop that has not begun.
    pub fn queued(policy: Policy) -> Self {
        Self { policy, state: Loop::default(), events: Vec::new(), lines: Vec::new(), heads: 0 }
    }

    /// The transcript: one line per event.
    pub fn transcript(self) -> String {
        self.lines.join("\n")
    }

    /// Applies any event and records it under `name`.
    pub fn then(mut self, name: &str, event: Event) -> Self {
        self.apply(name, event);
        self
    }

    /// Applies an event without a line in the transcript.
    fn happens(&mut self, event: Event) -> Vec<Effect> {
        self.events.push(event.clone());
        let (state, effects) = step(self.state.clone(), event, &self.policy);
        self.state = state;
        effects
    }

    pub fn apply(&mut self, name: &str, event: Event) {
        let effects = self.happens(event);
        let effects: Vec<_> = effects.iter().map(|effect| self.effect(effect)).collect();
        let effects = if effects.is_empty() { "–".to_owned() } else { effects.join("; ") };
        self.lines.push(format!("{name:<34} → {effects}"));
    }

    /// The outstanding jobs.
    pub fn jobs(&self) -> Vec<Job> {
        let job = |effect| match effect {
            Effect::Spawn(job) => Some(job),
            Effect::Kill { .. } | Effect::Ask(_) | Effect::Wait { .. } | Effect::AwaitLanding | Effect::Finish(_) => {
                None
            }
        };
        outstanding(&self.state, &self.policy).into_iter().filter_map(job).collect()
    }

    pub fn job(&self, wanted: &str, is_it: impl Fn(&Job) -> bool) -> Job {
        let mut jobs = self.jobs().into_iter();
        jobs.find(is_it).unwrap_or_else(|| panic!("no {wanted} is at work in {:?}", self.state.stage))
    }

    /// The attempt that changes the worktree.
    pub fn writer(&self) -> AttemptId {
        let writes =
            |job: &Job| matches!(job.kind, JobKind::Work { .. } | JobKind::Fix { .. } | JobKind::Research { .. });
        self.job("writer", writes).attempt
    }

    pub fn reviewer(&self, name: &str) -> AttemptId {
        let reviews = |job: &Job| matches!(&job.kind, JobKind::Review { reviewer, .. } if reviewer.as_str() == name);
        self.job(name, reviews).attempt
    }

    fn program(&self) -> AttemptId {
        let ours = |job: &Job| matches!(job.kind, JobKind::Check | JobKind::Combine { .. } | JobKind::Land);
        self.job("check, combination or landing", ours).attempt
    }

    pub fn new_head(&mut self) -> Head {
        self.heads += 1;
        builders::head(self.heads)
    }

    pub fn works(mut self) -> Self {
        let (attempt, head) = (self.writer(), self.new_head());
        self.then("the agent completes its work", Event::WorkEnded { attempt, report: WorkReport::Complete { head } })
    }

    pub fn goes_on(mut self) -> Self {
        let (attempt, head) = (self.writer(), self.new_head());
        self.then("the agent is not done yet", Event::WorkEnded { attempt, report: WorkReport::Incomplete { head } })
    }

    pub fn gives_up(self) -> Self {
        let (attempt, head) = (self.writer(), self.state.head.clone());
        let report = WorkReport::Stuck { head, reason: "no way on".into() };
        self.then("the agent gives up", Event::WorkEnded { attempt, report })
    }

    pub fn changes_nothing(self) -> Self {
        let (attempt, head) = (self.writer(), self.state.head.clone());
        self.then("the agent changes nothing", Event::WorkEnded { attempt, report: WorkReport::Complete { head } })
    }

    /// The agent reverts all its changes.
    pub fn reverts(mut self) -> Self {
        let attempt = self.writer();
        let head = Head { tree: builders::head(0).tree, ..self.new_head() };
        self.then("the agent reverts everything", Event::WorkEnded { attempt, report: WorkReport::Complete { head } })
    }

    pub fn writer_fails(self) -> Self {
        let attempt = self.writer();
        self.then("the agent fails", Event::AttemptFailed { attempt, failure: AttemptFailure::Exit { code: 1 } })
    }

    pub fn answers(self, name: &str, what: &str, review: Review) -> Self {
        let attempt = self.reviewer(name);
        self.then(&format!("{name} {what}"), Event::ReviewArrived { attempt, review: Box::new(review) })
    }

    pub fn approves(self, name: &str) -> Self {
        self.answers(name, "approves", builders::approves(name))
    }

    pub fn objects(self, name: &str, files: &[&str]) -> Self {
        self.answers(name, &format!("objects to {}", files.join(" ")), builders::objects(name, files))
    }

    pub fn discusses(self, name: &str) -> Self {
        self.answers(name, "wants to discuss", builders::discusses(name))
    }

    pub fn unreadable(self, name: &str) -> Self {
        self.answers(name, "is not understood", builders::unreadable(name))
    }

    pub fn times_out(self, name: &str) -> Self {
        let attempt = self.reviewer(name);
        self.then(&format!("{name} times out"), Event::AttemptFailed { attempt, failure: AttemptFailure::TimedOut })
    }

    pub fn check_passes(self) -> Self {
        let attempt = self.program();
        self.then("the checks pass", Event::CheckEnded { attempt, report: CheckReport::Passed })
    }

    pub fn check_fails(self) -> Self {
        let attempt = self.program();
        let findings = vec![from("checks", "test.rs")];
        self.then("the checks fail", Event::CheckEnded { attempt, report: CheckReport::Failed { findings } })
    }

    pub fn combines(mut self) -> Self {
        let (attempt, head) = (self.program(), self.new_head());
        self.then("the fixes fit together", Event::FixesCombined { attempt, head })
    }

    pub fn overlaps(mut self, kept: &[usize]) -> Self {
        let (attempt, head) = (self.program(), self.new_head());
        let kept = kept.to_vec();
        self.then("the fixes overlap", Event::FixesOverlapped { attempt, kept, head })
    }

    pub fn may_land(self) -> Self {
        self.then("the group lets it land", Event::LandingGranted)
    }

    pub fn lands(self) -> Self {
        let attempt = self.program();
        let report = LandingReport::Landed { commit: "m1".into() };
        self.then("it lands", Event::LandingEnded { attempt, report })
    }

    pub fn conflicts(mut self) -> Self {
        let (attempt, head) = (self.program(), self.new_head());
        let conflict = Finding { kind: CONFLICT.to_owned(), ..from("landing", "shared.rs") };
        let report = LandingReport::SentBack { head, findings: vec![conflict] };
        self.then("landing meets a conflict", Event::LandingEnded { attempt, report })
    }

    pub fn landing_checks_fail(mut self) -> Self {
        let (attempt, head) = (self.program(), self.new_head());
        let report = LandingReport::SentBack { head, findings: vec![from("landing", "shared.rs")] };
        self.then("the checks fail where it lands", Event::LandingEnded { attempt, report })
    }

    pub fn answer(self, choice: Choice) -> Self {
        let Stage::Waiting { question, .. } = &self.state.stage else { panic!("no question") };
        let question = question.id;
        self.then(
            &format!("a person answers {}", choice.into_str()),
            Event::PersonAnswered { question, choice, by: "ann".into() },
        )
    }

    pub fn retry(self) -> Self {
        self.then("a person retries", Event::PersonRetried { by: "ann".into() })
    }

    pub fn edit(self, verdict: FinalVerdict) -> Self {
        let event = Event::PersonEdited {
            verdict,
            by: "ann".into(),
            reason: "seen it".into(),
            head: None,
            findings: refusal_findings(verdict, "ann", "seen it"),
        };
        self.then(&format!("a person sets {}", verdict.into_str()), event)
    }

    pub fn lost(self, attempt: AttemptId) -> Self {
        self.then("the program is killed", Event::AttemptLost { attempt, loss: AttemptLoss::Crashed })
    }

    pub fn limited(self, attempt: AttemptId) -> Self {
        let plan = LimitPlan::WaitUntil(jiff::Timestamp::UNIX_EPOCH);
        self.then("rate limited", Event::RateLimited { attempt, plan, error: None, next_agent: None })
    }

    /// The machine's reaction to a rate limit, with `fallback_count` fallback agents.
    pub fn refused(self, attempt: AttemptId, fallback_count: usize) -> Self {
        let none = TimeSpan { seconds: 0 };
        let backoff = Backoff { first: none, max: none };
        let chain = FallbackChain { fallbacks: fallback_count, now: jiff::Timestamp::UNIX_EPOCH, backoff, jitter: 0 };
        let event = rate_limit_event(&self.state, attempt, RateLimited::default(), &chain, &self.policy);
        let name = if let Event::RateLimited { plan, .. } = &event {
            match plan {
                LimitPlan::FallBack => "refused: a fallback agent starts",
                LimitPlan::WaitUntil(_) => "refused: waits",
            }
        } else {
            "refused once too often"
        };
        self.then(name, event)
    }

    pub fn budget(self) -> Self {
        self.then("the budget is used up", Event::BudgetReached)
    }

    pub fn resumed(self, reason: PauseReason) -> Self {
        self.then("the wait is over", Event::Resumed { reason })
    }

    pub fn checkpoint_ends(self, files: &[&str]) -> Self {
        let findings = files.iter().map(|file| from("general", file)).collect();
        self.then("the checkpoint review is in", Event::CheckpointEnded { findings, number: Some(1) })
    }

    pub fn checkpoint_starts(self) -> Self {
        self.then("a checkpoint review starts", Event::CheckpointBegan { number: 1 })
    }

    fn effect(&self, effect: &Effect) -> String {
        match effect {
            Effect::Spawn(job) => format!("{} {}", job.attempt, self.job_text(job)),
            Effect::Kill { attempt } => format!("kill {attempt}"),
            Effect::Ask(question) => {
                let choices: Vec<_> = question.choices.iter().map(|choice| choice.into_str()).collect();
                format!("{} {}: {}", question.id, about(&question.topic), choices.join("|"))
            }
            Effect::Wait { reason } => format!("wait ({})", pause_reason_word(reason)),
            Effect::AwaitLanding => "wait for the group".to_owned(),
            Effect::Finish(outcome) => self.end(outcome),
        }
    }

    fn end(&self, outcome: &Outcome) -> String {
        let Stage::Done(ending) = &self.state.stage else { return String::new() };
        let word = outcome.kind().map_or("unreviewed", <&str>::from);
        let reason = ending.reason.map(|reason| format!(" ({})", text(&reason))).unwrap_or_default();
        let verdict = self.state.final_verdict().map_or("no verdict", <&str>::from);
        format!("END {word}{reason}, {verdict}")
    }

    fn job_text(&self, job: &Job) -> String {
        let phase = self.policy.workflow.phases.get(job.phase).map_or("landing", |phase| phase.name.as_str());
        let pass = if job.pass > 1 { format!(" pass {}", job.pass) } else { String::new() };
        let place = format!("[{phase}{pass}]");
        match &job.kind {
            JobKind::Work { role, notes } => format!("{} {place}{}", role.into_str(), noted(notes)),
            JobKind::Research { role, number } => format!("research {number} for {} {place}", role.into_str()),
            JobKind::Check => format!("check {} {place}", job.cycle),
            JobKind::Review { reviewer, scope: ReviewScope::Full, commit } => {
                format!("review {} of {commit} by {reviewer} {place}", job.cycle)
            }
            JobKind::Review { reviewer, scope: ReviewScope::Scoped, commit } => {
                format!("scoped review {} of {commit} by {reviewer} {place}", job.cycle)
            }
            JobKind::Fix { role, findings, unparsed_reviewers, notes, .. } => {
                let entry = |id| self.state.ledger.get(id).and_then(|entry| entry.finding.file.clone());
                let mut what: Vec<_> = findings.iter().filter_map(entry).collect();
                what.extend(unparsed_reviewers.iter().map(|name| format!("what {name} wrote")));
                format!("{} {} ({}) {place}{}", role.into_str(), job.cycle, what.join(" "), noted(notes))
            }
            JobKind::Combine { .. } => "combine".to_owned(),
            JobKind::Land => "land".to_owned(),
        }
    }
}

fn noted(notes: &[Finding]) -> String {
    let files: Vec<_> = notes.iter().filter_map(|note| note.file.clone()).collect();
    if files.is_empty() { String::new() } else { format!(" with notes on {}", files.join(" ")) }
}

pub fn from(source: &str, file: &str) -> Finding {
    Finding { sources: vec![source.into()], ..builders::finding(file, Severity::Critical) }
}

fn pause_reason_word(reason: &PauseReason) -> &'static str {
    match reason {
        PauseReason::Budget => "budget",
        PauseReason::RateLimit { .. } => "rate limit",
        PauseReason::Checkpoint => "checkpoint",
    }
}

fn about(topic: &signoff_core::machine::QuestionTopic) -> String {
    let value = serde_json::to_value(topic).expect("a question is JSON");
    let word = value.as_str().or_else(|| value.as_object().and_then(|map| map.keys().next().map(String::as_str)));
    word.unwrap_or_default().to_owned()
}

pub fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
