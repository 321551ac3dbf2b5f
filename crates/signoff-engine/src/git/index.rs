//! What an index says, told from its bytes: git itself would have to be asked before and after every commit.
//!
//! The format is described in git's own documentation (gitformat-index). What is not understood is left to git.

use std::path::PathBuf;

use signoff_core::hex::hex;

use super::repository::path;

/// The flag that makes git take a file for unchanged.
const ASSUME_VALID: u16 = 0x8000;
/// There are more flags.
const EXTENDED: u16 = 0x4000;
/// Among those: the file is taken for one that is not to be there.
const SKIP_WORKTREE: u16 = 0x4000;
/// What comes before the id of an entry: times, device, inode, mode, owner, size.
const STAT: usize = 40;
/// Where in that the mode is, which belongs to the content.
const MODE: std::ops::Range<usize> = 24..28;
/// The mode of what is no file but a commit of another repository.
const REPOSITORY: u32 = 0o160_000;
/// What comes before the entries: a name, a version, their number.
const HEADER: usize = 12;

/// The same entries without anything that was noted about the files: with it, git looks at every file. None if an entry
/// has a flag that hides its file, or if only git can make it. Ids of objects have `id` bytes.
pub(super) fn without_stat(index: &[u8], id: usize) -> Option<Vec<u8>> {
    let mut out = index.get(..HEADER)?.to_vec();
    let mut hidden = false;
    walk(index, id, |entry, hides| {
        hidden |= hides;
        let kept = entry.iter().enumerate();
        out.extend(kept.map(|(at, byte)| if at >= STAT || MODE.contains(&at) { *byte } else { 0 }));
    })?;
    // Zeros stand for a checksum that was not taken.
    out.resize(out.len() + id, 0);
    (!hidden).then_some(out)
}

/// The names of all files; none if only git can tell.
pub(super) fn names(index: &[u8], id: usize) -> Option<Vec<PathBuf>> {
    names_of(index, id, |_| true)
}

/// The names of all repositories within this one; none if only git can tell.
pub(super) fn repositories(index: &[u8], id: usize) -> Option<Vec<PathBuf>> {
    names_of(index, id, |entry| entry.get(MODE) == Some(&REPOSITORY.to_be_bytes()))
}

fn names_of(index: &[u8], id: usize, is_one: impl Fn(&[u8]) -> bool) -> Option<Vec<PathBuf>> {
    let mut names = Vec::new();
    walk(index, id, |entry, _| {
        if is_one(entry) {
            let name = name_at(entry, id).and_then(|at| entry.get(at..)).unwrap_or_default();
            names.extend(name.split(|byte| *byte == 0).next().map(path));
        }
    })?;
    Some(names)
}

/// The id of the tree that the entries were last written as, if none has changed since.
pub(super) fn root_tree(index: &[u8], id: usize) -> Option<String> {
    let mut rest = walk(index, id, |_, _| {})?;
    while let Some((name, after)) = rest.split_at_checked(4) {
        let (size, body) = number(after)?;
        let (own, next) = body.split_at_checked(usize::try_from(size).ok()?)?;
        if name == b"TREE" {
            return root_of(own, id);
        }
        rest = next;
    }
    None
}

/// The first tree of the cache is the root: no name, how many entries it covers, how many trees are in it, its id.
fn root_of(trees: &[u8], id: usize) -> Option<String> {
    let rest = trees.strip_prefix(b"\0")?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (counts, rest) = rest.split_at_checked(end)?;
    // A negative number says that it does not hold any more.
    let holds = counts.first()?.is_ascii_digit();
    let id = rest.get(1..=id).filter(|_| holds)?;
    Some(hex(id))
}

/// Goes through the entries, with whether each is hidden; what comes after them.
fn walk(index: &[u8], id: usize, mut each: impl FnMut(&[u8], bool)) -> Option<&[u8]> {
    let (entries, _checksum) = index.split_at_checked(index.len().checked_sub(id)?)?;
    let rest = entries.strip_prefix(b"DIRC")?;
    let (version, rest) = number(rest)?;
    let (count, mut rest) = number(rest)?;
    if !matches!(version, 2 | 3) {
        return None;
    }
    for _ in 0..count {
        let (hides, length) = entry(rest, id)?;
        let (own, after) = rest.split_at_checked(length)?;
        each(own, hides);
        rest = after;
    }
    only_known(rest).then_some(rest)
}

/// Whether the first entry is hidden, and how long it is.
fn entry(bytes: &[u8], id: usize) -> Option<(bool, usize)> {
    let flags = short(bytes.get(STAT + id..)?)?;
    let extended = flags & EXTENDED != 0;
    let more = if extended { short(bytes.get(STAT + id + 2..)?)? } else { 0 };
    let name = name_at(bytes, id)?;
    let end = name + bytes.get(name..)?.iter().position(|byte| *byte == 0)?;
    // At least one zero ends the name, and as many as it takes to a multiple of eight.
    let padded = (end / 8 + 1) * 8;
    let zeros = bytes.get(end..padded)?.iter().all(|byte| *byte == 0);
    let hides = flags & ASSUME_VALID != 0 || more & SKIP_WORKTREE != 0;
    zeros.then_some((hides, padded))
}

