//! Any other text: a specification. It has a title, and its tasks are yet to be found.

use super::lines::Lines;
use super::{Format, Source, TaskFile};

pub fn read(source: &Source<'_>) -> TaskFile {
    let mut file = TaskFile::new(Format::Text);
    let heading = Lines::of(source).find_map(|line| line.heading().filter(|(_, text)| !text.is_empty()));
    file.title = heading.map(|(_, text)| text.to_owned());
    file
}
