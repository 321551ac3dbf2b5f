//! Parses the git index. Asking git instead would cost a process before and after every commit.
//!
//! The format is described in gitformat-index. Index files that this parser does not understand are left to git.

use std::path::PathBuf;

use signoff_core::hex::hex;

use super::repository::path;

/// Flag that makes git treat a file as unchanged.
const ASSUME_VALID: u16 = 0x8000;
/// Flag for the presence of extended flags.
const EXTENDED: u16 = 0x4000;
/// Extended flag that makes git ignore the file in the worktree.
const SKIP_WORKTREE: u16 = 0x4000;
/// Length of the fields before an entry's id: times, device, inode, mode, owner, size.
const STAT_BYTES: usize = 40;
/// Position of the mode, which is part of the content.
const MODE_RANGE: std::ops::Range<usize> = 24..28;
/// Mode of a submodule.
const SUBMODULE_MODE: u32 = 0o160_000;
/// Length of the header: signature, version, number of entries.
const HEADER_BYTES: usize = 12;

/// The index without cached file metadata, so that git compares every file. `None` if an entry has a flag that
/// hides its file, or if only git can rewrite the index. Object ids have `id_bytes` bytes.
pub(super) fn without_stat(index: &[u8], id_bytes: usize) -> Option<Vec<u8>> {
    let parsed = IndexEntries::parse(index, id_bytes)?;
    if parsed.entries.iter().any(|entry| entry.is_hidden) {
        return None;
    }
    let mut out = index.get(..HEADER_BYTES)?.to_vec();
    for entry in parsed.entries {
        let kept = entry.bytes.iter().enumerate();
        out.extend(kept.map(|(at, byte)| if at >= STAT_BYTES || MODE_RANGE.contains(&at) { *byte } else { 0 }));
    }
    // Zeros mean that the checksum was not computed.
    out.resize(out.len() + id_bytes, 0);
    Some(out)
}

/// The paths of all files. `None` if only git can read the index.
pub(super) fn file_paths(index: &[u8], id_bytes: usize) -> Option<Vec<PathBuf>> {
    Some(IndexEntries::parse(index, id_bytes)?.entries.iter().map(|entry| path(entry.name)).collect())
}

/// The paths of all submodules. `None` if only git can read the index.
pub(super) fn submodules(index: &[u8], id_bytes: usize) -> Option<Vec<PathBuf>> {
    let entries = IndexEntries::parse(index, id_bytes)?.entries.into_iter();
    let links = entries.filter(|entry| entry.bytes.get(MODE_RANGE) == Some(&SUBMODULE_MODE.to_be_bytes()));
    Some(links.map(|entry| path(entry.name)).collect())
}

/// The id of the tree the entries were last written as, if none has changed since.
pub(super) fn root_tree(index: &[u8], id_bytes: usize) -> Option<String> {
    let mut rest = IndexEntries::parse(index, id_bytes)?.extensions;
    while let Some((name, after)) = rest.split_at_checked(4) {
        let (size, body) = read_u32(after)?;
        let (own, next) = body.split_at_checked(usize::try_from(size).ok()?)?;
        if name == b"TREE" {
            return parse_root_tree(own, id_bytes);
        }
        rest = next;
    }
    None
}

/// Parses the root of the tree cache: an empty name, the number of entries, the number of subtrees, the id.
fn parse_root_tree(trees: &[u8], id_bytes: usize) -> Option<String> {
    let rest = trees.strip_prefix(b"\0")?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (counts, rest) = rest.split_at_checked(end)?;
    // A negative count marks an invalid tree.
    let is_valid = counts.first()?.is_ascii_digit();
    let id = rest.get(1..=id_bytes).filter(|_| is_valid)?;
    Some(hex(id))
}

/// A parsed index.
struct IndexEntries<'a> {
    entries: Vec<IndexEntry<'a>>,
    extensions: &'a [u8],
}

struct IndexEntry<'a> {
    bytes: &'a [u8],
    name: &'a [u8],
    /// Whether a flag hides its file.
    is_hidden: bool,
}

impl<'a> IndexEntries<'a> {
    /// Parses an index whose object ids have `id_bytes` bytes.
    fn parse(index: &'a [u8], id_bytes: usize) -> Option<Self> {
        let (content, _checksum) = index.split_at_checked(index.len().checked_sub(id_bytes)?)?;
        let (version, rest) = read_u32(content.strip_prefix(b"DIRC")?)?;
        let (count, mut rest) = read_u32(rest)?;
        if !matches!(version, 2 | 3) {
            return None;
        }
        let mut entries = Vec::new();
        for _ in 0..count {
            let entry = IndexEntry::parse(rest, id_bytes)?;
            rest = rest.get(entry.bytes.len()..)?;
            entries.push(entry);
        }
        has_only_optional_extensions(rest).then_some(Self { entries, extensions: rest })
    }
}

