//! The prompt of a review: one for every subject, depth, kind of reviewer and contract.

use crate::contract::{self, Ask, Contract};
use crate::ledger::Entry;
use crate::prompt::material::{fenced, one_line};
use crate::prompt::other_loops::{self, OtherLoop};
use crate::prompt::pieces::Pieces;
use crate::prompt::{Depth, DiffContext, Item, TaskBrief, finding_list, text};
use crate::review::{Finding, Inconclusive};

mod guidance;

/// What a reviewer is told.
#[derive(Debug, Clone, Copy)]
pub struct ReviewContext<'a> {
    /// A person's own words in place of the built-in opening, focus and quality checks. The depth's
    /// sections stay: they are the policy's.
    pub opening: Option<&'a str>,
    pub contract: Contract,
    pub ask: &'a Ask,
    pub depth: Depth,
    /// Whether it has a workspace to run tests in. The prompt asks a reviewer that shares the worktree to run none.
    pub can_run: bool,
    pub subject: Subject<'a>,
    /// What this reviewer found at another gate and is open still, where this is the first review of its gate: who
    /// approves says of these too that they are settled.
    pub noted: &'a [&'a Finding],
    /// From the second review on.
    pub rereview: Option<Rereview<'a>>,
    /// This reviewer's last answer, where it could not be read.
    pub unreadable: Option<UnreadableAnswer<'a>>,
}

/// An answer that could not be read, and why.
#[derive(Debug, Clone, Copy)]
pub struct UnreadableAnswer<'a> {
    pub text: &'a str,
    pub why: &'a Inconclusive,
}

/// What is judged.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// A task whose implementer is done.
    Task(Work<'a>),
    /// A snapshot of a task whose implementer is not done.
    Checkpoint(Work<'a>),
    /// Everything a run changed; the specification stands in the place of the task.
    Run(Work<'a>),
    /// Something written before anything is built.
    Document(Document<'a>),
}

/// Work in a worktree.
#[derive(Debug, Clone, Copy, Default)]
pub struct Work<'a> {
    pub task: TaskBrief<'a>,
    pub worktree: &'a str,
    pub other_loops: &'a [OtherLoop<'a>],
    /// How many agents work at once in this repository.
    pub agents_at_once: usize,
    /// In a scoped re-review the diff of the fix, else the whole one.
    pub diff: DiffContext<'a>,
    /// The implementer's final message. Given only where the gate's `author_output` says so: what an
    /// author claims makes reviewers see less.
    pub author_output: Option<&'a str>,
    /// The part of the plan that is judged, where each has a review of its own.
    pub item: Option<Item<'a>>,
}

/// A text that was made from another one.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    pub kind: DocumentKind<'a>,
    /// None where another program wrote it and nobody knows its place.
    pub text: Option<&'a str>,
    pub worktree: &'a str,
    /// The design it goes back to.
    pub design: Option<&'a str>,
    /// What its author changed in the worktree, the document included.
    pub diff: Option<DiffContext<'a>>,
}

/// What a document is, and what it must do justice to.
#[derive(Debug, Clone, Copy)]
pub enum DocumentKind<'a> {
    TaskList { specification: &'a str },
    Groups { tasks: &'a str },
    Plan { task: TaskBrief<'a> },
    Design { task: TaskBrief<'a> },
}

/// What a reviewer has to know of the reviews before: the findings, not their prose.
#[derive(Debug, Clone, Copy)]
pub struct Rereview<'a> {
    /// Fixes made so far: this is review `attempt + 1`. 0 where the reviews before were not of this loop.
    pub attempt: u32,
    pub extent: Extent,
    pub open: &'a [&'a Finding],
    /// The entries of the open findings: what the fixer said about them is shown as claims.
    pub claimed: &'a [&'a Entry],
    pub settled: &'a [&'a Entry],
    /// What the last fix was asked to do, where the preset hands it on.
    pub previous_follow_up: Option<&'a str>,
}

impl ReviewContext<'_> {
    /// Whether only the open findings and the fix are judged.
    fn is_scoped(&self) -> bool {
        self.rereview.is_some_and(|rereview| rereview.extent == Extent::Scoped)
    }
}

/// How much of the work a re-review goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Full,
    /// The open findings and the diff of the fix.
    Scoped,
}

/// Writes the prompt of a review.
pub fn review(context: &ReviewContext<'_>) -> String {
    let mut pieces = guidance::opening(context);
    pieces.add(text::REVIEW_RULES);
    subject(&mut pieces, context);
    open(&mut pieces, context.noted);
    if let Some(rereview) = &context.rereview {
        again(&mut pieces, rereview);
    }
    guidance::sections(&mut pieces, context);
    report(&mut pieces, context);
    pieces.prompt()
}

fn subject(pieces: &mut Pieces, context: &ReviewContext<'_>) {
    match &context.subject {
        Subject::Task(work) | Subject::Checkpoint(work) => {
            task(pieces, work);
            pieces.add(text::OtherLoops { summary: &other_loops::summary(work.other_loops) }.fill());
            pieces.add(text::WorkingDirectory { worktree: &one_line(work.worktree) }.fill());
            changes(pieces, work, context.rereview.as_ref());
        }
        Subject::Run(work) => {
            task(pieces, work);
            pieces.add(text::Repository { path: &one_line(work.worktree) }.fill());
            changes(pieces, work, context.rereview.as_ref());
        }
        Subject::Document(written) => document(pieces, written),
    }
}

fn task(pieces: &mut Pieces, work: &Work<'_>) {
    pieces.add(work.task.under_review());
    pieces.add_some(work.task.plan_to_compare());
    pieces.add_some(work.item.map(|item| item.under_review()));
}

