//! Agents with plain output: stdout is the final message, and the exit code the result.
//!
//! `kind = "command"` is any program; `kind = "demo"` is the built-in agent, for trying out signoff without a model.

use signoff_core::agent_output::OutputLine;

use super::{AgentAdapter, AgentExit, AgentResult, AgentSpec, CommandLine, OutputParser};

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

pub struct CommandAdapter;

impl AgentAdapter for CommandAdapter {
    fn command_line(&self, spec: &AgentSpec<'_>) -> CommandLine {
        let model = spec.model.map(|model| ("SIGNOFF_MODEL".to_owned(), Some(model.to_owned())));
        CommandLine { environment: model.into_iter().collect(), ..spec.command_line("", []) }
    }

    fn output_parser(&self) -> Box<dyn OutputParser> {
        Box::new(PlainParser)
    }

    fn is_plain(&self) -> bool {
        true
    }
}

pub struct DemoAdapter;

impl AgentAdapter for DemoAdapter {
    fn command_line(&self, spec: &AgentSpec<'_>) -> CommandLine {
        CommandLine {
            program: spec.signoff_program.to_owned(),
            arguments: vec!["__demo".to_owned()],
            ..CommandLine::default()
        }
    }

    fn output_parser(&self) -> Box<dyn OutputParser> {
        Box::new(PlainParser)
    }

    fn is_plain(&self) -> bool {
        true
    }
}
