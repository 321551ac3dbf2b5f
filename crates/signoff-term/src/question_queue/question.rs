//! A question with everything a person needs to answer it.

use signoff_core::ids::{LoopId, QuestionId, RunId};
use signoff_core::machine::{Choice, FinalVerdict, Loop, Policy, QuestionTopic, Stage, blocking};
use signoff_core::policy::ExhaustedAs;
use signoff_core::review::Finding;
use signoff_core::view::RunState;
use signoff_core::view::inbox::NextStep;

use crate::labels;
use crate::progress;

/// The open question of one loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    pub run: RunId,
    pub loop_id: LoopId,
    /// The number of the question within its loop.
    pub id: QuestionId,
    /// `Task #29`.
    pub subject: String,
    pub title: String,
    /// `review 3/3`.
    pub position: String,
    pub text: String,
    /// Each choice with a description of its effect.
    pub choices: Vec<(Choice, String)>,
    /// The findings that block the gate, most severe first.
    pub findings: Vec<String>,
    /// The command that answers the question later.
    pub answer_command: String,
}

impl OpenQuestion {
    /// The open question of a loop, if it has one.
    pub fn from_state(state: &RunState, loop_id: &LoopId) -> Option<Self> {
        let (machine, policy, row) = (state.loop_state(loop_id)?, state.policy(loop_id)?, state.row(loop_id)?);
        let Stage::Waiting { question, .. } = &machine.stage else { return None };
        let row_question = row.question.as_ref()?;
        let described = |choice: &Choice| (*choice, effect(*choice, &question.topic, machine, policy));
        Some(Self {
            run: state.run,
            loop_id: loop_id.clone(),
            id: question.id,
            subject: labels::subject(&row),
            title: row.task.map(|_| row.title.clone()).unwrap_or_default(),
            position: progress::phase_position(&row),
            text: row_question.text.clone(),
            choices: question.choices.iter().map(described).collect(),
            findings: blocking(machine, policy).into_iter().map(|entry| finding_text(&entry.finding)).collect(),
            answer_command: NextStep::for_question(&row, None).to_string(),
        })
    }

    /// A key that is unique over all loops.
    pub(super) fn key(&self) -> (RunId, LoopId, QuestionId) {
        (self.run, self.loop_id.clone(), self.id)
    }
}

/// `CRITICAL src/auth.rs:12 the password is logged`.
fn finding_text(finding: &Finding) -> String {
    let line = finding.line.map(|line| format!(":{line}")).unwrap_or_default();
    let location = finding.file.as_ref().map(|file| format!("{file}{line} ")).unwrap_or_default();
    format!("{} {location}{}", finding.severity.into_str(), finding.description)
}

/// The effect of a choice.
fn effect(choice: Choice, topic: &QuestionTopic, machine: &Loop, policy: &Policy) -> String {
    let text = match choice {
        Choice::Continue => "one more fix and review",
        Choice::Fix => "hand it to the fixer, then review again",
        Choice::Skip => "continue without approval",
        Choice::Retry => retry(topic),
        Choice::Proceed => proceed(topic),
        Choice::Stop => return format!("end it here: {}", ending(topic, machine, policy)),
        Choice::Restart => return restart(machine, policy),
    };
    text.to_owned()
}

fn retry(topic: &QuestionTopic) -> &'static str {
    match topic {
        QuestionTopic::PartialReview { .. } => "ask the missing reviewers again",
        QuestionTopic::UnclearReview { .. } | QuestionTopic::NoReview { .. } => "review it again",
        QuestionTopic::FixerFailed => "let the fixer try again",
        QuestionTopic::ImplementerFailed => "let the implementer try again",
        QuestionTopic::Exhausted(_) | QuestionTopic::Discussion { .. } => "try again",
    }
}

fn proceed(topic: &QuestionTopic) -> &'static str {
    match topic {
        QuestionTopic::PartialReview { .. } => "use the reviews that arrived",
        QuestionTopic::UnclearReview { .. } | QuestionTopic::NoReview { .. } => "continue without approval",
        QuestionTopic::Exhausted(_)
        | QuestionTopic::Discussion { .. }
        | QuestionTopic::FixerFailed
        | QuestionTopic::ImplementerFailed => "continue; the findings stay open",
    }
}

/// How the loop ends if it stops here.
fn ending(topic: &QuestionTopic, machine: &Loop, policy: &Policy) -> &'static str {
    let gate_policy = policy.workflow.phases.get(machine.position.phase).and_then(|phase| phase.policy());
    match topic {
        QuestionTopic::Exhausted(_) => {
            gate_policy.map_or(ExhaustedAs::Failed, |gate_policy| gate_policy.gate.exhausted_as).ending()
        }
        QuestionTopic::Discussion { .. } => FinalVerdict::NeedsDiscussion.into_str(),
        QuestionTopic::PartialReview { .. }
        | QuestionTopic::UnclearReview { .. }
        | QuestionTopic::NoReview { .. }
        | QuestionTopic::FixerFailed
        | QuestionTopic::ImplementerFailed => ExhaustedAs::Failed.ending(),
    }
}

fn restart(machine: &Loop, policy: &Policy) -> String {
    let phases = &policy.workflow.phases;
    let gate_policy = phases.get(machine.position.phase).and_then(|phase| phase.policy());
    let phase = gate_policy.and_then(|gate_policy| phases.get(gate_policy.restart_to));
    let phase = phase.map(|phase| phase.name.as_str()).unwrap_or_default();
    let allowed = policy.workflow.limits.max_passes.saturating_add(machine.counters.granted.passes);
    if machine.position.pass < allowed {
        format!("start over at {phase} (pass {}/{allowed})", machine.position.pass + 1)
    } else {
        "end it here: the maximum number of passes is reached".to_owned()
    }
}
