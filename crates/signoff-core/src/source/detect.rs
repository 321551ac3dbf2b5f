//! Detects the format of a task file by its path, or else by its content, and reads text in no known format.

use super::json::PositionedJson;
use super::lines::{MarkdownLine, MarkdownLines};
use super::{
    SourceError, SourceInput, TaskFile, TaskFormat, beads, bmad, numbered_boxes, plan_markdown, spec_kit, task_master,
};

pub fn format(source: &SourceInput<'_>) -> Result<TaskFormat, SourceError> {
    if let Some(format) = by_path(source.path) {
        return Ok(format);
    }
    if has_ending(source.path, &["json"]) || looks_like_json(source) {
        return by_json(source);
    }
    if bmad::is_sprint(source.path) && source.text.lines().any(|line| line.starts_with("development_status:")) {
        return Ok(TaskFormat::Bmad);
    }
    Ok(by_markdown(source))
}

/// The error for text that must contain tasks but has none.
pub fn no_tasks_error(source: &SourceInput<'_>) -> SourceError {
    let tried = "plan markdown (`### Task 1: Title`), spec-kit (`- [ ] T001 text`), OpenSpec (`- [ ] 1.1 text` under `## 1. Title`), Kiro (`- [ ] 1. Title`), BMAD (`# Story 1.2: Title`), Task Master and beads (JSON)";
    let mut lines = MarkdownLines::new(source);
    let first = lines.by_ref().find(|line| !line.text.trim().is_empty()).map_or(1, |line| line.number);
    lines.by_ref().for_each(drop);
    let message = format!("no tasks found; formats tried: {tried}");
    match lines.unclosed() {
        Some(warning) => source.error(warning.line, format!("{message}; {}", warning.message)),
        None => source.error(first, message),
    }
}

fn has_ending(path: &str, endings: &[&str]) -> bool {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| endings.contains(&ending.as_str()))
}

fn by_path(path: &str) -> Option<TaskFormat> {
    let parts: Vec<&str> = path.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".").collect();
    match parts.as_slice() {
        [.., ".kiro", "specs", _, "tasks.md"] => Some(TaskFormat::Kiro),
        [before @ .., "tasks.md"] if before.windows(2).any(|pair| pair == ["openspec", "changes"]) => {
            Some(TaskFormat::OpenSpec)
        }
        [.., "specs", feature, "tasks.md"] if is_numbered(feature) => Some(TaskFormat::SpecKit),
        [.., ".taskmaster", "tasks", "tasks.json"] => Some(TaskFormat::TaskMaster),
        [.., "sprint-status.yaml" | "sprint-status.yml"] => Some(TaskFormat::Bmad),
        [.., name] if has_ending(name, &["jsonl"]) => Some(TaskFormat::Beads),
        _ => None,
    }
}

/// Whether the name is like `001-user-login`.
fn is_numbered(feature: &str) -> bool {
    feature.split_once('-').is_some_and(|(number, name)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty()
    })
}

/// Whether the text looks like JSON. Markdown may begin with a bracket too, so that is not enough.
fn looks_like_json(source: &SourceInput<'_>) -> bool {
    let text = source.text.trim_start();
    if has_ending(source.path, &["md", "markdown", "txt"]) {
        return false;
    }
    text.starts_with('{') || text.starts_with('[') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn by_json(source: &SourceInput<'_>) -> Result<TaskFormat, SourceError> {
    let text = source.text.trim();
    if text.starts_with('[') || text.is_empty() || beads::looks_like_lines(source) {
        return Ok(TaskFormat::Beads);
    }
    let members = PositionedJson::new(source.text)
        .members(text)
        .map_err(|error| source.error(error.line, format!("{}; formats tried: Task Master, beads", error.message)))?;
    if task_master::fits(&members) {
        return Ok(TaskFormat::TaskMaster);
    }
    if beads::fits(&members) {
        return Ok(TaskFormat::Beads);
    }
    Err(source.error(
        1,
        "JSON without tasks; formats tried: Task Master ({\"tasks\": […]} or {\"TAG\": {\"tasks\": […]}}), beads ([…], {\"data\": […]}, {\"issues\": […]} or one issue a line)",
    ))
}

/// The formats that the lines of a Markdown file indicate.
#[derive(Default)]
struct FormatHints {
    story: bool,
    story_tasks: bool,
    plan: bool,
    spec_kit: bool,
    /// A checkbox with a whole number at the margin, or a tag that only Kiro uses.
    kiro: bool,
    /// `- [ ] 1.1 …` under `## 1. …`.
    open_spec: bool,
    in_numbered_section: bool,
}

fn by_markdown(source: &SourceInput<'_>) -> TaskFormat {
    let mut signs = FormatHints::default();
    for line in MarkdownLines::new(source).filter(MarkdownLine::is_prose) {
        signs.read_line(&line);
    }
    match signs {
        FormatHints { story: true, story_tasks: true, .. } => TaskFormat::Bmad,
        FormatHints { plan: true, .. } => TaskFormat::PlanMarkdown,
        FormatHints { spec_kit: true, .. } => TaskFormat::SpecKit,
        FormatHints { kiro: true, .. } => TaskFormat::Kiro,
        FormatHints { open_spec: true, .. } => TaskFormat::OpenSpec,
        FormatHints { .. } => TaskFormat::Text,
    }
}

impl FormatHints {
    fn read_line(&mut self, line: &MarkdownLine<'_>) {
        self.plan |= plan_markdown::is_task(line);
        self.spec_kit |= spec_kit::is_task(line);
        if let Some((level, text)) = line.heading() {
            self.story |= bmad::story_heading(line).is_some();
            self.story_tasks |= level == 2 && text.to_ascii_lowercase().starts_with("tasks");
            self.in_numbered_section = level == 2 && text.starts_with(|c: char| c.is_ascii_digit());
        }
        if let Some(item) = numbered_boxes::item(line).filter(|item| !item.is_count) {
            let top = !item.id.contains('.');
            self.kiro |= top && line.text.starts_with('-') && !self.in_numbered_section || item.optional;
            self.open_spec |= self.in_numbered_section && !top;
        }
        let is_numbered_tag = |tag| numbered_boxes::tagged(line.text, tag).is_some();
        self.kiro |= (self.kiro || self.open_spec) && is_numbered_tag("_Requirements:");
    }
}

pub fn read_specification(source: &SourceInput<'_>) -> TaskFile {
    let mut file = TaskFile::new(TaskFormat::Text);
    let mut lines = MarkdownLines::new(source);
    let heading = lines.by_ref().find_map(|line| line.heading().filter(|(_, text)| !text.is_empty()));
    file.title = heading.map(|(_, text)| text.to_owned());
    lines.by_ref().for_each(drop);
    // It may hide the tasks of a plan.
    file.warnings.extend(lines.unclosed());
    file
}
