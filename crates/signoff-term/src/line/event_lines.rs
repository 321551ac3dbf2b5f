//! Lines about one event of a loop.

use signoff_core::agent_output::{AgentError, AgentErrorKind};
use signoff_core::contract::Contract;
use signoff_core::machine::{
    self, AttemptFailure, AttemptLoss, CheckReport, Event, LandingReport, LimitPlan, PauseReason, ResearcherState,
    ReviewScope, Stage, WorkReport,
};
use signoff_core::merge::{MergeAction, MergedReview, render};
use signoff_core::review::{Finding, Review, Verdict};
use signoff_core::source::planner::PlannerAnswer;
use signoff_core::view::inbox::NextStep;
use signoff_core::view::{LoopRow, LoopTransition};
use signoff_core::wire::Launch;
use signoff_core::workflow::{Landing, Role};

use super::{ProgressLine, checkpoint, ending, position};
use crate::fit::{MAX_SENTENCE_WIDTH, count, truncate_line};
use crate::labels;
use crate::review_round::{GateRound, RoundVerdict};

/// All lines of one event: what ended, gates passed without approval, what starts, the end of the loop. If
/// `announces_next` is false the program is shutting down and nothing starts. `branch` is the branch of the run.
pub fn lines(
    step: &LoopTransition,
    round: Option<&GateRound>,
    row: &LoopRow,
    announces_next: bool,
    branch: Option<String>,
) -> Vec<ProgressLine> {
    let mut lines = match (round, step.event) {
        (Some(round), _) => review_lines(step, round),
        (None, Event::LandingEnded { report, .. }) => landing_lines(step, report, branch),
        (None, _) => end_lines(step, row, announces_next),
    };
    lines.extend(hint(step));
    lines.extend(ending::transition_lines(step, round, announces_next));
    lines.extend(position::start_lines(step).into_iter().filter(|_| announces_next));
    lines.extend(ending::question(step, row));
    lines.extend(ending::end(step, row));
    lines
}

/// The hint how to fix an agent that failed.
pub fn hint(step: &LoopTransition) -> Option<ProgressLine> {
    let Event::AttemptFailed { failure, .. } = step.event else { return None };
    let launch = step.launch?;
    let launch = Launch { agent: truncate_line(&launch.agent, 40), ..launch.clone() };
    let hint = failure.hint(&launch)?;
    Some(ProgressLine::Continuation(format!("hint: {hint}")))
}

fn step_line(step: &LoopTransition, text: impl Into<String>) -> Vec<ProgressLine> {
    vec![ProgressLine::Step { position: position::before(step), text: text.into() }]
}

fn end_lines(step: &LoopTransition, row: &LoopRow, announces_next: bool) -> Vec<ProgressLine> {
    match step.event {
        Event::BaseSet { .. }
        | Event::FindingsInherited { .. }
        | Event::FindingsClaimed { .. }
        | Event::Started { .. }
        | Event::LandingGranted
        | Event::LandingEnded { .. }
        | Event::PersonRetried { .. } => Vec::new(),
        Event::Imported { .. } => vec![ProgressLine::Unindented(format!("Imported at {}", row.phase))],
        // Imported items are known before the loop starts.
        Event::ItemsPlanned { .. } if step.after.stage == Stage::Queued => Vec::new(),
        Event::ItemsPlanned { count: items } => step_line(step, format!("{} planned", count(*items, "item"))),
        Event::WorkEnded { report, .. } => work_lines(step, report),
        Event::CheckEnded { report: CheckReport::NothingToCheck, .. } => {
            step_line(step, "Nothing to check: no checks are configured, and none were found")
        }
        Event::CheckEnded { .. } | Event::FixesCombined { .. } | Event::Cancelled { .. } => Vec::new(),
        Event::ReviewArrived { review, .. } => unclear_review(step, review, announces_next),
        Event::FixesOverlapped { kept, .. } => overlapped(step, kept.len()),
        Event::AttemptFailed { failure, .. } => failure_lines(step, failure, announces_next),
        Event::AttemptLost { loss, .. } => lost_attempt(step, *loss, announces_next),
        Event::RateLimited { plan, error: why, .. } => rate_limited(step, *plan, why.as_ref()),
        Event::BudgetReached | Event::BudgetRefused { .. } => out_of_budget(step, row),
        Event::Resumed { reason } => resumed(step, *reason),
        Event::CheckpointBegan { .. } => Vec::new(),
        Event::CheckpointEnded { .. } => {
            checkpoint::findings_line(step).map_or_else(Vec::new, |text| step_line(step, text))
        }
        Event::HeadMoved { head } => {
            step_line(step, format!("New commit on the branch: {}", truncate_line(head.commit.as_str(), 40)))
        }
        Event::PersonAnswered { .. } | Event::PersonEdited { .. } | Event::FindingDecided { .. } => {
            ending::decision_text(step.event).map_or_else(Vec::new, |text| step_line(step, text))
        }
    }
}

