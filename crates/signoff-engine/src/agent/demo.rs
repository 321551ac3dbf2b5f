//! `kind = "demo"`: the built-in agent, for trying out signoff without a model.

use super::plain::PlainParser;
use super::{AgentAdapter, AgentSpec, CommandLine, OutputParser};

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
