//! Reviewers whose model tells them to change things.

use serde_json::json;
use signoff_testkit::model::{Rule, Script, Turn};

use super::{Cli, Team};

const APPROVAL: &str =
    "<spec-review>\n<verdict>APPROVED</verdict>\n<summary>As asked</summary>\n</spec-review>\n";

/// The model of `spec` wants to write a file, run `touch`, edit a hook and push.
fn script() -> Script {
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
                .turn(Turn::silent().write("{cwd}/planted.txt", "here\n"))
                .turn(Turn::silent().shell("touch planted-by-touch.txt; touch ~/planted"))
                .turn(Turn::silent().shell(hook))
                .turn(Turn::silent().shell("git push -q ../../../../origin HEAD:planted"))
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
    let team = Team::new(Cli::Claude, [Cli::Claude, cli], script());
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
    worked.stdout
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn claude_code_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::Claude), @"
    Running task #1: Greet people
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
        Review Results:
          Spec Review: APPROVED
          Code Review: APPROVED

        Action: Proceed
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ");
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn codex_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::Codex), @"
    Running task #1: Greet people
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
        Review Results:
          Spec Review: APPROVED
          Code Review: APPROVED

        Action: Proceed
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ");
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn gemini_cli_changes_nothing() {
    insta::assert_snapshot!(changes_nothing(Cli::Gemini), @"
    Running task #1: Greet people
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: INCONCLUSIVE - spec: there is no review element, and the message does not start with APPROVED: or ISSUES:
        Review Results:
          Spec Review: INCONCLUSIVE - no_verdict: there is no review element, and the message does not start with APPROVED: or ISSUES: (at byte 0)
          Code Review: APPROVED

        Action: Fix issues and re-run reviews
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: INCONCLUSIVE - spec: there is no review element, and the message does not start with APPROVED: or ISSUES:
        Review Results:
          Spec Review: INCONCLUSIVE - no_verdict: there is no review element, and the message does not start with APPROVED: or ISSUES: (at byte 0)
          Code Review: APPROVED

        Action: Fix issues and re-run reviews
      [3/3] Improving...
      [3/3] Running review...
      [3/3] Review: INCONCLUSIVE - spec: there is no review element, and the message does not start with APPROVED: or ISSUES:
        Review Results:
          Spec Review: INCONCLUSIVE - no_verdict: there is no review element, and the message does not start with APPROVED: or ISSUES: (at byte 0)
          Code Review: APPROVED
    Max review cycles (3) reached without approval
    ✓ Task #1 completed (MAX_CYCLES_REACHED after 3 cycles)
        Look at it: signoff show 1; go on: signoff improve 1 --review
    ");
}
