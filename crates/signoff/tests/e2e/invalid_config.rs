//! A mistake in the configuration starts nobody: one message with its place, exit 2, and nothing was made.

use std::fs;
use std::path::Path;

use signoff_testkit::script::{Rule, Script};
use signoff_testkit::{Output, Project};

use crate::PROGRAM;

fn agent(script: Script) -> Script {
    script
        .rule(Rule::role("implement").write("work.txt", "work\n").say("Done.\n"))
        .rule(Rule::role("review").say("All is well.\n\n**Verdict: APPROVED**\n"))
}

/// A project with one task, whose agent stands in the person's own file.
fn project() -> Project {
    let project = Project::with_agent(PROGRAM, agent);
    project.env.shell("mkdir -p ~/.config/signoff && mv signoff.toml ~/.config/signoff/config.toml");
    project.run(&["add", "Do it", "-a"]);
    project
}

/// The line of a corpus file that is wrong, as it says itself.
fn line(text: &str) -> usize {
    let marked = text.lines().position(|line| line.ends_with("# <-- here")).map(|at| at + 1);
    let named = || text.lines().find_map(|line| line.strip_prefix("# The mistake is in line "));
    marked.or_else(|| named()?.trim_end_matches('.').parse().ok()).expect("a marked line")
}

/// One error with its place and a hint, and no word about the program's insides.
fn refused(output: &Output, place: &str) {
    assert_eq!(output.code, Some(2), "{place}: {output}");
    assert_eq!(output.stdout, "", "{place}: {output}");
    let errors = output.stderr.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!((errors, output.stderr.lines().count()), (1, 3), "{place}: {output}");
    assert!(output.stderr.contains(&format!("\n  --> {place}\nhint: ")), "{place}: {output}");
    assert!(!output.stderr.contains("panicked"), "{place}: {output}");
}

/// Nothing but the task that was there; and once the file is mended, it is worked.
fn untouched(project: &Project) {
    assert_eq!(project.calls().all().len(), 0);
    assert_eq!(project.list(".signoff/worktrees"), [""; 0]);
    fs::remove_file(project.env.work().join("signoff.toml")).expect("the file");
    let tasks = project.run(&["status", "--json"]).json()["tasks"].as_array().expect("a list").len();
    assert_eq!(tasks, 1);
    let worked = project.run(&["work"]);
    assert!(worked.stdout.contains("✓ Task #1 completed (APPROVED after 1 cycle)"), "{worked}");
}

#[test]
fn no_invalid_file_starts_anything() {
    let project = project();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../signoff-core/testdata/config/invalid");
    let mut files = 0;
    for entry in fs::read_dir(corpus).expect("the corpus") {
        let text = fs::read_to_string(entry.expect("a readable file").path()).expect("text");
        project.env.write("signoff.toml", &text);
        refused(&project.run(&["work"]), &format!("signoff.toml:{}", line(&text)));
        files += 1;
    }
    assert!(files >= 150, "{files} files");
    refused(&project.run(&["add", "Another one"]), &place(&project));
    refused(&project.run(&["run", "README.md"]), &place(&project));
    refused(&project.run(&["review"]), &place(&project));
    untouched(&project);
}

/// Where the mistake in the file is that was written last.
fn place(project: &Project) -> String {
    format!("signoff.toml:{}", line(&project.read("signoff.toml")))
}

#[test]
fn what_is_no_text_is_refused_like_any_mistake() {
    let project = project();
    let deep = format!("x = {}1{}\n", "[".repeat(10_000), "]".repeat(10_000));
    let tables = format!("x = {}1{}\n", "{a=".repeat(10_000), "}".repeat(10_000));
    let dotted = format!("jobs = 4\n{}a = 1\n", "a.".repeat(10_000));
    let utf16: Vec<u8> = "jobs = 4\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let cases: [(&str, Vec<u8>, usize); 8] = [
        ("Latin-1", b"# fine\n# caf\xe9\n".to_vec(), 2),
        ("UTF-16 with its mark", [b"\xff\xfe".as_slice(), &utf16].concat(), 1),
        ("UTF-16 without", utf16.clone(), 1),
        ("NUL bytes", b"jobs = 4\n\0\0\0\n".to_vec(), 2),
        ("two megabytes", "a = 1 # padding\n".repeat(125_000).into_bytes(), 1),
        ("deep lists", deep.into_bytes(), 1),
        ("deep tables", tables.into_bytes(), 1),
        ("a deep key", dotted.into_bytes(), 2),
    ];
    for (what, bytes, line) in cases {
        project.env.write("signoff.toml", &bytes);
        let output = project.run(&["work"]);
        assert!(output.stderr.len() < 1000, "{what}: {output}");
        refused(&output, &format!("signoff.toml:{line}"));
    }
    untouched(&project);
}

