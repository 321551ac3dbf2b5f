//! Stands in for a model: `fake_agent SCRIPT` follows a script instead of thinking.
//!
//! The prompt comes on stdin. Which of the script's rules is carried out is told from the environment that
//! every agent is given (`SIGNOFF_ROLE`, `SIGNOFF_REVIEWER`, `SIGNOFF_PHASE`, `SIGNOFF_TASK_ID`,
//! `SIGNOFF_CYCLE`), from the prompt, and from how often it was called before. The script's format is that of
//! [`signoff_testkit::script`]; each call is logged as [`signoff_testkit::calls`] reads it, and its prompt is
//! kept as `prompt-N.md` in the state directory, which the script or `FAKE_AGENT_STATE` names.
//!
//! Exit codes of its own: 95 no rule fits, 96 a step failed, 97 the script cannot be read, 98 waited in vain.

fn main() -> std::process::ExitCode {
    signoff_testkit::fake_agent::run(&std::env::args().skip(1).collect::<Vec<_>>())
}
