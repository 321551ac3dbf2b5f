//! Asks the questions of `signoff configure` on a terminal.

use std::io::{IsTerminal, stderr, stdin};

use inquire::error::InquireResult;
use inquire::ui::{RenderConfig, Styled};
use inquire::validator::Validation;
use inquire::{Confirm, InquireError, Select, Text};
use signoff_core::settings::edit;
use signoff_core::settings::questions::retries;
use signoff_core::settings::questions::{ConfigureDialogue, DialoguePrompt};

use super::{ConfigTarget, Proposal};
use crate::console::write_stderr;
use crate::{CliError, CommandExit, Console, Result, settings};

const KEYS: &str = "↑↓ to move, Enter to choose, Esc to go back";

/// Asks the questions, shows what changes, and writes it if the user confirms.
pub fn run(target: &ConfigTarget, console: &Console) -> Result<CommandExit> {
    if !is_possible(console) {
        return Err(CliError::usage("there is no terminal to ask on")
            .hint("set a key: signoff configure --set presets.phases.gates.code_review.max_fixes=5"));
    }
    let mut dialogue = ConfigureDialogue::new(&settings::load(Some(&target.root))?)?;
    let screen = Prompter { config: config(console), heading: None };
    match screen.ask_all(&mut dialogue, target) {
        Ok(true) => {
            let edited = edit::set(&target.name, &target.text, &dialogue.changes())?;
            Proposal::new(target, edited)?.apply(false, console)
        }
        Ok(false) => {
            console.note("nothing was written");
            Ok(CommandExit::Done)
        }
        Err(failure) if failure.exit == CommandExit::Interrupted => {
            write_stderr("\nnothing was written\n");
            Ok(CommandExit::Interrupted)
        }
        Err(failure) => Err(failure),
    }
}

/// Asks the user to confirm a reset. Returns the exit if they decline. Without a terminal the flag is the confirmation.
pub fn confirm_reset(proposal: &Proposal<'_>, console: &Console) -> Result<Option<CommandExit>> {
    if !is_possible(console) {
        return Ok(None);
    }
    write_stderr(&format!("{}\n", proposal.lines().join("\n")));
    let asked = Confirm::new("Remove these settings?").with_default(true).with_render_config(config(console));
    let exit = match reply(asked.prompt()) {
        Ok(Some(true)) => return Ok(None),
        Ok(Some(false) | None) => CommandExit::Done,
        Err(failure) if failure.exit == CommandExit::Interrupted => failure.exit,
        Err(failure) => return Err(failure),
    };
    write_stderr("nothing was written\n");
    Ok(Some(exit))
}

fn is_possible(console: &Console) -> bool {
    stdin().is_terminal() && stderr().is_terminal() && !console.no_ask && !console.json
}

fn config(console: &Console) -> RenderConfig<'static> {
    let config = if console.plain { RenderConfig::empty() } else { RenderConfig::default() };
    config.with_canceled_prompt_indicator(Styled::new("(back)"))
}

/// Shows prompts on the terminal.
struct Prompter {
    config: RenderConfig<'static>,
    /// The heading printed last.
    heading: Option<String>,
}

impl Prompter {
    /// Asks all questions until the user confirms, declines or interrupts. Returns whether to write the changes.
    fn ask_all(mut self, dialogue: &mut ConfigureDialogue, target: &ConfigTarget) -> Result<bool> {
        loop {
            let answered = match dialogue.ask() {
                DialoguePrompt::Choose { heading, words: prompt, options, chosen } => {
                    self.print_heading(heading);
                    self.choose(&prompt, options, chosen)?.map(|option| dialogue.choose(option))
                }
                DialoguePrompt::Number { heading, words: prompt, now } => {
                    self.print_heading(heading);
                    self.number(&prompt, now)?.map(|number| dialogue.number(number))
                }
                DialoguePrompt::Nothing => {
                    write_stderr("No changes.\n");
                    return Ok(false);
                }
                DialoguePrompt::Confirm { summary } => {
                    write_stderr(&format!("\n{}\n", summary.join("\n")));
                    // Print overridden keys before asking for confirmation.
                    let edited = edit::set(&target.name, &target.text, &dialogue.changes())?;
                    let proposal = Proposal::new(target, edited)?;
                    proposal.notes.iter().for_each(|note| write_stderr(&format!("{note}\n")));
                    self.heading = None;
                    if let Some(confirmed) = self.confirm(&target.name)? {
                        return Ok(confirmed);
                    }
                    None
                }
            };
            if answered.is_none() && !dialogue.back() {
                return Ok(false);
            }
        }
    }

    /// Prints the heading of a phase once.
    fn print_heading(&mut self, heading: Option<String>) {
        if let Some(heading) = heading.as_ref().filter(|_| self.heading != heading) {
            write_stderr(&format!("\n{heading}\n"));
        }
        self.heading = heading;
    }

    fn choose(&self, prompt: &str, options: Vec<String>, chosen: usize) -> Result<Option<usize>> {
        let select = Select::new(prompt, options)
            .with_starting_cursor(chosen)
            .without_filtering()
            .with_help_message(KEYS)
            .with_formatter(&|option| without_explanation(option.value).to_owned())
            .with_render_config(self.config);
        reply(select.raw_prompt().map(|option| option.index))
    }

    fn number(&self, prompt: &str, now: Option<u32>) -> Result<Option<u32>> {
        let now = now.map(|now| now.to_string()).unwrap_or_default();
        let check = |typed: &str| {
            Ok(retries(typed).map_or_else(|message| Validation::Invalid(message.into()), |_| Validation::Valid))
        };
        let text = Text::new(prompt)
            .with_initial_value(&now)
            .with_validator(check)
            .with_help_message("a whole number, Esc to go back")
            .with_render_config(self.config);
        // The validator has accepted the text, so it parses.
        reply(text.prompt().map(|typed| retries(&typed).unwrap_or_default()))
    }

    fn confirm(&self, file: &str) -> Result<Option<bool>> {
        let prompt = format!("Write this to {file}?");
        let asked = Confirm::new(&prompt)
            .with_default(true)
            .with_help_message("Esc to go back")
            .with_render_config(self.config);
        reply(asked.prompt())
    }
}

/// Removes the explanation in parentheses from a chosen option, so that it fits on its line.
fn without_explanation(option: &str) -> &str {
    option.split_once(" (").map_or(option, |(answer, _)| answer)
}

/// The user's reply to a prompt; `None` to go back.
fn reply<T>(answer: InquireResult<T>) -> Result<Option<T>> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(InquireError::OperationCanceled) => Ok(None),
        Err(InquireError::OperationInterrupted) => Err(CliError::interrupted()),
        Err(error) => Err(CliError::failed(format!("cannot ask on this terminal: {error}"))
            .hint("nothing was written: set a key with `signoff configure --set KEY=VALUE`")),
    }
}
