//! Collects the data of a report from the store, git and the artifacts, and the values of its HTML page. If the changes
//! cannot be counted, the report says why instead of failing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use signoff_core::ids::{Commit, LoopId, RunId, TaskId};
use signoff_core::machine::Loop;
use signoff_core::view::inbox::{Action, EndKind, NextStep};
use signoff_core::view::{QuestionRow, RunRow, TaskRow};
use signoff_engine::git::{BranchTips, Git, Repository};
use signoff_serve::page::{ReportHead, TaskPage};
use signoff_store::Store;
use signoff_term::report::{
    self, Changes, DocumentSubject, MAX_COUNTED_TASKS, PartSection, ReportDocument, ReportResult, RunSection,
    TaskSection, Totals,
};
use signoff_term::show::RunHistory;

use crate::command::diff;
use crate::project::{find_task, user_git};
use crate::queries::{TaskContext, artifacts, for_each_chunk, is_voided, void_approval_note};
use crate::{CliError, ReadOnlyProject, Result, host};

/// A report document and what the HTML page needs besides.
pub struct ReportData {
    pub document: ReportDocument,
    /// The run, if the report is about one.
    pub run: Option<RunRow>,
    /// The name of the repository.
    pub project: String,
}

/// Collects the data of one task, with its checkpoint reviews.
pub fn for_task(read_only: &ReadOnlyProject, task: TaskId) -> Result<ReportData> {
    let all = read_only.tasks_from_tables()?;
    let row = find_task(&all, task)?;
    let project = project(read_only);
    let Some((run, loop_id)) = read_only.store.loop_for_task(task)? else {
        let mut data = RunData::empty(read_only, all)?;
        let loop_id = signoff_engine::dispatcher::loop_id(task);
        let tasks = vec![data.task(read_only, row, &loop_id)?];
        let document = ReportDocument::new(DocumentSubject::task(task.0), made_at(), None, Vec::new(), tasks);
        return Ok(ReportData { document, run: None, project });
    };
    let rows: Vec<TaskRow> = all.iter().filter(|row| row.run_id == Some(run.0)).cloned().collect();
    let mut data = RunData::load(read_only, run, all)?;
    let tasks = vec![data.task(read_only, row, &loop_id)?];
    let parts = PartSection::checkpoint_reviews(&data.history, &loop_id);
    let run = read_only.store.run(run)?.map(|row| data.run(row.into(), &rows));
    let document = ReportDocument::new(DocumentSubject::task(task.0), made_at(), run, parts, tasks);
    Ok(ReportData { document, run: None, project })
}

/// Collects the data of a run with all its tasks.
pub fn for_run(read_only: &ReadOnlyProject, run: RunId) -> Result<ReportData> {
    let Some(row) = read_only.store.run(run)?.map(RunRow::from) else {
        let last = read_only.store.last_run()?.map(|row| row.id);
        return Err(unknown_run(run, last));
    };
    let all = read_only.tasks_from_tables()?;
    let rows: Vec<TaskRow> = all.iter().filter(|row| row.run_id == Some(run.0)).cloned().collect();
    let mut data = RunData::load(read_only, run, all)?;
    data.counter.tasks = rows.len();
    let mut tasks = Vec::with_capacity(rows.len());
    let mut has_landed = false;
    let mut loops = BTreeSet::new();
    for row in &rows {
        let recorded = read_only.store.loop_for_task(TaskId(row.id))?.filter(|(loop_run, _)| *loop_run == run);
        let own = || signoff_engine::dispatcher::loop_id(TaskId(row.id));
        let loop_id = recorded.map_or_else(own, |(_, loop_id)| loop_id);
        tasks.push(data.task(read_only, row.clone(), &loop_id)?);
        has_landed |= data.history.state.loop_state(&loop_id).is_some_and(|machine| machine.landed);
        data.history.drop_loop(&loop_id);
        loops.insert(loop_id);
    }
    let parts = PartSection::all(&data.history, &loops);
    let mut run_section = data.run(row.clone(), &rows);
    let branch = run_section.branch.as_deref();
    run_section.changes = branch.and_then(|branch| count_run(&data.counter, branch, &tasks, has_landed));
    let document = ReportDocument::new(DocumentSubject::run(run.0), made_at(), Some(run_section), parts, tasks);
    Ok(ReportData { document, run: Some(row), project: project(read_only) })
}

