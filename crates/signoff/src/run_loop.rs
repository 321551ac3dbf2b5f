//! Runs the dispatcher for a command: runtime, signals, renderer, notifications and exit code.

pub mod notifications;

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use signoff_core::group::RunStage;
use signoff_core::ids::{RunId, TaskId};
use signoff_core::report_token::{ReportArguments, ReportRefusal, ReportTool};
use signoff_core::task::TaskSpec;
use signoff_core::view::inbox::{
    self, Action, InvocationScope, InvocationSummary, NextStep, ProjectSnapshot, WorkedRuns,
};
use signoff_core::view::{QuestionRow, TaskRow, TaskStatus};
use signoff_core::wire::{Fact, RunFact};
use signoff_core::workflow::Scheduling;
use signoff_engine::attempt::{self, EngineContext, ReadOnlyGuards, SeenNotes};
use signoff_engine::dispatcher::{Dispatcher, DispatcherInput, Interrupt, RunLoopOptions, RunLoopSummary, ready};
use signoff_engine::error::EngineError;
use signoff_engine::executor::Backends;
use signoff_engine::git::UncommittedPolicy;
use signoff_engine::landing::LatestLandings;
use signoff_engine::notify::TerminalPresence;
use signoff_engine::process::{SupervisorLauncher, processor_time};
use signoff_engine::reports::ReportRegistry;
use signoff_engine::tracker::TrackerOptions;
use signoff_serve::{McpServer, ReportSink};
use signoff_store::{Lease, Store, StoreError};
use signoff_term::exit;
use signoff_term::json::RunReport;
use signoff_term::line::LineNaming;
use signoff_term::status::status_line;
use signoff_term::tui::TuiMode;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;

use crate::console::{ProgressStream, write_stderr};
use crate::history_cache::SharedStore;
use crate::line_output::RunRenderer;
use crate::screen::{BackgroundWorker, DispatcherHandle, Screen, TerminationSignals, WorkHandler, watch_queue};
use crate::{CliError, CommandExit, Console, Project, ReadOnlyProject, Result, host};
use notifications::NotifyingRenderer;

/// The runs that a command resumes or opens, and how.
#[derive(Default)]
pub struct RunRequest {
    /// Runs to resume from their logs.
    pub resumed: Vec<Lease>,
    /// New runs with their first facts.
    pub opened: Vec<(Lease, Vec<Fact>)>,
    pub options: RunLoopOptions,
    pub jobs: Option<usize>,
    /// The subject of a review of the checkout.
    pub subject: Option<TaskSpec>,
    pub base: Option<String>,
}

impl RunRequest {
    /// A request to work a new run.
    pub fn open(lease: Lease, facts: Vec<Fact>, no_ask: bool) -> Self {
        let options = RunLoopOptions { no_ask, ..RunLoopOptions::default() };
        Self { opened: vec![(lease, facts)], options, ..Self::default() }
    }
}

/// The result of a finished dispatcher.
pub struct RunResult {
    /// The tasks named by the user; empty for all tasks.
    requested: Vec<TaskId>,
    /// Whether questions stopped their tasks.
    no_ask: bool,
    pub ctx: Arc<EngineContext>,
    pub store: Arc<dyn Store>,
    pub summary: RunLoopSummary,
}

