//! Reviewers whose model asks for changes: the sandbox and the agents' own rules prevent them.

use serde_json::json;
use signoff_engine::sandbox::SandboxSupport;
use signoff_testkit::model::{ModelRule, ModelScript, ModelTurn};

use super::{Cli, Team};

const APPROVAL: &str =
    "<spec-review nonce=\"{nonce}\">\n<verdict>APPROVED</verdict>\n<summary>As asked</summary>\n</spec-review>\n";

/// The names of a program's own tools. The model calls them even if they are not offered to a reviewer.
fn write(cli: Cli) -> ModelTurn {
    let (path, text) = ("{cwd}/planted.txt", "here\n");
    match cli {
        Cli::Claude => ModelTurn::silent().insist("Write", json!({ "file_path": path, "content": text })),
        Cli::Codex => ModelTurn::silent().write(path, text),
        Cli::Copilot => ModelTurn::silent().insist("create", json!({ "path": path, "file_text": text })),
        Cli::Gemini | Cli::GeminiAcp | Cli::Qwen => {
            ModelTurn::silent().insist("write_file", json!({ "file_path": path, "content": text }))
        }
        Cli::Opencode | Cli::OpencodeAcp => {
            ModelTurn::silent().insist("write", json!({ "filePath": path, "content": text }))
        }
    }
}

fn shell(cli: Cli, command: &str) -> ModelTurn {
    let name = match cli {
        Cli::Claude => "Bash",
        Cli::Codex => return ModelTurn::silent().shell(command),
        Cli::Gemini | Cli::GeminiAcp | Cli::Qwen => "run_shell_command",
        Cli::Opencode | Cli::OpencodeAcp | Cli::Copilot => "bash",
    };
    ModelTurn::silent().insist(name, json!({ "command": command, "description": "try it" }))
}

/// The tool calls of the model of `spec`: write a file, `touch`, a file in the person's home, hooks of the repository
/// and of the worktree, and a push.
fn forbidden_calls(cli: Cli) -> Vec<ModelTurn> {
    let hooks = "for at in --git-common-dir --git-dir; do at=\"$(git rev-parse $at)/hooks\"; mkdir -p \"$at\"; \
                 echo touch planted > \"$at/pre-commit\"; done";
    vec![
        write(cli),
        shell(cli, "touch planted-by-touch.txt"),
        shell(cli, "touch ~/planted"),
        shell(cli, hooks),
        shell(cli, "git push -q origin HEAD:planted"),
    ]
}

