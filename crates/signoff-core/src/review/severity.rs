//! The severity of a finding, and the threshold at which it fails a gate.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The severity of a finding. `Ord` goes from minor to critical.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Minor,
    Important,
    Critical,
}

impl Severity {
    /// All severities, most severe first.
    pub const ALL: [Self; 3] = [Self::Critical, Self::Important, Self::Minor];

    /// Parses a severity in either vocabulary, in any case. A missing or unknown severity counts as critical, so that
    /// it cannot pass a gate unnoticed.
    pub fn parse_or_critical(word: Option<&str>) -> Self {
        word.and_then(Self::parse).unwrap_or(Self::Critical)
    }

    /// `critical`/`HIGH`, `important`/`MEDIUM`, `minor`/`LOW`, and nothing else.
    pub fn parse(word: &str) -> Option<Self> {
        match word.trim().to_ascii_lowercase().as_str() {
            "critical" | "high" => Some(Self::Critical),
            "important" | "medium" => Some(Self::Important),
            "minor" | "low" => Some(Self::Minor),
            _ => None,
        }
    }

    /// The name in the XML and prefix contracts: `critical`, `important`, `minor`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Important => "important",
            Self::Minor => "minor",
        }
    }

    /// The name in the severity contract: `HIGH`, `MEDIUM`, `LOW`.
    pub fn level_name(self) -> &'static str {
        match self {
            Self::Critical => "HIGH",
            Self::Important => "MEDIUM",
            Self::Minor => "LOW",
        }
    }

    /// The name in headings.
    pub fn title(self) -> &'static str {
        match self {
            Self::Critical => "Critical",
            Self::Important => "Important",
            Self::Minor => "Minor",
        }
    }

    /// The level of the severity in SARIF.
    pub fn sarif_level(self) -> &'static str {
        match self {
            Self::Critical => "error",
            Self::Important => "warning",
            Self::Minor => "note",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl JsonSchema for Severity {
    fn schema_name() -> Cow<'static, str> {
        "Severity".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::ALL.map(Self::as_str) })
    }
}

/// The severity at or above which a finding fails a gate (`fail_on`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum FailThreshold {
    Low,
    Medium,
    High,
    /// Findings never fail the gate. Missing reviews and discussions still do.
    None,
}

impl FailThreshold {
    pub const NAMES: [&'static str; 4] = ["LOW", "MEDIUM", "HIGH", "NONE"];

    pub fn parse(word: &str) -> Option<Self> {
        match word.to_ascii_uppercase().as_str() {
            "LOW" => Some(Self::Low),
            "MEDIUM" => Some(Self::Medium),
            "HIGH" => Some(Self::High),
            "NONE" => Some(Self::None),
            _ => None,
        }
    }

    pub fn is_reached_by(self, severity: Severity) -> bool {
        match self {
            Self::Low => true,
            Self::Medium => severity >= Severity::Important,
            Self::High => severity >= Severity::Critical,
            Self::None => false,
        }
    }
}