/// `Review: CHANGES_REQUESTED - missing input validation`, and the merged block of several reviewers.
fn review_lines(step: &LoopTransition, round: &GateRound) -> Vec<ProgressLine> {
    let merged = round.merged();
    let verdict = round.verdict(step);
    let checks = matches!(step.before.stage, Stage::Checking { .. });
    let word = match (checks, verdict) {
        (true, RoundVerdict::Approved) => "Checks: PASSED".to_owned(),
        (true, RoundVerdict::Inconclusive) => "Checks: COULD NOT RUN".to_owned(),
        (true, RoundVerdict::ChangesRequested | RoundVerdict::NeedsDiscussion) => "Checks: FAILED".to_owned(),
        (false, verdict) => match round.scope {
            ReviewScope::Full => format!("Review: {}", verdict_label(step, verdict)),
            ReviewScope::Scoped => format!("Review of the fix: {}", verdict_label(step, verdict)),
        },
    };
    let headline = (verdict != RoundVerdict::Approved).then(|| round.headline(&merged, step)).flatten();
    let headline =
        headline.map(|headline| format!(" - {}", truncate_line(&headline, MAX_SENTENCE_WIDTH))).unwrap_or_default();
    let open = if verdict == RoundVerdict::Approved { round.left_open(step) } else { 0 };
    let overruled =
        if verdict == RoundVerdict::Approved { machine::overruled(step.after, step.policy).len() } else { 0 };
    let (overruled, open) = (labels::overruled(overruled as u64), labels::open_findings(open as u64));
    let counted = position::iteration(step.before, step.policy).is_some();
    let word = if counted { word.trim_start_matches("Review: ").trim_start_matches("Checks: ") } else { &word };
    let mut lines = step_line(step, format!("{word}{overruled}{open}{headline}"));
    if round.reviews.len() > 1 {
        let block = render::render_text(&merged, round.threshold, follows(step, verdict, &merged));
        lines.extend(block.lines().map(|line| ProgressLine::Continuation(line.to_owned())));
    }
    lines
}

/// The label of a verdict: `pass` or `drift` in slots whose reviewers answer so.
fn verdict_label(step: &LoopTransition, verdict: RoundVerdict) -> &'static str {
    let workflow = &step.policy.workflow;
    let gate_policy = workflow.phases.get(step.before.position.phase).and_then(|phase| phase.policy());
    let in_json = |name| workflow.reviewers.get(name).is_some_and(|reviewer| reviewer.contract == Contract::Json);
    let drifts = position::is_slot(step.policy)
        && gate_policy.is_some_and(|gate_policy| gate_policy.gate.reviewers.iter().all(in_json));
    match verdict {
        RoundVerdict::Approved if drifts => "pass",
        RoundVerdict::ChangesRequested if drifts => "drift",
        RoundVerdict::Approved
        | RoundVerdict::ChangesRequested
        | RoundVerdict::NeedsDiscussion
        | RoundVerdict::Inconclusive => verdict.into_str(),
    }
}

/// The action that follows, if the block has a word for it.
fn follows(step: &LoopTransition, verdict: RoundVerdict, merged: &MergedReview) -> Option<MergeAction> {
    if matches!(step.after.stage, Stage::Fixing { .. }) {
        return Some(MergeAction::FixAndRereview);
    }
    match verdict {
        RoundVerdict::Approved => merged.advice(),
        RoundVerdict::ChangesRequested | RoundVerdict::NeedsDiscussion | RoundVerdict::Inconclusive => None,
    }
}

/// The number of tasks or groups a planner returned.
pub fn planner_answer(step: &LoopTransition, answer: &PlannerAnswer) -> Vec<ProgressLine> {
    step_line(
        step,
        match answer {
            PlannerAnswer::Tasks(tasks) => format!("Found {}", count(tasks.len() as u64, "task")),
            PlannerAnswer::Groups(groups) => format!("Arranged in {}", count(groups.len() as u64, "group")),
        },
    )
}

