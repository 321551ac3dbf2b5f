//! From what a terminal sends to the keys that were pressed.

use signoff_term::tui::Press;

/// What begins a key of several bytes.
pub const ESCAPE: u8 = 0x1b;

/// No key takes more bytes than this.
const LONGEST: usize = 32;

/// What stands before and after a text that was pasted.
const BEGIN: &[u8] = b"\x1b[200~";
const END: &[u8] = b"\x1b[201~";

/// From bytes to keys, as far as they have come.
#[derive(Debug, Default)]
pub struct Typing {
    /// The beginning of a character or of a key whose end is still to come.
    rest: Vec<u8>,
    /// Whether what comes was pasted.
    pasting: bool,
}

impl Typing {
    /// Whether a key has begun.
    pub fn has_begun(&self) -> bool {
        self.rest.first() == Some(&ESCAPE)
    }

    pub fn is_pasting(&self) -> bool {
        self.pasting
    }

    /// The end of a paste is not waited for any longer.
    pub fn give_up_paste(&mut self) {
        (self.pasting, self.rest) = (false, Vec::new());
    }

    /// The keys in what was typed. `over` says that nothing comes after it for now: an escape alone is a key then, and the
    /// beginning of one is none.
    pub fn presses(&mut self, typed: &[u8], over: bool) -> Vec<Press> {
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.extend(typed);
        let (mut found, mut rest) = (Vec::new(), bytes.as_slice());
        while !rest.is_empty() {
            let before = rest.len();
            rest =
                if self.pasting { self.pasted(rest, &mut found) } else { self.typed(rest, over, &mut found) };
            if rest.len() == before {
                break;
            }
        }
        self.rest = rest.to_owned();
        found
    }

    /// Takes in one key, or the beginning of a paste. Gives what is left; all of it, where more is to come first.
    fn typed<'a>(&mut self, bytes: &'a [u8], over: bool, found: &mut Vec<Press>) -> &'a [u8] {
        if let Some(left) = bytes.strip_prefix(BEGIN) {
            self.pasting = true;
            return left;
        }
        let Some((&first, more)) = bytes.split_first() else { return bytes };
        let (press, left) = match first {
            ESCAPE if !over && is_begun(more) => return bytes,
            ESCAPE => escaped(more),
            0x00..0x20 | 0x7f => (control(first), more),
            0x20.. => match character(bytes) {
                Some((char, left)) => (Some(Press::Char(char)), left),
                None if is_beginning(bytes) => return bytes,
                None => (None, more),
            },
        };
        found.extend(press);
        left
    }

    /// Takes in one character that was pasted, or the end of it. Lines and gaps become spaces.
    fn pasted<'a>(&mut self, bytes: &'a [u8], found: &mut Vec<Press>) -> &'a [u8] {
        if let Some(left) = bytes.strip_prefix(END) {
            self.pasting = false;
            return left;
        }
        let Some((&first, more)) = bytes.split_first() else { return bytes };
        let (press, left) = match first {
            ESCAPE if END.starts_with(bytes) => return bytes,
            b'\r' | b'\n' | b'\t' => (Some(Press::Pasted(' ')), more),
            0x00..0x20 | 0x7f => (None, more),
            0x20.. => match character(bytes) {
                Some((char, left)) => (Some(Press::Pasted(char)), left),
                None if is_beginning(bytes) => return bytes,
                None => (None, more),
            },
        };
        found.extend(press);
        left
    }
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
        Typing::default().presses(text.as_bytes(), true)
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
        assert_eq!(all("\x1b[15~x\x1b[<0;1;1mj"), [Char('x'), Char('j')]);
    }

    /// However the bytes of keys come, they are the same keys.
    #[test]
    fn a_key_may_come_in_pieces() {
        let typed = "\x1b[A\x1b[1;5Bq\x1bOC\x1b[6~j\x1b[200~a\r\nü\x1b[A\x1b[201~kü".as_bytes();
        let whole = Typing::default().presses(typed, false);
        for at in 0..typed.len() {
            let mut typing = Typing::default();
            let mut found = typing.presses(&typed[..at], false);
            found.extend(typing.presses(&typed[at..], false));
            assert_eq!(found, whole, "cut at {at}");
        }
        let mut typing = Typing::default();
        assert_eq!(typing.presses(b"j\x1b", false), [Press::Char('j')]);
        assert!(typing.has_begun());
        assert_eq!(typing.presses(b"[1;", true), []);
    }

    #[test]
    fn what_is_pasted_is_text_and_never_a_key() {
        use Press::{Char, Pasted};
        let pasted = all("c\x1b[200~y\ncq\x03\x1b[201~q");
        assert_eq!(pasted, [Char('c'), Pasted('y'), Pasted(' '), Pasted('c'), Pasted('q'), Char('q')]);
        let mut typing = Typing::default();
        assert_eq!(typing.presses(b"\x1b[200~a\x1b[20", true), [Pasted('a')]);
        assert!(typing.is_pasting());
        typing.give_up_paste();
        assert_eq!(typing.presses(b"q", false), [Char('q')]);
    }

    #[test]
    fn a_character_may_come_in_pieces() {
        let mut typing = Typing::default();
        assert_eq!(typing.presses(&"aü".as_bytes()[..2], false), [Press::Char('a')]);
        assert_eq!(typing.presses(&"ü".as_bytes()[1..], false), [Press::Char('ü')]);
        assert_eq!(Typing::default().presses(&[0xff, b'a'], false), [Press::Char('a')]);
    }
}
