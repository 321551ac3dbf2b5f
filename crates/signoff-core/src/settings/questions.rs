//! What a person is asked about the review phases, and what their answers change. No terminal is needed for it.

use serde::Serialize;

use super::edit::KeyChange;
use super::{ConfigError, Settings};
use crate::policy::{Count, Gate, OnExhausted, OnFailure};
use crate::review::FailThreshold;
use crate::workflow::{Phase, PhaseKind, Workflow};

/// The preset whose review phases are asked about.
pub const PHASES: &str = "phases";

/// The gates that are asked about, in their order. The last review of all only notes what it finds.
const GATES: [&str; 4] = ["plan_review", "code_review", "test", "final_review"];

/// One of the five questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseQuestion {
    OnFailure,
    FailOn,
    ParallelFixes,
    Retries,
    OnExhausted,
}

impl PhaseQuestion {
    pub const ALL: [Self; 5] = [Self::OnFailure, Self::FailOn, Self::ParallelFixes, Self::Retries, Self::OnExhausted];

    pub fn words(self) -> &'static str {
        match self {
            Self::OnFailure => "What should happen when issues are found?",
            Self::FailOn => "Minimum severity that causes failure?",
            Self::ParallelFixes => "Enable parallel agents for fixing issues?",
            Self::Retries => "Retry limit for mini-loop?",
            Self::OnExhausted => "What happens when retry limit is reached?",
        }
    }

    /// What can be answered, in the order in which it is offered.
    pub fn options(self) -> &'static [(&'static str, PhaseAnswer)] {
        match self {
            Self::OnFailure => &[
                ("Restart iteration (go back to Phase 1)", PhaseAnswer::OnFailure(OnFailure::Restart)),
                ("Mini-loop (fix and re-review within phase)", PhaseAnswer::OnFailure(OnFailure::MiniLoop)),
                ("Proceed (note issues, continue anyway)", PhaseAnswer::OnFailure(OnFailure::Proceed)),
                ("Stop (halt workflow)", PhaseAnswer::OnFailure(OnFailure::Stop)),
            ],
            Self::FailOn => &[
                ("LOW (any issue fails) [default]", PhaseAnswer::FailOn(FailThreshold::Low)),
                ("MEDIUM (MEDIUM and HIGH fail)", PhaseAnswer::FailOn(FailThreshold::Medium)),
                ("HIGH (only HIGH fails)", PhaseAnswer::FailOn(FailThreshold::High)),
                ("NONE (never fail)", PhaseAnswer::FailOn(FailThreshold::None)),
            ],
            Self::ParallelFixes => {
                &[("Yes (recommended)", PhaseAnswer::ParallelFixes(true)), ("No", PhaseAnswer::ParallelFixes(false))]
            }
            Self::Retries => &[
                ("10 retries (default)", PhaseAnswer::Retries(Count::Number(10))),
                ("5 retries", PhaseAnswer::Retries(Count::Number(5))),
                ("3 retries", PhaseAnswer::Retries(Count::Number(3))),
                ("No limit", PhaseAnswer::Retries(Count::Unlimited)),
                ("Custom", PhaseAnswer::Custom),
            ],
            Self::OnExhausted => &[
                ("Stop workflow (default)", PhaseAnswer::OnExhausted(OnExhausted::Stop)),
                ("Ask me what to do", PhaseAnswer::OnExhausted(OnExhausted::Ask)),
                ("Restart iteration", PhaseAnswer::OnExhausted(OnExhausted::Restart)),
                ("Proceed with issues noted", PhaseAnswer::OnExhausted(OnExhausted::Proceed)),
            ],
        }
    }

    /// The key of a gate that it sets.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::OnFailure => "on_failure",
            Self::FailOn => "fail_on",
            Self::ParallelFixes => "parallel_fixes",
            Self::Retries => "max_fixes",
            Self::OnExhausted => "on_exhausted",
        }
    }

    /// What people call the setting.
    pub fn setting(self) -> &'static str {
        match self {
            Self::OnFailure => "onFailure",
            Self::FailOn => "failOnSeverity",
            Self::ParallelFixes => "parallelFixes",
            Self::Retries => "maxRetries",
            Self::OnExhausted => "onMaxRetries",
        }
    }

    /// What a gate says about it.
    pub fn now(self, gate: &Gate) -> PhaseAnswer {
        match self {
            Self::OnFailure => PhaseAnswer::OnFailure(gate.on_failure),
            Self::FailOn => PhaseAnswer::FailOn(gate.fail_on),
            Self::ParallelFixes => PhaseAnswer::ParallelFixes(gate.parallel_fixes),
            Self::Retries => PhaseAnswer::Retries(gate.bound.fixes().map_or(Count::Unlimited, Count::Number)),
            Self::OnExhausted => PhaseAnswer::OnExhausted(gate.on_exhausted),
        }
    }

    /// Whether a phase has anything to say about it: a failed command has no severity.
    pub fn applies_to(self, phase: &Phase) -> bool {
        self != Self::FailOn || !matches!(phase.kind, PhaseKind::Check(_))
    }
}

/// An answer to one of the questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseAnswer {
    OnFailure(OnFailure),
    FailOn(FailThreshold),
    ParallelFixes(bool),
    Retries(Count),
    /// A number that is asked for next.
    Custom,
    OnExhausted(OnExhausted),
}