/// A mark of editors before the text, and an empty file, are none.
#[test]
fn what_looks_like_a_mistake_and_is_none() {
    for text in ["", "\u{feff}jobs = 2\r\n"] {
        let project = project();
        project.env.write("signoff.toml", text);
        let worked = project.run(&["work"]);
        assert!(worked.stdout.contains("✓ Task #1 completed"), "{worked}");
    }
}

#[test]
fn a_prompt_that_is_not_there_is_told_before_anybody_starts() {
    let project = project();
    let told = |text: &str| {
        project.env.write("signoff.toml", text);
        project.run(&["work"])
    };
    insta::assert_snapshot!(told("jobs = 2\n\n[prompts]\nimplement = \"docs/work.md\"\n"), @"
    exit 2
    --- stderr
    error: there is no prompt docs/work.md
      --> signoff.toml:4
    hint: write it, or name another file
    ");
    insta::assert_snapshot!(told("[prompts]\nfix = \"README.md\"\nreview = \"docs\"\n"), @"
    exit 2
    --- stderr
    error: there is no prompt docs
      --> signoff.toml:3
    hint: write it, or name another file
    ");
    insta::assert_snapshot!(told("[reviewers.general]\nprompt = \"docs/read.md\"\n"), @"
    exit 2
    --- stderr
    error: there is no prompt docs/read.md
      --> signoff.toml:2
    hint: write it, or name another file
    ");
    insta::assert_snapshot!(told("preset = \"slots\"\nreviewEnabled = true\ndeveloperPromptPath = \"docs/work.md\"\n"), @"
    exit 2
    --- stderr
    error: there is no prompt docs/work.md
      --> signoff.toml:3
    hint: write it, or name another file
    ");
    insta::assert_snapshot!(told("preset = \"slots\"\nreviewerPromptPath = \"docs/read.md\"\n"), @"
    exit 2
    --- stderr
    error: there is no prompt docs/read.md
      --> signoff.toml:2
    hint: write it, or name another file
    ");
    untouched(&project);
}

#[test]
fn variables_and_flags_are_checked_as_well() {
    let project = project();
    let told = |words: &str| project.env.shell(words);
    insta::assert_snapshot!(told("SIGNOFF_LIMITS_MAX_COST_USD=much signoff work"), @r#"
    exit 2
    --- stderr
    error: `max_cost_usd` is "much": expected an amount of dollars such as 20.0, more than 0 and at most 1000000
      --> SIGNOFF_LIMITS_MAX_COST_USD
    hint: give SIGNOFF_LIMITS_MAX_COST_USD another value, or leave it out
    "#);
    insta::assert_snapshot!(told("SIGNOFF_LIMITS_ATTEMPT=30 signoff work"), @r#"
    exit 2
    --- stderr
    error: `attempt` is "30": expected a duration such as "90s", "30m" or "2h"
      --> SIGNOFF_LIMITS_ATTEMPT
    hint: give SIGNOFF_LIMITS_ATTEMPT another value, or leave it out
    "#);
    insta::assert_snapshot!(told("SIGNOFF_LIMITS_ATEMPT=30m signoff work"), @"
    exit 2
    --- stderr
    error: no such setting: did you mean `SIGNOFF_LIMITS_ATTEMPT`?
      --> SIGNOFF_LIMITS_ATEMPT
    hint: give SIGNOFF_LIMITS_ATEMPT another value, or leave it out
    ");
    insta::assert_snapshot!(told("SIGNOFF_PRESET=tasks signoff work"), @r#"
    exit 2
    --- stderr
    error: `preset` is "tasks", which is no workflow: did you mean `task`?
      --> SIGNOFF_PRESET
    hint: give SIGNOFF_PRESET another value, or leave it out
    "#);
    insta::assert_snapshot!(told("signoff work --jobs 0"), @"
    exit 2
    --- stderr
    error: invalid value '0' for '--jobs <N>': 0 is not in 1..=65535

    For more information, try '--help'.
    ");
    project.env.write("signoff.toml", "");
    untouched(&project);
}
