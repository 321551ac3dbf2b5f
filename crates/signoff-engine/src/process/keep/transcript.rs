//! One stream of the agent: read from its pipe, kept in a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

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
}

impl Transcript {
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = private(OpenOptions::new().read(true).write(true).create(true).truncate(true), path)?;
        Ok(Self { file, pipe: None, bytes: 0 })
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
            Ok(0) => self.pipe = None,
            Ok(read) => {
                let said = buffer.get(..read).unwrap_or_default();
                self.file.write_all(said)?;
                self.bytes += said.len() as u64;
                return Ok(read);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.pipe = None,
        }
        Ok(0)
    }

    /// Takes what is left in the pipe, and does not wait for whoever may still hold its other end.
    pub fn drain(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let before = self.bytes;
        while self.bytes - before < LEFT_IN_A_PIPE && self.pump(buffer)? > 0 {}
        self.pipe = None;
        Ok(())
    }
}

/// Makes reading and writing come back at once.
pub fn never_block(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = fcntl_getfl(fd)?;
    Ok(fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
}
