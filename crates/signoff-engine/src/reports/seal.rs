//! Seals report files, so that a restarted process recognises reports that signoff accepted.
//!
//! Each repository has a secret, in a file that only its owner can read. An agent that runs as the same user could read
//! it and seal a report; only the in-memory copy of the accepting process protects against that.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};
use signoff_core::hex::hex;

use super::random;
use crate::process::open_private;

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
    /// The secret is stored below `root`, and created when it is first needed.
    pub fn new(root: &Path) -> Self {
        // Attempt directories have absolute paths.
        let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
        Self { root, secret: OnceLock::new() }
    }

    /// Wraps a report and its seal in JSON. The seal is valid at this path only.
    pub fn seal(&self, place: &Path, report: &[u8]) -> io::Result<Vec<u8>> {
        let seal = self.digest(self.ensure_secret()?, place, report);
        Ok([BEFORE.as_bytes(), seal.as_bytes(), BETWEEN.as_bytes(), report, AFTER.as_bytes()].concat())
    }

    /// The report in a sealed file; `None` if the seal is invalid.
    pub fn unseal<'a>(&self, place: &Path, sealed: &'a [u8]) -> Option<&'a [u8]> {
        let (seal, rest) = sealed.strip_prefix(BEFORE.as_bytes())?.split_at_checked(64)?;
        let report = rest.strip_prefix(BETWEEN.as_bytes())?.strip_suffix(AFTER.as_bytes())?;
        let secret = self.read_secret().ok().flatten()?;
        (self.digest(&secret, place, report).as_bytes() == seal).then_some(report)
    }

    /// Hashes twice, to prevent length extension.
    fn digest(&self, secret: &[u8; 32], place: &Path, report: &[u8]) -> String {
        // The path is relative, so that the repository can be moved.
        let place = place.strip_prefix(&self.root).unwrap_or(place).as_os_str().as_encoded_bytes();
        let length = (place.len() as u64).to_le_bytes();
        let inner = Sha256::new().chain_update(secret).chain_update(length).chain_update(place);
        let inner = inner.chain_update(report).finalize();
        hex(&Sha256::new().chain_update(secret).chain_update(inner).finalize())
    }

    fn path(&self) -> PathBuf {
        self.root.join("secret")
    }

    /// The secret, if it exists. A truncated file does not count.
    fn read_secret(&self) -> io::Result<Option<[u8; 32]>> {
        if let Some(secret) = self.secret.get() {
            return Ok(Some(*secret));
        }
        match fs::read(self.path()) {
            Ok(bytes) => Ok(bytes.try_into().ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn ensure_secret(&self) -> io::Result<&[u8; 32]> {
        let secret = match self.read_secret()? {
            Some(secret) => secret,
            None => self.create_secret()?,
        };
        Ok(self.secret.get_or_init(|| secret))
    }

    /// Creates the secret. Processes that do so at the same time all use the same one.
    fn create_secret(&self) -> io::Result<[u8; 32]> {
        let unfinished = self.root.join(format!("secret.{}", hex(&random()?[..8])));
        let mut file = open_private(OpenOptions::new().write(true).create_new(true), &unfinished)?;
        file.write_all(&random()?)?;
        file.sync_all()?;
        match fs::hard_link(&unfinished, self.path()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.read_secret()?.is_none() => {
                fs::rename(&unfinished, self.path())?;
            }
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => fs::remove_file(&unfinished)?,
        }
        self.read_secret()?.ok_or_else(|| io::Error::other("another process removes the secret file"))
    }
}
