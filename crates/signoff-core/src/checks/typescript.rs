//! Parses `src/a.ts(3,5): error TS2322: …`, as tsc and the .NET compilers print it.

use super::location::{SourceLocation, is_path, number};
use super::remark::{Remark, RemarkLevel, RemarkList};

pub(super) fn read(line: &str, found: &mut RemarkList) -> bool {
    let remark = remark(line.trim_start());
    let taken = remark.is_some();
    found.remarks.extend(remark);
    taken
}

fn remark(line: &str) -> Option<Remark> {
    let (head, said) = line.split_once("): ")?;
    let (file, place) = head.rsplit_once('(')?;
    let (at, column) = number(place)?;
    let plain = column.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    let (level, message) = RemarkLevel::parse(said);
    (plain && is_path(file)).then(|| Remark::new(level, Some(SourceLocation::new(file, Some(at))), message))
}
