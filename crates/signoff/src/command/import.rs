//! `signoff import`: continues a task of `signoff iterate` from a state file of another program.

use std::path::{Path, PathBuf};

use signoff_core::ids::Commit;
use signoff_core::machine::{Head, Policy, replay};
use signoff_core::state_v4::{self, IterationState, StateError};
use signoff_core::task::{ImportedIteration, TaskSpec};
use signoff_engine::attempt::{self, ExistingDocuments};

use super::iterate;
use crate::{CliError, CommandExit, Console, Project, Result, host};

/// Maximum number of bytes read from stdin: one more than a state file may have.
const LIMIT: usize = 1_000_001;

/// Continue a task of `signoff iterate` from a state file, version 4
///
/// Creates a task on its own branch that begins at the current commit, so commit your work first. Phases before the
/// current one count as done; the current one starts again with its counters and issues. The task starts at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff import .claude/iterate-state.json\n  \
                        signoff export 29 --format state-v4 | (cd ../clone && signoff import -)")]
pub struct Args {
    /// The state file; `-` reads it from stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Add it to the queue for the next `signoff work` instead of starting it
    #[arg(long)]
    queue: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let state = read(&args.file, console)?;
    let project = Project::open()?;
    let commit = project.repository.resolve("HEAD")?;
    let iteration = iterate::Args::for_import(&state, args.queue);
    let spec = spec(&project, state.clone(), commit.clone(), console)?;
    let policy = Policy::new(iteration.workflow(&project, &spec)?);
    check(&policy, &state)?;
    for phase in state_v4::uncertain_phases(&state, &policy.workflow) {
        console.note(&format!(
            "warning: the file does not say whether phase {phase} was approved or passed without approval: it counts as approved"
        ));
    }
    warn(&project, &args.file, &commit, console)?;
    iteration.begin(project, spec, console)
}

fn read(file: &Path, console: &Console) -> Result<IterationState> {
    let (name, bytes) = match file == Path::new("-") {
        true => ("stdin".to_owned(), console.stdin(LIMIT)?),
        false => (file.display().to_string(), host::read(file)?),
    };
    state_v4::read(&bytes).map_err(|error| match error {
        StateError::Invalid { line, path, message } => CliError::usage(format!("{path}: {message}"))
            .at(format!("{name}:{line}"))
            .hint("fix the file: docs/schema/state-v4.schema.json describes its format"),
        StateError::Finished => CliError::usage(error.to_string())
            .at(name)
            .hint("there is nothing to continue; `signoff iterate \"…\"` starts a new one"),
    })
}

fn spec(project: &Project, state: IterationState, commit: Commit, console: &Console) -> Result<TaskSpec> {
    let spec = TaskSpec::from_text(&state.task);
    if spec.title.is_empty() {
        return Err(CliError::usage("task: is empty").hint("describe what to do"));
    }
    let ExistingDocuments { design, plan, items, note } =
        attempt::find_documents(&project.repository, &commit, &spec.title)?;
    if let Some(note) = note {
        console.note(&format!("warning: {note}: the whole task is one item"));
    }
    let imported = ImportedIteration { state, commit, design, plan, items };
    Ok(TaskSpec { auto_review: Some(true), imported: Some(Box::new(imported)), ..spec })
}

/// Fails if all remaining phases are switched off.
fn check(policy: &Policy, state: &IterationState) -> Result<()> {
    let head = Head { commit: Commit::new(""), tree: signoff_core::ids::Tree::new("") };
    if !replay([state_v4::resume(state, head, policy)], policy).is_done() {
        return Ok(());
    }
    let phase = state.current_phase;
    Err(CliError::usage(format!("nothing is left to do: every phase from {phase} on is switched off here"))
        .hint("`signoff config` shows what switches them off"))
}

/// Warns about uncommitted files and about work that is already on the default branch.
fn warn(project: &Project, file: &Path, commit: &Commit, console: &Console) -> Result<()> {
    let own = std::fs::canonicalize(file).ok();
    let checkout = project.repository.checkout();
    let uncommitted = project.repository.uncommitted()?;
    let is_own = |path: &PathBuf| own.is_some() && std::fs::canonicalize(checkout.join(path)).ok() == own;
    let other = uncommitted.iter().find(|path| !is_own(path));
    if let Some(file) = other {
        let file = file.display();
        console.note(&format!("warning: uncommitted files are not imported, such as {file}"));
    }
    if project.repository.base_of(commit)? == *commit {
        console.note("warning: the work so far is already on the default branch: reviews cover only new changes");
    }
    Ok(())
}
