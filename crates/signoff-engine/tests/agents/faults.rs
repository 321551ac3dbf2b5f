//! What a provider does to an agent, as each of them told it: nothing of it ends well.
//!
//! The same happens to the programs themselves in `real_agents::faults` of the end-to-end tests, but for what takes them
//! too long for every day.

use signoff_core::config::AgentKind::{self, Claude, Codex, Gemini, Opencode};
use signoff_core::heard::TroubleKind;

use crate::replay::{Recording, account};

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

/// Whether this is what a person should be told.
fn is_right(fault: &str, kind: TroubleKind) -> bool {
    match fault {
        "500" => kind == TroubleKind::Overloaded,
        "429" => matches!(kind, TroubleKind::Limited { .. }),
        "401" => kind == TroubleKind::NotLoggedIn,
        "cut" | "malformed" => kind == TroubleKind::Broken,
        // Killed while the model says nothing, and while it works: it cannot say how it ended, or that it was stopped.
        "hang" | "interrupted" => matches!(kind, TroubleKind::NoEnd | TroubleKind::Other),
        fault => panic!("{fault} is none of the faults"),
    }
}

#[test]
fn every_fault_is_recorded_of_every_agent_and_understood() {
    for fault in ["500", "429", "401", "cut", "malformed", "hang", "interrupted"] {
        for (kind, name) in recordings(fault) {
            let recording = Recording::read(kind, &name);
            assert!(!recording.stdout.is_empty(), "{kind:?} {name} is not recorded");
            let account = account(kind, &recording);
            let trouble = account.heard.trouble.unwrap_or_else(|| panic!("{kind:?} {name} ended well"));
            assert!(is_right(fault, trouble.kind), "{kind:?} {name}: {trouble} ({:?})", trouble.kind);
            assert_eq!(account.message, "", "{kind:?} {name}: nothing of it is an answer");
        }
    }
}
