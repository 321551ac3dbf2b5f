//! One run of git, from its arguments to what it left behind.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;

use super::printed::Printed;
use super::{Git, GitError};

/// So many bytes fit into any pipe, whether or not anybody reads.
const FITS: usize = 4096;

/// One git command, not yet run.
#[derive(Debug)]
pub(super) struct Invocation<'a> {
    git: &'a Git,
    pub(super) directory: PathBuf,
    pub(super) arguments: Vec<OsString>,
    /// What many commands share, and what is this one's own.
    pub(super) shared: &'a [(OsString, OsString)],
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) input: Vec<u8>,
    /// A file to be read instead.
    pub(super) input_file: Option<PathBuf>,
}

/// What a git command left behind.
#[derive(Debug)]
pub(super) struct Ended {
    status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    stderr: Vec<u8>,
    command: String,
}

impl<'a> Invocation<'a> {
    pub(super) fn new(git: &'a Git, directory: &Path) -> Self {
        let directory = directory.to_owned();
        Self {
            git,
            directory,
            arguments: Vec::new(),
            shared: &[],
            variables: Vec::new(),
            input: Vec::new(),
            input_file: None,
        }
    }

    pub(super) fn within(self, shared: &'a [(OsString, OsString)]) -> Self {
        Self { shared, ..self }
    }

    pub(super) fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// A path as it is, whatever its name would mean as a pattern.
    pub(super) fn arg_path(self, path: &Path) -> Self {
        let mut literal = OsString::from(":(top,literal)");
        literal.push(path);
        self.args([literal])
    }

    pub(super) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    pub(super) fn input(self, input: impl Into<Vec<u8>>) -> Self {
        Self { input: input.into(), ..self }
    }

    pub(super) fn input_file(self, file: &Path) -> Self {
        Self { input_file: Some(file.to_owned()), ..self }
    }

    /// What it prints; any exit code but 0 is an error.
    pub(super) fn read(self) -> Result<Vec<u8>, GitError> {
        self.run()?.success()
    }

    /// What it prints, as text without the line end.
    pub(super) fn read_line(self) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.read()?).trim_end_matches('\n').to_owned())
    }

    /// Runs it. Where somebody holds a lock it needs, it is tried again until patience ends: git takes its locks
    /// first, so that nothing was done yet.
    pub(super) fn run(self) -> Result<Ended, GitError> {
        let mut last = None;
        let done = self.git.wait_for(|| {
            let ended = self.run_once(|stdout, kept| stdout.read_to_end(kept).map(drop))?;
            if let Some(lock) = ended.held_up_by() {
                self.git.is_held_up_by(lock);
                last = Some(ended);
                return Ok(None);
            }
            Ok(Some(ended))
        })?;
        match (done, last) {
            (Some(ended), _) => Ok(ended),
            (None, Some(ended)) => Err(ended.failure()),
            (None, None) => Err(GitError::Failed { command: self.words(), stderr: String::new() }),
        }
    }

    /// Hands what it prints to `reader` while it prints it.
    pub(super) fn stream(
        self,
        mut reader: impl FnMut(&mut BufReader<Printed>) -> io::Result<()>,
    ) -> Result<(), GitError> {
        self.run_once(|stdout, _| reader(stdout))?.success().map(drop)
    }

    fn run_once(
        &self,
        reader: impl FnOnce(&mut BufReader<Printed>, &mut Vec<u8>) -> io::Result<()>,
    ) -> Result<Ended, GitError> {
        let mut child = self.git.spawn(self)?;
        let stdin = child.stdin.take();
        let printed = Printed::of(&mut child, self.git.deadline());
        let mut stdout = Vec::new();
        let (read, complaints, stuck) = thread::scope(|scope| {
            // A git that ends without reading everything has said why on stderr.
            match stdin {
                Some(mut stdin) if self.input.len() > FITS => {
                    scope.spawn(move || stdin.write_all(&self.input));
                }
                Some(mut stdin) => drop(stdin.write_all(&self.input)),
                None => {}
            }
            let mut printed = BufReader::new(printed);
            let read = reader(&mut printed, &mut stdout);
            let (complaints, stuck) = printed.into_inner().finish();
            (read, complaints, stuck)
        });
        let status = child.wait().map_err(GitError::at(Path::new("git")))?;
        if stuck {
            return Err(GitError::Stuck { command: self.words() });
        }
        read.map_err(GitError::at(Path::new("git")))?;
        Ok(Ended { status, stdout, stderr: complaints, command: self.words() })
    }

    /// The command as a person would type it, without what only we care about.
    fn words(&self) -> String {
        let words = self.arguments.iter().map(|word| word.to_string_lossy());
        let words: Vec<_> = words.take_while(|word| word != "--").take(6).collect();
        format!("git {}", words.join(" "))
    }
}

impl Ended {
    pub(super) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub(super) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    pub(super) fn success(self) -> Result<Vec<u8>, GitError> {
        if self.status.success() { Ok(self.stdout) } else { Err(self.failure()) }
    }

    /// For commands that answer yes with 0 and no with 1.
    pub(super) fn yes(self) -> Result<bool, GitError> {
        match self.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            Some(_) | None => Err(self.failure()),
        }
    }

    pub(super) fn failure(self) -> GitError {
        GitError::from_stderr(self.command, &self.stderr)
    }

    fn held_up_by(&self) -> Option<PathBuf> {
        if self.status.success() {
            return None;
        }
        let error = GitError::from_stderr(String::new(), &self.stderr);
        if let GitError::Locked { file } = error { Some(file) } else { None }
    }
}
