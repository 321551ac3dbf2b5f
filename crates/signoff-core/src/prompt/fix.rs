//! The prompt of a fix: these findings, and nothing else.

use crate::ledger::Entry;
use crate::prompt::brainstorm::refused;
use crate::prompt::material::{fenced, one_line, plain};
use crate::prompt::pieces::{Pieces, paths, project_instructions};
use crate::prompt::{DiffContext, TaskBrief, finding_list, text};
use crate::review::Finding;

/// What a fixer is told. It is fresh: it knows nothing but this.
#[derive(Debug, Clone, Copy, Default)]
pub struct FixContext<'a> {
    /// A person's own words in place of the built-in opening.
    pub opening: Option<&'a str>,
    pub task: TaskBrief<'a>,
    pub worktree: &'a str,
    /// The files at its root in which the project says how it is worked on.
    pub instructions: &'a [&'a str],
    pub findings: &'a [&'a Finding],
    /// What several reviewers say together, as people are shown it.
    pub results: Option<&'a str>,
    /// Findings of different reviewers that ask for opposite things.
    pub conflicts: &'a [(&'a Finding, &'a Finding)],
    /// The reviewer's follow-up prompt, where the contract has one.
    pub follow_up: Option<&'a str>,
    /// The raw answer of a reviewer that could not be understood, where the policy hands it on.
    pub unread_review: Option<&'a str>,
    /// The whole last review, where the findings are not known one by one.
    pub last_review: Option<&'a str>,
    /// What the review asks for beside its findings, where each of several fixers has only a part of those.
    pub rest: Option<&'a str>,
    /// What a person said to this fix.
    pub guidance: Option<&'a str>,
    /// Why the last attempt's answer was refused.
    pub refused: Option<&'a str>,
    pub earlier: &'a [EarlierCycle],
    /// Findings decided before: fixed ones must stay fixed.
    pub settled: &'a [&'a Entry],
    /// The files of this fix, where others fix other findings at the same time.
    pub only_files: &'a [&'a str],
    pub diff: Option<DiffContext<'a>>,
    /// Whether the tasks come from a tracker whose end the agent may announce.
    pub may_stop_picking: bool,
}

/// A past cycle in figures: reviews are summarised for the fixer, not pasted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlierCycle {
    pub cycle: u32,
    pub reported: usize,
    pub fixed: usize,
    pub refuted: usize,
    /// Fixed in an earlier cycle and open again in this one.
    pub regressed: usize,
}

/// Writes the prompt of a fix attempt.
pub fn fix(context: &FixContext<'_>) -> String {
    let mut pieces = Pieces::opening(context.opening, text::FIX);
    pieces.add(context.task.assignment());
    pieces.add_some(context.task.plan_to_follow());
    pieces.add(text::WorkingDirectory { worktree: &one_line(context.worktree) }.fill());
    pieces.add(text::WORKPLACE);
    pieces.add_some(project_instructions(context.instructions));
    pieces.add_some(context.diff.map(|diff| text::DiffSoFar { diff: &diff.render() }.fill()));
    history(&mut pieces, context);
    wanted(&mut pieces, context);
    pieces.add_some(refused(context.refused));
    pieces.add_some(context.may_stop_picking.then(|| text::STOP_MARKER.to_owned()));
    pieces.prompt()
}

fn history(pieces: &mut Pieces, context: &FixContext<'_>) {
    if !context.earlier.is_empty() {
        let cycles: Vec<String> = context.earlier.iter().map(EarlierCycle::line).collect();
        pieces.add(text::EarlierCycles { cycles: &cycles.join("\n") }.fill());
    }
    if !context.settled.is_empty() {
        pieces.add(text::SettledForFixer { findings: &finding_list::settled(context.settled) }.fill());
    }
}

fn wanted(pieces: &mut Pieces, context: &FixContext<'_>) {
    let results = |results| text::ReviewResults { results: &fenced(results, "") }.fill();
    pieces.add_some(context.results.map(results));
    if !context.findings.is_empty() {
        let count = context.findings.len().to_string();
        let findings = finding_list::numbered(context.findings);
        pieces.add(text::FindingsToFix { count: &count, findings: &findings }.fill());
    }
    if !context.conflicts.is_empty() {
        let conflicts = finding_list::pairs(context.conflicts);
        pieces.add(text::ConflictingFindings { conflicts: &conflicts }.fill());
    }
    let follow_up = |follow_up| text::FollowUpToFix { follow_up: &fenced(follow_up, "") }.fill();
    pieces.add_some(context.follow_up.map(follow_up));
    let unread = |review| text::UnreadReview { review: &fenced(review, "") }.fill();
    pieces.add_some(context.unread_review.map(unread));
    let last = |review| text::LastReview { review: &fenced(review, "") }.fill();
    pieces.add_some(context.last_review.map(last));
    pieces.add_some(context.guidance.map(|guidance| text::Guidance { guidance: &plain(guidance) }.fill()));
    if !context.only_files.is_empty() {
        let files = fenced(&paths(context.only_files), "");
        pieces.add(text::ParallelFixes { files: &files }.fill());
    }
    pieces.add_some(context.rest.map(|review| text::RestOfReview { review: &fenced(review, "") }.fill()));
}

impl EarlierCycle {
    fn line(&self) -> String {
        let Self { cycle, reported, fixed, refuted, regressed } = self;
        let findings = if *reported == 1 { "finding" } else { "findings" };
        let mut line = format!("- Cycle {cycle}: {reported} {findings}, {fixed} fixed, {refuted} refuted");
        if *regressed > 0 {
            line += &format!(", {regressed} fixed before and open again");
        }
        line
    }
}
