//! Properties of the task file parsers, for generated files and the corpus.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use signoff_core::source::{self, CheckboxMark, SourceState, SourceTask, TaskFile, TaskFormat, planner};

/// Parts of every format, valid and invalid.
const PIECES: &[&str] = &[
    "\n",
    "\n\n",
    "\r\n",
    "  ",
    "\t",
    "- [ ] ",
    "- [x] ",
    "* [X] ",
    "+ [-] ",
    "1. [ ] ",
    "- [~] ",
    "- [ ]* ",
    "-[ ]",
    "[",
    "]",
    "# ",
    "## ",
    "### ",
    "Task 1: a\n",
    "### Task 2: b\n",
    "- [ ] ### Task 3: c\n",
    "**Files:**\n",
    "- Modify: `a.rs:1-2`\n",
    "- [ ] **Step 1: s**\n",
    "**Step 2: t**\n",
    "**Acceptance Criteria:**\n",
    "**Goal:** g\n",
    "T001 ",
    "- [ ] T001 a\n",
    "- [ ] T002 [P] b\n",
    "- [ ] T003 [P] [US1] c (depends on T001-T002)\n",
    "- [x] T004 after T003\n",
    "## Phase 1: x\n",
    "## Phase 2: y\n",
    "- [ ] 1. one\n",
    "  - [ ] 1.1 (P) sub\n",
    "  - [ ]* 1.2 opt\n",
    "- [-] 2. two\n",
    "  - [x] 2.1 done\n",
    "  - [ ] 2.2 last\n",
    "    - _Depends: 1.1_\n",
    "_Requirements: 1.2_\n",
    "## 1. group\n",
    "- [ ] 1.1 os\n",
    "```\n",
    "````\n",
    "~~~\n",
    "<!--",
    "-->",
    "`",
    "---\n",
    "# Story 1.2: s\n",
    "Status: ready-for-dev\n",
    "## Tasks / Subtasks\n",
    "## Acceptance Criteria\n",
    "- [ ] Task 1: x (AC: 1)\n",
    "  - [ ] sub\n",
    "\u{feff}",
    "é",
    "\u{1b}[0m",
    "\u{202e}",
    "{",
    "}",
    ":",
    ",",
    "\"",
    "{\"tasks\":[",
    "{\"id\":1,\"title\":\"a\"}",
    "\"dependencies\":[1]",
    "{\"id\":\"a\",\"title\":\"t\",\"status\":\"open\"}\n",
    "development_status:\n",
    "  1-1-a: done\n",
    "  1-2-b: ready-for-dev\n",
    "&a ",
    "*a ",
];

fn any_pieces() -> impl Strategy<Value = Vec<u8>> {
    let pieces = vec(select(PIECES), 0..60).prop_map(|pieces| pieces.concat().into_bytes());
    prop_oneof![8 => pieces, 1 => vec(any::<u8>(), 0..300)]
}

fn read(format: TaskFormat, bytes: &[u8]) -> Option<TaskFile> {
    let path = if format == TaskFormat::Bmad && bytes.starts_with(b"development") { "s.yaml" } else { "tasks.md" };
    source::read_as(format, path, bytes, None).ok()
}

/// Whether a task is closed by its children and not worked on itself.
fn is_parent(file: &TaskFile, task: &SourceTask) -> bool {
    let is_required = |child: &SourceTask| !child.optional && child.state != SourceState::Cancelled;
    let has_child = |child: &SourceTask| child.parent.as_ref() == Some(&task.id) && is_required(child);
    matches!(file.format, TaskFormat::Kiro | TaskFormat::TaskMaster) && file.tasks.iter().any(has_child)
}

fn is_left_to_do(file: &TaskFile, task: &SourceTask) -> bool {
    let open = match task.state {
        SourceState::Open => true,
        SourceState::InProgress => file.format != TaskFormat::Beads,
        SourceState::Blocked
        | SourceState::Deferred
        | SourceState::Review
        | SourceState::Cancelled
        | SourceState::NotWork
        | SourceState::Done => false,
    };
    open && !task.optional && !is_parent(file, task)
}