/// The error for a run that does not exist.
pub fn unknown_run(run: RunId, last: Option<RunId>) -> CliError {
    let hint = match last {
        Some(last) => {
            format!("the last one is run {last}: `signoff report run-{last}`; a number alone is a task")
        }
        None => format!("there are no runs yet: `{}` runs the queued tasks", Action::WorkQueue),
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
    history: RunHistory,
    counter: ChangeCounter,
    artifacts: BTreeMap<TaskId, Vec<String>>,
    questions: Vec<QuestionRow>,
    context: TaskContext,
    /// Whether a process is driving the run.
    driven: bool,
}

impl RunData {
    fn empty(project: &ReadOnlyProject, tasks: Vec<TaskRow>) -> Result<Self> {
        Ok(Self {
            history: RunHistory::default(),
            counter: ChangeCounter::new(project),
            artifacts: artifacts(project),
            questions: project.store.questions()?,
            context: TaskContext { tasks, runs: project.runs()?, driven: BTreeSet::new() },
            driven: false,
        })
    }

    fn load(project: &ReadOnlyProject, run: RunId, tasks: Vec<TaskRow>) -> Result<Self> {
        let mut data = Self { driven: project.store.is_held(run)?, ..Self::empty(project, tasks)? };
        data.context.driven = data.driven.then_some(run.0).into_iter().collect();
        match &project.histories {
            Some(histories) if histories.keeps(&*project.store, run)? => {
                data.history = Arc::unwrap_or_clone(histories.get(&*project.store, run)?)
            }
            Some(_) | None => for_each_chunk(&*project.store, run, 0, |part| data.history.extend(part))?,
        }
        Ok(data)
    }

    fn task(&mut self, project: &ReadOnlyProject, row: TaskRow, loop_id: &LoopId) -> Result<TaskSection> {
        let task = TaskId(row.id);
        let spec = project.store.task_spec(task)?.unwrap_or_default();
        let asked = if spec.description.trim().is_empty() { row.title.clone() } else { spec.description };
        let is_signed_off = EndKind::for_task(&row) == Some(EndKind::Approved);
        let next = self.next_step(&row);
        let machine = self.history.state.loop_state(loop_id);
        let changes = self.counter.count_task(&row, machine, is_signed_off);
        let voided = void_approval_note(project, &row);
        let mut report = self.history.report(row, loop_id, self.artifacts.remove(&task).unwrap_or_default());
        report.voided = voided;
        // Show the question under its number in the repository.
        report.question = self.questions.iter().find(|question| question.task_id == Some(task.0)).cloned();
        Ok(TaskSection::new(report, asked, changes, next, self.driven))
    }

    fn next_step(&self, row: &TaskRow) -> NextStep {
        NextStep::for_task(row, &self.context.snapshot())
    }

    fn run(&self, row: RunRow, tasks: &[TaskRow]) -> RunSection {
        let result = |row: &TaskRow| report::result_of_task(row, &self.next_step(row), self.driven);
        let tasks: Vec<ReportResult> = tasks.iter().map(result).collect();
        let questions: Vec<QuestionRow> =
            self.questions.iter().filter(|question| question.run_id == row.id).cloned().collect();
        let section = RunSection::new(row, &self.history, &tasks, &questions, self.driven);
        let subject = self.history.state.subject.as_ref();
        RunSection { asked: subject.map(|spec| spec.description.clone()), ..section }
    }
}

impl ReportData {
    /// Returns the head of the report and its tasks.
    pub fn pages(self) -> (ReportHead, Vec<TaskPage>) {
        let Self { document, run, project } = self;
        let driven = document.run.as_ref().is_some_and(|run| run.driven);
        let section = document.run.filter(|_| document.subject.is_run());
        // The tables are updated when a task ends; the totals include the cost of running tasks.
        let Totals { cost_usd, cost_is_estimated, roles, .. } = document.totals;
        let run = run.map(|run| RunRow { cost_usd, cost_is_estimated, ..run });
        let tasks = document.tasks.into_iter().map(|task| page(task, &project, driven)).collect();
        (ReportHead { project, run, section, parts: document.parts, roles, made_at: host::now() }, tasks)
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
        next: task.next,
        driven,
        now: host::now(),
    }
}

/// Counts changes with as few git processes as possible.
struct ChangeCounter {
    /// `None` if git cannot open it; the report is written without the changes.
    repository: Option<Repository>,
    tips: BranchTips,
    git: Git,
    /// The number of tasks in the report.
    tasks: usize,
}

impl ChangeCounter {
    fn new(project: &ReadOnlyProject) -> Self {
        Self { repository: project.repository().ok(), tips: BranchTips::new(&project.root), git: user_git(), tasks: 1 }
    }

    /// Counts the changes of a task. A finished task is counted up to its own last commit, because later tasks may have
    /// continued its branch. A running task is counted up to its worktree. A task that changed after its review is
    /// counted up to the tip of its branch.
    fn count_task(&mut self, row: &TaskRow, machine: Option<&Loop>, is_signed_off: bool) -> Changes {
        let Some(base) = &row.base else {
            return Changes::unknown("nothing was changed: it was never started");
        };
        let base = Commit::new(base.as_str());
        let Some(repository) = &self.repository else {
            return Changes::unknown("git cannot open this repository");
        };
        if is_signed_off && self.tasks > MAX_COUNTED_TASKS {
            return Changes::uncounted();
        }
        if !row.status.is_over()
            && has_worktree(repository, row)
            && let Ok(diff) = diff::diff_of_row(repository, row)
        {
            return Changes::parse_stat(&diff.stat);
        }
        let head = machine.map(|machine| machine.head.commit.clone()).filter(|head| !head.as_str().is_empty());
        let Some(head) = head else { return Changes::unknown("nothing was committed") };
        let tip = row.branch.as_deref().and_then(|branch| self.tips.commit(branch, &self.git));
        match tip.map(Commit::new) {
            Some(tip) if is_voided(row) => voided(repository, &base, &head, &tip),
            Some(_) => committed(repository, &base, &head, None),
            None => committed(repository, &base, &head, row.branch.as_deref()),
        }
    }
}

/// Counts the changes up to the tip, with a note how much of it was reviewed.
fn voided(repository: &Repository, base: &Commit, reviewed: &Commit, tip: &Commit) -> Changes {
    let before = committed(repository, base, reviewed, None).summary();
    let short: String = reviewed.as_str().chars().take(12).collect();
    committed(repository, base, tip, None)
        .with_note(format!("Only what lies up to the commit {short} was reviewed: {before}."))
}

/// Counts the committed changes. `gone` is the name of the branch if it no longer exists.
fn committed(repository: &Repository, base: &Commit, head: &Commit, gone: Option<&str>) -> Changes {
    match (repository.diff_between(base, head), gone) {
        (Ok(diff), None) => Changes::parse_stat(&diff.stat),
        (Ok(diff), Some(branch)) => Changes::parse_stat(&diff.stat)
            .with_note(format!("The branch {branch} is gone; this is what its last commit changed.")),
        (Err(_), Some(branch)) => {
            Changes::unknown(format!("the branch {branch} is gone, and git does not have its commits any more"))
        }
        (Err(_), None) => Changes::unknown(format!("git does not have the commit {head} any more")),
    }
}

/// Counts the changes of a run with a shared branch, from the base of its first task. `has_landed` tells whether the
/// log contains a landing on that branch.
fn count_run(counter: &ChangeCounter, branch: &str, tasks: &[TaskSection], has_landed: bool) -> Option<Changes> {
    let repository = counter.repository.as_ref()?;
    let rows = || tasks.iter().map(TaskSection::row);
    let first = rows().filter(|row| row.base.is_some()).min_by_key(|row| row.started_at.clone())?;
    let base = Commit::new(first.base.as_deref()?);
    let Ok(Some(head)) = repository.head_of(branch) else {
        // The tasks of a plan create the branch when the first one starts; otherwise the first landing creates it.
        let in_turn = rows().any(|row| row.base.is_some() && row.branch.as_deref() == Some(branch));
        let was_there = has_landed || in_turn || repository.branch_base(branch).is_ok_and(|at| at.is_some());
        return Some(if was_there { gone(branch) } else { not_landed() });
    };
    let changes = repository
        .diff_between(&base, &head.commit)
        .map_or_else(|_| gone(branch), |diff| Changes::parse_stat(&diff.stat));
    let is_empty = changes.stat.as_deref().is_some_and(|stat| stat.trim().is_empty());
    let tasks_have_changes = tasks.iter().any(|task| task.changes.files > 0 || task.changes.is_uncounted());
    Some(if is_empty && tasks_have_changes { not_landed() } else { changes })
}

fn gone(branch: &str) -> Changes {
    Changes::unknown(format!("the branch {branch} is gone"))
}

fn not_landed() -> Changes {
    Changes::unknown("nothing has landed yet")
}

/// Whether the worktree exists. A report must not create one.
fn has_worktree(repository: &Repository, row: &TaskRow) -> bool {
    let path = row.worktree.as_deref().map(std::path::Path::new);
    path.is_some_and(|path| repository.worktree(path).is_ok_and(|worktree| worktree.exists()))
}
