//! Parses OpenSpec's `tasks.md`, in which checkboxes inside fences count too.

use super::lines::{
    Checkbox, LineKind, MarkdownLine, MarkdownLines, begins_with_count, leading_number, short, visible,
};
use super::order;
use super::{SourceError, SourceInput, SourceTask, TaskFile, TaskFormat};

const EXPECTED: &str = "lines such as `- [ ] 1.1 text`";

pub fn read(source: &SourceInput<'_>) -> Result<TaskFile, SourceError> {
    let mut file = TaskFile::new(TaskFormat::OpenSpec);
    let mut lines = MarkdownLines::new(source);
    let mut nesting = CheckboxNesting::default();
    let mut section = None;
    for line in lines.by_ref() {
        let boxed = boxed(&line);
        if boxed.is_some() || line.heading().is_some() {
            file.close(source, line.offset);
        }
        match line.heading() {
            Some((1, text)) => drop(file.title.get_or_insert_with(|| text.to_owned())),
            Some((_, text)) => section = Some(short(text)),
            None => {}
        }
        if let Some(boxed) = boxed {
            let mut task = task(source, &line, &boxed, file.tasks.len() + 1);
            task.section = section.clone();
            nesting.enter(boxed.indent, file.tasks.len());
            file.open(source, task, &line)?;
        }
        if line.heading().is_some() {
            nesting.leave_all();
        }
    }
    nesting.leave_all();
    file.finish(source, &lines, EXPECTED)?;
    order::make_ids_unique(&mut file);
    for (child, parent) in nesting.parents {
        file.tasks[child].parent = Some(file.tasks[parent].id.clone());
    }
    order::chain(&mut file, nesting.finished);
    Ok(file)
}

/// Parses a checkbox of OpenSpec: any bullet, optional white space, and ` `, `x` or `X` in the box.
fn boxed<'a>(line: &MarkdownLine<'a>) -> Option<Checkbox<'a>> {
    let counts = matches!(line.kind, LineKind::Prose | LineKind::Code);
    Checkbox::parse(line.text).filter(|boxed| counts && (boxed.is_ticked() || boxed.is_blank()))
}

fn task(source: &SourceInput<'_>, line: &MarkdownLine<'_>, boxed: &Checkbox<'_>, ordinal: usize) -> SourceTask {
    let text = visible(boxed.rest);
    let text = text.trim();
    let (id, title) = match leading_number(text).filter(|_| !begins_with_count(text)) {
        Some((id, title)) => (id.to_owned(), title),
        None => (ordinal.to_string(), text),
    };
    let mut task = SourceTask::new(id, title, line.number);
    boxed.tick_task(&mut task, source, line);
    task
}

/// The nesting of items by indentation, and the order in which they end: nested before parent.
#[derive(Default)]
struct CheckboxNesting {
    open: Vec<(usize, usize)>,
    parents: Vec<(usize, usize)>,
    finished: Vec<usize>,
}

impl CheckboxNesting {
    fn enter(&mut self, indent: usize, index: usize) {
        while let Some((_, item)) = self.open.pop_if(|(above, _)| *above >= indent) {
            self.finished.push(item);
        }
        if let Some((_, parent)) = self.open.last() {
            self.parents.push((index, *parent));
        }
        self.open.push((indent, index));
    }

    fn leave_all(&mut self) {
        self.finished.extend(self.open.drain(..).rev().map(|(_, item)| item));
    }
}
