//! The view of a run while its log grows.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use signoff_core::group::{LoopStatus, RunEvent, RunPolicy};
use signoff_core::ids::{AttemptId, LoopId, QuestionId, RunId, TaskId};
use signoff_core::machine::{
    AttemptFailure, CheckReport, Choice, Effect, Event, Head, Job, JobKind, LandingReport, Outcome, PauseReason,
    Policy, WorkReport, outstanding,
};
use signoff_core::review::{Finding, Review, ReviewerKind, Usage, Verdict};
use signoff_core::view::{LoopRow, RunState};
use signoff_core::wire::{Fact, Launch, LoopFact, RecordedFact, RunFact};
use signoff_core::workflow::{PhaseKind, preset};

use crate::wire::examples;

fn policy(name: &str) -> Policy {
    let mut workflow = preset(name).expect(name);
    for phase in &mut workflow.phases {
        if let PhaseKind::Gate(gate_policy) = &mut phase.kind {
            gate_policy.gate.enabled = true;
        }
    }
    Policy::new(workflow)
}

/// A growing log, with the rows of the view after each fact.
struct Story {
    log: Vec<RecordedFact>,
    view: RunState,
    /// A state that only takes over the transitions.
    follower: RunState,
    rows: Vec<String>,
    badges: BTreeSet<&'static str>,
}

impl Story {
    fn new(policy: Policy) -> Self {
        let (view, follower) = (RunState::default(), RunState::default());
        let mut story = Self { log: Vec::new(), view, follower, rows: Vec::new(), badges: BTreeSet::new() };
        let run_policy = RunPolicy::new(&policy.workflow, 2);
        story.apply("opened", Fact::Run(RunFact::Opened { policy: run_policy, workflow: Box::new(policy) }));
        story
    }

    fn apply(&mut self, what: &str, fact: Fact) {
        let seq = self.log.len() as u64 + 1;
        let at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seq as i64);
        self.log.push(RecordedFact { run: RunId(1), seq, at, fact });
        self.follower.apply_transition(&self.view.apply(self.log[self.log.len() - 1].clone()));
        assert_eq!(self.follower, self.view, "{what}");
        let rows = self.view.rows();
        self.badges.extend(rows.iter().map(|row| row.badge.into_str()));
        let rows: Vec<_> = rows.iter().map(line).collect();
        self.rows.push(format!("{what:<22}| {}", rows.join(" || ")).trim_end().to_owned());
    }

    fn run(&mut self, event: RunEvent) {
        let form = serde_json::to_value(&event).expect("JSON");
        self.apply(&kind(&form), Fact::Run(RunFact::Transitioned(event)));
    }

    fn add(&mut self, id: &str, task: u64) {
        let (title, branch) = (format!("task {task}"), format!("signoff/task-{task}"));
        self.apply("added", Fact::Loop(id.into(), LoopFact::Added { task: TaskId(task), title, branch }));
    }

    fn event(&mut self, id: &str, event: Event) {
        let form = serde_json::to_value(&event).expect("JSON");
        self.apply(&kind(&form), Fact::Loop(id.into(), LoopFact::Transitioned(event)));
    }

    /// An event that also changes the status of the loop in its run.
    fn moved(&mut self, id: &str, event: Event) {
        self.event(id, event);
        let loop_id = LoopId::from(id);
        let status = LoopStatus::for_loop(self.view.loop_state(&loop_id).expect("a loop"));
        self.run(RunEvent::LoopStatusChanged { loop_id, status });
    }

    fn attempt(&mut self, id: &str, attempt: u64, cents: u64) {
        let attempt = AttemptId(attempt);
        self.apply(
            "attempt_started",
            Fact::Loop(
                id.into(),
                LoopFact::AttemptStarted { attempt, launch: Launch { agent: "fake".to_owned(), ..Launch::default() } },
            ),
        );
        let usage = Usage { cost_micro_usd: cents * 10_000, ..Usage::default() };
        self.apply("used", Fact::Loop(id.into(), LoopFact::Used { attempt, usage }));
    }

    fn transcript(self) -> String {
        assert_eq!(self.view, RunState::from_log(&self.log));
        self.rows.join("\n")
    }
}

