//! From words on the command line to one command, and from its end to an exit code.

mod part;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ArgAction, Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::command::{
    add, agents, answer, cancel, completions, config, configure, demo, diff, dispute, doctor, edit, export,
    import, improve, init, iterate, land, logs, mcp, merge, merge_reviews, notify, parse, replay, report,
    retry, review, run, serve, show, stats, status, tasks, watch, work, workflow,
};
use crate::console::{Console, Progress, Talk, say};
use crate::failure::{Exit, Failure};

/// Drives coding agents through implement, review, fix and re-review until the work is signed off.
// The commands are listed in the order in which people meet them: begin, work, look, decide, settings, files.
#[derive(Debug, Parser)]
#[command(
    name = "signoff",
    version,
    max_term_width = 100,
    after_help = "Example:\n  signoff init\n  signoff add \"Add user authentication\" --auto-review\n  \
                  signoff work\n  signoff show 1\n\n\
                  Without a command it says what needs attention and what runs.\n\
                  Exit codes: 0 everything requested is approved, 1 something failed, 2 wrong usage,\n\
                  3 a person is needed (0 with --lenient), 130 interrupted."
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
}

/// What every command understands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
struct Global {
    /// Report as JSON
    #[arg(long, global = true)]
    json: bool,
    /// Print every recorded fact as a line of JSON
    #[arg(long, global = true, conflicts_with = "json")]
    json_events: bool,
    /// No colours, nothing drawn over
    #[arg(long, global = true)]
    plain: bool,
    /// Stop instead of asking
    #[arg(long, global = true)]
    no_ask: bool,
    /// Exit with 0 instead of 3 if a person is needed
    #[arg(long, global = true)]
    lenient: bool,
    /// Accepted for older scripts; changes nothing
    #[arg(long, global = true)]
    strict: bool,
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
    Demo(demo::Args),
    Add(add::Args),
    Work(work::Args),
    Run(run::Args),
    Iterate(iterate::Args),
    Review(review::Args),
    Improve(improve::Args),
    Watch(watch::Args),
    Status(status::Args),
    Show(show::Args),
    Logs(logs::Args),
    Diff(diff::Args),
    Report(report::Args),
    Stats(stats::Args),
    Replay(replay::Args),
    Answer(answer::Args),
    Retry(retry::Args),
    Edit(edit::Args),
    Dispute(dispute::Args),
    Cancel(cancel::Args),
    Merge(merge::Args),
    Land(land::Args),
    Serve(serve::Args),
    Mcp(mcp::Args),
    Config(config::Args),
    Configure(configure::Args),
    Agents(agents::Args),
    Notify(notify::Args),
    Doctor(doctor::Args),
    Export(export::Args),
    Import(import::Args),
    Parse(parse::Args),
    MergeReviews(merge_reviews::Args),
    Workflow(workflow::Args),
    Tasks(tasks::Args),
    Completions(completions::Args),
}

/// Runs the program.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    match part::of(&arguments) {
        Some(part) => part.run(),
        None => command(arguments).into(),
    }
}

fn command(arguments: Vec<OsString>) -> Exit {
    let plain = arguments.iter().any(|word| word == "--plain");
    let matches = Cli::command().color(color(plain)).try_get_matches_from(arguments);
    match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => {
            let lenient = cli.global.lenient;
            forgiven(finish(dispatch(cli)), lenient)
        }
        Err(error) => explain(&error),
    }
}

fn dispatch(cli: Cli) -> Result<Exit, Failure> {
    let console = cli.global.console();
    match cli.command {
        Some(Command::Init(args)) => init::run(&args, &console),
        Some(Command::Add(args)) => add::run(&args, &console),
        Some(Command::Work(args)) => work::run(&args, &console),
        Some(Command::Run(args)) => run::run(&args, &console),
        Some(Command::Iterate(args)) => iterate::run(&args, &console),
        Some(Command::Watch(args)) => watch::run(&args, &console),
        Some(Command::Replay(args)) => replay::run(&args, &console),
        Some(Command::Status(args)) => status::run(&args, &console),
        Some(Command::Show(args)) => show::run(&args, &console),
        Some(Command::Logs(args)) => logs::run(&args, &console),
        Some(Command::Diff(args)) => diff::run(&args, &console),
        Some(Command::Report(args)) => report::run(&args, &console),
        Some(Command::Stats(args)) => stats::run(&args, &console),
        Some(Command::Review(args)) => review::run(&args, &console),
        Some(Command::Improve(args)) => improve::run(&args, &console),
        Some(Command::Retry(args)) => retry::run(&args, &console),
        Some(Command::Edit(args)) => edit::run(&args, &console),
        Some(Command::Answer(args)) => answer::run(&args, &console),
        Some(Command::Cancel(args)) => cancel::run(&args, &console),
        Some(Command::Dispute(args)) => dispute::run(&args, &console),
        Some(Command::Merge(args)) => merge::run(&args, &console),
        Some(Command::Land(args)) => land::run(&args, &console),
        Some(Command::Serve(args)) => serve::run(&args, &console),
        Some(Command::Mcp(args)) => mcp::run(&args),
        Some(Command::Config(args)) => config::run(&args, &console),
        Some(Command::Configure(args)) => configure::run(&args, &console),
        Some(Command::Agents(args)) => agents::run(&args, &console),
        Some(Command::Notify(args)) => notify::run(&args, &console),
        Some(Command::Doctor(args)) => doctor::run(&args, &console),
        Some(Command::Demo(args)) => demo::run(&args, &console),
        Some(Command::Export(args)) => export::run(&args, &console),
        Some(Command::Import(args)) => import::run(&args, &console),
        Some(Command::Parse(args)) => parse::run(&args, &console),
        Some(Command::MergeReviews(args)) => merge_reviews::run(&args, &console),
        Some(Command::Workflow(args)) => workflow::run(&args, &console),
        Some(Command::Tasks(args)) => tasks::run(&args, &console),
        Some(Command::Completions(args)) => completions::run(&args, Cli::command(), &console),
        None => status::attention(&console),
    }
}

impl Global {
    fn console(&self) -> Console {
        let talk = match (self.quiet, self.verbose) {
            (true, _) => Talk::Quiet,
            (false, true) => Talk::Verbose,
            (false, false) => Talk::Normal,
        };
        let Self { json, json_events, plain, no_ask, .. } = *self;
        Console { talk, json, json_events, plain, no_ask, progress: Progress::Stdout }
    }
}

/// `--plain` is looked for beforehand because it must also hold for errors about the other words.
fn color(plain: bool) -> ColorChoice {
    if plain { ColorChoice::Never } else { ColorChoice::Auto }
}

/// `--lenient`: that a person is needed is no reason for a script to stop.
fn forgiven(exit: Exit, lenient: bool) -> Exit {
    match exit {
        Exit::Attention if lenient => Exit::Done,
        Exit::Done | Exit::Failed | Exit::Usage | Exit::Attention | Exit::Interrupted => exit,
    }
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
