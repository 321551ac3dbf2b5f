//! An invalid configuration starts no agent: one error with its position, exit code 2, and no side effects.

use std::fs;
use std::path::Path;

use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::{ProgramOutput, TestProject};

use crate::PROGRAM;

fn agent(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("implement").write("work.txt", "work\n").say("Done.\n"))
        .rule(ScriptRule::role("review").say("All is well.\n\n**Verdict: APPROVED**\n"))
}

/// A project with one task, whose agent is configured in the person's own file.
fn project() -> TestProject {
    let project = TestProject::with_agent(PROGRAM, agent);
    project.env.shell("mkdir -p ~/.config/signoff && mv signoff.toml ~/.config/signoff/config.toml");
    project.run(&["add", "Do it", "-a"]);
    project
}

/// The line with the error, which a corpus file marks itself.
fn line(text: &str) -> usize {
    let marked = text.lines().position(|line| line.ends_with("# <-- here")).map(|at| at + 1);
    let named = || text.lines().find_map(|line| line.strip_prefix("# The mistake is in line "));
    marked.or_else(|| named()?.trim_end_matches('.').parse().ok()).expect("a marked line")
}

/// Expects one error with its position and a hint, without internals.
fn refused(output: &ProgramOutput, place: &str) {
    assert_eq!(output.code, Some(2), "{place}: {output}");
    assert_eq!(output.stdout, "", "{place}: {output}");
    let errors = output.stderr.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!((errors, output.stderr.lines().count()), (1, 3), "{place}: {output}");
    assert!(output.stderr.contains(&format!("\n  --> {place}\nhint: ")), "{place}: {output}");
    assert!(!output.stderr.contains("panicked"), "{place}: {output}");
}

