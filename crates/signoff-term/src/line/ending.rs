//! Lines about questions, decisions of people, gates passed without approval, new passes, and the end of a loop.

use signoff_core::ledger::{DecidedBy, FindingState};
use signoff_core::machine::{Ending, Event, GateEnd, Loop, Outcome, Policy, Reason, Stage};
use signoff_core::policy::Bound;
use signoff_core::view::inbox::{NextStep, Urgency};
use signoff_core::view::{LoopRow, LoopTransition};

use super::{ProgressLine, position};
use crate::fit::{MAX_SENTENCE_WIDTH, count, truncate_line};
use crate::labels;
use crate::review_round::GateRound;

/// Lines between the end of one step and the start of the next: a limit reached, findings left open, a new pass.
pub fn transition_lines(step: &LoopTransition, round: Option<&GateRound>, continues: bool) -> Vec<ProgressLine> {
    let mut lines = Vec::new();
    let gate_key = (step.before.position.phase, step.before.position.item);
    let new = |machine: &Loop| {
        machine.gates.iter().find(|gate| (gate.phase, gate.item) == gate_key).map(|gate| gate.end.clone())
    };
    if let (Some(end), false) = (new(step.after), new(step.after) == new(step.before)) {
        lines.extend(unapproved_gate(step, &end));
    }
    let imported = matches!(step.event, Event::Imported { .. });
    if continues && !imported && step.after.position.pass > step.before.position.pass {
        let position = position::before(step);
        // Without a position, the line about the new iteration says enough.
        let needs_line = !position.is_empty() || position::iteration(step.after, step.policy).is_none();
        let line = || ProgressLine::Step { position, text: started_over(step, round) };
        lines.extend(needs_line.then(line));
    }
    lines
}

/// `2 issues, back to phase 1 (iteration 2/10)`.
fn started_over(step: &LoopTransition, round: Option<&GateRound>) -> String {
    let (workflow, at) = (&step.policy.workflow, step.after.position);
    if let Some(iteration) = position::iteration(step.after, step.policy) {
        let issues = round.map(GateRound::blocking).filter(|issues| *issues > 0);
        let issues = issues.map(|issues| format!("{}, ", count(issues as u64, "issue"))).unwrap_or_default();
        return format!("{issues}back to phase {} (iteration {iteration})", workflow.number(at.phase));
    }
    let phase = workflow.phases.get(at.phase).map(|phase| phase.name.as_str()).unwrap_or_default();
    format!("Starting over at {phase} (pass {}/{})", at.pass, workflow.limits.max_passes.max(at.pass))
}

fn unapproved_gate(step: &LoopTransition, end: &GateEnd) -> Vec<ProgressLine> {
    let reason = match end {
        GateEnd::Approved { .. } | GateEnd::Unchecked => return Vec::new(),
        GateEnd::ReviewersMissing => Reason::ReviewSkipped,
        GateEnd::LeftFindings { reason } => *reason,
    };
    let mut lines: Vec<_> = max_cycles(step.before, step.policy, reason).into_iter().collect();
    if step.after.is_done() {
        // The loop has ended, and its last line says the same.
        return lines;
    }
    let text = format!("Continues without approval: {}", labels::reason_with_code(reason));
    lines.push(ProgressLine::Step { position: position::before(step), text });
    lines
}

/// `Max review cycles (3) reached without approval`; a gate that counts fixes says `Max fix attempts (5)`.
fn max_cycles(machine: &Loop, policy: &Policy, reason: Reason) -> Option<ProgressLine> {
    let gate_policy = policy.workflow.phases.get(machine.position.phase).and_then(|phase| phase.policy());
    let text = match gate_policy.map(|gate_policy| gate_policy.gate.bound) {
        Some(Bound::MaxFixes(fixes)) => format!("Max fix attempts ({})", fixes.max(machine.counters.fixes)),
        Some(bound @ (Bound::MaxCycles(_) | Bound::Unlimited)) => {
            format!("Max review cycles ({})", bound.reviews().unwrap_or(0).max(machine.review_number()))
        }
        None => format!("Max review cycles ({})", machine.review_number()),
    };
    let line = || ProgressLine::Unindented(format!("{text} reached without approval"));
    (reason == Reason::CyclesExhausted).then(line)
}

/// A question, and the command that answers it.
pub fn question(step: &LoopTransition, row: &LoopRow) -> Vec<ProgressLine> {
    let question_id =
        |machine: &Loop| if let Stage::Waiting { question, .. } = &machine.stage { Some(question.id) } else { None };
    let Some(question) = row.question.as_ref().filter(|_| question_id(step.before) != question_id(step.after)) else {
        return Vec::new();
    };
    let next_step = NextStep::for_question(row, None).to_string();
    let text = format!("Question: {}", truncate_line(&question.text, 400));
    vec![ProgressLine::Step { position: position::after(step), text }, ProgressLine::Continuation(next_step)]
}

