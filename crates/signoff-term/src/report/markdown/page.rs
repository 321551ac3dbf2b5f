//! A Markdown page that stays below GitHub's size limit, and lists what it had to omit.

use super::escape;

/// Maximum size of the body of a pull request. GitHub counts characters; we count bytes, which are never fewer.
pub const LIMIT: usize = 65_536;

/// Bytes reserved for the end of the page.
const RESERVED: usize = 1_000;

/// A Markdown page with a size limit.
#[derive(Default)]
pub struct MarkdownPage {
    text: String,
    /// The end of the page, which is never omitted.
    last: String,
    omitted: Vec<(&'static str, usize)>,
}

impl MarkdownPage {
    /// An empty page that ends with the text of `last`.
    pub fn with_ending(last: Self) -> Self {
        Self { last: last.text, ..Self::default() }
    }

    fn has_room(&self, more: usize) -> bool {
        self.text.len() + more + self.last.len() + RESERVED <= LIMIT
    }

    /// Appends a short text, if there is room.
    pub fn push(&mut self, text: &str) {
        if self.has_room(text.len()) {
            self.text.push_str(text);
        }
    }

    /// Appends as many items as fit, between a head and a foot; nothing if there are none. Each item has the page
    /// size up to which it may be added.
    pub fn list(
        &mut self,
        what: &'static str,
        (head, foot): (&str, &str),
        items: impl IntoIterator<Item = (usize, String)>,
    ) {
        let mut put = 0;
        let mut left = 0;
        for (until, item) in items {
            let head = if put == 0 { head } else { "" };
            let more = head.len() + item.len() + foot.len();
            if left == 0 && self.has_room(more) && self.text.len() + more <= until {
                self.text.push_str(head);
                self.text.push_str(&item);
                put += 1;
            } else {
                left += 1;
            }
        }
        if put > 0 {
            self.text.push_str(foot);
        }
        if left > 0 {
            self.omitted.push((what, left));
        }
    }

    /// A list in a collapsed section with a title.
    pub fn collapsed(&mut self, what: &'static str, title: &str, items: impl IntoIterator<Item = String>) {
        self.collapsed_table(what, title, "", items);
    }

    /// A table in a collapsed section with a title.
    pub fn collapsed_table(
        &mut self,
        what: &'static str,
        title: &str,
        table: &str,
        items: impl IntoIterator<Item = String>,
    ) {
        let title = escape::in_html(title, 200);
        let head = format!("<details><summary>{title}</summary>\n\n{table}");
        let items = items.into_iter().map(|item| (LIMIT, item));
        self.list(what, (&head, "\n</details>\n\n"), items);
    }

    /// Finishes the page: lists what was omitted, and the command that prints everything.
    pub fn finish(mut self, command: &str) -> String {
        self.text.push_str(&self.last);
        if !self.omitted.is_empty() {
            let mut sums: Vec<(&str, usize)> = Vec::new();
            for (what, number) in &self.omitted {
                match sums.iter_mut().find(|(known, _)| known == what) {
                    Some((_, sum)) => *sum += number,
                    None => sums.push((what, *number)),
                }
            }
            let missing: Vec<_> = sums.iter().map(|(what, number)| format!("{what} ({number})")).collect();
            self.text.push_str(&format!(
                "**Left out**, because a pull request holds 65,536 characters: {}. `{command} --format json` has all.\n\n",
                missing.join(", ")
            ));
        }
        self.text.push_str("<sub>Written by signoff.</sub>\n");
        self.text
    }
}
