//! `list_tasks`: lists all tasks with their state, and the open questions.

pub const NAME: &str = "list_tasks";

pub const DESCRIPTION: &str =
    "List all tasks with their status, verdict and cost, and the questions that wait for a person";
