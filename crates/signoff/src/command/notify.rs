//! `signoff notify`: sends a test notification to the configured channels.

use signoff_core::notify::NotificationKind;
use signoff_core::settings::Settings;
use signoff_engine::notify::NotifyChannel;
use signoff_term::json::{ChannelRow, NotifyReport};
use signoff_term::notification::sample;

use crate::console::Console;
use crate::error::{CliError, CommandExit};
use crate::run_loop::notifications::{channel_context, project, terminal_presence};
use crate::{host, project, settings};

/// Send a test notification to every channel
///
/// Uses the channels configured in `[notify]`, or only those named here, and prints the result of each. Exits with 1 if
/// a channel failed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff notify\n  signoff notify slack --event question")]
pub struct Args {
    /// Test only these channels
    #[arg(value_name = "CHANNEL")]
    channels: Vec<String>,
    /// The event to notify about
    #[arg(long, value_name = "EVENT", default_value = "done", value_parser = event_kind)]
    event: NotificationKind,
}

fn event_kind(name: &str) -> Result<NotificationKind, String> {
    let known = <NotificationKind as strum::VariantNames>::VARIANTS.join(", ");
    name.parse::<NotificationKind>().map_err(|_| format!("expected one of {known}"))
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit, CliError> {
    let root = project::main_checkout()?;
    let settings = settings::load(root.as_deref())?;
    let root = root.map_or_else(host::current_directory, Ok)?;
    // A test is sent even with `--quiet`.
    let context = channel_context(&root, terminal_presence());
    let message = sample(args.event, &project(&root), host::now().to_string());
    let mut rows = Vec::new();
    for name in names(&settings, &args.channels) {
        let channel = settings.channel(&name).ok_or_else(|| unknown(&settings, &name))?;
        let notify_channel = NotifyChannel::new(channel, context.clone());
        let events = NotificationKind::ALL.iter().copied().filter(|kind| settings.channels_for(*kind).contains(&name));
        let events = events.map(<&str>::from).collect();
        let problem = notify_channel.send(&message).err().map(|why| why.to_string());
        rows.push(ChannelRow { what: notify_channel.description(), name, events, problem });
    }
    let report = NotifyReport::new(rows);
    console.print(&report, || text(&report))?;
    Ok(if report.ok { CommandExit::Done } else { CommandExit::Failed })
}

/// The named channels, or all that are configured.
fn names(settings: &Settings, wanted: &[String]) -> Vec<String> {
    if wanted.is_empty() {
        settings.channels().into_iter().map(|channel| channel.name).collect()
    } else {
        wanted.to_vec()
    }
}

fn unknown(settings: &Settings, name: &str) -> CliError {
    let known = settings.channel_names().join(", ");
    CliError::usage(format!("there is no channel {name}"))
        .hint(format!("known channels: {known}; add `[notify.channels.{name}]` to signoff.toml"))
}

fn text(report: &NotifyReport) -> String {
    let line = |row: &ChannelRow| {
        let (mark, end) = match &row.problem {
            None => ("✓", "sent".to_owned()),
            Some(problem) => ("✗", problem.clone()),
        };
        let events = if row.events.is_empty() { "nothing".to_owned() } else { row.events.join(", ") };
        format!("{mark} {} ({}), on {events}: {end}\n", row.name, row.what)
    };
    let lines: String = report.channels.iter().map(line).collect();
    if lines.is_empty() {
        "no notification channel is configured: see `[notify]` of signoff.toml\n".to_owned()
    } else {
        lines
    }
}
