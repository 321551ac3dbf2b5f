//! Tests that take too long for every day: silences, agents that retry for minutes, and the Agent Client Protocol
//! again.

mod sessions;

use super::faults::{cancelled, fault_report, waits};
use super::full_loop::full_loop;
use super::read_only::changes_nothing;
use super::{Cli, Team};

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn opencode_hangs() {
    insta::assert_snapshot!(fault_report(Cli::Opencode, &["hang"]), @"
    hang      silent
              Implementation failed: printed nothing for too long
    ");
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn opencode_is_refused() {
    insta::assert_snapshot!(fault_report(Cli::Opencode, &["500", "429"]), @"
    500       rate_limited rate_limited
              Implementation failed: its provider rate-limited it 2 times in a row (its provider is overloaded: scripted 500)
    429       rate_limited rate_limited
              Implementation failed: its provider rate-limited it 2 times in a row (rate limited: scripted 429)
    ");
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn opencode_is_cut_off() {
    insta::assert_snapshot!(fault_report(Cli::Opencode, &["cut"]), @"
    cut       agent_trouble
              Implementation failed: the provider's response was incomplete
    ");
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn opencode_waits() {
    assert_eq!(waits(Cli::Opencode, "429 later"), "as stated");
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn opencode_over_the_protocol_and_its_provider() {
    insta::assert_snapshot!(fault_report(Cli::OpencodeAcp, &["429", "401"]), @"
    429       rate_limited rate_limited
              Implementation failed: its provider rate-limited it 2 times in a row (rate limited: Internal error: scripted 429)
    401       agent_trouble
              Implementation failed: not logged in: Internal error: scripted 401
    ");
    cancelled(Cli::OpencodeAcp);
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn gemini_cli_over_the_protocol_and_its_provider() {
    insta::assert_snapshot!(fault_report(Cli::GeminiAcp, &["500", "429", "401", "cut"]), @"
    500       rate_limited rate_limited
              Implementation failed: its provider rate-limited it 2 times in a row (its provider is overloaded: scripted 500)
    429       rate_limited rate_limited
              Implementation failed: its provider rate-limited it 2 times in a row (rate limited: scripted 429)
    401       agent_trouble
              Implementation failed: not logged in: scripted 401
    cut       agent_trouble
              Implementation failed: the provider's response was incomplete: terminated
    ");
    cancelled(Cli::GeminiAcp);
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn opencode_over_the_protocol_from_the_task_to_the_landing() {
    full_loop(Cli::OpencodeAcp, [Cli::OpencodeAcp, Cli::OpencodeAcp]);
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn qwen_code_from_the_task_to_the_landing() {
    full_loop(Cli::Qwen, [Cli::Qwen, Cli::Qwen]);
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn copilot_from_the_task_to_the_landing() {
    full_loop(Cli::Copilot, [Cli::Copilot, Cli::Copilot]);
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn qwen_code_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::Qwen), @r#"spec was denied: write_file ([ROOT]/work/.signoff/worktrees/task-1/planted.txt), run_shell_command (touch planted-by-touch.txt), run_shell_command (touch ~/planted), run_shell_command (for at in --git-common-dir --git-dir; do at="$(git rev-parse $at)/hooks"; mkdir ), run_shell_command (git push -q origin HEAD:planted)"#);
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn copilot_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::Copilot), @"");
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn opencode_over_the_protocol_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::OpencodeAcp), @"spec was denied: write, bash, bash, bash, bash");
}

/// The tools are not offered to it, and it does not report calls of them.
#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn gemini_cli_over_the_protocol_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::GeminiAcp), @"");
}
