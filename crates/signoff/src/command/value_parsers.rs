//! Clap value parsers for types of the core.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use signoff_core::contract::Contract;
use signoff_core::policy::Effort;
use signoff_core::review::{FailThreshold, ReviewerKind};
use signoff_core::source::TaskFormat;

/// Parses the name of a contract.
pub fn contract() -> impl TypedValueParser<Value = Contract> {
    PossibleValuesParser::new(Contract::ALL.map(Contract::as_str))
        .try_map(|word| Contract::parse(&word).ok_or("no such contract"))
}

/// Parses the kind of a reviewer.
pub fn role() -> impl TypedValueParser<Value = ReviewerKind> {
    PossibleValuesParser::new(ReviewerKind::ALL.map(ReviewerKind::as_str))
        .try_map(|word| ReviewerKind::parse(&word).ok_or("no such role"))
}

/// Parses the severity that fails a gate.
pub fn severity() -> impl TypedValueParser<Value = FailThreshold> {
    PossibleValuesParser::new(FailThreshold::NAMES)
        .try_map(|word| FailThreshold::parse(&word).ok_or("no such severity"))
}

/// Parses an effort level.
pub fn effort() -> impl TypedValueParser<Value = Effort> {
    PossibleValuesParser::new(Effort::ALL.map(Effort::as_str))
        .try_map(|word| Effort::parse(&word).ok_or("no such effort"))
}

/// Parses the format of a plan file; accepts common aliases.
pub fn source_format() -> impl TypedValueParser<Value = TaskFormat> {
    let words = TaskFormat::ALL.iter().map(|format| PossibleValue::new(format.as_str()).aliases(aliases(*format)));
    PossibleValuesParser::new(words).try_map(|word| {
        let means = |format: &TaskFormat| format.as_str() == word || aliases(*format).contains(&word.as_str());
        TaskFormat::ALL.iter().copied().find(means).ok_or("no such format")
    })
}

fn aliases(format: TaskFormat) -> &'static [&'static str] {
    match format {
        TaskFormat::PlanMarkdown => &["plan", "plan-markdown"],
        TaskFormat::SpecKit => &["spec-kit", "speckit"],
        TaskFormat::OpenSpec => &["open-spec", "openspec"],
        TaskFormat::TaskMaster => &["task-master", "taskmaster"],
        TaskFormat::Text => &["spec", "specification"],
        TaskFormat::Kiro | TaskFormat::Bmad | TaskFormat::Beads => &[],
    }
}
