//! What a fact says about what came before it.

use signoff_core::contract::Contract;
use signoff_core::heard::{Trouble, TroubleKind};
use signoff_core::machine::{
    self, CheckReport, Event, Failure, Hold, LandReport, LimitPlan, Loss, Researcher, Scope, Stage,
    WorkReport,
};
use signoff_core::merge::{Action, Merged, render};
use signoff_core::review::{Finding, Review, Verdict};
use signoff_core::source::planner::Planned;
use signoff_core::view::LoopView;
use signoff_core::wire::Launch;
use signoff_core::workflow::{Landing, Role};

use super::{Line, begin, checkpoint, ending, person, place};
use crate::fit::{SENTENCE, count, cut};
use crate::round::{Round, Ruling, Step, seat_of};
use crate::words;

/// Everything one fact has to say: what ended, what was passed by, what begins, how it all ended. Where the program
/// is about to end, nothing begins. `branch` is where the run's tasks come together.
pub fn told(
    step: &Step,
    round: Option<&Round>,
    row: &LoopView,
    (goes_on, branch): (bool, Option<String>),
) -> Vec<Line> {
    let mut lines = match (round, step.event) {
        (Some(round), _) => reviewed(step, round),
        (None, Event::LandingEnded { report, .. }) => landed(step, report, branch),
        (None, _) => ended(step, row, goes_on),
    };
    lines.extend(hint(step));
    lines.extend(ending::passed_by(step, round, goes_on));
    lines.extend(begin::begins(step).into_iter().filter(|_| goes_on));
    lines.extend(ending::question(step, row));
    lines.extend(ending::end(step, row));
    lines
}

/// What a person can do about an agent that failed.
pub fn hint(step: &Step) -> Option<Line> {
    let Event::AttemptFailed { failure, .. } = step.event else { return None };
    let launch = step.launch?;
    let launch = Launch { agent: cut(&launch.agent, 40), ..launch.clone() };
    let hint = failure.hint(&launch)?;
    Some(Line::Below(format!("hint: {hint}")))
}

fn left(step: &Step, text: impl Into<String>) -> Vec<Line> {
    vec![Line::Step { place: place::left(step), text: text.into() }]
}

fn ended(step: &Step, row: &LoopView, goes_on: bool) -> Vec<Line> {
    match step.event {
        Event::BaseSet { .. }
        | Event::FindingsInherited { .. }
        | Event::FindingsClaimed { .. }
        | Event::Started { .. }
        | Event::LandingGranted
        | Event::LandingEnded { .. }
        | Event::PersonRetried { .. } => Vec::new(),
        Event::Imported { .. } => vec![Line::Margin(format!("Taken over at {}", row.phase))],
        // What another program planned is known before anything begins here.
        Event::ItemsPlanned { .. } if step.after.stage == Stage::Queued => Vec::new(),
        Event::ItemsPlanned { count: items } => left(step, format!("{} planned", count(*items, "item"))),
        Event::WorkEnded { report, .. } => worked(step, report),
        Event::CheckEnded { report: CheckReport::NothingToCheck, .. } => {
            left(step, "Nothing to check: no checks are configured, and none were found")
        }
        Event::CheckEnded { .. } | Event::FixesCombined { .. } | Event::Cancelled { .. } => Vec::new(),
        Event::ReviewArrived { review, .. } => unclear(step, review, goes_on),
        Event::FixesOverlapped { kept, .. } => overlapped(step, kept.len()),
        Event::AttemptFailed { failure, .. } => failed(step, failure, goes_on),
        Event::AttemptLost { loss, .. } => lost(step, *loss, goes_on),
        Event::RateLimited { plan, why, .. } => limited(step, *plan, why.as_ref()),
        Event::BudgetReached | Event::BudgetRefused { .. } => out_of_budget(step, row),
        Event::Resumed { hold } => resumed(step, *hold),
        Event::CheckpointBegan { .. } => Vec::new(),
        Event::CheckpointEnded { .. } => {
            checkpoint::found(step).map_or_else(Vec::new, |text| left(step, text))
        }
        Event::HeadMoved { head } => {
            left(step, format!("Somebody committed to the branch: {}", cut(head.commit.as_str(), 40)))
        }
        Event::PersonAnswered { .. } | Event::PersonEdited { .. } | Event::FindingDecided { .. } => {
            person::decided(step.event).map_or_else(Vec::new, |text| left(step, text))
        }
    }
}