/// Where the name of an entry begins.
fn name_at(entry: &[u8], id: usize) -> Option<usize> {
    let flags = short(entry.get(STAT + id..)?)?;
    Some(STAT + id + if flags & EXTENDED != 0 { 4 } else { 2 })
}

/// Extensions with a name in capitals can be done without; others change what the entries mean.
fn only_known(mut rest: &[u8]) -> bool {
    while let Some((name, after)) = rest.split_at_checked(4) {
        let body = number(after).and_then(|(size, body)| body.get(usize::try_from(size).ok()?..));
        match body {
            Some(next) if name[0].is_ascii_uppercase() => rest = next,
            Some(_) | None => return false,
        }
    }
    rest.is_empty()
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), rest))
}

fn short(bytes: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index as git writes it, with names, flags and further flags of its entries.
    fn index(id: usize, entries: &[(&str, u16, u16)], extensions: &[u8]) -> Vec<u8> {
        let mut bytes =
            [b"DIRC".as_slice(), &3u32.to_be_bytes(), &(entries.len() as u32).to_be_bytes()].concat();
        for (name, flags, more) in entries {
            let start = bytes.len();
            bytes.extend(vec![7; STAT + id]);
            bytes.extend((flags | name.len() as u16).to_be_bytes());
            if flags & EXTENDED != 0 {
                bytes.extend(more.to_be_bytes());
            }
            bytes.extend(name.bytes());
            bytes.push(0);
            while (bytes.len() - start) % 8 != 0 {
                bytes.push(0);
            }
        }
        bytes.extend(extensions);
        bytes.extend(vec![9; id]);
        bytes
    }

    const PLAIN: [(&str, u16, u16); 3] = [("a", 0, 0), ("dir/some.txt", EXTENDED, 0x2000), ("z", 0, 0)];

    fn is_read(index: &[u8], id: usize) -> bool {
        without_stat(index, id).is_some()
    }

    #[test]
    fn what_hides_a_file_is_seen() {
        for id in [20, 32] {
            assert!(is_read(&index(id, &PLAIN, b""), id));
            assert!(is_read(&index(id, &[], b""), id));
            assert!(!is_read(&index(id, &PLAIN, b""), 52 - id), "ids of the other length");
            let [first, second, third] = PLAIN;
            let assumed = [first, second, (third.0, ASSUME_VALID, 0)];
            assert!(!is_read(&index(id, &assumed, b""), id));
            let skipped = [first, (second.0, EXTENDED, SKIP_WORKTREE), third];
            assert!(!is_read(&index(id, &skipped, b""), id));
        }
    }

    #[test]
    fn only_what_was_noted_about_the_files_is_taken_out() {
        let whole = index(20, &PLAIN, b"");
        let bare = without_stat(&whole, 20).unwrap();
        assert_eq!(without_stat(&bare, 20).as_ref(), Some(&bare));
        let extended = index(20, &PLAIN, b"TREE\0\0\0\x02ab");
        assert_eq!(without_stat(&extended, 20).as_ref(), Some(&bare), "extensions are left out");
        assert_eq!(whole.len(), bare.len());
        let differ = whole.iter().zip(&bare).filter(|(before, after)| before != after).count();
        assert_eq!(differ, 3 * (STAT - MODE.len()) + 20, "of three entries, and the checksum");
        let hidden = [("a", ASSUME_VALID, 0)];
        assert_eq!(without_stat(&index(20, &hidden, b""), 20), None);
    }

    #[test]
    fn the_names_of_all_files_are_told() {
        let names = names(&index(32, &PLAIN, b""), 32).unwrap();
        assert_eq!(names, ["a", "dir/some.txt", "z"].map(PathBuf::from));
    }

    #[test]
    fn the_tree_of_all_entries_is_told_while_it_holds() {
        let tree = |counts: &str| {
            let body = [b"\0".as_slice(), counts.as_bytes(), b"\n", &[0xab; 20], b"dir\0"].concat();
            let size = u32::try_from(body.len()).unwrap().to_be_bytes();
            root_tree(&index(20, &PLAIN, &[b"TREE".as_slice(), &size, &body].concat()), 20)
        };
        assert_eq!(tree("3 1"), Some("ab".repeat(20)));
        assert_eq!(tree("-1 1"), None);
        assert_eq!(root_tree(&index(20, &PLAIN, b""), 20), None);
    }

    #[test]
    fn extensions_that_change_the_meaning_are_left_to_git() {
        assert!(is_read(&index(20, &PLAIN, b"TREE\0\0\0\x02ab"), 20));
        assert!(!is_read(&index(20, &PLAIN, b"link\0\0\0\x02ab"), 20));
        assert!(!is_read(&index(20, &PLAIN, b"TREE\0\0\0\x09ab"), 20));
    }

    #[test]
    fn what_is_cut_off_or_of_another_version_is_left_to_git() {
        let whole = index(20, &PLAIN, b"");
        for end in 0..whole.len() - 20 {
            assert!(!is_read(&whole[..end], 20), "{end}");
        }
        let mut compressed = whole;
        compressed[7] = 4;
        assert!(!is_read(&compressed, 20));
    }
}