impl PhaseAnswer {
    /// As it stands in a file. None: there is nothing to write yet.
    pub fn value(self) -> Option<serde_json::Value> {
        fn of(value: impl Serialize) -> Option<serde_json::Value> {
            serde_json::to_value(value).ok()
        }
        match self {
            Self::OnFailure(word) => of(word),
            Self::FailOn(bar) => of(bar),
            Self::ParallelFixes(switch) => of(switch),
            Self::Retries(count) => of(count),
            Self::Custom => None,
            Self::OnExhausted(word) => of(word),
        }
    }

    /// As people read it.
    pub fn words(self) -> String {
        match self.value() {
            Some(serde_json::Value::String(word)) if word == "unlimited" => "no limit".to_owned(),
            Some(serde_json::Value::String(word)) => word,
            Some(other) => other.to_string(),
            None => "custom".to_owned(),
        }
    }

    fn written(self) -> Option<toml_edit::Value> {
        match self.value()? {
            serde_json::Value::Bool(switch) => Some(switch.into()),
            serde_json::Value::Number(number) => number.as_i64().map(Into::into),
            serde_json::Value::String(word) => Some(word.into()),
            serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_) => None,
        }
    }
}

/// A retry limit that a person typed.
pub fn retries(typed: &str) -> Result<u32, String> {
    typed.trim().parse().map_err(|_| format!("a whole number from 0 to {}, please", u32::MAX))
}

/// A review phase with what holds now and what was answered.
#[derive(Debug, Clone)]
pub struct PhaseQuestions {
    pub number: u32,
    pub title: String,
    gate: String,
    replies: Vec<QuestionReply>,
}

/// One question about a phase.
#[derive(Debug, Clone, Copy)]
struct QuestionReply {
    question: PhaseQuestion,
    now: PhaseAnswer,
    answer: PhaseAnswer,
}

impl PhaseQuestions {
    /// The phases that are asked about, as they are configured.
    pub fn all(settings: &Settings) -> Result<Vec<Self>, ConfigError> {
        let workflow = settings.workflow(PHASES)?;
        let of_gates = workflow.phases.iter().enumerate().filter(|(_, phase)| GATES.contains(&phase.gate_name()));
        Ok(of_gates.filter_map(|(index, phase)| Self::for_phase(&workflow, index, phase)).collect())
    }

    fn for_phase(workflow: &Workflow, index: usize, phase: &Phase) -> Option<Self> {
        let gate = &phase.policy()?.gate;
        let reply = |question: PhaseQuestion| {
            let now = question.now(gate);
            QuestionReply { question, now, answer: now }
        };
        let questions = PhaseQuestion::ALL.into_iter().filter(|question| question.applies_to(phase));
        Some(Self {
            number: workflow.number(index),
            title: title(&phase.name),
            gate: phase.gate_name().to_owned(),
            replies: questions.map(reply).collect(),
        })
    }

    /// What is asked about this phase, in order.
    pub fn questions(&self) -> impl Iterator<Item = PhaseQuestion> {
        self.replies.iter().map(|reply| reply.question)
    }

    /// What holds, or what was answered in its place.
    pub fn answer(&self, question: PhaseQuestion) -> Option<PhaseAnswer> {
        self.replies.iter().find(|reply| reply.question == question).map(|reply| reply.answer)
    }

    pub fn set(&mut self, question: PhaseQuestion, answer: PhaseAnswer) {
        if let Some(reply) = self.replies.iter_mut().find(|reply| reply.question == question) {
            reply.answer = answer;
        }
    }

    /// The option that the person finds chosen.
    pub fn chosen(&self, question: PhaseQuestion) -> usize {
        let options = question.options();
        let is = |wanted: PhaseAnswer| options.iter().position(|(_, answer)| *answer == wanted);
        self.answer(question).and_then(is).or_else(|| is(PhaseAnswer::Custom)).unwrap_or(0)
    }

    fn different(&self) -> impl Iterator<Item = &QuestionReply> {
        self.replies.iter().filter(|reply| reply.answer != reply.now && reply.answer != PhaseAnswer::Custom)
    }

    /// What has to be written: nothing that holds anyway.
    pub fn changes(&self) -> Vec<KeyChange> {
        let change = |reply: &QuestionReply| {
            let key = ["presets", PHASES, "gates", &self.gate, reply.question.key()];
            reply.answer.written().map(|value| KeyChange::new(&key, value))
        };
        self.different().filter_map(change).collect()
    }

    /// The same in a line.
    pub fn summary(&self) -> String {
        let one = |reply: &QuestionReply| {
            format!("{} {} → {}", reply.question.setting(), reply.now.words(), reply.answer.words())
        };
        let all: Vec<_> = self.different().map(one).collect();
        let said = if all.is_empty() { "unchanged".to_owned() } else { all.join(", ") };
        format!("{} {}: {said}", self.number, self.title)
    }
}

/// The name of a phase as a heading has it: `code_review` is Code Review.
pub fn title(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>()).unwrap_or_default()
    };
    name.split('_').map(capital).collect::<Vec<_>>().join(" ")
}
