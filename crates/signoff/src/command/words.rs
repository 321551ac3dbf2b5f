//! The words of the command line that stand for values of the core.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use signoff_core::contract::Contract;
use signoff_core::policy::Effort;
use signoff_core::review::{Bar, ReviewerKind};
use signoff_core::source::Format;

/// Reads a contract's name.
pub fn contract() -> impl TypedValueParser<Value = Contract> {
    PossibleValuesParser::new(Contract::ALL.map(Contract::word))
        .try_map(|word| Contract::from_word(&word).ok_or("no such contract"))
}

/// Reads what a reviewer looks for.
pub fn role() -> impl TypedValueParser<Value = ReviewerKind> {
    PossibleValuesParser::new(ReviewerKind::ALL.map(ReviewerKind::word))
        .try_map(|word| ReviewerKind::from_word(&word).ok_or("no such role"))
}

/// Reads the severity that fails a gate.
pub fn bar() -> impl TypedValueParser<Value = Bar> {
    PossibleValuesParser::new(Bar::WORDS).try_map(|word| Bar::from_word(&word).ok_or("no such severity"))
}

/// Reads how thoroughly work is reviewed.
pub fn effort() -> impl TypedValueParser<Value = Effort> {
    PossibleValuesParser::new(Effort::ALL.map(Effort::word))
        .try_map(|word| Effort::from_word(&word).ok_or("no such effort"))
}

/// Reads the format of a plan file, also by the name its users write.
pub fn source_format() -> impl TypedValueParser<Value = Format> {
    let words = Format::ALL.map(|format| PossibleValue::new(format.word()).aliases(other_words(format)));
    PossibleValuesParser::new(words).try_map(|word| {
        let means = |format: &Format| format.word() == word || other_words(*format).contains(&word.as_str());
        Format::ALL.into_iter().find(means).ok_or("no such format")
    })
}

fn other_words(format: Format) -> &'static [&'static str] {
    match format {
        Format::PlanMarkdown => &["plan", "plan-markdown"],
        Format::SpecKit => &["spec-kit", "speckit"],
        Format::OpenSpec => &["open-spec", "openspec"],
        Format::TaskMaster => &["task-master", "taskmaster"],
        Format::Text => &["spec", "specification"],
        Format::Kiro | Format::Bmad | Format::Beads => &[],
    }
}
