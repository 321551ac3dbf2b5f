//! Driving runs from the command line: runtime, signals, renderer, exit code.

pub mod notifying;
mod reporting;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::task::TaskSpec;
use signoff_core::view::{QuestionRow, Status, TaskRow};
use signoff_core::wire::{Fact, RunFact};
use signoff_core::workflow::Arrangement;
use signoff_engine::attempt::{self, Once, Readings, Workshop};
use signoff_engine::board::Board;
use signoff_engine::dispatcher::{Dispatcher, Drive, Input, Interrupt, Summary, ready};
use signoff_engine::error::EngineError;
use signoff_engine::git::Uncommitted;
use signoff_engine::landing::LatestLandings;
use signoff_engine::notify::Person;
use signoff_engine::process::{Keeper, processor_time};
use signoff_engine::reports::Reports;
use signoff_engine::tracker::Manners;
use signoff_store::{Lease, Store, StoreError};
use signoff_term::attention::{self, Scene};
use signoff_term::exit;
use signoff_term::json::RunReport;
use signoff_term::line::Naming;
use signoff_term::status::{in_words, waits_for_its_group};
use signoff_term::tui::Mode;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;

use crate::console::{Console, Progress, say};
use crate::desk::Bench;
use crate::door;
use crate::failure::{Exit, Failure};
use crate::screen::{Answers, Clerk, Driving, Ends, Queue, Screen};
use crate::show::Shown;
use notifying::Notifying;

/// What is driven.
#[derive(Default)]
pub struct Wanted {
    /// Runs that are taken up where their logs end.
    pub resumed: Vec<Lease>,
    /// New runs with their first facts.
    pub opened: Vec<(Lease, Vec<Fact>)>,
    pub drive: Drive,
    pub jobs: Option<usize>,
    /// What a review of the checkout is about.
    pub subject: Option<TaskSpec>,
    pub base: Option<String>,
}

/// What came of it.
pub struct Came {
    /// The tasks that were named; none where all were meant.
    asked: Vec<TaskId>,
    pub bench: Arc<Workshop>,
    pub store: Arc<dyn Store>,
    pub summary: Summary,
}

/// Works until nothing is left that could go on without a person.
pub fn drive(bench: Bench, wanted: Wanted, console: &Console) -> Result<Came, Failure> {
    let runtime = runtime()?;
    let (commits, store): (_, Arc<dyn Store>) = (bench.store.clone(), bench.store.clone());
    let jobs = wanted.jobs.unwrap_or(bench.settings.jobs() as usize);
    let naming = naming(&*store, &wanted, jobs)?;
    let shop = shop(bench, jobs, (wanted.subject, wanted.base))?;
    let (answers, may_ask) = (Answers::default(), !console.no_ask && !wanted.drive.no_ask);
    let takes =
        wanted.drive.only.is_empty() && wanted.opened.iter().any(|(_, facts)| facts.iter().any(picks));
    // Before the terminal is taken: whoever ends the program then has it given back.
    let signals = signals(&runtime)?;
    let screen = screen(console, (shop.repository.root(), takes), (&answers, may_ask));
    let asked = wanted.drive.only.clone();
    let drive = Drive { attended: may_ask && screen.is_some(), ..wanted.drive };
    let seen = screen.as_ref().map(|screen| Person::AtTerminal(screen.terminal()));
    let person = seen.unwrap_or_else(|| notifying::person(console));
    let shown = Shown::new(console, naming, screen);
    let place = (shop.repository.root(), person);
    let receipts = notifying::receipts(&shop.layout);
    let mut shown = Notifying::new(shown, &shop.settings, place, receipts, store.clone());
    shown.tell_again();
    let first_look = shop.clone();
    // Looked at again when an agent starts, which is quick if nothing changed. It need not wait for the first look.
    runtime.spawn_blocking(move || first_look.repository.checkout_state().ok());
    let summary = runtime.block_on(async {
        let _server = reporting::start(shop.reports.clone(), console).await;
        let mut dispatcher = Dispatcher::new(shop.clone(), store.clone(), drive, &mut shown);
        answers.go_to(dispatcher.door());
        listen(signals, dispatcher.door(), answers.clone());
        for lease in wanted.resumed {
            dispatcher.take_up(lease)?;
        }
        for (lease, facts) in wanted.opened {
            dispatcher.open(lease, facts)?;
        }
        dispatcher.drive().await
    });
    shown.finish().finish();
    // What still hangs in a thread must not keep the program from ending.
    runtime.shutdown_background();
    let summary = summary?;
    let (git, commits) = (shop.repository.git().processes(), commits.commits());
    console
        .detail(&format!("{git} git processes, {commits} commits of the store, {} agents", summary.agents));
    console.detail(&format!("processor: {:.1} ms of its own", processor_time().as_secs_f64() * 1000.0));
    Ok(Came { asked, bench: shop, store, summary })
}

