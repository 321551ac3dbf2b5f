//! The report of `run beads --dry-run` and `run queue --dry-run`: the tasks that would start.

use schemars::JsonSchema;
use serde::Serialize;

use crate::fit::{count, truncate_line};
use crate::json::VERSION;

/// `run beads --dry-run --json`: the ready tasks, in the order they would start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SlotsReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// The tracker's program, its file, or `queue`.
    pub source: String,
    pub ready: Vec<ReadyTask>,
    pub left_out: Vec<SkippedTask>,
    /// Input that may have been interpreted differently than its author meant.
    pub warnings: Vec<String>,
}

/// A task that would start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReadyTask {
    /// Its id in the tracker, or its number in the queue.
    pub id: String,
    pub title: String,
    /// 0 is highest, 4 lowest.
    pub priority: Option<u8>,
    /// Whether it would be reviewed.
    pub auto_review: bool,
}

/// A task that would not start now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkippedTask {
    pub id: String,
    pub title: String,
    pub reason: String,
}

impl SlotsReport {
    pub fn new(source: &str, ready: Vec<ReadyTask>, left_out: Vec<SkippedTask>, warnings: Vec<String>) -> Self {
        Self { version: VERSION, source: source.to_owned(), ready, left_out, warnings }
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let reviewed = self.ready.iter().filter(|task| task.auto_review).count();
        let review = match reviewed {
            0 => "not reviewed".to_owned(),
            all if all == self.ready.len() => "each reviewed".to_owned(),
            some => format!("{some} reviewed"),
        };
        let ready = count(self.ready.len() as u64, "task");
        let review = if self.ready.is_empty() { String::new() } else { format!(", {review}") };
        let mut out = format!("{}: {ready} ready{review}\n", truncate_line(&self.source, MAX_NAME_WIDTH));
        for task in &self.ready {
            let priority = task.priority.map(|priority| format!("P{priority}  ")).unwrap_or_default();
            out.push_str(&format!(
                "  {}  {priority}{}\n",
                truncate_line(&task.id, MAX_NAME_WIDTH),
                truncate_line(&task.title, MAX_NAME_WIDTH)
            ));
        }
        let left_out = self.left_out.iter().map(|task| {
            let (id, title, reason) = (
                truncate_line(&task.id, MAX_NAME_WIDTH),
                truncate_line(&task.title, MAX_NAME_WIDTH),
                truncate_line(&task.reason, MAX_REASON_WIDTH),
            );
            format!("  {id}  {title}: {reason}\n")
        });
        let warnings = self.warnings.iter().map(|warning| format!("  {}\n", truncate_line(warning, MAX_REASON_WIDTH)));
        for (title, lines) in [("Left out", left_out.collect::<String>()), ("Warnings", warnings.collect())] {
            if !lines.is_empty() {
                out.push_str(&format!("\n{title}\n{lines}"));
            }
        }
        out
    }
}

/// Maximum widths of text from trackers.
const MAX_NAME_WIDTH: usize = 80;
const MAX_REASON_WIDTH: usize = 200;
