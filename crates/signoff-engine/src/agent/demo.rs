//! `kind = "demo"`: the agent that is part of signoff, for trying it out without a model.

use super::plain::Plain;
use super::{Agent, CommandLine, Listener, Order};

pub struct Demo;

impl Agent for Demo {
    fn command_line(&self, order: &Order<'_>) -> CommandLine {
        CommandLine {
            program: order.program.to_owned(),
            arguments: vec!["__demo".to_owned()],
            ..CommandLine::default()
        }
    }

    fn listener(&self) -> Box<dyn Listener> {
        Box::new(Plain)
    }

    fn is_plain(&self) -> bool {
        true
    }
}