/// The screen of this program's own work, where there is a terminal for it; with the queue, if tasks are taken from it.
fn screen(
    console: &Console,
    (root, takes): (&Path, bool),
    (answers, attended): (&Answers, bool),
) -> Option<Screen> {
    // A command whose data is something else tells its progress in lines.
    if console.progress == Progress::Stderr {
        return None;
    }
    Screen::open(console, (Mode::Driving, Ends::Elsewhere), root, |teller| {
        let clerk = Clerk::new(root.to_owned(), &teller);
        let queue = Some(Queue::new(root.to_owned(), takes, teller.clone()));
        Box::new(Driving { answers: answers.clone(), attended, clerk, queue })
    })
}

/// What work is waited for in.
pub fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))
}

/// What is needed to work, where no dispatcher drives it.
pub fn workshop(bench: Bench) -> Result<Arc<Workshop>, Failure> {
    shop(bench, 1, (None, None))
}

fn shop(
    bench: Bench,
    jobs: usize,
    (subject, base): (Option<TaskSpec>, Option<String>),
) -> Result<Arc<Workshop>, Failure> {
    let program = door::program()?;
    let person = crate::settings::home().unwrap_or_default();
    let secrets = attempt::secrets(&bench.settings, &person);
    Ok(Arc::new(Workshop {
        keeper: Keeper {
            program: program.clone(),
            live: bench.layout.live(),
            person: person.clone(),
            hidden: attempt::channel_secrets(&bench.settings),
        },
        reports: Arc::new(Reports::new(bench.layout.root()).without(secrets.clone())),
        secrets,
        repository: bench.repository,
        layout: bench.layout,
        settings: bench.settings,
        store: bench.store,
        program,
        person,
        variables: crate::preflight::agents::variables(),
        jobs,
        subject,
        base,
        manners: manners(),
        power: crate::preflight::power(),
        readings: Readings::default(),
        once: Once::default(),
        mending: Mutex::default(),
        latest_landings: LatestLandings::default(),
    }))
}

/// How trackers are asked here.
pub fn manners() -> Manners {
    let names =
        ["BD_ACTOR", "BEADS_ACTOR", "USER", "LOGNAME", "USERNAME"].into_iter().filter_map(door::variable);
    let limit = door::test_number("SIGNOFF_TEST_TRACKER_MS").map(Duration::from_millis);
    let names = names.map(|name| name.to_string_lossy().into_owned()).collect();
    Manners::new(names, door::variable("USER").is_none(), limit)
}

/// Whether more than one task may be at work at once: then every line says from the start whose it is.
fn naming(store: &dyn Store, wanted: &Wanted, jobs: usize) -> Result<Naming, Failure> {
    let resumed = |row: &TaskRow| wanted.resumed.iter().any(|lease| row.run_id == Some(lease.run().0));
    let under_way = |row: &&TaskRow| row.status == Status::InProgress && resumed(row);
    let mut tasks =
        if wanted.resumed.is_empty() { 0 } else { store.tasks()?.iter().filter(under_way).count() };
    tasks += wanted.opened.len();
    if wanted.opened.iter().any(|(_, facts)| facts.iter().any(picks)) {
        let more = match &wanted.drive.offer {
            Some(offer) => offer.len(),
            None => ready(store, &wanted.drive.only, 2)?.len(),
        };
        tasks += more.saturating_sub(1);
    }
    Ok(if jobs > 1 && tasks > 1 { Naming::Always } else { Naming::WhenNeeded })
}

/// Whether it opens a run that takes its tasks from the queue.
fn picks(fact: &Fact) -> bool {
    let Fact::Run(RunFact::Opened { policy, .. }) = fact else { return false };
    policy.arrangement == Arrangement::Slots
}

/// The signals that end the program: from now on they are only heard.
fn signals(runtime: &Runtime) -> Result<[Signal; 3], Failure> {
    let _inside = runtime.enter();
    let hear =
        |kind| signal(kind).map_err(|error| Failure::failed(format!("signals cannot be heard: {error}")));
    Ok([hear(SignalKind::interrupt())?, hear(SignalKind::terminate())?, hear(SignalKind::hangup())?])
}

/// What signals tell. A screen hears Ctrl-C as a key, which counts the same.
fn listen(
    [mut interrupts, mut ends, mut hangups]: [Signal; 3],
    door: UnboundedSender<Input>,
    answers: Answers,
) {
    tokio::spawn(async move {
        while !door.is_closed() {
            tokio::select! {
                _ = interrupts.recv() => answers.interrupt(),
                _ = ends.recv() => drop(door.send(Input::Interrupted(Interrupt::Stop))),
                _ = hangups.recv() => drop(door.send(Input::Interrupted(Interrupt::Stop))),
            }
        }
    });
}

