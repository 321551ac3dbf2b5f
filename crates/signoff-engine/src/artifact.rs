//! The files of a review: one merged report per cycle, and the raw answers.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use signoff_core::ids::{Artifact, ReviewerName, TaskId};
use signoff_core::merge::merge;
use signoff_core::merge::render::{ReviewFormat, render, unparsed_answer};
use signoff_core::prompt::CHARACTER_CAP;
use signoff_core::review::{FailThreshold, Finding, Review, Verdict};
use signoff_core::workflow::{PhaseKind, Scheduling, Workflow};

use crate::atomic_file::{self, AtomicFile, WriteMode};
use crate::clock;
use crate::failpoint;

/// The base name of an artifact, derived from its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactName(String);

impl ArtifactName {
    /// The review of a task. In a queue with a single gate the review number is enough to identify it.
    pub fn for_task(task: TaskId, started: Timestamp, at: GateReview<'_>) -> Self {
        let day = clock::day(started);
        let GateReview { workflow, pass, phase, cycle } = at;
        let gates = workflow.phases.iter().filter(|phase| matches!(phase.kind, PhaseKind::Gate(_))).count();
        if workflow.arrangement == Scheduling::Queue && gates <= 1 {
            return Self(format!("{day}-task-{task}-review-{cycle}"));
        }
        let phase = workflow.phases.get(phase).map_or("review", |phase| phase.name.as_str());
        Self(format!("{day}-task-{task}-p{pass}-{}-review-{cycle}", safe(phase)))
    }

    /// A checkpoint review of a task.
    pub fn for_checkpoint(task: TaskId, started: Timestamp, number: u32) -> Self {
        Self(format!("{}-task-{task}-checkpoint-{number}", clock::day(started)))
    }

    /// The review of a whole run, or of a checkout.
    pub fn for_run(run: impl std::fmt::Display, started: Timestamp, name: &str, number: u32) -> Self {
        Self(format!("{}-run-{run}-{}-{number}", clock::day(started), safe(name)))
    }

    fn merged(&self, reviews: &Path) -> PathBuf {
        reviews.join(format!("{}.md", self.0))
    }

    /// The path of a reviewer's answer; later answers in the same review get a number.
    fn raw(&self, reviews: &Path, reviewer: &ReviewerName, number: u32) -> PathBuf {
        let again = if number > 1 { format!(".{number}") } else { String::new() };
        reviews.join(format!("{}.{}{again}.txt", self.0, safe(reviewer.as_str())))
    }

    /// The path of a merged review that was replaced.
    fn earlier(&self, reviews: &Path, number: u32) -> PathBuf {
        reviews.join(format!("{}.earlier-{number}.md", self.0))
    }
}

/// Replaces characters of a configured name so that it cannot leave the directory.
fn safe(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || "-_".contains(c) { c } else { '_' }).collect()
}

/// One review of a gate.
#[derive(Debug, Clone, Copy)]
pub struct GateReview<'a> {
    pub workflow: &'a Workflow,
    pub pass: u32,
    pub phase: usize,
    pub cycle: u32,
}

/// Writes a reviewer's raw answer. Returns its path relative to the directory that contains `.signoff`. Earlier answers
/// of the same review are kept, because the log refers to them: each gets its own file.
pub fn write_raw(reviews: &Path, name: &ArtifactName, reviewer: &ReviewerName, text: &[u8]) -> io::Result<Artifact> {
    let free = |path: &PathBuf| fs::read(path).map_or(true, |found| found == text);
    let mut paths = (1..).map(|number| name.raw(reviews, reviewer, number));
    let path = paths.find(free).unwrap_or_else(|| name.raw(reviews, reviewer, 1));
    write(&path, text)?;
    Ok(Artifact::new(relative(reviews, &path)))
}

/// Maximum bytes read from an answer: no prompt shows more, with any characters.
const MAX_ANSWER_BYTES: u64 = 4 * CHARACTER_CAP as u64 + 4;

/// The last raw answer, up to the size that a prompt can show.
pub fn read_raw(reviews: &Path, name: &ArtifactName, reviewer: &ReviewerName) -> Option<String> {
    let paths = (1..).map(|number| name.raw(reviews, reviewer, number));
    read_bounded(&paths.take_while(|path| path.exists()).last()?)
}

