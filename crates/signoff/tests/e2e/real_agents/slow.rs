//! What takes longer than people wait every day: silences, agents that ask again and again, and the Agent Client Protocol
//! once more.

mod sessions;

use super::faults::{cancelled, told, waits};
use super::read_only::changes_nothing;
use super::whole::whole;
use super::{Cli, Team};

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn opencode_hangs() {
    insta::assert_snapshot!(told(Cli::Opencode, &["hang"]), @"");
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn opencode_is_refused() {
    insta::assert_snapshot!(told(Cli::Opencode, &["500", "429"]), @"");
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn opencode_is_cut_off() {
    insta::assert_snapshot!(told(Cli::Opencode, &["cut"]), @"");
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn opencode_waits() {
    assert_eq!(waits(Cli::Opencode), "as told");
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn opencode_over_the_protocol_and_its_provider() {
    insta::assert_snapshot!(told(Cli::OpencodeAcp, &["429", "401"]), @"");
    cancelled(Cli::OpencodeAcp);
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn gemini_cli_over_the_protocol_and_its_provider() {
    insta::assert_snapshot!(told(Cli::GeminiAcp, &["500", "429", "401", "cut"]), @"");
    cancelled(Cli::GeminiAcp);
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn opencode_over_the_protocol_from_the_task_to_the_landing() {
    whole(Cli::OpencodeAcp, [Cli::OpencodeAcp, Cli::OpencodeAcp]);
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn opencode_over_the_protocol_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::OpencodeAcp), @"");
}

/// It has not even heard of the tools, and says nothing of calls for them.
#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn gemini_cli_over_the_protocol_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::GeminiAcp), @"");
}
