//! What the agent says, passed on to the program while it is said.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::transcript::{CHUNK, Transcript, never_block};
use crate::process::door;

/// How long a program that takes nothing is waited for when everything is over.
const PATIENCE: Duration = Duration::from_secs(1);

/// The transcript is the buffer: a program that reads slowly costs neither memory nor the agent's time.
pub struct Live {
    file: File,
    told: u64,
    /// How much there is to tell.
    kept: u64,
    /// Whether anybody listens.
    heard: bool,
}

impl Live {
    /// Passes on to our own stdout what `transcript` gets.
    pub fn of(transcript: &Transcript) -> io::Result<Self> {
        never_block(io::stdout().as_fd())?;
        Ok(Self { file: transcript.file()?, told: 0, kept: 0, heard: true })
    }

    pub fn grow(&mut self, kept: u64) {
        self.kept = kept;
    }

    /// Passes on one chunk at most.
    pub fn pump(&mut self, buffer: &mut [u8]) {
        if !self.is_behind() {
            return;
        }
        let Ok(read) = rustix::io::pread(&self.file, &mut *buffer, self.told) else {
            self.heard = false;
            return;
        };
        match rustix::io::write(io::stdout(), buffer.get(..read).unwrap_or_default()) {
            Ok(written) => self.told += written as u64,
            Err(Errno::AGAIN | Errno::INTR) => {}
            // The reader went away. The transcript goes on.
            Err(_) => self.heard = false,
        }
    }

    pub fn is_behind(&self) -> bool {
        self.heard && self.told < self.kept
    }

    /// Passes on the rest, as long as somebody takes it.
    pub fn finish(mut self) {
        let mut buffer = vec![0; CHUNK];
        while self.is_behind() {
            let before = self.told;
            let stdout = io::stdout();
            let mut writable = [PollFd::new(&stdout, PollFlags::OUT)];
            if door::wait_for(&mut writable, PATIENCE).is_err() {
                return;
            }
            self.pump(&mut buffer);
            if self.told == before {
                return;
            }
        }
    }
}
