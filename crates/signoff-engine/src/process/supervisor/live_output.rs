//! Forwards the agent's stdout to the main program while the agent runs.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::transcript::{CHUNK, TranscriptWriter, set_nonblocking};
use crate::process::system;

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
