//! The text of `signoff` alone: what needs a person, what runs, how much there is.

use std::collections::{BTreeMap, BTreeSet};

use signoff_core::task::TaskType;
use signoff_core::view::{QuestionRow, RunRow, Status, TaskRow};

use crate::fit::cut;
use crate::{runs, status};

const EMPTY: &str = "\
Nothing to do yet.

  signoff add \"what is to be done\" -a    a task, reviewed until it is approved
  signoff work                           works the tasks
  signoff run PLAN                       works the tasks of a plan file

`signoff --help` lists all commands.
";

/// How much is told of what needs attention; `signoff status` has the rest.
const SHOWN: usize = 20;

/// The tasks among which one stands.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    pub tasks: &'a [TaskRow],
    /// The runs in which something is left to do.
    pub runs: &'a [RunRow],
    /// The runs that some program works on now.
    pub driven: &'a BTreeSet<u64>,
}

impl Scene<'_> {
    /// Whether a task that was taken up is worked on by nobody.
    fn is_left(&self, task: &TaskRow) -> bool {
        let driven = task.run_id.is_some_and(|run| self.driven.contains(&run));
        task.status == Status::InProgress && !driven
    }

    /// Whether a task only waits for its agent, and somebody waits with it: it goes on by itself.
    fn waits_by_itself(&self, task: &TaskRow) -> bool {
        let driven = task.run_id.is_some_and(|run| self.driven.contains(&run));
        is_refused(task) && driven
    }

    /// The run of groups that a task belongs to.
    fn run_of(&self, task: &TaskRow) -> Option<&RunRow> {
        self.runs.iter().find(|run| runs::is_told(run) && task.run_id == Some(run.id))
    }

    /// The run that is named where a task of it is left.
    fn left_run_of(&self, task: &TaskRow) -> Option<&RunRow> {
        self.runs.iter().find(|run| runs::is_listed(run, self) && task.run_id == Some(run.id))
    }

    /// Whether a person refused a task of the run.
    fn has_refused_task(&self, run: &RunRow) -> bool {
        self.tasks.iter().any(|task| task.run_id == Some(run.id) && task.is_refused_by_person())
    }

    /// Whether what is to be said of a task is said of its run.
    fn is_told_by_its_run(&self, task: &TaskRow) -> bool {
        task.status == Status::Blocked && self.run_of(task).is_some()
    }
}

/// What needs attention first, then what runs, then counts.
pub fn text(scene: &Scene, questions: &[QuestionRow], title: usize) -> String {
    let tasks = scene.tasks;
    if tasks.is_empty() && questions.is_empty() && scene.runs.is_empty() {
        return EMPTY.to_owned();
    }
    let Sorted { troubled, left, running } = Sorted::of(scene);
    let left: Vec<&TaskRow> = left.into_iter().filter(|task| scene.left_run_of(task).is_none()).collect();
    let running: Vec<TaskRow> = running.into_iter().cloned().collect();
    let left_runs = told(scene, |run| runs::is_left(run, scene));
    let stopped_runs = told(scene, runs::needs_somebody);
    let going_runs = told(scene, |run| run.status == "running" && !runs::is_left(run, scene));
    let mut parts = Vec::new();
    if !questions.is_empty() || !troubled.is_empty() || !stopped_runs.is_empty() {
        parts.push(format!("Needs attention:\n{stopped_runs}{}", needed(questions, &troubled, scene)));
    }
    if !left.is_empty() || !left_runs.is_empty() {
        parts.push(format!("Interrupted:\n{left_runs}{}", listed(&left, scene)));
    }
    if !running.is_empty() || !going_runs.is_empty() {
        parts.push(format!("Running:\n{going_runs}{}", status::rows(&running, title)));
    }
    parts.extend((!tasks.is_empty()).then(|| counts(tasks)));
    parts.join("\n")
}

/// The tasks about which something is to be said now.
#[derive(Debug, Clone, PartialEq)]
pub struct Sorted<'a> {
    /// Somebody has to do something about them, most urgent first. Open questions tell of others.
    pub troubled: Vec<&'a TaskRow>,
    /// Taken up, and worked on by nobody.
    pub left: Vec<&'a TaskRow>,
    pub running: Vec<&'a TaskRow>,
}

