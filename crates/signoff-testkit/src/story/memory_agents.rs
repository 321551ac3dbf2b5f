//! Agents in a repository in memory, and the landing of their work.

use signoff_core::ids::{Commit, ReviewerName};
use signoff_core::machine::{CONFLICT, Event, Head, JobKind, LandingReport};
use signoff_core::prompt::commit_message;
use signoff_core::review::{Finding, Severity};
use signoff_core::view::RunState;
use signoff_core::wire::LoopFact;
use signoff_engine::attempt::AttemptEnd;
use signoff_engine::attempt_spec::AttemptSpec;
use signoff_engine::executor::{AttemptResult, AttemptSink, RunLandingSink};
use signoff_engine::workspace::parallel_fixes;

use super::agent_workspaces::{AgentFileChange, AgentWorkspaces, worktree};
use super::memory_repository::{MAIN, MemoryMerge, MemoryRepository, RejectedMerge};
use super::memory_workspaces::MemoryWorkspaces;

impl AgentWorkspaces for MemoryWorkspaces {
    fn ensure_worktree(&self, spec: &AttemptSpec) {
        let mut repository = self.repository();
        let parent = parent(&repository, spec);
        repository.ensure_worktree(&worktree(spec), &parent);
    }

    fn change(&self, spec: &AttemptSpec, path: &str, change: AgentFileChange) {
        let mut repository = self.repository();
        let files = repository.worktree(&worktree(spec));
        match change {
            AgentFileChange::Append(text) => files.entry(path.to_owned()).or_default().push_str(&text),
            AgentFileChange::Write(text) => drop(files.insert(path.to_owned(), text)),
            AgentFileChange::Delete => drop(files.remove(path)),
        }
    }

    fn commit(&self, spec: &AttemptSpec, subject: &str) -> Head {
        self.ensure_worktree(spec);
        let mut repository = self.repository();
        let parent = parent(&repository, spec);
        let commit = repository.commit_worktree(&worktree(spec), &parent, subject);
        if !parallel_fixes::is_parallel(spec) {
            repository.move_branch(&branch(spec), &commit, None);
        }
        repository.head(&commit)
    }

    fn run_own_job(&self, spec: &AttemptSpec, _sink: &AttemptSink) -> Option<AttemptResult> {
        if let JobKind::Combine { parts } = &spec.job.kind {
            return Some(combine(self, spec, parts));
        }
        Some(land(self, spec))
    }

    fn land_run(&self, run_state: RunState, sink: RunLandingSink) {
        let mut repository = self.repository();
        let main = repository.tip(MAIN).expect("the default branch");
        let tip = repository.tip(&run_state.run.branch()).expect("the branch of the run");
        if let MemoryMerge::Clean(head) = repository.merge(&main, &tip, &format!("Merge run {}", run_state.run)) {
            repository.move_branch(MAIN, &head.commit, None);
        }
        sink.ended(Ok(()));
    }
}

fn event(event: Event) -> AttemptEnd {
    AttemptEnd::Event(Box::new(event))
}

/// The commit that a writer continues from.
fn parent(repository: &MemoryRepository, spec: &AttemptSpec) -> Commit {
    let tip = if parallel_fixes::is_parallel(spec) { None } else { repository.tip(&branch(spec)) };
    tip.unwrap_or_else(|| spec.machine.head.commit.clone())
}

/// The branch of a loop; of the run for its final review.
fn branch(spec: &AttemptSpec) -> String {
    if spec.branch.is_empty() { spec.run.branch() } else { spec.branch.clone() }
}

/// Lands a loop's work on its target, or rejects it with the conflicts.
fn land(workspaces: &MemoryWorkspaces, spec: &AttemptSpec) -> AttemptResult {
    let mut repository = workspaces.repository();
    let tip = repository.head_of(&spec.branch).expect("the branch of the loop");
    if tip != spec.machine.head {
        // A process was killed after it moved the branch.
        return match repository.rejected(&spec.branch) {
            Some(rejected) => rejected_result(&repository, spec, rejected),
            None => AttemptResult::new(event(Event::HeadMoved { head: tip })),
        };
    }
    let target = spec.target.clone().unwrap_or_else(|| MAIN.to_owned());
    let onto = repository.ensure_branch(&target, &spec.workspace.base);
    let named = spec.task_id.map_or_else(|| spec.loop_id.to_string(), |task| format!("task {task}"));
    match repository.merge(&onto, &tip.commit, &format!("Merge {named}: {}", spec.task_spec.title)) {
        MemoryMerge::Contained => landed_result(spec, onto),
        MemoryMerge::Clean(head) => {
            repository.move_branch(&target, &head.commit, None);
            repository.remove_worktree(&spec.workspace.worktree);
            landed_result(spec, head.commit)
        }
        MemoryMerge::Conflicting { head, files } => {
            let rejected = RejectedMerge { onto, head, conflicts: files };
            repository.reject(&spec.branch, &spec.workspace.worktree, rejected.clone());
            rejected_result(&repository, spec, rejected)
        }
    }
}

fn landed_result(spec: &AttemptSpec, commit: Commit) -> AttemptResult {
    let (attempt, report) = (spec.job.attempt, LandingReport::Landed { commit });
    AttemptResult::new(event(Event::LandingEnded { attempt, report }))
}

fn rejected_result(repository: &MemoryRepository, spec: &AttemptSpec, rejected: RejectedMerge) -> AttemptResult {
    let RejectedMerge { onto, head, conflicts } = rejected;
    let findings = conflicts.iter().map(|file| conflict(file)).collect();
    let base = Event::BaseSet { tree: repository.tree(&onto) };
    let workspace_created = LoopFact::WorkspaceCreated { base: onto, worktree: spec.workspace.worktree.clone() };
    let facts = vec![workspace_created, LoopFact::Transitioned(base)];
    let (attempt, report) = (spec.job.attempt, LandingReport::SentBack { head, findings });
    AttemptResult { facts, ..AttemptResult::new(event(Event::LandingEnded { attempt, report })) }
}

fn conflict(file: &str) -> Finding {
    let landing = ReviewerName::new("landing");
    let description = format!("both sides changed {file}");
    Finding { file: Some(file.to_owned()), ..Finding::new(&landing, CONFLICT, Severity::Critical, description) }
}

/// Combines parallel fixes, as far as they do not change the same files.
fn combine(workspaces: &MemoryWorkspaces, spec: &AttemptSpec, parts: &[(usize, Commit)]) -> AttemptResult {
    let mut repository = workspaces.repository();
    let (mut head, mut kept) = (repository.head_of(&spec.branch).expect("the branch of the loop"), Vec::new());
    for (number, commit) in parts {
        match repository.merge(&head.commit, commit, &commit_message::feedback(spec.cycle())) {
            MemoryMerge::Contained => kept.push(*number),
            MemoryMerge::Clean(merged) => {
                kept.push(*number);
                head = merged;
            }
            MemoryMerge::Conflicting { .. } => {}
        }
    }
    repository.move_branch(&spec.branch, &head.commit, Some(&spec.workspace.worktree));
    let attempt = spec.job.attempt;
    let combined = if kept.len() == parts.len() {
        Event::FixesCombined { attempt, head }
    } else {
        Event::FixesOverlapped { attempt, kept, head }
    };
    AttemptResult::new(event(combined))
}