fn kind(form: &serde_json::Value) -> String {
    let key = form.as_object().and_then(|map| map.keys().next());
    key.map_or_else(|| form.as_str().unwrap_or_default().to_owned(), Clone::clone)
}

fn line(row: &LoopRow) -> String {
    let status = serde_json::to_value(row.status).expect("JSON");
    let max = row.max_cycles.map_or("-".to_owned(), |max| max.to_string());
    let cents = row.usage.cost_micro_usd / 10_000;
    let mut line = format!(
        "{} {} {} {} {}/{max} {cents}¢ s{}",
        row.id,
        row.badge.into_str(),
        status.as_str().unwrap_or_default(),
        if row.phase.is_empty() { "-" } else { &row.phase },
        row.cycle,
        row.since.map_or(0, Timestamp::as_second),
    );
    if row.open_findings > 0 {
        line += &format!(" {} open", row.open_findings);
    }
    if let Some(verdict) = row.final_verdict {
        line += &format!(" {}", verdict.into_str());
    }
    if !row.last_line.is_empty() {
        line += &format!(" “{}”", row.last_line);
    }
    if let Some(question) = &row.question {
        line += &format!(" {}: {}", question.id, question.text);
    }
    line
}

fn head(number: u32) -> Head {
    Head { commit: format!("c{number}").as_str().into(), tree: format!("t{number}").as_str().into() }
}

fn complete(attempt: u64, number: u32) -> Event {
    Event::WorkEnded { attempt: AttemptId(attempt), report: WorkReport::Complete { head: head(number) } }
}

fn arrived(attempt: u64, reviewer: &str, verdict: Verdict) -> Event {
    let mut findings = Vec::new();
    if verdict == Verdict::ChangesRequested {
        findings.push(Finding { sources: vec![reviewer.into()], ..examples::finding() });
    }
    let review = Review { findings, ..Review::new(reviewer.into(), ReviewerKind::General, verdict) };
    Event::ReviewArrived { attempt: AttemptId(attempt), review: Box::new(review) }
}

fn failed(attempt: u64) -> Event {
    Event::AttemptFailed { attempt: AttemptId(attempt), failure: AttemptFailure::TimedOut }
}

