//! Parses the command line, runs one command and turns its result into an exit code.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{ArgAction, Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use signoff_engine::agent::acp;
use signoff_engine::{builtin, process};

use crate::command::{
    add, agents, answer, cancel, completions, config, configure, demo, diff, dispute, doctor, edit, export, import,
    improve, init, iterate, land, logs, mcp, merge, merge_reviews, notify, parse, replay, report, retry, review, run,
    serve, show, stats, status, tasks, watch, work, workflow,
};
use crate::console::{ProgressStream, Verbosity, write_stderr};
use crate::{CommandExit, Console, Result, host};

/// Drive coding agents through implement, review, fix and re-review until the work is signed off.
// The commands are listed by topic: start, work, inspect, decide, configure, convert files.
#[derive(Debug, Parser)]
#[command(
    name = "signoff",
    version,
    max_term_width = 100,
    after_help = "Example:\n  signoff init\n  signoff add \"Add user authentication\" --auto-review\n  \
                  signoff work\n  signoff show 1\n\n\
                  Without a command it shows what needs your attention and what is running.\n\
                  Exit codes: 0 everything requested is approved, 1 something failed, 2 wrong usage,\n\
                  3 a person is needed (0 with --lenient), 130 interrupted."
)]
struct Cli {
    #[command(flatten)]
    global: GlobalOptions,
    #[command(subcommand)]
    command: Option<CliCommand>,
}

/// Options that every command accepts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
struct GlobalOptions {
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
    /// Print every recorded event as a line of JSON
    #[arg(long, global = true, conflicts_with = "json")]
    json_events: bool,
    /// Print plain lines, without colors or a screen
    #[arg(long, global = true)]
    plain: bool,
    /// Stop instead of asking
    #[arg(long, global = true)]
    no_ask: bool,
    /// Exit with 0 instead of 3 if a task needs your decision
    #[arg(long, global = true)]
    lenient: bool,
    /// Do nothing; accepted for older scripts
    #[arg(long, global = true)]
    strict: bool,
    /// Print only the requested data
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Print more details
    #[arg(short, long, global = true, action = ArgAction::SetTrue)]
    verbose: bool,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
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
    run_internal_process(&arguments).unwrap_or_else(|| {
        let exit = run_command(arguments);
        host::write_applied_events();
        exit.into()
    })
}

/// Runs the internal process that the arguments ask for, if any.
fn run_internal_process(arguments: &[OsString]) -> Option<ExitCode> {
    let rest = arguments.get(2..).unwrap_or_default();
    let path = rest.first().map(Path::new);
    match arguments.get(1)?.to_str()? {
        // Supervises one agent; the argument is the attempt's directory.
        process::SUPERVISOR_SUBCOMMAND => path.map(process::run_supervisor),
        // Runs the rest of the command line and kills it when signoff ends.
        process::REAPER_SUBCOMMAND => Some(process::run_reaper(rest)),
        // Runs the project's checks.
        "__checks" => path.map(builtin::checks::run),
        // Acts as the demo's agent.
        "__demo" => Some(builtin::demo::run()),
        // Runs the rest of the command line as an agent and speaks the Agent Client Protocol with it.
        acp::ACP_SUBCOMMAND => Some(builtin::acp::run(rest)),
        _ => None,
    }
}

fn run_command(arguments: Vec<OsString>) -> CommandExit {
    // `--plain` is read before clap parses the arguments, because it also applies to clap's own errors.
    let plain = arguments.iter().any(|word| word == "--plain");
    let color = if plain { ColorChoice::Never } else { ColorChoice::Auto };
    let matches = Cli::command().color(color).try_get_matches_from(arguments);
    match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => {
            let lenient = cli.global.lenient;
            let exit = dispatch(cli).unwrap_or_else(|failure| {
                write_stderr(&failure.to_string());
                failure.exit
            });
            // With `--lenient` a script does not stop.
            if lenient && exit == CommandExit::NeedsUser { CommandExit::Done } else { exit }
        }
        // Help and version are "errors" that exit with 0; everything else is wrong usage. A failed write is ignored.
        Err(error) => {
            error.print().ok();
            if error.use_stderr() { CommandExit::Usage } else { CommandExit::Done }
        }
    }
}

fn dispatch(cli: Cli) -> Result<CommandExit> {
    let console = cli.global.console();
    match cli.command {
        Some(CliCommand::Init(args)) => init::run(&args, &console),
        Some(CliCommand::Add(args)) => add::run(&args, &console),
        Some(CliCommand::Work(args)) => work::run(&args, &console),
        Some(CliCommand::Run(args)) => run::run(&args, &console),
        Some(CliCommand::Iterate(args)) => iterate::run(&args, &console),
        Some(CliCommand::Watch(args)) => watch::run(&args, &console),
        Some(CliCommand::Replay(args)) => replay::run(&args, &console),
        Some(CliCommand::Status(args)) => status::run(&args, &console),
        Some(CliCommand::Show(args)) => show::run(&args, &console),
        Some(CliCommand::Logs(args)) => logs::run(&args, &console),
        Some(CliCommand::Diff(args)) => diff::run(&args, &console),
        Some(CliCommand::Report(args)) => report::run(&args, &console),
        Some(CliCommand::Stats(args)) => stats::run(&args, &console),
        Some(CliCommand::Review(args)) => review::run(&args, &console),
        Some(CliCommand::Improve(args)) => improve::run(&args, &console),
        Some(CliCommand::Retry(args)) => retry::run(&args, &console),
        Some(CliCommand::Edit(args)) => edit::run(&args, &console),
        Some(CliCommand::Answer(args)) => answer::run(&args, &console),
        Some(CliCommand::Cancel(args)) => cancel::run(&args, &console),
        Some(CliCommand::Dispute(args)) => dispute::run(&args, &console),
        Some(CliCommand::Merge(args)) => merge::run(&args, &console),
        Some(CliCommand::Land(args)) => land::run(&args, &console),
        Some(CliCommand::Serve(args)) => serve::run(&args, &console),
        Some(CliCommand::Mcp(args)) => mcp::run(&args),
        Some(CliCommand::Config(args)) => config::run(&args, &console),
        Some(CliCommand::Configure(args)) => configure::run(&args, &console),
        Some(CliCommand::Agents(args)) => agents::run(&args, &console),
        Some(CliCommand::Notify(args)) => notify::run(&args, &console),
        Some(CliCommand::Doctor(args)) => doctor::run(&args, &console),
        Some(CliCommand::Demo(args)) => demo::run(&args, &console),
        Some(CliCommand::Export(args)) => export::run(&args, &console),
        Some(CliCommand::Import(args)) => import::run(&args, &console),
        Some(CliCommand::Parse(args)) => parse::run(&args, &console),
        Some(CliCommand::MergeReviews(args)) => merge_reviews::run(&args, &console),
        Some(CliCommand::Workflow(args)) => workflow::run(&args, &console),
        Some(CliCommand::Tasks(args)) => tasks::run(&args, &console),
        Some(CliCommand::Completions(args)) => completions::run(&args, Cli::command(), &console),
        None => status::print_inbox(&console),
    }
}

impl GlobalOptions {
    fn console(&self) -> Console {
        let verbosity = match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        };
        let Self { json, json_events, plain, no_ask, .. } = *self;
        Console { verbosity, json, json_events, plain, no_ask, progress: ProgressStream::Stdout }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
