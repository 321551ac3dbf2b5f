//! Random access tokens.

use std::fmt;
use std::io;

use subtle::ConstantTimeEq;

/// An unguessable token. Its `Debug` output does not contain it.
#[derive(Clone)]
pub struct SecretToken(String);

/// Number of random bytes in a token.
const BYTES: usize = 32;

impl SecretToken {
    /// Creates a random token.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The token itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Compares in constant time.
    pub fn matches(&self, candidate: &str) -> bool {
        self.0.as_bytes().ct_eq(candidate.as_bytes()).into()
    }
}

impl fmt::Debug for SecretToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_full_token_matches() {
        let token = SecretToken::random().expect("randomness");
        let word = token.reveal();
        assert_eq!(word.len(), 2 * BYTES);
        assert!(token.matches(word));
        assert!((0..word.len()).all(|end| !token.matches(&word[..end])), "a part of it");
        assert!(!token.matches(&format!("{word}0")) && !token.matches(&word.to_uppercase().replace('0', "O")));
        assert!(!token.matches(SecretToken::random().expect("randomness").reveal()));
        assert_eq!(format!("{token:?}"), "Token");
    }
}
