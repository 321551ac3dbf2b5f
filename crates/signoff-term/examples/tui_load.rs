//! Measures the UI under load: 64 loops, 100 events a second each, 25 frames a second at 200×60.
//!
//! `cargo run --release -p signoff-term --example tui_load [SECONDS]` prints the processor time of one second.

use crossterm::event::KeyCode;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use rustix::time::{ClockId, clock_gettime};
use signoff_core::group::{LoopStatus, RunEvent, RunPolicy};
use signoff_core::ids::{AttemptId, LoopId, RunId, TaskId};
use signoff_core::machine::{Effect, Event, Head, Job, JobKind, Policy, WorkReport, outstanding};
use signoff_core::review::{Review, ReviewerKind, Usage, Verdict};
use signoff_core::view::RunState;
use signoff_core::wire::{Fact, Launch, LoopFact, RecordedFact, RunFact};
use signoff_core::workflow::{PhaseKind, preset};
use signoff_term::tui::{Theme, Tui, TuiMode};

const LOOPS: u64 = 64;
const FACTS: u64 = 100;
const FRAMES: u64 = 25;
const SIZE: (u16, u16) = (200, 60);

/// Of this number of events one changes its loop and one reports usage; the others are agent output.
const MOVES: u64 = 50;
const USES: u64 = 10;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5);
    let mut world = World::new();
    let log = world.live(seconds);
    for (what, keys) in [("the list", vec![]), ("a transcript", vec![KeyCode::Enter, KeyCode::Char('4')])] {
        let (spent, frames) = shown(&log, &keys, seconds);
        let each = spent.as_secs_f64() * 1000.0 / seconds as f64;
        println!(
            "{what}: {each:.0} ms of processor time a second, {} frames a second, {} facts",
            frames / seconds,
            log.len()
        );
    }
}

/// Displays a log at its own speed, and returns the processor time and the number of frames.
fn shown(log: &[RecordedFact], keys: &[KeyCode], seconds: u64) -> (Duration, u64) {
    let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).expect("a screen");
    let mut tui = Tui::new(TuiMode::Watching, Theme::Color);
    let begun = processor();
    let mut frames = 0;
    let ahead = log.len() - usize::try_from(seconds * LOOPS * FACTS).expect("a number");
    let mut state = RunState::default();
    log[..ahead].iter().for_each(|recorded| tui.apply(&state.apply(recorded.clone())));
    let each = (log.len() - ahead) / usize::try_from(seconds * FRAMES).expect("a number");
    for (number, facts) in log[ahead..].chunks(each).enumerate() {
        for recorded in facts {
            tui.apply(&state.apply(recorded.clone()));
            if let Fact::Loop(loop_id, LoopFact::AgentOutput { attempt, line }) = &recorded.fact {
                tui.add_live_line(recorded.run, loop_id, *attempt, line);
            }
        }
        if number == 1 {
            keys.iter().for_each(|key| drop(tui.handle_key(*key, Timestamp::UNIX_EPOCH)));
        }
        let now = facts.last().map_or(Timestamp::UNIX_EPOCH, |recorded| recorded.at);
        tui.requests();
        if tui.needs_frame(now) {
            terminal.draw(|frame| tui.draw(frame, now)).expect("a frame");
            frames += 1;
        }
    }
    (processor() - begun, frames)
}

/// The processor time of this process so far.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// A run with many active loops.
struct World {
    view: RunState,
    log: Vec<RecordedFact>,
    launched: BTreeMap<LoopId, AttemptId>,
    at: Timestamp,
}

impl World {
    fn new() -> Self {
        let mut workflow = preset("loops").expect("a preset");
        for phase in &mut workflow.phases {
            if let PhaseKind::Gate(gate_policy) = &mut phase.kind {
                gate_policy.gate.enabled = true;
            }
        }
        workflow.limits.max_attempts = u32::MAX;
        let (policy, workflow) = (RunPolicy::new(&workflow, 64), Box::new(Policy::new(workflow)));
        let at = Timestamp::UNIX_EPOCH;
        let mut this = Self { view: RunState::default(), log: Vec::new(), launched: BTreeMap::new(), at };
        this.record(Fact::Run(RunFact::Opened { policy, workflow }));
        this.record(Fact::Run(RunFact::Transitioned(RunEvent::Started)));
        for task in 1..=LOOPS {
            let added = LoopFact::Added {
                task: TaskId(task),
                title: format!("Task {task} of many"),
                branch: format!("signoff/task-{task}"),
            };
            this.record(Fact::Loop(id(task), added));
        }
        let groups = vec![(1..=LOOPS).map(id).collect()];
        this.record(Fact::Run(RunFact::Transitioned(RunEvent::GroupsPlanned { groups })));
        (1..=LOOPS).for_each(|task| this.moves(&id(task), Event::Started { head: head(0) }));
        this
    }

