//! Takes secrets out of what comes in pieces, however it is cut.

use std::sync::Arc;

use super::{MARK, Secrets};

/// One stream of bytes. Holds back what may become a secret, and never more than the longest of them.
#[derive(Debug)]
pub struct Redactor {
    patterns: Arc<Vec<Vec<u8>>>,
    /// Which bytes a secret can begin with.
    first: [bool; 256],
    held: Vec<u8>,
}

/// What begins at some place.
enum Here {
    Nothing,
    /// So many bytes of a secret.
    Secret(usize),
    /// What follows decides.
    Perhaps,
}

impl Redactor {
    pub fn new(secrets: &Secrets) -> Self {
        let mut first = [false; 256];
        for byte in secrets.patterns.iter().filter_map(|pattern| pattern.first()) {
            if let Some(known) = first.get_mut(usize::from(*byte)) {
                *known = true;
            }
        }
        Self { patterns: secrets.patterns.clone(), first, held: Vec::new() }
    }

    /// Takes more, and gives what can be told by now.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.take(bytes, false, out);
    }

    /// There is no more: what was held back is no secret.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.take(&[], true, out);
    }

    fn take(&mut self, bytes: &[u8], is_end: bool, out: &mut Vec<u8>) {
        if self.patterns.is_empty() {
            out.extend_from_slice(bytes);
            return;
        }
        // Most of the time nothing is held, and nothing is copied.
        let held = std::mem::take(&mut self.held);
        let joined = if held.is_empty() { None } else { Some([held.as_slice(), bytes].concat()) };
        let mut rest = joined.as_deref().unwrap_or(bytes);
        loop {
            let begins = |byte: &u8| self.first.get(usize::from(*byte)).copied().unwrap_or(false);
            let (plain, from) = rest.split_at(rest.iter().position(begins).unwrap_or(rest.len()));
            out.extend_from_slice(plain);
            let Some((byte, behind)) = from.split_first() else { return };
            rest = match self.here(from, is_end) {
                Here::Nothing => {
                    out.push(*byte);
                    behind
                }
                Here::Secret(length) => {
                    out.extend_from_slice(MARK.as_bytes());
                    from.get(length..).unwrap_or_default()
                }
                Here::Perhaps => {
                    self.held = from.to_vec();
                    return;
                }
            };
        }
    }

    /// The longest secret that begins here. The patterns are sorted, the longest first.
    fn here(&self, text: &[u8], is_end: bool) -> Here {
        for pattern in self.patterns.iter() {
            if text.starts_with(pattern) {
                return Here::Secret(pattern.len());
            }
            if !is_end && text.len() < pattern.len() && pattern.starts_with(text) {
                return Here::Perhaps;
            }
        }
        Here::Nothing
    }
}
