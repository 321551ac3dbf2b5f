//! `kind = "command"`: any program. The prompt comes on stdin, stdout is the final message, exit 0 is success.

use super::plain::Plain;
use super::{Agent, CommandLine, Listener, Order};

pub struct Command;

impl Agent for Command {
    fn command_line(&self, order: &Order<'_>) -> CommandLine {
        let mut words = order.agent.command.iter().chain(&order.agent.args).cloned();
        let model = order.model.map(|model| ("SIGNOFF_MODEL".to_owned(), Some(model.to_owned())));
        CommandLine {
            program: words.next().unwrap_or_default(),
            arguments: words.collect(),
            environment: model.into_iter().collect(),
            files: Vec::new(),
        }
    }

    fn listener(&self) -> Box<dyn Listener> {
        Box::new(Plain)
    }

    fn is_plain(&self) -> bool {
        true
    }
}
