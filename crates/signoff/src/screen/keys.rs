//! Reads keys from the terminal and parses the bytes that it sends.
//!
//! Crossterm's reader is not used: it spins on a hung-up terminal and cannot be cancelled.

use std::io::{self, Stdin};
use std::os::fd::AsFd;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long to wait for the rest of an escape sequence. An escape alone is a key.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(50);

/// Number of empty reads after which the end of a paste is no longer awaited.
const MAX_EMPTY_READS: u32 = 60;

/// Reads keys from stdin.
#[derive(Debug, Default)]
pub struct KeyReader {
    parser: KeyParser,
    /// Number of consecutive empty reads during a paste.
    empty_reads: u32,
}

impl KeyReader {
    /// Waits at most `longest` for keys and pasted characters. Returns `None` if the terminal is gone. The process must
    /// be in the foreground: reading in the background stops it.
    pub fn wait(&mut self, longest: Duration) -> Option<Vec<TerminalInput>> {
        let stdin = io::stdin();
        let is_partial = self.parser.is_incomplete();
        let over = !has_input(&stdin, if is_partial { ESCAPE_TIMEOUT } else { longest });
        self.empty_reads = if over && self.parser.pasting { self.empty_reads + 1 } else { 0 };
        if self.empty_reads > MAX_EMPTY_READS {
            self.parser.give_up_paste();
        }
        match over {
            true if is_partial => Some(self.parser.parse(&[], true)),
            true => Some(Vec::new()),
            false => Some(self.parser.parse(&read_available(&stdin)?, false)),
        }
    }
}

/// Reads the available bytes. Returns `None` if the terminal is gone.
fn read_available(stdin: &Stdin) -> Option<Vec<u8>> {
    let mut buffer = [0; 1024];
    let length = rustix::io::read(stdin.as_fd(), &mut buffer).ok().filter(|length| *length > 0)?;
    buffer.get(..length).map(<[u8]>::to_vec)
}

fn has_input(stdin: &Stdin, longest: Duration) -> bool {
    let longest = Timespec { tv_sec: 0, tv_nsec: longest.subsec_nanos().into() };
    let mut fds = [PollFd::new(stdin, PollFlags::IN)];
    poll(&mut fds, Some(&longest)).is_ok_and(|ready| ready > 0)
}

/// The first byte of an escape sequence.
const ESCAPE: u8 = 0x1b;

/// Maximum length of an escape sequence.
const MAX_SEQUENCE: usize = 32;

/// The sequences before and after pasted text (bracketed paste).
const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// A key, or a character of pasted text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalInput {
    Key(KeyEvent),
    Pasted(char),
}

/// An incremental parser from bytes to keys.
#[derive(Debug, Default)]
struct KeyParser {
    /// An incomplete character or escape sequence.
    rest: Vec<u8>,
    /// Whether the parser is inside pasted text.
    pasting: bool,
}

impl KeyParser {
    /// Whether an escape sequence is incomplete.
    fn is_incomplete(&self) -> bool {
        self.rest.first() == Some(&ESCAPE)
    }

    /// Stops waiting for the end of a paste.
    fn give_up_paste(&mut self) {
        (self.pasting, self.rest) = (false, Vec::new());
    }

    /// Returns the keys in `typed`. `over` means that no more input is available: an escape alone is then a key, and an
    /// incomplete sequence is dropped.
    fn parse(&mut self, typed: &[u8], over: bool) -> Vec<TerminalInput> {
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.extend(typed);
        let (mut found, mut rest) = (Vec::new(), bytes.as_slice());
        while !rest.is_empty() {
            let before = rest.len();
            rest =
                if self.pasting { self.parse_pasted(rest, &mut found) } else { self.parse_key(rest, over, &mut found) };
            if rest.len() == before {
                break;
            }
        }
        self.rest = rest.to_owned();
        found
    }

