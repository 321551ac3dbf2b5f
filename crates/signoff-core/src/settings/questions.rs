//! The dialogue of `signoff configure` about the review phases, without a terminal: its questions, their order, and the
//! changes that the answers make.

use std::sync::LazyLock;

use serde::Serialize;
use strum::VariantArray;

use super::edit::KeyChange;
use super::rules::key_name;
use super::{ConfigError, Settings, key};
use crate::policy::{Count, Gate, OnExhausted, OnFailure};
use crate::review::FailThreshold;
use crate::workflow::{GateKeys, PHASES_PRESET, Phase, PhaseKind};

/// The gates with questions, in order. The last review of all has none: it only records its findings.
const GATES: [&str; 4] = ["plan_review", "code_review", "test", "final_review"];

static FAIL_ON: LazyLock<Vec<(&str, PhaseAnswer)>> =
    LazyLock::new(|| FailThreshold::ANSWERS.map(|(words, fail_on)| (words, PhaseAnswer::FailOn(fail_on))).to_vec());

/// One of the five questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub enum PhaseQuestion {
    OnFailure,
    FailOn,
    ParallelFixes,
    Retries,
    OnExhausted,
}

impl PhaseQuestion {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn words(self) -> &'static str {
        match self {
            Self::OnFailure => "What should happen when issues are found?",
            Self::FailOn => "Minimum severity that causes failure?",
            Self::ParallelFixes => "Enable parallel agents for fixing issues?",
            Self::Retries => "Retry limit for mini-loop?",
            Self::OnExhausted => "What happens when retry limit is reached?",
        }
    }

    /// The answers on offer, in order.
    pub fn options(self) -> &'static [(&'static str, PhaseAnswer)] {
        match self {
            Self::OnFailure => &[
                ("Restart iteration (go back to Phase 1)", PhaseAnswer::OnFailure(OnFailure::Restart)),
                ("Mini-loop (fix and re-review within phase)", PhaseAnswer::OnFailure(OnFailure::MiniLoop)),
                ("Proceed (note issues, continue anyway)", PhaseAnswer::OnFailure(OnFailure::Proceed)),
                ("Stop (halt workflow)", PhaseAnswer::OnFailure(OnFailure::Stop)),
            ],
            Self::FailOn => &FAIL_ON,
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
            Self::OnFailure => key_name!(GateKeys, on_failure),
            Self::FailOn => key_name!(GateKeys, fail_on),
            Self::ParallelFixes => key_name!(GateKeys, parallel_fixes),
            Self::Retries => key_name!(GateKeys, max_fixes),
            Self::OnExhausted => key_name!(GateKeys, on_exhausted),
        }
    }

    /// The name of the setting for people: its key in `iterate-config.json`.
    pub fn setting(self) -> &'static str {
        super::foreign::phase_key(self.key())
    }

    /// The current answer: the value of the gate.
    pub fn now(self, gate: &Gate) -> PhaseAnswer {
        match self {
            Self::OnFailure => PhaseAnswer::OnFailure(gate.on_failure),
            Self::FailOn => PhaseAnswer::FailOn(gate.fail_on),
            Self::ParallelFixes => PhaseAnswer::ParallelFixes(gate.parallel_fixes),
            Self::Retries => PhaseAnswer::Retries(gate.bound.fixes().map_or(Count::Unlimited, Count::Number)),
            Self::OnExhausted => PhaseAnswer::OnExhausted(gate.on_exhausted),
        }
    }

    /// Whether the question applies to a phase: a failed command has no severity.
    pub fn applies_to(self, phase: &Phase) -> bool {
        self != Self::FailOn || !matches!(phase.kind, PhaseKind::Check(_))
    }
}

/// An answer to one of the questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PhaseAnswer {
    OnFailure(OnFailure),
    FailOn(FailThreshold),
    ParallelFixes(bool),
    Retries(Count),
    /// A number that the next question asks for.
    Custom,
    OnExhausted(OnExhausted),
}

impl PhaseAnswer {
    /// The value in a file. None: the number is not known yet.
    pub fn value(self) -> Option<serde_json::Value> {
        serde_json::to_value(self).ok().filter(|value| !value.is_null())
    }

