//! The two tasks of the demo, and the agent's first implementation of them.

use super::{DemoAnswer, DemoFiles};

/// A task of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DemoTask {
    Greeting,
    Goodbye,
}

impl DemoTask {
    pub(super) const ALL: [Self; 2] = [Self::Greeting, Self::Goodbye];

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Greeting => include_str!("task/greeting.md"),
            Self::Goodbye => include_str!("task/goodbye.md"),
        }
    }

    fn keyword(self) -> &'static str {
        match self {
            Self::Greeting => "greeting",
            Self::Goodbye => "goodbye",
        }
    }

    /// The task in a prompt. Only the task section counts, because others may be mentioned elsewhere.
    pub(super) fn from_prompt(prompt: &str) -> Option<Self> {
        let section = prompt.split("\n## ").find(|section| section.starts_with("Task"))?;
        Self::ALL.into_iter().find(|story| section.contains(story.keyword()))
    }

    /// The first version of the work. Leaves existing work unchanged.
    pub(super) fn implement(self, files: &DemoFiles) -> DemoAnswer {
        let there = files.get(self.script()).is_some_and(|text| text.contains("name=$1"));
        let changed = if there { DemoFiles::new() } else { self.first_version() };
        let message = match self {
            Self::Greeting => "`greet.sh` takes a name now, and `test_greet.sh` checks that it is greeted.\n",
            Self::Goodbye => {
                "`bye.sh` says goodbye. The task does not say where the language comes from; I took English.\n"
            }
        };
        DemoAnswer { message: message.to_owned(), changed }
    }

    fn script(self) -> &'static str {
        match self {
            Self::Greeting => "greet.sh",
            Self::Goodbye => "bye.sh",
        }
    }

    fn first_version(self) -> DemoFiles {
        let files = match self {
            Self::Greeting => {
                [("greet.sh", include_str!("work/greet.sh")), ("test_greet.sh", include_str!("work/test_greet.sh"))]
            }
            Self::Goodbye => {
                [("bye.sh", include_str!("work/bye.sh")), ("test_bye.sh", include_str!("work/test_bye.sh"))]
            }
        };
        files.into_iter().map(|(name, text)| (name, text.to_owned())).collect()
    }
}
