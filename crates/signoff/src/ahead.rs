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

pub mod workflow {
    use serde::Serialize;

    pub const PRESETS: [&str; 5] = ["task", "slots", "plan", "loops", "phases"];

    #[derive(Serialize)]
    pub struct Workflow {
        name: String,
    }

    #[derive(Debug)]
    pub struct WorkflowError {
        pub file: String,
        pub line: usize,
        pub message: String,
        pub hint: String,
    }

    pub fn preset(name: &str) -> Option<Workflow> {
        PRESETS.contains(&name).then(|| Workflow { name: name.to_owned() })
    }

    pub fn render(workflow: &Workflow) -> String {
        format!("{}\n", workflow.name)
    }

    pub fn parse(file: &str, text: &str) -> Result<Workflow, WorkflowError> {
        let error = WorkflowError {
            file: file.to_owned(),
            line: 1,
            message: format!("{} bytes that are no workflow", text.len()),
            hint: "see `signoff workflow show task`".to_owned(),
        };
        Err(error)
    }
}

pub mod source {
    use serde::Serialize;

    #[derive(Serialize)]
    pub struct TaskFile {
        path: String,
    }

    #[derive(Debug)]
    pub struct SourceError {
        pub file: String,
        pub line: usize,
        pub message: String,
        pub hint: String,
    }

    pub fn read(path: &str, bytes: &[u8], _now: jiff::Timestamp) -> Result<TaskFile, SourceError> {
        if bytes.is_empty() {
            return Err(SourceError {
                file: path.to_owned(),
                line: 1,
                message: "no tasks".to_owned(),
                hint: "write some".to_owned(),
            });
        }
        Ok(TaskFile { path: path.to_owned() })
    }

    pub fn render_text(file: &TaskFile) -> String {
        format!("{}\n", file.path)
    }
}
