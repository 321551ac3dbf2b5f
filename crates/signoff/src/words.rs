//! The words of the command line that stand for values of the core.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use signoff_core::contract::Contract;
use signoff_core::review::{Bar, ReviewerKind};

const CONTRACTS: [(&str, Contract); 7] = [
    ("markdown", Contract::Markdown),
    ("json", Contract::Json),
    ("xml", Contract::Xml),
    ("prefix", Contract::Prefix),
    ("severity", Contract::Severity),
    ("tool", Contract::Tool),
    ("auto", Contract::Auto),
];

/// Reads a contract's name.
pub fn contract() -> impl TypedValueParser<Value = Contract> {
    PossibleValuesParser::new(CONTRACTS.map(|(word, _)| word)).try_map(|word| {
        let known = CONTRACTS.into_iter().find(|(known, _)| *known == word);
        known.map(|(_, contract)| contract).ok_or("no such contract")
    })
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