impl<'a> Sorted<'a> {
    pub fn of(scene: &Scene<'a>) -> Self {
        let tasks = scene.tasks;
        let latest = latest(tasks);
        // What a person has said of a task stands, whatever came after it on the branch.
        let is_open = |task: &&TaskRow| {
            task.is_refused_by_person() || latest.get(&root(task)).is_none_or(|latest| *latest <= task.id)
        };
        let untold = |task: &&TaskRow| !scene.is_told_by_its_run(task) && !scene.waits_by_itself(task);
        let urgent = tasks.iter().filter(is_open).filter(untold);
        let mut troubled: Vec<_> = urgent.filter_map(|task| Some((urgency(task)?, task))).collect();
        troubled.sort_by_key(|(urgency, task)| (*urgency, task.id));
        let taken_up = |task: &TaskRow| task.status == Status::InProgress && !scene.is_left(task);
        let runs = |task: &&TaskRow| taken_up(task) || scene.waits_by_itself(task);
        Self {
            troubled: troubled.into_iter().map(|(_, task)| task).collect(),
            left: tasks.iter().filter(|task| scene.is_left(task)).collect(),
            running: tasks.iter().filter(runs).collect(),
        }
    }
}

/// The numbers of the tasks that need a person, apart from those that another task goes on with.
pub fn unsettled(tasks: &[TaskRow]) -> BTreeSet<u64> {
    let driven = BTreeSet::new();
    let sorted = Sorted::of(&Scene { tasks, runs: &[], driven: &driven });
    sorted.troubled.iter().map(|row| row.id).collect()
}

/// Those runs, where they are more than their tasks.
fn told(scene: &Scene, which: impl Fn(&RunRow) -> bool) -> String {
    let shown = scene.runs.iter().filter(|run| runs::is_listed(run, scene) && which(run));
    shown.map(|run| runs::told(run, scene)).collect()
}

/// The task whose work a task goes on with, or itself.
fn root(task: &TaskRow) -> u64 {
    task.continues.unwrap_or(task.id)
}

/// The last task of each branch: what became of the work shows there.
fn latest(tasks: &[TaskRow]) -> BTreeMap<u64, u64> {
    let mut latest = BTreeMap::new();
    for task in tasks.iter().filter(|task| task.status != Status::Cancelled) {
        let last = latest.entry(root(task)).or_insert(task.id);
        *last = task.id.max(*last);
    }
    latest
}

fn needed(questions: &[QuestionRow], troubled: &[&TaskRow], scene: &Scene) -> String {
    let mut out = String::new();
    for question in questions.iter().take(SHOWN) {
        out.push_str(&status::asked(question));
    }
    out.push_str(&listed(troubled, scene));
    let more = questions.len().saturating_sub(SHOWN) + troubled.len().saturating_sub(SHOWN);
    if more > 0 {
        out.push_str(&format!("  … and {more} more: signoff status\n"));
    }
    out
}

/// How each stands, and what to type about it.
fn listed(tasks: &[&TaskRow], scene: &Scene) -> String {
    let mut out = String::new();
    for task in tasks.iter().take(SHOWN) {
        let (title, standing) = (cut(&task.title, status::TITLE), status::in_words(task));
        out.push_str(&format!("  {} {}. {title}: {standing}\n", task.state().mark(), task.id));
        out.push_str(&format!("      {}\n", next(task, scene)));
    }
    out
}

/// Whether a task waits until its agent may go on.
fn is_refused(task: &TaskRow) -> bool {
    task.status == Status::Paused && task.reason.as_deref() == Some("rate_limited")
}

/// How soon somebody should look: the lower the sooner. Waiting tasks are told by their question.
fn urgency(task: &TaskRow) -> Option<u8> {
    match (task.status, task.outcome.as_deref()) {
        (Status::Failed, _) => Some(0),
        (Status::Stuck, _) => Some(1),
        (Status::Completed, Some("exhausted")) => Some(2),
        (Status::Completed, Some("discussion")) => Some(3),
        (Status::Completed, Some("completed_with_issues" | "nothing_to_review")) => Some(4),
        (Status::Blocked, _) => Some(5),
        (Status::Paused, _) => Some(6),
        (
            Status::Pending | Status::InProgress | Status::Waiting | Status::Completed | Status::Cancelled,
            _,
        ) => None,
    }
}

