//! Executes the effects that the core decides on: processes, git, agents, and the dispatcher that records the results.

pub mod agent;
pub mod agent_check;
pub mod agent_probe;
pub mod artifact;
mod atomic_file;
pub mod attempt;
pub mod attempt_spec;
/// Built-in programs that signoff starts like agents: `signoff __acp`, `signoff __checks`, `signoff __demo`.
pub mod builtin {
    pub mod acp;
    pub mod checks;
    pub mod demo;
}
mod check_off;
pub mod clock;
pub mod confine;
pub mod custom_prompts;
pub mod detect;
pub mod dispatcher;
pub mod error;
pub mod executor;
pub mod failpoint;
pub mod git;
pub mod landing;
pub mod layout;
pub mod notify;
pub mod process;
pub mod prompt_inputs;
pub mod remove_tree;
pub mod reports;
pub mod start_run;
pub mod tracker;
pub mod transcript;
pub mod workspace;
