//! The sections of a report: the run, its loops without a task, its tasks, and the totals.

use std::collections::BTreeSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::ids::LoopId;
use signoff_core::ledger::FindingState;
use signoff_core::machine::OutcomeKind;
use signoff_core::view::inbox::NextStep;
use signoff_core::view::{LoopRow, QuestionRow, RunRow, RunStatus, TaskRow};

use super::result::{self, ReportOutcome, ReportResult};
use crate::fit::{counts, dollars};
use crate::labels;
use crate::show::{AttemptRow, Cycle, LedgerLine, RunHistory, TaskReport};
use crate::stats::{ReviewerStats, RoleStats, StatsByGroup, add_usd};

/// The run of a report.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunSection {
    pub id: u64,
    pub preset: String,
    /// The name of the specification; null for runs of single tasks.
    pub specification: Option<String>,
    /// The text of the specification when the run started.
    pub asked: Option<String>,
    /// `running`, `blocked`, `completed`, `failed`, `cancelled`.
    #[schemars(with = "String")]
    pub status: RunStatus,
    /// The result: `approved` if the approvals of all its tasks are valid, `accepted` if a person approved it
    /// instead of the final review, otherwise `attention`, `failed` or `cancelled`; null until it has ended.
    #[schemars(with = "Option<String>")]
    pub outcome: Option<ReportOutcome>,
    /// Whether a process is working on it.
    pub driven: bool,
    #[serde(rename = "standing")]
    pub result: ReportResult,
    /// The branch on which its tasks land.
    pub branch: Option<String>,
    pub started_at: Option<String>,
    /// The time of its last event.
    pub last_at: Option<String>,
    /// The changes of all its tasks; null if they have no common branch.
    pub changes: Option<Changes>,
}

impl RunSection {
    /// `tasks` are the results of all its tasks, `questions` its open questions; `driven` is whether a process is
    /// working on it.
    pub fn new(
        row: RunRow,
        history: &RunHistory,
        tasks: &[ReportResult],
        questions: &[QuestionRow],
        driven: bool,
    ) -> Self {
        let whole = history.state.row(&LoopId::final_review());
        let outcome = result::outcome(history.state.stage(), tasks, whole.as_ref());
        let checkout = history.state.row(&LoopId::checkout()).filter(|row| row.task.is_none());
        Self {
            result: match checkout {
                Some(looked_at) => result::result_of_checkout(&looked_at, driven),
                None => {
                    result::result_of_run(&row, outcome, tasks, questions, driven).with_accepted_review(whole.as_ref())
                }
            },
            asked: None,
            outcome,
            driven,
            id: row.id,
            preset: row.preset,
            specification: row.specification,
            status: row.status,
            branch: row.branch,
            started_at: history.state.started_at.map(|at| at.to_string()),
            last_at: history.state.last_at.map(|at| at.to_string()),
            changes: None,
        }
    }
}

/// A loop without a task, or with a task that another run has continued since.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PartSection {
    /// `Planning SPEC.md`, `Final review`, `Checkpoint review 2 of task 29`, `Review of the checkout`.
    pub name: String,
    /// The result; null until it has ended.
    #[schemars(with = "Option<&'static str>")]
    pub outcome: Option<OutcomeKind>,
    /// The reason, as a sentence.
    pub reason: Option<String>,
    pub cycles: Vec<Cycle>,
    /// Every finding, open ones first; for a checkpoint review only those that its task does not have.
    pub ledger: Vec<LedgerLine>,
    pub attempts: Vec<AttemptRow>,
    /// Whether it is a checkpoint review. The gates of the task under review decide about its findings.
    #[serde(skip)]
    pub is_checkpoint: bool,
}

impl PartSection {
    /// All loops of a run except those of the given tasks.
    pub fn all(history: &RunHistory, tasks: &BTreeSet<LoopId>) -> Vec<Self> {
        Self::filtered(history, |loop_id| !tasks.contains(loop_id))
    }

