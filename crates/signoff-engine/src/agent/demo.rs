//! `kind = "demo"`: the agent that is part of signoff, for trying it out without a model.

use signoff_core::limited::{Ended, Refused};

use super::{Agent, CommandLine, Order};

pub struct Demo;

impl Agent for Demo {
    fn command_line(&self, order: &Order<'_>) -> CommandLine {
        CommandLine {
            program: order.program.to_owned(),
            arguments: vec!["__demo".to_owned()],
            environment: Vec::new(),
        }
    }

    fn final_message(&self, stdout: Vec<u8>) -> Vec<u8> {
        stdout
    }

    fn refused(&self, _: &Ended<'_>) -> Option<Refused> {
        None
    }
}
