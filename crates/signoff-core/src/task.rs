//! A task as a person or a plan file asks for it.

use serde::{Deserialize, Serialize};

use crate::ids::{Commit, TaskId};
use crate::policy::Effort;
use crate::prompt::material;
use crate::source::Mark;
use crate::source::planner::PlannedTask;
use crate::state_v4::State;

/// What kind of work a task is. It decides which phases of the workflow it goes through.
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
)]
#[serde(rename_all = "lowercase")]
pub enum TaskType {
    #[default]
    Implement,
    /// Only the gate, on work that is there.
    Review,
    /// Another go at a task's branch, from its last review.
    Improve,
    /// A plan is written, no code.
    Plan,
}

impl TaskType {
    pub const ALL: [Self; 4] = [Self::Implement, Self::Review, Self::Improve, Self::Plan];

    pub fn word(self) -> &'static str {
        match self {
            Self::Implement => "implement",
            Self::Review => "review",
            Self::Improve => "improve",
            Self::Plan => "plan",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// What is asked for. What a task leaves open, the configuration fills in when it is worked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskSpec {
    pub title: String,
    /// The whole text, the title's line included where it came as one text.
    pub description: String,
    #[serde(rename = "type")]
    pub kind: TaskType,
    pub auto_review: Option<bool>,
    pub max_review_cycles: Option<u32>,
    pub effort: Option<Effort>,
    pub model: Option<String>,
    pub depends_on: Vec<TaskId>,
    /// A plan the work is compared with.
    pub plan: Option<PlanText>,
    /// A prompt that takes the place of the built-in opening.
    pub prompt: Option<String>,
    /// The task whose branch this one goes on with.
    pub continues: Option<TaskId>,
    /// The number of the first review it makes of that branch, or of the one it answers.
    pub first_review: Option<u32>,
    /// The file of the review it answers.
    pub answers: Option<String>,
    /// What a person adds to the last review.
    pub guidance: Option<String>,
    /// Where in a plan file it stands.
    pub origin: Option<Origin>,
    /// The tracker it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracked: Option<Tracked>,
    /// Where another program left it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_over: Option<Box<TakenOver>>,
}

/// A plan as it was read when the task was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanText {
    pub path: String,
    pub text: String,
}

/// A task's place in the file it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub file: String,
    pub id: String,
    /// What to tick when it is done.
    pub marks: Vec<Mark>,
}

/// A task as a tracker knows it. No two tasks that are not called off have the same tracker and id, unless the later
/// one is the earlier one opened again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracked {
    pub tracker: String,
    pub id: String,
    /// 0 is highest, 4 lowest.
    pub priority: Option<u8>,
    /// The task that was the same before: it was done and closed, and the tracker opened it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopened: Option<TaskId>,
}

/// An iteration that another program began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenOver {
    /// Its state as it was read.
    pub state: State,
    /// The commit that holds the work done so far: its branch begins there.
    pub commit: Commit,
    /// Its design and its plan as that commit has them, where they were found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The tasks of that plan. Nobody knows which of them are done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<PlannedTask>,
}

impl TakenOver {
    pub fn of(state: State, commit: Commit) -> Self {
        Self { state, commit, design: None, plan: None, items: Vec::new() }
    }
}

impl TaskSpec {
    /// A task from one text: its first line that says something is the title.
    pub fn of(text: &str) -> Self {
        let title = text.lines().map(material::title).find(|line| !line.is_empty()).unwrap_or_default();
        Self { title, description: text.trim().to_owned(), ..Self::default() }
    }

    /// The branch it is worked on.
    pub fn branch(&self, id: TaskId) -> String {
        match slug(&self.title) {
            slug if slug.is_empty() => format!("signoff/task-{id}"),
            slug => format!("signoff/task-{id}-{slug}"),
        }
    }
}

/// The most characters of a title that stand in a branch name.
const SLUG_CAP: usize = 40;

/// A title as part of a branch name: lower-case words of letters and digits, cut at a word.
pub fn slug(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = String::new();
    for word in words {
        let gap = usize::from(!slug.is_empty());
        if slug.len() + gap + word.len() > SLUG_CAP {
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
        let branch = |title: &str| TaskSpec::of(title).branch(TaskId(29));
        insta::assert_snapshot!(branch("Add user authentication"), @"signoff/task-29-add-user-authentication");
        insta::assert_snapshot!(branch("Fix: `a..b` & \"c\"/d.lock"), @"signoff/task-29-fix-a-b-c-d-lock");
        insta::assert_snapshot!(branch("日本語"), @"signoff/task-29");
        insta::assert_snapshot!(
            branch("A title that goes on and on until nobody wants to read it any more"),
            @"signoff/task-29-a-title-that-goes-on-and-on-until-nobody"
        );
    }

    #[test]
    fn the_first_line_that_says_something_is_the_title() {
        let task = TaskSpec::of("\n  \n Add\tlogin \n\nWith OAuth.\n");
        assert_eq!(
            (task.title.as_str(), task.description.as_str()),
            ("Add login", "Add\tlogin \n\nWith OAuth.")
        );
    }

    proptest! {
        #[test]
        fn a_slug_is_safe_in_a_branch_name(title in any::<String>()) {
            let slug = slug(&title);
            prop_assert!(slug.len() <= SLUG_CAP);
            prop_assert!(slug.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
            prop_assert!(!slug.starts_with('-') && !slug.ends_with('-') && !slug.contains("--"));
        }
    }
}