    /// The checkpoint reviews of a task's loop.
    pub fn checkpoint_reviews(history: &RunHistory, reviewed: &LoopId) -> Vec<Self> {
        Self::filtered(history, |loop_id| loop_id.checkpoint_target().is_some_and(|(target, _)| target == *reviewed))
    }

    fn filtered(history: &RunHistory, is_wanted: impl Fn(&LoopId) -> bool) -> Vec<Self> {
        let wanted = history.loops().filter(|loop_id| is_wanted(loop_id));
        wanted.filter_map(|loop_id| Some(Self::new(history, loop_id, history.state.row(loop_id)?))).collect()
    }

    fn new(history: &RunHistory, loop_id: &LoopId, row: LoopRow) -> Self {
        Self {
            name: name(history, &row),
            outcome: row.outcome,
            reason: row.reason.map(labels::reason_with_code),
            cycles: history.cycles(loop_id),
            ledger: history.ledger(loop_id),
            attempts: history.attempts(loop_id),
            is_checkpoint: loop_id.checkpoint_target().is_some(),
        }
    }
}

/// The display name of the loop.
fn name(history: &RunHistory, row: &LoopRow) -> String {
    if let Some((reviewed, number)) = row.id.checkpoint_target() {
        let task = history.state.row(&reviewed).and_then(|row| row.task);
        let reviewed = task.map_or_else(|| reviewed.to_string(), |task| format!("task {task}"));
        return format!("Checkpoint review {number} of {reviewed}");
    }
    match row.task {
        Some(task) => format!("Task {task}: {}", row.title),
        None if row.id == LoopId::checkout() => "Review of the checkout".to_owned(),
        None if row.title.is_empty() => row.id.to_string(),
        None => row.title.clone(),
    }
}

/// A task of a report.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TaskSection {
    /// The full request.
    pub asked: String,
    #[serde(rename = "standing")]
    pub result: ReportResult,
    /// The output of `show --json`.
    pub report: TaskReport,
    pub changes: Changes,
    /// What to do next.
    #[serde(skip)]
    pub next: NextStep,
}

impl TaskSection {
    /// `driven` is whether a process is working on its run.
    pub fn new(report: TaskReport, asked: String, changes: Changes, next: NextStep, driven: bool) -> Self {
        Self { asked, result: result::result_of_report(&report, &next, driven), report, changes, next }
    }

    pub fn row(&self) -> &TaskRow {
        &self.report.task
    }
}

/// The totals of a report.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Totals {
    pub findings: FindingCounts,
    /// Rounds of reviews, and runs of the checks.
    pub cycles: u64,
    pub attempts: u64,
    pub cost_usd: f64,
    /// At least part of the cost is computed from list prices.
    pub cost_is_estimated: bool,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Sum of the working times of agents and checks.
    pub worked_ms: u64,
    /// From the first start to the last end; null before the first end.
    pub passed_ms: Option<u64>,
    pub roles: Vec<RoleStats>,
    pub reviewers: Vec<ReviewerStats>,
}

/// Number of findings by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct FindingCounts {
    pub open: u64,
    /// The open findings that block a gate.
    pub blocking: u64,
    pub fixed: u64,
    pub refuted: u64,
    pub deferred: u64,
    pub out_of_scope: u64,
}

impl FindingCounts {
    fn add(&mut self, line: &LedgerLine) {
        self.blocking += u64::from(line.blocks);
        *match line.state {
            FindingState::Fixed => &mut self.fixed,
            FindingState::Refuted => &mut self.refuted,
            FindingState::Deferred => &mut self.deferred,
            FindingState::OutOfScope => &mut self.out_of_scope,
            FindingState::Open => &mut self.open,
        } += 1;
    }

    /// `1 open, 2 fixed`; empty if there are no findings.
    pub fn text(&self) -> String {
        counts([
            (self.open, "open"),
            (self.fixed, "fixed"),
            (self.refuted, "refuted"),
            (self.deferred, "deferred"),
            (self.out_of_scope, "out of scope"),
        ])
    }
}