fn check_groups(file: &TaskFile) {
    let grouped: Vec<&String> = file.groups.iter().flatten().collect();
    let expected: BTreeSet<&String> =
        file.tasks.iter().filter(|task| is_left_to_do(file, task)).map(|task| &task.id).collect();
    assert_eq!(grouped.len(), expected.len(), "each once");
    assert_eq!(grouped.into_iter().collect::<BTreeSet<_>>(), expected, "all that is left to do");
    assert!(file.groups.iter().all(|group| !group.is_empty()));
    let level: BTreeMap<&String, usize> =
        file.groups.iter().enumerate().flat_map(|(n, group)| group.iter().map(move |id| (id, n))).collect();
    for task in file.tasks.iter().filter(|task| level.contains_key(&task.id)) {
        for needed in all_needed(file, task) {
            if let Some(earlier) = level.get(&needed.id).filter(|_| file.format != TaskFormat::Beads) {
                assert!(*earlier < level[&task.id], "{} after {}", task.id, needed.id);
            }
        }
    }
}

/// The dependencies of a task and of its parents, with their children.
fn all_needed<'a>(file: &'a TaskFile, task: &'a SourceTask) -> Vec<&'a SourceTask> {
    let mut named: Vec<&String> = task.depends_on.iter().collect();
    let mut above = task.parent.as_ref();
    while let Some(parent) = above.and_then(|id| file.task(id)).filter(|parent| is_parent(file, parent)) {
        if parent.state != SourceState::Done {
            named.extend(&parent.depends_on);
        }
        above = parent.parent.as_ref();
    }
    let inside = |task: &&SourceTask| {
        named.iter().any(|id| **id == task.id || (is_child_format(file) && task.id.starts_with(&format!("{id}."))))
    };
    file.tasks.iter().filter(inside).collect()
}

fn is_child_format(file: &TaskFile) -> bool {
    matches!(file.format, TaskFormat::Kiro | TaskFormat::TaskMaster)
}

fn check_ids(file: &TaskFile) {
    let ids: BTreeSet<&String> = file.tasks.iter().map(|task| &task.id).collect();
    assert_eq!(ids.len(), file.tasks.len());
}

fn check_text(file: &TaskFile) {
    let text = source::render_text(file);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    serde_json::to_string(file).unwrap();
}

fn tick_all(bytes: &[u8], marks: &[CheckboxMark]) -> Vec<u8> {
    marks.iter().fold(bytes.to_vec(), |bytes, mark| {
        let ticked = source::tick(&bytes, mark).unwrap();
        assert_eq!(ticked.len(), bytes.len());
        let changed: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != ticked[*at]).collect();
        assert_eq!(changed, [mark.offset]);
        assert_eq!(ticked[mark.offset], b'x');
        ticked
    })
}

