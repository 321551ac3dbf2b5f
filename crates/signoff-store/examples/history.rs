//! Writes a finished run of many tasks to the store of a repository: `history DIRECTORY TASKS FACTS`, for
//! `bench/replay.sh`.
//!
//! The facts are valid: the state machine applies each one before the next one is generated.

use std::error::Error;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use signoff_core::group::{LoopStatus, RunEvent, RunPolicy};
use signoff_core::ids::{LoopId, TaskId};
use signoff_core::machine::{Effect, Event, Head, Job, JobKind, Policy, WorkReport, outstanding};
use signoff_core::policy::Bound;
use signoff_core::review::{Finding, Review, ReviewerKind, Severity, Usage, Verdict};
use signoff_core::similarity::assign_ids;
use signoff_core::task::TaskSpec;
use signoff_core::view::RunState;
use signoff_core::wire::{Fact, Launch, LoopFact, RecordedFact, RunFact};
use signoff_core::workflow::{Landing, PhaseKind, Scheduling, preset};
use signoff_store::{Lease, NewTask, SqliteStore, Store};

/// Number of tasks in parallel.
const JOBS: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, directory, tasks, facts] = arguments.as_slice() else {
        return Err("history DIRECTORY TASKS FACTS".into());
    };
    let (tasks, facts): (usize, usize) = (tasks.parse()?, facts.parse()?);
    let store = SqliteStore::open(Path::new(directory))?;
    let new = |number: usize| NewTask {
        spec: TaskSpec { auto_review: Some(true), ..TaskSpec::from_text(&format!("Task {number} of many")) },
        auto_review: true,
        max_review_cycles: None,
    };
    let begin: Timestamp = "2026-01-01T00:00:00Z".parse()?;
    let ids = store.add_tasks(begin, &(1..=tasks).map(new).collect::<Vec<_>>())?;
    let lease = store.open_run(begin)?;
    let mut history = History::new(lease, begin);
    for wave in ids.chunks(JOBS) {
        wave.iter().for_each(|task| history.begin(*task));
        // A loop records 12 facts besides its rounds, for its start and its end.
        let rounds = (facts / tasks).saturating_sub(12).div_ceil(6);
        for round in 0..=rounds {
            wave.iter().for_each(|task| history.round(*task, round == rounds));
        }
        history.keep(&store)?;
    }
    (0..JOBS).for_each(|_| history.run(RunEvent::NothingToPick));
    history.keep(&store)?;
    println!("run {}: {tasks} tasks, {} facts", history.lease.run(), history.seq);
    Ok(())
}

/// Generates the facts of a run.
struct History {
    lease: Lease,
    view: RunState,
    at: Timestamp,
    seq: u64,
    /// Facts that are not in the store yet.
    new: Vec<Fact>,
}

impl History {
    fn new(lease: Lease, at: Timestamp) -> Self {
        let mut this = Self { lease, view: RunState::default(), at, seq: 0, new: Vec::new() };
        let policy = reviewed();
        let run = RunPolicy {
            scheduling: Scheduling::Slots,
            landing: Landing::None,
            keep_going: true,
            ..RunPolicy::new(&policy.workflow, JOBS)
        };
        this.record(Fact::Run(RunFact::Opened { policy: run, workflow: Box::new(policy) }));
        this.run(RunEvent::Started);
        this
    }

    fn record(&mut self, fact: Fact) {
        self.seq += 1;
        self.at += SignedDuration::from_millis(100);
        let recorded = RecordedFact { run: self.lease.run(), seq: self.seq, at: self.at, fact };
        self.view.replay(&recorded);
        self.new.push(recorded.fact);
    }

    fn run(&mut self, event: RunEvent) {
        self.record(Fact::Run(RunFact::Transitioned(event)));
    }

    fn keep(&mut self, store: &SqliteStore) -> Result<(), Box<dyn Error>> {
        store.append(&self.lease, self.at, &std::mem::take(&mut self.new))?;
        Ok(())
    }

    fn begin(&mut self, task: TaskId) {
        let loop_id = id(task);
        let (title, branch) = (format!("Task {task} of many"), format!("signoff/task-{task}"));
        self.record(Fact::Loop(loop_id.clone(), LoopFact::Added { task, title, branch }));
        self.run(RunEvent::TaskPicked { loop_id: loop_id.clone() });
        let worktree = format!(".signoff/worktrees/task-{task}");
        self.record(Fact::Loop(loop_id.clone(), LoopFact::WorkspaceCreated { base: "c0".into(), worktree }));
        self.then(&loop_id, Event::Started { head: head(0) });
        self.job(&loop_id, false);
    }

