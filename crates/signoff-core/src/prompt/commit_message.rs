//! What the program writes when it commits an agent's work.

use crate::prompt::material;

/// The commit that ends an implementation.
pub fn initial(title: &str) -> String {
    match material::title(title) {
        title if title.is_empty() => "Initial implementation".to_owned(),
        title => format!("{title} - initial implementation"),
    }
}

/// The commit that ends the fix of a cycle.
pub fn feedback(cycle: u32) -> String {
    format!("Address review feedback (cycle {cycle})")
}

/// What an agent left that did not come to a good end.
pub fn unfinished(title: &str) -> String {
    match material::title(title) {
        title if title.is_empty() => "Work in progress".to_owned(),
        title => format!("{title} - work in progress"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_line() {
        insta::assert_snapshot!(initial("Add feature X"), @"Add feature X - initial implementation");
        insta::assert_snapshot!(initial(" Add\r\n\n feature\u{1b}[31m\u{2028}X\0 "), @"Add feature [31m X - initial implementation");
        insta::assert_snapshot!(initial(" \n"), @"Initial implementation");
        insta::assert_snapshot!(unfinished("Add feature X"), @"Add feature X - work in progress");
        insta::assert_snapshot!(unfinished(""), @"Work in progress");
        insta::assert_snapshot!(feedback(2), @"Address review feedback (cycle 2)");
    }
}