    /// The log of this number of seconds, after the setup.
    fn live(&mut self, seconds: u64) -> Vec<RecordedFact> {
        let ahead = self.log.len();
        let all = seconds * LOOPS * FACTS;
        for number in 0..all {
            self.at += SignedDuration::from_micros(1_000_000 / i64::try_from(LOOPS * FACTS).unwrap_or(1));
            self.happens(number);
        }
        self.log.truncate(ahead + usize::try_from(all).expect("a number"));
        std::mem::take(&mut self.log)
    }

    fn happens(&mut self, number: u64) {
        let (loop_id, turn) = (id(number % LOOPS + 1), number / LOOPS);
        let attempt = self.launched.get(&loop_id).copied().unwrap_or(AttemptId(1));
        let moves = turn % MOVES == number % MOVES;
        if let Some(event) = self.next(&loop_id, number).filter(|_| moves) {
            return self.moves(&loop_id, event);
        }
        let fact = if turn % USES == 0 {
            let usage = Usage { cost_micro_usd: number, output_tokens: number, ..Usage::default() };
            LoopFact::Used { attempt, usage }
        } else {
            LoopFact::AgentOutput {
                attempt,
                line: format!("Reading src/part_{number}.rs to see what {loop_id} changes there"),
            }
        };
        self.record(Fact::Loop(loop_id, fact));
    }

    fn next(&self, loop_id: &LoopId, number: u64) -> Option<Event> {
        let Job { attempt, kind, .. } = self.job(loop_id)?;
        Some(match kind {
            JobKind::Review { reviewer, .. } => {
                let review = Review::new(reviewer, ReviewerKind::General, Verdict::Approved);
                Event::ReviewArrived { attempt, review: Box::new(review) }
            }
            // No task ever ends, so that all loops stay active.
            JobKind::Work { .. } | JobKind::Research { .. } | JobKind::Fix { .. } => {
                Event::WorkEnded { attempt, report: WorkReport::Incomplete { head: head(number) } }
            }
            JobKind::Check | JobKind::Combine { .. } | JobKind::Land => return None,
        })
    }

    fn job(&self, loop_id: &LoopId) -> Option<Job> {
        let (this, policy) = (self.view.loop_state(loop_id)?, self.view.policy(loop_id)?);
        outstanding(this, policy)
            .into_iter()
            .find_map(|effect| if let Effect::Spawn(job) = effect { Some(job) } else { None })
    }

    fn moves(&mut self, loop_id: &LoopId, event: Event) {
        self.record(Fact::Loop(loop_id.clone(), LoopFact::Transitioned(event)));
        if let Some(job) = self.job(loop_id).filter(|job| self.launched.get(loop_id) != Some(&job.attempt)) {
            self.launched.insert(loop_id.clone(), job.attempt);
            let launch = Launch { role: "implement".into(), agent: "claude".to_owned(), ..Launch::default() };
            self.record(Fact::Loop(loop_id.clone(), LoopFact::AttemptStarted { attempt: job.attempt, launch }));
        }
        if let Some(status) = self.view.loop_state(loop_id).map(LoopStatus::for_loop) {
            let moved = RunEvent::LoopStatusChanged { loop_id: loop_id.clone(), status };
            self.record(Fact::Run(RunFact::Transitioned(moved)));
        }
    }

    fn record(&mut self, fact: Fact) {
        let recorded = RecordedFact { run: RunId(1), seq: self.log.len() as u64 + 1, at: self.at, fact };
        self.view.replay(&recorded);
        self.log.push(recorded);
    }
}

fn id(task: u64) -> LoopId {
    LoopId::new(format!("task-{task}"))
}

fn head(number: u64) -> Head {
    Head { commit: format!("c{number}").as_str().into(), tree: format!("t{number}").as_str().into() }
}
