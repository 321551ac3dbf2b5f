//! Parses any other text as a specification. It has a title, and a planner enumerates its tasks.

use super::lines::MarkdownLines;
use super::{SourceInput, TaskFile, TaskFormat};

pub fn read(source: &SourceInput<'_>) -> TaskFile {
    let mut file = TaskFile::new(TaskFormat::Text);
    let mut lines = MarkdownLines::new(source);
    let heading = lines.by_ref().find_map(|line| line.heading().filter(|(_, text)| !text.is_empty()));
    file.title = heading.map(|(_, text)| text.to_owned());
    lines.by_ref().for_each(drop);
    // It may hide the tasks of a plan.
    file.warnings.extend(lines.unclosed());
    file
}
