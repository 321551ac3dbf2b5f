//! One of the tasks that a plan document has, as agents see it.

use crate::prompt::material::{plain, title};
use crate::prompt::text;

/// The part of a plan that is at hand, and the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Item<'a> {
    /// Counted from 1.
    pub number: u32,
    pub title: &'a str,
    pub description: &'a str,
    /// The titles of those that came before it, and of those that come after.
    pub done: &'a [&'a str],
    pub later: &'a [&'a str],
    /// Whether another program worked on the plan before: nobody knows what of it is done.
    pub begun_elsewhere: bool,
}

impl Item<'_> {
    pub(super) fn assignment(&self) -> String {
        let (number, count) = self.place();
        text::ItemToDo {
            number: &number,
            count: &count,
            title: &title(self.title),
            description: &plain(self.description),
            others: &self.others(),
        }
        .fill()
    }

    pub(super) fn under_review(&self) -> String {
        let (number, count) = self.place();
        text::ItemUnderReview {
            number: &number,
            count: &count,
            title: &title(self.title),
            description: &plain(self.description),
            others: &self.others(),
        }
        .fill()
    }

    fn place(&self) -> (String, String) {
        let count = self.done.len() + 1 + self.later.len();
        (self.number.to_string(), count.to_string())
    }

    fn others(&self) -> String {
        let lists = [("Done before:", self.done), ("Coming later:", self.later)];
        let list = |(heading, titles): (&str, &[&str])| {
            let lines: Vec<String> = titles.iter().map(|one| format!("- {}", title(one))).collect();
            (!lines.is_empty()).then(|| format!("{heading}\n{}", lines.join("\n")))
        };
        let begun = self.begun_elsewhere.then(|| text::ITEM_BEGUN_ELSEWHERE.trim().to_owned());
        begun.into_iter().chain(lists.into_iter().filter_map(list)).collect::<Vec<_>>().join("\n\n")
    }
}
