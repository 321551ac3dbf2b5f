//! From what a terminal sends to the keys that were pressed.

use signoff_term::tui::Press;

/// What begins a key of several bytes.
pub const ESCAPE: u8 = 0x1b;

/// No key takes more bytes than this.
const LONGEST: usize = 32;

/// The keys in what was typed, and what is left at its end: the beginning of a character or of a key. `over` says that
/// nothing comes after it: an escape alone is a key then, and the beginning of one is none.
pub fn presses(bytes: &[u8], over: bool) -> (Vec<Press>, Vec<u8>) {
    let (mut found, mut rest) = (Vec::new(), bytes);
    while let Some((&first, more)) = rest.split_first() {
        let (press, left) = match first {
            ESCAPE if !over && is_begun(more) => return (found, rest.to_owned()),
            ESCAPE => escaped(more),
            0x00..0x20 | 0x7f => (control(first), more),
            0x20.. => match character(rest) {
                Some((char, left)) => (Some(Press::Char(char)), left),
                None if is_beginning(rest) => return (found, rest.to_owned()),
                None => (None, more),
            },
        };
        found.extend(press);
        rest = left;
    }
    (found, Vec::new())
}

fn control(byte: u8) -> Option<Press> {
    match byte {
        b'\r' | b'\n' => Some(Press::Enter),
        b'\t' => Some(Press::Tab),
        0x08 | 0x7f => Some(Press::Backspace),
        0x01..=0x1a => Some(Press::Ctrl(char::from(byte - 1 + b'a'))),
        _ => None,
    }
}

/// Whether the end of a key is still to come after its escape.
fn is_begun(rest: &[u8]) -> bool {
    match rest {
        [] | [b'O'] => true,
        [b'[', sequence @ ..] => sequence.len() < LONGEST && !sequence.iter().any(|byte| is_last(*byte)),
        _ => false,
    }
}

/// Whether a byte ends a sequence.
fn is_last(byte: u8) -> bool {
    (0x40..=0x7e).contains(&byte)
}

/// What follows an escape. One alone is a key of its own.
fn escaped(rest: &[u8]) -> (Option<Press>, &[u8]) {
    match rest {
        [b'[', sequence @ ..] => sequence_of(sequence),
        [b'O', last, left @ ..] => (named(&[], *last), left),
        _ => (Some(Press::Esc), rest),
    }
}

/// `5~`, `A`, `1;5C`: numbers, and a last byte that names the key with them.
fn sequence_of(rest: &[u8]) -> (Option<Press>, &[u8]) {
    let length = rest.iter().position(|byte| is_last(*byte));
    let Some((numbers, [last, left @ ..])) = length.and_then(|length| rest.split_at_checked(length)) else {
        return (None, &[]);
    };
    (named(numbers, *last), left)
}

/// Keys that are held with others mean what they mean alone.
fn named(numbers: &[u8], last: u8) -> Option<Press> {
    let number = numbers.split(|byte| *byte == b';').next().unwrap_or_default();
    match (last, number) {
        (b'A', _) => Some(Press::Up),
        (b'B', _) => Some(Press::Down),
        (b'C', _) => Some(Press::Right),
        (b'D', _) => Some(Press::Left),
        (b'H', _) | (b'~', b"1" | b"7") => Some(Press::Home),
        (b'F', _) | (b'~', b"4" | b"8") => Some(Press::End),
        (b'Z', _) => Some(Press::BackTab),
        (b'M', _) => Some(Press::Enter),
        (b'~', b"3") => Some(Press::Delete),
        (b'~', b"5") => Some(Press::PageUp),
        (b'~', b"6") => Some(Press::PageDown),
        _ => None,
    }
}

fn character(bytes: &[u8]) -> Option<(char, &[u8])> {
    (1..=bytes.len().min(4)).find_map(|length| {
        let (head, left) = bytes.split_at_checked(length)?;
        Some((std::str::from_utf8(head).ok()?.chars().next()?, left))
    })
}

/// Whether these bytes are the beginning of a character whose end is still to come.
fn is_beginning(bytes: &[u8]) -> bool {
    bytes.len() < 4 && std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Press> {
        presses(text.as_bytes(), true).0
    }

    #[test]
    fn keys_are_known_by_what_terminals_send() {
        use Press::{
            BackTab, Backspace, Char, Ctrl, Delete, Down, End, Enter, Esc, Home, PageDown, PageUp, Tab, Up,
        };
        assert_eq!(all("q?ü漢"), [Char('q'), Char('?'), Char('ü'), Char('漢')]);
        assert_eq!(all("\r\t\x7f\x03\x1a"), [Enter, Tab, Backspace, Ctrl('c'), Ctrl('z')]);
        assert_eq!(all("\x1b[A\x1bOB\x1b[1;5A"), [Up, Down, Up]);
        assert_eq!(
            all("\x1b[H\x1b[4~\x1b[5~\x1b[6~\x1b[3~\x1b[Z"),
            [Home, End, PageUp, PageDown, Delete, BackTab]
        );
        assert_eq!(all("\x1b"), [Esc]);
        assert_eq!(all("\x1bq"), [Esc, Char('q')]);
        assert_eq!(all("\x1b[200~x\x1b[<0;1;1mj"), [Char('x'), Char('j')]);
    }

    /// However the bytes of keys come, they are the same keys.
    #[test]
    fn a_key_may_come_in_pieces() {
        let typed = b"\x1b[A\x1b[1;5Bq\x1bOC\x1b[6~j";
        for at in 0..typed.len() {
            let (mut found, mut left) = presses(&typed[..at], false);
            left.extend(&typed[at..]);
            found.extend(presses(&left, false).0);
            assert_eq!(found, presses(typed, false).0, "cut at {at}");
        }
        assert_eq!(presses(b"j\x1b", false), (vec![Press::Char('j')], vec![0x1b]));
        assert_eq!(presses(b"\x1b[1;", true), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_character_may_come_in_pieces() {
        let (found, left) = presses(&"aü".as_bytes()[..2], false);
        assert_eq!((found, left), (vec![Press::Char('a')], vec![0xc3]));
        assert_eq!(presses(&[0xff, b'a'], false).0, [Press::Char('a')]);
    }
}
