//! Runs loops of the core with scripted events, and records their log.

use std::collections::BTreeSet;
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use signoff_core::group::{LoopStatus, RunEvent, RunPolicy};
use signoff_core::ids::{AttemptId, LoopId, RunId, TaskId};
use signoff_core::machine::{
    AttemptFailure, CheckReport, Choice, Effect, Event, Head, Job, JobKind, LandingReport, Policy, Stage, WorkReport,
    outstanding,
};
use signoff_core::review::{
    Confidence, Finding, Note, Review, ReviewerKind, Severity, Usage, Verdict, Violation, ViolationCode,
};
use signoff_core::similarity::assign_ids;
use signoff_core::view::{RunState, TaskRow, Transition};
use signoff_core::wire::{Fact, Launch, LoopFact, RecordedFact, RunFact};
use signoff_core::workflow::{PhaseKind, preset};
use signoff_term::line::{LineNaming, LineRenderer};
use signoff_term::show::{RunHistory, TaskReport};

/// A preset with its gates enabled.
pub fn reviewed(name: &str) -> Policy {
    let mut policy = Policy::new(preset(name).expect(name));
    for phase in &mut policy.workflow.phases {
        if let (PhaseKind::Gate(gate_policy), false) = (&mut phase.kind, phase.name == "implement_review") {
            gate_policy.gate.enabled = true;
        }
    }
    policy
}

pub fn head(number: u32) -> Head {
    Head { commit: format!("c{number}").as_str().into(), tree: format!("t{number}").as_str().into() }
}

/// A finding of one reviewer, with its location as `file:line`.
pub fn finding(reviewer: &str, severity: Severity, place: &str, description: &str) -> Finding {
    let (file, line) = place.split_once(':').unwrap_or((place, ""));
    let mut findings = [Finding {
        file: Some(file.to_owned()).filter(|file| !file.is_empty()),
        line: line.parse().ok(),
        ..Finding::new(&reviewer.into(), "bug", severity, description)
    }];
    assign_ids(&mut findings);
    let [finding] = findings;
    finding
}

pub struct Story {
    pub log: Vec<RecordedFact>,
    pub transitions: Vec<Transition>,
    pub view: RunState,
    loop_id: LoopId,
    heads: u32,
    launched: BTreeSet<(LoopId, AttemptId)>,
}

/// Prints the lines, since the log is too long to read.
impl fmt::Debug for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines())
    }
}

impl Story {
    /// A run with this policy and no tasks yet.
    pub fn new(policy: Policy) -> Self {
        let mut machine = Self {
            log: Vec::new(),
            transitions: Vec::new(),
            view: RunState::default(),
            loop_id: "none".into(),
            heads: 0,
            launched: BTreeSet::new(),
        };
        let run_policy = RunPolicy::new(&policy.workflow, 2);
        machine.record(Fact::Run(RunFact::Opened { policy: run_policy, workflow: Box::new(policy) }));
        machine
    }

    /// One started task with a preset.
    pub fn task(policy: Policy) -> Self {
        Self::new(policy).plan(&[&[(29, "Add user authentication")]]).starts(29)
    }

    pub fn record(&mut self, fact: Fact) {
        let seq = self.log.len() as u64 + 1;
        let at: Timestamp = "2026-01-29T10:00:00Z".parse().expect("a time");
        let at = at + SignedDuration::from_secs(10 * seq as i64);
        self.log.push(RecordedFact { run: RunId(3), seq, at, fact });
        self.transitions.push(self.view.apply(self.log[self.log.len() - 1].clone()));
    }

    /// Groups of tasks, by number and title.
    pub fn plan(mut self, groups: &[&[(u64, &str)]]) -> Self {
        self.run(RunEvent::Started);
        for (task, title) in groups.iter().flat_map(|group| group.iter()) {
            let branch = format!("signoff/task-{task}");
            let added = LoopFact::Added { task: TaskId(*task), title: (*title).to_owned(), branch };
            self.record(Fact::Loop(id(*task), added));
        }
        let groups = groups.iter().map(|group| group.iter().map(|(task, _)| id(*task)).collect()).collect();
        self.run(RunEvent::GroupsPlanned { groups });
        self
    }

    pub fn run(&mut self, event: RunEvent) {
        self.record(Fact::Run(RunFact::Transitioned(event)));
    }

    /// Selects the task for the following events.
    pub fn on(mut self, task: u64) -> Self {
        self.loop_id = id(task);
        self
    }

    /// Selects a loop without a task for the following events.
    pub fn on_loop(mut self, loop_id: &str) -> Self {
        self.loop_id = loop_id.into();
        self
    }

    pub fn starts(self, task: u64) -> Self {
        let mut machine = self.on(task);
        let placed = LoopFact::WorkspaceCreated { base: "c0".into(), worktree: format!(".signoff/worktrees/{task}") };
        machine.record(Fact::Loop(id(task), placed));
        machine.then(Event::Started { head: head(0) })
    }