/// Runs the dispatcher until all remaining work needs a decision by the user.
pub fn run(project: Project, request: RunRequest, console: &Console) -> Result<RunResult> {
    let runtime = runtime()?;
    let (read_only, store): (_, Arc<dyn Store>) = (project.read_only(), project.store.clone());
    let jobs = request.jobs.unwrap_or(project.settings.jobs() as usize);
    let naming = naming(&*store, &request, jobs)?;
    let (subject, base) = (request.subject, request.base);
    let ctx = Arc::new(EngineContext { jobs, subject, base, ..engine_context(project)? });
    let (handle, may_ask) = (DispatcherHandle::default(), !console.no_ask && !request.options.no_ask);
    let shows_queue =
        request.options.only.is_empty() && request.opened.iter().any(|(_, facts)| facts.iter().any(takes_tasks));
    // Install signal handlers before the screen takes the terminal, so that a signal restores it.
    let signals = runtime.block_on(async { termination_signals() });
    let signals = signals.map_err(cannot_start)?;
    let screen = open_screen(console, &read_only, shows_queue, &handle, may_ask);
    let (requested, no_ask) = (request.options.only.clone(), request.options.no_ask);
    let options = RunLoopOptions { attended: may_ask && screen.is_some(), ..request.options };
    let presence = screen.as_ref().map(|screen| TerminalPresence::AtTerminal(screen.terminal()));
    let presence = presence.unwrap_or_else(|| notifications::user_presence(console));
    let renderer = RunRenderer::new(console, naming, screen);
    let channels = notifications::channel_context(ctx.repository.root(), presence);
    let mut renderer = NotifyingRenderer::new(renderer, &ctx.settings, &channels, store.clone());
    renderer.resend_undelivered();
    let warm_up_ctx = ctx.clone();
    // Warm the checkout state in the background: the check before each agent is fast if nothing changed.
    runtime.spawn_blocking(move || warm_up_ctx.repository.checkout_state().ok());
    let summary = runtime.block_on(async {
        let _server = start_report_server(ctx.reports.clone(), console).await;
        let mut dispatcher = Dispatcher::new(ctx.clone(), Backends::local(&ctx), options, &mut renderer);
        handle.connect(dispatcher.input_sender());
        forward_signals(signals, dispatcher.input_sender(), handle.clone());
        for lease in request.resumed {
            dispatcher.resume_run(lease)?;
        }
        for (lease, facts) in request.opened {
            dispatcher.open(lease, facts)?;
        }
        dispatcher.run().await
    });
    renderer.finish().finish();
    // A blocked thread must not delay the exit.
    runtime.shutdown_background();
    let summary = summary?;
    let (git, commits) = (ctx.repository.git().processes(), read_only.store.commits());
    console.detail(&format!("{git} git processes, {commits} commits of the store, {} agents", summary.agents));
    console.detail(&format!("CPU time: {:.1} ms", processor_time().as_secs_f64() * 1000.0));
    Ok(RunResult { requested, no_ask, ctx, store, summary })
}

/// Opens the screen on a terminal. It shows the queue if the run takes tasks from it.
fn open_screen(
    console: &Console,
    project: &ReadOnlyProject,
    shows_queue: bool,
    handle: &DispatcherHandle,
    attended: bool,
) -> Option<Screen> {
    // A command with other output on stdout prints its progress as lines on stderr.
    if console.progress == ProgressStream::Stderr {
        return None;
    }
    Screen::open(console, TuiMode::Driving, TerminationSignals::HandledElsewhere, &project.root, |sender| {
        let store = SharedStore::with_store(project.root.clone(), project.store.clone());
        let background = BackgroundWorker::new(store, &sender);
        let queue = project.reconnect().ok().map(|project| watch_queue(project, shows_queue, sender.clone()));
        Box::new(WorkHandler { dispatcher: handle.clone(), attended, background, queue })
    })
}

/// Starts the MCP server that agents report to, authorized by the engine's tokens. Without it agents answer in their final message, as most do anyway.
async fn start_report_server(reports: Arc<ReportRegistry>, console: &Console) -> Option<McpServer> {
    match McpServer::start(Arc::new(TokenReports(reports.clone()))).await {
        Ok(server) => {
            let elsewhere = host::test_string("SIGNOFF_TEST_REPORTS");
            reports.set_url(elsewhere.as_deref().unwrap_or(server.url()));
            Some(server)
        }
        Err(error) => {
            console.note(&format!("Agents cannot report over MCP: no port on 127.0.0.1 is available: {error}"));
            None
        }
    }
}

struct TokenReports(Arc<ReportRegistry>);

