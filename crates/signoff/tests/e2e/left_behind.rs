//! Files that remain on the disk after an attempt, and files of the repository that reach agents and checks.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::ScriptRule;
use signoff_testkit::processes::wait_until;

use crate::PROGRAM;

/// A key of the agent, which it writes everywhere.
const KEY: &str = "sk-canary-0f9e8d7c6b5a";

/// Imitates Codex: hangs at first, and resumes if it finds its session.
const CODEX: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo "codex-cli 0.166.0"; exit; fi
cat > /dev/null
key=${OPENAI_API_KEY:-$(sed 's/.*access_token":"//; s/".*//' "$CODEX_HOME/auth.json")}
root=$(cd ../../../.. && pwd)
kept="$CODEX_HOME/sessions/2099/01/01/rollout-s1.jsonl"
said() { printf '%s\n' "{\"timestamp\":\"2099-01-01T00:00:00Z\",\"type\":\"response_item\",\"payload\":{$1}}" >> "$kept"; }
echo '{"type":"thread.started","thread_id":"s1"}'
case "$*" in
*resume*) [ -f "$kept" ] && echo resumed >> "$root/asked" ;;
*)
    mkdir -p "${kept%/*}" "$CODEX_HOME/cache"
    head -c 100000 /dev/zero > "$CODEX_HOME/state.sqlite"
    echo "$key" > "$CODEX_HOME/cache/key"
    said '"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"echo '"$key"'\"}","call_id":"c1"'
    said '"type":"function_call_output","call_id":"c1","output":"Process exited with code 1\nOutput:\nPermission denied '"$key"'"'
    : > "$root/hangs"
    exec sleep 100 ;;
esac
echo hello > a.txt
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"Done."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
"#;

fn program(project: &TestProject, name: &str, script: &str) -> PathBuf {
    let program = project.env.root().join(name);
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

fn codex(more: &str) -> TestProject {
    let project = TestProject::new(PROGRAM);
    let program = program(&project, "codex", CODEX);
    let text = format!(
        "sandbox = false\n{more}\n[roles]\nimplement = \"codex\"\n[agents.codex]\ncommand = [{:?}]\n",
        program.display().to_string()
    );
    project.env.write("signoff.toml", text);
    project.commit("Configure");
    project.run(&["add", "Greet people"]);
    project
}

/// The relative paths of all files and links below a directory.
fn files(directory: &Path) -> Vec<String> {
    fn below(directory: &Path, root: &Path, all: &mut Vec<String>) {
        for path in fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path()) {
            if path.is_dir() && !path.is_symlink() {
                below(&path, root, all);
            } else {
                all.push(path.strip_prefix(root).unwrap().display().to_string());
            }
        }
    }
    let mut all = Vec::new();
    below(directory, directory, &mut all);
    all.sort();
    all
}

/// The files in the homes of all attempts.
fn homes(project: &TestProject) -> Vec<String> {
    let all = files(&project.env.work().join(".signoff/runs"));
    all.into_iter().filter(|file| file.contains("/home/")).collect()
}

fn assert_no_key(project: &TestProject) {
    let root = project.env.work().join(".signoff");
    for file in files(&root).iter().filter(|file| !file.starts_with("worktrees/")) {
        let text = fs::read(root.join(file)).unwrap_or_default();
        assert!(!text.windows(KEY.len()).any(|window| window == KEY.as_bytes()), "{file}");
    }
}

/// The path of the session in the directory of an attempt.
const SESSION: &str = "home/codex/sessions/2099/01/01/rollout-s1.jsonl";

fn assert_only_the_session_is_left(project: &TestProject) {
    let left = homes(project);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].ends_with(SESSION), "{left:?}");
    let session = project.read(&format!(".signoff/runs/{}", left[0]));
    for line in session.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    assert!(session.contains("echo [redacted]") && session.contains("Permission denied [redacted]"), "{session}");
    let output_lines = project.read(&format!(".signoff/runs/{}", left[0].replace(SESSION, "heard.json")));
    assert!(output_lines.contains("echo [redacted]"), "{output_lines}");
    assert_no_key(project);
}

