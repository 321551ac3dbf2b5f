//! The exit status and output of a program run, printable for snapshots.

use std::fmt;

/// Exit code, stdout and stderr of a program run, with machine-specific paths redacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramOutput {
    /// `None` if a signal ended the program.
    pub code: Option<i32>,
    /// The signal that ended the program.
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl ProgramOutput {
    pub(crate) fn new(output: &std::process::Output, redact: impl Fn(&str) -> String) -> Self {
        let text = |bytes: &[u8]| redact(&String::from_utf8_lossy(bytes));
        let (code, signal) = (output.status.code(), signal(output.status));
        Self { code, signal, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// Parses stdout as one JSON document.
    ///
    /// # Panics
    /// If stdout is not one JSON document.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is not one JSON document: {error}\n{self}"))
    }
}

impl fmt::Display for ProgramOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => writeln!(f, "exit {code}")?,
            None => writeln!(f, "ended by a signal")?,
        }
        section(f, "stdout", &self.stdout)?;
        section(f, "stderr", &self.stderr)
    }
}

#[cfg(unix)]
fn signal(status: std::process::ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_status: std::process::ExitStatus) -> Option<i32> {
    None
}

fn section(f: &mut fmt::Formatter<'_>, name: &str, text: &str) -> fmt::Result {
    if text.is_empty() {
        return Ok(());
    }
    write!(f, "--- {name}\n{text}")?;
    if text.ends_with('\n') { Ok(()) } else { writeln!(f, "[no newline at the end]") }
}
