//! Stands where parts of the core are about to be: same names, same shapes.

pub mod contract {
    /// The longest answer that is read.
    pub const MAX_BYTES: usize = 10_000_000;

    pub mod report {
        use serde::{Deserialize, Serialize};
        use signoff_core::contract::Ask;
        use signoff_core::ids::ReviewerName;
        use signoff_core::review::{Inconclusive, Review, ReviewerKind, Verdict, Violation};

        #[derive(Serialize, Deserialize)]
        pub struct ParseReport {
            version: u32,
            verdict: String,
            reviewer: ReviewerName,
            role: ReviewerKind,
            #[serde(skip_serializing_if = "Option::is_none")]
            violation: Option<Violation>,
        }

        impl ParseReport {
            pub fn new(result: &Result<Review, Violation>, ask: &Ask) -> Self {
                let verdict =
                    result.as_ref().map_or("inconclusive", |review| review.verdict.word()).to_owned();
                let (reviewer, role) = (ask.reviewer.clone(), ask.kind);
                Self { version: 1, verdict, reviewer, role, violation: result.as_ref().err().cloned() }
            }

            pub fn into_review(self) -> Review {
                let verdict = match self.violation {
                    Some(violation) => Verdict::Inconclusive(Inconclusive::from(violation)),
                    None => Verdict::Approved,
                };
                Review::of(self.reviewer, self.role, verdict)
            }
        }
    }
}

pub mod merge {
    pub mod render {
        use signoff_core::merge::Merged;
        use signoff_core::review::Bar;

        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Format {
            Text,
            Json,
            Xml,
            Markdown,
            Sarif,
        }

        pub fn render(merged: &Merged, _bar: Bar, format: Format) -> String {
            format!("{format:?} {:?}\n", merged.overall)
        }
    }
}

pub mod source {
    use serde::Serialize;

    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Format {
        PlanMarkdown,
        SpecKit,
        OpenSpec,
        Kiro,
        TaskMaster,
        Bmad,
        Beads,
        Text,
    }

    impl Format {
        pub const ALL: [Self; 8] = [
            Self::PlanMarkdown,
            Self::SpecKit,
            Self::OpenSpec,
            Self::Kiro,
            Self::TaskMaster,
            Self::Bmad,
            Self::Beads,
            Self::Text,
        ];

        pub fn word(self) -> &'static str {
            match self {
                Self::PlanMarkdown => "plan_markdown",
                Self::SpecKit => "spec_kit",
                Self::OpenSpec => "open_spec",
                Self::Kiro => "kiro",
                Self::TaskMaster => "task_master",
                Self::Bmad => "bmad",
                Self::Beads => "beads",
                Self::Text => "text",
            }
        }
    }

    #[derive(Serialize)]
    pub struct Warning {
        pub line: u32,
        pub message: String,
    }

    #[derive(Serialize)]
    pub struct TaskFile {
        pub format: Format,
        pub tasks: Vec<String>,
        pub warnings: Vec<Warning>,
    }

    #[derive(Debug)]
    pub struct SourceError {
        pub file: String,
        pub line: u32,
        pub message: String,
    }

    pub fn read_plan(
        path: &str,
        bytes: &[u8],
        now: Option<jiff::Timestamp>,
    ) -> Result<TaskFile, SourceError> {
        read_as(Format::PlanMarkdown, path, bytes, now)
    }

    pub fn read_as(
        format: Format,
        path: &str,
        bytes: &[u8],
        _now: Option<jiff::Timestamp>,
    ) -> Result<TaskFile, SourceError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                Ok(TaskFile { format, tasks: text.lines().map(str::to_owned).collect(), warnings: vec![] })
            }
            Err(_) => Err(SourceError { file: path.to_owned(), line: 1, message: "no text".to_owned() }),
        }
    }

    pub fn render_text(file: &TaskFile) -> String {
        format!("{}\n", file.tasks.join("\n"))
    }
}