    /// Records an event, and what the engine records with it.
    pub fn then(mut self, event: Event) -> Self {
        let loop_id = self.loop_id.clone();
        if let Some(attempt) = event.ends_attempt() {
            let usage = Usage {
                cost_micro_usd: 120_000,
                input_tokens: 900,
                output_tokens: 80,
                duration_ms: 20_000,
                ..Usage::default()
            };
            self.record(Fact::Loop(loop_id.clone(), LoopFact::Used { attempt, usage }));
        }
        self.record(Fact::Loop(loop_id.clone(), LoopFact::Transitioned(event)));
        for job in self.jobs() {
            if self.launched.insert((loop_id.clone(), job.attempt)) {
                let launch = launch(&job, self.view.row(&loop_id).expect("a row").phase);
                let attempt = job.attempt;
                self.record(Fact::Loop(loop_id.clone(), LoopFact::AttemptStarted { attempt, launch }));
            }
        }
        if loop_id.is_run_level() {
            return self;
        }
        let status = LoopStatus::for_loop(self.view.loop_state(&loop_id).expect("a loop"));
        self.run(RunEvent::LoopStatusChanged { loop_id, status });
        self
    }

    pub fn jobs(&self) -> Vec<Job> {
        let (machine, policy) = (self.view.loop_state(&self.loop_id), self.view.policy(&self.loop_id));
        let effects = machine.zip(policy).map(|(machine, policy)| outstanding(machine, policy)).unwrap_or_default();
        effects
            .into_iter()
            .filter_map(|effect| if let Effect::Spawn(job) = effect { Some(job) } else { None })
            .collect()
    }

    pub fn attempt(&self, is_it: impl Fn(&JobKind) -> bool) -> AttemptId {
        let job = self.jobs().into_iter().find(|job| is_it(&job.kind));
        job.unwrap_or_else(|| panic!("no such attempt: {:#?}", self.view.loop_state(&self.loop_id))).attempt
    }

    fn writer(&self) -> AttemptId {
        self.attempt(|kind| matches!(kind, JobKind::Work { .. } | JobKind::Fix { .. } | JobKind::Research { .. }))
    }

    pub fn reviewer(&self, name: &str) -> AttemptId {
        self.attempt(|kind| matches!(kind, JobKind::Review { reviewer, .. } if reviewer.as_str() == name))
    }

    pub fn program(&self) -> AttemptId {
        self.attempt(|kind| matches!(kind, JobKind::Check | JobKind::Combine { .. } | JobKind::Land))
    }

    fn new_head(&mut self) -> Head {
        self.heads += 1;
        head(self.heads)
    }

    pub fn works(mut self) -> Self {
        let (attempt, head) = (self.writer(), self.new_head());
        self.then(Event::WorkEnded { attempt, report: WorkReport::Complete { head } })
    }

    pub fn reports_incomplete(mut self) -> Self {
        let (attempt, head) = (self.writer(), self.new_head());
        self.then(Event::WorkEnded { attempt, report: WorkReport::Incomplete { head } })
    }

    pub fn gives_up(mut self, reason: &str) -> Self {
        let (attempt, head) = (self.writer(), self.new_head());
        self.then(Event::WorkEnded { attempt, report: WorkReport::Stuck { head, reason: reason.to_owned() } })
    }

    pub fn writer_fails(self, failure: AttemptFailure) -> Self {
        let attempt = self.writer();
        self.then(Event::AttemptFailed { attempt, failure })
    }

    pub fn reviewer_fails(self, name: &str, failure: AttemptFailure) -> Self {
        let attempt = self.reviewer(name);
        self.then(Event::AttemptFailed { attempt, failure })
    }

    pub fn answers(self, name: &str, review: Review) -> Self {
        let attempt = self.reviewer(name);
        self.then(Event::ReviewArrived { attempt, review: Box::new(review) })
    }

    pub fn approves(self, name: &str) -> Self {
        let review = review(name, Verdict::Approved, &[]);
        self.answers(name, review)
    }

    /// A review that requests changes, most severe finding first.
    pub fn objects(self, name: &str, findings: &[(Severity, &str, &str)]) -> Self {
        let review = review(name, Verdict::ChangesRequested, findings);
        self.answers(name, review)
    }

    pub fn answers_unclearly(self, name: &str) -> Self {
        let violation = Violation::new(ViolationCode::NoVerdict, 0, "there is no verdict line");
        self.answers(name, Review::inconclusive(name.into(), kind(name), violation))
    }

    pub fn checks(self, report: CheckReport) -> Self {
        let attempt = self.program();
        self.then(Event::CheckEnded { attempt, report })
    }

    pub fn lands(self) -> Self {
        let attempt = self.program();
        let report = LandingReport::Landed { commit: "m1".into() };
        self.then(Event::LandingEnded { attempt, report })
    }

