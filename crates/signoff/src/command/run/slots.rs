//! `signoff run beads` and `signoff run queue`: fills slots with tasks as long as there are any.

use std::collections::BTreeSet;
use std::path::Path;

use signoff_core::group::{RunPolicy, TaskSource};
use signoff_core::ids::TaskId;
use signoff_core::policy::Count;
use signoff_core::settings::TaskFlags;
use signoff_core::source::{SourceState, SourceTask, Warning};
use signoff_core::task::TaskSpec;
use signoff_core::view::inbox::{Action, TaskResult};
use signoff_core::view::{TaskRow, TaskStatus};
use signoff_core::workflow::{FixBound, GateKeys, SLOTS_PRESET, Workflow};
use signoff_engine::custom_prompts::PromptFile;
use signoff_engine::dispatcher::{RunLoopOptions, ready};
use signoff_engine::tracker::{self, ExcludedTask, Tracker, TrackerOffer, is_nameable};
use signoff_engine::{clock, start_run};
use signoff_store::{Store, StoreError, StoredRun};
use signoff_term::fit::count;
use signoff_term::json::RunReport;
use signoff_term::slots::{ReadyTask, SkippedTask, SlotsReport};

use super::Args;
use crate::command::work;
use crate::run_loop::{self, RunRequest};
use crate::{CliError, CommandExit, Console, Project, Result, host, preflight};

/// The flags for slots, for all sources.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Slots (beads, queue)")]
pub struct SlotArgs {
    /// Review each task, and fix what is found
    #[arg(long, overrides_with = "no_review")]
    review: bool,
    /// Do not review the tasks
    #[arg(long, overrides_with = "review")]
    no_review: bool,
    /// Maximum number of fixes per task
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    review_max_fix_attempts: Option<u32>,
    /// A prompt file for implementing and fixing
    #[arg(long, value_name = "PATH")]
    developer_prompt: Option<std::path::PathBuf>,
    /// A prompt file for the reviewers
    #[arg(long, value_name = "PATH")]
    reviewer_prompt: Option<std::path::PathBuf>,
    /// Start further tasks after one has failed
    #[arg(long)]
    keep_going: bool,
}

impl SlotArgs {
    /// Returns the first given flag, to reject it for sources without slots.
    pub fn first_given(&self) -> Option<&'static str> {
        let flags = [
            (self.review, "--review"),
            (self.no_review, "--no-review"),
            (self.review_max_fix_attempts.is_some(), "--review-max-fix-attempts"),
            (self.developer_prompt.is_some(), "--developer-prompt"),
            (self.reviewer_prompt.is_some(), "--reviewer-prompt"),
            (self.keep_going, "--keep-going"),
        ];
        flags.into_iter().find(|(given, _)| *given).map(|(_, flag)| flag)
    }
}

/// Project and flags of one call.
struct SlotRun<'a> {
    args: &'a Args,
    project: Project,
    flags: TaskFlags,
    no_ask: bool,
}

/// Fills slots from the tracker: by its program, or from its file.
pub fn beads(args: &Args, console: &Console) -> Result<CommandExit> {
    let slots = SlotRun::open(args, console)?;
    let source = match tracker::PROGRAMS.into_iter().find(|program| host::is_on_path(program)) {
        Some(program) => TaskSource::Program { name: program.to_owned() },
        None if slots.project.repository.root().join(tracker::FILE).exists() => {
            TaskSource::File { path: tracker::FILE.to_owned() }
        }
        None => {
            return Err(CliError::usage(format!(
                "there is no tracker: neither bd nor br is on the PATH, and there is no {}",
                tracker::FILE
            ))
            .hint("install beads and run `bd init`, or name its file: signoff run --as beads FILE"));
        }
    };
    slots.fill_from_tracker(source, console)
}

/// Fills slots from a file of the tracker.
pub fn file(path: &Path, args: &Args, console: &Console) -> Result<CommandExit> {
    let slots = SlotRun::open(args, console)?;
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let shown = full.strip_prefix(slots.project.repository.root()).unwrap_or(&full);
    slots.fill_from_tracker(TaskSource::File { path: shown.display().to_string() }, console)
}

/// Fills slots from the queue.
pub fn queue(args: &Args, console: &Console) -> Result<CommandExit> {
    SlotRun::open(args, console)?.fill_from_queue(console)
}

