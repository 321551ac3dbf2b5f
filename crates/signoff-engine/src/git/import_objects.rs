//! Imports the objects that a sandboxed agent created, under the names that their content has.
//!
//! An agent can store an object under the name of another one. So objects are not moved: git packs what `HEAD`
//! and the index need, and computes every name from the content when it unpacks them. Then git checks that all
//! objects exist.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use signoff_core::hex::hex;
use signoff_core::ids::Commit;

use super::disk::{is_directory, remove_if_exists, remove_special_files};
use super::repository::GitPlace;
use super::{GitError, Worktree};

/// From this number of objects on they stay in one pack, as in `git fetch`.
const KEEP_PACK_FROM: u32 = 100;

/// Position of the object count in a pack's header.
const OBJECT_COUNT: std::ops::Range<usize> = 8..12;

impl Worktree {
    /// Imports the objects of these commits and an index that `from` does not reach. Returns the index if git
    /// can read it.
    pub(super) fn import_objects(
        &self,
        ids: &[&str],
        from: &Commit,
        index: &Path,
    ) -> Result<Option<PathBuf>, GitError> {
        let shared = self.sandbox_common_dir();
        let has_objects = is_directory(&shared) && self.prepare_objects(&shared.join("objects"))?;
        if is_directory(&shared) {
            self.import_lfs_objects(&shared.join("lfs"))?;
        }
        let own_index = index.symlink_metadata().is_ok_and(|found| found.is_file()).then(|| index.to_owned());
        if !has_objects && ids.is_empty() {
            return Ok(own_index);
        }
        let with_index = own_index.map(|own| self.copy_objects(ids, from, has_objects, &own).map(|()| own));
        match with_index {
            Some(Err(GitError::Failed { .. })) | None => {}
            Some(brought) => return brought.map(Some),
        }
        // An unreadable index must not cost the commits.
        self.copy_objects(ids, from, has_objects, &self.repository.isolated_dir()?.scratch_path()).map(|()| None)
    }

    /// Whether the agent created objects. Removes `info`, so that the agent's alternates are not used.
    fn prepare_objects(&self, objects: &Path) -> Result<bool, GitError> {
        if !is_directory(objects) {
            return Ok(false);
        }
        remove_if_exists(&objects.join("info"))?;
        let has_objects = remove_special_files(objects, |_| {})?;
        if has_objects {
            let info = objects.join("info");
            fs::create_dir(&info).map_err(GitError::at(&info))?;
            let real = format!("{}\n", self.repository.common().join("objects").display());
            fs::write(info.join("alternates"), real).map_err(GitError::at(&info))?;
        }
        Ok(has_objects)
    }

    fn copy_objects(&self, ids: &[&str], from: &Commit, has_objects: bool, index: &Path) -> Result<(), GitError> {
        let place = GitPlace { index: Some(index), ..self.place() };
        if has_objects {
            let pack = self.repository.isolated_dir()?.scratch_path();
            let brought = self.pack(ids, from, place, &pack).and_then(|()| self.unpack(&pack));
            fs::remove_file(&pack).ok();
            brought?;
        }
        let asked = ["rev-list", "--objects", "--quiet", "--single-worktree", "--indexed-objects"];
        let command = self.repository.isolated_git_at(place, asked)?.args(ids);
        command.args(["--not", from.as_str(), "--"]).execute()
    }

    fn pack(&self, ids: &[&str], from: &Commit, place: GitPlace<'_>, pack: &Path) -> Result<(), GitError> {
        let mut file = File::create_new(pack).map_err(GitError::at(pack))?;
        let wanted: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let asked = ["pack-objects", "--revs", "--indexed-objects", "--local", "--stdout", "-q"];
        let command = self.repository.isolated_git_at(place, asked)?.input(format!("{wanted}^{from}\n"));
        let command = command.env("GIT_OBJECT_DIRECTORY", self.sandbox_common_dir().join("objects"));
        command.stream(|printed| io::copy(printed, &mut file).map(drop))
    }

    fn unpack(&self, pack: &Path) -> Result<(), GitError> {
        let mut head = [0; 12];
        let read = File::open(pack).and_then(|mut file| file.read_exact(&mut head));
        read.map_err(GitError::at(pack))?;
        let count = head.get(OBJECT_COUNT).and_then(|count| count.try_into().ok()).map_or(0, u32::from_be_bytes);
        let asked: &[&str] =
            if count < KEEP_PACK_FROM { &["unpack-objects", "-q"] } else { &["index-pack", "--stdin", "--fix-thin"] };
        self.isolated_git(asked)?.input_file(pack).execute()
    }

    /// Imports Git LFS files, which are named after the hash of their content.
    fn import_lfs_objects(&self, lfs: &Path) -> Result<(), GitError> {
        let objects = lfs.join("objects");
        if !is_directory(lfs) || !is_directory(&objects) || !remove_special_files(&objects, |_| {})? {
            return Ok(());
        }
        let mut found = vec![objects.clone()];
        while let Some(directory) = found.pop() {
            for entry in fs::read_dir(&directory).map_err(GitError::at(&directory))?.flatten() {
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    found.push(path);
                } else {
                    self.import_lfs_file(&path)?;
                }
            }
        }
        Ok(())
    }

    fn import_lfs_file(&self, path: &Path) -> Result<(), GitError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (Some(first), Some(second)) = (name.get(..2), name.get(2..4)) else { return Ok(()) };
        let home = self.repository.common().join("lfs/objects").join(first).join(second);
        if name.len() != 64 || home.join(&name).exists() {
            return Ok(());
        }
        let scratch = self.repository.isolated_dir()?.scratch_path();
        fs::copy(path, &scratch).map_err(GitError::at(path))?;
        if hash_of(&scratch).map_err(GitError::at(&scratch))? != name {
            return remove_if_exists(&scratch);
        }
        fs::create_dir_all(&home).map_err(GitError::at(&home))?;
        fs::rename(&scratch, home.join(&name)).map_err(GitError::at(&home))
    }
}

fn hash_of(path: &Path) -> io::Result<String> {
    let mut file = BufReader::new(File::open(path)?);
    let mut hash = Sha256::new();
    loop {
        let part = file.fill_buf()?;
        if part.is_empty() {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(part);
        let length = part.len();
        file.consume(length);
    }
}