/// The result of the loop, if it ended with this event.
pub fn end(step: &LoopTransition, row: &LoopRow) -> Vec<ProgressLine> {
    let Stage::Done(ending) = &step.after.stage else { return Vec::new() };
    if matches!(&step.before.stage, Stage::Done(before) if before.outcome == ending.outcome) {
        return Vec::new();
    }
    // If the work continued past the limit, the line was printed then.
    let stopped = ending.reason.filter(|_| ending.outcome != Outcome::CompletedWithIssues);
    let bound = stopped.and_then(|reason| max_cycles(step.after, step.policy, reason));
    let mut lines: Vec<_> = bound.into_iter().collect();
    let mark = row.state.mark();
    let subject = labels::subject(row);
    let ending_text = ending_text(step.after, ending, row, step.policy);
    lines.push(ProgressLine::Prefixed(format!("{mark} {subject} {ending_text}")));
    lines.extend(next_step(row).map(ProgressLine::Continuation));
    lines
}

fn ending_text(machine: &Loop, ending: &Ending, row: &LoopRow, policy: &Policy) -> String {
    let Ending { outcome, reason, .. } = ending;
    let open = if outcome.is_approval() { labels::open_findings(row.open_findings as u64) } else { String::new() };
    let verdict = machine.final_verdict().map_or("no verdict", <&str>::from);
    let why = labels::reason_suffix(*reason);
    match outcome {
        Outcome::Accepted { by } => {
            format!("completed ({verdict} by {}, not by a review{open})", truncate_line(by, 40))
        }
        Outcome::Unreviewed => "completed (not reviewed)".to_owned(),
        Outcome::Approved { .. } | Outcome::Exhausted | Outcome::Discussion => {
            let implied = [Reason::CyclesExhausted, Reason::Discussion];
            let why = if reason.is_some_and(|reason| implied.contains(&reason)) { String::new() } else { why };
            let overruled = if outcome.is_approval() { row.overruled as u64 } else { 0 };
            let overruled = labels::overruled(overruled);
            format!("completed ({verdict}{}{overruled}{open}){why}", after(machine, policy))
        }
        Outcome::CompletedWithIssues => {
            format!("completed with issues ({verdict}{}){why}", after(machine, policy))
        }
        Outcome::NothingToReview => "completed (nothing to review)".to_owned(),
        Outcome::Failed => format!("failed{why}"),
        Outcome::Stuck => format!("is stuck{why}"),
        Outcome::Cancelled => "cancelled".to_owned(),
    }
}

/// ` after 3 cycles`; with several gates, the number of all reviews.
fn after(machine: &Loop, policy: &Policy) -> String {
    match (position::has_several_gates(policy), machine.counters.reviews) {
        (_, 0) => String::new(),
        (true, reviews) => {
            let passes = position::iteration(machine, policy).map(|_| count(machine.position.pass, "iteration"));
            let passes = passes.map(|passes| format!(" in {passes}")).unwrap_or_default();
            format!(" after {}{passes}", count(reviews, "review"))
        }
        (false, _) => format!(" after {}", count(machine.counters.cycle, "cycle")),
    }
}

/// What to do next, if the task needs a person.
fn next_step(row: &LoopRow) -> Option<String> {
    let needs_person = row.to_task_row().is_some_and(|task| Urgency::for_task(&task).is_some());
    let next = NextStep::for_loop(row).filter(|_| needs_person)?;
    Some(format!("Next: {next}"))
}

/// An answer, an edited verdict or a decided finding, with the name of the person.
pub fn decision_text(event: &Event) -> Option<String> {
    if let Event::PersonAnswered { choice, by, .. } = event {
        return Some(format!("{} answers: {}", truncate_line(by, 40), choice.into_str()));
    }
    if let Event::PersonEdited { verdict, by, reason, .. } = event {
        let reason = if reason.trim().is_empty() {
            String::new()
        } else {
            format!(" - {}", truncate_line(reason, MAX_SENTENCE_WIDTH))
        };
        return Some(format!("Verdict set to {} by {}{reason}", verdict.into_str(), truncate_line(by, 40)));
    }
    let Event::FindingDecided { finding, decision } = event else { return None };
    let evidence = truncate_line(&decision.evidence, MAX_SENTENCE_WIDTH);
    let evidence = if evidence.is_empty() { evidence } else { format!(" - {evidence}") };
    let (id, by) = (truncate_line(finding.as_str(), 40), decider(&decision.by));
    Some(format!("Finding {id} {} by {by}{evidence}", state(decision.state)))
}

/// The name of the decider.
fn decider(by: &DecidedBy) -> String {
    match by {
        DecidedBy::Reviewer(name) => truncate_line(name.as_str(), 40),
        DecidedBy::Person(name) | DecidedBy::Check(name) => truncate_line(name, 40),
    }
}

/// The new state of a finding, as a verb.
fn state(state: FindingState) -> &'static str {
    match state {
        FindingState::Open => "opened",
        FindingState::Fixed => "called fixed",
        FindingState::Refuted => "refuted",
        FindingState::Deferred => "deferred",
        FindingState::OutOfScope => "put out of scope",
    }
}
