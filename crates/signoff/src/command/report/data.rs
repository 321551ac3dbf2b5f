//! Collects the data of a report from the store, git and the artifacts, and the values of its HTML page.

use std::collections::BTreeSet;

use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::view::{QuestionRow, RunRow, TaskRow};
use signoff_serve::page::{ReportHead, TaskPage};
use signoff_store::Store;
use signoff_term::report::{
    self, DocumentSubject, PartSection, ReportDocument, ReportResult, RunSection, TaskSection, Totals,
};
use signoff_term::show::RunHistory;

use super::changes::{self, ChangeCounter};
use crate::error::CliError;
use crate::host;
use crate::project::ReadOnlyProject;
use crate::queries::{TaskArtifacts, for_each_chunk, void_approval_note};

/// A report document and what the HTML page needs besides.
pub struct ReportData {
    pub account: ReportDocument,
    /// The run, if the report is about one.
    pub run: Option<RunRow>,
    /// The name of the repository.
    pub project: String,
}

/// Collects the data of one task, with its checkpoint reviews.
pub fn for_task(task: TaskId) -> Result<ReportData, CliError> {
    let read_only = ReadOnlyProject::for_task(task)?;
    let (row, all) = read_only.task_and_all(task)?;
    let project = project(&read_only);
    let Some((run, loop_id)) = read_only.store.loop_for_task(task)? else {
        let mut data = RunData::empty(&read_only)?;
        let loop_id = signoff_engine::dispatcher::loop_id(task);
        let tasks = vec![data.task(&read_only, row, &loop_id)?];
        let account = ReportDocument::new(DocumentSubject::task(task.0), made_at(), None, Vec::new(), tasks);
        return Ok(ReportData { account, run: None, project });
    };
    let mut data = RunData::load(&read_only, run)?;
    let tasks = vec![data.task(&read_only, row, &loop_id)?];
    let parts = PartSection::checkpoint_reviews(&data.folded, &loop_id);
    let rows: Vec<TaskRow> = all.into_iter().filter(|row| row.run_id == Some(run.0)).collect();
    let run = read_only.store.run(run)?.map(|row| data.run(row.into(), &rows));
    let account = ReportDocument::new(DocumentSubject::task(task.0), made_at(), run, parts, tasks);
    Ok(ReportData { account, run: None, project })
}

/// Collects the data of a run with all its tasks.
pub fn for_run(run: RunId) -> Result<ReportData, CliError> {
    let read_only = ReadOnlyProject::find()?.ok_or_else(|| unknown_run(run, None))?;
    let Some(row) = read_only.store.run(run)?.map(RunRow::from) else {
        let last = read_only.store.last_run()?.map(|row| row.id);
        return Err(unknown_run(run, last));
    };
    let mut data = RunData::load(&read_only, run)?;
    let rows: Vec<TaskRow> = read_only.tasks()?.into_iter().filter(|row| row.run_id == Some(run.0)).collect();
    data.counter.tasks = rows.len();
    let mut tasks = Vec::with_capacity(rows.len());
    let mut has_landed = false;
    let mut loops = BTreeSet::new();
    for row in &rows {
        let known = read_only.store.loop_for_task(TaskId(row.id))?.filter(|(of, _)| *of == run);
        let own = || signoff_engine::dispatcher::loop_id(TaskId(row.id));
        let loop_id = known.map_or_else(own, |(_, loop_id)| loop_id);
        tasks.push(data.task(&read_only, row.clone(), &loop_id)?);
        has_landed |= data.folded.state.loop_state(&loop_id).is_some_and(|this| this.landed);
        data.folded.forget(&loop_id);
        loops.insert(loop_id);
    }
    let parts = PartSection::all(&data.folded, &loops);
    let mut run_account = data.run(row.clone(), &rows);
    let branch = run_account.branch.as_deref();
    run_account.changes = branch.and_then(|branch| changes::count_run(&data.counter, branch, &tasks, has_landed));
    let account = ReportDocument::new(DocumentSubject::run(run.0), made_at(), Some(run_account), parts, tasks);
    Ok(ReportData { account, run: Some(row), project: project(&read_only) })
}

