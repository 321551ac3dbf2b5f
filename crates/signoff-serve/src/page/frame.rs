//! What stands around every page.

use maud::{DOCTYPE, html};

use super::values::Notice;

pub(super) fn page(title: &str, project: &str, notice: Option<&Notice>) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; title { (title) " · " (project) } }
            body { main { h1 { (title) } @if let Some(notice) = notice { p { (notice.message) } } } }
        }
    }
    .into_string()
}

/// Where a form wants to come back to (its hidden field `back`), if that is a page of ours; else the overview.
pub fn way_back(asked: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let ours = ["/tasks/", "/runs/"].iter().any(|page| asked.strip_prefix(page).is_some_and(is_number));
    if ours { asked } else { "/" }
}
