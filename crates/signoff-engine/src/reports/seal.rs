//! How a report is known as one that was taken, by a program that did not take it.
//!
//! Each repository has a secret, in a file that only its owner can read. Who can read that file can seal as well: against
//! an agent that runs as the same user and looks for it, only the memory of the program that took a report helps.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};
use signoff_core::hex::hex;

use super::random;
use crate::process::private;

const BEFORE: &str = r#"{"seal":""#;
const BETWEEN: &str = r#"","report":"#;
const AFTER: &str = "}";

/// The seal of a repository.
#[derive(Debug)]
pub struct Seal {
    root: PathBuf,
    secret: OnceLock<[u8; 32]>,
}

impl Seal {
    /// The secret is below `root`, and made when it is first needed.
    pub fn new(root: &Path) -> Self {
        // Attempts name their directories so.
        let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
        Self { root, secret: OnceLock::new() }
    }

    /// A report with its seal, as JSON. It holds in this place alone.
    pub fn close(&self, place: &Path, report: &[u8]) -> io::Result<Vec<u8>> {
        let seal = self.seal(self.secret()?, place, report);
        Ok([BEFORE.as_bytes(), seal.as_bytes(), BETWEEN.as_bytes(), report, AFTER.as_bytes()].concat())
    }

    /// The report that was sealed; none if this one was not.
    pub fn open<'a>(&self, place: &Path, sealed: &'a [u8]) -> Option<&'a [u8]> {
        let (seal, rest) = sealed.strip_prefix(BEFORE.as_bytes())?.split_at_checked(64)?;
        let report = rest.strip_prefix(BETWEEN.as_bytes())?.strip_suffix(AFTER.as_bytes())?;
        let secret = self.known().ok().flatten()?;
        (self.seal(&secret, place, report).as_bytes() == seal).then_some(report)
    }

    /// Hashed twice, so that nobody goes on from a seal to that of a longer report.
    fn seal(&self, secret: &[u8; 32], place: &Path, report: &[u8]) -> String {
        // A repository may be moved.
        let place = place.strip_prefix(&self.root).unwrap_or(place).as_os_str().as_encoded_bytes();
        let length = (place.len() as u64).to_le_bytes();
        let inner = Sha256::new().chain_update(secret).chain_update(length).chain_update(place);
        let inner = inner.chain_update(report).finalize();
        hex(&Sha256::new().chain_update(secret).chain_update(inner).finalize())
    }

    fn path(&self) -> PathBuf {
        self.root.join("secret")
    }

    /// The secret, if there is one. One that is cut off is none.
    fn known(&self) -> io::Result<Option<[u8; 32]>> {
        if let Some(secret) = self.secret.get() {
            return Ok(Some(*secret));
        }
        match fs::read(self.path()) {
            Ok(bytes) => Ok(bytes.try_into().ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn secret(&self) -> io::Result<&[u8; 32]> {
        let secret = match self.known()? {
            Some(secret) => secret,
            None => self.make()?,
        };
        Ok(self.secret.get_or_init(|| secret))
    }

    /// Makes the secret. Of several programs that do it at once, all go on with the same.
    fn make(&self) -> io::Result<[u8; 32]> {
        let unfinished = self.root.join(format!("secret.{}", hex(&random()?[..8])));
        let mut file = private(OpenOptions::new().write(true).create_new(true), &unfinished)?;
        file.write_all(&random()?)?;
        file.sync_all()?;
        match fs::hard_link(&unfinished, self.path()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.known()?.is_none() => {
                fs::rename(&unfinished, self.path())?;
            }
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => fs::remove_file(&unfinished)?,
        }
        self.known()?.ok_or_else(|| io::Error::other("somebody takes the secret away"))
    }
}
