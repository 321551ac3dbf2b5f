//! Removes secrets from a stream that arrives in pieces.

use std::sync::Arc;

use super::{PLACEHOLDER, Secrets};

/// Removes secrets from one byte stream. It holds back only a possible start of a secret, which is at most as long as
/// the longest one.
#[derive(Debug)]
pub struct Redactor {
    patterns: Arc<Vec<Vec<u8>>>,
    /// The bytes that a secret can begin with.
    first: [bool; 256],
    held: Vec<u8>,
}

/// The result of matching the secrets at one position.
enum PatternMatch {
    None,
    /// A secret of this length.
    Secret(usize),
    /// The start of a secret, if the next bytes match.
    Partial,
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

    /// Processes more bytes, and writes those that are decided.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.process(bytes, false, out);
    }

    /// Ends the stream: the held bytes are not a secret.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.process(&[], true, out);
    }

    fn process(&mut self, bytes: &[u8], is_end: bool, out: &mut Vec<u8>) {
        if self.patterns.is_empty() {
            out.extend_from_slice(bytes);
            return;
        }
        // Usually nothing is held back, and nothing is copied.
        let held = std::mem::take(&mut self.held);
        let joined = if held.is_empty() { None } else { Some([held.as_slice(), bytes].concat()) };
        let mut rest = joined.as_deref().unwrap_or(bytes);
        loop {
            let begins = |byte: &u8| self.first.get(usize::from(*byte)).copied().unwrap_or(false);
            let (plain, from) = rest.split_at(rest.iter().position(begins).unwrap_or(rest.len()));
            out.extend_from_slice(plain);
            let Some((byte, behind)) = from.split_first() else { return };
            rest = match self.match_at(from, is_end) {
                PatternMatch::None => {
                    out.push(*byte);
                    behind
                }
                PatternMatch::Secret(length) => {
                    out.extend_from_slice(PLACEHOLDER.as_bytes());
                    from.get(length..).unwrap_or_default()
                }
                PatternMatch::Partial => {
                    self.held = from.to_vec();
                    return;
                }
            };
        }
    }

    /// Matches the longest secret at the start. The patterns are sorted, longest first.
    fn match_at(&self, text: &[u8], is_end: bool) -> PatternMatch {
        for pattern in self.patterns.iter() {
            if text.starts_with(pattern) {
                return PatternMatch::Secret(pattern.len());
            }
            if !is_end && text.len() < pattern.len() && pattern.starts_with(text) {
                return PatternMatch::Partial;
            }
        }
        PatternMatch::None
    }
}