#[test]
fn only_the_session_in_an_agents_home_is_kept_until_the_task_ends() {
    let project = codex("[limits]\nattempt = \"5s\"\n");
    let login = project.env.root().join("home/.codex/auth.json");
    fs::create_dir_all(login.parent().unwrap()).unwrap();
    fs::write(&login, "{}").unwrap();
    let variables = [("OPENAI_API_KEY", KEY)];
    assert_eq!(project.env.run_with(&["work"], &variables).code, Some(1));
    assert_only_the_session_is_left(&project);
    project.run(&["retry", "1"]);
    let worked = project.env.run_with(&["work"], &variables);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(fs::read_to_string(project.env.root().join("asked")).unwrap(), "resumed\n");
    assert_eq!(homes(&project), Vec::<String>::new());
    assert_no_key(&project);
    assert_eq!(fs::read_to_string(&login).unwrap(), "{}");
}

#[test]
fn the_kept_session_contains_no_login() {
    let project = codex("[limits]\nattempt = \"5s\"\n");
    let login = format!("{{\"tokens\":{{\"access_token\":\"{KEY}\"}}}}");
    project.env.write("../home/.codex/auth.json", login);
    assert_eq!(project.run(&["work"]).code, Some(1));
    assert_only_the_session_is_left(&project);
}

#[test]
fn the_next_program_cleans_the_home_of_a_killed_one() {
    let project = codex("");
    let mut child = project.env.start_with(&["work"], &[("OPENAI_API_KEY", KEY)]);
    wait_until("it hangs", || project.env.root().join("hangs").exists());
    child.kill().unwrap();
    project.env.finish(child);
    let worked = project.env.run_with(&["work"], &[("OPENAI_API_KEY", KEY)]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(fs::read_to_string(project.env.root().join("asked")).unwrap(), "resumed\n");
    assert_eq!(homes(&project), Vec::<String>::new());
    assert_no_key(&project);
}

#[test]
fn the_copy_of_a_killed_reviewer_is_removed() {
    let copy = "review_workspace = \"copy\"\n";
    let project = TestProject::with_agent(PROGRAM, |script| {
        script.rule(ScriptRule::role("implement").write("a.txt", "hello\n")).rule(ScriptRule::role("review").hang())
    });
    project.configure(copy);
    project.run(&["add", "Greet", "-a"]);
    let mut child = project.env.start(&["work"]);
    wait_until("it reviews", || project.calls().with_role("review").count() > 0);
    child.kill().unwrap();
    project.env.finish(child);
    assert_eq!(project.list(".signoff/worktrees"), ["task-1", "task-1-copy-general"]);
    // The next reviewer needs no copy.
    project.configure("");
    project.set_agent(|script| script.rule(ScriptRule::role("review").say("**Verdict: APPROVED**\n")));
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(project.list(".signoff/worktrees"), ["task-1"]);
    assert_eq!(project.git("worktree list --porcelain | grep -c ^worktree"), "2\n");
}

/// A project whose reviewer is opencode; returns a file that exists once opencode was started.
fn opencode(project: &TestProject) -> PathBuf {
    let ran = project.env.root().join("ran");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 1.18.33; exit; fi\ncat > /dev/null\n: > {:?}\n",
        ran.display().to_string()
    );
    let program = program(project, "opencode", &script);
    project.configure(&format!(
        "[roles]\nimplement = \"scripted\"\n[agents.opencode]\ncommand = [{:?}]\n\
         [reviewers.general]\nkind = \"general\"\nagent = \"opencode\"\n[gate]\nreviewers = [\"general\"]\n",
        program.display().to_string()
    ));
    ran
}

