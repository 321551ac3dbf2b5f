//! Keys, as a terminal sends them.

/// A key that means something in a dialogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Up,
    Down,
    Digit(usize),
    Enter,
    Esc,
}

/// The keys in what a terminal sent at once. Keys that mean nothing are passed over, with all they consist of.
pub fn keys(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let Some((key, rest)) = next(bytes) {
        keys.extend(key);
        bytes = rest;
    }
    keys
}

fn next(bytes: &[u8]) -> Option<(Option<Key>, &[u8])> {
    match bytes {
        [] => None,
        [0x1b, b'[', rest @ ..] => Some(sequence(rest)),
        [0x1b, b'O', key, rest @ ..] => Some((arrow(*key), rest)),
        [0x1b, rest @ ..] => Some((Some(Key::Esc), rest)),
        [b'\r' | b'\n', rest @ ..] => Some((Some(Key::Enter), rest)),
        [digit @ b'1'..=b'9', rest @ ..] => Some((Some(Key::Digit(usize::from(digit - b'0'))), rest)),
        [_, rest @ ..] => Some((None, rest)),
    }
}

/// Up to the byte that ends it. An arrow that is held together with another key is no arrow.
fn sequence(bytes: &[u8]) -> (Option<Key>, &[u8]) {
    let end = bytes.iter().position(|byte| (b'@'..=b'~').contains(byte));
    match end.and_then(|end| bytes.split_at_checked(end + 1)) {
        Some(([key], rest)) => (arrow(*key), rest),
        Some((_, rest)) => (None, rest),
        None => (None, &[]),
    }
}

fn arrow(key: u8) -> Option<Key> {
    match key {
        b'A' => Some(Key::Up),
        b'B' => Some(Key::Down),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        assert_eq!(keys(b"\x1b[A\x1bOB2\r\n"), [Key::Up, Key::Down, Key::Digit(2), Key::Enter, Key::Enter]);
        assert_eq!(keys(b"\x1b"), [Key::Esc]);
        assert_eq!(keys(b"\x1b\x1b[B"), [Key::Esc, Key::Down]);
    }

    #[test]
    fn what_means_nothing_is_passed_over_as_a_whole() {
        assert_eq!(keys(b"0abc \t\x7f"), []);
        assert_eq!(keys("ü漢".as_bytes()), []);
        assert_eq!(keys(b"\x1b[1;5A\x1b[15~3"), [Key::Digit(3)], "Ctrl-Up and F5 hold digits");
        assert_eq!(keys(b"\x1b[20"), [], "cut off");
    }
}
