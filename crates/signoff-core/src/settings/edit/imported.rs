//! What a file of another program says, as changes.

use toml_edit::{Document, Item};

use super::super::Layer;
use super::KeyChange;

/// What a translated file of another program says, each with a comment that tells where it stood.
pub fn imported(layer: &Layer) -> Vec<KeyChange> {
    let Ok(document) = Document::parse(layer.text()) else { return Vec::new() };
    let mut changes = Vec::new();
    gather(document.as_item(), &mut Vec::new(), layer, &mut changes);
    changes
}

fn gather(item: &Item, key: &mut Vec<String>, layer: &Layer, changes: &mut Vec<KeyChange>) {
    if let Item::Value(value) = item
        && !value.is_inline_table()
    {
        let offset = value.span().map_or(0, |span| span.start);
        let spot = layer.spot(layer.text().get(..offset).unwrap_or_default().matches('\n').count() + 1);
        let note = Some(format!("{}:{}", spot.file, spot.line));
        let text = value.span().and_then(|span| layer.text().get(span)).unwrap_or_default();
        changes.extend(text.parse().ok().map(|value| KeyChange { key: key.clone(), value, note }));
        return;
    }
    for (name, inside) in item.as_table_like().into_iter().flat_map(|table| table.iter()) {
        key.push(name.to_owned());
        gather(inside, key, layer, changes);
        key.pop();
    }
}
