//! A scripted agent: `fake_agent SCRIPT` follows a script instead of asking a model.
//!
//! The prompt comes on stdin. A rule of the script is selected by the environment of the agent (`SIGNOFF_ROLE`,
//! `SIGNOFF_REVIEWER`, `SIGNOFF_PHASE`, `SIGNOFF_TASK_ID`, `SIGNOFF_CYCLE`), by the prompt and by the number of earlier
//! calls. `signoff_testkit::agent_script` defines the format of the script. Each call is logged in the format of
//! [`signoff_testkit::calls`]. Its prompt is stored as `prompt-N.md` in the state directory, which the script or
//! `FAKE_AGENT_STATE` names.
//!
//! Exit codes: 95 no rule matches, 96 a step failed, 97 the script cannot be read, 98 a wait timed out.

fn main() -> std::process::ExitCode {
    signoff_testkit::fake_agent::run(&std::env::args().skip(1).collect::<Vec<_>>())
}