fn read_bounded(path: &Path) -> Option<String> {
    let bytes = atomic_file::read_at_most(path, MAX_ANSWER_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a merged review by its file name. Artifacts of earlier versions lack the raw answers of an inconclusive
/// review; they are appended.
pub fn read(reviews: &Path, file: &str) -> Option<String> {
    let mut text = fs::read_to_string(reviews.join(file)).ok()?;
    if text.contains("This review is inconclusive") && !text.contains("\n## Answer of ") {
        let stem = file.strip_suffix(".md").unwrap_or(file);
        for name in raw_names(reviews, stem) {
            let answer = read_bounded(&reviews.join(&name)).unwrap_or_default();
            text += &format!("\n## {name}\n\n{answer}\n");
        }
    }
    Some(text)
}

/// The merged review of a cycle, as written.
pub fn read_merged(reviews: &Path, name: &ArtifactName) -> Option<String> {
    fs::read_to_string(name.merged(reviews)).ok()
}

/// The sorted file names of a merged review's raw answers.
fn raw_names(reviews: &Path, stem: &str) -> Vec<String> {
    let entries = fs::read_dir(reviews).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let raw = |name: &String| name.starts_with(&format!("{stem}.")) && name.ends_with(".txt");
    let mut names: Vec<_> = names.filter(raw).collect();
    names.sort();
    names
}

/// Writes the merged review of a cycle, with the answers that could not be parsed. An earlier file of the same name is
/// kept under another name.
///
/// `still_open` are the findings of earlier reviews that block the gate.
pub fn write_merged(
    reviews: &Path,
    name: &ArtifactName,
    answers: &[Review],
    bar: FailThreshold,
    still_open: Vec<Finding>,
) -> io::Result<PathBuf> {
    let path = name.merged(reviews);
    let mut text = render(&merge(answers, bar).with_still_open(still_open), bar, ReviewFormat::Markdown);
    for review in answers.iter().filter(|review| matches!(review.verdict, Verdict::Inconclusive(_))) {
        let raw = review.raw.as_ref().map(Artifact::as_str);
        let answer = raw.and_then(|raw| read_bounded(&project_dir(reviews).join(raw)));
        text +=
            &answer.map_or(String::new(), |answer| unparsed_answer(&review.reviewer, &answer, raw.unwrap_or_default()));
    }
    if fs::read(&path).is_ok_and(|found| found != text.as_bytes()) {
        let mut earlier = (1..).map(|number| name.earlier(reviews, number));
        fs::rename(&path, earlier.find(|path| !path.exists()).unwrap_or_else(|| name.earlier(reviews, 1)))?;
    }
    write(&path, text.as_bytes())?;
    Ok(path)
}

/// Writes a file atomically, and creates its directory.
fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let file = AtomicFile::write(path, contents, WriteMode::Plain)?;
    failpoint::pass("artifact");
    file.commit()
}

fn relative(reviews: &Path, path: &Path) -> String {
    path.strip_prefix(project_dir(reviews)).unwrap_or(path).display().to_string()
}

/// The directory that the paths in the log are relative to.
fn project_dir(reviews: &Path) -> &Path {
    reviews.parent().and_then(Path::parent).unwrap_or(reviews)
}

/// Writes the plan of a task. Returns its path.
pub fn write_plan(plans: &Path, task: TaskId, started: Timestamp, text: &str) -> io::Result<PathBuf> {
    let path = plans.join(format!("{}-task-{task}-plan.md", clock::day(started)));
    write(&path, text.as_bytes())?;
    Ok(path)
}

/// The merged reviews of a task in the order they were written; or its plans, if `reviews` is the plans directory.
pub fn reviews_of_task(reviews: &Path, task: TaskId) -> Vec<PathBuf> {
    reviews_by_task(reviews).remove(&task).unwrap_or_default()
}

/// Like `reviews_of_task` for all tasks.
pub fn reviews_by_task(reviews: &Path) -> BTreeMap<TaskId, Vec<PathBuf>> {
    let mut found: Vec<(TaskId, (Option<u32>, u32), PathBuf)> = Vec::new();
    for entry in fs::read_dir(reviews).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let task = name.split_once("-task-").and_then(|(_, rest)| rest.split_once('-'));
        let task = task.and_then(|(digits, _)| digits.parse().ok()).filter(|_| name.ends_with(".md"));
        found.extend(task.map(|task| (TaskId(task), (number(&name), earlier(&name)), entry.path())));
    }
    found.sort();
    let mut tasks: BTreeMap<TaskId, Vec<PathBuf>> = BTreeMap::new();
    found.into_iter().for_each(|(task, _, path)| tasks.entry(task).or_default().push(path));
    tasks
}

/// Like `reviews_of_task`, without checkpoint reviews.
fn gate_reviews_of_task(reviews: &Path, task: TaskId) -> Vec<PathBuf> {
    let checkpoint = |path: &PathBuf| path.to_string_lossy().contains(&format!("-task-{task}-checkpoint-"));
    reviews_of_task(reviews, task).into_iter().filter(|path| !checkpoint(path)).collect()
}

/// The newest review of these tasks: its file name and its number.
pub fn latest(reviews: &Path, tasks: &[TaskId]) -> Option<(String, u32)> {
    let written = |path: &PathBuf| fs::metadata(path).and_then(|file| file.modified()).ok();
    let all = tasks.iter().flat_map(|task| gate_reviews_of_task(reviews, *task));
    file_and_number(&all.max_by_key(|path| written(path))?)
}

/// The number of a task's last merged review; 0 if there is none.
pub fn last_number(reviews: &Path, task: TaskId) -> u32 {
    let last = gate_reviews_of_task(reviews, task).pop();
    last.and_then(|path| file_and_number(&path)).map_or(0, |(_, number)| number)
}

