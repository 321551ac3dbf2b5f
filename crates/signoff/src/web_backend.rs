//! The backend of `signoff serve`: page values and actions from the store, git and the agents' files.

mod actions;
mod changes;
mod diffs;
mod stats;

use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

use signoff_core::ids::{AttemptId, RunId, TaskId};
use signoff_core::settings::Settings;
use signoff_core::view::inbox::{Action, NextStep};
use signoff_core::view::{RunRow, TaskRow};
use signoff_engine::executor::AttemptKey;
use signoff_engine::process::AttemptDir;
use signoff_engine::transcript;
use signoff_serve::page::{HomePage, ReportHead, RunPage, TaskPage, TranscriptPage, TranscriptTail};
use signoff_serve::web::{ActionOutcome, Backend, ReportSubject, RequestError, RequestErrorKind, Watcher, WebAction};
use signoff_store::Store;
use signoff_term::show::{AttemptRow, TaskReport};
use signoff_term::stats::StatsReport;

use self::changes::ChangeWatcher;
use self::diffs::DiffCache;
use self::stats::StatsCache;
use crate::command::report;
use crate::history_cache::SharedStore;
use crate::project::unknown_task;
use crate::queries::{self, TaskContext};
use crate::{CliError, CommandExit, ReadOnlyProject, Result, host, settings};

pub use changes::StoreId;

/// Serves the repository around the working directory. A store that is created or replaced later is picked up.
pub struct WebBackend {
    root: PathBuf,
    store: SharedStore,
    diffs: DiffCache,
    stats: Mutex<StatsCache>,
}

impl WebBackend {
    pub fn new(root: PathBuf) -> Self {
        Self { store: SharedStore::new(root.clone()), root, diffs: DiffCache::default(), stats: Mutex::default() }
    }
}

impl Backend for WebBackend {
    fn project(&self) -> String {
        let name = self.root.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn home(&self, all: bool) -> Result<HomePage, RequestError> {
        self.home_page(all).map_err(page_error)
    }

    fn run(&self, run: u64) -> Result<RunPage, RequestError> {
        self.run_page(run).map_err(page_error)
    }

    fn task(&self, task: u64) -> Result<TaskPage, RequestError> {
        self.task_page(task).map_err(page_error)
    }

    fn transcript(&self, task: u64, attempt: u64) -> Result<TranscriptPage, RequestError> {
        self.transcript_page(task, attempt).map_err(page_error)
    }

    fn stats(&self) -> Result<StatsReport, RequestError> {
        self.stats_report().map_err(page_error)
    }

    fn report(&self, subject: ReportSubject) -> Result<(ReportHead, Vec<TaskPage>), RequestError> {
        self.report_pages(subject).map_err(page_error)
    }

    fn perform(&self, action: WebAction) -> Result<ActionOutcome, RequestError> {
        actions::perform(&self.store, action)
    }

    fn auto_review_default(&self) -> bool {
        actions::reviews_by_default(&self.root)
    }

    fn watcher(&self) -> Box<dyn Watcher> {
        Box::new(ChangeWatcher::new(&self.root))
    }
}

/// Converts an error of a page query: a usage error means that the page does not exist.
fn page_error(failure: CliError) -> RequestError {
    request_error(&failure, RequestErrorKind::NotFound)
}

/// Converts the error of a command into a refusal. `usage_kind` is the kind of a usage error.
fn request_error(failure: &CliError, usage_kind: RequestErrorKind) -> RequestError {
    let kind = if failure.exit == CommandExit::Usage { usage_kind } else { RequestErrorKind::Internal };
    let location = failure.location.as_ref().map(|location| format!(" ({location})")).unwrap_or_default();
    let hint = failure.hint.clone();
    RequestError { kind, message: format!("{}{location}", failure.message), hint }
}

/// The task page shows the last `EXCERPT_BYTES` bytes of the last `EXCERPTS` transcripts. A transcript page shows
/// `TAIL` bytes.
const EXCERPT_BYTES: u64 = 64 * 1024;
const EXCERPTS: usize = 4;
const TAIL: u64 = 1024 * 1024;

/// Opens the project for one request.
fn find_project(store: &SharedStore) -> Result<Option<ReadOnlyProject>> {
    let project = store.project()?;
    project.iter().for_each(ReadOnlyProject::clean_up);
    Ok(project)
}

/// Opens the project for a request about a task. A missing store means that the task does not exist.
fn project_of(store: &SharedStore, task: TaskId) -> Result<ReadOnlyProject> {
    find_project(store)?.ok_or_else(|| unknown_task(task))
}

impl WebBackend {
    fn home_page(&self, all: bool) -> Result<HomePage> {
        let (project, now) = (self.project(), host::now());
        let Some(read_only) = find_project(&self.store)? else {
            let (tasks, runs, questions, driven) = Default::default();
            return Ok(HomePage { project, tasks, runs, questions, driven, all, now });
        };
        let TaskContext { tasks, runs, driven } = TaskContext::load(&read_only, read_only.tasks()?)?;
        Ok(HomePage { project, tasks, runs, questions: read_only.store.questions()?, driven, all, now })
    }