impl<'a> IndexEntry<'a> {
    /// Parses the first entry.
    fn parse(bytes: &'a [u8], id_bytes: usize) -> Option<Self> {
        let flags = read_u16(bytes.get(STAT_BYTES + id_bytes..)?)?;
        let extended = flags & EXTENDED != 0;
        let more = if extended { read_u16(bytes.get(STAT_BYTES + id_bytes + 2..)?)? } else { 0 };
        let start = STAT_BYTES + id_bytes + if extended { 4 } else { 2 };
        let end = start + bytes.get(start..)?.iter().position(|byte| *byte == 0)?;
        // The name ends with one to eight zeros, up to a multiple of eight.
        let padded = (end / 8 + 1) * 8;
        let zeros = bytes.get(end..padded)?.iter().all(|byte| *byte == 0);
        let is_hidden = flags & ASSUME_VALID != 0 || more & SKIP_WORKTREE != 0;
        zeros.then_some(Self { bytes: bytes.get(..padded)?, name: bytes.get(start..end)?, is_hidden })
    }
}

/// Git may ignore extensions with an upper-case name; others change the meaning of the entries.
fn has_only_optional_extensions(mut rest: &[u8]) -> bool {
    while let Some((name, after)) = rest.split_at_checked(4) {
        let body = read_u32(after).and_then(|(size, body)| body.get(usize::try_from(size).ok()?..));
        match body {
            Some(next) if name[0].is_ascii_uppercase() => rest = next,
            Some(_) | None => return false,
        }
    }
    rest.is_empty()
}

fn read_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), rest))
}

fn read_u16(bytes: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds an index as git writes it, from names, flags and extended flags.
    fn index(id_bytes: usize, entries: &[(&str, u16, u16)], extensions: &[u8]) -> Vec<u8> {
        let mut bytes = [b"DIRC".as_slice(), &3u32.to_be_bytes(), &(entries.len() as u32).to_be_bytes()].concat();
        for (name, flags, more) in entries {
            let start = bytes.len();
            bytes.extend(vec![7; STAT_BYTES + id_bytes]);
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
        bytes.extend(vec![9; id_bytes]);
        bytes
    }

    const PLAIN: [(&str, u16, u16); 3] = [("a", 0, 0), ("dir/some.txt", EXTENDED, 0x2000), ("z", 0, 0)];

    fn is_read(index: &[u8], id_bytes: usize) -> bool {
        without_stat(index, id_bytes).is_some()
    }

    #[test]
    fn flags_that_hide_a_file_are_detected() {
        for id_bytes in [20, 32] {
            assert!(is_read(&index(id_bytes, &PLAIN, b""), id_bytes));
            assert!(is_read(&index(id_bytes, &[], b""), id_bytes));
            assert!(!is_read(&index(id_bytes, &PLAIN, b""), 52 - id_bytes), "ids of the other length");
            let [first, second, third] = PLAIN;
            let assumed = [first, second, (third.0, ASSUME_VALID, 0)];
            assert!(!is_read(&index(id_bytes, &assumed, b""), id_bytes));
            let skipped = [first, (second.0, EXTENDED, SKIP_WORKTREE), third];
            assert!(!is_read(&index(id_bytes, &skipped, b""), id_bytes));
        }
    }

    #[test]
    fn only_cached_file_metadata_is_cleared() {
        let full = index(20, &PLAIN, b"");
        let bare = without_stat(&full, 20).unwrap();
        assert_eq!(without_stat(&bare, 20).as_ref(), Some(&bare));
        let extended = index(20, &PLAIN, b"TREE\0\0\0\x02ab");
        assert_eq!(without_stat(&extended, 20).as_ref(), Some(&bare), "extensions are left out");
        assert_eq!(full.len(), bare.len());
        let differ = full.iter().zip(&bare).filter(|(before, after)| before != after).count();
        assert_eq!(differ, 3 * (STAT_BYTES - MODE_RANGE.len()) + 20, "of three entries, and the checksum");
        let hidden = [("a", ASSUME_VALID, 0)];
        assert_eq!(without_stat(&index(20, &hidden, b""), 20), None);
    }

    #[test]
    fn all_file_names_are_listed() {
        let names = file_paths(&index(32, &PLAIN, b""), 32).unwrap();
        assert_eq!(names, ["a", "dir/some.txt", "z"].map(PathBuf::from));
    }

    #[test]
    fn the_root_tree_is_returned_while_it_is_valid() {
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
    fn indexes_with_required_extensions_are_not_parsed() {
        assert!(is_read(&index(20, &PLAIN, b"TREE\0\0\0\x02ab"), 20));
        assert!(!is_read(&index(20, &PLAIN, b"link\0\0\0\x02ab"), 20));
        assert!(!is_read(&index(20, &PLAIN, b"TREE\0\0\0\x09ab"), 20));
    }

    #[test]
    fn truncated_or_unknown_indexes_are_not_parsed() {
        let full = index(20, &PLAIN, b"");
        for end in 0..full.len() - 20 {
            assert!(!is_read(&full[..end], 20), "{end}");
        }
        let mut compressed = full;
        compressed[7] = 4;
        assert!(!is_read(&compressed, 20));
    }
}