fn work_lines(step: &LoopTransition, report: &WorkReport) -> Vec<ProgressLine> {
    let working = matches!(step.before.stage, Stage::Working { .. });
    match report {
        WorkReport::Complete { .. } if working => {
            let phase_line = position::phase_line(step.before, step.policy, " complete");
            let what = || format!("{} complete", labels::role_product(position::role(step.before, step)));
            phase_line.map_or_else(|| step_line(step, what()), |line| vec![line])
        }
        WorkReport::Incomplete { .. } if working => step_line(step, "Not complete yet"),
        // The next review judges a fix; the agent that combines the reports judges a researcher.
        WorkReport::Complete { .. } | WorkReport::Incomplete { .. } => Vec::new(),
        WorkReport::NoWorkLeft { .. } => step_line(step, "The agent reports no work left; nothing was changed"),
        WorkReport::Stuck { reason, .. } => {
            let researches = matches!(step.before.stage, Stage::Researching { .. });
            let subject = if researches { "A researcher reports it is stuck" } else { "The agent reports it is stuck" };
            step_line(step, format!("{subject}: {}", truncate_line(reason, MAX_SENTENCE_WIDTH)))
        }
    }
}

/// An inconclusive review, while other reviewers are running or it is retried.
pub fn unclear_review(step: &LoopTransition, review: &Review, announces_next: bool) -> Vec<ProgressLine> {
    let Stage::Reviewing(panel) = &step.before.stage else { return Vec::new() };
    let name = step.event.ends_attempt().and_then(|attempt| panel.reviewer_of(attempt));
    let (Some(name), Verdict::Inconclusive(_)) = (name, &review.verdict) else { return Vec::new() };
    let why = labels::inconclusive_reason(&review.verdict).unwrap_or_default();
    step_line(
        step,
        format!(
            "Review by {name} is unclear: {}{}",
            truncate_line(&why, MAX_SENTENCE_WIDTH),
            retry_suffix(step, announces_next)
        ),
    )
}

/// `; trying again` if the agent that failed is started again.
fn retry_suffix(step: &LoopTransition, announces_next: bool) -> &'static str {
    let is_called = step.before.slots().len() == step.after.slots().len();
    if is_called && announces_next { "; trying again" } else { "" }
}

/// Whether the fixer of this gate is the planner of a run.
fn is_planner_fix(step: &LoopTransition) -> bool {
    let gate_policy = step.policy.workflow.phases.get(step.before.position.phase).and_then(|phase| phase.policy());
    gate_policy.is_some_and(|gate_policy| matches!(gate_policy.fixer, Role::Enumerate | Role::Plan))
}

/// The name of the result that was rejected.
fn rejected_result(step: &LoopTransition) -> &'static str {
    // Only workflows with items have a plan document; the planner of a run returns an answer.
    let documents = step.policy.workflow.phases.iter().any(|phase| phase.per_item);
    match &step.before.stage {
        Stage::Researching { .. } => "A researcher's report",
        Stage::Checking { .. } => "The checks' report",
        Stage::Reviewing(_) => "A reviewer's answer",
        Stage::Fixing { .. } | Stage::Combining { .. } if is_planner_fix(step) => "The planner's answer",
        Stage::Fixing { .. } | Stage::Combining { .. } => "The fix",
        Stage::Working { .. }
        | Stage::Queued
        | Stage::AwaitingLanding { .. }
        | Stage::Landing { .. }
        | Stage::Waiting { .. }
        | Stage::Done(_) => match position::role(step.before, step) {
            Role::Brainstorm => "The design",
            Role::Plan if documents => "The plan",
            Role::Plan | Role::Enumerate | Role::Implement | Role::Fix | Role::Simplify => "The planner's answer",
        },
    }
}

pub fn failure_lines(step: &LoopTransition, failure: &AttemptFailure, announces_next: bool) -> Vec<ProgressLine> {
    if let AttemptFailure::BadAnswer { message } = failure {
        return step_line(step, format!("{} was refused: {}", rejected_result(step), truncate_line(message, 230)));
    }
    let reason = labels::failure(failure);
    let text = match &step.before.stage {
        Stage::Working { .. } => {
            format!("{} failed: {reason}", labels::role_product(position::role(step.before, step)))
        }
        Stage::Researching { .. } => {
            format!("A researcher failed: {reason}{}", researcher_suffix(step, announces_next))
        }
        Stage::Reviewing(panel) => {
            let name = step.event.ends_attempt().and_then(|attempt| panel.reviewer_of(attempt));
            let name = name.map(|name| name.as_str().to_owned()).unwrap_or_default();
            format!("Reviewer {name} failed: {reason}{}", retry_suffix(step, announces_next))
        }
        Stage::Checking { .. } => format!("Checks could not run: {reason}"),
        Stage::Fixing { .. } if position::is_slot(step.policy) => format!("Fix failed: {reason}"),
        Stage::Fixing { .. } => format!("Improvement failed: {reason}"),
        Stage::Combining { .. } => format!("The fixes could not be combined: {reason}"),
        Stage::Landing { .. } => format!("Landing failed: {reason}"),
        Stage::Queued | Stage::AwaitingLanding { .. } | Stage::Waiting { .. } | Stage::Done(_) => {
            return Vec::new();
        }
    };
    step_line(step, text)
}