#[test]
fn a_task_that_is_approved_in_its_second_cycle() {
    let mut story = Story::new(policy("plan"));
    story.run(RunEvent::Started);
    story.add("a", 29);
    story.run(RunEvent::GroupsPlanned { groups: vec![vec!["a".into()]] });
    story.moved("a", Event::Started { head: head(0) });
    story.attempt("a", 1, 10);
    let line = "Reading src/a.rs".to_owned();
    story.apply("output", Fact::Loop("a".into(), LoopFact::AgentOutput { attempt: AttemptId(1), line }));
    story.event("a", complete(1, 1));
    story.attempt("a", 2, 2);
    story.event("a", arrived(2, "spec", Verdict::Approved));
    story.event("a", arrived(3, "code", Verdict::ChangesRequested));
    story.attempt("a", 4, 5);
    story.event("a", complete(4, 2));
    story.event("a", arrived(5, "spec", Verdict::Approved));
    story.event("a", failed(6));
    story.event("a", failed(7));
    let answer = Event::PersonAnswered { question: QuestionId(1), choice: Choice::Retry, by: "ann".into() };
    story.event("a", answer);
    story.moved("a", arrived(8, "code", Verdict::Approved));
    insta::assert_snapshot!(story.transcript(), @r"
        opened                |
        started               |
        added                 | a WAIT pending implement 0/3 0¢ s3
        groups_planned        | a WAIT pending implement 0/3 0¢ s3
        started               | a SPAWN in_progress implement 0/3 0¢ s5
        loop_moved            | a SPAWN in_progress implement 0/3 0¢ s5
        attempt_started       | a WORK in_progress implement 0/3 0¢ s5
        used                  | a WORK in_progress implement 0/3 10¢ s5
        output                | a WORK in_progress implement 0/3 10¢ s5 “Reading src/a.rs”
        work_ended            | a SPAWN in_progress review 1/3 10¢ s10 “Reading src/a.rs”
        attempt_started       | a REVIEW in_progress review 1/3 10¢ s10 “Reading src/a.rs”
        used                  | a REVIEW in_progress review 1/3 12¢ s10 “Reading src/a.rs”
        review_arrived        | a SPAWN in_progress review 1/3 12¢ s10 “Reading src/a.rs”
        review_arrived        | a SPAWN in_progress review 1/3 12¢ s14 1 open “Reading src/a.rs”
        attempt_started       | a FIX in_progress review 1/3 12¢ s14 1 open “Reading src/a.rs”
        used                  | a FIX in_progress review 1/3 17¢ s14 1 open “Reading src/a.rs”
        work_ended            | a SPAWN in_progress review 2/3 17¢ s17 1 open “Reading src/a.rs”
        review_arrived        | a SPAWN in_progress review 2/3 17¢ s17 1 open “Reading src/a.rs”
        attempt_failed        | a SPAWN in_progress review 2/3 17¢ s17 1 open “Reading src/a.rs”
        attempt_failed        | a ASK waiting review 2/3 17¢ s20 1 open “Reading src/a.rs” q1: code gave no usable review; the others did. Retry, proceed without, or stop?
        person_answered       | a SPAWN in_progress review 2/3 17¢ s21 1 open “Reading src/a.rs”
        review_arrived        | a DONE completed - 2/3 17¢ s22 APPROVED “Reading src/a.rs”
        loop_moved            | a DONE completed - 2/3 17¢ s22 APPROVED “Reading src/a.rs”
    ");
}

#[test]
fn a_group_of_two_waits_for_the_one_that_is_stuck() {
    let mut story = Story::new(policy("loops"));
    story.add("a", 1);
    story.add("b", 2);
    story.run(RunEvent::Started);
    story.run(RunEvent::GroupsPlanned { groups: vec![vec!["a".into(), "b".into()]] });
    story.moved("a", Event::Started { head: head(0) });
    story.moved("b", Event::Started { head: head(0) });
    story.event("a", complete(1, 1));
    story.moved("a", arrived(2, "general", Verdict::Approved));
    let report = WorkReport::Stuck { head: head(0), reason: "no way on".into() };
    story.moved("b", Event::WorkEnded { attempt: AttemptId(1), report });
    story.moved("b", Event::Cancelled { by: "ann".into() });
    story.moved("a", Event::LandingGranted);
    let report = LandingReport::Landed { commit: "m1".into() };
    story.moved("a", Event::LandingEnded { attempt: AttemptId(3), report });
    story.run(RunEvent::FinalReviewEnded { outcome: Outcome::Approved { commit: "m1".into() } });
    insta::assert_snapshot!(story.transcript(), @r"
        opened                |
        added                 | a WAIT pending implement 0/4 0¢ s2
        added                 | a WAIT pending implement 0/4 0¢ s2 || b WAIT pending implement 0/4 0¢ s3
        started               | a WAIT pending implement 0/4 0¢ s2 || b WAIT pending implement 0/4 0¢ s3
        groups_planned        | a WAIT pending implement 0/4 0¢ s2 || b WAIT pending implement 0/4 0¢ s3
        started               | a SPAWN in_progress implement 0/4 0¢ s6 || b WAIT pending implement 0/4 0¢ s3
        loop_moved            | a SPAWN in_progress implement 0/4 0¢ s6 || b WAIT pending implement 0/4 0¢ s3
        started               | a SPAWN in_progress implement 0/4 0¢ s6 || b SPAWN in_progress implement 0/4 0¢ s8
        loop_moved            | a SPAWN in_progress implement 0/4 0¢ s6 || b SPAWN in_progress implement 0/4 0¢ s8
        work_ended            | a SPAWN in_progress review 1/4 0¢ s10 || b SPAWN in_progress implement 0/4 0¢ s8
        review_arrived        | a WAIT in_progress - 1/4 0¢ s11 APPROVED || b SPAWN in_progress implement 0/4 0¢ s8
        loop_moved            | a WAIT in_progress - 1/4 0¢ s11 APPROVED || b SPAWN in_progress implement 0/4 0¢ s8
        work_ended            | a WAIT in_progress - 1/4 0¢ s11 APPROVED || b STUCK stuck implement 0/4 0¢ s13
        loop_moved            | a WAIT blocked - 1/4 0¢ s11 APPROVED || b STUCK stuck implement 0/4 0¢ s13
        cancelled             | a WAIT blocked - 1/4 0¢ s11 APPROVED || b DONE cancelled implement 0/4 0¢ s15
        loop_moved            | a WAIT in_progress - 1/4 0¢ s11 APPROVED || b DONE cancelled implement 0/4 0¢ s15
        landing_granted       | a LAND in_progress - 1/4 0¢ s17 APPROVED || b DONE cancelled implement 0/4 0¢ s15
        loop_moved            | a LAND in_progress - 1/4 0¢ s17 APPROVED || b DONE cancelled implement 0/4 0¢ s15
        landing_ended         | a DONE completed - 1/4 0¢ s19 APPROVED || b DONE cancelled implement 0/4 0¢ s15
        loop_moved            | a DONE completed - 1/4 0¢ s19 APPROVED || b DONE cancelled implement 0/4 0¢ s15
        final_review_ended    | a DONE completed - 1/4 0¢ s19 APPROVED || b DONE cancelled implement 0/4 0¢ s15
    ");
}

#[test]
fn every_badge_can_be_seen() {
    let mut story = Story::new(policy("phases"));
    story.add("a", 1);
    story.run(RunEvent::Started);
    story.run(RunEvent::GroupsPlanned { groups: vec![vec!["a".into()]] });
    story.moved("a", Event::Started { head: head(0) });
    for number in 1..40 {
        let Some(job) = job(&story) else { break };
        story.attempt("a", job.attempt.0, 1);
        story.event("a", successful_end(job, number));
    }
    let mut stuck = Story::new(policy("slots"));
    stuck.add("a", 1);
    stuck.event("a", Event::Started { head: head(0) });
    stuck.event("a", failed(1));
    let mut asking = Story::new(policy("plan"));
    asking.add("a", 1);
    asking.event("a", Event::Started { head: head(0) });
    asking.event("a", failed(1));
    let mut landing = Story::new(policy("slots"));
    landing.add("a", 1);
    landing.event("a", Event::Started { head: head(0) });
    landing.event("a", Event::BudgetReached);
    landing.event("a", Event::Resumed { reason: PauseReason::Budget });
    landing.event("a", complete(2, 1));
    landing.event("a", arrived(3, "general", Verdict::ChangesRequested));
    landing.attempt("a", 4, 1);
    landing.event("a", complete(4, 2));
    landing.event("a", arrived(5, "general", Verdict::Approved));
    let report = LandingReport::Landed { commit: "m1".into() };
    landing.event("a", Event::LandingEnded { attempt: AttemptId(6), report });
    let seen: BTreeSet<_> = [story, stuck, asking, landing].into_iter().flat_map(|one| one.badges).collect();
    insta::assert_snapshot!(seen.into_iter().collect::<Vec<_>>().join(" "), @r"
        ASK CHECK DONE FIX LAND PAUSED REVIEW SPAWN STUCK WAIT WORK
    ");
}

fn job(story: &Story) -> Option<Job> {
    let machine = story.view.loop_state(&"a".into())?;
    let effect = outstanding(machine, &policy("phases")).into_iter().next()?;
    if let Effect::Spawn(job) = effect { Some(job) } else { None }
}

/// The successful end of a job.
fn successful_end(job: Job, number: u32) -> Event {
    let attempt = job.attempt;
    match job.kind {
        JobKind::Review { reviewer, .. } => arrived(attempt.0, reviewer.as_str(), Verdict::Approved),
        JobKind::Check => Event::CheckEnded { attempt, report: CheckReport::Passed },
        JobKind::Work { .. }
        | JobKind::Research { .. }
        | JobKind::Fix { .. }
        | JobKind::Combine { .. }
        | JobKind::Land => complete(attempt.0, number),
    }
}
