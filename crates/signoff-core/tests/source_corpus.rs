//! The parse result of each file in `testdata/sources`.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fmt::Write;
use std::path::Path;

use signoff_core::source::{self, SourceTask, TaskFile, TaskFormat};

fn now() -> Option<jiff::Timestamp> {
    Some("2025-06-01T00:00:00Z".parse().unwrap())
}

fn format_of(path: &Path) -> TaskFormat {
    let directory = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
    TaskFormat::ALL.iter().copied().find(|format| format.into_str() == directory).unwrap()
}

#[test]
fn every_file_is_understood_as_recorded() {
    insta::glob!("../../../testdata/sources", "*/*", |path| {
        let bytes = std::fs::read(path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let detected = source::read(name, &bytes, now()).map(|file| file.format.into_str().to_owned());
        let parsed = match source::read_as(format_of(path), name, &bytes, now()) {
            Ok(file) => format!("{}\n{}", source::render_text(&file), details(&file)),
            Err(error) => format!("error: {error}\n"),
        };
        let detected = detected.unwrap_or_else(|error| format!("error: {error}"));
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(format!("by content: {detected}\n\n{parsed}"));
        });
    });
}

fn details(file: &TaskFile) -> String {
    let mut out = String::new();
    for (index, criterion) in file.acceptance.iter().enumerate() {
        writeln!(out, "criterion {}: {criterion:?}", index + 1).unwrap();
    }
    for task in &file.tasks {
        task_details(&mut out, task);
        let marks = file.marks_to_tick(&task.id);
        if !marks.is_empty() {
            let places: Vec<String> = marks.iter().map(|mark| format!("{}:{}", mark.line, mark.column + 1)).collect();
            writeln!(out, "  tick {}", places.join(" ")).unwrap();
        }
    }
    out
}

fn task_details(out: &mut String, task: &SourceTask) {
    write!(out, "{} line {} {}", task.id.escape_debug(), task.line, task.state.into_str()).unwrap();
    for (name, value) in [("section", &task.section), ("parent", &task.parent)] {
        if let Some(value) = value {
            write!(out, ", {name} {value:?}").unwrap();
        }
    }
    if task.parallel {
        write!(out, ", parallel").unwrap();
    }
    if let Some(priority) = task.priority {
        write!(out, ", priority {priority}").unwrap();
    }
    writeln!(out).unwrap();
    if !task.requirements.is_empty() {
        writeln!(out, "  requirements {:?}", task.requirements).unwrap();
    }
    for file in &task.files {
        let range = file.range.map(|range| format!(" lines {} to {}", range.first, range.last));
        writeln!(out, "  {:?} {}{}", file.action, file.path, range.unwrap_or_default()).unwrap();
    }
    for step in &task.steps {
        writeln!(out, "  step {:?} line {}{}", step.title, step.line, if step.done { " done" } else { "" }).unwrap();
    }
    for criterion in &task.acceptance {
        writeln!(out, "  accept {criterion:?}").unwrap();
    }
    for line in task.body.lines() {
        writeln!(out, "  | {}", line.escape_debug()).unwrap();
    }
}

#[test]
fn line_endings_and_a_byte_order_mark_change_nothing() {
    let twins = [
        ("plan_markdown/tidy.md", "plan_markdown/crlf_bom.md"),
        ("spec_kit/tidy.md", "spec_kit/crlf.md"),
        ("open_spec/tidy.md", "open_spec/crlf.md"),
        ("kiro/tidy.md", "kiro/crlf_bom.md"),
        ("task_master/tagged.json", "task_master/crlf.json"),
        ("bmad/story.md", "bmad/story_crlf.md"),
        ("beads/issues.jsonl", "beads/issues_crlf.jsonl"),
    ];
    for (plain, other) in twins {
        let read = |name: &str| {
            let path = Path::new("../../testdata/sources").join(name);
            source::read_as(format_of(&path), name, &std::fs::read(&path).unwrap(), now()).unwrap()
        };
        let (plain_file, other_file) = (read(plain), read(other));
        assert_eq!(
            serde_json::to_value(&plain_file).unwrap(),
            serde_json::to_value(&other_file).unwrap(),
            "{plain} and {other}"
        );
    }
}

#[test]
fn formats_are_detected_by_path() {
    let empty_plan =
        |path| source::read(path, b"# x\n", None).map(|file| file.format).map_err(|error| error.to_string());
    insta::assert_debug_snapshot!(
        [
            ".kiro/specs/login/tasks.md",
            "/repo/openspec/changes/add-login/tasks.md",
            "specs/001-login/tasks.md",
            "specs/login/tasks.md",
            "./.taskmaster/tasks/tasks.json",
            ".beads/issues.jsonl",
            "docs/sprint-status.yaml",
            "C:\\repo\\specs\\002-x\\tasks.md",
            "notes.json",
            "docs/spec.md",
        ]
        .map(|path| (path, empty_plan(path)))
    );
}

#[test]
fn a_plan_without_tasks_lists_the_formats_that_were_tried() {
    let error = source::read_plan("docs/spec.md", b"\n\n# Payments\n", None).unwrap_err();
    insta::assert_snapshot!(error, @"docs/spec.md:3: no tasks found; formats tried: plan markdown (`### Task 1: Title`), spec-kit (`- [ ] T001 text`), OpenSpec (`- [ ] 1.1 text` under `## 1. Title`), Kiro (`- [ ] 1. Title`), BMAD (`# Story 1.2: Title`), Task Master and beads (JSON)");
    let error = source::read("x.json", b"{\n\"a\": 1}", None).unwrap_err();
    insta::assert_snapshot!(error, @r#"x.json:1: JSON without tasks; formats tried: Task Master ({"tasks": […]} or {"TAG": {"tasks": […]}}), beads ([…], {"data": […]}, {"issues": […]} or one issue a line)"#);
    let error = source::read("x.json", b"\n\n{\n\"a\": }", None).unwrap_err();
    insta::assert_snapshot!(error, @"x.json:4: expected value; formats tried: Task Master, beads");
    let error = source::read_plan("plan.md", b"# P\n\n<!-- later\n\n### Task 1: A\n", None).unwrap_err();
    assert!(error.to_string().ends_with("; the comment that opens here is never closed"), "{error}");
    assert_eq!(error.line, 3);
    let error = source::read_as(TaskFormat::TaskMaster, "x.json", b"# Plan", None).unwrap_err();
    insta::assert_snapshot!(error, @r#"x.json:1: expected value; formats tried: Task Master; expected {"tasks": […]} or {"TAG": {"tasks": […]}} with at least one task"#);
    let error = source::read_as(TaskFormat::Beads, "x.json", b"[{\"id\":\"a\"}", None).unwrap_err();
    insta::assert_snapshot!(error, @r#"x.json:1: EOF while parsing a list; formats tried: beads; expected an array of issues, {"data": […]}, {"issues": […]}, or one issue a line"#);
    let error = source::read("big.md", &vec![b'a'; source::MAX_BYTES + 1], None).unwrap_err();
    insta::assert_snapshot!(error, @"big.md:1: the file has 16777217 bytes; at most 16777216 are read");
}

#[test]
fn the_json_shape_is_versioned() {
    let file = source::read(
        "plan.md",
        b"# P Implementation Plan\n\n### Task 1: A\n\n**Files:**\n- Modify: `a.rs:3`\n\n- [ ] **Step 1: S**\n",
        None,
    );
    insta::assert_json_snapshot!(file.unwrap());
}
