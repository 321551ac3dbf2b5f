//! Shortens texts for messages.

/// The first `max` characters of a text, with an ellipsis if there are more.
pub fn shortened(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