/// What to type about a task that needs somebody.
pub fn next(task: &TaskRow, scene: &Scene) -> String {
    let id = task.id;
    if task.is_refused_by_person() {
        return format!("signoff improve {id} --review");
    }
    match (task.status, task.outcome.as_deref()) {
        (Status::Failed, _)
            if task.kind == TaskType::Review && task.reason.as_deref() == Some("gate_failed") =>
        {
            format!("signoff show {id}, then signoff improve {id} --review")
        }
        (Status::Failed | Status::Stuck, _) => format!("signoff show {id}, then signoff retry {id}"),
        (Status::Paused, _) if scene.waits_by_itself(task) => {
            format!("it goes on by itself; signoff logs {id} -f")
        }
        (Status::Paused, _) if is_refused(task) => {
            format!("signoff work {id} goes on when its agent may")
        }
        (Status::Paused, _) => format!("raise the budget, then signoff work {id}"),
        (Status::Blocked, _) => match scene.run_of(task) {
            Some(run) => {
                format!("its group waits for others: signoff status, then signoff run --resume {}", run.id)
            }
            None => unblocked(task, scene.tasks),
        },
        (Status::Pending, _) => format!("signoff work {id}"),
        (Status::InProgress, _) if scene.is_left(task) => go_on(task, scene),
        (Status::InProgress | Status::Waiting, _) => format!("signoff logs {id} -f"),
        (Status::Completed, outcome) => after_completion(task, outcome, scene),
        (Status::Cancelled, _) => "signoff add adds it again".to_owned(),
    }
}

/// What to type about a completed task with this outcome.
fn after_completion(task: &TaskRow, outcome: Option<&str>, scene: &Scene) -> String {
    let id = task.id;
    match outcome {
        Some("exhausted") if task.reason.as_deref() == Some("unclear_review") => {
            format!("signoff show {id}, then signoff retry {id}")
        }
        Some("exhausted") => {
            format!(
                "signoff show {id}, then signoff improve {id} --review or signoff edit {id} --verdict APPROVED"
            )
        }
        Some("discussion") => {
            format!("signoff show {id}, then signoff retry {id} or signoff edit {id} --verdict APPROVED")
        }
        Some("nothing_to_review") if task.kind == TaskType::Review => {
            format!("add work to its branch, then signoff review {id}; or signoff cancel {id}")
        }
        Some("nothing_to_review") => {
            format!("signoff retry {id}, signoff edit {id} --verdict APPROVED, or signoff cancel {id}")
        }
        Some(_) if task.reason.as_deref() == Some("changed_after_review") => {
            format!("signoff diff {id}, then signoff review {id}")
        }
        Some("completed_with_issues") => {
            format!("signoff show {id}, then signoff improve {id} --review")
        }
        Some("accepted") if task.is_approved_empty() => "nothing: it changes nothing".to_owned(),
        Some("approved" | "accepted") if task.landed_commit.is_some() => {
            format!("nothing: it is in the default branch; signoff diff {id}")
        }
        Some("approved" | "accepted") => match scene.run_of(task) {
            Some(run) if scene.has_refused_task(run) => {
                format!("signoff diff {id}; a task of run {} was refused: signoff status", run.id)
            }
            Some(run) if run.failed_as_a_whole() => format!(
                "the final review of its run failed: signoff retry run-{0}, or signoff edit run-{0} --verdict APPROVED \
                 --reason TEXT",
                run.id
            ),
            Some(run) => format!("signoff diff {id}; it lands with run {}", run.id),
            None => format!("signoff diff {id}, then signoff merge {id}"),
        },
        Some(_) | None => {
            let branch = task.branch.as_deref().unwrap_or("its branch");
            format!("signoff diff {id}, then git merge {branch}")
        }
    }
}

