//! Prepared git repositories: copying one is faster than running git for each test.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A repository, as the files and git commands that make it.
#[derive(Debug, Clone, Copy, Hash)]
pub struct GitTemplate {
    /// Names and contents of the files, which exist before the first command.
    pub files: &'static [(&'static str, &'static str)],
    /// The arguments of git.
    pub commands: &'static [&'static [&'static str]],
}

impl GitTemplate {
    /// Copies the repository to a directory, which may exist. The first call makes the repository, below the target
    /// directory.
    ///
    /// # Panics
    /// If git or a file operation fails.
    pub fn copy_to(&self, directory: &Path) {
        let template = self.path();
        if !template.exists() {
            self.make(&template);
        }
        copy_directory(&template, directory);
    }

    /// The name contains a hash, so a changed template is made again.
    fn path(&self) -> PathBuf {
        let test = std::env::current_exe().expect("the path of the test");
        let target = test.ancestors().nth(3).expect("tests are in TARGET/PROFILE/deps");
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        target.join("tmp").join(format!("git-template-{:016x}", hasher.finish()))
    }

    fn make(&self, template: &Path) {
        let parent = template.parent().expect("a template is in a directory");
        fs::create_dir_all(parent).expect("a directory");
        let temporary = tempfile::tempdir_in(parent).expect("a temporary directory");
        let (home, repository) = (temporary.path().join("home"), temporary.path().join("repository"));
        for directory in [&home, &repository] {
            fs::create_dir(directory).expect("a fresh directory");
        }
        for (name, contents) in self.files {
            let file = repository.join(name);
            fs::create_dir_all(file.parent().expect("a file is in a directory")).expect("a directory");
            fs::write(file, contents).expect("a written file");
        }
        for arguments in self.commands {
            run_git(&repository, &home, arguments);
        }
        // If another process was faster, its repository is as good.
        let renamed = fs::rename(repository, template);
        assert!(renamed.is_ok() || template.exists(), "{renamed:?}");
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that starts git for a template")]
fn run_git(repository: &Path, home: &Path, arguments: &[&str]) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut command = Command::new("git");
    command.args(arguments).current_dir(repository).env_clear().env("PATH", path).env("HOME", home);
    let output = command.output().expect("git");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Copies everything except git's sample hooks.
fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a readable directory") {
        let entry = entry.expect("a readable directory");
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().expect("a file type").is_dir() {
            copy_directory(&path, &copy);
        } else if path.extension().is_none_or(|extension| extension != "sample") {
            fs::copy(&path, copy).expect("a copied file");
        }
    }
}