    /// Parses one key or the start of a paste. Returns the remaining bytes; all of them if more input is needed.
    fn parse_key<'a>(&mut self, bytes: &'a [u8], over: bool, found: &mut Vec<TerminalInput>) -> &'a [u8] {
        if let Some(left) = bytes.strip_prefix(PASTE_START) {
            self.pasting = true;
            return left;
        }
        let Some((&first, more)) = bytes.split_first() else { return bytes };
        let (input, left) = match first {
            ESCAPE if !over && is_partial_sequence(more) => return bytes,
            ESCAPE => parse_escape(more),
            0x00..0x20 | 0x7f => (control_key(first), more),
            0x20.. => match parse_char(bytes) {
                Some((char, left)) => (Some(KeyCode::Char(char).into()), left),
                None if is_partial_char(bytes) => return bytes,
                None => (None, more),
            },
        };
        found.extend(input.map(TerminalInput::Key));
        left
    }

    /// Parses one pasted character or the end of a paste. Line breaks and tabs become spaces.
    fn parse_pasted<'a>(&mut self, bytes: &'a [u8], found: &mut Vec<TerminalInput>) -> &'a [u8] {
        if let Some(left) = bytes.strip_prefix(PASTE_END) {
            self.pasting = false;
            return left;
        }
        let Some((&first, more)) = bytes.split_first() else { return bytes };
        let (input, left) = match first {
            ESCAPE if PASTE_END.starts_with(bytes) => return bytes,
            b'\r' | b'\n' | b'\t' => (Some(' '), more),
            0x00..0x20 | 0x7f => (None, more),
            0x20.. => match parse_char(bytes) {
                Some((char, left)) => (Some(char), left),
                None if is_partial_char(bytes) => return bytes,
                None => (None, more),
            },
        };
        found.extend(input.map(TerminalInput::Pasted));
        left
    }
}

fn control_key(byte: u8) -> Option<KeyEvent> {
    match byte {
        b'\r' | b'\n' => Some(KeyCode::Enter.into()),
        b'\t' => Some(KeyCode::Tab.into()),
        0x08 | 0x7f => Some(KeyCode::Backspace.into()),
        0x01..=0x1a => Some(KeyEvent::new(KeyCode::Char(char::from(byte - 1 + b'a')), KeyModifiers::CONTROL)),
        _ => None,
    }
}

/// Whether the sequence after an escape is incomplete.
fn is_partial_sequence(rest: &[u8]) -> bool {
    match rest {
        [] | [b'O'] => true,
        [b'[', sequence @ ..] => sequence.len() < MAX_SEQUENCE && !sequence.iter().any(|byte| is_final_byte(*byte)),
        _ => false,
    }
}

/// Whether a byte ends a sequence.
fn is_final_byte(byte: u8) -> bool {
    (0x40..=0x7e).contains(&byte)
}

/// Parses what follows an escape. An escape alone is a key.
fn parse_escape(rest: &[u8]) -> (Option<KeyEvent>, &[u8]) {
    match rest {
        [b'[', sequence @ ..] => parse_csi(sequence),
        [b'O', last, left @ ..] => (csi_key(&[], *last).map(KeyEvent::from), left),
        _ => (Some(KeyCode::Esc.into()), rest),
    }
}

/// Parses a CSI sequence such as `5~`, `A` or `1;5C`: parameters and a final byte.
fn parse_csi(rest: &[u8]) -> (Option<KeyEvent>, &[u8]) {
    let length = rest.iter().position(|byte| is_final_byte(*byte));
    let Some((numbers, [last, left @ ..])) = length.and_then(|length| rest.split_at_checked(length)) else {
        return (None, &[]);
    };
    (csi_key(numbers, *last).map(KeyEvent::from), left)
}

/// The key of a sequence. Modifiers are ignored.
fn csi_key(numbers: &[u8], last: u8) -> Option<KeyCode> {
    let number = numbers.split(|byte| *byte == b';').next().unwrap_or_default();
    match (last, number) {
        (b'A', _) => Some(KeyCode::Up),
        (b'B', _) => Some(KeyCode::Down),
        (b'C', _) => Some(KeyCode::Right),
        (b'D', _) => Some(KeyCode::Left),
        (b'H', _) | (b'~', b"1" | b"7") => Some(KeyCode::Home),
        (b'F', _) | (b'~', b"4" | b"8") => Some(KeyCode::End),
        (b'Z', _) => Some(KeyCode::BackTab),
        (b'M', _) => Some(KeyCode::Enter),
        (b'~', b"3") => Some(KeyCode::Delete),
        (b'~', b"5") => Some(KeyCode::PageUp),
        (b'~', b"6") => Some(KeyCode::PageDown),
        _ => None,
    }
}

