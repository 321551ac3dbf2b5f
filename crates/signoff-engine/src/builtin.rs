//! Built-in programs that signoff starts like agents: `signoff __acp`, `signoff __checks`, `signoff __demo`.

pub mod acp;
pub mod checks;
pub mod demo;

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

/// The exit code of a program. Prints its error.
fn exit_code(result: Result<ExitCode, impl Display>) -> ExitCode {
    result.unwrap_or_else(|error| {
        // If stderr is closed, the error is lost.
        writeln!(io::stderr(), "signoff: {error}").ok();
        ExitCode::FAILURE
    })
}
