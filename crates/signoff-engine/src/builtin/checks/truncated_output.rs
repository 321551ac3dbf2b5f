//! Keeps the start and the end of an output of any size.

/// The start and the end of an output.
#[derive(Debug)]
pub(super) struct TruncatedOutput {
    half: usize,
    head: Vec<u8>,
    tail: Vec<u8>,
    omitted_bytes: usize,
}

impl TruncatedOutput {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { half: max_bytes / 2, head: Vec::new(), tail: Vec::new(), omitted_bytes: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let to_head = bytes.len().min(self.half - self.head.len());
        self.head.extend_from_slice(&bytes[..to_head]);
        self.tail.extend_from_slice(&bytes[to_head..]);
        // Cutting rarely avoids moving the tail for every few bytes.
        if self.tail.len() > 2 * self.half {
            self.cut_tail();
        }
    }

    fn cut_tail(&mut self) {
        let over = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..over);
        self.omitted_bytes += over;
    }

    /// The text, or its start and end if it would exceed `room` bytes of JSON.
    pub(super) fn into_text(mut self, budget: usize) -> String {
        self.cut_tail();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (head, tail) = if self.omitted_bytes > 0 {
            (text(&self.head), text(&self.tail))
        } else {
            // Joined before decoding, because a character may span both parts.
            let mut whole = text(&[self.head.as_slice(), &self.tail].concat());
            if json_len(&whole) <= budget {
                return whole;
            }
            let tail = whole.split_off(fitting_bytes(whole.chars(), budget / 2));
            (whole, tail)
        };
        let start = &head[..fitting_bytes(head.chars(), budget / 2)];
        let end = &tail[tail.len() - fitting_bytes(tail.chars().rev(), budget / 2)..];
        let left_out = self.omitted_bytes + head.len() - start.len() + tail.len() - end.len();
        format!("{start}\n[{left_out} bytes left out]\n{end}")
    }
}

/// The length of a text as a JSON string, without the quotes.
pub(super) fn json_len(text: &str) -> usize {
    text.chars().map(json_char_len).sum()
}

/// The number of bytes of these characters that fit into `room` bytes of JSON.
fn fitting_bytes(characters: impl Iterator<Item = char>, budget: usize) -> usize {
    let mut taken = 0;
    let fits = |one: &char| {
        taken += json_char_len(*one);
        taken <= budget
    };
    characters.take_while(fits).map(char::len_utf8).sum()
}

fn json_char_len(one: char) -> usize {
    match one {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..' ' => 6,
        _ => one.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{TruncatedOutput, json_len};

    fn kept(most: usize, chunks: &[&str]) -> String {
        let mut kept = TruncatedOutput::new(most);
        chunks.iter().for_each(|chunk| kept.push(chunk.as_bytes()));
        kept.into_text(400)
    }

    #[test]
    fn the_middle_is_left_out_and_counted() {
        assert_eq!(kept(8, &["abcd", "efgh"]), "abcdefgh");
        assert_eq!(kept(8, &["abcdef", "ghijklmnopq", "rstuvwxyz"]), "abcd\n[18 bytes left out]\nwxyz");
    }

    proptest! {
        #[test]
        fn output_that_fits_is_complete_for_any_chunks(text in ".{0,40}", cut in 0..40_usize) {
            let bytes = text.as_bytes();
            let (a, b) = bytes.split_at(cut.min(bytes.len()));
            let mut kept = TruncatedOutput::new(400);
            kept.push(a);
            kept.push(b);
            prop_assert_eq!(kept.into_text(400), text);
        }

        #[test]
        fn json_len_is_the_serialized_length(text in any::<String>()) {
            prop_assert_eq!(serde_json::to_string(&text).unwrap().len(), json_len(&text) + 2);
        }

        #[test]
        fn output_never_exceeds_the_available_room(bytes in any::<Vec<u8>>(), most in 0..60_usize, room in 0..60_usize) {
            let mut kept = TruncatedOutput::new(most);
            kept.push(&bytes);
            let text = kept.into_text(room);
            let note = text.split_inclusive('\n').filter(|line| line.ends_with(" bytes left out]\n"));
            let note: usize = note.map(json_len).sum();
            prop_assert!(json_len(&text) <= room + note + 2, "{text:?}");
        }
    }
}
