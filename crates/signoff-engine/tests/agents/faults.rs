//! Provider faults, as recorded for each agent: none of them ends in success.
//!
//! `real_agents::faults` of the end-to-end tests causes the same faults with the real programs, except for those that
//! take too long to run every day.

use signoff_core::agent_output::AgentErrorKind;
use signoff_core::settings::AgentKind::{self, Claude, Codex, Gemini, Opencode};

use crate::agents::replay::{Recording, parse_recording};

/// The recordings of one fault, for each kind that has its own name for it.
fn recordings(fault: &str) -> [(AgentKind, String); 4] {
    let of = |status: &str| {
        [
            (Claude, format!("status-{status}")),
            (Codex, format!("status-{status}")),
            (Gemini, format!("status_{status}")),
            (Opencode, status.to_owned()),
        ]
    };
    if fault.parse::<u16>().is_ok() {
        of(fault)
    } else {
        [Claude, Codex, Gemini, Opencode].map(|kind| (kind, fault.to_owned()))
    }
}

/// Returns whether this is the right error to report.
fn is_expected(fault: &str, kind: AgentErrorKind) -> bool {
    match fault {
        "500" => kind == AgentErrorKind::Overloaded,
        "429" => matches!(kind, AgentErrorKind::RateLimited { .. }),
        "401" => kind == AgentErrorKind::NotLoggedIn,
        "cut" | "malformed" => kind == AgentErrorKind::InvalidResponse,
        // Killed while the model is silent or while a tool runs: the agent reports no end, or that it was stopped.
        "hang" | "interrupted" => matches!(kind, AgentErrorKind::NoResult | AgentErrorKind::Other),
        fault => panic!("{fault} is none of the faults"),
    }
}

#[test]
fn every_fault_is_recorded_and_recognized_for_every_agent() {
    for fault in ["500", "429", "401", "cut", "malformed", "hang", "interrupted"] {
        for (kind, name) in recordings(fault) {
            let recording = Recording::read(kind, &name);
            assert!(!recording.stdout.is_empty(), "{kind:?} {name} is not recorded");
            let result = parse_recording(kind, &recording);
            let error = result.summary.error.unwrap_or_else(|| panic!("{kind:?} {name} ended well"));
            assert!(is_expected(fault, error.kind), "{kind:?} {name}: {error} ({:?})", error.kind);
            assert_eq!(result.message, "", "{kind:?} {name}: nothing of it is an answer");
        }
    }
}
