//! The flaws the demo knows: detection, description and repair.

use super::DemoFiles;

/// The reviewer's role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DemoReviewer {
    Spec,
    Code,
    /// Any other reviewer checks everything.
    General,
}

impl DemoReviewer {
    pub(super) fn from_name(name: &str) -> Self {
        match name {
            "spec" => Self::Spec,
            "code" => Self::Code,
            _ => Self::General,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// `greet.sh` without a name prints an empty greeting and succeeds.
    NameUnchecked,
    /// The README does not show how to greet by name.
    ReadmeSilent,
    /// The task does not say where the visitor's language comes from.
    LanguageOpen,
}

impl Flaw {
    pub(super) const ALL: [Self; 3] = [Self::ReadmeSilent, Self::NameUnchecked, Self::LanguageOpen];

    pub(super) fn file(self) -> &'static str {
        match self {
            Self::NameUnchecked => "greet.sh",
            Self::ReadmeSilent => "README.md",
            Self::LanguageOpen => "bye.sh",
        }
    }

    /// The line of the flaw, if it exists.
    pub(super) fn line(self, files: &DemoFiles) -> Option<usize> {
        let text = files.get(self.file())?;
        let greets_by_name = || files.get("greet.sh").is_some_and(|script| script.contains("name=$1"));
        match self {
            Self::NameUnchecked if text.contains("[ -z ") => None,
            Self::NameUnchecked => find_line(text, "name=$1"),
            Self::ReadmeSilent if !greets_by_name() => None,
            Self::ReadmeSilent => find_line(text, "    sh greet.sh"),
            Self::LanguageOpen if text.contains("LANG") => None,
            Self::LanguageOpen => find_line(text, "echo \"Goodbye, $name!\""),
        }
    }

    /// Whether a reviewer checks for this flaw: requirements for the specification's, code for the other.
    pub(super) fn is_checked_by(self, reviewer: DemoReviewer) -> bool {
        match (self, reviewer) {
            (_, DemoReviewer::General) => true,
            (Self::NameUnchecked, DemoReviewer::Code) => true,
            (Self::ReadmeSilent | Self::LanguageOpen, DemoReviewer::Spec) => true,
            (Self::NameUnchecked, DemoReviewer::Spec) => false,
            (Self::ReadmeSilent | Self::LanguageOpen, DemoReviewer::Code) => false,
        }
    }

    /// Whether only a person can decide.
    pub(super) fn needs_decision(self) -> bool {
        match self {
            Self::LanguageOpen => true,
            Self::NameUnchecked | Self::ReadmeSilent => false,
        }
    }

    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::NameUnchecked => "error_handling",
            Self::ReadmeSilent => "missing_requirement",
            Self::LanguageOpen => "misunderstanding",
        }
    }

    pub(super) fn description(self) -> &'static str {
        match self {
            Self::NameUnchecked => {
                "The name is not checked: called without one, the script prints `Hello, !` and exits 0"
            }
            Self::ReadmeSilent => "The README still shows the call without a name",
            Self::LanguageOpen => {
                "It always says goodbye in English. The task asks for the visitor's language and does not say where \
                 that comes from: the environment, an option, or a list of names?"
            }
        }
    }

    pub(super) fn suggestion(self) -> &'static str {
        match self {
            Self::NameUnchecked => "Without a name, print the usage on stderr and exit 2",
            Self::ReadmeSilent => "Show `sh greet.sh NAME`",
            Self::LanguageOpen => "Take the language from LANG, and English where it is not known",
        }
    }

    /// The files changed by the repair of this flaw alone.
    pub(super) fn repair(self, files: &DemoFiles) -> DemoFiles {
        let (Some(line), Some(text)) = (self.line(files), files.get(self.file())) else {
            return DemoFiles::new();
        };
        let mut lines: Vec<_> = text.lines().collect();
        match self {
            Self::NameUnchecked => lines.insert(line, include_str!("work/check_name.sh").trim_end()),
            Self::ReadmeSilent => lines[line - 1] = "    sh greet.sh NAME",
            Self::LanguageOpen => lines[line - 1] = include_str!("work/languages.sh").trim_end(),
        }
        let mut changed = DemoFiles::from([(self.file(), lines.join("\n") + "\n")]);
        if self == Self::NameUnchecked {
            let tests = files.get("test_greet.sh").map_or("", String::as_str);
            changed.insert("test_greet.sh", format!("{tests}{}", include_str!("work/test_no_name.sh")));
        }
        changed
    }
}

/// The number of the first line that equals `wanted`.
fn find_line(text: &str, wanted: &str) -> Option<usize> {
    text.lines().position(|line| line == wanted).map(|index| index + 1)
}
