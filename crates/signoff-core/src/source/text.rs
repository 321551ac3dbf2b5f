//! Any other text: a specification. It has a title, and its tasks are yet to be found.

use super::lines::Lines;
use super::{Format, Source, TaskFile};

pub fn read(source: &Source<'_>) -> TaskFile {
    let mut file = TaskFile::new(Format::Text);
    let mut lines = Lines::of(source);
    let heading = lines.by_ref().find_map(|line| line.heading().filter(|(_, text)| !text.is_empty()));
    file.title = heading.map(|(_, text)| text.to_owned());
    lines.by_ref().for_each(drop);
    // It may have hidden the tasks of a plan.
    file.warnings.extend(lines.unclosed());
    file
}