fn unknown_run(run: RunId, last: Option<RunId>) -> CliError {
    let hint = match last {
        Some(last) => {
            format!("the last one is run {last}: `signoff report run-{last}`; a number alone is a task")
        }
        None => "there are no runs yet: `signoff work` works the tasks".to_owned(),
    };
    CliError::usage(format!("there is no run {run}")).hint(hint)
}

fn made_at() -> String {
    host::now().to_string()
}

fn project(read_only: &ReadOnlyProject) -> String {
    read_only.root.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The log of a run and other data shared by its tasks, read once.
struct RunData {
    folded: RunHistory,
    counter: ChangeCounter,
    artifacts: TaskArtifacts,
    questions: Vec<QuestionRow>,
    /// Whether a process is driving the run.
    driven: bool,
}

impl RunData {
    fn empty(project: &ReadOnlyProject) -> Result<Self, CliError> {
        Ok(Self {
            folded: RunHistory::default(),
            counter: ChangeCounter::new(project),
            artifacts: TaskArtifacts::load(project),
            questions: project.store.questions()?,
            driven: false,
        })
    }

    fn load(project: &ReadOnlyProject, run: RunId) -> Result<Self, CliError> {
        let mut this = Self { driven: project.store.is_held(run)?, ..Self::empty(project)? };
        for_each_chunk(&*project.store, run, |part| this.folded.extend(part))?;
        Ok(this)
    }

    fn task(&mut self, project: &ReadOnlyProject, row: TaskRow, loop_id: &LoopId) -> Result<TaskSection, CliError> {
        let task = TaskId(row.id);
        let spec = project.store.task_spec(task)?.unwrap_or_default();
        let asked = if spec.description.trim().is_empty() { row.title.clone() } else { spec.description };
        let is_signed_off = report::result_of_task(&row, self.driven).kind == "passed";
        let this = self.folded.state.loop_state(loop_id);
        let changes = self.counter.count_task(&row, this, is_signed_off);
        let voided = void_approval_note(project, &row);
        let mut report = self.folded.report(row, loop_id, self.artifacts.for_task(task));
        report.voided = voided;
        // Show the question under its number in the repository.
        report.question = self.questions.iter().find(|one| one.task_id == Some(task.0)).cloned();
        Ok(TaskSection::new(report, asked, changes, self.driven))
    }

    fn run(&self, row: RunRow, tasks: &[TaskRow]) -> RunSection {
        let tasks: Vec<ReportResult> = tasks.iter().map(|row| report::result_of_task(row, self.driven)).collect();
        let questions: Vec<QuestionRow> = self.questions.iter().filter(|one| one.run_id == row.id).cloned().collect();
        let account = RunSection::new(row, &self.folded, &tasks, &questions, self.driven);
        let subject = self.folded.state.subject.as_ref();
        RunSection { asked: subject.map(|spec| spec.description.clone()), ..account }
    }
}

impl ReportData {
    /// Returns the head of the report and its tasks.
    pub fn pages(self) -> (ReportHead, Vec<TaskPage>) {
        let Self { account, run, project } = self;
        let driven = account.run.as_ref().is_some_and(|run| run.driven);
        let section = account.run.filter(|_| account.subject.kind == "run");
        // The tables are updated when a task ends; the totals include the cost of running tasks.
        let Totals { cost_usd, cost_is_estimated, roles, .. } = account.totals;
        let run = run.map(|run| RunRow { cost_usd, cost_is_estimated, ..run });
        let tasks = account.tasks.into_iter().map(|task| page(task, &project, driven)).collect();
        (ReportHead { project, run, section, parts: account.parts, roles, made_at: host::now() }, tasks)
    }
}

fn page(task: TaskSection, project: &str, driven: bool) -> TaskPage {
    TaskPage {
        project: project.to_owned(),
        report: task.report,
        spec: task.asked,
        diff: None,
        changes: Some(task.changes),
        transcripts: Vec::new(),
        next: String::new(),
        driven,
        now: host::now(),
    }
}