    fn run_page(&self, run: u64) -> Result<RunPage> {
        let project = find_project(&self.store)?.ok_or_else(|| unknown_run(run))?;
        let row = project.store.run(RunId(run))?.map(RunRow::from).ok_or_else(|| unknown_run(run))?;
        let own = |task: &TaskRow| task.run_id == Some(run);
        let mut questions = project.store.questions()?;
        questions.retain(|question| question.run_id == run);
        Ok(RunPage {
            project: self.project(),
            run: row,
            tasks: project.tasks()?.into_iter().filter(own).collect(),
            questions,
            driven: project.store.is_held(RunId(run))?,
            now: host::now(),
        })
    }

    fn task_page(&self, task: u64) -> Result<TaskPage> {
        let project = project_of(&self.store, TaskId(task))?;
        let (report, tasks) = queries::task_report(&project, TaskId(task))?;
        let task_context = TaskContext::load(&project, tasks)?;
        let mut page = self.page(&project, report, &task_context)?;
        page.diff = self.diffs.get(&project, &page.report.task)?;
        Ok(page)
    }

    /// Builds the page of a task without its diff.
    fn page(&self, project: &ReadOnlyProject, report: TaskReport, task_context: &TaskContext) -> Result<TaskPage> {
        let task = TaskId(report.task.id);
        Ok(TaskPage {
            project: self.project(),
            spec: project.store.task_spec(task)?.map(|spec| spec.description).unwrap_or_default(),
            diff: None,
            changes: None,
            transcripts: self.transcript_excerpts(project, &report)?,
            next: NextStep::for_task(&report.task, &task_context.snapshot()),
            driven: report.task.run_id.is_some_and(|run| task_context.driven.contains(&run)),
            now: host::now(),
            report,
        })
    }

    /// The ends of the last transcripts.
    fn transcript_excerpts(&self, project: &ReadOnlyProject, report: &TaskReport) -> Result<Vec<TranscriptTail>> {
        let Some((run, loop_id)) = project.store.loop_for_task(TaskId(report.task.id))? else { return Ok(Vec::new()) };
        let settings = settings::load(Some(&project.root)).ok();
        let mut last: Vec<&AttemptRow> = report.attempts.iter().rev().take(EXCERPTS).collect();
        last.reverse();
        let read = |attempt: &AttemptRow| {
            let number = attempt.id.trim_start_matches('a').parse().ok()?;
            let dir = queries::attempt_dir(project, &AttemptKey::new(run, &loop_id, AttemptId(number)));
            read_transcript(&dir, attempt, settings.as_ref(), EXCERPT_BYTES).ok()
        };
        Ok(last.into_iter().filter_map(read).collect())
    }

    fn transcript_page(&self, task: u64, attempt: u64) -> Result<TranscriptPage> {
        let read_only = project_of(&self.store, TaskId(task))?;
        let (report, _) = queries::task_report(&read_only, TaskId(task))?;
        let id = AttemptId(attempt).to_string();
        let attempt_row = report.attempts.iter().find(|attempt_row| attempt_row.id == id);
        let none = || {
            CliError::usage(format!("task {task} has no attempt {id}"))
                .hint(format!("`{}` lists them", Action::Show(task)))
        };
        let attempt_row = attempt_row.ok_or_else(none)?.clone();
        let (run, loop_id) = read_only.loop_of(TaskId(task))?;
        let dir = queries::attempt_dir(&read_only, &AttemptKey { run, loop_id, attempt: AttemptId(attempt) });
        let settings = settings::load(Some(&read_only.root)).ok();
        let transcript = read_transcript(&dir, &attempt_row, settings.as_ref(), TAIL)
            .map_err(|error| CliError::failed(format!("the transcript cannot be read: {error}")))?;
        let (project, title) = (self.project(), report.task.title);
        Ok(TranscriptPage { project, task, title, attempt: attempt_row, transcript })
    }

    /// The report as `signoff report --format html` writes it.
    fn report_pages(&self, subject: ReportSubject) -> Result<(ReportHead, Vec<TaskPage>)> {
        let data = match subject {
            ReportSubject::Task(task) => report::for_task(&project_of(&self.store, TaskId(task))?, TaskId(task))?,
            ReportSubject::Run(run) => {
                let unknown = || report::unknown_run(RunId(run), None);
                report::for_run(&find_project(&self.store)?.ok_or_else(unknown)?, RunId(run))?
            }
        };
        Ok(data.pages())
    }
}

/// Reads the last `bytes` of an attempt's transcript.
fn read_transcript(
    dir: &AttemptDir,
    attempt: &AttemptRow,
    settings: Option<&Settings>,
    bytes: u64,
) -> io::Result<TranscriptTail> {
    let kind = settings.and_then(|settings| settings.agent(&attempt.agent)).map(|agent| agent.kind);
    let mut transcript = transcript::TranscriptReader::tail(dir, kind, bytes);
    let mut tail = String::new();
    loop {
        let more = transcript.read_more()?;
        if more.is_empty() {
            break;
        }
        more.iter().for_each(|line| tail.extend([line, "\n"]));
    }
    transcript.finish().iter().for_each(|line| tail.extend([line, "\n"]));
    let length = dir.stdout().metadata().map_or(0, |file| file.len());
    Ok(TranscriptTail { attempt: attempt.id.clone(), tail, left_out: length.saturating_sub(bytes) })
}

fn unknown_run(run: u64) -> CliError {
    CliError::usage(format!("there is no run {run}")).hint("`signoff status` lists the runs that are open")
}
