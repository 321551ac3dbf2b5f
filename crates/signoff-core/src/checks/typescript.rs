//! `src/a.ts(3,5): error TS2322: …`, as tsc and the .NET compilers print places.

use super::place::{Place, is_path, number};
use super::remark::{Found, Level, Remark};

pub(super) fn read(line: &str, found: &mut Found) -> bool {
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
    let (level, message) = Level::said(said);
    (plain && is_path(file)).then(|| Remark::of(level, Some(Place::of(file, Some(at))), message))
}
