//! What a review prompt says about how to look, by subject, kind of reviewer and depth.

use super::{DocumentKind, ReviewContext, Subject, Work};
use crate::contract::Contract;
use crate::prompt::material::one_line;
use crate::prompt::pieces::Pieces;
use crate::prompt::{Depth, text};
use crate::review::ReviewerKind;

/// A person's words, or ours: what this review is, and what this reviewer looks for.
pub(super) fn opening(context: &ReviewContext<'_>) -> Pieces {
    let mut pieces = Pieces::opening(context.opening, built_in(context));
    if context.opening.is_none() && !context.is_scoped() {
        pieces.add_some(focus(context).map(str::to_owned));
    }
    pieces
}

fn built_in(context: &ReviewContext<'_>) -> String {
    match &context.subject {
        Subject::Task(work) => text::ReviewTask { loop_id: &loop_id(context, work) }.fill(),
        Subject::Checkpoint(work) => text::ReviewCheckpoint { loop_id: &loop_id(context, work) }.fill(),
        Subject::Run(_) => text::REVIEW_RUN.to_owned(),
        Subject::Document(document) => match document.kind {
            DocumentKind::TaskList { .. } => text::REVIEW_TASK_LIST.to_owned(),
            DocumentKind::Groups { .. } => text::REVIEW_GROUPS.to_owned(),
            DocumentKind::Plan { .. } => text::REVIEW_PLAN.to_owned(),
            DocumentKind::Design { .. } => text::REVIEW_DESIGN.to_owned(),
        },
    }
}

fn loop_id(context: &ReviewContext<'_>, work: &Work<'_>) -> String {
    one_line(context.ask.loop_id.as_ref().map_or(work.task.id, |id| id.as_str()))
}

/// A document has no code to divide among reviewers by kind.
fn focus(context: &ReviewContext<'_>) -> Option<&'static str> {
    match context.subject {
        Subject::Document(_) => None,
        Subject::Task(_) | Subject::Checkpoint(_) | Subject::Run(_) => Some(match context.ask.kind {
            ReviewerKind::Spec => text::FOCUS_SPEC,
            ReviewerKind::Code => text::FOCUS_CODE,
            ReviewerKind::Security => text::FOCUS_SECURITY,
            ReviewerKind::Tests => text::FOCUS_TESTS,
            ReviewerKind::General => text::FOCUS_GENERAL,
        }),
    }
}

/// The sections a depth asks for, each depth with those of the one before it. A scoped review goes through
/// findings and a fix, not through the work: of these sections only the iron law concerns it.
pub(super) fn sections(pieces: &mut Pieces, context: &ReviewContext<'_>) {
    let whole = !context.is_scoped();
    if context.depth >= Depth::Standard && whole {
        pieces.add(intent_analysis(&context.subject));
    }
    if context.depth >= Depth::Standard {
        pieces.add(iron_law(context));
    }
    if context.depth >= Depth::Comprehensive && whole {
        requirements(pieces, context);
    }
    if context.opening.is_none() && whole {
        pieces.add(quality_checks(context));
    }
    if matches!(context.subject, Subject::Checkpoint(_)) {
        pieces.add(text::WORK_IN_PROGRESS);
    }
}

fn intent_analysis(subject: &Subject<'_>) -> &'static str {
    match subject {
        Subject::Task(_) | Subject::Checkpoint(_) | Subject::Run(_) => text::INTENT_ANALYSIS,
        Subject::Document(_) => text::INTENT_ANALYSIS_DOCUMENT,
    }
}

fn iron_law(context: &ReviewContext<'_>) -> String {
    let before = before_what(context);
    match context.subject {
        Subject::Task(_) | Subject::Checkpoint(_) | Subject::Run(_) if context.can_run => {
            text::IronLaw { before }.fill()
        }
        Subject::Task(_) | Subject::Checkpoint(_) | Subject::Run(_) => text::IronLawReading { before }.fill(),
        Subject::Document(_) => text::IronLawDocument { before }.fill(),
    }
}

fn requirements(pieces: &mut Pieces, context: &ReviewContext<'_>) {
    match context.subject {
        Subject::Task(_) | Subject::Checkpoint(_) | Subject::Run(_) => {
            pieces.add(text::REQUIREMENT_CHECK);
            pieces.add_some(context.can_run.then(|| text::TESTS_RUN.to_owned()));
        }
        Subject::Document(_) => pieces.add(text::REQUIREMENT_CHECK_DOCUMENT),
    }
}

/// The act that needs evidence first: calling the tool, where there is one.
fn before_what(context: &ReviewContext<'_>) -> &'static str {
    match (context.contract, &context.ask.loop_id) {
        (Contract::Tool, Some(_)) => "calling set_loop_review_result",
        (Contract::Tool, None) => "calling set_review_result",
        (
            Contract::Markdown
            | Contract::Json
            | Contract::Xml
            | Contract::Prefix
            | Contract::Severity
            | Contract::Auto,
            _,
        ) => "giving your verdict",
    }
}

fn quality_checks(context: &ReviewContext<'_>) -> &'static str {
    match context.subject {
        Subject::Document(_) => text::QUALITY_DOCUMENT,
        Subject::Task(_) | Subject::Checkpoint(_) | Subject::Run(_) => match context.ask.kind {
            ReviewerKind::General | ReviewerKind::Code => text::QUALITY_CHECKS,
            ReviewerKind::Spec => text::QUALITY_SPEC,
            ReviewerKind::Security => text::QUALITY_SECURITY,
            ReviewerKind::Tests => text::QUALITY_TESTS,
        },
    }
}