impl ReportSink for TokenReports {
    fn tool(&self, token: &str) -> Result<ReportTool, ReportRefusal> {
        self.0.tool(token)
    }

    fn call(&self, token: &str, tool: &str, arguments: &ReportArguments) -> Result<String, ReportRefusal> {
        self.0.call(token, tool, arguments)
    }
}

/// Builds the tokio runtime.
pub fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(cannot_start)
}

/// The error if the async runtime or the signal handlers cannot be created.
pub fn cannot_start(error: io::Error) -> CliError {
    CliError::failed(format!("cannot start the async runtime: {error}"))
        .hint("check the limits on open files and processes: `ulimit -a`")
}

/// Builds the engine context for work without a dispatcher: one job, and no subject.
pub fn engine_context(project: Project) -> Result<EngineContext> {
    let program = host::program()?;
    let user_home = crate::settings::home().unwrap_or_default();
    let secrets = attempt::secrets(&project.settings, &user_home);
    Ok(EngineContext {
        launcher: SupervisorLauncher {
            program: program.clone(),
            live_dir: project.layout.live_attempts(),
            user_home: user_home.clone(),
            secrets: attempt::channel_secrets(&project.settings),
        },
        reports: Arc::new(ReportRegistry::new(project.layout.root()).with_secrets(secrets.clone())),
        secrets,
        repository: project.repository,
        layout: project.layout,
        settings: project.settings,
        store: project.store,
        program,
        user_home,
        variables: crate::preflight::agents::variables(),
        jobs: 1,
        subject: None,
        base: None,
        tracker_options: tracker_options(),
        sandbox_support: crate::preflight::sandbox_support(),
        read_guards: ReadOnlyGuards::default(),
        seen_notes: SeenNotes::default(),
        worktree_repair: Mutex::default(),
        latest_landings: LatestLandings::default(),
    })
}

/// The options for calling tracker programs.
pub fn tracker_options() -> TrackerOptions {
    let names = ["BD_ACTOR", "BEADS_ACTOR", "USER", "LOGNAME", "USERNAME"].into_iter().filter_map(host::variable);
    let limit = host::test_number("SIGNOFF_TEST_TRACKER_MS").map(Duration::from_millis);
    let names = names.map(|name| name.to_string_lossy().into_owned()).collect();
    TrackerOptions::new(names, host::variable("USER").is_none(), limit)
}

/// Decides whether progress lines name their task from the start: yes if several tasks may run in parallel.
fn naming(store: &dyn Store, request: &RunRequest, jobs: usize) -> Result<LineNaming> {
    let resumed = |row: &TaskRow| request.resumed.iter().any(|lease| row.run_id == Some(lease.run().0));
    let is_resumed_task = |row: &&TaskRow| row.status == TaskStatus::InProgress && resumed(row);
    let mut tasks = if request.resumed.is_empty() { 0 } else { store.tasks()?.iter().filter(is_resumed_task).count() };
    tasks += request.opened.len();
    if request.opened.iter().any(|(_, facts)| facts.iter().any(takes_tasks)) {
        let more = match &request.options.offer {
            Some(offer) => offer.len(),
            None => ready(store, &request.options.only, 2)?.len(),
        };
        tasks += more.saturating_sub(1);
    }
    Ok(if jobs > 1 && tasks > 1 { LineNaming::Always } else { LineNaming::WhenNeeded })
}

/// Whether a fact opens a run that takes its tasks from the queue or a tracker.
fn takes_tasks(fact: &Fact) -> bool {
    let Fact::Run(RunFact::Opened { policy, .. }) = fact else { return false };
    policy.scheduling == Scheduling::Slots
}

/// Installs handlers for the signals that interrupt, terminate and hang up. From now on they no longer kill the process.
/// Call it inside a runtime.
pub fn termination_signals() -> io::Result<[Signal; 3]> {
    let [interrupt, terminate, hangup] =
        [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    Ok([interrupt?, terminate?, hangup?])
}

/// Waits for the first of the termination signals.
pub async fn any_signal([mut interrupt, mut terminate, mut hangup]: [Signal; 3]) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}

