//! Builds the values of the web pages from the store.

use std::collections::BTreeSet;
use std::io;

use signoff_core::ids::{AttemptId, RunId, TaskId};
use signoff_core::settings::Settings;
use signoff_core::view::inbox::{NextStep, ProjectSnapshot};
use signoff_core::view::{RunRow, TaskRow};
use signoff_engine::executor::AttemptKey;
use signoff_engine::process::AttemptDir;
use signoff_engine::transcript;
use signoff_serve::page::{Home, ReportHead, RunPage, TaskPage, TranscriptPage, TranscriptTail};
use signoff_serve::web::{Backend as _, ReportSubject};
use signoff_store::Store;
use signoff_term::show::{AttemptRow, TaskReport};

use super::WebBackend;
use crate::command::report;
use crate::command::status::driven;
use crate::{CliError, ReadOnlyProject, host, queries, settings};

/// The task page shows the last `EXCERPT_BYTES` bytes of the last `EXCERPTS` transcripts. A transcript page shows
/// `TAIL` bytes.
const EXCERPT_BYTES: u64 = 64 * 1024;
const EXCERPTS: usize = 4;
const TAIL: u64 = 1024 * 1024;

/// All tasks and runs, and the runs being driven: the context for one task.
struct TaskContext {
    tasks: Vec<TaskRow>,
    runs: Vec<RunRow>,
    driven: BTreeSet<u64>,
}

impl TaskContext {
    fn load(project: &ReadOnlyProject, tasks: Vec<TaskRow>) -> Result<Self, CliError> {
        let runs = project.runs()?;
        let driven = driven(&*project.store, &tasks, &runs)?;
        Ok(Self { tasks, runs, driven })
    }

    fn next(&self, task: &TaskRow) -> String {
        let snapshot = ProjectSnapshot { tasks: &self.tasks, runs: &self.runs, driven: &self.driven };
        NextStep::for_task(task, &snapshot).to_string()
    }

    fn is_driven(&self, task: &TaskRow) -> bool {
        task.run_id.is_some_and(|run| self.driven.contains(&run))
    }
}

impl WebBackend {
    pub(super) fn home_page(&self, all: bool) -> Result<Home, CliError> {
        let (project, now) = (self.project(), host::now());
        let Some(read_only) = ReadOnlyProject::find()? else {
            let (tasks, runs, questions, driven) = Default::default();
            return Ok(Home { project, tasks, runs, questions, driven, all, now });
        };
        let TaskContext { tasks, runs, driven } = TaskContext::load(&read_only, read_only.tasks()?)?;
        Ok(Home { project, tasks, runs, questions: read_only.store.questions()?, driven, all, now })
    }

    pub(super) fn run_page(&self, run: u64) -> Result<RunPage, CliError> {
        let project = ReadOnlyProject::find()?.ok_or_else(|| unknown_run(run))?;
        let row = run_row(&project, run)?;
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

    pub(super) fn task_page(&self, task: u64) -> Result<TaskPage, CliError> {
        let project = ReadOnlyProject::for_task(TaskId(task))?;
        let (report, tasks) = queries::task_report(&project, TaskId(task))?;
        let around = TaskContext::load(&project, tasks)?;
        let mut page = self.page(&project, report, &around)?;
        page.diff = self.diffs.get(&project, &page.report.task)?;
        Ok(page)
    }

    /// Builds the page of a task without its diff.
    fn page(&self, project: &ReadOnlyProject, report: TaskReport, around: &TaskContext) -> Result<TaskPage, CliError> {
        let task = TaskId(report.task.id);
        Ok(TaskPage {
            project: self.project(),
            spec: project.store.task_spec(task)?.map(|spec| spec.description).unwrap_or_default(),
            diff: None,
            changes: None,
            transcripts: self.transcript_excerpts(project, &report)?,
            next: around.next(&report.task),
            driven: around.is_driven(&report.task),
            now: host::now(),
            report,
        })
    }

    /// The ends of the last transcripts.
    fn transcript_excerpts(
        &self,
        project: &ReadOnlyProject,
        report: &TaskReport,
    ) -> Result<Vec<TranscriptTail>, CliError> {
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

    pub(super) fn transcript_page(&self, task: u64, attempt: u64) -> Result<TranscriptPage, CliError> {
        let read_only = ReadOnlyProject::for_task(TaskId(task))?;
        let (report, _) = queries::task_report(&read_only, TaskId(task))?;
        let id = AttemptId(attempt).to_string();
        let known = report.attempts.iter().find(|known| known.id == id);
        let none = || {
            CliError::usage(format!("task {task} has no attempt {id}"))
                .hint(format!("`signoff show {task}` lists them"))
        };
        let known = known.ok_or_else(none)?.clone();
        let (run, loop_id) = read_only.loop_of(TaskId(task))?;
        let dir = queries::attempt_dir(&read_only, &AttemptKey { run, loop_id, attempt: AttemptId(attempt) });
        let settings = settings::load(Some(&read_only.root)).ok();
        let transcript = read_transcript(&dir, &known, settings.as_ref(), TAIL)
            .map_err(|error| CliError::failed(format!("the transcript cannot be read: {error}")))?;
        let (project, title) = (self.project(), report.task.title);
        Ok(TranscriptPage { project, task, title, attempt: known, transcript })
    }

    /// The report as `signoff report --format html` writes it.
    pub(super) fn report_pages(&self, of: ReportSubject) -> Result<(ReportHead, Vec<TaskPage>), CliError> {
        let data = match of {
            ReportSubject::Task(task) => report::for_task(TaskId(task))?,
            ReportSubject::Run(run) => report::for_run(RunId(run))?,
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
    Ok(TranscriptTail { attempt: attempt.id.clone(), tail, left_out: length(dir).saturating_sub(bytes) })
}

fn length(dir: &AttemptDir) -> u64 {
    dir.stdout().metadata().map_or(0, |file| file.len())
}

fn run_row(project: &ReadOnlyProject, run: u64) -> Result<RunRow, CliError> {
    project.store.run(RunId(run))?.map(RunRow::from).ok_or_else(|| unknown_run(run))
}

fn unknown_run(run: u64) -> CliError {
    CliError::usage(format!("there is no run {run}")).hint("`signoff status` lists the runs that are open")
}
