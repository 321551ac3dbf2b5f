//! A task as requested by a person or a plan file.

use serde::{Deserialize, Serialize};

use crate::ids::{Commit, TaskId};
use crate::policy::Effort;
use crate::prompt::template;
use crate::source::CheckboxMark;
use crate::source::planner::PlannedTask;
use crate::state_v4::IterationState;

/// The type of a task. It selects the workflow phases that the task goes through.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    strum::EnumString,
    strum::VariantArray,
    strum::VariantNames,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(const_into_str, serialize_all = "lowercase")]
pub enum TaskType {
    #[default]
    Implement,
    /// Review existing work only.
    Review,
    /// Continue on a task's branch from its last review.
    Improve,
    /// Write a plan, no code.
    Plan,
}

/// The specification of a task. Unset fields are filled from the configuration when the task is worked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskSpec {
    pub title: String,
    /// The full text, including the title line if title and description came as one text.
    pub description: String,
    #[serde(rename = "type")]
    pub kind: TaskType,
    pub auto_review: Option<bool>,
    pub max_review_cycles: Option<u32>,
    pub effort: Option<Effort>,
    pub model: Option<String>,
    pub depends_on: Vec<TaskId>,
    /// The plan that the work is compared with.
    pub plan: Option<PlanText>,
    /// A prompt that replaces the built-in one.
    pub prompt: Option<String>,
    /// The task whose branch this one continues.
    pub continues: Option<TaskId>,
    /// The number of the first review of that branch, or of the review this task answers.
    pub first_review: Option<u32>,
    /// The file of the review this task answers.
    #[serde(rename = "answers")]
    pub answered_review: Option<String>,
    /// A person's additions to the last review.
    pub guidance: Option<String>,
    /// The task's entry in a plan file.
    pub origin: Option<PlanOrigin>,
    /// The tracker this task comes from.
    #[serde(rename = "tracked", skip_serializing_if = "Option::is_none")]
    pub tracker: Option<TrackerRef>,
    /// The iteration of another program that this task continues.
    #[serde(rename = "taken_over", skip_serializing_if = "Option::is_none")]
    pub imported: Option<Box<ImportedIteration>>,
}

/// The text of a plan when the task was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanText {
    pub path: String,
    pub text: String,
}

/// A task's entry in the file it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanOrigin {
    pub file: String,
    pub id: String,
    /// The marks to tick when the task is done.
    pub marks: Vec<CheckboxMark>,
}

/// A task in an external tracker. No two uncancelled tasks have the same tracker and id, unless the later one is the
/// earlier one reopened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackerRef {
    pub tracker: String,
    pub id: String,
    /// From 0 (highest) to 4 (lowest).
    pub priority: Option<u8>,
    /// The earlier task with this id. It was completed and closed, and the tracker reopened it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopened: Option<TaskId>,
}

/// An iteration that another program started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedIteration {
    /// The state as read from the file.
    pub state: IterationState,
    /// The commit that contains the work so far. The task's branch starts there.
    pub commit: Commit,
    /// The design and plan files at that commit, if found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The tasks of that plan. The state does not say which of them are done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<PlannedTask>,
}

impl TaskSpec {
    /// Creates a task from one text. The first non-empty line is the title.
    pub fn from_text(text: &str) -> Self {
        let title = text.lines().map(template::title).find(|line| !line.is_empty()).unwrap_or_default();
        Self { title, description: text.trim().to_owned(), ..Self::default() }
    }

    /// The name of the task's branch.
    pub fn branch(&self, id: TaskId) -> String {
        match slug(&self.title) {
            slug if slug.is_empty() => format!("signoff/task-{id}"),
            slug => format!("signoff/task-{id}-{slug}"),
        }
    }
}

/// Maximum length of the title part of a branch name.
const MAX_SLUG_LEN: usize = 40;

/// Converts a title to a part of a branch name: lower-case letters and digits, cut at a word boundary.
pub fn slug(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = String::new();
    for word in words {
        let gap = usize::from(!slug.is_empty());
        if slug.len() + gap + word.len() > MAX_SLUG_LEN {
            break;
        }
        if gap == 1 {
            slug.push('-');
        }
        slug.push_str(&word.to_ascii_lowercase());
    }
    slug
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_branch_is_named_after_its_task() {
        let branch = |title: &str| TaskSpec::from_text(title).branch(TaskId(29));
        insta::assert_snapshot!(branch("Add user authentication"), @"signoff/task-29-add-user-authentication");
        insta::assert_snapshot!(branch("Fix: `a..b` & \"c\"/d.lock"), @"signoff/task-29-fix-a-b-c-d-lock");
        insta::assert_snapshot!(branch("日本語"), @"signoff/task-29");
        insta::assert_snapshot!(
            branch("A title that goes on and on until people lose interest in it"),
            @"signoff/task-29-a-title-that-goes-on-and-on-until-people"
        );
    }

    #[test]
    fn the_first_line_with_text_is_the_title() {
        let task = TaskSpec::from_text("\n  \n Add\tlogin \n\nWith OAuth.\n");
        assert_eq!((task.title.as_str(), task.description.as_str()), ("Add login", "Add\tlogin \n\nWith OAuth."));
    }

    proptest! {
        #[test]
        fn a_slug_is_safe_in_a_branch_name(title in any::<String>()) {
            let slug = slug(&title);
            prop_assert!(slug.len() <= MAX_SLUG_LEN);
            prop_assert!(slug.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
            prop_assert!(!slug.starts_with('-') && !slug.ends_with('-') && !slug.contains("--"));
        }
    }
}