/// Forwards signals to the dispatcher. On a screen Ctrl-C arrives as a key and counts the same.
fn forward_signals(
    [mut interrupts, mut ends, mut hangups]: [Signal; 3],
    inputs: UnboundedSender<DispatcherInput>,
    handle: DispatcherHandle,
) {
    tokio::spawn(async move {
        while !inputs.is_closed() {
            tokio::select! {
                _ = interrupts.recv() => handle.interrupt(),
                _ = ends.recv() => drop(inputs.send(DispatcherInput::Interrupted(Interrupt::Stop))),
                _ = hangups.recv() => drop(inputs.send(DispatcherInput::Interrupted(Interrupt::Stop))),
            }
        }
    });
}

impl RunResult {
    /// Returns the tasks that changed or were named, and their open questions. If no task was named, it also returns
    /// the tasks of the runs that are unfinished or need the user.
    pub fn task_rows(&self) -> Result<(Vec<TaskRow>, Vec<QuestionRow>)> {
        let runs = self.summary.runs.iter().map(|(run, _)| run.0).collect();
        let scope = match self.requested.as_slice() {
            [] => InvocationScope::Runs(&runs),
            named => InvocationScope::Tasks(named),
        };
        let tasks = scope.counted(&self.store.tasks()?, &self.summary.tasks);
        let is_relevant = |row: &QuestionRow| match row.task_id {
            Some(id) => tasks.iter().any(|task| task.id == id),
            None => runs.contains(&row.run_id),
        };
        let questions = self.store.questions()?.into_iter().filter(is_relevant).collect();
        Ok((tasks, questions))
    }

    fn has_changed(&self, task: u64) -> bool {
        self.summary.tasks.contains(&TaskId(task))
    }

    /// Prints what waits for the user in tasks that did not change during this run.
    fn print_pending(&self, tasks: &[TaskRow], questions: &[QuestionRow], console: &Console) {
        let waits = |row: &&TaskRow| row.status != TaskStatus::Pending && !self.has_changed(row.id);
        for row in tasks.iter().filter(waits) {
            let id = row.id;
            match questions.iter().find(|question| question.task_id == Some(id)) {
                Some(question) => console.note(&format!(
                    "Task #{id} waits for you ({}): {}\n  {}",
                    question.id,
                    question.text,
                    Action::answer(question),
                )),
                None if inbox::waits_for_its_group(row) => {
                    console.note(&format!("Task #{id} is approved and waits for its group"));
                }
                None if row.ended_without_result() => console.note(&format!(
                    "Task #{id} is not approved ({}): {}",
                    status_line(row),
                    NextStep::for_task(row, &ProjectSnapshot { tasks, runs: &[], driven: &BTreeSet::new() }),
                )),
                None => console.note(&format!("Task #{id} is {}", row.status.into_str())),
            }
        }
        // Questions of a run are answered by their number in the store.
        for question in questions.iter().filter(|question| question.task_id.is_none()) {
            let (run, resume) = (question.run_id, Action::ResumeRun(Some(question.run_id)));
            console.note(&format!("Run {run} waits for you: {}\n  then: {resume}", Action::answer(question)));
        }
    }

    /// The command that continues after an interrupt.
    fn resume_hint(&self, tasks: &[TaskRow]) -> Result<String> {
        let a_run_lands = self.summary.runs.iter().any(|(_, stage)| matches!(stage, RunStage::Landing(_)));
        let has_queued = !self.store.queued(TaskId(0), 1)?.is_empty();
        Ok(match Action::after_interrupt(tasks, a_run_lands, has_queued) {
            Some(action) => format!("Interrupted: `{action}` continues"),
            None => "Interrupted: nothing is left to do".to_owned(),
        })
    }

