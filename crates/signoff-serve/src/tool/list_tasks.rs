//! `list_tasks`: all tasks with their state, and the questions that wait for an answer.

pub const NAME: &str = "list_tasks";

pub const DESCRIPTION: &str =
    "List all tasks with their status, verdict and cost, and the questions that wait for a person";
