//! Parses the key sequences that a terminal sends.

/// A key with a meaning in the dialogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialogueKey {
    Up,
    Down,
    Digit(usize),
    Enter,
    Esc,
}

/// Parses the keys in the input. Sequences of other keys are skipped.
pub fn parse_keys(mut bytes: &[u8]) -> Vec<DialogueKey> {
    let mut keys = Vec::new();
    while let Some((key, rest)) = next(bytes) {
        keys.extend(key);
        bytes = rest;
    }
    keys
}

fn next(bytes: &[u8]) -> Option<(Option<DialogueKey>, &[u8])> {
    match bytes {
        [] => None,
        [0x1b, b'[', rest @ ..] => Some(sequence(rest)),
        [0x1b, b'O', key, rest @ ..] => Some((arrow(*key), rest)),
        [0x1b, rest @ ..] => Some((Some(DialogueKey::Esc), rest)),
        [b'\r' | b'\n', rest @ ..] => Some((Some(DialogueKey::Enter), rest)),
        [digit @ b'1'..=b'9', rest @ ..] => Some((Some(DialogueKey::Digit(usize::from(digit - b'0'))), rest)),
        [_, rest @ ..] => Some((None, rest)),
    }
}

/// Parses an escape sequence up to its final byte. Arrows with a modifier are ignored.
fn sequence(bytes: &[u8]) -> (Option<DialogueKey>, &[u8]) {
    let end = bytes.iter().position(|byte| (b'@'..=b'~').contains(byte));
    match end.and_then(|end| bytes.split_at_checked(end + 1)) {
        Some(([key], rest)) => (arrow(*key), rest),
        Some((_, rest)) => (None, rest),
        None => (None, &[]),
    }
}

fn arrow(key: u8) -> Option<DialogueKey> {
    match key {
        b'A' => Some(DialogueKey::Up),
        b'B' => Some(DialogueKey::Down),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_parsed() {
        assert_eq!(
            parse_keys(b"\x1b[A\x1bOB2\r\n"),
            [DialogueKey::Up, DialogueKey::Down, DialogueKey::Digit(2), DialogueKey::Enter, DialogueKey::Enter]
        );
        assert_eq!(parse_keys(b"\x1b"), [DialogueKey::Esc]);
        assert_eq!(parse_keys(b"\x1b\x1b[B"), [DialogueKey::Esc, DialogueKey::Down]);
    }

    #[test]
    fn unknown_sequences_are_skipped() {
        assert_eq!(parse_keys(b"0abc \t\x7f"), []);
        assert_eq!(parse_keys("ü漢".as_bytes()), []);
        assert_eq!(parse_keys(b"\x1b[1;5A\x1b[15~3"), [DialogueKey::Digit(3)], "Ctrl-Up and F5 hold digits");
        assert_eq!(parse_keys(b"\x1b[20"), [], "cut off");
    }
}
