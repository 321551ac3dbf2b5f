//! The prompt of a review, for every subject, depth, kind of reviewer and contract.

use serde::Serialize;

use crate::contract::{self, Contract, ReviewRequest};
use crate::ledger::LedgerEntry;
use crate::machine::ReviewScope;
use crate::prompt::template::one_line;
use crate::prompt::{Depth, DiffContext, OtherLoop, PlanItemContext, TaskPromptContext, lists, template};
use crate::review::{Finding, Inconclusive, ReviewerKind};
use crate::source::line_at;

/// The context of a review.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ReviewContext<'a> {
    /// Replaces the built-in opening, focus and quality checks. The sections of the depth stay, because the policy
    /// asks for them.
    pub opening: Option<&'a str>,
    pub contract: Contract,
    #[serde(skip)]
    pub request: &'a ReviewRequest,
    pub depth: Depth,
    /// Whether the reviewer has a workspace of its own to run tests in. One that shares the worktree runs none.
    pub can_run: bool,
    #[serde(flatten)]
    pub subject: SubjectContext<'a>,
    /// In the first review of a gate: this reviewer's open findings of other gates. An approval settles these too.
    #[serde(serialize_with = "lists::numbered")]
    pub noted: &'a [&'a Finding],
    /// From the second review on.
    pub rereview: Option<RereviewContext<'a>>,
    /// This reviewer's previous answer, if it could not be parsed.
    pub unreadable: Option<UnreadableAnswer<'a>>,
}

/// An answer that could not be parsed, and why.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(into = "AnswerExcerpt")]
pub struct UnreadableAnswer<'a> {
    pub text: &'a str,
    pub why: &'a Inconclusive,
}

/// What is under review.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "subject", rename_all = "snake_case")]
pub enum SubjectContext<'a> {
    /// A task whose implementer is done.
    Task(Work<'a>),
    /// A snapshot of a task whose implementer is not done.
    Checkpoint(Work<'a>),
    /// All changes of a run, with its specification as the task.
    Run(Work<'a>),
    /// A text that is written before code is.
    Document(DocumentContext<'a>),
}

/// Work in a worktree.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Work<'a> {
    pub task: TaskPromptContext<'a>,
    pub worktree: &'a str,
    pub other_loops: &'a [OtherLoop<'a>],
    /// How many agents work in this worktree at once.
    pub agents_at_once: usize,
    /// In a scoped re-review the diff of the fix, otherwise the whole diff.
    pub diff: DiffContext<'a>,
    /// The implementer's final message. Only set if the gate's `author_output` asks for it: reviewers who read the
    /// author's claims find less.
    pub author_output: Option<&'a str>,
    /// The item of the plan under review, if each item has its own review.
    pub item: Option<PlanItemContext<'a>>,
}

/// A text that was made from another text.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DocumentContext<'a> {
    pub kind: DocumentKind<'a>,
    /// None if another program wrote it to an unknown place.
    pub text: Option<&'a str>,
    pub worktree: &'a str,
    /// The design that it is based on.
    pub design: Option<&'a str>,
    /// The author's changes in the worktree, including the document.
    pub diff: Option<DiffContext<'a>>,
}

/// The kind of a document, with the text that it was made from.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum DocumentKind<'a> {
    TaskList { specification: &'a str },
    Groups { tasks: &'a str },
    Plan { task: TaskPromptContext<'a> },
    Design { task: TaskPromptContext<'a> },
}

/// The findings of earlier reviews. A reviewer is not shown the text of those reviews.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RereviewContext<'a> {
    /// How many fixes were made: this is review `attempt + 1`. 0 if another program made the earlier reviews.
    pub attempt: u32,
    pub scope: ReviewScope,
    #[serde(serialize_with = "lists::numbered")]
    pub open: &'a [&'a Finding],
    /// The ledger's entries of the open findings, with the fixer's claims.
    #[serde(serialize_with = "lists::claims")]
    pub claimed: &'a [&'a LedgerEntry],
    #[serde(serialize_with = "lists::settled")]
    pub settled: &'a [&'a LedgerEntry],
    /// The follow-up prompt of the last fix, if the preset passes it on.
    pub previous_follow_up: Option<&'a str>,
}

/// The variables of the review templates.
#[derive(Serialize)]
struct ReviewVariables<'a> {
    #[serde(flatten)]
    context: &'a ReviewContext<'a>,
    reviewer: ReviewerKind,
    loop_id: Option<&'a str>,
    nonce: Option<&'a str>,
    /// The contract's description of the answer's format.
    instructions: &'a str,
}

/// Renders the prompt of a review.
pub fn review(context: &ReviewContext<'_>) -> String {
    let name = match context.subject {
        SubjectContext::Task(_) | SubjectContext::Checkpoint(_) | SubjectContext::Run(_) => "review.md",
        SubjectContext::Document(_) => "review_document.md",
    };
    let instructions = contract::instructions(context.contract, context.request);
    let variables = ReviewVariables {
        context,
        reviewer: context.request.kind,
        loop_id: context.request.loop_id.as_ref().map(|id| id.as_str()),
        nonce: context.request.nonce.as_ref().map(|nonce| nonce.as_str()),
        instructions: instructions.trim_end(),
    };
    template::render(name, variables)
}

/// How many characters of an answer are quoted before and after the place where parsing stopped.
const QUOTED: usize = 1_500;

/// Why an answer could not be parsed, and the text around that place.
#[derive(Serialize)]
struct AnswerExcerpt {
    problem: String,
    quote: String,
}

impl From<UnreadableAnswer<'_>> for AnswerExcerpt {
    fn from(answer: UnreadableAnswer<'_>) -> Self {
        let (problem, offset) = match answer.why {
            Inconclusive::Missing(message) => (one_line(message), 0),
            Inconclusive::Unparsable(violation)
            | Inconclusive::Contradictory(violation)
            | Inconclusive::Truncated(violation)
            | Inconclusive::Unbound(violation) => {
                let line = line_at(answer.text.as_bytes(), violation.offset);
                (format!("{} (line {line})", one_line(&violation.message)), violation.offset)
            }
        };
        Self { problem, quote: excerpt_around(answer.text, offset) }
    }
}

/// The text around a byte offset, with marks where it is cut.
fn excerpt_around(text: &str, offset: usize) -> String {
    let mut middle = offset.min(text.len());
    while !text.is_char_boundary(middle) {
        middle -= 1;
    }
    let (before, behind) = text.split_at(middle);
    let start = before.char_indices().rev().nth(QUOTED - 1).map_or(0, |(index, _)| index);
    let end = behind.char_indices().nth(QUOTED).map_or(behind.len(), |(index, _)| index);
    let mark = |cut: bool| if cut { "[…]" } else { "" };
    let (cut_before, cut_behind) = (start > 0, end < behind.len());
    format!("{}{}{}{}", mark(cut_before), &before[start..], &behind[..end], mark(cut_behind))
}
