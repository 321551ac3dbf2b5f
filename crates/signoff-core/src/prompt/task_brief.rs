//! A task as agents see it.

use crate::prompt::material::{fenced, one_line, plain, title};
use crate::prompt::text;

/// What an agent has to know of a task. What is empty is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskBrief<'a> {
    pub id: &'a str,
    pub title: &'a str,
    pub description: &'a str,
    pub status: &'a str,
    pub priority: &'a str,
    /// The plan document the task was given.
    pub plan: Option<&'a str>,
    /// Where its design and its plan are, seen from the worktree.
    pub design_file: &'a str,
    pub plan_file: &'a str,
}

impl TaskBrief<'_> {
    /// The task for those who judge it.
    pub(super) fn under_review(&self) -> String {
        text::TaskUnderReview { title: &title(self.title), description: &self.body() }.fill()
    }

    /// The task for those who work on it.
    pub(super) fn assignment(&self) -> String {
        text::Task { title: &title(self.title), description: &self.body() }.fill()
    }

    pub(super) fn plan_to_compare(&self) -> Option<String> {
        self.plan.map(|plan| text::PlanToCompare { plan: &fenced(plan, "") }.fill())
    }

    pub(super) fn plan_to_follow(&self) -> Option<String> {
        self.plan.map(|plan| text::PlanToFollow { plan: &fenced(plan, "") }.fill())
    }

    fn body(&self) -> String {
        let description = plain(self.description);
        let known = [("Task id", self.id), ("Status", self.status), ("Priority", self.priority)];
        let written = [("Design", self.design_file), ("Plan", self.plan_file)];
        let facts = known
            .into_iter()
            .chain(written)
            .filter(|(_, value)| !value.trim().is_empty())
            .map(|(name, value)| format!("- {name}: {}", one_line(value)))
            .collect::<Vec<_>>()
            .join("\n");
        let gap = if description.is_empty() || facts.is_empty() { "" } else { "\n\n" };
        format!("{description}{gap}{facts}")
    }
}
