//! Makes untrusted text safe for a terminal.

use serde::Serialize;

/// Keeps line breaks and tabs. Replaces all other control characters, and invisible or reordering characters, by
/// visible ones.
pub fn visible(text: &str) -> String {
    text.replace("\r\n", "\n").chars().map(visible_char).collect()
}

/// The same on one line: runs of white space become one space.
pub fn one_line(text: &str) -> String {
    visible(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `file:line`, or only the file.
pub fn location(file: &str, line: Option<u32>) -> String {
    line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"))
}

fn visible_char(c: char) -> char {
    match c {
        '\n' | '\t' => c,
        // The symbol of each control character: ␛ for escape.
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\x7f' => '\u{2421}',
        '\u{80}'..='\u{9f}' => char::REPLACEMENT_CHARACTER,
        _ if is_misleading(c) => char::REPLACEMENT_CHARACTER,
        _ => c,
    }
}

/// Whether a character reorders text or is invisible. Characters that join letters and emoji are legitimate and not
/// included.
pub fn is_misleading(c: char) -> bool {
    let reorders = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let hides = matches!(c, '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    reorders || hides
}

/// A JSON document over several lines, followed by one line break.
pub fn json_document(value: &impl Serialize) -> String {
    escaped_json(&serde_json::to_string_pretty(value).expect("plain data always serialises")) + "\n"
}

/// Escapes control characters in a JSON document with `\\u`. Only strings can contain them, so the document stays
/// equivalent.
pub fn escaped_json(json: &str) -> String {
    let units = |c: char| c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect();
    escaped(json, units)
}

/// The same for XML, with character references. Only text and attributes can contain such characters.
pub fn escaped_xml(xml: &str) -> String {
    escaped(xml, |c| format!("&#x{:X};", u32::from(c)))
}

fn escaped(text: &str, escape: impl Fn(char) -> String) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        // JSON and XML allow these characters, which control a terminal or mislead a reader.
        if matches!(c, '\x7f'..='\u{9f}') || is_misleading(c) {
            escaped.push_str(&escape(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_of_agents_are_made_visible() {
        let text = "red \x1b[31m\u{9b}2J\r\nbell\x07\tdel\x7f \u{202e}txet\u{2066} é 漢";
        insta::assert_snapshot!(visible(text), @"
        red ␛[31m�2J
        bell␇	del␡ �txet� é 漢
        ");
        insta::assert_snapshot!(escaped_json("\"\u{9b}2J\u{202e}x\u{200f}é\""), @r#""\u009b2J\u202ex\u200fé""#);
        insta::assert_snapshot!(escaped_xml("<a>\u{9b}2J\u{202e}x\u{7f}é</a>"), @r#"<a>&#x9B;2J&#x202E;x&#x7F;é</a>"#);
        insta::assert_snapshot!(one_line(" a\r\n\n b\tc "), @"a b c");
    }

    #[test]
    fn invisible_characters_are_shown_and_joiners_are_kept() {
        let hidden = "a\u{200b}b\u{feff}c\u{2028}d\u{61c}e\u{200f}f\u{e0041}g";
        insta::assert_snapshot!(visible(hidden), @"a�b�c�d�e�f�g");
        let json = escaped_json(&serde_json::Value::from(hidden).to_string());
        insta::assert_snapshot!(json, @r#""a\u200bb\ufeffc\u2028d\u061ce\u200ff\udb40\udc41g""#);
        assert_eq!(serde_json::from_str::<String>(&json).expect("a string"), hidden);
        let honest = "👩\u{200d}💻 می\u{200c}خواهم";
        assert_eq!(visible(honest), honest);
    }
}