/// What takes a task up that nobody works on.
fn go_on(task: &TaskRow, scene: &Scene) -> String {
    if let Some(run) = scene.left_run_of(task) {
        return format!("signoff run --resume {}", run.id);
    }
    if task.is_of_a_plan() { "signoff run --resume".to_owned() } else { format!("signoff work {}", task.id) }
}

/// What a blocked task waits for, and what can be done about each.
fn unblocked(task: &TaskRow, tasks: &[TaskRow]) -> String {
    let of_run = |other: &TaskRow| task.is_of_a_plan() && other.is_of_a_plan() && other.run_id == task.run_id;
    let before = |other: &&TaskRow| task.depends_on.contains(&other.id) || of_run(other);
    let ways: Vec<String> = tasks.iter().filter(before).filter_map(|other| settled(other, task)).collect();
    if ways.is_empty() {
        "it waits for another task; settle that one first".to_owned()
    } else {
        ways.join("; ")
    }
}

/// What makes way for a task, if this one stands in it.
fn settled(other: &TaskRow, task: &TaskRow) -> Option<String> {
    let id = other.id;
    match (other.status, other.outcome.as_deref()) {
        (Status::Cancelled, _) if !task.is_of_a_plan() => Some(format!(
            "waits for #{id}, which was cancelled: signoff cancel {}, and add it again without --depends-on {id}",
            task.id
        )),
        (Status::Blocked, _) if !task.is_of_a_plan() => {
            Some(format!("waits for #{id}, which is blocked too"))
        }
        (Status::Completed, Some("nothing_to_review")) => Some(format!(
            "waits for #{id} (nothing to review): signoff retry {id} or signoff edit {id} --verdict APPROVED"
        )),
        (Status::Failed | Status::Stuck, _) | (Status::Completed, Some("exhausted" | "discussion")) => {
            let retry =
                if other.is_refused_by_person() { String::new() } else { format!("signoff retry {id} or ") };
            let how = other.final_verdict.as_deref().unwrap_or(other.status.word());
            Some(format!("waits for #{id} ({how}): {retry}signoff edit {id} --verdict APPROVED"))
        }
        (
            Status::Pending
            | Status::InProgress
            | Status::Waiting
            | Status::Paused
            | Status::Completed
            | Status::Blocked
            | Status::Cancelled,
            _,
        ) => None,
    }
}

/// Whether `signoff work` would begin it now.
fn can_begin(task: &TaskRow, tasks: &[TaskRow]) -> bool {
    if task.status != Status::Pending {
        return false;
    }
    let through = |row: &TaskRow| {
        let stopped =
            matches!(row.outcome.as_deref(), Some("exhausted" | "discussion" | "nothing_to_review"));
        row.status == Status::Completed && !stopped
    };
    // A run goes on past what was cancelled.
    let passed = |row: &TaskRow| task.run_id.is_some() && row.status == Status::Cancelled;
    let is_there = |id: &u64| tasks.iter().any(|row| row.id == *id && (through(row) || passed(row)));
    let held_up = |row: &TaskRow| {
        let busy = matches!(row.status, Status::Waiting | Status::InProgress | Status::Paused);
        row.run_id == task.run_id && busy
    };
    let in_turn = !task.is_of_a_plan() || !tasks.iter().any(held_up);
    in_turn && task.depends_on.iter().all(is_there)
}

fn counts(tasks: &[TaskRow]) -> String {
    let number = |status: Status| {
        tasks.iter().filter(|task| task.status == status && !status::waits_for_its_group(task)).count()
    };
    let approved = tasks.iter().filter(|task| status::waits_for_its_group(task)).count();
    let counted = Status::ALL.into_iter().map(|status| (number(status), status.word()));
    let counted = counted.chain([(approved, "approved, waiting for their group")]);
    let counted: Vec<_> =
        counted.filter(|(number, _)| *number > 0).map(|(number, word)| format!("{number} {word}")).collect();
    let can_begin = tasks.iter().any(|task| can_begin(task, tasks));
    let hint = if can_begin { "\n  signoff work    works what is pending" } else { "" };
    format!("{}{hint}\n", counted.join(", "))
}
