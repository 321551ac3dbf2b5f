//! `kind = "command"`: any program. The prompt is its stdin, stdout is the final message, exit code 0 is success.

use super::plain::PlainParser;
use super::{AgentAdapter, AgentSpec, CommandLine, OutputParser};

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
