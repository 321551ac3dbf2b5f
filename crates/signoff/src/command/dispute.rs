//! `signoff dispute`: a person says that a finding is wrong, once and for all.

use signoff_core::command::Command;
use signoff_store::{FindingPlace, Store};

use super::decide::decide;
use crate::console::Console;
use crate::desk::Desk;
use crate::door;
use crate::failure::{Exit, Failure};

/// Say that a finding is wrong
///
/// No reviewer opens it again, and it keeps no gate shut.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  signoff dispute f-3f9a1c --reason \"the input is validated by the caller\""
)]
pub struct Args {
    /// The finding, or the first characters of its id (`signoff show ID` lists them)
    finding: String,
    /// Why it is wrong
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let desk = Desk::find()?.ok_or_else(|| unknown(&args.finding))?;
    let FindingPlace { run, loop_id, task, finding } = find(&desk, &args.finding)?;
    let wish = Command::Dispute { finding: finding.clone(), by: door::person(), reason: args.reason.clone() };
    decide(&desk, run, &loop_id, wish)?;
    if console.json {
        let task = task.map(|task| task.0);
        console.json(&serde_json::json!({"version": 1, "finding": finding.as_str(), "task_id": task, "state": "refuted"}))?;
    } else {
        console.text(&format!("Finding {finding} is refuted by {}\n", door::person()))?;
    }
    Ok(Exit::Done)
}

fn unknown(finding: &str) -> Failure {
    Failure::usage(format!("there is no finding {finding}"))
        .hint("`signoff show ID` lists the findings of a task")
}

fn find(desk: &Desk, prefix: &str) -> Result<FindingPlace, Failure> {
    let mut found = desk.store.findings(prefix)?;
    match (found.pop(), found.len()) {
        (Some(one), 0) => Ok(one),
        (Some(_), more) => Err(Failure::usage(format!("{prefix} stands for {} findings", more + 1))
            .hint("give more characters of the id")),
        (None, _) => Err(unknown(prefix)),
    }
}
