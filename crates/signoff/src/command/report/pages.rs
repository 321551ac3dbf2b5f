//! Converts a report document into the values of an HTML page.

use signoff_core::view::RunRow;
use signoff_serve::page::{Cost, ReportHead, ReportOverview, RoleFigures, TaskPage};
use signoff_term::report::{ReportDocument, TaskSection, Totals};
use signoff_term::stats::ByRole;

use super::ReportData;
use crate::host;

impl ReportData {
    /// Returns the head of the report and its tasks.
    pub fn pages(self) -> (ReportHead, Vec<TaskPage>) {
        let Self { account, run, project } = self;
        let driven = account.run.as_ref().is_some_and(|run| run.driven);
        let whole = whole(&account);
        // The tables are updated when a task ends; the totals include the cost of running tasks.
        let Totals { cost_usd, cost_is_estimated, .. } = account.totals;
        let run = run.map(|run| RunRow { cost_usd, cost_is_estimated, ..run });
        let tasks = account.tasks.into_iter().map(|task| page(task, &project, driven)).collect();
        (ReportHead { project, run, overview: whole, made_at: host::now() }, tasks)
    }
}

fn whole(account: &ReportDocument) -> ReportOverview {
    let of_run = account.run.as_ref().filter(|_| account.subject.kind == "run");
    ReportOverview {
        standing: of_run.map(|run| run.result.clone()),
        specification: of_run.and_then(|run| run.asked.clone()).unwrap_or_default(),
        changes: of_run.and_then(|run| run.changes.clone()),
        parts: account.parts.clone(),
        roles: account.totals.roles.iter().map(role).collect(),
    }
}

fn role(one: &ByRole) -> RoleFigures {
    let cost = Cost { usd: one.cost_usd, is_estimated: one.cost_is_estimated };
    RoleFigures { role: one.role.clone(), attempts: one.attempts, duration_ms: one.duration_ms, cost }
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
