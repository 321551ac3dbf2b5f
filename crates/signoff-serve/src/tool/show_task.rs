//! `show_task`: all about one task.

pub const NAME: &str = "show_task";

pub const DESCRIPTION: &str =
    "Show one task: its reviews cycle by cycle, attempts, findings, costs and files";
