//! One stream of the agent: read from its pipe, kept in a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use signoff_core::redact::{Redactor, Secrets};

use crate::process::attempt_dir::private;

/// What is read at once; all the memory a stream takes, however much is written.
pub const CHUNK: usize = 64 * 1024;

/// More than any pipe holds: what is still in one when all its writers are gone.
const LEFT_IN_A_PIPE: u64 = 64 * 1024 * 1024;

pub struct Transcript {
    file: File,
    /// None once the other end is closed.
    pipe: Option<OwnedFd>,
    bytes: u64,
    redactor: Redactor,
    /// What of the last chunk may be written.
    told: Vec<u8>,
}

impl Transcript {
    /// A new file, which is to hold none of the secrets.
    pub fn create(path: &Path, secrets: &Secrets) -> io::Result<Self> {
        let file = private(OpenOptions::new().read(true).write(true).create(true).truncate(true), path)?;
        Ok(Self { file, pipe: None, bytes: 0, redactor: Redactor::new(secrets), told: Vec::new() })
    }

    /// From here on it is read.
    pub fn attach(&mut self, pipe: Option<OwnedFd>) -> io::Result<()> {
        if let Some(pipe) = &pipe {
            never_block(pipe.as_fd())?;
        }
        self.pipe = pipe;
        Ok(())
    }

    /// What to wait for, if there may be more.
    pub fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// How much is in the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file, to be read elsewhere.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Takes what is there, one chunk at most; how much that was. An error is one of the file.
    pub fn pump(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(pipe) = &self.pipe else { return Ok(0) };
        match rustix::io::read(pipe, &mut *buffer) {
            Ok(read @ 1..) => {
                self.redactor.push(buffer.get(..read).unwrap_or_default(), &mut self.told);
                self.write()?;
                return Ok(read);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(_) | Err(_) => self.close()?,
        }
        Ok(0)
    }

    /// Nothing more comes: what may have been the beginning of a secret is none.
    fn close(&mut self) -> io::Result<()> {
        self.pipe = None;
        self.redactor.finish(&mut self.told);
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_all(&self.told)?;
        self.bytes += self.told.len() as u64;
        self.told.clear();
        Ok(())
    }

    /// Takes what is left in the pipe, and does not wait for whoever may still hold its other end.
    pub fn drain(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let before = self.bytes;
        while self.bytes - before < LEFT_IN_A_PIPE && self.pump(buffer)? > 0 {}
        self.close()
    }
}

/// Makes reading and writing come back at once.
pub fn never_block(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = fcntl_getfl(fd)?;
    Ok(fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
}
