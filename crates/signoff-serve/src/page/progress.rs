//! The progress of a run, counted from its tasks.

use maud::{Markup, html};
use signoff_core::view::{TaskRow, TaskState, TaskStatus};

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
        let state = task.state();
        self.approved += u64::from(state.is_approved() && task.status == TaskStatus::Completed);
        self.unsettled += u64::from(state == TaskState::NeedsYou && task.status == TaskStatus::Completed);
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

    /// `5 of 9 done, 2 at work, 1 waiting for an answer, 1 stopped`. Without a process, tasks at work are "begun".
    pub fn summary(&self, driven: bool) -> String {
        let more = [
            (self.at_work, if driven { "at work" } else { "begun" }),
            (self.waiting, "waiting for an answer"),
            (self.paused, "paused"),
            (self.stopped, "stopped"),
        ];
        let more = more.into_iter().filter(|(number, _)| *number > 0);
        let more: String = more.map(|(number, word)| format!(", {number} {word}")).collect();
        format!("{} of {} done{more}", self.done, self.all())
    }

    /// The same as a progress bar. It is hidden from screen readers, which read the text.
    pub fn bar(&self) -> Markup {
        let held = self.waiting + self.paused + self.unsettled;
        let rest = self.done - self.approved - self.unsettled;
        let parts =
            [(self.approved, "good"), (rest, "quiet"), (self.at_work, "busy"), (held, "warn"), (self.stopped, "bad")];
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