impl Came {
    /// The tasks that were moved or named, are not through or need a person, as they stand now, and the questions that they
    /// and their runs ask. Where tasks are named, others of their run that nothing happened to are not counted.
    pub fn rows(&self) -> Result<(Vec<TaskRow>, Vec<QuestionRow>), Failure> {
        let driven = |row: &TaskRow| self.summary.runs.iter().any(|(run, _)| row.run_id == Some(run.0));
        let all = self.store.tasks()?;
        let unsettled = attention::unsettled(&all);
        let meant = |row: &TaskRow| match self.asked.as_slice() {
            [] => driven(row) && (!is_over(row.status) || unsettled.contains(&row.id)),
            asked => asked.contains(&TaskId(row.id)),
        };
        let own = |row: &TaskRow| self.is_moved(row.id) || meant(row);
        let tasks: Vec<TaskRow> = all.into_iter().filter(own).collect();
        let asked = |row: &QuestionRow| match row.task_id {
            Some(id) => tasks.iter().any(|task| task.id == id),
            None => self.summary.runs.iter().any(|(run, _)| run.0 == row.run_id),
        };
        let questions = self.store.questions()?.into_iter().filter(asked).collect();
        Ok((tasks, questions))
    }

    fn is_moved(&self, task: u64) -> bool {
        self.summary.tasks.contains(&TaskId(task))
    }

    /// Says what waits for the person although nothing happened to it now.
    fn remind(&self, tasks: &[TaskRow], questions: &[QuestionRow], console: &Console) {
        let waits = |row: &&TaskRow| row.status != Status::Pending && !self.is_moved(row.id);
        let is_open = |row: &TaskRow| is_over(row.status) && exit::of_task(row) != exit::Standing::Done;
        for row in tasks.iter().filter(waits) {
            let id = row.id;
            match questions.iter().find(|question| question.task_id == Some(id)) {
                Some(question) => console.note(&format!(
                    "Task #{id} waits for you ({}): {}\n  signoff answer {id} {}",
                    question.id,
                    question.text,
                    question.choices.join("|"),
                )),
                None if waits_for_its_group(row) => {
                    console.note(&format!("Task #{id} is approved and waits for its group"));
                }
                None if is_open(row) => console.note(&format!(
                    "Task #{id} is not approved ({}): {}",
                    in_words(row),
                    attention::next(row, &Scene { tasks, runs: &[], driven: &BTreeSet::new() }),
                )),
                None => console.note(&format!("Task #{id} is {}", row.status.word())),
            }
        }
        // Only the store knows the number under which such a question is answered.
        for question in questions.iter().filter(|question| question.task_id.is_none()) {
            let (id, run) = (&question.id, question.run_id);
            console.note(&format!(
                "Run {run} waits for you: signoff answer {id} {}\n  then: signoff run --resume {run}",
                question.choices.join("|"),
            ));
        }
    }

    /// What to type after it was interrupted.
    fn how_to_go_on(&self, tasks: &[TaskRow]) -> Result<String, Failure> {
        let mut open = tasks.iter().filter(|row| !is_over(row.status));
        let lands = |(_, stage): &(RunId, RunStage)| matches!(stage, RunStage::Landing(_));
        Ok(if open.clone().any(TaskRow::is_of_a_plan) || self.summary.runs.iter().any(lands) {
            "Interrupted: `signoff run --resume` goes on where it was".to_owned()
        } else if open.next().is_some() || !self.store.queued(TaskId(0), 1)?.is_empty() {
            "Interrupted: `signoff work` goes on where it was".to_owned()
        } else {
            "Interrupted: nothing is left to do".to_owned()
        })
    }

    /// Takes the throw-away copy of a review away. What cannot be taken away now is no reason to fail.
    pub fn clear_away(&self, run: RunId) {
        let copy = self.bench.layout.review_worktree(run);
        if copy.exists() {
            self.bench.repository.remove_worktree(&copy, Uncommitted::Discard).ok();
        }
    }