/// `Review: CHANGES_REQUESTED - missing input validation`, and the block where several spoke.
fn reviewed(step: &Step, round: &Round) -> Vec<Line> {
    let merged = round.merged();
    let ruling = round.ruling(step);
    let checks = matches!(step.before.stage, Stage::Checking { .. });
    let word = match (checks, ruling) {
        (true, Ruling::Approved) => "Checks: PASSED".to_owned(),
        (true, Ruling::Inconclusive) => "Checks: COULD NOT RUN".to_owned(),
        (true, Ruling::ChangesRequested | Ruling::NeedsDiscussion) => "Checks: FAILED".to_owned(),
        (false, ruling) => match round.scope {
            Scope::Full => format!("Review: {}", verdict(step, ruling)),
            Scope::Scoped => format!("Review of the fix: {}", verdict(step, ruling)),
        },
    };
    let gist = (ruling != Ruling::Approved).then(|| round.gist(&merged, step)).flatten();
    let gist = gist.map(|gist| format!(" - {}", cut(&gist, SENTENCE))).unwrap_or_default();
    let open = if ruling == Ruling::Approved { round.left_open(step) } else { 0 };
    let overruled =
        if ruling == Ruling::Approved { machine::overruled(step.after, step.policy).len() } else { 0 };
    let (overruled, open) = (words::overruled(overruled as u64), words::open_findings(open as u64));
    let gist = format!("{overruled}{open}{gist}");
    let counted = place::iteration(step.before, step.policy).is_some();
    let word =
        if counted { word.trim_start_matches("Review: ").trim_start_matches("Checks: ") } else { &word };
    let mut lines = left(step, format!("{word}{gist}"));
    if round.said.len() > 1 {
        let block = render::block(&merged, round.bar, follows(step, ruling, &merged));
        lines.extend(block.lines().map(|line| Line::Below(line.to_owned())));
    }
    lines
}

/// The word of a ruling. In slots whose reviewers answer `pass` or `drift`, it is theirs.
fn verdict(step: &Step, ruling: Ruling) -> &'static str {
    let workflow = &step.policy.workflow;
    let judge = workflow.phases.get(step.before.at.phase).and_then(|phase| phase.judge());
    let in_json = |name| workflow.reviewers.get(name).is_some_and(|one| one.contract == Contract::Json);
    let drifts =
        place::is_slot(step.policy) && judge.is_some_and(|judge| judge.gate.reviewers.iter().all(in_json));
    match ruling {
        Ruling::Approved if drifts => "pass",
        Ruling::ChangesRequested if drifts => "drift",
        Ruling::Approved | Ruling::ChangesRequested | Ruling::NeedsDiscussion | Ruling::Inconclusive => {
            ruling.word()
        }
    }
}

/// The action that really follows, if it is one that the block has a word for.
fn follows(step: &Step, ruling: Ruling, merged: &Merged) -> Option<Action> {
    if matches!(step.after.stage, Stage::Fixing { .. }) {
        return Some(Action::FixAndRereview);
    }
    match ruling {
        Ruling::Approved => merged.advice(),
        Ruling::ChangesRequested | Ruling::NeedsDiscussion | Ruling::Inconclusive => None,
    }
}

/// What a planner found, or how it arranged it.
pub fn answered(step: &Step, answer: &Planned) -> Vec<Line> {
    left(
        step,
        match answer {
            Planned::Tasks(tasks) => format!("Found {}", count(tasks.len() as u64, "task")),
            Planned::Groups(groups) => format!("Arranged in {}", count(groups.len() as u64, "group")),
        },
    )
}

