//! An account as the values of a page.

use signoff_core::view::RunRow;
use signoff_serve::page::{Cost, ReportHead, RoleFigures, TaskPage, Whole};
use signoff_term::report::{Account, TaskAccount, Totals};
use signoff_term::stats::ByRole;

use super::Gathered;
use crate::door;

impl Gathered {
    /// What stands at the head of a report that is kept as a file, and the tasks below it.
    pub fn pages(self) -> (ReportHead, Vec<TaskPage>) {
        let Self { account, run, project } = self;
        let driven = account.run.as_ref().is_some_and(|run| run.driven);
        let whole = whole(&account);
        // The tables are told at a task's end; what is under way has its price too.
        let Totals { cost_usd, cost_is_estimated, .. } = account.totals;
        let run = run.map(|run| RunRow { cost_usd, cost_is_estimated, ..run });
        let tasks = account.tasks.into_iter().map(|task| page(task, &project, driven)).collect();
        (ReportHead { project, run, whole, made_at: door::now() }, tasks)
    }
}

fn whole(account: &Account) -> Whole {
    let of_run = account.run.as_ref().filter(|_| account.about.kind == "run");
    Whole {
        standing: of_run.map(|run| run.standing.clone()),
        asked: of_run.and_then(|run| run.asked.clone()).unwrap_or_default(),
        changes: of_run.and_then(|run| run.changes.clone()),
        parts: account.parts.clone(),
        roles: account.totals.roles.iter().map(role).collect(),
    }
}

fn role(one: &ByRole) -> RoleFigures {
    let cost = Cost { usd: one.cost_usd, is_estimated: one.cost_is_estimated };
    RoleFigures { role: one.role.clone(), attempts: one.attempts, duration_ms: one.duration_ms, cost }
}

fn page(task: TaskAccount, project: &str, driven: bool) -> TaskPage {
    TaskPage {
        project: project.to_owned(),
        report: task.report,
        spec: task.asked,
        diff: None,
        changes: Some(task.changes),
        transcripts: Vec::new(),
        next: String::new(),
        driven,
        now: door::now(),
    }
}