    /// The answer for people.
    pub fn words(self) -> String {
        match self.value() {
            Some(serde_json::Value::String(word)) if word == "unlimited" => "no limit".to_owned(),
            Some(serde_json::Value::String(word)) => word,
            Some(other) => other.to_string(),
            None => "custom".to_owned(),
        }
    }

    fn written(self) -> Option<toml_edit::Value> {
        // Strings, numbers and booleans of JSON are valid TOML.
        self.value()?.to_string().parse().ok()
    }
}

/// A retry limit that a person typed.
pub fn retries(typed: &str) -> Result<u32, String> {
    typed.trim().parse().map_err(|_| format!("expected a whole number from 0 to {}", u32::MAX))
}

/// The name of a phase as a heading: `code_review` is Code Review.
pub fn title(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>()).unwrap_or_default()
    };
    name.split('_').map(capital).collect::<Vec<_>>().join(" ")
}

/// The state of the dialogue.
#[derive(Debug, Clone)]
pub struct ConfigureDialogue {
    phases: Vec<ReviewPhaseHeading>,
    replies: Vec<QuestionReply>,
    /// The index of the chosen phase; none: all phases.
    only: Option<usize>,
    at: usize,
}

/// A phase with questions.
#[derive(Debug, Clone)]
struct ReviewPhaseHeading {
    number: u32,
    title: String,
    gate: String,
}

impl ReviewPhaseHeading {
    fn heading(&self) -> String {
        format!("Phase {}: {}", self.number, self.title)
    }
}

/// A question about a phase, with the configured value and the answer.
#[derive(Debug, Clone, Copy)]
struct QuestionReply {
    phase: usize,
    question: PhaseQuestion,
    now: PhaseAnswer,
    answer: PhaseAnswer,
}

impl QuestionReply {
    /// The index of the preselected option.
    fn chosen(&self) -> usize {
        let is = |wanted| self.question.options().iter().position(|(_, answer)| *answer == wanted);
        is(self.answer).or_else(|| is(PhaseAnswer::Custom)).unwrap_or(0)
    }

    /// Whether it is a retry limit other than those on offer.
    fn is_custom(&self) -> bool {
        let offered = self.question.options().iter().any(|(_, answer)| *answer == self.answer);
        self.question == PhaseQuestion::Retries && (!offered || self.answer == PhaseAnswer::Custom)
    }

    /// Whether the answer differs from the configured value.
    fn is_different(&self) -> bool {
        self.answer != self.now && self.answer != PhaseAnswer::Custom
    }
}

/// The prompt of the current step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialoguePrompt {
    /// One of several.
    Choose { heading: Option<String>, words: String, options: Vec<String>, chosen: usize },
    /// A retry limit. `now` is the configured one.
    Number { heading: Option<String>, words: String, now: Option<u32> },
    /// Whether to write the changes, which the lines list.
    Confirm { summary: Vec<String> },
    /// There are no changes.
    Nothing,
}

/// A step of the dialogue; questions by their index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DialogueStep {
    Which,
    Question(usize),
    Custom(usize),
    End,
}

impl ConfigureDialogue {
    /// Starts the dialogue with the configured values.
    pub fn new(settings: &Settings) -> Result<Self, ConfigError> {
        let workflow = settings.workflow(PHASES_PRESET)?;
        let (mut phases, mut replies) = (Vec::new(), Vec::new());
        for (index, phase) in workflow.phases.iter().enumerate() {
            let Some(policy) = phase.policy().filter(|_| GATES.contains(&phase.gate_name())) else { continue };
            for question in PhaseQuestion::ALL.iter().copied().filter(|question| question.applies_to(phase)) {
                let now = question.now(&policy.gate);
                replies.push(QuestionReply { phase: phases.len(), question, now, answer: now });
            }
            let (number, title, gate) = (workflow.number(index), title(&phase.name), phase.gate_name().to_owned());
            phases.push(ReviewPhaseHeading { number, title, gate });
        }
        Ok(Self { phases, replies, only: None, at: 0 })
    }

