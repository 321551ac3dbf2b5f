//! Text of unknown origin, made fit for a terminal.

/// Keeps line breaks and tabs; every other control character, and everything that reorders text on the
/// screen, is replaced by something that can be seen.
pub fn visible(text: &str) -> String {
    text.replace("\r\n", "\n").chars().map(visible_char).collect()
}

/// The same on one line: runs of white space become one space.
pub fn one_line(text: &str) -> String {
    visible(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn visible_char(c: char) -> char {
    match c {
        '\n' | '\t' => c,
        // The picture of each control character: ␛ for escape.
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\x7f' => '\u{2421}',
        '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            char::REPLACEMENT_CHARACTER
        }
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_driven_by_what_an_agent_wrote() {
        let text = "red \x1b[31m\u{9b}2J\r\nbell\x07\tdel\x7f \u{202e}txet\u{2066} é 漢";
        insta::assert_snapshot!(visible(text), @"
        red ␛[31m�2J
        bell␇	del␡ �txet� é 漢
        ");
        insta::assert_snapshot!(one_line(" a\r\n\n b\tc "), @"a b c");
    }
}
