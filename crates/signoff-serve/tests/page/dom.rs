//! Parses pages with an HTML parser that follows the browser's rules.

use std::collections::BTreeMap;

use scraper::{ElementRef, Html, Node, Selector};

pub fn parse(html: &str) -> Html {
    Html::parse_document(html)
}

/// Returns all elements that match a selector.
pub fn all<'a>(page: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    page.select(&Selector::parse(selector).expect(selector)).collect()
}

/// Returns the text of an element, on one line.
pub fn words(element: ElementRef) -> String {
    element.text().flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// Lists the elements of a page with their attribute names, and the values of attributes that hold no text.
pub fn skeleton(page: &Html) -> Vec<String> {
    let elements = page.tree.values().filter_map(Node::as_element);
    let shown = |element: &scraper::node::Element| {
        let attributes: Vec<_> = element.attrs().map(|(name, _)| name.to_owned()).collect();
        format!("{} {}", element.name(), attributes.join(" "))
    };
    elements.map(shown).collect()
}

/// Lists violations of the content security policy and of accessibility rules.
pub fn faults(page: &Html) -> Vec<String> {
    let mut faults = Vec::new();
    let mut ids: BTreeMap<String, u32> = BTreeMap::new();
    for element in all(page, "*") {
        let (name, value) = (element.value().name(), element.value());
        for (attribute, text) in value.attrs() {
            if attribute.starts_with("on") || attribute == "style" || text.trim().starts_with("javascript:") {
                faults.push(format!("<{name} {attribute}={text}>"));
            }
        }
        ids.extend(value.id().map(|id| (id.to_owned(), 0)).filter(|(id, _)| !ids.contains_key(id)));
        if let Some(count) = value.id().and_then(|id| ids.get_mut(id)) {
            *count += 1;
        }
        if name == "script" && (value.attr("src") != Some("/assets/live.js") || !words(element).is_empty()) {
            faults.push("another script".to_owned());
        }
    }
    faults.extend(ids.iter().filter(|(_, count)| **count > 1).map(|(id, _)| format!("id {id} twice")));
    faults.extend(unlabeled_controls(page));
    faults.extend(dangling_references(page));
    faults.extend(headings(page));
    faults
}

/// Lists controls without a label.
fn unlabeled_controls(page: &Html) -> Vec<String> {
    let labels: Vec<String> =
        all(page, "label").iter().filter_map(|label| label.value().attr("for").map(str::to_owned)).collect();
    let controls = all(page, "input:not([type=hidden]), select, textarea");
    let bare =
        controls.iter().filter(|control| !control.value().id().is_some_and(|id| labels.iter().any(|of| of == id)));
    let bare = bare.map(|control| format!("no label: {}", control.html()));
    let buttons = all(page, "button, summary, a").into_iter().filter(|button| words(*button).is_empty());
    bare.chain(buttons.map(|button| format!("no name: {}", button.html()))).collect()
}

/// Lists references to ids that the page does not have.
fn dangling_references(page: &Html) -> Vec<String> {
    let ids: Vec<&str> = all(page, "[id]").iter().filter_map(|element| element.value().id()).collect();
    let named = ["for", "aria-labelledby", "aria-describedby"].into_iter().flat_map(|attribute| {
        let those = all(page, &format!("[{attribute}]"));
        those.into_iter().flat_map(move |element| {
            let value = element.value().attr(attribute).unwrap_or_default();
            value.split(' ').map(str::to_owned).collect::<Vec<_>>()
        })
    });
    let linked = all(page, "a[href^='#']");
    let linked = linked.iter().filter_map(|link| Some(link.value().attr("href")?.trim_start_matches('#').to_owned()));
    named.chain(linked).filter(|id| !ids.contains(&id.as_str())).map(|id| format!("nothing has the id {id}")).collect()
}

/// Checks that headings start at level 1 and skip no level.
fn headings(page: &Html) -> Vec<String> {
    let levels: Vec<u8> = all(page, "h1, h2, h3, h4, h5")
        .iter()
        .filter_map(|heading| heading.value().name().as_bytes().get(1).copied())
        .map(|digit| digit - b'0')
        .collect();
    let mut faults = Vec::new();
    if levels.iter().filter(|level| **level == 1).count() != 1 || levels.first() != Some(&1) {
        faults.push(format!("headings {levels:?}"));
    }
    let skips = levels.windows(2).filter(|pair| pair[1] > pair[0] + 1);
    faults.extend(skips.map(|pair| format!("heading {} after {}", pair[1], pair[0])));
    faults
}