    /// The stage of a run that stopped, if it says anything about what was asked for: a run that was blocked before and
    /// stays so does not, nor does one that a task stopped which was not asked for.
    fn failed_run(&self, tasks: &[TaskRow]) -> Result<Option<&RunStage>, Failure> {
        let stopped =
            |stage: &RunStage| matches!(stage, RunStage::Blocked { .. } | RunStage::Done(RunOutcome::Failed));
        let of_run = |row: &TaskRow, run: RunId| row.run_id == Some(run.0);
        let moved = |run: RunId| tasks.iter().any(|row| of_run(row, run) && self.is_moved(row.id));
        let all = if self.asked.is_empty() { Vec::new() } else { self.store.tasks()? };
        let by_another = |run: RunId| {
            let failed = |row: &TaskRow| is_over(row.status) && exit::of_task(row) != exit::Standing::Done;
            all.iter().any(|row| of_run(row, run) && !self.is_moved(row.id) && failed(row))
        };
        let at_issue = |run: RunId| self.summary.tasks.is_empty() || (moved(run) && !by_another(run));
        let runs = || self.summary.runs.iter().filter(|(run, _)| at_issue(*run)).map(|(_, stage)| stage);
        if let Some(stage) = runs().find(|stage| stopped(stage)) {
            return Ok(Some(stage));
        }
        for (run, stage) in self.summary.runs.iter().filter(|(run, _)| at_issue(*run)) {
            if matches!(stage, RunStage::Done(RunOutcome::Attention)) && self.final_review_left_open(*run)? {
                return Ok(Some(stage));
            }
        }
        Ok(None)
    }

    /// Whether the final review of a run ended without approving it: that needs a person, though each task is approved.
    fn final_review_left_open(&self, run: RunId) -> Result<bool, Failure> {
        let board = Board::of(run, &self.store.log(run)?);
        let whole = board.loops.get(&LoopId::whole());
        Ok(whole.is_some_and(|whole| whole.state.approved_commit().is_none()))
    }

    /// Tells the exit code, and with `--json` what came of it.
    pub fn conclude(self, console: &Console, drive_no_ask: bool) -> Result<Exit, Failure> {
        let (tasks, questions) = self.rows()?;
        self.remind(&tasks, &questions, console);
        if console.json {
            let worked = |(run, _): &&(RunId, RunStage)| tasks.iter().any(|row| row.run_id == Some(run.0));
            let run = self.summary.runs.iter().rfind(worked).or(self.summary.runs.last());
            let run = run.map(|(run, stage)| (run.0, stage));
            console.json(&RunReport::of(run, tasks.clone(), questions.clone()))?;
        }
        let interrupted = self.summary.interrupted;
        let failed = self.failed_run(&tasks)?;
        if self.summary.tasks.is_empty() && matches!(failed, Some(RunStage::Blocked { .. })) {
            console.note("Nothing to do before you settle what blocks the run: `signoff` shows it");
        }
        let invocation = exit::Invocation {
            run: failed,
            tasks: &tasks,
            questions: &questions,
            no_ask: drive_no_ask,
            interrupted,
        };
        let code = invocation.code();
        if interrupted {
            console.note(&self.how_to_go_on(&tasks)?);
        }
        give_up_over(self.summary.troubles)?;
        Ok(Exit::of(code))
    }
}

/// Tells of everything that went wrong, each but once. The last of it is what the command ends with.
pub fn give_up_over(troubles: Vec<EngineError>) -> Result<(), Failure> {
    let mut told = BTreeSet::new();
    let mut failures: Vec<Failure> = troubles.into_iter().map(Failure::from).collect();
    failures.retain(|failure| told.insert(failure.to_string()));
    let Some(last) = failures.pop() else { return Ok(()) };
    failures.iter().for_each(|failure| say(&failure.to_string()));
    Err(last)
}

/// Whether nothing more happens to a task by itself.
pub fn is_over(status: Status) -> bool {
    match status {
        Status::Completed | Status::Failed | Status::Stuck | Status::Cancelled => true,
        Status::Pending | Status::InProgress | Status::Waiting | Status::Paused | Status::Blocked => false,
    }
}

/// The lease of a run, or none if another program has it.
pub fn try_acquire(store: &dyn Store, run: RunId) -> Result<Option<Lease>, Failure> {
    match store.acquire(run) {
        Ok(lease) => Ok(Some(lease)),
        Err(StoreError::Held(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A task's number on the command line.
pub fn task_id(text: &str) -> Result<TaskId, String> {
    let digits = text.strip_prefix('#').unwrap_or(text);
    digits.parse().map(TaskId).map_err(|_| format!("`{text}` is no task number"))
}

/// What a person decides about: a task, or a run's final review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskOrRun {
    Task(TaskId),
    Run(RunId),
}

/// A task's number, or a run as `run-3`, on the command line.
pub fn task_or_run(text: &str) -> Result<TaskOrRun, String> {
    if text.starts_with("run-") {
        return run_id(text).map(TaskOrRun::Run);
    }
    task_id(text).map(TaskOrRun::Task)
}

/// A run's number on the command line.
pub fn run_id(text: &str) -> Result<RunId, String> {
    let digits = text.strip_prefix("run-").or_else(|| text.strip_prefix('#')).unwrap_or(text);
    let number = digits.parse().ok().filter(|number| *number > 0);
    number.map(RunId).ok_or_else(|| format!("`{text}` is no number of a run"))
}
