//! The way through the questions, forwards and back. Whoever draws them asks here what comes next.

use super::edit::Change;
use super::questions::{Answer, Asked, Question};
use super::{ConfigError, Settings};
use crate::policy::Count;

/// A person being asked.
#[derive(Debug, Clone)]
pub struct Dialogue {
    phases: Vec<Asked>,
    /// The phases that are asked about; empty: all of them.
    only: Option<usize>,
    at: usize,
}

/// What is asked now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
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
enum Step {
    Which,
    Question(usize, Question),
    Custom(usize),
    End,
}

impl Dialogue {
    /// At its beginning.
    pub fn new(settings: &Settings) -> Result<Self, ConfigError> {
        Ok(Self { phases: Asked::all(settings)?, only: None, at: 0 })
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = vec![Step::Which];
        let asked =
            self.phases.iter().enumerate().filter(|(index, _)| self.only.is_none_or(|only| only == *index));
        for (index, phase) in asked {
            for question in phase.questions() {
                steps.push(Step::Question(index, question));
                let custom = question == Question::Retries && is_custom(phase);
                steps.extend(custom.then_some(Step::Custom(index)));
            }
        }
        steps.push(Step::End);
        steps
    }

    fn step(&self) -> Step {
        self.steps().get(self.at).copied().unwrap_or(Step::End)
    }

    /// What is asked now.
    pub fn ask(&self) -> Ask {
        match self.step() {
            Step::Which => self.which(),
            Step::Question(index, question) => {
                let phase = self.phases.get(index);
                Ask::Choose {
                    heading: phase.map(heading),
                    words: question.words().to_owned(),
                    options: question.options().iter().map(|(words, _)| (*words).to_owned()).collect(),
                    chosen: phase.map_or(0, |phase| phase.chosen(question)),
                }
            }
            Step::Custom(index) => {
                let phase = self.phases.get(index);
                let now = match phase.and_then(|phase| phase.answer(Question::Retries)) {
                    Some(Answer::Retries(Count::Of(number))) => Some(number),
                    Some(_) | None => None,
                };
                Ask::Number { heading: phase.map(heading), words: "How many retries?".to_owned(), now }
            }
            Step::End if self.changes().is_empty() => Ask::Nothing,
            Step::End => Ask::Confirm { summary: self.summary() },
        }
    }

    fn which(&self) -> Ask {
        let all = std::iter::once("All review phases".to_owned());
        Ask::Choose {
            heading: None,
            words: "Which phases do you want to configure?".to_owned(),
            options: all.chain(self.phases.iter().map(heading)).collect(),
            chosen: self.only.map_or(0, |index| index + 1),
        }
    }

    /// Takes the option that was chosen and goes on.
    pub fn choose(&mut self, option: usize) {
        match self.step() {
            Step::Which => self.only = option.checked_sub(1),
            Step::Question(index, question) => {
                let answer = question.options().get(option).map(|(_, answer)| *answer);
                // A number that is not offered stays as it is until another one is typed.
                let stays = answer == Some(Answer::Custom) && self.phases.get(index).is_some_and(is_custom);
                if let (Some(phase), Some(answer), false) = (self.phases.get_mut(index), answer, stays) {
                    phase.set(question, answer);
                }
            }
            Step::Custom(_) | Step::End => {}
        }
        self.at += 1;
    }

    /// Takes the number that was typed and goes on.
    pub fn number(&mut self, retries: u32) {
        if let Step::Custom(index) = self.step()
            && let Some(phase) = self.phases.get_mut(index)
        {
            phase.set(Question::Retries, Answer::Retries(Count::Of(retries)));
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
    pub fn changes(&self) -> Vec<Change> {
        self.phases.iter().flat_map(Asked::changes).collect()
    }

    fn summary(&self) -> Vec<String> {
        self.phases.iter().map(Asked::summary).collect()
    }
}

/// Whether the retry limit is none of those that are offered.
fn is_custom(phase: &Asked) -> bool {
    let answer = phase.answer(Question::Retries);
    let offered = Question::Retries.options().iter().any(|(_, option)| Some(*option) == answer);
    !offered || answer == Some(Answer::Custom)
}

fn heading(phase: &Asked) -> String {
    format!("Phase {}: {}", phase.number, phase.title)
}