fn changes(pieces: &mut Pieces, work: &Work<'_>, rereview: Option<&Rereview<'_>>) {
    if work.agents_at_once > 1 {
        pieces.add(text::ParallelWarning { count: &work.agents_at_once.to_string() }.fill());
    }
    let output = |output| text::AuthorOutput { output: &fenced(output, "") }.fill();
    pieces.add_some(work.author_output.map(output));
    let diff = &work.diff.render();
    pieces.add(match rereview.map(|rereview| rereview.extent) {
        None | Some(Extent::Full) => text::DiffUnderReview { diff }.fill(),
        Some(Extent::Scoped) => text::DiffOfFix { diff }.fill(),
    });
}

fn document(pieces: &mut Pieces, written: &Document<'_>) {
    let specification = |text| text::Specification { specification: &fenced(text, "") }.fill();
    let heading = match written.kind {
        DocumentKind::TaskList { specification: source } => {
            pieces.add(specification(source));
            "The Task List"
        }
        DocumentKind::Groups { tasks } => {
            pieces.add(specification(tasks));
            "The Groups"
        }
        DocumentKind::Plan { task } => {
            pieces.add(task.under_review());
            pieces.add_some(task.plan_to_compare());
            "The Plan"
        }
        DocumentKind::Design { task } => {
            pieces.add(task.under_review());
            pieces.add_some(task.plan_to_compare());
            "The Design"
        }
    };
    pieces.add(text::Repository { path: &one_line(written.worktree) }.fill());
    let design = |text| text::Preparation { preparation: &fenced(text, "") }.fill();
    pieces.add_some(written.design.map(design));
    pieces.add(match written.text {
        Some(text) => text::DocumentUnderReview { heading, document: &fenced(text, "") }.fill(),
        None => text::DocumentNotFound { heading }.fill(),
    });
    pieces.add_some(written.diff.map(|diff| text::DiffSoFar { diff: &diff.render() }.fill()));
}

fn again(pieces: &mut Pieces, rereview: &Rereview<'_>) {
    let (attempt, review) = (&rereview.attempt.to_string(), &rereview.attempt.saturating_add(1).to_string());
    pieces.add(match rereview.extent {
        Extent::Full if rereview.attempt == 0 => text::REREVIEW_FIRST.to_owned(),
        Extent::Full => text::RereviewFull { review, attempt }.fill(),
        Extent::Scoped => text::RereviewScoped { review, attempt }.fill(),
    });
    let follow_up = |text| text::PreviousFollowUp { follow_up: &fenced(text, "") }.fill();
    pieces.add_some(rereview.previous_follow_up.map(follow_up));
    open(pieces, rereview.open);
    let claims = finding_list::claims(rereview.claimed);
    pieces.add_some(claims.map(|claims| text::FixersClaims { claims: &claims }.fill()));
    if !rereview.settled.is_empty() {
        pieces.add(text::SettledFindings { findings: &finding_list::settled(rereview.settled) }.fill());
    }
}

fn open(pieces: &mut Pieces, findings: &[&Finding]) {
    if !findings.is_empty() {
        pieces.add(text::OpenFindings { findings: &finding_list::numbered(findings) }.fill());
    }
}

/// The most characters of an unreadable answer that are quoted, before and behind the place where reading stopped.
const QUOTED: usize = 1_500;

impl UnreadableAnswer<'_> {
    /// What could not be read, where, and the text around that place.
    fn told(&self) -> String {
        let (problem, offset) = match self.why {
            Inconclusive::Missing(message) => (one_line(message), 0),
            Inconclusive::Unparsable(violation)
            | Inconclusive::Contradictory(violation)
            | Inconclusive::Truncated(violation)
            | Inconclusive::Unbound(violation) => {
                let line = line_at(self.text, violation.offset);
                (format!("{} (line {line})", one_line(&violation.message)), violation.offset)
            }
        };
        let answer = fenced(&around(self.text, offset), "");
        text::AnswerUnreadable { problem: &problem, answer: &answer }.fill()
    }
}

/// The number of the line that a byte is in.
fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// The text around a byte; what is left out is marked.
fn around(text: &str, offset: usize) -> String {
    let mut middle = offset.min(text.len());
    while !text.is_char_boundary(middle) {
        middle -= 1;
    }
    let (before, behind) = text.split_at(middle);
    let start = before.char_indices().rev().nth(QUOTED - 1).map_or(0, |(index, _)| index);
    let end = behind.char_indices().nth(QUOTED).map_or(behind.len(), |(index, _)| index);
    let (cut_before, cut_behind) = (start > 0, end < behind.len());
    let mark = |cut: bool| if cut { "[…]" } else { "" };
    format!("{}{}{}{}", mark(cut_before), &before[start..], &behind[..end], mark(cut_behind))
}

/// How to answer stands last, behind everything the reviewer has to read.
fn report(pieces: &mut Pieces, context: &ReviewContext<'_>) {
    pieces.add_some(context.unreadable.map(|answer| answer.told()));
    pieces.add(text::REPORT);
    let nonce = context.ask.nonce.as_ref();
    pieces.add_some(nonce.map(|nonce| text::Nonce { nonce: nonce.as_str() }.fill()));
    let instructions = contract::instructions(context.contract, context.ask);
    if !instructions.trim_start().starts_with('#') {
        pieces.add(text::HOW_TO_REPORT);
    }
    pieces.add(instructions.trim_end());
    // Where the tool is offered the last message says nothing else of use.
    if matches!(context.contract, Contract::Tool | Contract::Auto) {
        pieces.add(text::REVIEW_COMPLETE);
    }
}