fn worked(step: &Step, report: &WorkReport) -> Vec<Line> {
    let working = matches!(step.before.stage, Stage::Working { .. });
    match report {
        WorkReport::Complete { .. } if working => {
            let itself = place::itself(step.before, step.policy, " complete");
            let what = || format!("{} complete", words::work_of(begin::role(step.before, step)));
            itself.map_or_else(|| left(step, what()), |line| vec![line])
        }
        WorkReport::Incomplete { .. } if working => left(step, "Not complete yet"),
        // A fix is judged by the review that follows, a researcher by whoever brings it together.
        WorkReport::Complete { .. } | WorkReport::Incomplete { .. } => Vec::new(),
        WorkReport::NoWorkLeft { .. } => left(step, "No work left, says the agent; nothing was changed"),
        WorkReport::Stuck { reason, .. } => {
            let researches = matches!(step.before.stage, Stage::Researching { .. });
            let who = if researches { "A researcher gave up" } else { "Gave up" };
            left(step, format!("{who}: {}", cut(reason, SENTENCE)))
        }
    }
}

/// A review that nobody could read, while others are still out or it is tried again.
pub fn unclear(step: &Step, review: &Review, goes_on: bool) -> Vec<Line> {
    let Stage::Reviewing(panel) = &step.before.stage else { return Vec::new() };
    let name = step.event.ends_attempt().and_then(|attempt| seat_of(panel, attempt));
    let (Some(name), Verdict::Inconclusive(_)) = (name, &review.verdict) else { return Vec::new() };
    let why = words::unheard(&review.verdict).unwrap_or_default();
    left(step, format!("Review by {name} is unclear: {}{}", cut(&why, SENTENCE), again(step, goes_on)))
}

/// Whether whoever ended badly is called once more.
fn again(step: &Step, goes_on: bool) -> &'static str {
    let out = |stage: &Stage| stage.slots().len();
    let called = out(&step.before.stage) == out(&step.after.stage);
    if called && goes_on { "; trying again" } else { "" }
}

/// Whether a planner puts right here what was planned for a run.
fn planned(step: &Step) -> bool {
    let judge = step.policy.workflow.phases.get(step.before.at.phase).and_then(|phase| phase.judge());
    judge.is_some_and(|judge| matches!(judge.fixer, Role::Enumerate | Role::Plan))
}

/// What an agent answered with, or left.
fn answer(step: &Step) -> &'static str {
    // Who plans a run works in no phase that people could begin again.
    let documents = step.policy.workflow.phases.iter().any(|phase| phase.per_item);
    match &step.before.stage {
        Stage::Researching { .. } => "A researcher's report",
        Stage::Checking { .. } => "The checks' report",
        Stage::Reviewing(_) => "A reviewer's answer",
        Stage::Fixing { .. } | Stage::Combining { .. } if planned(step) => "The planner's answer",
        Stage::Fixing { .. } | Stage::Combining { .. } => "The fix",
        Stage::Working { .. }
        | Stage::Queued
        | Stage::AwaitingLanding { .. }
        | Stage::Landing { .. }
        | Stage::Waiting { .. }
        | Stage::Done(_) => match begin::role(step.before, step) {
            Role::Brainstorm => "The design",
            Role::Plan if documents => "The plan",
            Role::Plan | Role::Enumerate | Role::Implement | Role::Fix | Role::Simplify => {
                "The planner's answer"
            }
        },
    }
}

pub fn failed(step: &Step, failure: &Failure, goes_on: bool) -> Vec<Line> {
    if let Failure::BadAnswer { message } = failure {
        return left(step, format!("{} was refused: {}", answer(step), cut(message, 230)));
    }
    let how = words::failure(failure);
    let text = match &step.before.stage {
        Stage::Working { .. } => format!("{} failed: {how}", words::work_of(begin::role(step.before, step))),
        Stage::Researching { .. } => format!("A researcher failed: {how}{}", without(step, goes_on)),
        Stage::Reviewing(panel) => {
            let name = step.event.ends_attempt().and_then(|attempt| seat_of(panel, attempt));
            let name = name.map(|name| name.as_str().to_owned()).unwrap_or_default();
            format!("Reviewer {name} failed: {how}{}", again(step, goes_on))
        }
        Stage::Checking { .. } => format!("Checks could not run: {how}"),
        Stage::Fixing { .. } if place::is_slot(step.policy) => format!("Fix failed: {how}"),
        Stage::Fixing { .. } => format!("Improvement failed: {how}"),
        Stage::Combining { .. } => format!("The fixes could not be put together: {how}"),
        Stage::Landing { .. } => format!("Landing failed: {how}"),
        Stage::Queued | Stage::AwaitingLanding { .. } | Stage::Waiting { .. } | Stage::Done(_) => {
            return Vec::new();
        }
    };
    left(step, text)
}