    /// The landing is rejected because of a conflict with an earlier one.
    pub fn landing_rejected(mut self, findings: Vec<Finding>) -> Self {
        let (attempt, head) = (self.program(), self.new_head());
        self.then(Event::LandingEnded { attempt, report: LandingReport::SentBack { head, findings } })
    }

    /// Starts a loop without a task, with a part of the run's workflow.
    pub fn serves(mut self, loop_id: LoopId, part: Policy) -> Self {
        self.record(Fact::Loop(loop_id.clone(), LoopFact::PolicySet { policy: Box::new(part) }));
        self.loop_id = loop_id;
        self.then(Event::Started { head: head(0) })
    }

    /// Ends the checkpoint review of a task.
    pub fn checkpoint_reviewed(mut self, task: u64, review: Review) -> Self {
        let findings = review.findings.clone();
        self.record(Fact::Loop(id(task), LoopFact::CheckpointReviewed { review: Box::new(review) }));
        let mut machine = self.on(task).then(Event::CheckpointEnded { findings, number: Some(1) });
        machine.run(RunEvent::CheckpointReviewed { loop_id: id(task) });
        machine
    }

    pub fn person(self, choice: Choice) -> Self {
        let stage = self.view.loop_state(&self.loop_id).map(|machine| machine.stage.clone());
        let Some(Stage::Waiting { question, .. }) = stage else { panic!("no open question") };
        self.then(Event::PersonAnswered { question: question.id, choice, by: "ann".into() })
    }

    pub fn retry(self) -> Self {
        self.then(Event::PersonRetried { by: "ann".into() })
    }

    /// The transitions of the same log in another run.
    pub fn in_run(&self, run: u64) -> Vec<Transition> {
        transitions(self.log.iter().map(|recorded| RecordedFact { run: RunId(run), ..recorded.clone() }))
    }

    /// The lines of the whole log.
    pub fn lines(&self) -> String {
        self.lines_named(LineNaming::WhenNeeded)
    }

    pub fn lines_named(&self, naming: LineNaming) -> String {
        let mut renderer = LineRenderer::new(naming);
        let lines: Vec<_> = self.transitions.iter().flat_map(|transition| renderer.apply(transition)).collect();
        assert_eq!(renderer.state(), &self.view);
        lines.join("\n")
    }
}

/// The transitions of a log.
pub fn transitions(log: impl IntoIterator<Item = RecordedFact>) -> Vec<Transition> {
    let mut state = RunState::default();
    log.into_iter().map(|recorded| state.apply(recorded)).collect()
}

/// All loops of a log.
pub fn history(log: impl IntoIterator<Item = RecordedFact>) -> RunHistory {
    let mut history = RunHistory::default();
    history.extend(log);
    history
}

/// The report of a task from the log of its run; empty for a task without a run.
pub fn task_report(task: TaskRow, log: Vec<RecordedFact>, loop_id: &LoopId, artifacts: Vec<String>) -> TaskReport {
    RunHistory::for_loop(log, loop_id).report(task, loop_id, artifacts)
}

/// The lines of a renderer about a resumed run.
pub fn caught_up(renderer: &mut LineRenderer, past: &[Transition]) -> Vec<String> {
    past.iter().for_each(|transition| renderer.replay(transition));
    renderer.caught_up()
}

/// The loop of a task.
pub fn id(task: u64) -> LoopId {
    LoopId::new(format!("task-{task}"))
}

fn kind(name: &str) -> ReviewerKind {
    name.parse::<ReviewerKind>().unwrap_or(ReviewerKind::General)
}

pub fn review(name: &str, verdict: Verdict, findings: &[(Severity, &str, &str)]) -> Review {
    let findings = findings.iter().map(|(severity, place, text)| finding(name, *severity, place, text));
    Review {
        findings: findings.collect(),
        confidence: Confidence::High,
        ..Review::new(name.into(), kind(name), verdict)
    }
}

pub fn note(file: &str, line: u32, description: &str) -> Note {
    Note { file: Some(file.to_owned()), line: Some(line), description: description.to_owned() }
}

fn launch(job: &Job, phase: String) -> Launch {
    let (role, reviewer) = match &job.kind {
        JobKind::Work { role, .. } => (role.into_str(), None),
        JobKind::Research { .. } => ("research", None),
        JobKind::Check => ("check", None),
        JobKind::Review { reviewer, .. } => ("review", Some(reviewer.clone())),
        JobKind::Fix { .. } => ("fix", None),
        JobKind::Combine { .. } => ("combine", None),
        JobKind::Land => ("land", None),
    };
    let model = Some("large".to_owned());
    Launch {
        agent: "claude".into(),
        model,
        role: role.into(),
        reviewer,
        phase,
        cycle: job.cycle,
        sandbox: None,
        resumes: None,
    }
}
