//! What can be wrong with the work: how it shows in the files, what is said about it, and the repair.

use super::Files;

/// Who is asked to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reviewer {
    Spec,
    Code,
    /// Anybody else looks at everything.
    General,
}

impl Reviewer {
    pub(super) fn named(name: &str) -> Self {
        match name {
            "spec" => Self::Spec,
            "code" => Self::Code,
            _ => Self::General,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// `greet.sh` without a name greets nobody and succeeds.
    NameUnchecked,
    /// The README does not say how to greet by name.
    ReadmeSilent,
    /// Nobody said where the visitor's language comes from.
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

    /// The line where the flaw shows, if it is there.
    pub(super) fn line(self, files: &Files) -> Option<usize> {
        let text = files.get(self.file())?;
        let greets_by_name = || files.get("greet.sh").is_some_and(|script| script.contains("name=$1"));
        match self {
            Self::NameUnchecked if text.contains("[ -z ") => None,
            Self::NameUnchecked => find(text, "name=$1"),
            Self::ReadmeSilent if !greets_by_name() => None,
            Self::ReadmeSilent => find(text, "    sh greet.sh"),
            Self::LanguageOpen if text.contains("LANG") => None,
            Self::LanguageOpen => find(text, "echo \"Goodbye, $name!\""),
        }
    }

    /// Requirements are the specification's business, code the other's.
    pub(super) fn is_business_of(self, reviewer: Reviewer) -> bool {
        match (self, reviewer) {
            (_, Reviewer::General) => true,
            (Self::NameUnchecked, Reviewer::Code) => true,
            (Self::ReadmeSilent | Self::LanguageOpen, Reviewer::Spec) => true,
            (Self::NameUnchecked, Reviewer::Spec) => false,
            (Self::ReadmeSilent | Self::LanguageOpen, Reviewer::Code) => false,
        }
    }

    /// Whether only a person can say what is right.
    pub(super) fn needs_a_person(self) -> bool {
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

    /// The files that change, and nothing in them that is not about this flaw.
    pub(super) fn repair(self, files: &Files) -> Files {
        let (Some(line), Some(text)) = (self.line(files), files.get(self.file())) else {
            return Files::new();
        };
        let mut lines: Vec<_> = text.lines().collect();
        match self {
            Self::NameUnchecked => lines.insert(line, include_str!("work/check_name.sh").trim_end()),
            Self::ReadmeSilent => lines[line - 1] = "    sh greet.sh NAME",
            Self::LanguageOpen => lines[line - 1] = include_str!("work/languages.sh").trim_end(),
        }
        let mut changed = Files::from([(self.file(), lines.join("\n") + "\n")]);
        if self == Self::NameUnchecked {
            let tests = files.get("test_greet.sh").map_or("", String::as_str);
            changed.insert("test_greet.sh", format!("{tests}{}", include_str!("work/test_no_name.sh")));
        }
        changed
    }
}

/// The number of the line that is the one looked for.
fn find(text: &str, wanted: &str) -> Option<usize> {
    text.lines().position(|line| line == wanted).map(|index| index + 1)
}
