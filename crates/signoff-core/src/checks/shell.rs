//! Parses errors of scripts: `./test.sh: 3: foo: not found` of shells, `… at a.pl line 3.` of Perl.

use super::location::{SourceLocation, is_path, number};
use super::remark::{Remark, RemarkList};

pub(super) fn read(line: &str, found: &mut RemarkList) -> bool {
    let remark = shell(line).or_else(|| perl(line));
    let taken = remark.is_some();
    found.remarks.extend(remark);
    taken
}

/// Parses `script: 3: message` of dash and `script: line 3: message` of bash.
fn shell(line: &str) -> Option<Remark> {
    let (file, rest) = line.split_once(": ")?;
    let (at, rest) = number(rest.strip_prefix("line ").unwrap_or(rest))?;
    let message = rest.strip_prefix(": ").filter(|_| is_path(file))?;
    Some(Remark::error(SourceLocation::new(file, Some(at)), message))
}

/// Parses `message at script line 3.`, optionally followed by `, near "…"`.
fn perl(line: &str) -> Option<Remark> {
    let (head, rest) = line.rsplit_once(" line ")?;
    let (message, file) = head.rsplit_once(" at ")?;
    let (at, rest) = number(rest)?;
    let place = rest.starts_with(['.', ',']) && is_path(file);
    place.then(|| Remark::error(SourceLocation::new(file, Some(at)), message))
}