impl Totals {
    pub(super) fn new(parts: &[PartSection], tasks: &[TaskSection]) -> Self {
        let mut groups = StatsByGroup::default();
        let mut findings = FindingCounts::default();
        let (mut cycles, mut attempts) = (0, Vec::new());
        let parts = parts.iter().map(|part| (&part.cycles, &part.attempts, &part.ledger, part.outcome.is_some()));
        let tasks = tasks.iter().map(|task| (&task.report, task.result.kind.has_ended()));
        let tasks = tasks.map(|(report, has_ended)| (&report.cycles, &report.attempts, &report.ledger, has_ended));
        for (own_cycles, own_attempts, ledger, has_ended) in parts.chain(tasks) {
            groups.add_loop(own_attempts, ledger, has_ended);
            ledger.iter().for_each(|line| findings.add(line));
            cycles += own_cycles.len() as u64;
            attempts.extend(own_attempts);
        }
        Self {
            findings,
            cycles,
            attempts: attempts.len() as u64,
            cost_usd: attempts.iter().fold(0.0, |sum, attempt| add_usd(sum, attempt.cost_usd)),
            cost_is_estimated: attempts.iter().any(|attempt| attempt.cost_is_estimated),
            input_tokens: attempts.iter().map(|attempt| attempt.input_tokens).sum(),
            output_tokens: attempts.iter().map(|attempt| attempt.output_tokens).sum(),
            worked_ms: attempts.iter().map(|attempt| attempt.duration_ms).sum(),
            passed_ms: elapsed_ms(&attempts),
            roles: groups.roles(),
            reviewers: groups.reviewers(),
        }
    }

    /// `$0.84`, or `~$0.84` if computed from list prices.
    pub fn cost(&self) -> String {
        dollars(self.cost_usd, self.cost_is_estimated)
    }
}

fn elapsed_ms(attempts: &[&AttemptRow]) -> Option<u64> {
    let first = attempts.iter().filter_map(|attempt| attempt.started_at.parse::<Timestamp>().ok()).min()?;
    let ended = attempts.iter().filter_map(|attempt| attempt.ended_at.as_ref()?.parse::<Timestamp>().ok()).max()?;
    u64::try_from(ended.duration_since(first).as_millis()).ok()
}

/// In runs with more tasks than this, the changes of approved tasks are not counted.
pub const MAX_COUNTED_TASKS: usize = 200;

/// The size of a change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Changes {
    /// The output of `git diff --stat`; null if unknown.
    pub stat: Option<String>,
    pub files: u64,
    pub insertions: u64,
    pub deletions: u64,
    /// Why the changes are unknown, or a remark about them.
    pub note: Option<String>,
}

impl Changes {
    /// Parses the numbers in the last line of the output.
    pub fn parse_stat(stat: &str) -> Self {
        let last = stat.trim_end().lines().last().unwrap_or_default();
        let number = |word: &str| {
            let part = last.split(',').find(|part| part.contains(word));
            part.and_then(|part| part.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
        };
        Self {
            stat: Some(stat.to_owned()),
            files: number(" file"),
            insertions: number("insertion"),
            deletions: number("deletion"),
            note: None,
        }
    }

    /// Unknown changes, with the reason.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self { note: Some(why.into()), ..Self::default() }
    }

    /// The changes of a task in a run with too many tasks to start git for each.
    pub fn uncounted() -> Self {
        Self::unknown(format!("not counted in a run of more than {MAX_COUNTED_TASKS} tasks"))
    }

    pub fn is_uncounted(&self) -> bool {
        *self == Self::uncounted()
    }

    #[must_use]
    pub fn with_note(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    /// `2 files changed, 3 insertions(+)`, or why it is unknown.
    pub fn summary(&self) -> String {
        let last = self.stat.as_deref().map(|stat| stat.trim_end().lines().last().unwrap_or_default().trim());
        match (last, &self.note) {
            (Some(""), _) => "nothing changed".to_owned(),
            (Some(last), _) => last.to_owned(),
            (None, Some(note)) => note.clone(),
            (None, None) => "unknown".to_owned(),
        }
    }
}
