//! All that a report tells, looked at in the store, in git and among the files that are kept.

use std::collections::BTreeSet;

use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::view::{QuestionRow, RunRow, TaskRow};
use signoff_core::wire::{Fact, Recorded, RunFact};
use signoff_store::Store;
use signoff_term::report::{self, About, Account, Part, RunAccount, Standing, TaskAccount};
use signoff_term::show::Folded;

use super::changes::{self, Counting};
use crate::desk::Desk;
use crate::door;
use crate::failure::Failure;
use crate::look::{Kept, in_parts, voided};

/// An account, and what a page says besides.
pub struct Gathered {
    pub account: Account,
    /// The run, where the report is of one.
    pub run: Option<RunRow>,
    /// What the person calls the repository.
    pub project: String,
}

/// One task, with the looks at it while it was worked.
pub fn of_task(task: TaskId) -> Result<Gathered, Failure> {
    let desk = Desk::open(task)?;
    let (row, all) = desk.seen(task)?;
    let project = project(&desk);
    let Some((run, loop_id)) = desk.store.loop_of(task)? else {
        let mut held = Held::nothing(&desk)?;
        let loop_id = signoff_engine::dispatcher::loop_id(task);
        let tasks = vec![held.task(&desk, row, &loop_id)?];
        let account = Account::of(About::task(task.0), made_at(), None, (Vec::new(), tasks));
        return Ok(Gathered { account, run: None, project });
    };
    let mut held = Held::of(&desk, run)?;
    let tasks = vec![held.task(&desk, row, &loop_id)?];
    let parts = Part::looks(&held.folded, &loop_id);
    let rows: Vec<TaskRow> = all.into_iter().filter(|row| row.run_id == Some(run.0)).collect();
    let run = desk.store.run(run)?.map(|row| held.run(row.into(), &rows));
    let account = Account::of(About::task(task.0), made_at(), run, (parts, tasks));
    Ok(Gathered { account, run: None, project })
}

/// A run with all its tasks.
pub fn of_run(run: RunId) -> Result<Gathered, Failure> {
    let desk = Desk::find()?.ok_or_else(|| unknown_run(run, None))?;
    let Some(row) = desk.store.run(run)?.map(RunRow::from) else {
        let last = desk.store.last_run()?.map(|row| row.id);
        return Err(unknown_run(run, last));
    };
    let mut held = Held::of(&desk, run)?;
    let rows: Vec<TaskRow> = desk.tasks()?.into_iter().filter(|row| row.run_id == Some(run.0)).collect();
    held.counting.tasks = rows.len();
    let mut tasks = Vec::with_capacity(rows.len());
    let mut has_landed = false;
    let mut loops = BTreeSet::new();
    for row in &rows {
        let known = desk.store.loop_of(TaskId(row.id))?.filter(|(of, _)| *of == run);
        let own = || signoff_engine::dispatcher::loop_id(TaskId(row.id));
        let loop_id = known.map_or_else(own, |(_, loop_id)| loop_id);
        tasks.push(held.task(&desk, row.clone(), &loop_id)?);
        has_landed |= held.folded.view.loop_state(&loop_id).is_some_and(|this| this.landed);
        held.folded.forget(&loop_id);
        loops.insert(loop_id);
    }
    let parts = Part::all(&held.folded, &loops);
    let mut told = held.run(row.clone(), &rows);
    let branch = told.branch.as_deref();
    told.changes = branch.and_then(|branch| changes::of_run(&held.counting, branch, &tasks, has_landed));
    let account = Account::of(About::run(run.0), made_at(), Some(told), (parts, tasks));
    Ok(Gathered { account, run: Some(row), project: project(&desk) })
}

fn unknown_run(run: RunId, last: Option<RunId>) -> Failure {
    let hint = match last {
        Some(last) => {
            format!("the last one is run {last}: `signoff report run-{last}`; a number alone is a task")
        }
        None => "there are no runs yet: `signoff work` works the tasks".to_owned(),
    };
    Failure::usage(format!("there is no run {run}")).hint(hint)
}

fn made_at() -> String {
    door::now().to_string()
}

fn project(desk: &Desk) -> String {
    desk.root.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A run's log, and all else that many tasks share, read once.
struct Held {
    folded: Folded,
    /// The text that the run was asked for.
    asked: Option<String>,
    counting: Counting,
    kept: Kept,
    questions: Vec<QuestionRow>,
    /// Whether somebody is at work on it.
    driven: bool,
}

impl Held {
    fn nothing(desk: &Desk) -> Result<Self, Failure> {
        Ok(Self {
            folded: Folded::default(),
            asked: None,
            counting: Counting::of(desk),
            kept: Kept::of(desk),
            questions: desk.store.questions()?,
            driven: false,
        })
    }

    fn of(desk: &Desk, run: RunId) -> Result<Self, Failure> {
        let mut this = Self { driven: desk.store.is_held(run)?, ..Self::nothing(desk)? };
        in_parts(&*desk.store, run, |part| {
            this.asked = this.asked.take().or_else(|| asked(part));
            this.folded.go_on(part);
        })?;
        Ok(this)
    }

    fn task(&mut self, desk: &Desk, row: TaskRow, loop_id: &LoopId) -> Result<TaskAccount, Failure> {
        let task = TaskId(row.id);
        let spec = desk.store.task_spec(task)?.unwrap_or_default();
        let asked = if spec.description.trim().is_empty() { row.title.clone() } else { spec.description };
        let is_signed_off = report::of_task(&row, self.driven).kind == "passed";
        let this = self.folded.view.loop_state(loop_id);
        let changes = self.counting.of_task(&row, this, is_signed_off);
        let voided = voided(desk, &row);
        let mut report = self.folded.report(row, loop_id, self.kept.of_task(task));
        report.voided = voided;
        // People know a question by the number it has in the whole repository.
        report.question = self.questions.iter().find(|one| one.task_id == Some(task.0)).cloned();
        Ok(TaskAccount::of(report, asked, changes, self.driven))
    }

    fn run(&self, row: RunRow, tasks: &[TaskRow]) -> RunAccount {
        let tasks: Vec<Standing> = tasks.iter().map(|row| report::of_task(row, self.driven)).collect();
        let questions: Vec<QuestionRow> =
            self.questions.iter().filter(|one| one.run_id == row.id).cloned().collect();
        let account = RunAccount::of(row, &self.folded, (&tasks, &questions), self.driven);
        RunAccount { asked: self.asked.clone(), ..account }
    }
}

/// The text that a run was asked for.
fn asked(log: &[Recorded]) -> Option<String> {
    log.iter().find_map(|recorded| match &recorded.fact {
        Fact::Run(RunFact::Specified { text, .. }) => Some(text.clone()),
        Fact::Run(RunFact::Opened { .. } | RunFact::Moved(_)) | Fact::Task(..) | Fact::Loop(..) => None,
    })
}