fn without(step: &Step, goes_on: bool) -> &'static str {
    let absent = |stage: &Stage| match stage {
        Stage::Researching { team } => team.iter().filter(|one| **one == Researcher::Absent).count(),
        Stage::Queued
        | Stage::Working { .. }
        | Stage::Checking { .. }
        | Stage::Reviewing(_)
        | Stage::Fixing { .. }
        | Stage::Combining { .. }
        | Stage::AwaitingLanding { .. }
        | Stage::Landing { .. }
        | Stage::Waiting { .. }
        | Stage::Done(_) => usize::MAX,
    };
    if !goes_on {
        ""
    } else if absent(&step.before.stage) == absent(&step.after.stage) {
        "; trying again"
    } else {
        "; going on without it"
    }
}

fn lost(step: &Step, loss: Loss, goes_on: bool) -> Vec<Line> {
    let what = match loss {
        Loss::Crashed => "An attempt was lost when signoff ended",
        Loss::Interrupted => "An attempt was interrupted",
        Loss::SessionGone => "The session to go on with is gone",
    };
    left(step, format!("{what}{}", again(step, goes_on)))
}

fn limited(step: &Step, plan: LimitPlan, why: Option<&Trouble>) -> Vec<Line> {
    let overloaded = why.is_some_and(|why| why.kind == TroubleKind::Overloaded);
    let what = if overloaded { "Overloaded" } else { "Rate limited" };
    let why = why.filter(|why| !why.message.is_empty());
    let why = why.map(|why| format!(" ({})", cut(&why.message, SENTENCE))).unwrap_or_default();
    left(
        step,
        match plan {
            LimitPlan::WaitUntil(until) => format!("{what}{why}: waiting until {until}"),
            LimitPlan::FallBack => format!("{what}{why}: another agent takes over"),
        },
    )
}

fn out_of_budget(step: &Step, row: &LoopView) -> Vec<Line> {
    let mut lines = left(step, "Paused: another attempt may go over the budget");
    if let Some(task) = row.task {
        lines.push(Line::Below(format!("Raise it, then: signoff work {task}")));
    }
    lines
}

fn resumed(step: &Step, hold: Hold) -> Vec<Line> {
    match hold {
        Hold::Budget => left(step, "Going on: there is budget again"),
        Hold::RateLimit { .. } => left(step, "Going on: the wait is over"),
        Hold::Checkpoint => Vec::new(),
    }
}

fn overlapped(step: &Step, kept: usize) -> Vec<Line> {
    let Stage::Combining { fixes, .. } = &step.before.stage else { return Vec::new() };
    left(step, format!("The fixes overlap: {kept} of {} kept, the others are made again", fixes.len()))
}

fn landed(step: &Step, report: &LandReport, branch: Option<String>) -> Vec<Line> {
    match report {
        LandReport::Landed { commit } => {
            // What a person lets land by itself does not go where the others of its run go.
            let branch = branch.filter(|_| step.policy.workflow.landing != Landing::None);
            let branch = branch.map(|branch| format!(" on {branch}")).unwrap_or_default();
            left(step, format!("Landed{branch} as {}", cut(commit.as_str(), 40)))
        }
        LandReport::SentBack { findings, .. } => left(step, format!("Landing: SENT BACK{}", why(findings))),
    }
}

/// Which files conflict, or else the first thing that was found.
fn why(findings: &[Finding]) -> String {
    let conflicts = findings.iter().filter(|finding| finding.kind == "conflict");
    let files: Vec<_> = conflicts.filter_map(|finding| finding.file.as_deref()).collect();
    match (files.is_empty(), findings.first()) {
        (false, _) => format!(" - conflict in {}", cut(&files.join(", "), SENTENCE)),
        (true, Some(finding)) => format!(" - {}", cut(&finding.description, SENTENCE)),
        (true, None) => String::new(),
    }
}