/// Expects only the original task; once the file is repaired, it is worked.
fn untouched(project: &TestProject) {
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

/// The position of the error in the last written file.
fn place(project: &TestProject) -> String {
    format!("signoff.toml:{}", line(&project.read("signoff.toml")))
}

#[test]
fn a_file_that_is_not_text_is_refused() {
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

/// A byte order mark and an empty file are valid.
#[test]
fn unusual_but_valid_files_are_accepted() {
    for text in ["", "\u{feff}jobs = 2\r\n"] {
        let project = project();
        project.env.write("signoff.toml", text);
        let worked = project.run(&["work"]);
        assert!(worked.stdout.contains("✓ Task #1 completed"), "{worked}");
    }
}

#[test]
fn a_missing_prompt_is_an_error_before_any_agent_starts() {
    let project = project();
    let output = |text: &str| {
        project.env.write("signoff.toml", text);
        project.run(&["work"])
    };
    project.env.shell("mkdir docs");
    insta::assert_snapshot!(output("jobs = 2\n\n[prompts]\nimplement = \"docs/work.md\"\n"), @"
    exit 2
    --- stderr
    error: there is no prompt docs/work.md
      --> signoff.toml:4
    hint: create it, or name another file
    ");
    insta::assert_snapshot!(output("[prompts]\nfix = \"README.md\"\nreview = \"docs\"\n"), @"
    exit 2
    --- stderr
    error: the prompt docs is not a regular file
      --> signoff.toml:3
    hint: create it, or name another file
    ");
    insta::assert_snapshot!(output("[reviewers.general]\nprompt = \"docs/read.md\"\n"), @"
    exit 2
    --- stderr
    error: there is no prompt docs/read.md
      --> signoff.toml:2
    hint: create it, or name another file
    ");
    insta::assert_snapshot!(output("preset = \"slots\"\nreviewEnabled = true\ndeveloperPromptPath = \"docs/work.md\"\n"), @"
    exit 2
    --- stderr
    error: there is no prompt docs/work.md
      --> signoff.toml:3
    hint: create it, or name another file
    ");
    insta::assert_snapshot!(output("preset = \"slots\"\nreviewerPromptPath = \"docs/read.md\"\n"), @"
    exit 2
    --- stderr
    error: there is no prompt docs/read.md
      --> signoff.toml:2
    hint: create it, or name another file
    ");
    untouched(&project);
}

/// Prompts that this command does not need are checked, too.
#[test]
fn every_named_prompt_must_exist() {
    let project = project();
    for (text, place) in [
        ("[prompts]\nsimplify = \"pr/none.md\"\n", "signoff.toml:2"),
        ("[reviewers.unused]\nkind = \"code\"\nprompt = \"pr/none.md\"\n", "signoff.toml:3"),
        ("jobs = 2\nreviewerPromptPath = \"pr/none.md\"\n", "signoff.toml:2"),
    ] {
        project.env.write("signoff.toml", text);
        refused(&project.run(&["config"]), place);
        refused(&project.run(&["work"]), place);
        let doctor = project.run(&["doctor"]);
        let said = format!("✗ prompts: there is no prompt pr/none.md; {place}; hint: ");
        assert!(doctor.code == Some(1) && doctor.stdout.contains(&said), "{doctor}");
    }
    untouched(&project);
}

#[test]
fn variables_and_flags_are_checked_as_well() {
    let project = project();
    let output = |words: &str| project.env.shell(words);
    insta::assert_snapshot!(output("SIGNOFF_LIMITS_MAX_COST_USD=much signoff work"), @r#"
    exit 2
    --- stderr
    error: `max_cost_usd` is "much": expected an amount of dollars such as 20.0, more than 0 and at most 1000000
      --> SIGNOFF_LIMITS_MAX_COST_USD
    hint: give SIGNOFF_LIMITS_MAX_COST_USD another value, or leave it out
    "#);
    insta::assert_snapshot!(output("SIGNOFF_LIMITS_ATTEMPT=30 signoff work"), @r#"
    exit 2
    --- stderr
    error: `attempt` is 30: expected a duration such as "90s", "30m" or "2h"
      --> SIGNOFF_LIMITS_ATTEMPT
    hint: give SIGNOFF_LIMITS_ATTEMPT another value, or leave it out
    "#);
    insta::assert_snapshot!(output("SIGNOFF_LIMITS_ATEMPT=30m signoff work"), @"
    exit 2
    --- stderr
    error: no such setting: did you mean `SIGNOFF_LIMITS_ATTEMPT`?
      --> SIGNOFF_LIMITS_ATEMPT
    hint: give SIGNOFF_LIMITS_ATEMPT another value, or leave it out
    ");
    insta::assert_snapshot!(output("SIGNOFF_PRESET=tasks signoff work"), @r#"
    exit 2
    --- stderr
    error: `preset` is "tasks", which is not a workflow: did you mean `task`?
      --> SIGNOFF_PRESET
    hint: give SIGNOFF_PRESET another value, or leave it out
    "#);
    insta::assert_snapshot!(output("signoff work --jobs 0"), @"
    exit 2
    --- stderr
    error: invalid value '0' for '--jobs <N>': 0 is not in 1..=65535

    For more information, try '--help'.
    ");
    project.env.write("signoff.toml", "");
    untouched(&project);
}

/// Prompts that exist and cannot be read, with their error messages.
const UNREADABLE: [(&str, &str); 4] = [
    ("mkdir PROMPT", "the prompt PROMPT is not a regular file"),
    ("mkfifo PROMPT", "the prompt PROMPT is not a regular file"),
    ("printf 'caf\\351' > PROMPT", "the prompt PROMPT is not UTF-8 text"),
    ("printf ' \\n' > PROMPT", "the prompt PROMPT is empty"),
];

#[test]
fn an_unreadable_prompt_is_an_error_before_any_agent_starts() {
    let project = project();
    let commands: [&[&str]; 4] = [&["work"], &["run", "plan.md"], &["iterate", "More"], &["review"]];
    project.env.write("plan.md", "### Task 1: One\n\nDo it.\n");
    for (make, said) in UNREADABLE {
        project.env.shell(&format!("rm -rf own.md && {}", make.replace("PROMPT", "own.md")));
        project.env.write("signoff.toml", "jobs = 2\n[prompts]\nreview = \"own.md\"\n");
        for command in commands {
            let output = project.run(command);
            refused(&output, "signoff.toml:3");
            assert!(output.stderr.contains(&said.replace("PROMPT", "own.md")), "{output}");
        }
        let flag = project.env.shell("signoff run queue --review --reviewer-prompt own.md");
        refused(&flag, "--reviewer-prompt");
    }
    untouched(&project);
}

/// The built-in prompt never replaces a shared one.
#[test]
fn an_unreadable_shared_prompt_does_not_fall_back_to_the_built_in_one() {
    let project = project();
    project.env.write("signoff.toml", "");
    for name in ["review", "general"] {
        let path = format!(".signoff/prompts/{name}.md");
        for (make, said) in UNREADABLE {
            project.env.shell(&format!("mkdir -p .signoff/prompts && {}", make.replace("PROMPT", &path)));
            let output = project.run(&["work"]);
            refused(&output, &path);
            assert!(output.stderr.contains(&said.replace("PROMPT", &path)), "{output}");
            let doctor = project.run(&["doctor"]);
            assert_eq!(doctor.code, Some(1), "{doctor}");
            assert!(doctor.stdout.contains(&said.replace("PROMPT", &path)), "{doctor}");
            project.env.shell("rm -r .signoff/prompts");
        }
    }
    untouched(&project);
}

/// A prompt that disappears while its task runs ends the attempt; no review uses other rules.
#[test]
fn a_prompt_that_disappears_during_the_run_leaves_no_agent_running() {
    let project = project();
    let gone = "printf '\\377' > ../../prompts/review.md";
    project.set_agent(|script| {
        agent(script.rule(ScriptRule::role("implement").write("work.txt", "work\n").shell(gone).say("Done.\n")))
    });
    project.env.write("signoff.toml", "");
    project.env.write(".signoff/prompts/review.md", "Be strict.\n");
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(1), "{worked}");
    assert!(worked.stdout.contains("✗ Task #1 failed"), "{worked}");
    assert_eq!(project.calls().with_role("review").count(), 0);
    let running = project.env.shell("signoff show 1 --json | grep -c '\"running\"'").stdout;
    assert_eq!(running.trim(), "0");
    refused(&project.run(&["retry", "1"]), ".signoff/prompts/review.md");
    project.env.write(".signoff/prompts/review.md", "Be strict.\n");
    let again = project.run(&["retry", "1"]);
    assert!(again.stdout.contains("✓ Task #1 completed"), "{again}");
}

/// Settings that prevent a review, each with its position.
const UNREVIEWED: [(&str, &str); 4] = [
    ("[prompts]\nreview = \"no.md\"\n", "signoff.toml:2"),
    (
        "[roles]\nimplement = \"scripted\"\nreview = \"other\"\n[agents.other]\nkind = \"command\"\ncommand = [\"./no\"]\n",
        "signoff.toml:6",
    ),
    (
        "[roles]\nimplement = \"scripted\"\nreview = \"other\"\n[agents.other]\nkind = \"codex\"\ncommand = [\"./codex\"]\n",
        "signoff.toml:6",
    ),
    ("[nonsense]\n", "signoff.toml:1"),
];

#[test]
fn a_started_task_stays_unchanged() {
    let project = project();
    project.set_agent(|script| script.rule(ScriptRule::role("implement").exit(1)));
    assert_eq!(project.run(&["work"]).code, Some(1));
    let calls = project.calls().all().len();
    project.set_agent(agent);
    for (text, place) in UNREVIEWED {
        project.env.write("signoff.toml", text);
        refused(&project.run(&["retry", "1"]), place);
        fs::remove_file(project.env.work().join("signoff.toml")).expect("the file");
        assert_eq!(project.run(&["status", "--json"]).json()["tasks"][0]["status"], "failed");
    }
    assert_eq!(project.calls().all().len(), calls);
    project.run(&["retry", "1", "--queue"]);
    project.env.write("signoff.toml", UNREVIEWED[0].0);
    refused(&project.run(&["work"]), UNREVIEWED[0].1);
    refused(&project.run(&["work", "1"]), UNREVIEWED[0].1);
    refused(&project.run(&["run", "--resume"]), UNREVIEWED[0].1);
    refused(&project.run(&["run", "queue"]), UNREVIEWED[0].1);
    assert_eq!(project.calls().all().len(), calls);
    fs::remove_file(project.env.work().join("signoff.toml")).expect("the file");
    let worked = project.run(&["work"]);
    assert!(worked.stdout.contains("✓ Task #1 completed"), "{worked}");
}

#[test]
fn fallback_agents_are_checked_too() {
    let project = project();
    let output = |other: &str| {
        let text = format!(
            "[agents.scripted]\nfallback = \"other\"\n[roles]\nimplement = \"scripted\"\n[agents.other]\n{other}\n"
        );
        project.env.write("signoff.toml", text);
        project.run(&["work"])
    };
    insta::assert_snapshot!(output("kind = \"codex\"\ncommand = [\"./codex\"]"), @"
    exit 2
    --- stderr
    error: agent other: program ./codex was not found
      --> signoff.toml:7
    hint: install it, or set [agents.other] command in signoff.toml
    ");
    insta::assert_snapshot!(output("kind = \"command\"\ncommand = [\"./no\"]"), @"
    exit 2
    --- stderr
    error: agent other: program ./no was not found
      --> signoff.toml:7
    hint: install it, or set [agents.other] command in signoff.toml
    ");
    project.env.write("tool", "#!/bin/sh\n");
    insta::assert_snapshot!(output("kind = \"command\"\ncommand = [\"./tool\"]"), @"
    exit 2
    --- stderr
    error: agent other: ./tool is not executable
      --> signoff.toml:7
    hint: run `chmod +x ./tool`
    ");
    let doctor = project.run(&["doctor"]);
    assert!(doctor.stdout.contains("✗ agents: agent other: ./tool is not executable"), "{doctor}");
    untouched(&project);
}

/// Reading it would block forever.
#[test]
fn a_pipe_in_place_of_a_file_is_refused() {
    let project = project();
    for name in ["signoff.toml", "gza.yaml", ".claude/iterate-config.local.json"] {
        project.env.shell(&format!("mkdir -p .claude && mkfifo {name}"));
        for command in [&["config"], &["work"]] {
            let output = project.run(command);
            assert_eq!(output.code, Some(2), "{output}");
            assert!(output.stderr.contains(&format!("{name} is not a regular file")), "{output}");
        }
        fs::remove_file(project.env.work().join(name)).expect("the pipe");
    }
    project.env.write("signoff.toml", "");
    untouched(&project);
}

/// The main checkout's file applies in every worktree.
#[test]
fn all_worktrees_of_a_repository_share_one_file() {
    let project = project();
    project.env.write("signoff.toml", "jobs = 3\n");
    project.commit("Configure");
    project.git("worktree add -q ../other");
    let there = |words: &str| project.env.shell(&format!("cd ../other && {words}"));
    project.env.write("signoff.toml", "jobs = 7\n");
    assert!(there("signoff config jobs").stdout.contains('7'));
    assert_eq!(there("signoff configure --set jobs=9").code, Some(0));
    assert_eq!(project.read("signoff.toml"), "jobs = 9\n");
    assert_eq!(there("cat signoff.toml").stdout, "jobs = 3\n");
    assert_eq!(there("signoff init").code, Some(2));
    fs::remove_file(project.env.work().join("signoff.toml")).expect("the file");
    assert_eq!(there("signoff init").code, Some(0));
    assert!(project.read("signoff.toml").contains("[agents"));
    project.env.write("signoff.toml", "jobs = 0\n");
    for command in ["config", "configure --show", "doctor", "work"] {
        refused(&there(&format!("signoff {command}")), "signoff.toml:1");
    }
    project.env.write("signoff.toml", "");
    untouched(&project);
}
