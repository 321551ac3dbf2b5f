//! A question with all that a person needs to answer it.

use signoff_core::ids::{LoopId, QuestionId, RunId};
use signoff_core::machine::{Asked, Choice, Loop, Policy, Stage, blocking};
use signoff_core::policy::ExhaustedAs;
use signoff_core::review::Finding;
use signoff_core::view::{LoopView, RunView};

use crate::progress;
use crate::words;

/// What one loop asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub run: RunId,
    pub loop_id: LoopId,
    /// The loop's own number of it.
    pub id: QuestionId,
    /// `Task #29`.
    pub subject: String,
    pub title: String,
    /// `review 3/3`.
    pub place: String,
    pub text: String,
    /// Each with what it leads to.
    pub choices: Vec<(Choice, String)>,
    /// What keeps the gate shut, worst first.
    pub findings: Vec<String>,
    /// What to type to answer it another time.
    pub how: String,
}

impl Question {
    /// The open question of a loop.
    pub fn of(view: &RunView, loop_id: &LoopId) -> Option<Self> {
        let (this, policy, row) = (view.loop_state(loop_id)?, view.loop_policy(loop_id)?, view.row(loop_id)?);
        let Stage::Waiting { question, .. } = &this.stage else { return None };
        let asked = row.question.as_ref()?;
        let meaning = |choice: &Choice| (*choice, meaning(*choice, &question.about, (this, policy)));
        Some(Self {
            run: view.run?,
            loop_id: loop_id.clone(),
            id: question.id,
            subject: words::subject(&row),
            title: row.task.map(|_| row.title.clone()).unwrap_or_default(),
            place: progress::place(&row),
            text: asked.text.clone(),
            choices: question.choices.iter().map(meaning).collect(),
            findings: blocking(this, policy).into_iter().map(|entry| line(&entry.finding)).collect(),
            how: how(&row, &question.choices),
        })
    }

    /// What tells it from every other question.
    pub(super) fn key(&self) -> (RunId, LoopId, QuestionId) {
        (self.run, self.loop_id.clone(), self.id)
    }
}

/// `CRITICAL src/auth.rs:12 the password is logged`.
fn line(finding: &Finding) -> String {
    let line = finding.line.map(|line| format!(":{line}")).unwrap_or_default();
    let place = finding.file.as_ref().map(|file| format!("{file}{line} ")).unwrap_or_default();
    format!("{} {place}{}", finding.severity.word(), finding.description)
}

fn how(row: &LoopView, choices: &[Choice]) -> String {
    let choices: Vec<_> = choices.iter().map(|choice| choice.word()).collect();
    let choices = choices.join("|");
    // Questions without a task are known by a number that is given to them in the store.
    match row.task {
        Some(task) => format!("signoff answer {task} {choices}"),
        None => format!("signoff answer QUESTION {choices}; signoff status names it"),
    }
}

/// What a choice leads to.
fn meaning(choice: Choice, about: &Asked, (this, policy): (&Loop, &Policy)) -> String {
    let text = match choice {
        Choice::Continue => "one more fix and review",
        Choice::Fix => "hand it to the fixer, then review again",
        Choice::Skip => "go on without a review; that is no approval",
        Choice::Retry => retry(about),
        Choice::Proceed => proceed(about),
        Choice::Stop => stop(about, (this, policy)),
        Choice::Restart => return restart(this, policy),
    };
    text.to_owned()
}

fn retry(about: &Asked) -> &'static str {
    match about {
        Asked::PartialReview { .. } => "ask who is missing once more",
        Asked::UnclearReview { .. } | Asked::NoReview { .. } => "have it reviewed once more",
        Asked::FixerFailed => "let the fixer try once more",
        Asked::ImplementerFailed => "let the implementer try once more",
        Asked::Exhausted(_) | Asked::Discussion { .. } => "try once more",
    }
}

fn proceed(about: &Asked) -> &'static str {
    match about {
        Asked::PartialReview { .. } => "go by those who answered",
        Asked::UnclearReview { .. } | Asked::NoReview { .. } => "go on without a review; that is no approval",
        Asked::Exhausted(_) | Asked::Discussion { .. } | Asked::FixerFailed | Asked::ImplementerFailed => {
            "go on; the findings stay open"
        }
    }
}

fn stop(about: &Asked, (this, policy): (&Loop, &Policy)) -> &'static str {
    let judge = policy.workflow.phases.get(this.at.phase).and_then(|phase| phase.judge());
    match (about, judge.map(|judge| judge.gate.exhausted_as)) {
        (Asked::Exhausted(_), Some(ExhaustedAs::Attention)) => "end it here: MAX_CYCLES_REACHED",
        (Asked::Exhausted(_), Some(ExhaustedAs::Stuck)) => "end it here: stuck",
        (Asked::Discussion { .. }, _) => "end it here: NEEDS_DISCUSSION",
        (
            Asked::Exhausted(_)
            | Asked::PartialReview { .. }
            | Asked::UnclearReview { .. }
            | Asked::NoReview { .. }
            | Asked::FixerFailed
            | Asked::ImplementerFailed,
            _,
        ) => "end it here: failed",
    }
}

fn restart(this: &Loop, policy: &Policy) -> String {
    let phases = &policy.workflow.phases;
    let judge = phases.get(this.at.phase).and_then(|phase| phase.judge());
    let phase = judge.and_then(|judge| phases.get(judge.restart_to));
    let phase = phase.map(|phase| phase.name.as_str()).unwrap_or_default();
    let allowed = policy.workflow.limits.max_passes.saturating_add(this.tally.granted.passes);
    if this.at.pass < allowed {
        format!("start over at {phase} (pass {}/{allowed})", this.at.pass + 1)
    } else {
        "end it here: it started over as often as it may".to_owned()
    }
}
