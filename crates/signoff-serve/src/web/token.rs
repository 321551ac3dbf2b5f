//! Secrets that let somebody in.

use std::fmt;
use std::io;

use subtle::ConstantTimeEq;

/// A word that nobody can guess. It shows itself to nobody who only prints it for debugging.
#[derive(Clone)]
pub struct Token(String);

/// How many random bytes it is made of.
const BYTES: usize = 32;

impl Token {
    /// One that was never there before.
    pub fn fresh() -> io::Result<Self> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The word itself, for the one who may have it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether somebody said it. How long that takes tells nothing of how much of it was right.
    pub fn is(&self, said: &str) -> bool {
        self.0.as_bytes().ct_eq(said.as_bytes()).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_word_is_right() {
        let token = Token::fresh().expect("randomness");
        let word = token.reveal();
        assert_eq!(word.len(), 2 * BYTES);
        assert!(token.is(word));
        assert!((0..word.len()).all(|end| !token.is(&word[..end])), "a part of it");
        assert!(!token.is(&format!("{word}0")) && !token.is(&word.to_uppercase().replace('0', "O")));
        assert!(!token.is(Token::fresh().expect("randomness").reveal()));
        assert_eq!(format!("{token:?}"), "Token");
    }
}
