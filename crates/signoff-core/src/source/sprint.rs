//! Parses BMAD's `sprint-status.yaml`: the stories of a sprint, in order.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser};

use super::lines::short;
use super::order;
use super::{SourceError, SourceInput, SourceState, SourceTask, TaskFile, TaskFormat, Warning};

const EXPECTED: &str = "stories such as `1-2-user-login: ready-for-dev` under `development_status:`";

/// The mapping with the stories.
const STATUSES: &str = "development_status";

/// Maximum nesting depth.
const MAX_DEPTH: usize = 16;

/// The file of a story, which the caller found beside the sprint file.
#[derive(Debug, Clone, Copy)]
pub struct StoryFile<'a> {
    /// The file name without `.md`: `1-2-user-login`.
    pub key: &'a str,
    pub path: &'a str,
    pub bytes: &'a [u8],
}

/// Whether a path names a sprint file.
pub fn is_sprint(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    [".yaml", ".yml"].iter().any(|ending| path.ends_with(ending))
}

/// Parses a sprint. Each story is one task, in file order. A story whose file is given gets its title, body, steps
/// and criteria from it.
pub fn read_sprint(path: &str, bytes: &[u8], stories: &[StoryFile<'_>]) -> Result<TaskFile, SourceError> {
    let mut file = read(&super::open(path, bytes, None)?)?;
    let places: HashMap<String, usize> =
        file.tasks.iter().enumerate().map(|(index, task)| (task.id.clone(), index)).collect();
    for story in stories {
        let Some(index) = places.get(story.key) else { continue };
        let story_file = super::read_as(TaskFormat::Bmad, story.path, story.bytes, None)?;
        fill(&mut file.tasks[*index], story_file);
    }
    Ok(file)
}

fn fill(task: &mut SourceTask, story: TaskFile) {
    if let Some(title) = story.title {
        task.title = title;
    }
    task.body = story.goal.unwrap_or_default();
    task.acceptance = story.acceptance;
    let step = |task: SourceTask| super::TaskStep {
        done: task.state == SourceState::Done,
        title: task.title,
        line: task.line,
        // The checkbox is in the story file, not in the sprint file.
        mark: None,
    };
    task.steps = story.tasks.into_iter().map(step).collect();
}

pub fn read(source: &SourceInput<'_>) -> Result<TaskFile, SourceError> {
    let mut file = TaskFile::new(TaskFormat::Bmad);
    for (key, status, line) in statuses(source, &mut file)? {
        if is_story(&key) {
            let mut task = SourceTask::new(key.as_str(), title(&key), line);
            task.state = state(&key, &status, line, &mut file.warnings);
            task.section = key.split('-').next().map(|epic| format!("epic-{epic}"));
            file.push(source, task)?;
        }
    }
    order::refuse_empty(source, &file, EXPECTED)?;
    order::refuse_duplicate_ids(source, &file)?;
    order::file_order(&mut file);
    Ok(file)
}

/// Whether a key is a story, such as `1-2-user-login`: epic, story, words. Agents do not work on epics and
/// retrospectives.
fn is_story(key: &str) -> bool {
    let mut parts = key.split('-');
    let number = |part: Option<&str>| part.is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    number(parts.next()) && number(parts.next())
}

fn title(key: &str) -> String {
    let mut parts = key.splitn(3, '-');
    let (epic, story) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let words = parts.next().unwrap_or_default().replace('-', " ");
    format!("Story {epic}.{story}: {words}").trim_end_matches([':', ' ']).to_owned()
}

fn state(key: &str, status: &str, line: u32, warnings: &mut Vec<Warning>) -> SourceState {
    match status {
        "ready-for-dev" => SourceState::Open,
        "in-progress" => SourceState::InProgress,
        "review" => SourceState::Review,
        "done" => SourceState::Done,
        // The story is not written yet, so there is nothing to work from.
        "backlog" | "drafted" => SourceState::Deferred,
        other => {
            let other = short(other);
            warnings.push(Warning::new(line, format!("{key} has the unknown status {other}: it is left alone")));
            SourceState::Deferred
        }
    }
}

/// The members of `development_status`, with their lines.
///
/// Reads the events one by one and rejects aliases, so that nothing expands beyond the size of the file.
fn statuses(source: &SourceInput<'_>, file: &mut TaskFile) -> Result<Vec<(String, String, u32)>, SourceError> {
    let mut found = Vec::new();
    let mut walk = YamlWalk::default();
    for event in Parser::new_from_str(source.text) {
        let (event, span) = event
            .map_err(|error| source.error(line_number(error.marker().line()), format!("not YAML: {}", error.info())))?;
        let line = line_number(span.start.line());
        match event {
            Event::Alias(_) => return Err(source.error(line, "an alias; expected plain names and statuses")),
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                let status = walk.enter(matches!(event, Event::MappingStart(..)));
                if let Some(key) = status.filter(|key| is_story(key)) {
                    let message = "has no plain status and was left out; expected a word such as ready-for-dev";
                    file.warn(line, format!("{} {message}", short(&key)));
                }
            }
            Event::MappingEnd | Event::SequenceEnd => walk.leave(),
            Event::Scalar(text, ..) => walk.scalar(&text),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {}
        }
        if walk.levels.len() > MAX_DEPTH {
            return Err(source.error(line, format!("nested more than {MAX_DEPTH} deep")));
        }
        match walk.member.take() {
            Some((path, key, value)) if path == STATUSES => found.push((key, value, line)),
            Some((path, key, value)) if path.is_empty() && key == "project" => file.title = Some(value),
            Some(_) | None => {}
        }
    }
    Ok(found)
}

fn line_number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX).max(1)
}

/// The current position in the tree of mappings.
#[derive(Default)]
struct YamlWalk {
    levels: Vec<YamlLevel>,
    /// A key and value just completed, with the key of the mapping that contains them.
    member: Option<(String, String, String)>,
}

struct YamlLevel {
    is_mapping: bool,
    name: String,
    key: Option<String>,
}

impl YamlWalk {
    /// Enters a mapping or list. Returns the key whose status it replaces.
    fn enter(&mut self, is_mapping: bool) -> Option<String> {
        let of_status = self.levels.len() == 2 && self.levels.last().is_some_and(|level| level.name == STATUSES);
        let key = self.levels.last_mut().and_then(|level| level.key.take());
        let name = key.as_deref().map(short).unwrap_or_default();
        self.levels.push(YamlLevel { is_mapping, name, key: None });
        key.filter(|_| of_status)
    }

    fn leave(&mut self) {
        self.levels.pop();
    }

    fn scalar(&mut self, text: &str) {
        let depth = self.levels.len();
        let Some(level) = self.levels.last_mut().filter(|level| level.is_mapping) else { return };
        match level.key.take() {
            None => level.key = Some(text.to_owned()),
            // Only the top level and the one below it are read.
            Some(key) if depth <= 2 => self.member = Some((level.name.clone(), key, text.to_owned())),
            Some(_) => {}
        }
    }
}
