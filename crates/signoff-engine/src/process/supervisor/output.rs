//! The agent's output streams: read from their pipes, redacted, saved to files and forwarded while the agent runs.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use signoff_core::redact::{Redactor, Secrets};

use crate::process::attempt_dir::open_private;
use crate::process::system;

/// Bytes read at once. A stream uses no more memory than this.
pub const CHUNK: usize = 64 * 1024;

/// More than the capacity of any pipe: the maximum read after all writers are gone.
const MAX_DRAIN: u64 = 64 * 1024 * 1024;

/// Saves an output stream to a file.
pub struct TranscriptWriter {
    file: File,
    /// `None` once the other end is closed.
    pipe: Option<OwnedFd>,
    bytes: u64,
    redactor: Redactor,
    /// Redacted bytes to write.
    redacted: Vec<u8>,
}

impl TranscriptWriter {
    /// Creates the file. Secrets are redacted from everything written to it.
    pub fn create(path: &Path, secrets: &Secrets) -> io::Result<Self> {
        let file = open_private(OpenOptions::new().read(true).write(true).create(true).truncate(true), path)?;
        Ok(Self { file, pipe: None, bytes: 0, redactor: Redactor::new(secrets), redacted: Vec::new() })
    }

    /// Starts reading from a pipe.
    pub fn attach(&mut self, pipe: Option<OwnedFd>) -> io::Result<()> {
        if let Some(pipe) = &pipe {
            set_nonblocking(pipe.as_fd())?;
        }
        self.pipe = pipe;
        Ok(())
    }

    /// The pipe to wait for, unless it is closed.
    pub fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Number of bytes in the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A handle for reading the file elsewhere.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Reads at most one chunk and returns its length. Errors come from the file.
    pub fn copy_chunk(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(pipe) = &self.pipe else { return Ok(0) };
        match rustix::io::read(pipe, &mut *buffer) {
            Ok(read @ 1..) => {
                self.redactor.push(buffer.get(..read).unwrap_or_default(), &mut self.redacted);
                self.write()?;
                return Ok(read);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(_) | Err(_) => self.close()?,
        }
        Ok(0)
    }

    /// Closes the pipe. The redactor writes the held-back beginning of a possible secret.
    fn close(&mut self) -> io::Result<()> {
        self.pipe = None;
        self.redactor.finish(&mut self.redacted);
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_all(&self.redacted)?;
        self.bytes += self.redacted.len() as u64;
        self.redacted.clear();
        Ok(())
    }

    /// Reads what is left in the pipe, without waiting for processes that hold its other end.
    pub fn drain(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let before = self.bytes;
        while self.bytes - before < MAX_DRAIN && self.copy_chunk(buffer)? > 0 {}
        self.close()
    }
}

/// Makes reads and writes non-blocking.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = fcntl_getfl(fd)?;
    Ok(fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
}

/// How long to wait at the end for a main program that does not read.
const STALL_TIMEOUT: Duration = Duration::from_secs(1);

/// Forwards from the output file, so that a slow reader costs neither memory nor the agent's time.
pub struct LiveOutput {
    file: File,
    forwarded: u64,
    /// Number of bytes in the file.
    available: u64,
    /// Whether the main program still reads.
    is_connected: bool,
}

impl LiveOutput {
    /// Forwards the content of `transcript` to our stdout.
    pub fn new(transcript: &TranscriptWriter) -> io::Result<Self> {
        set_nonblocking(io::stdout().as_fd())?;
        Ok(Self { file: transcript.file()?, forwarded: 0, available: 0, is_connected: true })
    }

    pub fn set_available(&mut self, available: u64) {
        self.available = available;
    }

    /// Forwards at most one chunk.
    pub fn forward_chunk(&mut self, buffer: &mut [u8]) {
        if !self.is_behind() {
            return;
        }
        let Ok(read) = rustix::io::pread(&self.file, &mut *buffer, self.forwarded) else {
            self.is_connected = false;
            return;
        };
        match rustix::io::write(io::stdout(), buffer.get(..read).unwrap_or_default()) {
            Ok(written) => self.forwarded += written as u64,
            Err(Errno::AGAIN | Errno::INTR) => {}
            // The reader is gone. The output file continues.
            Err(_) => self.is_connected = false,
        }
    }

    pub fn is_behind(&self) -> bool {
        self.is_connected && self.forwarded < self.available
    }

    /// Forwards the rest as long as the main program reads.
    pub fn finish(mut self) {
        let mut buffer = vec![0; CHUNK];
        while self.is_behind() {
            let before = self.forwarded;
            let stdout = io::stdout();
            let mut writable = [PollFd::new(&stdout, PollFlags::OUT)];
            if system::poll_fds(&mut writable, STALL_TIMEOUT).is_err() {
                return;
            }
            self.forward_chunk(&mut buffer);
            if self.forwarded == before {
                return;
            }
        }
    }
}