impl<'a> SlotRun<'a> {
    fn open(args: &'a Args, console: &Console) -> Result<Self> {
        args.reject_tick()?;
        let flags = flags(args)?;
        let project = Project::open()?;
        let no_ask = console.no_ask || project.settings.no_ask();
        Ok(Self { args, project, flags, no_ask })
    }

    fn workflow(&self, spec: &TaskSpec) -> Result<Workflow> {
        Ok(self.project.settings.task_workflow(spec, &self.flags)?)
    }

    fn jobs(&self) -> usize {
        self.args.jobs.map_or(self.project.settings.jobs() as usize, usize::from)
    }

    fn policy(&self, workflow: &Workflow, source: TaskSource) -> RunPolicy {
        RunPolicy {
            task_source: source,
            flags: Box::new(self.flags.clone()),
            keep_going: self.args.slots.keep_going,
            stop_marker: true,
            onto_default: self.args.land,
            ..RunPolicy::new(workflow, self.jobs())
        }
    }

    fn fill_from_tracker(self, source: TaskSource, console: &Console) -> Result<CommandExit> {
        let workflow = self.workflow(&TaskSpec::default())?;
        preflight::check_workflow(&self.project, &workflow, &TaskSpec::default())?;
        let tracker =
            Tracker { source, repository: self.project.repository.clone(), options: run_loop::tracker_options() };
        let offer = tracker::fetch_offer(&tracker, &*self.project.store)?;
        let report = tracker_report(&tracker.source, &offer, &workflow);
        if self.args.dry_run {
            return console.print(&report, || report.text());
        }
        report.warnings.iter().for_each(|warning| console.note(&format!("warning: {warning}")));
        for excluded in &offer.excluded {
            console.note(&format!("Skipped {}: {}", excluded.id, exclusion_reason(excluded)));
        }
        self.print_unfinished(&tracker.source, console)?;
        if offer.ready.is_empty() {
            print_done(&tracker, &offer, console)?;
            if console.json {
                console.json(&RunReport::new(None, None, Vec::new(), Vec::new()))?;
            }
            console.note(&format!("Nothing is ready in {}", report.source));
            return Ok(CommandExit::Done);
        }
        preflight::print_warnings(&self.project, console);
        let ids: Vec<String> = offer.ready.iter().filter_map(id).collect();
        let policy = self.policy(&workflow, tracker.source);
        let facts = start_run::slots(workflow, policy, self.no_ask);
        let mut request = RunRequest::open(self.project.store.open_run(clock::now())?, facts, self.no_ask);
        request.options.offer = Some(offer.ready);
        self.run_dispatcher(request, console, |store| {
            let claims = store.claims(tracker::BEADS)?;
            Ok(ids.iter().filter(|id| !claims.contains_key(*id)).count())
        })
    }

    /// Prints the unfinished runs of the same tracker that no process drives. The tracker does not list their claimed
    /// tasks as ready.
    fn print_unfinished(&self, source: &TaskSource, console: &Console) -> Result<()> {
        let store = &self.project.store;
        for StoredRun { id: run, .. } in store.open_runs()? {
            let same = |policy: &RunPolicy| policy.task_source == *source;
            if store.is_held(run)? || !store.preload(run)?.run_policy().is_some_and(same) {
                continue;
            }
            let unfinished = |row: &TaskRow| row.run_id == Some(run.0) && !row.status.is_over();
            let tasks: Vec<_> = store.tasks()?.into_iter().filter(unfinished).collect();
            // Even if all tasks are done, one may still have to be closed in the tracker.
            let state = match tasks.len() {
                0 => "is unfinished".to_owned(),
                some => format!("has {}", count(some as u64, "unfinished task")),
            };
            console.note(&format!("Run {run} {state}: `{}` continues it", Action::ResumeRun(Some(run.0))));
        }
        Ok(())
    }

