//! What `configure` asks about the review phases, in which order, and what the answers change, without a terminal.

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum PhaseQuestion {
    OnFailure,
    FailOn,
    ParallelFixes,
    #[strum(serialize = "max_fixes")]
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
        self.into()
    }

    /// What people call the setting: its key in `iterate-config.json`.
    pub fn setting(self) -> &'static str {
        super::foreign::phase_key(self.key())
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
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
        serde_json::to_value(self).ok().filter(|value| !value.is_null())
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
        // JSON's way to write a word, number or switch is one of TOML's.
        self.value()?.to_string().parse().ok()
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

/// A person being asked.
#[derive(Debug, Clone)]
pub struct ConfigureDialogue {
    phases: Vec<PhaseQuestions>,
    /// The phases that are asked about; empty: all of them.
    only: Option<usize>,
    at: usize,
}

/// What is asked now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialoguePrompt {
    /// One of several.
    Choose { heading: Option<String>, words: String, options: Vec<String>, chosen: usize },
    /// A retry limit. `now` is the one that holds.
    Number { heading: Option<String>, words: String, now: Option<u32> },
    /// Whether it is to be written. The lines say what changes.
    Confirm { summary: Vec<String> },
    /// Nothing is different from what holds.
    Nothing,
}

/// A place on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DialogueStep {
    Which,
    Question(usize, PhaseQuestion),
    Custom(usize),
    End,
}

impl ConfigureDialogue {
    /// At its beginning.
    pub fn new(settings: &Settings) -> Result<Self, ConfigError> {
        Ok(Self { phases: PhaseQuestions::all(settings)?, only: None, at: 0 })
    }

    fn steps(&self) -> Vec<DialogueStep> {
        let mut steps = vec![DialogueStep::Which];
        let asked = self.phases.iter().enumerate().filter(|(index, _)| self.only.is_none_or(|only| only == *index));
        for (index, phase) in asked {
            for question in phase.questions() {
                steps.push(DialogueStep::Question(index, question));
                let custom = question == PhaseQuestion::Retries && is_custom(phase);
                steps.extend(custom.then_some(DialogueStep::Custom(index)));
            }
        }
        steps.push(DialogueStep::End);
        steps
    }

    fn step(&self) -> DialogueStep {
        self.steps().get(self.at).copied().unwrap_or(DialogueStep::End)
    }

    /// What is asked now.
    pub fn ask(&self) -> DialoguePrompt {
        match self.step() {
            DialogueStep::Which => self.which(),
            DialogueStep::Question(index, question) => {
                let phase = self.phases.get(index);
                DialoguePrompt::Choose {
                    heading: phase.map(heading),
                    words: question.words().to_owned(),
                    options: question.options().iter().map(|(words, _)| (*words).to_owned()).collect(),
                    chosen: phase.map_or(0, |phase| phase.chosen(question)),
                }
            }
            DialogueStep::Custom(index) => {
                let phase = self.phases.get(index);
                let now = match phase.and_then(|phase| phase.answer(PhaseQuestion::Retries)) {
                    Some(PhaseAnswer::Retries(Count::Number(number))) => Some(number),
                    Some(_) | None => None,
                };
                DialoguePrompt::Number { heading: phase.map(heading), words: "How many retries?".to_owned(), now }
            }
            DialogueStep::End if self.changes().is_empty() => DialoguePrompt::Nothing,
            DialogueStep::End => DialoguePrompt::Confirm { summary: self.summary() },
        }
    }

    fn which(&self) -> DialoguePrompt {
        let all = std::iter::once("All review phases".to_owned());
        DialoguePrompt::Choose {
            heading: None,
            words: "Which phases do you want to configure?".to_owned(),
            options: all.chain(self.phases.iter().map(heading)).collect(),
            chosen: self.only.map_or(0, |index| index + 1),
        }
    }

    /// Takes the option that was chosen and goes on.
    pub fn choose(&mut self, option: usize) {
        match self.step() {
            DialogueStep::Which => self.only = option.checked_sub(1),
            DialogueStep::Question(index, question) => {
                let answer = question.options().get(option).map(|(_, answer)| *answer);
                // A number that is not offered stays as it is until another one is typed.
                let stays = answer == Some(PhaseAnswer::Custom) && self.phases.get(index).is_some_and(is_custom);
                if let (Some(phase), Some(answer), false) = (self.phases.get_mut(index), answer, stays) {
                    phase.set(question, answer);
                }
            }
            DialogueStep::Custom(_) | DialogueStep::End => {}
        }
        self.at += 1;
    }

    /// Takes the number that was typed and goes on.
    pub fn number(&mut self, retries: u32) {
        if let DialogueStep::Custom(index) = self.step()
            && let Some(phase) = self.phases.get_mut(index)
        {
            phase.set(PhaseQuestion::Retries, PhaseAnswer::Retries(Count::Number(retries)));
            // A number that is offered has no step of its own.
            self.at += usize::from(is_custom(phase));
        }
    }

    /// One question back. False: there is none before.
    pub fn back(&mut self) -> bool {
        let Some(before) = self.at.checked_sub(1) else { return false };
        self.at = before;
        true
    }

    /// What has to be written.
    pub fn changes(&self) -> Vec<KeyChange> {
        self.phases.iter().flat_map(PhaseQuestions::changes).collect()
    }

    fn summary(&self) -> Vec<String> {
        self.phases.iter().map(PhaseQuestions::summary).collect()
    }
}

/// Whether the retry limit is none of those that are offered.
fn is_custom(phase: &PhaseQuestions) -> bool {
    let answer = phase.answer(PhaseQuestion::Retries);
    let offered = PhaseQuestion::Retries.options().iter().any(|(_, option)| Some(*option) == answer);
    !offered || answer == Some(PhaseAnswer::Custom)
}

fn heading(phase: &PhaseQuestions) -> String {
    format!("Phase {}: {}", phase.number, phase.title)
}
