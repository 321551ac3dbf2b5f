//! The messages of the commits that the program makes of an agent's work.

use crate::prompt::template;

/// The commit that ends an implementation.
pub fn initial(title: &str) -> String {
    message(title, "initial implementation", "Initial implementation")
}

/// The design of a task.
pub fn design(title: &str) -> String {
    message(title, "design", "Design")
}

/// The plan of a task.
pub fn plan(title: &str) -> String {
    message(title, "plan", "Plan")
}

/// The work on one item of the plan.
pub fn item(title: &str, number: u32, count: u32, item: &str) -> String {
    let place = format!("item {number} of {count}");
    let what = match template::title(item) {
        item if item.is_empty() => place,
        item => format!("{place}: {item}"),
    };
    message(title, &what, &what)
}

/// The changes of a simplify phase.
pub fn simplify(title: &str) -> String {
    message(title, "simplify", "Simplify")
}

fn message(title: &str, what: &str, alone: &str) -> String {
    match template::title(title) {
        title if title.is_empty() => alone.to_owned(),
        title => format!("{title} - {what}"),
    }
}

/// The commit that ends the fix of a cycle.
pub fn feedback(cycle: u32) -> String {
    format!("Address review feedback (cycle {cycle})")
}

/// The changes of an agent that failed.
pub fn unfinished(title: &str) -> String {
    message(title, "work in progress", "Work in progress")
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
        insta::assert_snapshot!(design("Add feature X"), @"Add feature X - design");
        insta::assert_snapshot!(plan(""), @"Plan");
        insta::assert_snapshot!(item("Add X", 2, 3, "Store\nit"), @"Add X - item 2 of 3: Store it");
        insta::assert_snapshot!(item("Add X", 1, 1, ""), @"Add X - item 1 of 1");
        insta::assert_snapshot!(simplify("Add X"), @"Add X - simplify");
        insta::assert_snapshot!(feedback(2), @"Address review feedback (cycle 2)");
    }
}
