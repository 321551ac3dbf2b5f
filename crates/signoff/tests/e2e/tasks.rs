//! `signoff tasks`: the tasks of a plan file, and errors in it.

use crate::test_env;

#[test]
fn a_plan_file_that_cannot_be_read_is_named() {
    insta::assert_snapshot!(test_env().run(&["tasks", "missing.md"]), @r"
    exit 2
    --- stderr
    error: cannot read missing.md: No such file or directory (os error 2)
      --> missing.md
    hint: name a file that holds tasks
    ");
}

const PLAN: &str = "\
# Login Implementation Plan

**Goal:** People can log in and out.

### Task 1: Session store

**Files:**
- Create: `src/session.rs`

- [x] **Step 1: Write the failing test**
- [ ] **Step 2: Make it pass**

### Task 2: Logout

- [ ] **Step 1: End the session**
";

#[test]
fn the_tasks_of_a_plan_are_shown() {
    let env = test_env();
    env.write("plan.md", PLAN);
    insta::assert_snapshot!(env.run(&["tasks", "plan.md"]), @r"
    exit 0
    --- stdout
    plan markdown: Login Implementation Plan
    Goal: People can log in and out.
    2 tasks: 2 to do in 2 groups, 0 done

    Group 1
      [-] 1  Session store (in progress, 1 file, 1/2 steps)

    Group 2
      [ ] 2  Logout (0/1 step)
    ");
    let file = env.run(&["tasks", "plan.md", "--json"]).json();
    assert_eq!(file["format"], "plan_markdown");
    assert_eq!(file["tasks"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_file_without_tasks_is_wrong_usage() {
    let env = test_env();
    env.write("prose.md", "# Thoughts\n\nPeople should be able to log out.\n");
    env.write("empty.md", "");
    insta::assert_snapshot!(env.run(&["tasks", "prose.md"]), @r"
    exit 2
    --- stderr
    error: no tasks found; formats tried: plan markdown (`### Task 1: Title`), spec-kit (`- [ ] T001 text`), OpenSpec (`- [ ] 1.1 text` under `## 1. Title`), Kiro (`- [ ] 1. Title`), BMAD (`# Story 1.2: Title`), Task Master and beads (JSON)
      --> prose.md:1
    hint: fix the file, or set its format with --as: plan_markdown, spec_kit, open_spec, kiro, task_master, bmad, beads, text
    ");
    insta::assert_snapshot!(env.run(&["tasks", "empty.md"]), @r"
    exit 2
    --- stderr
    error: no tasks found; formats tried: plan markdown (`### Task 1: Title`), spec-kit (`- [ ] T001 text`), OpenSpec (`- [ ] 1.1 text` under `## 1. Title`), Kiro (`- [ ] 1. Title`), BMAD (`# Story 1.2: Title`), Task Master and beads (JSON)
      --> empty.md:1
    hint: fix the file, or set its format with --as: plan_markdown, spec_kit, open_spec, kiro, task_master, bmad, beads, text
    ");
    insta::assert_snapshot!(env.run(&["tasks", "prose.md", "--as", "kiro"]), @r"
    exit 2
    --- stderr
    error: no tasks; formats tried: Kiro; expected lines such as `- [ ] 1. Title`
      --> prose.md:1
    hint: fix the file, or set its format with --as: plan_markdown, spec_kit, open_spec, kiro, task_master, bmad, beads, text
    ");
}

#[test]
fn mistakes_in_a_plan_are_named_with_their_line() {
    let env = test_env();
    env.write(".taskmaster/tasks/tasks.json", "{\n  \"tasks\": [\n    {\"id\": 1,\n  ]\n}\n");
    env.write("latin1.md", b"# Plan\n\n### Task 1: caf\xe9\n");
    insta::assert_snapshot!(env.run(&["tasks", ".taskmaster/tasks/tasks.json"]), @r#"
    exit 2
    --- stderr
    error: key must be a string; formats tried: Task Master; expected {"tasks": […]} or {"TAG": {"tasks": […]}} with at least one task
      --> .taskmaster/tasks/tasks.json:4
    hint: fix the file, or set its format with --as: plan_markdown, spec_kit, open_spec, kiro, task_master, bmad, beads, text
    "#);
    insta::assert_snapshot!(env.run(&["tasks", "latin1.md"]), @r"
    exit 2
    --- stderr
    error: not UTF-8 text
      --> latin1.md:3
    hint: fix the file, or set its format with --as: plan_markdown, spec_kit, open_spec, kiro, task_master, bmad, beads, text
    ");
}

#[test]
fn a_format_has_aliases() {
    let env = test_env();
    env.write("plan.md", PLAN);
    for word in ["plan", "plan_markdown", "plan-markdown"] {
        assert_eq!(env.run(&["tasks", "plan.md", "--as", word]).code, Some(0), "{word}");
    }
    insta::assert_snapshot!(env.run(&["tasks", "plan.md", "--as", "jira"]), @r"
    exit 2
    --- stderr
    error: invalid value 'jira' for '--as <FORMAT>'
      [possible values: plan_markdown, spec_kit, open_spec, kiro, task_master, bmad, beads, text]

    For more information, try '--help'.
    ");
}