fn parse_char(bytes: &[u8]) -> Option<(char, &[u8])> {
    (1..=bytes.len().min(4)).find_map(|length| {
        let (head, left) = bytes.split_at_checked(length)?;
        Some((std::str::from_utf8(head).ok()?.chars().next()?, left))
    })
}

/// Whether these bytes are an incomplete UTF-8 character.
fn is_partial_char(bytes: &[u8]) -> bool {
    bytes.len() < 4 && std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<TerminalInput> {
        KeyParser::default().parse(text.as_bytes(), true)
    }

    fn keys(codes: &[KeyCode]) -> Vec<TerminalInput> {
        codes.iter().map(|code| TerminalInput::Key((*code).into())).collect()
    }

    fn control(letter: char) -> TerminalInput {
        TerminalInput::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL))
    }

    #[test]
    fn keys_are_parsed_from_terminal_sequences() {
        use KeyCode::{BackTab, Backspace, Char, Delete, Down, End, Enter, Esc, Home, PageDown, PageUp, Tab, Up};
        assert_eq!(all("q?ü漢"), keys(&[Char('q'), Char('?'), Char('ü'), Char('漢')]));
        assert_eq!(all("\r\t\x7f"), keys(&[Enter, Tab, Backspace]));
        assert_eq!(all("\x03\x1a"), [control('c'), control('z')]);
        assert_eq!(all("\x1b[A\x1bOB\x1b[1;5A"), keys(&[Up, Down, Up]));
        assert_eq!(
            all("\x1b[H\x1b[4~\x1b[5~\x1b[6~\x1b[3~\x1b[Z"),
            keys(&[Home, End, PageUp, PageDown, Delete, BackTab])
        );
        assert_eq!(all("\x1b"), keys(&[Esc]));
        assert_eq!(all("\x1bq"), keys(&[Esc, Char('q')]));
        assert_eq!(all("\x1b[15~x\x1b[<0;1;1mj"), keys(&[Char('x'), Char('j')]));
    }

    /// The parsed keys do not depend on how the bytes are split.
    #[test]
    fn a_key_may_be_split_over_several_reads() {
        let typed = "\x1b[A\x1b[1;5Bq\x1bOC\x1b[6~j\x1b[200~a\r\nü\x1b[A\x1b[201~kü".as_bytes();
        let whole = KeyParser::default().parse(typed, false);
        for at in 0..typed.len() {
            let mut typing = KeyParser::default();
            let mut found = typing.parse(&typed[..at], false);
            found.extend(typing.parse(&typed[at..], false));
            assert_eq!(found, whole, "cut at {at}");
        }
        let mut typing = KeyParser::default();
        assert_eq!(typing.parse(b"j\x1b", false), keys(&[KeyCode::Char('j')]));
        assert!(typing.is_incomplete());
        assert_eq!(typing.parse(b"[1;", true), []);
    }

    #[test]
    fn pasted_text_is_never_a_key() {
        use TerminalInput::Pasted;
        let pasted = all("c\x1b[200~y\ncq\x03\x1b[201~q");
        let key = |letter| TerminalInput::Key(KeyCode::Char(letter).into());
        assert_eq!(pasted, [key('c'), Pasted('y'), Pasted(' '), Pasted('c'), Pasted('q'), key('q')]);
        let mut typing = KeyParser::default();
        assert_eq!(typing.parse(b"\x1b[200~a\x1b[20", true), [Pasted('a')]);
        assert!(typing.pasting);
        typing.give_up_paste();
        assert_eq!(typing.parse(b"q", false), [key('q')]);
    }

    #[test]
    fn a_character_may_be_split_over_several_reads() {
        let mut typing = KeyParser::default();
        assert_eq!(typing.parse(&"aü".as_bytes()[..2], false), keys(&[KeyCode::Char('a')]));
        assert_eq!(typing.parse(&"ü".as_bytes()[1..], false), keys(&[KeyCode::Char('ü')]));
        assert_eq!(KeyParser::default().parse(&[0xff, b'a'], false), keys(&[KeyCode::Char('a')]));
    }
}
