//! The page of one run: progress, questions and tasks; and the progress of runs for other pages.

use std::collections::BTreeSet;

use maud::{Markup, html};
use signoff_core::view::inbox::{ProjectSnapshot, Urgency};
use signoff_core::view::{RunRow, TaskRow, TaskStatus};
use signoff_term::fit::dollars;
use signoff_term::runs::{self, RunEntry};

use super::frame::{PageFrame, PageSubject};
use super::{PageNotice, RunPage, badges, forms, home, text};

/// `/runs/{id}`.
pub fn page(page: &RunPage, notice: Option<&PageNotice>) -> String {
    let title = name(&page.run);
    let back = format!("/runs/{}", page.run.id);
    let body = html! {
        (head(page))
        section #questions data-live aria-label="Questions" {
            @for asked in &page.questions { (forms::question(asked, &page.tasks, &back)) }
        }
        section #tasks data-live aria-labelledby="tasks-title" {
            h2 #tasks-title { "Tasks" }
            @if page.tasks.is_empty() { p.hint { "None yet." } }
            ul.rows { @for task in &page.tasks { (home::row(task, page.now)) } }
        }
        p { a href={ "/runs/" (page.run.id) "/report.html" } { "Report of this run" } }
    };
    PageFrame::new(&title, &page.project, PageSubject::Run(page.run.id), body).with_notice(notice).into_string()
}

/// `Run 3 SPEC.md`.
pub fn name(run: &RunRow) -> String {
    let suffix = run.specification.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    format!("Run {}{suffix}", run.id)
}

fn head(page: &RunPage) -> Markup {
    let run = &page.run;
    let state = run.state(&page.tasks);
    let driven: BTreeSet<u64> = page.driven.then_some(run.id).into_iter().collect();
    let runs = std::slice::from_ref(run);
    let entry = RunEntry::new(run, &ProjectSnapshot { tasks: &page.tasks, runs, driven: &driven });
    html! {
        h1 { (text::line(&name(run))) }
        section #head data-live aria-label="Status" {
            p.lead {
                (badges::state_badge(state, runs::status(run))) " "
                @if run.groups.is_some() { (text::line(&entry.text)) }
            }
            @for next in &entry.next { p.next { (text::line(next)) } }
            (facts(run, &page.tasks, page.driven))
        }
    }
}

/// The progress bar and the facts about a run.
pub fn facts(run: &RunRow, tasks: &[TaskRow], driven: bool) -> Markup {
    let counted = RunProgress::from_tasks(tasks);
    html! {
        @if !tasks.is_empty() { div.progress { (counted.bar()) p { (counted.summary(driven)) } } }
        dl.facts {
            div { dt { "Preset" } dd { (text::line(&run.preset)) } }
            @if let Some((group, all)) = run.group.zip(run.groups) { div { dt { "Group" } dd { (group) " of " (all) } } }
            @if let Some(branch) = &run.branch { div { dt { "Branch" } dd { (text::code(branch)) } } }
            div { dt { "Cost" } dd { (dollars(run.cost_usd, run.cost_is_estimated)) } }
        }
    }
}

/// The number of tasks of a run in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunProgress {
    done: u64,
    /// Of `done`: approved tasks.
    approved: u64,
    /// Of `done`: tasks that need a user's decision.
    unsettled: u64,
    at_work: u64,
    waiting: u64,
    paused: u64,
    stopped: u64,
    to_come: u64,
}

impl RunProgress {
    pub fn from_tasks<'a>(tasks: impl IntoIterator<Item = &'a TaskRow>) -> Self {
        let mut counted = Self::default();
        tasks.into_iter().for_each(|task| counted.add(task));
        counted
    }

    pub fn add(&mut self, task: &TaskRow) {
        self.approved += u64::from(task.state().is_approved() && task.status == TaskStatus::Completed);
        self.unsettled += u64::from(task.status == TaskStatus::Completed && Urgency::for_task(task).is_some());
        let number = match task.status {
            TaskStatus::Completed | TaskStatus::Cancelled => &mut self.done,
            TaskStatus::InProgress => &mut self.at_work,
            TaskStatus::Waiting => &mut self.waiting,
            TaskStatus::Paused => &mut self.paused,
            TaskStatus::Failed | TaskStatus::Stuck | TaskStatus::Blocked => &mut self.stopped,
            TaskStatus::Pending => &mut self.to_come,
        };
        *number += 1;
    }

    fn all(&self) -> u64 {
        self.done + self.at_work + self.waiting + self.paused + self.stopped + self.to_come
    }

    /// `5 of 9 done, 2 at work, 1 waiting for an answer, 1 stopped`. Without a process, tasks at work are "interrupted".
    pub fn summary(&self, driven: bool) -> String {
        let more = [
            (self.at_work, if driven { "at work" } else { "interrupted" }),
            (self.waiting, "waiting for an answer"),
            (self.paused, "paused"),
            (self.stopped, "stopped"),
        ];
        let more = more.into_iter().filter(|(number, _)| *number > 0);
        let more: String = more.map(|(number, label)| format!(", {number} {label}")).collect();
        format!("{} of {} done{more}", self.done, self.all())
    }

    /// The same as a progress bar. It is hidden from screen readers, which read the text.
    pub fn bar(&self) -> Markup {
        let needs_user = self.waiting + self.paused + self.unsettled;
        let rest = self.done - self.approved - self.unsettled;
        let parts = [
            (self.approved, "good"),
            (rest, "quiet"),
            (self.at_work, "busy"),
            (needs_user, "warn"),
            (self.stopped, "bad"),
        ];
        let mut from = 0;
        let parts = parts.map(|(number, class)| {
            let share = |tasks: u64| 100 * tasks / self.all().max(1);
            let (x, end) = (share(from), share(from + number));
            from += number;
            (x, end - x, class)
        });
        html! {
            svg.bar viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" {
                rect.rest x="0" y="0" width="100" height="4" {}
                @for (x, width, class) in parts {
                    rect class=(class) x=(x) y="0" width=(width) height="4" {}
                }
            }
        }
    }
}
