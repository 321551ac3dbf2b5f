//! `kind = "command"`: any program. The prompt comes on stdin, stdout is the final message, exit 0 is success.

use super::plain::Plain;
use super::{Agent, CommandLine, Listener, Order};

pub struct Command;

impl Agent for Command {
    fn command_line(&self, order: &Order<'_>) -> CommandLine {
        let model = order.model.map(|model| ("SIGNOFF_MODEL".to_owned(), Some(model.to_owned())));
        CommandLine { environment: model.into_iter().collect(), ..order.line("", []) }
    }

    fn listener(&self) -> Box<dyn Listener> {
        Box::new(Plain)
    }

    fn is_plain(&self) -> bool {
        true
    }
}
