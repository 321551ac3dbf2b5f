//! What `configure` asks about the review phases, in which order, and what the answers change, without a terminal.

use serde::Serialize;

use super::edit::KeyChange;
use super::{ConfigError, Settings};
use crate::policy::{Count, Gate, OnExhausted, OnFailure};
use crate::review::FailThreshold;
use crate::workflow::{Phase, PhaseKind};

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
    phases: Vec<ReviewPhaseHeading>,
    replies: Vec<QuestionReply>,
    /// The phase that is asked about; none: all of them.
    only: Option<usize>,
    at: usize,
}

/// A phase that is asked about.
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

/// One question about a phase, with what holds now and what was answered.
#[derive(Debug, Clone, Copy)]
struct QuestionReply {
    phase: usize,
    question: PhaseQuestion,
    now: PhaseAnswer,
    answer: PhaseAnswer,
}

impl QuestionReply {
    /// The option that the person finds chosen.
    fn chosen(&self) -> usize {
        let is = |wanted| self.question.options().iter().position(|(_, answer)| *answer == wanted);
        is(self.answer).or_else(|| is(PhaseAnswer::Custom)).unwrap_or(0)
    }

    /// Whether it is a retry limit that is none of those that are offered.
    fn is_custom(&self) -> bool {
        let offered = self.question.options().iter().any(|(_, answer)| *answer == self.answer);
        self.question == PhaseQuestion::Retries && (!offered || self.answer == PhaseAnswer::Custom)
    }

    /// Whether it has to be written: it does not hold anyway.
    fn is_different(&self) -> bool {
        self.answer != self.now && self.answer != PhaseAnswer::Custom
    }
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

/// A place on the way; questions by their index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DialogueStep {
    Which,
    Question(usize),
    Custom(usize),
    End,
}

impl ConfigureDialogue {
    /// At its beginning: the phases that are asked about, as they are configured.
    pub fn new(settings: &Settings) -> Result<Self, ConfigError> {
        let workflow = settings.workflow(PHASES)?;
        let (mut phases, mut replies) = (Vec::new(), Vec::new());
        for (index, phase) in workflow.phases.iter().enumerate() {
            let Some(policy) = phase.policy().filter(|_| GATES.contains(&phase.gate_name())) else { continue };
            for question in PhaseQuestion::ALL.into_iter().filter(|question| question.applies_to(phase)) {
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

    /// What is asked now.
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

    /// Takes the option that was chosen and goes on.
    pub fn choose(&mut self, option: usize) {
        match self.step() {
            DialogueStep::Which => self.only = option.checked_sub(1),
            DialogueStep::Question(index) => {
                let reply = &mut self.replies[index];
                // A number that is not offered stays as it is until another one is typed.
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

    /// Takes the number that was typed and goes on.
    pub fn number(&mut self, retries: u32) {
        if let DialogueStep::Custom(index) = self.step() {
            let reply = &mut self.replies[index];
            reply.answer = PhaseAnswer::Retries(Count::Number(retries));
            // A number that is offered has no step of its own.
            self.at += usize::from(reply.is_custom());
        }
    }

    /// One question back. False: there is none before.
    pub fn back(&mut self) -> bool {
        let Some(before) = self.at.checked_sub(1) else { return false };
        self.at = before;
        true
    }

    /// What has to be written: nothing that holds anyway.
    pub fn changes(&self) -> Vec<KeyChange> {
        let change = |reply: &QuestionReply| {
            let key = ["presets", PHASES, "gates", &self.phases[reply.phase].gate, reply.question.key()];
            reply.answer.written().map(|value| KeyChange::new(&key, value))
        };
        self.replies.iter().filter(|reply| reply.is_different()).filter_map(change).collect()
    }

    /// The same, a line for each phase.
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
