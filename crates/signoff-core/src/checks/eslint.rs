//! Parses eslint and stylelint: a file on its own line, then `  3:5  error  message  rule` below it.

use super::location::{SourceLocation, is_path, number};
use super::remark::{Remark, RemarkLevel, RemarkList};

#[derive(Debug, Default)]
pub(super) struct Eslint {
    file: Option<String>,
}

const LEVELS: [(&str, RemarkLevel); 6] = [
    ("error", RemarkLevel::Error),
    ("warning", RemarkLevel::Warning),
    ("✖", RemarkLevel::Error),
    ("×", RemarkLevel::Error),
    ("⚠", RemarkLevel::Warning),
    ("‼", RemarkLevel::Warning),
];

impl Eslint {
    pub(super) fn read(&mut self, line: &str, found: &mut RemarkList) -> bool {
        if !line.starts_with(' ') {
            self.file = is_path(line).then(|| line.to_owned());
            return self.file.is_some();
        }
        let remark = self.file.as_deref().and_then(|file| item(file, line.trim()));
        let taken = remark.is_some();
        found.remarks.extend(remark);
        taken
    }
}

/// `3:5  error  message  rule`
fn item(file: &str, item: &str) -> Option<Remark> {
    let (line, rest) = number(item)?;
    let (_, rest) = number(rest.strip_prefix(':')?)?;
    let rest = rest.trim_start();
    let (word, level) = LEVELS.into_iter().find(|(word, _)| rest.starts_with(word))?;
    let said = rest[word.len()..].trim_start();
    let message = match said.rsplit_once("  ") {
        Some((message, rule)) => format!("{} ({rule})", message.trim_end()),
        None => said.to_owned(),
    };
    Some(Remark::new(level, Some(SourceLocation::new(file, Some(line))), &message))
}