    /// Removes the temporary worktree of a review. Errors are ignored.
    pub fn remove_review_worktree(&self, run: RunId) {
        let copy = self.ctx.layout.review_worktree(run);
        if copy.exists() {
            self.ctx.repository.remove_worktree(&copy, UncommittedPolicy::Discard).ok();
        }
    }

    /// Returns the stage of a stopped run if it counts for the exit code. A run stopped by a task that was not named
    /// does not count.
    fn stopped_stage(&self, tasks: &[TaskRow]) -> Result<Option<&RunStage>> {
        let others = if self.requested.is_empty() { Vec::new() } else { self.store.tasks()? };
        let worked = WorkedRuns { runs: &self.summary.states, changed: &self.summary.tasks };
        Ok(worked.stopped_stage(tasks, &others))
    }

    /// Prints the result with `--json`, prints reminders, and returns the exit code.
    pub fn print_result(self, console: &Console) -> Result<CommandExit> {
        let (tasks, questions) = self.task_rows()?;
        self.print_pending(&tasks, &questions, console);
        if console.json {
            let has_tasks = |(run, _): &&(RunId, RunStage)| tasks.iter().any(|row| row.run_id == Some(run.0));
            let run = self.summary.runs.iter().rfind(has_tasks).or(self.summary.runs.last());
            let (run_id, stage) = (run.map(|(run, _)| run.0), run.map(|(_, stage)| stage));
            console.json(&RunReport::new(run_id, stage, tasks.clone(), questions.clone()))?;
        }
        let interrupted = self.summary.interrupted;
        let failed = self.stopped_stage(&tasks)?;
        if self.summary.tasks.is_empty() && matches!(failed, Some(RunStage::Blocked { .. })) {
            console.note("Nothing to do: resolve the tasks that block the run first (`signoff` shows them)");
        }
        let invocation =
            InvocationSummary { run: failed, tasks: &tasks, questions: &questions, no_ask: self.no_ask, interrupted };
        let code = exit::code(&invocation);
        if interrupted {
            console.note(&self.resume_hint(&tasks)?);
        }
        fail_with(self.summary.errors)?;
        Ok(CommandExit::from_code(code))
    }
}

/// Prints each distinct error once. The last one becomes the error of the command.
pub fn fail_with(errors: Vec<EngineError>) -> Result<()> {
    let mut printed = BTreeSet::new();
    let mut failures: Vec<CliError> = errors.into_iter().map(CliError::from).collect();
    failures.retain(|failure| printed.insert(failure.to_string()));
    let Some(last) = failures.pop() else { return Ok(()) };
    failures.iter().for_each(|failure| write_stderr(&failure.to_string()));
    Err(last)
}

/// Acquires the lease of a run. Returns `None` if another process holds it.
pub fn try_acquire(store: &dyn Store, run: RunId) -> Result<Option<Lease>> {
    match store.acquire(run) {
        Ok(lease) => Ok(Some(lease)),
        Err(StoreError::LeaseHeld(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Parses a task number on the command line.
pub fn task_id(text: &str) -> Result<TaskId, String> {
    let digits = text.strip_prefix('#').unwrap_or(text);
    digits.parse().map(TaskId).map_err(|_| format!("`{text}` is not a task number"))
}

/// The subject of a decision: a task, or the final review of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskOrRun {
    Task(TaskId),
    Run(RunId),
}

/// Parses a task number, or a run as `run-3`, on the command line.
pub fn task_or_run(text: &str) -> Result<TaskOrRun, String> {
    if text.starts_with("run-") {
        return run_id(text).map(TaskOrRun::Run);
    }
    task_id(text).map(TaskOrRun::Task)
}

/// Parses a run number on the command line.
pub fn run_id(text: &str) -> Result<RunId, String> {
    let digits = text.strip_prefix("run-").or_else(|| text.strip_prefix('#')).unwrap_or(text);
    let number = digits.parse().ok().filter(|number| *number > 0);
    number.map(RunId).ok_or_else(|| format!("`{text}` is not a run number"))
}
