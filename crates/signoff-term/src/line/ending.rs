//! Questions, gates passed by, starting over, and the end.

use signoff_core::machine::{Again, Ending, Event, FinalWord, GateEnd, Loop, Outcome, Policy, Reason, Stage};
use signoff_core::policy::Bound;
use signoff_core::view::LoopView;

use super::{Line, place};
use crate::fit::{count, cut};
use crate::round::{Round, Step};
use crate::words;

/// What is told between an end and a beginning: a bound reached, findings left open, the next pass.
pub fn passed_by(step: &Step, round: Option<&Round>, goes_on: bool) -> Vec<Line> {
    let mut lines = Vec::new();
    let here = (step.before.at.phase, step.before.at.item);
    let new = |this: &Loop| {
        this.gates.iter().find(|gate| (gate.phase, gate.item) == here).map(|gate| gate.end.clone())
    };
    if let (Some(end), false) = (new(step.after), new(step.after) == new(step.before)) {
        lines.extend(went_on(step, &end));
    }
    let taken_over = matches!(step.event, Event::Imported { .. });
    if goes_on && !taken_over && step.after.at.pass > step.before.at.pass {
        let place = place::left(step);
        // Where nothing was left, the iteration that begins says enough.
        let told = !place.is_empty() || place::iteration(step.after, step.policy).is_none();
        let line = || Line::Step { place, text: started_over(step, round) };
        lines.extend(told.then(line));
    }
    lines
}

/// `2 issues, back to phase 1 (iteration 2/10)`.
fn started_over(step: &Step, round: Option<&Round>) -> String {
    let (workflow, at) = (&step.policy.workflow, step.after.at);
    if let Some(iteration) = place::iteration(step.after, step.policy) {
        let issues = round.map(Round::blocking).filter(|issues| *issues > 0);
        let issues = issues.map(|issues| format!("{}, ", count(issues as u64, "issue"))).unwrap_or_default();
        return format!("{issues}back to phase {} (iteration {iteration})", workflow.number(at.phase));
    }
    let phase = workflow.phases.get(at.phase).map(|phase| phase.name.as_str()).unwrap_or_default();
    format!("Starting over at {phase} (pass {}/{})", at.pass, workflow.limits.max_passes.max(at.pass))
}

fn went_on(step: &Step, end: &GateEnd) -> Vec<Line> {
    let reason = match end {
        GateEnd::Approved { .. } | GateEnd::Unchecked => return Vec::new(),
        GateEnd::Unheard => Reason::ReviewSkipped,
        GateEnd::Noted { reason } => *reason,
    };
    let mut lines: Vec<_> = max_cycles(step.before, step.policy, reason).into_iter().collect();
    if step.after.is_done() {
        // It goes nowhere: the end says the same.
        return lines;
    }
    let text = format!("Going on without approval: {}", words::why(reason));
    lines.push(Line::Step { place: place::left(step), text });
    lines
}

/// `Max review cycles (3) reached without approval`; a gate that counts fixes says `Max fix attempts (5)`.
fn max_cycles(this: &Loop, policy: &Policy, reason: Reason) -> Option<Line> {
    let judge = policy.workflow.phases.get(this.at.phase).and_then(|phase| phase.judge());
    let text = match judge.map(|judge| judge.gate.bound) {
        Some(Bound::MaxFixes(fixes)) => format!("Max fix attempts ({})", fixes.max(this.tally.fixes)),
        Some(bound @ (Bound::MaxCycles(_) | Bound::Unlimited)) => {
            format!("Max review cycles ({})", bound.reviews().unwrap_or(0).max(this.review_number()))
        }
        None => format!("Max review cycles ({})", this.review_number()),
    };
    let line = || Line::Margin(format!("{text} reached without approval"));
    (reason == Reason::CyclesExhausted).then(line)
}

/// A question, and what to type.
pub fn question(step: &Step, row: &LoopView) -> Vec<Line> {
    let was = |this: &Loop| match &this.stage {
        Stage::Waiting { question, .. } => Some(question.id),
        Stage::Queued
        | Stage::Working { .. }
        | Stage::Researching { .. }
        | Stage::Checking { .. }
        | Stage::Reviewing(_)
        | Stage::Fixing { .. }
        | Stage::Combining { .. }
        | Stage::AwaitingLanding { .. }
        | Stage::Landing { .. }
        | Stage::Done(_) => None,
    };
    let Some(question) = row.question.as_ref().filter(|_| was(step.before) != was(step.after)) else {
        return Vec::new();
    };
    let choices: Vec<_> = question.choices.iter().map(|choice| choice.word()).collect();
    let choices = choices.join(", ");
    // Questions without a task are known by a number that is given to them in the store.
    let how = match row.task {
        Some(task) => format!("signoff answer {task} CHOICE    ({choices})"),
        None => format!("signoff answer QUESTION CHOICE    ({choices}); signoff status names it"),
    };
    let text = format!("Question: {}", cut(&question.text, 400));
    vec![Line::Step { place: place::reached(step), text }, Line::Below(how)]
}