/// The reviewer `code` approves; `spec` makes these turns.
pub fn script(turns: impl IntoIterator<Item = ModelTurn>) -> ModelScript {
    let passed = json!({ "loopId": "{loop}", "taskId": "1", "passed": true });
    let spec = ModelRule::named("spec").matching(r"(?s)LOOP REVIEW PHASE.*Your Focus: Specification");
    ModelScript::new()
        .find("loop", r"completed by Loop (\S+?)\.")
        .find("nonce", r#"nonce="([^"]+)""#)
        .rule(
            ModelRule::named("code")
                .matching(r"(?s)LOOP REVIEW PHASE.*Your Focus: Code")
                .turn(ModelTurn::silent().mcp("set_loop_review_result", passed))
                .turn(ModelTurn::say("REVIEW_COMPLETE")),
        )
        .rule(turns.into_iter().fold(spec, ModelRule::turn))
        .rule(
            ModelRule::named("implement")
                .prompt_contains("# IMPLEMENT PHASE")
                .turn(ModelTurn::silent().write("{cwd}/greeting.txt", "hello\n"))
                .turn(ModelTurn::say("Done.")),
        )
}

fn misbehaving_script(cli: Cli) -> ModelScript {
    script(forbidden_calls(cli).into_iter().chain([ModelTurn::say(APPROVAL)]))
}

/// Everything that a reviewer must not change, besides the person's checkout.
fn protected_state(team: &Team) -> String {
    let script = "git -C ../origin for-each-ref; git for-each-ref | grep -v signoff/; ls ~; ls -a .git/hooks; \
                cat .git/config; ls -d .git/worktrees/*/hooks 2>/dev/null; true";
    team.project.env.shell(script).stdout
}

/// Nothing is changed, each tool call was answered, and the attempts are noted.
pub fn changes_nothing(cli: Cli) -> String {
    let team = Team::new(Cli::Claude, [Cli::Claude, cli], misbehaving_script(cli));
    assert_unchanged(&team, cli)
}

fn assert_unchanged(team: &Team, cli: Cli) -> String {
    let project = &team.project;
    let origin = project.env.root().join("origin").display().to_string();
    project.env.shell(&format!("git init -q --bare {origin} && git remote add origin {origin}"));
    project.git("push -q origin main");
    project.run(&["add", "Greet people", "-a"]);
    let (checkout, before) = (project.checkout(), protected_state(team));
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    team.settled();
    assert_eq!((project.checkout(), protected_state(team)), (checkout, before));
    let worktree = project.env.work().join(".signoff/worktrees/task-1");
    let status = format!("-C {} status --porcelain --ignored", worktree.display());
    assert_eq!(project.git(&status), "", "the work under review is as it was");
    assert_eq!(project.git("show --stat --format= signoff/task-1-greet-people").trim().lines().count(), 2);
    let answered = team.model.replies_of_rule("spec").into_iter().filter(|asked| !asked.result.is_empty());
    assert_eq!(answered.count(), forbidden_calls(cli).len(), "each call came back with a result");
    blocked_notes(team, &worked.stderr)
}

/// The notes of the reviewer's attempt, which are printed at once and shown later.
fn blocked_notes(team: &Team, stderr: &str) -> String {
    let shown = team.shown();
    let attempts = shown["attempts"].as_array().unwrap();
    let spec = attempts.iter().find(|attempt| attempt["reviewer"] == "spec").unwrap();
    let notes = spec["notes"].as_array().unwrap().iter().filter_map(|note| note.as_str());
    let people = team.project.run(&["show", "1"]).stdout;
    let redacted = |note: &str| note.replace(&team.project.env.root().display().to_string(), "[ROOT]");
    // The push has a separate note.
    let refused = |note: &&str| note.contains("was denied");
    let notes: Vec<String> = notes.filter(refused).map(redacted).collect();
    for note in &notes {
        assert!(stderr.contains(note.as_str()), "{note}: {stderr}");
        assert!(people.contains("was denied"), "{people}");
    }
    notes.join("\n")
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn claude_code_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::Claude), @r#"spec was denied: Write ([ROOT]/work/.signoff/worktrees/task-1/planted.txt), Bash (touch planted-by-touch.txt), Bash (touch ~/planted), Bash (for at in --git-common-dir --git-dir; do at="$(git rev-parse $at)/hooks"; mkdir ), Bash (git push -q origin HEAD:planted)"#);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn codex_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::Codex), @r#"spec was denied: patch ([ROOT]/work/.signoff/worktrees/task-1/planted.txt), shell (touch planted-by-touch.txt), shell (touch ~/planted), shell (for at in --git-common-dir --git-dir; do at="$(git rev-parse $at)/hooks"; mkdir )"#);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn gemini_cli_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::Gemini), @r#"spec was denied: write_file ([ROOT]/work/.signoff/worktrees/task-1/planted.txt), run_shell_command (touch planted-by-touch.txt), run_shell_command (touch ~/planted), run_shell_command (for at in --git-common-dir --git-dir; do at="$(git rev-parse $at)/hooks"; mkdir ), run_shell_command (git push -q origin HEAD:planted)"#);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn opencode_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::Opencode), @"spec was denied: write, bash, bash, bash, bash");
}

/// The configuration disables its own rules, so it executes every call: only the sandbox confines it.
#[test]
#[ignore = "needs real agents: scripts/agents"]
fn claude_code_without_its_own_rules_changes_nothing() {
    let power = SandboxSupport::probe(None);
    if !power.is_complete() {
        eprintln!("SKIPPED: an agent that the sandbox alone holds: {}", power.missing.unwrap_or_default());
        return;
    }
    let team = Team::new(Cli::Claude, [Cli::Claude, Cli::Claude], misbehaving_script(Cli::Claude));
    let (env, text) = (&team.project.env, team.project.read("signoff.toml"));
    let loose =
        "args = [\"--tools\", \"default\", \"--permission-mode\", \"bypassPermissions\"]\nenv = { IS_SANDBOX = \"1\",";
    assert!(text.contains("\nenv = {"));
    env.write("signoff.toml", text.replacen("env = {", loose, 1));
    team.project.commit("Let it loose");
    assert_unchanged(&team, Cli::Claude);
    let results = team.model.replies_of_rule("spec").into_iter().map(|asked| asked.result);
    let refused =
        results.filter(|result| result.contains("Read-only file system") || result.contains("ermission denied"));
    assert!(refused.count() >= 3, "{:#?}", team.model.replies_of_rule("spec"));
}