    /// Records a review, and a fix if it did not approve.
    fn round(&mut self, task: TaskId, last: bool) {
        let loop_id = id(task);
        self.job(&loop_id, last);
        if !last {
            self.job(&loop_id, last);
        }
    }

    /// Starts and ends the next job of a loop.
    fn job(&mut self, loop_id: &LoopId, approves: bool) {
        let effects = self.view.loop_state(loop_id).zip(self.view.policy(loop_id));
        let mut effects = effects.map(|(this, policy)| outstanding(this, policy)).unwrap_or_default().into_iter();
        let Some(job) = effects.find_map(|effect| if let Effect::Spawn(job) = effect { Some(job) } else { None })
        else {
            return;
        };
        let attempt = job.attempt;
        let started = LoopFact::AttemptStarted { attempt, launch: launch(&job) };
        self.record(Fact::Loop(loop_id.clone(), started));
        let usage = Usage { cost_micro_usd: 12_000, input_tokens: 900, output_tokens: 80, ..Usage::default() };
        self.record(Fact::Loop(loop_id.clone(), LoopFact::Used { attempt, usage }));
        let head = head(attempt.0);
        self.then(
            loop_id,
            match job.kind {
                JobKind::Review { reviewer, .. } => {
                    let review = Box::new(review(reviewer.as_str(), approves));
                    Event::ReviewArrived { attempt, review }
                }
                JobKind::Work { .. }
                | JobKind::Fix { .. }
                | JobKind::Research { .. }
                | JobKind::Check
                | JobKind::Combine { .. }
                | JobKind::Land => Event::WorkEnded { attempt, report: WorkReport::Complete { head } },
            },
        );
    }

    fn then(&mut self, loop_id: &LoopId, event: Event) {
        let status = |this: &Self| this.view.loop_state(loop_id).map(LoopStatus::for_loop);
        let before = status(self);
        self.record(Fact::Loop(loop_id.clone(), LoopFact::Transitioned(event)));
        let after = status(self);
        if let Some(status) = after.filter(|after| before.as_ref() != Some(after)) {
            self.run(RunEvent::LoopStatusChanged { loop_id: loop_id.clone(), status });
        }
    }
}

/// The workflow of a task without a limit of review cycles.
fn reviewed() -> Policy {
    let mut policy = Policy::new(preset("task").expect("shipped"));
    for phase in &mut policy.workflow.phases {
        if let PhaseKind::Gate(gate_policy) = &mut phase.kind {
            gate_policy.gate.enabled = true;
            gate_policy.gate.bound = Bound::Unlimited;
        }
    }
    policy
}

fn id(task: TaskId) -> LoopId {
    LoopId::new(format!("task-{task}"))
}

fn head(number: u64) -> Head {
    Head { commit: format!("c{number}").as_str().into(), tree: format!("t{number}").as_str().into() }
}

fn review(reviewer: &str, approves: bool) -> Review {
    let verdict = if approves { Verdict::Approved } else { Verdict::ChangesRequested };
    let found = |line: u32| Finding {
        file: Some("src/lib.rs".to_owned()),
        line: Some(line),
        ..Finding::new(&reviewer.into(), "bug", Severity::Important, "the input is not checked")
    };
    let mut findings = if approves { Vec::new() } else { vec![found(7), found(93)] };
    assign_ids(&mut findings);
    Review { findings, ..Review::new(reviewer.into(), ReviewerKind::General, verdict) }
}

fn launch(job: &Job) -> Launch {
    let (role, reviewer) = match &job.kind {
        JobKind::Review { reviewer, .. } => ("review", Some(reviewer.clone())),
        JobKind::Fix { .. } => ("fix", None),
        JobKind::Work { role, .. } => (role.into_str(), None),
        JobKind::Research { .. } | JobKind::Check | JobKind::Combine { .. } | JobKind::Land => ("check", None),
    };
    Launch { role: role.to_owned(), reviewer, cycle: job.cycle, agent: "claude".to_owned(), ..Launch::default() }
}
