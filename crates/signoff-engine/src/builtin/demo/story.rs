//! The two tasks the demo agent knows, and how it first carries them out.

use super::{Answer, Files};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Story {
    Greeting,
    Goodbye,
}

impl Story {
    pub(super) const ALL: [Self; 2] = [Self::Greeting, Self::Goodbye];

    pub(super) fn task(self) -> &'static str {
        match self {
            Self::Greeting => include_str!("task/greeting.md"),
            Self::Goodbye => include_str!("task/goodbye.md"),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Greeting => "greeting",
            Self::Goodbye => "goodbye",
        }
    }

    /// The task of a prompt. Only its own section counts: others may be named elsewhere.
    pub(super) fn of(prompt: &str) -> Option<Self> {
        let section = prompt.split("\n## ").find(|section| section.starts_with("Task"))?;
        Self::ALL.into_iter().find(|story| section.contains(story.word()))
    }

    /// The first version of the work. What is there already is left alone.
    pub(super) fn implement(self, files: &Files) -> Answer {
        let there = files.get(self.script()).is_some_and(|text| text.contains("name=$1"));
        let changed = if there { Files::new() } else { self.first_version() };
        let message = match self {
            Self::Greeting => "`greet.sh` takes a name now, and `test_greet.sh` checks that it is greeted.\n",
            Self::Goodbye => {
                "`bye.sh` says goodbye. The task does not say where the language comes from; I took English.\n"
            }
        };
        Answer { message: message.to_owned(), changed }
    }

    fn script(self) -> &'static str {
        match self {
            Self::Greeting => "greet.sh",
            Self::Goodbye => "bye.sh",
        }
    }

    fn first_version(self) -> Files {
        let files = match self {
            Self::Greeting => [
                ("greet.sh", include_str!("work/greet.sh")),
                ("test_greet.sh", include_str!("work/test_greet.sh")),
            ],
            Self::Goodbye => {
                [("bye.sh", include_str!("work/bye.sh")), ("test_bye.sh", include_str!("work/test_bye.sh"))]
            }
        };
        files.into_iter().map(|(name, text)| (name, text.to_owned())).collect()
    }
}
