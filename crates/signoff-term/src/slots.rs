//! The report of `run beads --dry-run` and `run queue --dry-run`: the tasks that would start.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use crate::fit::{count, cut};
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
        let how = match reviewed {
            0 => "not reviewed".to_owned(),
            all if all == self.ready.len() => "each reviewed".to_owned(),
            some => format!("{some} reviewed"),
        };
        let ready = count(self.ready.len() as u64, "task");
        let how = if self.ready.is_empty() { String::new() } else { format!(", {how}") };
        let mut out = format!("{}: {ready} ready{how}\n", cut(&self.source, WIDE));
        for task in &self.ready {
            let priority = task.priority.map(|priority| format!("P{priority}  ")).unwrap_or_default();
            line(&mut out, &format!("  {}  {priority}{}", cut(&task.id, WIDE), cut(&task.title, WIDE)));
        }
        if !self.left_out.is_empty() {
            line(&mut out, "\nLeft out");
        }
        for task in &self.left_out {
            let (id, title, reason) = (cut(&task.id, WIDE), cut(&task.title, WIDE), cut(&task.reason, LONG));
            line(&mut out, &format!("  {id}  {title}: {reason}"));
        }
        if !self.warnings.is_empty() {
            line(&mut out, "\nWarnings");
        }
        for warning in &self.warnings {
            line(&mut out, &format!("  {}", cut(warning, LONG)));
        }
        out
    }
}

/// Maximum widths of text from trackers.
const WIDE: usize = 80;
const LONG: usize = 200;

fn line(out: &mut String, text: &str) {
    // Writing into a String cannot fail.
    let _ = writeln!(out, "{text}");
}