    fn fill_from_queue(self, console: &Console) -> Result<CommandExit> {
        let tasks = ready(&*self.project.store, &[], usize::MAX)?;
        if self.args.dry_run {
            let report = self.queue_report(&tasks)?;
            return console.print(&report, || report.text());
        }
        let mut request = RunRequest {
            resumed: work::resumable(&self.project, &[])?,
            options: RunLoopOptions { no_ask: self.no_ask, ..RunLoopOptions::default() },
            ..RunRequest::default()
        };
        if tasks.is_empty() && request.resumed.is_empty() {
            return work::print_nothing_to_do(&self.project, &[], console);
        }
        preflight::check_environment(&self.project)?;
        for task in &tasks {
            let spec = self.project.store.task_spec(*task)?.unwrap_or_default();
            preflight::check_agents(&self.project, &self.workflow(&spec)?, &spec)?;
        }
        for lease in &request.resumed {
            preflight::check_run(&self.project, lease.run(), None, &[])?;
        }
        preflight::print_warnings(&self.project, console);
        if !tasks.is_empty() {
            let workflow = self.workflow(&TaskSpec::default())?;
            let policy = self.policy(&workflow, TaskSource::Queue);
            let facts = start_run::slots(workflow, policy, self.no_ask);
            request.opened.push((self.project.store.open_run(clock::now())?, facts));
        }
        self.run_dispatcher(request, console, |store| ready(store, &[], usize::MAX).map(|tasks| tasks.len()))
    }

    /// Runs the dispatcher and prints how many tasks were not started because one failed.
    fn run_dispatcher(
        self,
        request: RunRequest,
        console: &Console,
        count_ready: impl FnOnce(&dyn Store) -> Result<usize, StoreError>,
    ) -> Result<CommandExit> {
        let (jobs, keep_going) = (self.jobs(), self.args.slots.keep_going);
        let result = run_loop::run(self.project, RunRequest { jobs: Some(jobs), ..request }, console)?;
        let failed = result.task_rows()?.0.iter().any(|row| TaskResult::for_task(row) == TaskResult::Failed);
        let left = if failed && !keep_going { count_ready(&*result.store)? } else { 0 };
        if left > 0 {
            let tasks = count(left as u64, "task");
            console.note(&format!("{tasks} not started after a failure: --keep-going starts them anyway"));
        }
        if result.summary.lost > 0 && result.summary.lost == result.summary.tasks.len() {
            console.note("No task was started: other workers claimed every ready task first");
        }
        result.print_result(console)
    }
}

/// The flags that apply to every task.
fn flags(args: &Args) -> Result<TaskFlags> {
    let slots = &args.slots;
    let review = (slots.review || slots.no_review).then_some(slots.review);
    let max_fixes = slots.review_max_fix_attempts.map(|fixes| FixBound(Count::Number(fixes)));
    Ok(TaskFlags {
        preset: Some(SLOTS_PRESET.to_owned()),
        review,
        effort: args.effort,
        gate: GateKeys { max_fixes, ..GateKeys::default() },
        developer_prompt: prompt(slots.developer_prompt.as_deref(), "--developer-prompt")?,
        reviewer_prompt: prompt(slots.reviewer_prompt.as_deref(), "--reviewer-prompt")?,
    })
}

/// Checks a prompt file named on the command line and returns its absolute path.
fn prompt(path: Option<&Path>, flag: &str) -> Result<Option<String>> {
    let Some(path) = path else { return Ok(None) };
    let here = host::current_directory()?;
    let read = PromptFile::at(&here, &path.display().to_string()).read();
    read.map_err(|error| CliError::from(error).at(flag))?;
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(Some(full.display().to_string()))
}

fn id(spec: &TaskSpec) -> Option<String> {
    spec.tracker.as_ref().map(|tracked| tracked.id.clone())
}

/// Maximum number of tasks named in one line.
const MAX_NAMED: usize = 8;

impl SlotRun<'_> {
    /// The report for the queue.
    fn queue_report(&self, tasks: &[TaskId]) -> Result<SlotsReport> {
        let mut report = SlotsReport::new("queue", Vec::new(), Vec::new(), Vec::new());
        for task in tasks {
            let spec = self.project.store.task_spec(*task)?.unwrap_or_default();
            let auto_review = is_reviewed(&self.workflow(&spec)?);
            report.ready.push(ReadyTask { id: task.to_string(), title: spec.title, priority: None, auto_review });
        }
        let is_waiting =
            |row: &TaskRow| matches!(row.status, TaskStatus::Pending | TaskStatus::Blocked) && row.run_id.is_none();
        for row in self.project.read_only().tasks()? {
            if is_waiting(&row) && !tasks.contains(&TaskId(row.id)) {
                let before: Vec<String> = row.depends_on.iter().map(ToString::to_string).collect();
                let reason = match before.as_slice() {
                    [] => "another task is using its branch".to_owned(),
                    tasks => format!("waits for task {}", tasks.join(", ")),
                };
                report.left_out.push(SkippedTask { id: row.id.to_string(), title: row.title, reason });
            }
        }
        Ok(report)
    }
}

