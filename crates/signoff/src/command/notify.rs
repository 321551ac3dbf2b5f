//! `signoff notify`: sends a test to the channels that are configured.

use signoff_core::config::Settings;
use signoff_core::notify::Occasion;
use signoff_engine::notify::Outlet;
use signoff_term::json::{ChannelRow, NotifyReport};
use signoff_term::notification::sample;

use crate::console::Console;
use crate::drive::notifying::{project, seated, surroundings};
use crate::failure::{Exit, Failure};
use crate::{desk, door, settings};

/// Send a test to whoever is told when nobody looks
///
/// Sends a test to every channel that `[notify]` names, or to those that are named here, and says what came of each. Ends
/// with 1 if one did not take it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff notify\n  signoff notify slack --event question")]
pub struct Args {
    /// Only these
    #[arg(value_name = "CHANNEL")]
    channels: Vec<String>,
    /// What they are told of
    #[arg(long, value_name = "EVENT", default_value = "done", value_parser = occasion)]
    event: Occasion,
}

fn occasion(word: &str) -> Result<Occasion, String> {
    let known = Occasion::ALL.map(Occasion::word).join(", ");
    Occasion::from_word(word).ok_or_else(|| format!("expected one of {known}"))
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let root = desk::main_checkout()?;
    let settings = settings::load(root.as_deref())?;
    let root = root.map_or_else(door::current_directory, Ok)?;
    // Who asks for a test wants one, however little is to be said besides.
    let around = surroundings(&root, seated());
    let message = sample(args.event, &project(&root), door::now().to_string());
    let mut rows = Vec::new();
    for name in names(&settings, &args.channels) {
        let channel = settings.channel(&name).ok_or_else(|| unknown(&settings, &name))?;
        let outlet = Outlet::new(channel, around.clone());
        let events = Occasion::ALL.into_iter().filter(|one| settings.told_of(*one).contains(&name));
        let events = events.map(Occasion::word).collect();
        let problem = outlet.send(&message).err().map(|why| why.to_string());
        rows.push(ChannelRow { what: outlet.what(), name, events, problem });
    }
    let report = NotifyReport::of(rows);
    if console.json {
        console.json(&report)?;
    } else {
        console.text(&text(&report))?;
    }
    Ok(if report.ok { Exit::Done } else { Exit::Failed })
}

/// Those that were named, or all that are told of something.
fn names(settings: &Settings, wanted: &[String]) -> Vec<String> {
    if wanted.is_empty() {
        settings.channels().into_iter().map(|channel| channel.name).collect()
    } else {
        wanted.to_vec()
    }
}

fn unknown(settings: &Settings, name: &str) -> Failure {
    let known = settings.channel_names().join(", ");
    Failure::usage(format!("there is no channel {name}"))
        .hint(format!("there are {known}; `[notify.channels.{name}]` makes it one"))
}

fn text(report: &NotifyReport) -> String {
    let line = |row: &ChannelRow| {
        let (mark, end) = match &row.problem {
            None => ("✓", "told".to_owned()),
            Some(problem) => ("✗", problem.clone()),
        };
        let events = if row.events.is_empty() { "nothing".to_owned() } else { row.events.join(", ") };
        format!("{mark} {} ({}), on {events}: {end}\n", row.name, row.what)
    };
    let lines: String = report.channels.iter().map(line).collect();
    if lines.is_empty() {
        "nobody is told anything: see `[notify]` of signoff.toml\n".to_owned()
    } else {
        lines
    }
}
