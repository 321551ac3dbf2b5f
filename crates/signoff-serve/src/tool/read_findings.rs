//! `read_findings`: reads the findings of one task.

pub const NAME: &str = "read_findings";

pub const DESCRIPTION: &str =
    "Read what reviewers found in one task over all cycles, each finding with its state and who decided it";
