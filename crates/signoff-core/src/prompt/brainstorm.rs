//! The prompts of what comes before a plan: ideas, research, and one result of several reports.

use crate::prompt::material::{fenced, one_line, plain};
use crate::prompt::pieces::Pieces;
use crate::prompt::{TaskBrief, finding_list, text};
use crate::review::Finding;

/// A task to think about.
#[derive(Debug, Clone, Copy, Default)]
pub struct BrainstormContext<'a> {
    /// A person's own words in place of the built-in opening.
    pub opening: Option<&'a str>,
    pub task: TaskBrief<'a>,
    pub worktree: &'a str,
    /// Counted from 1.
    pub pass: u32,
    /// What the review that ended the last pass found.
    pub findings: &'a [&'a Finding],
    /// What it said, where it found nothing that could be listed.
    pub last_review: Option<&'a str>,
    /// Why the last attempt's answer was refused.
    pub refused: Option<&'a str>,
    /// The file that the result is written to, seen from the worktree.
    pub document: Option<&'a str>,
}

/// A task to look into, by several researchers at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResearchContext<'a> {
    pub base: BrainstormContext<'a>,
    /// Counted from 1.
    pub number: u32,
    pub researchers: u32,
    /// What to find out; by default each researcher has an angle of its own.
    pub question: Option<&'a str>,
}

/// Reports to make one result of.
#[derive(Debug, Clone, Copy, Default)]
pub struct SynthesisContext<'a> {
    pub base: BrainstormContext<'a>,
    pub reports: &'a [&'a str],
}

/// Writes the prompt of a brainstorm phase.
pub fn brainstorm(context: &BrainstormContext<'_>) -> String {
    let mut pieces = about(context, text::BRAINSTORM);
    pieces.add_some(design_file(context));
    pieces.prompt()
}

/// Writes the prompt of one researcher.
pub fn research(context: &ResearchContext<'_>) -> String {
    let mut pieces = about(&context.base, text::RESEARCH);
    let question = context.question.map_or_else(|| angle(context.number).to_owned(), plain);
    pieces.add(
        text::ResearchQuestion {
            number: &context.number.to_string(),
            researchers: &context.researchers.to_string(),
            question: &question,
        }
        .fill(),
    );
    pieces.prompt()
}

/// Writes the prompt that makes one result of the researchers' reports.
pub fn synthesis(context: &SynthesisContext<'_>) -> String {
    let mut pieces = about(&context.base, text::SYNTHESIS);
    pieces.add_some(reports(context.reports));
    pieces.add_some(design_file(&context.base));
    pieces.prompt()
}

/// What researchers reported, if any did.
pub(super) fn reports(reports: &[&str]) -> Option<String> {
    let texts: Vec<String> = (1..).zip(reports).map(|(number, text)| report(number, text)).collect();
    (!texts.is_empty()).then(|| text::ResearchReports { reports: &texts.join("\n\n") }.fill())
}

/// Why an answer was refused, for who tries again.
pub(super) fn refused(reason: Option<&str>) -> Option<String> {
    reason.map(|reason| text::AnswerRefused { reason: &fenced(reason, "") }.fill())
}

fn design_file(context: &BrainstormContext<'_>) -> Option<String> {
    context.document.map(|path| text::DesignFile { path: &one_line(path) }.fill())
}

fn about(context: &BrainstormContext<'_>, built_in: &str) -> Pieces {
    let mut pieces = Pieces::opening(context.opening, built_in);
    pieces.add(context.task.assignment());
    pieces.add_some(context.task.plan_to_follow());
    pieces.add(text::WorkingDirectory { worktree: &one_line(context.worktree) }.fill());
    pieces.add_some(last_pass(context.pass, context.findings, context.last_review));
    pieces.add_some(refused(context.refused));
    pieces
}

/// Why the last pass ended where it did: the findings, or else the words of the review.
pub(super) fn last_pass(pass: u32, findings: &[&Finding], review: Option<&str>) -> Option<String> {
    let pass = &pass.to_string();
    if findings.is_empty() {
        return review.map(|said| text::ReviewOfLastPass { pass, review: &fenced(said, "") }.fill());
    }
    Some(text::FindingsOfLastPass { pass, findings: &finding_list::numbered(findings) }.fill())
}

fn angle(number: u32) -> &'static str {
    match number % 3 {
        1 => text::ANGLE_CODE,
        2 => text::ANGLE_REQUIREMENTS,
        _ => text::ANGLE_RISKS,
    }
}

fn report(number: u32, report: &str) -> String {
    text::ResearchReport { number: &number.to_string(), report: &fenced(report, "") }.fill()
}
