//! A page that never grows beyond what GitHub takes, and says what it had to leave out.

use super::escape;

/// The most that the body of a pull request may hold. GitHub counts characters; bytes are never fewer.
pub const LIMIT: usize = 65_536;

/// Kept for the end of the page.
const RESERVED: usize = 1_000;

#[derive(Default)]
pub struct Page {
    text: String,
    /// What comes last and is never left out.
    last: String,
    left_out: Vec<(&'static str, usize)>,
}

impl Page {
    /// A page that ends with this one.
    pub fn before(last: Self) -> Self {
        Self { last: last.text, ..Self::default() }
    }

    fn has_room(&self, more: usize) -> bool {
        self.text.len() + more + self.last.len() + RESERVED <= LIMIT
    }

    /// Puts something of ours that is short.
    pub fn put(&mut self, text: &str) {
        if self.has_room(text.len()) {
            self.text.push_str(text);
        }
    }

    /// As many of these as there is room for, between a head and a foot; nothing where there are none. Each says how far
    /// it may fill the page.
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
            self.left_out.push((what, left));
        }
    }

    /// The same, folded away under a title.
    pub fn folded(&mut self, what: &'static str, title: &str, items: impl IntoIterator<Item = String>) {
        self.folded_table(what, title, "", items);
    }

    /// The same with the head of a table.
    pub fn folded_table(
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

    /// The page with its end: what is missing, and where all of it is.
    pub fn end(mut self, elsewhere: &str) -> String {
        self.text.push_str(&self.last);
        if !self.left_out.is_empty() {
            let mut sums: Vec<(&str, usize)> = Vec::new();
            for (what, number) in &self.left_out {
                match sums.iter_mut().find(|(known, _)| known == what) {
                    Some((_, sum)) => *sum += number,
                    None => sums.push((what, *number)),
                }
            }
            let missing: Vec<_> = sums.iter().map(|(what, number)| format!("{what} ({number})")).collect();
            self.text.push_str(&format!(
                "**Left out**, because a pull request holds 65,536 characters: {}. `{elsewhere} --format json` has all.\n\n",
                missing.join(", ")
            ));
        }
        self.text.push_str("<sub>Written by signoff.</sub>\n");
        self.text
    }
}