/// The report for a tracker.
fn tracker_report(source: &TaskSource, offer: &TrackerOffer, workflow: &Workflow) -> SlotsReport {
    let name = match source {
        TaskSource::Program { name } => name,
        TaskSource::File { path } => path,
        TaskSource::Queue => "queue",
    };
    let auto_review = is_reviewed(workflow);
    let ready = |spec: &TaskSpec| {
        let tracked = spec.tracker.as_ref()?;
        let (id, title, priority) = (tracked.id.clone(), spec.title.clone(), tracked.priority);
        Some(ReadyTask { id, title, priority, auto_review })
    };
    let left_out = |task: &SourceTask| {
        let excluded = offer.excluded.iter().find(|excluded| excluded.id == task.id);
        let reason = excluded.map(exclusion_reason).or_else(|| not_ready(task))?;
        Some(SkippedTask { id: task.id.clone(), title: task.title.clone(), reason })
    };
    let warning = |warning: &Warning| format!("{name}:{}: {}", warning.line, warning.message);
    SlotsReport::new(
        name,
        offer.ready.iter().filter_map(ready).collect(),
        offer.file.tasks.iter().filter_map(left_out).collect(),
        offer.file.warnings.iter().map(warning).collect(),
    )
}

/// Why an unfinished task cannot start now.
fn not_ready(task: &SourceTask) -> Option<String> {
    match task.state {
        SourceState::Open if is_nameable(&task.id) => None,
        SourceState::Open => Some("its id is not a valid argument".to_owned()),
        SourceState::Blocked if task.depends_on.is_empty() => Some("blocked".to_owned()),
        SourceState::Blocked => Some(format!("blocked, after {}", task.depends_on.join(", "))),
        SourceState::InProgress | SourceState::Deferred | SourceState::Review => {
            Some(task.state.into_str().replace('_', " "))
        }
        SourceState::NotWork => Some("not a work item".to_owned()),
        SourceState::Done | SourceState::Cancelled => None,
    }
}

/// `claimed by task 3 (failed): signoff show 3, then signoff retry 3`.
fn exclusion_reason(excluded: &ExcludedTask) -> String {
    let ExcludedTask { id, by, status, next } = excluded;
    let resume = Action::ResumeRun(None);
    let next_step = match status {
        TaskStatus::Failed | TaskStatus::Stuck => format!(": {next}"),
        TaskStatus::InProgress | TaskStatus::Pending | TaskStatus::Paused | TaskStatus::Blocked => {
            format!(": `{resume}` continues it if no signoff is running")
        }
        TaskStatus::Waiting => ": `signoff` shows what it waits for".to_owned(),
        TaskStatus::Completed => {
            format!(": `{resume}` closes {id} if it is still open, `signoff add` adds a new task")
        }
        TaskStatus::Cancelled => String::new(),
    };
    format!("claimed by task {by} ({}){next_step}", status.into_str())
}

fn is_reviewed(workflow: &Workflow) -> bool {
    workflow.first_gate().is_some()
}

/// Prints the tasks that signoff has finished but that a tracker file still lists as open. Signoff does not write the
/// file, and the file does not say whether a task was reopened.
fn print_done(tracker: &Tracker, offer: &TrackerOffer, console: &Console) -> Result<()> {
    let TaskSource::File { path } = &tracker.source else { return Ok(()) };
    let is_done = |task: &&SourceTask| task.state == SourceState::Done;
    let file = tracker.read(&BTreeSet::new())?;
    let is_done_in_file = |task: &&SourceTask| file.task(&task.id).as_ref().is_some_and(is_done);
    let done: Vec<&str> = offer
        .file
        .tasks
        .iter()
        .filter(is_done)
        .filter(|task| !is_done_in_file(task))
        .map(|task| task.id.as_str())
        .collect();
    if !done.is_empty() {
        let more = if done.len() > MAX_NAMED { ", …" } else { "" };
        let ids = done.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
        console.note(&format!(
            "{ids}{more}: done by signoff, open in {path}. signoff cannot see that a task was reopened in a \
             file: `signoff add` adds a new task"
        ));
    }
    Ok(())
}
