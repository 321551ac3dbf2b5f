//! The objects that somebody made apart from the repository, brought into it under the names that their content has.
//!
//! Whoever writes objects can give one the name of another. So nothing is moved: what `HEAD` and the index need is packed,
//! and git takes every name from the content as it unpacks. Then it is looked whether all is there.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use signoff_core::hex::hex;
use signoff_core::ids::Commit;

use super::disk::{is_directory, plain_only, remove_if_there};
use super::repository::Place;
use super::{GitError, Worktree};

/// From so many objects on they stay in one pack, as git does it when it fetches.
const MANY: u32 = 100;

/// Where a pack says how many objects it has.
const COUNT: std::ops::Range<usize> = 8..12;

impl Worktree {
    /// Brings over all that these commits and an index need, beyond what `from` has. The index, if git can read it.
    pub(super) fn bring_over(
        &self,
        ids: &[&str],
        from: &Commit,
        index: &Path,
    ) -> Result<Option<PathBuf>, GitError> {
        let shared = self.lent_shared();
        let made = is_directory(&shared) && self.ready(&shared.join("objects"))?;
        if is_directory(&shared) {
            self.bring_large(&shared.join("lfs"))?;
        }
        let own = index.symlink_metadata().is_ok_and(|found| found.is_file()).then(|| index.to_owned());
        if !made && ids.is_empty() {
            return Ok(own);
        }
        let with_index = own.map(|own| self.bring(ids, from, (made, &own)).map(|()| own));
        match with_index {
            Some(Err(GitError::Failed { .. })) | None => {}
            Some(brought) => return brought.map(Some),
        }
        // An index that git cannot read is no reason to lose commits.
        self.bring(ids, from, (made, &self.repository.seal()?.scratch())).map(|()| None)
    }

    /// Whether there are objects. Nothing that lies beside them has a say in what they are.
    fn ready(&self, objects: &Path) -> Result<bool, GitError> {
        if !is_directory(objects) {
            return Ok(false);
        }
        remove_if_there(&objects.join("info"))?;
        let made = plain_only(objects, |_| {})?;
        if made {
            let info = objects.join("info");
            fs::create_dir(&info).map_err(GitError::at(&info))?;
            let real = format!("{}\n", self.repository.common().join("objects").display());
            fs::write(info.join("alternates"), real).map_err(GitError::at(&info))?;
        }
        Ok(made)
    }

    fn bring(&self, ids: &[&str], from: &Commit, (made, index): (bool, &Path)) -> Result<(), GitError> {
        let place = Place { index: Some(index), ..self.place() };
        if made {
            let pack = self.repository.seal()?.scratch();
            let brought = self.pack(ids, from, (place, &pack)).and_then(|()| self.unpack(&pack));
            fs::remove_file(&pack).ok();
            brought?;
        }
        let asked = ["rev-list", "--objects", "--quiet", "--single-worktree", "--indexed-objects"];
        let command = self.repository.sealed(place)?.args(asked).args(ids);
        command.args(["--not", from.as_str(), "--"]).read().map(drop)
    }

    fn pack(&self, ids: &[&str], from: &Commit, (place, pack): (Place<'_>, &Path)) -> Result<(), GitError> {
        let mut file = File::create_new(pack).map_err(GitError::at(pack))?;
        let wanted: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let asked = ["pack-objects", "--revs", "--indexed-objects", "--local", "--stdout", "-q"];
        let command = self.repository.sealed(place)?.args(asked).input(format!("{wanted}^{from}\n"));
        let command = command.env("GIT_OBJECT_DIRECTORY", self.lent_shared().join("objects"));
        command.stream(|printed| io::copy(printed, &mut file).map(drop))
    }

    fn unpack(&self, pack: &Path) -> Result<(), GitError> {
        let mut head = [0; 12];
        let read = File::open(pack).and_then(|mut file| file.read_exact(&mut head));
        read.map_err(GitError::at(pack))?;
        let count = head.get(COUNT).and_then(|count| count.try_into().ok()).map_or(0, u32::from_be_bytes);
        let asked: &[&str] =
            if count < MANY { &["unpack-objects", "-q"] } else { &["index-pack", "--stdin", "--fix-thin"] };
        self.repository.sealed(self.place())?.args(asked).input_file(pack).read().map(drop)
    }

    /// The same for files that are kept beside git, by the hash of their content.
    fn bring_large(&self, lfs: &Path) -> Result<(), GitError> {
        let objects = lfs.join("objects");
        if !is_directory(lfs) || !is_directory(&objects) || !plain_only(&objects, |_| {})? {
            return Ok(());
        }
        let mut found = vec![objects.clone()];
        while let Some(directory) = found.pop() {
            for entry in fs::read_dir(&directory).map_err(GitError::at(&directory))?.flatten() {
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    found.push(path);
                } else {
                    self.bring_large_file(&path)?;
                }
            }
        }
        Ok(())
    }

    fn bring_large_file(&self, path: &Path) -> Result<(), GitError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (Some(first), Some(second)) = (name.get(..2), name.get(2..4)) else { return Ok(()) };
        let home = self.repository.common().join("lfs/objects").join(first).join(second);
        if name.len() != 64 || home.join(&name).exists() {
            return Ok(());
        }
        let scratch = self.repository.seal()?.scratch();
        fs::copy(path, &scratch).map_err(GitError::at(path))?;
        if hash_of(&scratch).map_err(GitError::at(&scratch))? != name {
            return remove_if_there(&scratch);
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
