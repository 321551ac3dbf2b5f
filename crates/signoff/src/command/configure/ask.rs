//! The questions on a terminal.

use std::io::{IsTerminal, stderr, stdin};

use inquire::error::InquireResult;
use inquire::ui::{RenderConfig, Styled};
use inquire::validator::Validation;
use inquire::{Confirm, InquireError, Select, Text};
use signoff_core::config::dialogue::{Ask, Dialogue};
use signoff_core::config::edit;
use signoff_core::config::questions::retries;

use super::change::Proposal;
use super::target::Target;
use crate::console::{Console, say};
use crate::failure::{Exit, Failure};
use crate::settings;

const KEYS: &str = "↑↓ to move, Enter to choose, Esc to go back";

/// How a person answered.
enum Reply<T> {
    Said(T),
    Back,
    Interrupted,
}

/// Asks, shows what changes, and writes it if the person says so.
pub fn run(target: &Target, console: &Console) -> Result<Exit, Failure> {
    if !is_possible(console) {
        return Err(Failure::usage("there is no terminal to ask on")
            .hint("say what to set: signoff configure --set presets.phases.gates.code_review.max_fixes=5"));
    }
    let mut dialogue = Dialogue::new(&settings::load(Some(&target.root))?)?;
    let screen = Screen { config: config(console), heading: None };
    match screen.walk(&mut dialogue, target)? {
        Reply::Said(true) => {
            let edited = edit::set(&target.name, &target.text, &dialogue.changes())?;
            Proposal::new(target, edited)?.carry_out(false, console)
        }
        Reply::Said(false) | Reply::Back => {
            console.note("nothing was written");
            Ok(Exit::Done)
        }
        Reply::Interrupted => {
            say("\nnothing was written\n");
            Ok(Exit::Interrupted)
        }
    }
}

/// How it ends if the person wants to keep what is set. Who is not on a terminal has said so by the flag.
pub fn kept(proposal: &Proposal<'_>, console: &Console) -> Result<Option<Exit>, Failure> {
    if !is_possible(console) {
        return Ok(None);
    }
    say(&format!("{}\n", proposal.lines().join("\n")));
    let asked = Confirm::new("Take all of this back?").with_default(true).with_render_config(config(console));
    let exit = match reply(asked.prompt())? {
        Reply::Said(true) => return Ok(None),
        Reply::Said(false) | Reply::Back => Exit::Done,
        Reply::Interrupted => Exit::Interrupted,
    };
    say("nothing was written\n");
    Ok(Some(exit))
}

fn is_possible(console: &Console) -> bool {
    stdin().is_terminal() && stderr().is_terminal() && !console.no_ask && !console.json
}

fn config(console: &Console) -> RenderConfig<'static> {
    let config = if console.plain { RenderConfig::empty() } else { RenderConfig::default() };
    config.with_canceled_prompt_indicator(Styled::new("(back)"))
}

/// What is drawn on.
struct Screen {
    config: RenderConfig<'static>,
    /// The heading that was said last.
    heading: Option<String>,
}

impl Screen {
    /// From the first question to the end.
    fn walk(mut self, dialogue: &mut Dialogue, target: &Target) -> Result<Reply<bool>, Failure> {
        loop {
            let answered = match dialogue.ask() {
                Ask::Choose { heading, words, options, chosen } => {
                    self.head(heading);
                    self.choose(&words, options, chosen)?.map(|option| dialogue.choose(option))
                }
                Ask::Number { heading, words, now } => {
                    self.head(heading);
                    self.number(&words, now)?.map(|number| dialogue.number(number))
                }
                Ask::Nothing => {
                    say("Nothing is different from what holds.\n");
                    return Ok(Reply::Said(false));
                }
                Ask::Confirm { summary } => {
                    say(&format!("\n{}\n", summary.join("\n")));
                    // What is written and does not hold is said before, not after.
                    let edited = edit::set(&target.name, &target.text, &dialogue.changes())?;
                    let proposal = Proposal::new(target, edited)?;
                    proposal.notes().iter().for_each(|note| say(&format!("{note}\n")));
                    self.heading = None;
                    match self.confirm(&target.name)? {
                        Reply::Back => Reply::Back,
                        decided @ (Reply::Said(_) | Reply::Interrupted) => return Ok(decided),
                    }
                }
            };
            match answered {
                Reply::Said(()) => {}
                Reply::Back if dialogue.back() => {}
                Reply::Back => return Ok(Reply::Back),
                Reply::Interrupted => return Ok(Reply::Interrupted),
            }
        }
    }

    /// Says which phase is meant, once.
    fn head(&mut self, heading: Option<String>) {
        if let Some(heading) = heading.as_ref().filter(|_| self.heading != heading) {
            say(&format!("\n{heading}\n"));
        }
        self.heading = heading;
    }

    fn choose(&self, words: &str, options: Vec<String>, chosen: usize) -> Result<Reply<usize>, Failure> {
        let select = Select::new(words, options)
            .with_starting_cursor(chosen)
            .without_filtering()
            .with_help_message(KEYS)
            .with_formatter(&|option| without_explanation(option.value).to_owned())
            .with_render_config(self.config);
        reply(select.raw_prompt().map(|option| option.index))
    }

    fn number(&self, words: &str, now: Option<u32>) -> Result<Reply<u32>, Failure> {
        let now = now.map(|now| now.to_string()).unwrap_or_default();
        let check = |typed: &str| {
            Ok(retries(typed)
                .map_or_else(|message| Validation::Invalid(message.into()), |_| Validation::Valid))
        };
        let text = Text::new(words)
            .with_initial_value(&now)
            .with_validator(check)
            .with_help_message("a whole number, Esc to go back")
            .with_render_config(self.config);
        // What was checked can be read.
        reply(text.prompt().map(|typed| retries(&typed).unwrap_or_default()))
    }

    fn confirm(&self, file: &str) -> Result<Reply<bool>, Failure> {
        let words = format!("Write this to {file}?");
        let asked = Confirm::new(&words)
            .with_default(true)
            .with_help_message("Esc to go back")
            .with_render_config(self.config);
        reply(asked.prompt())
    }
}

/// An answer that was given needs no explanation, and stays in its line.
fn without_explanation(option: &str) -> &str {
    option.split_once(" (").map_or(option, |(answer, _)| answer)
}

impl<T> Reply<T> {
    fn map<U>(self, change: impl FnOnce(T) -> U) -> Reply<U> {
        match self {
            Self::Said(said) => Reply::Said(change(said)),
            Self::Back => Reply::Back,
            Self::Interrupted => Reply::Interrupted,
        }
    }
}

fn reply<T>(answer: InquireResult<T>) -> Result<Reply<T>, Failure> {
    match answer {
        Ok(said) => Ok(Reply::Said(said)),
        Err(InquireError::OperationCanceled) => Ok(Reply::Back),
        Err(InquireError::OperationInterrupted) => Ok(Reply::Interrupted),
        Err(error) => Err(Failure::failed(format!("cannot ask on this terminal: {error}"))
            .hint("nothing was written: say what to set with `signoff configure --set KEY=VALUE`")),
    }
}