#[test]
fn opencode_does_not_review_files_that_it_would_run() {
    let hidden = "printf '.signoff/\\n.opencode\\n' > .gitignore; ";
    for (file, script) in [
        (".opencode/plugin/x.js", "mkdir -p .opencode/plugin; echo x > .opencode/plugin/x.js".to_owned()),
        ("opencode.json", "echo {} > opencode.json".to_owned()),
        // Ignored files are in no commit but in the worktree.
        (".opencode/plugin/x.js", format!("{hidden}mkdir -p .opencode/plugin; echo x > .opencode/plugin/x.js")),
        (".opencode", format!("{hidden}mkdir .plugins; echo .plugins >> .gitignore; ln -s .plugins .opencode")),
        (
            ".opencode/known.md",
            format!(
                "{hidden}mkdir -p .opencode; git update-index --skip-worktree .opencode/known.md; echo x > .opencode/known.md"
            ),
        ),
    ] {
        let project = TestProject::with_agent(PROGRAM, |script_| {
            script_.rule(ScriptRule::role("implement").write("a.txt", "a\n").shell(&script).say("Done.\n"))
        });
        if script.contains("known.md") {
            project.env.write(".opencode/known.md", "known\n");
            project.commit("Know");
        }
        let ran = opencode(&project);
        project.run(&["add", "Add a plugin", "-a"]);
        let worked = project.run(&["work"]);
        assert!(!ran.exists(), "{worked}");
        assert!(worked.stdout.contains(&format!("could not be started: opencode would run `{file}`")), "{worked}");
        let shown = project.run(&["show", "1", "--json"]);
        let next = "let another agent review it (`[reviewers.general] agent`), or take the file out";
        assert!(shown.stdout.contains(next), "{shown}");
        assert_ne!(worked.code, Some(0), "{worked}");
    }
}

#[test]
fn opencode_reviews_if_its_own_files_are_unchanged() {
    let project =
        TestProject::with_agent(PROGRAM, |script| script.rule(ScriptRule::role("implement").write("a.txt", "a\n")));
    project.env.write(".opencode/command/it.md", "known\n");
    project.env.write("opencode.json", "{}\n");
    project.commit("Know");
    let ran = opencode(&project);
    project.run(&["add", "Greet", "-a"]);
    let worked = project.run(&["work"]);
    assert!(ran.exists(), "{worked}");
}

#[test]
fn writers_are_pointed_to_the_projects_own_instructions() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("a.txt", "hello\n"))
            .rule(ScriptRule::role("fix").append("a.txt", "name\n"))
            .rule(ScriptRule::role("review").cycle(1).say("- a.txt:1 no name\n\n**Verdict: CHANGES_REQUESTED**\n"))
            .rule(ScriptRule::role("review").say("**Verdict: APPROVED**\n"))
    });
    project.env.write("AGENTS.md", "Use tabs.\n");
    project.env.write("CONTRIBUTING.md", "Sign your commits.\n");
    project.commit("Instruct");
    project.run(&["add", "Greet", "-a"]);
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    let line = "Read first what the project asks of its contributors: `AGENTS.md`, `CONTRIBUTING.md`.";
    let calls = project.calls();
    for role in ["implement", "fix"] {
        let prompt = &calls.with_role(role).next().expect("a call").prompt;
        assert!(prompt.contains(line) && !prompt.contains("Use tabs"), "{prompt}");
    }
    assert!(calls.with_role("review").all(|call| !call.prompt.contains("Read first what the project")));
}

#[test]
fn checks_get_no_keys_of_agents_and_print_none() {
    const OTHER: &str = "tok-canary-1a2b3c4d5e";
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("a.txt", "hello\n"))
            .rule(ScriptRule::role("fix").say("Nothing to fix.\n"))
    });
    let found = project.env.root().join("found");
    fs::write(&found, format!("{KEY}\n")).unwrap();
    let command = format!("echo \"key=$OPENAI_API_KEY.\"; echo \"other=$MY_API_KEY.\"; cat {}; false", found.display());
    project.configure(&format!(
        "[agents.checks]\nkind = \"checks\"\n[roles]\nimplement = \"scripted\"\n[reviewers.tests]\nkind = \"tests\"\nagent = \"checks\"\n\
         [gate]\nreviewers = [\"tests\"]\nmax_cycles = 1\n[checks]\ntest = {command:?}\n"
    ));
    let variables = [("OPENAI_API_KEY", KEY), ("MY_API_KEY", OTHER)];
    project.env.run_with(&["add", "Greet", "-a"], &variables);
    let worked = project.env.run_with(&["work"], &variables);
    let shown = project.run(&["show", "1", "--json"]);
    for text in [worked.to_string(), shown.to_string()] {
        assert!(!text.contains("canary"), "{text}");
    }
    assert!(shown.stdout.contains("key=.") && shown.stdout.contains("other=[redacted]."), "{shown}");
    assert_no_key(&project);
}
