//! The pages' values, looked at in the store.

use std::collections::BTreeSet;
use std::io;

use signoff_core::config::Settings;
use signoff_core::ids::{AttemptId, LoopId, RunId, TaskId};
use signoff_core::view::{RunRow, TaskRow};
use signoff_engine::process::AttemptDir;
use signoff_engine::transcript;
use signoff_serve::page::{Home, ReportHead, RunPage, TaskPage, Transcript, TranscriptPage};
use signoff_serve::web::{Desk as _, Reported};
use signoff_store::Store;
use signoff_term::attention::{self, Scene};
use signoff_term::show::{Attempt, Report};

use super::Serving;
use crate::command::report;
use crate::command::status::driven;
use crate::desk::Desk;
use crate::door;
use crate::failure::Failure;
use crate::{look, settings};

/// So much of a transcript is read for the page of a task, of so many attempts; and so much for a page of its own.
const GLIMPSE: u64 = 64 * 1024;
const GLIMPSES: usize = 4;
const TAIL: u64 = 1024 * 1024;

/// What all tasks of a repository stand among.
struct Around {
    tasks: Vec<TaskRow>,
    runs: Vec<RunRow>,
    driven: BTreeSet<u64>,
}

impl Around {
    fn of(desk: &Desk, tasks: Vec<TaskRow>) -> Result<Self, Failure> {
        let runs = desk.runs()?;
        let driven = driven(&*desk.store, &tasks, &runs)?;
        Ok(Self { tasks, runs, driven })
    }

    fn next(&self, task: &TaskRow) -> String {
        attention::next(task, &Scene { tasks: &self.tasks, runs: &self.runs, driven: &self.driven })
    }

    fn is_driven(&self, task: &TaskRow) -> bool {
        task.run_id.is_some_and(|run| self.driven.contains(&run))
    }
}

impl Serving {
    pub(super) fn seen_home(&self, all: bool) -> Result<Home, Failure> {
        let (project, now) = (self.project(), door::now());
        let Some(desk) = Desk::find()? else {
            let (tasks, runs, questions, driven) = Default::default();
            return Ok(Home { project, tasks, runs, questions, driven, all, now });
        };
        let Around { tasks, runs, driven } = Around::of(&desk, desk.tasks()?)?;
        Ok(Home { project, tasks, runs, questions: desk.store.questions()?, driven, all, now })
    }

    pub(super) fn seen_run(&self, run: u64) -> Result<RunPage, Failure> {
        let desk = Desk::find()?.ok_or_else(|| unknown_run(run))?;
        let row = run_row(&desk, run)?;
        let own = |task: &TaskRow| task.run_id == Some(run);
        let mut questions = desk.store.questions()?;
        questions.retain(|question| question.run_id == run);
        Ok(RunPage {
            project: self.project(),
            run: row,
            tasks: desk.tasks()?.into_iter().filter(own).collect(),
            questions,
            driven: desk.store.is_held(RunId(run))?,
            now: door::now(),
        })
    }

    pub(super) fn seen_task(&self, task: u64) -> Result<TaskPage, Failure> {
        let desk = Desk::open(TaskId(task))?;
        let (report, tasks) = look::task(&desk, TaskId(task))?;
        let around = Around::of(&desk, tasks)?;
        let mut page = self.page(&desk, report, &around)?;
        page.diff = self.diffs.of(&desk, &page.report.task)?;
        Ok(page)
    }

    /// All about a task but its diff.
    fn page(&self, desk: &Desk, report: Report, around: &Around) -> Result<TaskPage, Failure> {
        let task = TaskId(report.task.id);
        Ok(TaskPage {
            project: self.project(),
            spec: desk.store.task_spec(task)?.map(|spec| spec.description).unwrap_or_default(),
            diff: None,
            changes: None,
            transcripts: self.glimpses(desk, &report)?,
            next: around.next(&report.task),
            driven: around.is_driven(&report.task),
            now: door::now(),
            report,
        })
    }

    /// The last that the last attempts said.
    fn glimpses(&self, desk: &Desk, report: &Report) -> Result<Vec<Transcript>, Failure> {
        let Some(place) = desk.store.loop_of(TaskId(report.task.id))? else { return Ok(Vec::new()) };
        let settings = settings::load(Some(&desk.root)).ok();
        let mut last: Vec<&Attempt> = report.attempts.iter().rev().take(GLIMPSES).collect();
        last.reverse();
        let heard = |attempt| heard(desk, &place, attempt, (settings.as_ref(), GLIMPSE)).ok();
        Ok(last.into_iter().filter_map(heard).collect())
    }

    pub(super) fn seen_transcript(&self, task: u64, attempt: u64) -> Result<TranscriptPage, Failure> {
        let desk = Desk::open(TaskId(task))?;
        let (report, _) = look::task(&desk, TaskId(task))?;
        let id = AttemptId(attempt).to_string();
        let known = report.attempts.iter().find(|known| known.id == id);
        let none = || {
            Failure::usage(format!("task {task} has no attempt {id}"))
                .hint(format!("`signoff show {task}` lists them"))
        };
        let known = known.ok_or_else(none)?.clone();
        let place = desk.loop_of(TaskId(task))?;
        let settings = settings::load(Some(&desk.root)).ok();
        let transcript = heard(&desk, &place, &known, (settings.as_ref(), TAIL))
            .map_err(|error| Failure::failed(format!("the transcript cannot be read: {error}")))?;
        let (project, title) = (self.project(), report.task.title);
        Ok(TranscriptPage { project, task, title, attempt: known, transcript })
    }

    /// The same as `signoff report --format html` writes.
    pub(super) fn seen_report(&self, of: Reported) -> Result<(ReportHead, Vec<TaskPage>), Failure> {
        let gathered = match of {
            Reported::Task(task) => report::of_task(TaskId(task))?,
            Reported::Run(run) => report::of_run(RunId(run))?,
        };
        Ok(gathered.pages())
    }
}

/// The last that an attempt said, as people are shown it.
fn heard(
    desk: &Desk,
    (run, loop_id): &(RunId, LoopId),
    attempt: &Attempt,
    (settings, bytes): (Option<&Settings>, u64),
) -> io::Result<Transcript> {
    let number = attempt.id.trim_start_matches('a').parse().map_err(io::Error::other)?;
    let dir = look::attempt(desk, (*run, loop_id), AttemptId(number));
    let kind = settings.and_then(|settings| settings.agent(&attempt.agent)).map(|agent| agent.kind);
    let mut transcript = transcript::Transcript::tail(&dir, kind, bytes);
    let mut tail = String::new();
    loop {
        let more = transcript.more()?;
        if more.is_empty() {
            break;
        }
        more.iter().for_each(|line| tail.extend([line, "\n"]));
    }
    transcript.rest().iter().for_each(|line| tail.extend([line, "\n"]));
    Ok(Transcript { attempt: attempt.id.clone(), tail, left_out: length(&dir).saturating_sub(bytes) })
}

fn length(dir: &AttemptDir) -> u64 {
    dir.stdout().metadata().map_or(0, |file| file.len())
}

fn run_row(desk: &Desk, run: u64) -> Result<RunRow, Failure> {
    desk.store.run(RunId(run))?.map(RunRow::from).ok_or_else(|| unknown_run(run))
}

fn unknown_run(run: u64) -> Failure {
    Failure::usage(format!("there is no run {run}")).hint("`signoff status` lists the runs that are open")
}
