//! `signoff import`: goes on with an iteration that another program began.

use std::path::{Path, PathBuf};

use signoff_core::ids::Commit;
use signoff_core::machine::{Head, Policy, replay};
use signoff_core::state_v4::{self, State, StateError};
use signoff_core::task::{TakenOver, TaskSpec};
use signoff_engine::attempt::{self, Found};

use super::iterate;
use crate::console::Console;
use crate::desk::Bench;
use crate::door;
use crate::failure::{Exit, Failure};

/// As much of a state file as is read: a little more than it may have.
const LIMIT: usize = 1_000_001;

/// Go on with an iteration from a state file, version 4
///
/// It becomes a task on a branch of its own that begins at the commit you are on, so commit first what was done so far.
/// Phases before the current one are taken as done; the current one begins again with the counters and issues it had. It is
/// worked at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff import .claude/iterate-state.json\n  \
                        signoff export 29 --format state-v4 | (cd ../clone && signoff import -)")]
pub struct Args {
    /// The file; `-` reads it from stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only queue it, for the next `signoff work`
    #[arg(long)]
    queue: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let state = read(&args.file, console)?;
    let bench = Bench::open()?;
    let commit = bench.repository.resolve("HEAD")?;
    let iteration = iterate::Args::taken_over(&state, args.queue);
    let spec = spec(&bench, state.clone(), commit.clone(), console)?;
    let policy = Policy::of(iteration.workflow(&bench, &spec)?);
    check(&policy, &state)?;
    for phase in state_v4::unsure(&state, &policy.workflow) {
        console.note(&format!(
            "warning: the file does not say whether phase {phase} was approved in the end or gone on from: \
             it is taken as approved"
        ));
    }
    warn(&bench, (&args.file, &commit), console)?;
    iteration.begin(bench, spec, console)
}

fn read(file: &Path, console: &Console) -> Result<State, Failure> {
    let (name, bytes) = match file == Path::new("-") {
        true => ("stdin".to_owned(), console.stdin(LIMIT)?),
        false => (file.display().to_string(), door::read(file)?),
    };
    state_v4::read(&bytes).map_err(|error| match error {
        StateError::Invalid { line, path, message } => Failure::usage(format!("{path}: {message}"))
            .at(format!("{name}:{line}"))
            .hint("mend the file: docs/schema/state-v4.schema.json says what it holds"),
        StateError::Finished => Failure::usage(error.to_string())
            .at(name)
            .hint("there is nothing to go on with; `signoff iterate \"…\"` begins anew"),
    })
}

fn spec(bench: &Bench, state: State, commit: Commit, console: &Console) -> Result<TaskSpec, Failure> {
    let spec = TaskSpec::of(&state.task);
    if spec.title.is_empty() {
        return Err(Failure::usage("task: says nothing").hint("write what is to be done"));
    }
    let Found { design, plan, items, note } = attempt::found(&bench.repository, &commit, &spec.title)?;
    if let Some(note) = note {
        console.note(&format!("warning: {note}: the whole task is one item"));
    }
    let taken_over = TakenOver { state, commit, design, plan, items };
    Ok(TaskSpec { auto_review: Some(true), taken_over: Some(Box::new(taken_over)), ..spec })
}

/// Where all phases that are left are switched off, nobody would look at it any more.
fn check(policy: &Policy, state: &State) -> Result<(), Failure> {
    let head = Head { commit: Commit::new(""), tree: signoff_core::ids::Tree::new("") };
    if !replay([state_v4::resume(state, head, policy)], policy).is_done() {
        return Ok(());
    }
    let phase = state.current_phase;
    Err(Failure::usage(format!("nothing is left to do: every phase from {phase} on is switched off here"))
        .hint("`signoff config` shows what switches them off"))
}

/// What the person might take for granted.
fn warn(bench: &Bench, (file, commit): (&Path, &Commit), console: &Console) -> Result<(), Failure> {
    let own = std::fs::canonicalize(file).ok();
    let checkout = bench.repository.checkout();
    let uncommitted = bench.repository.uncommitted()?;
    let is_own = |path: &PathBuf| own.is_some() && std::fs::canonicalize(checkout.join(path)).ok() == own;
    let left = uncommitted.iter().find(|path| !is_own(path));
    if let Some(left) = left {
        let left = left.display();
        console.note(&format!("warning: what is not committed is not taken along, like {left}"));
    }
    if bench.repository.base_of(commit)? == *commit {
        console.note(
            "warning: what was done so far is on the default branch already: reviews begin with what comes now",
        );
    }
    Ok(())
}
