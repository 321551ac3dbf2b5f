//! The start and the end of an output of any size.

/// What is kept of an output: no more than it was told to.
#[derive(Debug)]
pub(super) struct Kept {
    half: usize,
    head: Vec<u8>,
    tail: Vec<u8>,
    left_out: usize,
}

impl Kept {
    pub(super) fn new(most: usize) -> Self {
        Self { half: most / 2, head: Vec::new(), tail: Vec::new(), left_out: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let to_head = bytes.len().min(self.half - self.head.len());
        self.head.extend_from_slice(&bytes[..to_head]);
        self.tail.extend_from_slice(&bytes[to_head..]);
        // Only now and then: the tail is not moved for every few bytes.
        if self.tail.len() > 2 * self.half {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let over = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..over);
        self.left_out += over;
    }

    /// All of it as text, or its start and its end, so that it takes no more room in JSON.
    pub(super) fn into_text(mut self, room: usize) -> String {
        self.cut();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (head, tail) = if self.left_out > 0 {
            (text(&self.head), text(&self.tail))
        } else {
            // Joined first: a character may lie across the seam.
            let mut whole = text(&[self.head.as_slice(), &self.tail].concat());
            if escaped(&whole) <= room {
                return whole;
            }
            let tail = whole.split_off(fitting(whole.chars(), room / 2));
            (whole, tail)
        };
        let start = &head[..fitting(head.chars(), room / 2)];
        let end = &tail[tail.len() - fitting(tail.chars().rev(), room / 2)..];
        let left_out = self.left_out + head.len() - start.len() + tail.len() - end.len();
        format!("{start}\n[{left_out} bytes left out]\n{end}")
    }
}

/// How long a text is as a JSON string, without the quotes.
pub(super) fn escaped(text: &str) -> usize {
    text.chars().map(cost).sum()
}

/// How many bytes of these characters, in their order, fit into so much JSON.
fn fitting(characters: impl Iterator<Item = char>, room: usize) -> usize {
    let mut taken = 0;
    let fits = |one: &char| {
        taken += cost(*one);
        taken <= room
    };
    characters.take_while(fits).map(char::len_utf8).sum()
}

fn cost(one: char) -> usize {
    match one {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..' ' => 6,
        _ => one.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Kept, escaped};

    fn kept(most: usize, chunks: &[&str]) -> String {
        let mut kept = Kept::new(most);
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
        fn what_fits_is_whole_however_it_came(text in ".{0,40}", cut in 0..40_usize) {
            let bytes = text.as_bytes();
            let (a, b) = bytes.split_at(cut.min(bytes.len()));
            let mut kept = Kept::new(400);
            kept.push(a);
            kept.push(b);
            prop_assert_eq!(kept.into_text(400), text);
        }

        #[test]
        fn a_text_is_as_long_in_json_as_is_said(text in any::<String>()) {
            prop_assert_eq!(serde_json::to_string(&text).unwrap().len(), escaped(&text) + 2);
        }

        #[test]
        fn no_bytes_take_more_room_than_there_is(bytes in any::<Vec<u8>>(), most in 0..60_usize, room in 0..60_usize) {
            let mut kept = Kept::new(most);
            kept.push(&bytes);
            let text = kept.into_text(room);
            let note = text.split_inclusive('\n').filter(|line| line.ends_with(" bytes left out]\n"));
            let note: usize = note.map(escaped).sum();
            prop_assert!(escaped(&text) <= room + note + 2, "{text:?}");
        }
    }
}