fn check_ticking(file: &TaskFile, bytes: &[u8]) {
    for task in file.tasks.iter().filter(|task| task.state != SourceState::Done) {
        let marks = file.marks_to_tick(&task.id);
        if marks.is_empty() {
            continue;
        }
        let after = read(file.format, &tick_all(bytes, &marks)).unwrap();
        assert_eq!(after.tasks.len(), file.tasks.len());
        let lines: BTreeSet<u32> = marks.iter().map(|mark| mark.line).collect();
        for (before, after) in file.tasks.iter().zip(&after.tasks) {
            let closed = before.id == task.id || lines.contains(&before.line);
            if closed && (before.mark.is_some() || before.id == task.id) {
                assert_eq!(after.state, SourceState::Done, "{}", before.id);
            } else {
                assert_eq!(after, before);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_a_file_or_an_error(bytes in any_pieces()) {
        for &format in TaskFormat::ALL {
            if let Some(file) = read(format, &bytes) {
                check_ids(&file);
                check_groups(&file);
                check_text(&file);
                check_ticking(&file, &bytes);
            }
        }
        let _ = source::read("plan", &bytes, None);
        let _ = source::read_plan("x.json", &bytes, None);
        let _ = source::read("sprint-status.yaml", &bytes, None);
        let _ = source::read("issues.jsonl", &bytes, None);
        let _ = planner::read_tasks(&bytes);
        let _ = planner::read_groups(&bytes, &[]);
    }

    #[test]
    fn a_mark_on_other_bytes_ticks_one_byte_or_nothing(bytes in any_pieces(), other in any_pieces()) {
        for &format in TaskFormat::ALL {
            for mark in read(format, &bytes).iter().flat_map(|file| &file.tasks).filter_map(|task| task.mark.as_ref()) {
                if let Ok(ticked) = source::tick(&other, mark) {
                    prop_assert_eq!(ticked.len(), other.len());
                    prop_assert!(other.iter().zip(&ticked).filter(|(a, b)| a != b).count() <= 1);
                }
            }
        }
    }

    #[test]
    fn task_master_is_ordered_or_has_a_cycle(tasks in graph()) {
        let file = source::read("tasks.json", task_master(&tasks).as_bytes(), None);
        match file {
            Ok(file) => {
                check_groups(&file);
                prop_assert!(!has_cycle(&tasks));
            }
            Err(error) => {
                let wrong = has_cycle(&tasks) || error.message.contains("itself");
                prop_assert!(wrong, "{}", error);
                prop_assert!(error.message.contains("dependency cycle") || error.message.contains("itself"), "{}", error);
            }
        }
    }

    #[test]
    fn spec_kit_is_ordered_or_names_what_is_wrong(tasks in graph()) {
        let file = source::read("tasks.md", spec_kit(&tasks).as_bytes(), None);
        match file {
            Ok(file) => {
                check_groups(&file);
                check_phases(&file);
                prop_assert!(!has_cycle(&tasks));
            }
            Err(error) => {
                let known = ["dependency cycle", "itself", "later phase"];
                prop_assert!(known.iter().any(|words| error.message.contains(words)), "{}", error);
                prop_assert!(error.line > 0 && error.file == "tasks.md");
            }
        }
    }

    #[test]
    fn a_chain_keeps_the_order_of_the_file(done in vec(any::<bool>(), 1..20)) {
        let line = |(index, done): (usize, &bool)| format!("- [{}] ### Task {index}: t\n", if *done { 'x' } else { ' ' });
        let text: String = done.iter().enumerate().map(line).collect();
        let file = source::read("plan.md", text.as_bytes(), None).unwrap();
        let left: Vec<Vec<String>> =
            done.iter().enumerate().filter(|(_, done)| !**done).map(|(index, _)| vec![index.to_string()]).collect();
        prop_assert_eq!(file.groups, left);
    }
}

#[derive(Debug, Clone)]
struct Node {
    done: bool,
    parallel: bool,
    new_phase: bool,
    needs: BTreeSet<usize>,
}

/// Small graphs of tasks, most of them without cycles.
fn graph() -> impl Strategy<Value = Vec<Node>> {
    let node = |count: usize| {
        let flags = (prop::bool::weighted(0.2), any::<bool>(), prop::bool::weighted(0.25));
        (flags, prop::collection::btree_set(0..count, 0..3)).prop_map(|((done, parallel, new_phase), needs)| Node {
            done,
            parallel,
            new_phase,
            needs,
        })
    };
    (1..9_usize, any::<bool>()).prop_flat_map(move |(count, backwards)| {
        vec(node(count), count).prop_map(move |mut nodes| {
            if backwards {
                nodes.iter_mut().enumerate().for_each(|(index, node)| node.needs.retain(|need| *need < index));
            }
            nodes
        })
    })
}

fn has_cycle(nodes: &[Node]) -> bool {
    let mut reaches = vec![vec![false; nodes.len()]; nodes.len()];
    for (index, node) in nodes.iter().enumerate().filter(|(_, node)| !node.done) {
        node.needs.iter().filter(|need| !nodes[**need].done).for_each(|need| reaches[index][*need] = true);
    }
    for middle in 0..nodes.len() {
        for from in 0..nodes.len() {
            for to in 0..nodes.len() {
                reaches[from][to] |= reaches[from][middle] && reaches[middle][to];
            }
        }
    }
    (0..nodes.len()).any(|index| reaches[index][index])
}

fn task_master(nodes: &[Node]) -> String {
    let task = |(index, node): (usize, &Node)| {
        let status = if node.done { "done" } else { "pending" };
        serde_json::json!({"id": index, "title": "t", "status": status, "dependencies": node.needs})
    };
    serde_json::json!({"tasks": nodes.iter().enumerate().map(task).collect::<Vec<_>>()}).to_string()
}

fn spec_kit(nodes: &[Node]) -> String {
    let mut text = String::new();
    for (index, node) in nodes.iter().enumerate() {
        let phase = if node.new_phase { format!("## Phase {index}: p\n") } else { String::new() };
        let (sign, mark) = (if node.done { 'x' } else { ' ' }, if node.parallel { "[P] " } else { "" });
        let needs: Vec<String> = node.needs.iter().map(|need| format!("T{need:03}")).collect();
        let needs = if needs.is_empty() { String::new() } else { format!(" (depends on {})", needs.join(", ")) };
        text.push_str(&format!("{phase}- [{sign}] T{index:03} {mark}do{needs}\n"));
    }
    text
}

/// Phases are in order and do not mix, and only adjacent tasks marked parallel share a group.
fn check_phases(file: &TaskFile) {
    let place = |id: &String| file.tasks.iter().position(|task| &task.id == id).unwrap();
    let phases: Vec<BTreeSet<&Option<String>>> =
        file.groups.iter().map(|group| group.iter().map(|id| &file.task(id).unwrap().section).collect()).collect();
    assert!(phases.iter().all(|phases| phases.len() == 1));
    let firsts: Vec<usize> = file
        .groups
        .iter()
        .map(|group| {
            let section = &file.task(&group[0]).unwrap().section;
            file.tasks.iter().position(|task| &task.section == section).unwrap()
        })
        .collect();
    assert!(firsts.is_sorted());
    for group in file.groups.iter().filter(|group| group.len() > 1) {
        let (low, high) = (place(&group[0]), place(group.last().unwrap()));
        assert!(file.tasks[low..=high].iter().all(|task| task.parallel), "{group:?}");
    }
}

#[test]
fn the_properties_hold_for_the_corpus() {
    let mut ticked = 0;
    insta::glob!("../../../testdata/sources", "*/*", |path| {
        let bytes = std::fs::read(path).unwrap();
        for &format in TaskFormat::ALL {
            if let Some(file) = read(format, &bytes) {
                check_ids(&file);
                check_groups(&file);
                check_text(&file);
                check_ticking(&file, &bytes);
                ticked += file.tasks.iter().filter(|task| task.mark.is_some()).count();
            }
        }
    });
    assert!(ticked > 100, "the corpus has boxes to tick: {ticked}");
}

/// A tracker file that is truncated during a write: complete lines are read, and the incomplete one is reported.
#[test]
fn a_truncated_tracker_file_is_read_up_to_the_cut() {
    let lines = [
        r#"{"id":"a","title":"Größe 🎉","status":"open","priority":1,"x":-1.5e+3}"#,
        r#"{"id":"b","title":"caf\u00e9 \ud83c\udf89","status":"open","priority":-1,"n":2E-1,"dependencies":[{"depends_on_id":"a","type":"blocks"}]}"#,
        r#"{"id":"c","title":"Ende…","status":"open","y":[-1,{"z":1.0}],"ok":true}"#,
    ];
    let text = lines.join("\n");
    let mut ends = Vec::new();
    for line in lines {
        ends.push(ends.last().map_or(0, |end| end + 1) + line.len());
    }
    for cut in 0..=text.len() {
        let file = source::read("issues.jsonl", &text.as_bytes()[..cut], None).unwrap();
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let begun = ends.iter().map(|end| end + 1).chain([0]).filter(|start| *start < cut).count();
        assert_eq!(file.tasks.len(), whole, "cut at {cut}");
        let named = file.warnings.iter().any(|warning| warning.message.contains("cut off"));
        assert_eq!(named, begun > whole, "cut at {cut}: {:?}", file.warnings);
    }
}

#[test]
fn only_a_tracker_may_end_within_a_character() {
    let error = |format, bytes| source::read_as(format, "f", bytes, None).unwrap_err().to_string();
    let cut = b"- [ ] T001 caf\xc3";
    assert_eq!(error(TaskFormat::SpecKit, cut), "f:1: not UTF-8 text");
    assert_eq!(error(TaskFormat::Beads, b"[]\xc3"), "f:1: not UTF-8 text");
    assert_eq!(source::read("spec.md", cut, None).unwrap_err().to_string(), "spec.md:1: not UTF-8 text");
    assert!(source::read("i.jsonl", b"{\"id\":\"a\xff\"}\n{\"id\":\"b\"}", None).is_err());
    assert!(source::read("i.jsonl", b"{\"id\":\"a\"}\n{\"id\":\"b\",}", None).is_err());
}

/// Expanding these ranges again each time would take a minute.
#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
fn repeated_ranges_are_expanded_once() {
    let mut text: String = (1..=201).map(|n| format!("- [ ] T{n:03} a\n")).collect();
    text.push_str("- [ ] T202 b (depends on ");
    text.push_str(&"T001-T200, T002-T199, T1-T200, ".repeat(100_000));
    text.push_str("T201)\n");
    let started = std::time::Instant::now();
    let file = source::read("tasks.md", text.as_bytes(), None).unwrap();
    let expected: Vec<String> = (1..=201).map(|n| format!("T{n:03}")).collect();
    assert_eq!(file.task("T202").unwrap().depends_on, expected);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