/// How the loop ended, if it did with this fact.
pub fn end(step: &Step, row: &LoopView) -> Vec<Line> {
    let Stage::Done(ending) = &step.after.stage else { return Vec::new() };
    if matches!(&step.before.stage, Stage::Done(before) if before.outcome == ending.outcome) {
        return Vec::new();
    }
    // Where the work went on past the bound, it was told there.
    let stopped = ending.reason.filter(|_| ending.outcome != Outcome::CompletedWithIssues);
    let bound = stopped.and_then(|reason| max_cycles(step.after, step.policy, reason));
    let mut lines: Vec<_> = bound.into_iter().collect();
    let mark = row.state.mark();
    let subject = words::subject(row);
    let how = how(step.after, (&ending.outcome, ending.reason), row, step.policy);
    lines.push(Line::Own(format!("{mark} {subject} {how}")));
    lines.extend(row.task.and_then(|task| next(ending, task.0, step.policy)).map(Line::Below));
    lines
}

fn how(
    this: &Loop,
    (outcome, reason): (&Outcome, Option<Reason>),
    row: &LoopView,
    policy: &Policy,
) -> String {
    let open =
        if outcome.is_approval() { words::open_findings(row.open_findings as u64) } else { String::new() };
    let verdict = this.final_verdict().map_or("no verdict", FinalWord::word);
    let why = reason.map(|reason| format!(": {}", words::why(reason))).unwrap_or_default();
    match outcome {
        Outcome::Accepted { by } => {
            format!("completed ({verdict} by {}, not by a review{open})", cut(by, 40))
        }
        Outcome::Unreviewed => "completed (not reviewed)".to_owned(),
        Outcome::Approved { .. } | Outcome::Exhausted | Outcome::Discussion => {
            let told = [Reason::CyclesExhausted, Reason::Discussion];
            let why = if reason.is_some_and(|reason| told.contains(&reason)) { String::new() } else { why };
            let overruled = if outcome.is_approval() { row.overruled as u64 } else { 0 };
            let overruled = words::overruled(overruled);
            format!("completed ({verdict}{}{overruled}{open}){why}", after(this, policy))
        }
        Outcome::CompletedWithIssues => {
            format!("completed with issues ({verdict}{}){why}", after(this, policy))
        }
        Outcome::NothingToReview => "completed (nothing to review)".to_owned(),
        Outcome::Failed => format!("failed{why}"),
        Outcome::Stuck => format!("is stuck{why}"),
        Outcome::Cancelled => "cancelled".to_owned(),
    }
}

/// ` after 3 cycles`; where several gates each count their own, all reviews are counted.
fn after(this: &Loop, policy: &Policy) -> String {
    match (place::has_several_judges(policy), this.tally.reviews) {
        (_, 0) => String::new(),
        (true, reviews) => {
            let passes = place::iteration(this, policy).map(|_| count(this.at.pass, "iteration"));
            let passes = passes.map(|passes| format!(" in {passes}")).unwrap_or_default();
            format!(" after {}{passes}", count(reviews, "review"))
        }
        (false, _) => format!(" after {}", count(this.tally.cycle, "cycle")),
    }
}

/// What to type next.
fn next(ending: &Ending, task: u64, policy: &Policy) -> Option<String> {
    // Where nobody but reviewers is at work, nobody could fix what they found.
    let only_looks = policy.workflow.phases.iter().all(|phase| phase.judge().is_some());
    match &ending.outcome {
        Outcome::Approved { .. } | Outcome::Accepted { .. } | Outcome::Unreviewed | Outcome::Cancelled => {
            None
        }
        Outcome::CompletedWithIssues => Some(format!("Look at it: signoff show {task}")),
        Outcome::Exhausted if ending.reason == Some(Reason::UnclearReview) => {
            Some(format!("Look at it: signoff show {task}; ask again: signoff retry {task}"))
        }
        Outcome::Exhausted => {
            Some(format!("Look at it: signoff show {task}; go on: signoff improve {task} --review"))
        }
        Outcome::Discussion => Some(format!(
            "Look at it: signoff show {task}; then signoff retry {task}, or signoff edit {task} --verdict APPROVED"
        )),
        Outcome::NothingToReview if ending.again == Again::Nothing => Some(format!(
            "It changes nothing. Add work to its branch, then signoff review {task}; or signoff cancel {task}"
        )),
        Outcome::NothingToReview => Some(format!(
            "It changes nothing. Try again: signoff retry {task}; go on without it: \
             signoff edit {task} --verdict APPROVED, or signoff cancel {task}"
        )),
        Outcome::Failed if ending.reason == Some(Reason::GateFailed) && only_looks => {
            Some(format!("Look at it: signoff show {task}; go on: signoff improve {task} --review"))
        }
        Outcome::Failed | Outcome::Stuck => {
            Some(format!("Look at it: signoff show {task}; go on: signoff retry {task}"))
        }
    }
}
