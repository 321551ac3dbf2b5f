//! `show_task`: shows one task in detail.

pub const NAME: &str = "show_task";

pub const DESCRIPTION: &str = "Show one task: its reviews cycle by cycle, attempts, findings, costs and files";
