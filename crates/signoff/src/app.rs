//! From words on the command line to one command, and from its end to an exit code.

use std::ffi::OsString;

use clap::{ArgAction, Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::command::{config, init, merge_reviews, parse, tasks, workflow};
use crate::console::{Console, Talk, say};
use crate::failure::{Exit, Failure};

/// Shown when nothing was asked.
const WHAT_NOW: &str = include_str!("app/what_now.txt");

/// Drives coding agents through implement, review, fix and re-review until the work is signed off.
#[derive(Debug, Parser)]
#[command(name = "signoff", version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
}

/// What every command understands.
#[derive(Debug, Args)]
struct Global {
    /// Report as JSON
    #[arg(long, global = true)]
    json: bool,
    /// No colours
    #[arg(long, global = true)]
    plain: bool,
    /// Say nothing but the data
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Say more
    #[arg(short, long, global = true, action = ArgAction::SetTrue)]
    verbose: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Args),
    Config(config::Args),
    Parse(parse::Args),
    MergeReviews(merge_reviews::Args),
    Workflow(workflow::Args),
    Tasks(tasks::Args),
}

/// Runs the program.
pub fn run(arguments: Vec<OsString>) -> Exit {
    let plain = arguments.iter().any(|word| word == "--plain");
    let matches = Cli::command().color(color(plain)).try_get_matches_from(arguments);
    match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => finish(dispatch(cli)),
        Err(error) => explain(&error),
    }
}

fn dispatch(cli: Cli) -> Result<Exit, Failure> {
    let console = cli.global.console();
    match cli.command {
        Some(Command::Init(args)) => init::run(&args, &console),
        Some(Command::Config(args)) => config::run(&args, &console),
        Some(Command::Parse(args)) => parse::run(&args, &console),
        Some(Command::MergeReviews(args)) => merge_reviews::run(&args, &console),
        Some(Command::Workflow(args)) => workflow::run(&args, &console),
        Some(Command::Tasks(args)) => tasks::run(&args, &console),
        None => console.text(WHAT_NOW).map(|()| Exit::Done),
    }
}

impl Global {
    fn console(&self) -> Console {
        let talk = match (self.quiet, self.verbose) {
            (true, _) => Talk::Quiet,
            (false, true) => Talk::Verbose,
            (false, false) => Talk::Normal,
        };
        Console { talk, json: self.json }
    }
}

/// `--plain` is looked for beforehand because it must also hold for errors about the other words.
fn color(plain: bool) -> ColorChoice {
    if plain { ColorChoice::Never } else { ColorChoice::Auto }
}

fn finish(end: Result<Exit, Failure>) -> Exit {
    end.unwrap_or_else(|failure| {
        say(&failure.to_string());
        failure.exit
    })
}

/// Help and version are answers; everything else clap has to say is wrong usage. A reader that went away
/// changes neither.
fn explain(error: &clap::Error) -> Exit {
    error.print().ok();
    if error.use_stderr() { Exit::Usage } else { Exit::Done }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