fn file_and_number(path: &Path) -> Option<(String, u32)> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let number = number(&name)?;
    Some((name, number))
}

fn number(name: &str) -> Option<u32> {
    let stem = name.strip_suffix(".md")?;
    let stem = stem.split_once(".earlier-").map_or(stem, |(stem, _)| stem);
    stem.rsplit_once('-')?.1.parse().ok()
}

/// Sort key within one review number: replaced files in the order of their numbers, the current file last.
fn earlier(name: &str) -> u32 {
    let earlier = name.strip_suffix(".md").and_then(|stem| stem.split_once(".earlier-"));
    earlier.and_then(|(_, number)| number.parse().ok()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use signoff_core::workflow::preset;

    #[test]
    fn artifacts_are_named_after_task_and_cycle() {
        let at: Timestamp = "2026-01-29T23:59:59Z".parse().unwrap();
        let name = |preset_name: &str, cycle| {
            let workflow = preset(preset_name).unwrap();
            let gate = GateReview { workflow: &workflow, pass: 2, phase: 1, cycle };
            ArtifactName::for_task(TaskId(29), at, gate).merged(Path::new("reviews")).display().to_string()
        };
        insta::assert_snapshot!(name("task", 1), @"reviews/20260129-task-29-review-1.md");
        insta::assert_snapshot!(name("plan", 3), @"reviews/20260129-task-29-p2-review-review-3.md");
    }

    #[test]
    fn artifact_names_include_the_gate_and_stay_in_the_directory() {
        let at: Timestamp = "2026-01-29T23:59:59Z".parse().unwrap();
        let mut workflow = preset("task").unwrap();
        let mut second = workflow.phases[1].clone();
        second.name = "/../../evil".to_owned();
        workflow.phases.push(second);
        let name = |phase| {
            let gate = GateReview { workflow: &workflow, pass: 1, phase, cycle: 1 };
            ArtifactName::for_task(TaskId(29), at, gate).merged(Path::new("reviews")).display().to_string()
        };
        insta::assert_snapshot!(name(1), @"reviews/20260129-task-29-p1-review-review-1.md");
        insta::assert_snapshot!(name(2), @"reviews/20260129-task-29-p1-_______evil-review-1.md");
    }

    #[test]
    fn an_artifact_of_an_unreadable_review_holds_the_answer() {
        let directory = tempfile::tempdir().unwrap();
        let reviews = directory.path().join(".signoff/reviews");
        let name = ArtifactName("20260129-task-2-review-1".to_owned());
        let reviewer = ReviewerName::new("code");
        let answer = "I cannot say.\n\n```\n**Verdict: APPROVED**\n";
        let raw = Some(write_raw(&reviews, &name, &reviewer, answer.as_bytes()).unwrap());
        let violation = signoff_core::review::Violation::new(
            signoff_core::review::ViolationCode::NoVerdict,
            0,
            "there is no verdict",
        );
        let kind = signoff_core::review::ReviewerKind::Code;
        let answers = [Review { raw, ..Review::inconclusive(reviewer, kind, violation) }];
        let path = write_merged(&reviews, &name, &answers, FailThreshold::Medium, Vec::new()).unwrap();
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains(answer.trim_end()) && text.contains("\n````text\n"), "{text}");
        assert_eq!(read(&reviews, "20260129-task-2-review-1.md").as_deref(), Some(text.as_str()));
    }

    #[test]
    fn the_last_review_of_a_task_is_the_highest_number() {
        let directory = tempfile::tempdir().unwrap();
        for name in [
            "20260129-task-2-review-9.md",
            "20260129-task-2-review-10.md",
            "20260129-task-22-review-11.md",
            "20260129-task-2-review-12.code.txt",
        ] {
            write(&directory.path().join(name), b"x").unwrap();
        }
        assert_eq!(
            (last_number(directory.path(), TaskId(2)), reviews_of_task(directory.path(), TaskId(2)).len()),
            (10, 2)
        );
        assert_eq!(last_number(directory.path(), TaskId(3)), 0);
    }

    #[test]
    fn repeated_reviews_keep_their_number_and_order() {
        let directory = tempfile::tempdir().unwrap();
        let names = ["review-2.md", "review-1.md", "review-1.earlier-2.md", "review-1.earlier-1.md"];
        for name in names {
            write(&directory.path().join(format!("20260129-task-2-{name}")), b"x").unwrap();
        }
        let listed = reviews_of_task(directory.path(), TaskId(2));
        let shown: Vec<_> = listed.iter().map(|path| path.file_name().unwrap().to_string_lossy()).collect();
        let order = ["review-1.earlier-1.md", "review-1.earlier-2.md", "review-1.md", "review-2.md"];
        assert_eq!(shown, order.map(|name| format!("20260129-task-2-{name}")));
        assert_eq!(last_number(directory.path(), TaskId(2)), 2);
    }
}