fn researcher_suffix(step: &LoopTransition, announces_next: bool) -> &'static str {
    let absent = |stage: &Stage| {
        let Stage::Researching { team } = stage else { return None };
        Some(team.iter().filter(|researcher| **researcher == ResearcherState::Failed).count())
    };
    if !announces_next {
        ""
    } else if absent(&step.before.stage) == absent(&step.after.stage) {
        "; trying again"
    } else {
        "; continuing without it"
    }
}

fn lost_attempt(step: &LoopTransition, loss: AttemptLoss, announces_next: bool) -> Vec<ProgressLine> {
    let text = match loss {
        AttemptLoss::Crashed => "An attempt was lost when signoff ended",
        AttemptLoss::Interrupted => "An attempt was interrupted",
        AttemptLoss::SessionGone => "The session to resume no longer exists",
    };
    step_line(step, format!("{text}{}", retry_suffix(step, announces_next)))
}

fn rate_limited(step: &LoopTransition, plan: LimitPlan, why: Option<&AgentError>) -> Vec<ProgressLine> {
    let overloaded = why.is_some_and(|why| why.kind == AgentErrorKind::Overloaded);
    let text = if overloaded { "Overloaded" } else { "Rate limited" };
    let why = why.filter(|why| !why.message.is_empty());
    let why = why.map(|why| format!(" ({})", truncate_line(&why.message, MAX_SENTENCE_WIDTH))).unwrap_or_default();
    step_line(
        step,
        match plan {
            LimitPlan::WaitUntil(until) => format!("{text}{why}: waiting until {}", labels::utc_time(until)),
            LimitPlan::FallBack => format!("{text}{why}: another agent takes over"),
        },
    )
}

fn out_of_budget(step: &LoopTransition, row: &LoopRow) -> Vec<ProgressLine> {
    let mut lines = step_line(step, "Paused: another attempt may go over the budget");
    if let Some(task) = row.task {
        lines.push(ProgressLine::Continuation(format!("Next: {}", NextStep::RaiseBudget { task: task.0 })));
    }
    lines
}

fn resumed(step: &LoopTransition, reason: PauseReason) -> Vec<ProgressLine> {
    match reason {
        PauseReason::Budget => step_line(step, "Resuming: budget available"),
        PauseReason::RateLimit { .. } => step_line(step, "Resuming: the wait is over"),
        PauseReason::Checkpoint => Vec::new(),
    }
}

fn overlapped(step: &LoopTransition, kept: usize) -> Vec<ProgressLine> {
    let Stage::Combining { fixes, .. } = &step.before.stage else { return Vec::new() };
    step_line(step, format!("The fixes overlap: {kept} of {} kept, the others are repeated", fixes.len()))
}

fn landing_lines(step: &LoopTransition, report: &LandingReport, branch: Option<String>) -> Vec<ProgressLine> {
    match report {
        LandingReport::Landed { commit } => {
            // A task that a person lands on its own does not land on the run's branch.
            let branch = branch.filter(|_| step.policy.workflow.landing != Landing::None);
            let branch = branch.map(|branch| format!(" on {branch}")).unwrap_or_default();
            step_line(step, format!("Landed{branch} as {}", truncate_line(commit.as_str(), 40)))
        }
        LandingReport::SentBack { findings, .. } => {
            step_line(step, format!("Landing: SENT BACK{}", rejection_reason(findings)))
        }
    }
}

/// The files in conflict, or the first finding.
fn rejection_reason(findings: &[Finding]) -> String {
    let conflicts = findings.iter().filter(|finding| finding.kind == "conflict");
    let files: Vec<_> = conflicts.filter_map(|finding| finding.file.as_deref()).collect();
    match (files.is_empty(), findings.first()) {
        (false, _) => format!(" - conflict in {}", truncate_line(&files.join(", "), MAX_SENTENCE_WIDTH)),
        (true, Some(finding)) => format!(" - {}", truncate_line(&finding.description, MAX_SENTENCE_WIDTH)),
        (true, None) => String::new(),
    }
}
