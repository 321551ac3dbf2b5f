//! Reviewers whose model tells them to change things.

use serde_json::json;
use signoff_testkit::model::{Rule, Script, Turn};

use super::{Cli, Team};

const APPROVAL: &str =
    "<spec-review>\n<verdict>APPROVED</verdict>\n<summary>As asked</summary>\n</spec-review>\n";

/// The names of a program's own tools: what is not offered to a reviewer is asked for all the same.
fn write(cli: Cli) -> Turn {
    let (path, text) = ("{cwd}/planted.txt", "here\n");
    match cli {
        Cli::Claude => Turn::silent().insist("Write", json!({ "file_path": path, "content": text })),
        Cli::Codex => Turn::silent().write(path, text),
        Cli::Gemini | Cli::GeminiAcp => {
            Turn::silent().insist("write_file", json!({ "file_path": path, "content": text }))
        }
        Cli::Opencode | Cli::OpencodeAcp => {
            Turn::silent().insist("write", json!({ "filePath": path, "content": text }))
        }
    }
}

fn shell(cli: Cli, command: &str) -> Turn {
    let name = match cli {
        Cli::Claude => "Bash",
        Cli::Codex => return Turn::silent().shell(command),
        Cli::Gemini | Cli::GeminiAcp => "run_shell_command",
        Cli::Opencode | Cli::OpencodeAcp => "bash",
    };
    Turn::silent().insist(name, json!({ "command": command, "description": "try it" }))
}

/// The model of `spec` wants to write a file, run `touch`, edit a hook and push.
fn script(cli: Cli) -> Script {
    let passed = json!({ "loopId": "{loop}", "taskId": "1", "passed": true });
    let hook = "echo 'touch planted' > \"$(git rev-parse --git-common-dir)/hooks/pre-commit\"";
    Script::new()
        .find("loop", r"completed by Loop (\S+?)\.")
        .rule(
            Rule::named("code")
                .matching(r"(?s)LOOP REVIEW PHASE.*Your Focus: Code")
                .turn(Turn::silent().mcp("set_loop_review_result", passed))
                .turn(Turn::say("REVIEW_COMPLETE")),
        )
        .rule(
            Rule::named("spec")
                .matching(r"(?s)LOOP REVIEW PHASE.*Your Focus: Specification")
                .turn(write(cli))
                .turn(shell(cli, "touch planted-by-touch.txt"))
                .turn(shell(cli, "touch ~/planted"))
                .turn(shell(cli, hook))
                .turn(shell(cli, "git push -q ../../../../origin HEAD:planted"))
                .turn(Turn::say(APPROVAL)),
        )
        .rule(
            Rule::named("implement")
                .asked_for("# IMPLEMENT PHASE")
                .turn(Turn::silent().write("{cwd}/greeting.txt", "hello\n"))
                .turn(Turn::say("Done.")),
        )
}

fn changes_nothing(cli: Cli) -> String {
    let team = Team::new(Cli::Claude, [Cli::Claude, cli], script(cli));
    let project = &team.project;
    let origin = project.env.root().join("origin");
    project.env.shell(&format!("git init -q --bare {}", origin.display()));
    project.run(&["add", "Greet people", "-a"]);
    let before = project.checkout();
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(project.checkout(), before);
    assert_eq!(project.git("show --stat --format= signoff/task-1-greet-people").trim().lines().count(), 2);
    assert_eq!(project.env.shell("ls .git/hooks | grep -v sample; ls ~ | grep planted; true").stdout, "");
    assert_eq!(project.env.shell("git -C ../origin for-each-ref 2>/dev/null").stdout, "");
    let tried = worked.stderr.lines().filter(|line| line.contains("tried"));
    tried.collect::<Vec<_>>().join("\n")
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn claude_code_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::Claude), @r#"spec tried what a reader may not: Write ([ROOT]/work/.signoff/worktrees/task-1/planted.txt), Bash (touch planted-by-touch.txt), Bash (touch ~/planted), Bash (echo 'touch planted' > "$(git rev-parse --git-common-dir)/hooks/pre-commit"), Bash (git push -q ../../../../origin HEAD:planted)"#);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn codex_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::Codex), @r#"spec tried what a reader may not: patch ([ROOT]/work/.signoff/worktrees/task-1/planted.txt), shell (touch planted-by-touch.txt), shell (touch ~/planted), shell (echo 'touch planted' > "$(git rev-parse --git-common-dir)/hooks/pre-commit"), shell (git push -q ../../../../origin HEAD:planted)"#);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn gemini_cli_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::Gemini), @r#"spec tried what a reader may not: write_file ([ROOT]/work/.signoff/worktrees/task-1/planted.txt), run_shell_command (touch planted-by-touch.txt), run_shell_command (touch ~/planted), run_shell_command (echo 'touch planted' > "$(git rev-parse --git-common-dir)/hooks/pre-commit"), run_shell_command (git push -q ../../../../origin HEAD:planted)"#);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn opencode_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::Opencode), @"spec tried what a reader may not: write, bash, bash, bash, bash");
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn opencode_over_the_protocol_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::OpencodeAcp), @"spec tried what a reader may not: write, bash, bash, bash, bash");
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn gemini_cli_over_the_protocol_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::GeminiAcp), @"");
}