    fn step(&self) -> DialogueStep {
        let mut steps = vec![DialogueStep::Which];
        for (index, reply) in self.replies.iter().enumerate() {
            if self.only.is_none_or(|only| only == reply.phase) {
                steps.push(DialogueStep::Question(index));
                steps.extend(reply.is_custom().then_some(DialogueStep::Custom(index)));
            }
        }
        steps.get(self.at).copied().unwrap_or(DialogueStep::End)
    }

    /// The prompt of the current step.
    pub fn ask(&self) -> DialoguePrompt {
        let heading = |reply: &QuestionReply| Some(self.phases[reply.phase].heading());
        match self.step() {
            DialogueStep::Which => DialoguePrompt::Choose {
                heading: None,
                words: "Which phases do you want to configure?".to_owned(),
                options: std::iter::once("All review phases".to_owned())
                    .chain(self.phases.iter().map(ReviewPhaseHeading::heading))
                    .collect(),
                chosen: self.only.map_or(0, |index| index + 1),
            },
            DialogueStep::Question(index) => {
                let reply = &self.replies[index];
                DialoguePrompt::Choose {
                    heading: heading(reply),
                    words: reply.question.words().to_owned(),
                    options: reply.question.options().iter().map(|(words, _)| (*words).to_owned()).collect(),
                    chosen: reply.chosen(),
                }
            }
            DialogueStep::Custom(index) => {
                let reply = &self.replies[index];
                let now =
                    if let PhaseAnswer::Retries(Count::Number(number)) = reply.answer { Some(number) } else { None };
                DialoguePrompt::Number { heading: heading(reply), words: "How many retries?".to_owned(), now }
            }
            DialogueStep::End if self.changes().is_empty() => DialoguePrompt::Nothing,
            DialogueStep::End => DialoguePrompt::Confirm { summary: self.summary() },
        }
    }

    /// Applies the chosen option and goes to the next step.
    pub fn choose(&mut self, option: usize) {
        match self.step() {
            DialogueStep::Which => self.only = option.checked_sub(1),
            DialogueStep::Question(index) => {
                let reply = &mut self.replies[index];
                // A custom number stays until the person types another one.
                match reply.question.options().get(option) {
                    Some((_, PhaseAnswer::Custom)) if reply.is_custom() => {}
                    Some((_, answer)) => reply.answer = *answer,
                    None => {}
                }
            }
            DialogueStep::Custom(_) | DialogueStep::End => {}
        }
        self.at += 1;
    }

    /// Applies the number that the person typed and goes to the next step.
    pub fn number(&mut self, retries: u32) {
        if let DialogueStep::Custom(index) = self.step() {
            let reply = &mut self.replies[index];
            reply.answer = PhaseAnswer::Retries(Count::Number(retries));
            // A number on offer has no step of its own.
            self.at += usize::from(reply.is_custom());
        }
    }

    /// Goes back one question. Returns false at the first one.
    pub fn back(&mut self) -> bool {
        let Some(before) = self.at.checked_sub(1) else { return false };
        self.at = before;
        true
    }

    /// The changes to write: only answers that differ from the configured values.
    pub fn changes(&self) -> Vec<KeyChange> {
        let change = |reply: &QuestionReply| {
            let key = [key::PRESETS, PHASES_PRESET, key::GATES, &self.phases[reply.phase].gate, reply.question.key()];
            reply.answer.written().map(|value| KeyChange::new(&key, value))
        };
        self.replies.iter().filter(|reply| reply.is_different()).filter_map(change).collect()
    }

    /// The changes, one line for each phase.
    fn summary(&self) -> Vec<String> {
        let one = |reply: &QuestionReply| {
            format!("{} {} → {}", reply.question.setting(), reply.now.words(), reply.answer.words())
        };
        let line = |(index, phase): (usize, &ReviewPhaseHeading)| {
            let replies = self.replies.iter().filter(|reply| reply.phase == index && reply.is_different());
            let all: Vec<_> = replies.map(one).collect();
            let changes = if all.is_empty() { "unchanged".to_owned() } else { all.join(", ") };
            format!("{} {}: {changes}", phase.number, phase.title)
        };
        self.phases.iter().enumerate().map(line).collect()
    }
}
