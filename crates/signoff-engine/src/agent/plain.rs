//! Agents with plain output: stdout is the final message, and the exit code the result.

use signoff_core::agent_output::OutputLine;

use super::{AgentExit, AgentResult, OutputParser};

/// Shows every line. The result is read from the output files.
pub struct PlainParser;

impl OutputParser for PlainParser {
    fn parse_line(&mut self, line: &[u8]) -> Vec<OutputLine> {
        vec![OutputLine::Text(String::from_utf8_lossy(line).into_owned())]
    }

    fn finish(&mut self, _: &AgentExit<'_>) -> AgentResult {
        AgentResult::default()
    }
}
