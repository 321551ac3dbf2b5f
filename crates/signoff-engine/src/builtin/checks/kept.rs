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

    pub(super) fn into_text(mut self) -> String {
        self.cut();
        let head = String::from_utf8_lossy(&self.head);
        let tail = String::from_utf8_lossy(&self.tail);
        match self.left_out {
            // Joined first: a character may lie across the seam.
            0 => String::from_utf8_lossy(&[self.head.as_slice(), &self.tail].concat()).into_owned(),
            left_out => format!("{head}\n[{left_out} bytes left out]\n{tail}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Kept;

    fn kept(most: usize, chunks: &[&str]) -> String {
        let mut kept = Kept::new(most);
        chunks.iter().for_each(|chunk| kept.push(chunk.as_bytes()));
        kept.into_text()
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
            prop_assert_eq!(kept.into_text(), text);
        }
    }
}
