//! The order of the questions, forwards and back, without a terminal.

use super::edit::KeyChange;
use super::questions::{PhaseAnswer, PhaseQuestion, PhaseQuestions};
use super::{ConfigError, Settings};
use crate::policy::Count;

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
