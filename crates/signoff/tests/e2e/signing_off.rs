//! Approval by default: reviews without a flag, the project's checks, and exit codes that scripts can
//! rely on.

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};

use crate::actors::{APPROVED, changes, developer};
use crate::{PROGRAM, sandbox};

/// Configures a reviewer, the scripted agent.
const REVIEWER: &str = "[reviewers.general]\nagent = \"scripted\"\n";

fn project(script: impl FnOnce(AgentScript) -> AgentScript, more: &str) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, script);
    project.configure(more);
    project
}

fn reviewer_answers(answer: &str) -> impl FnOnce(AgentScript) -> AgentScript {
    let rule = ScriptRule::role("review").say(answer);
    move |script| developer(script).rule(rule)
}

fn state(project: &TestProject, task: usize) -> String {
    let row = project.run(&["status", "--json"]).json()["tasks"][task - 1].clone();
    format!("{} {} {}", row["state"].as_str().unwrap(), row["final_verdict"], row["outcome"])
}

/// The output of a script that pushes if `signoff work` succeeds.
fn pushed(project: &TestProject, work: &str) -> String {
    let output = project.env.shell(&format!("{PROGRAM} {work} >/dev/null 2>&1 && echo pushed || echo stopped: $?"));
    output.stdout.trim().to_owned()
}

/// One outcome: its name, what the agents do, and how the task is added.
type Outcome = (&'static str, fn(AgentScript) -> AgentScript, &'static [&'static str]);

const OUTCOMES: [Outcome; 10] = [
    ("approved", |script| reviewer_answers(APPROVED)(script), &[]),
    ("review turned off", |script| reviewer_answers(APPROVED)(script), &["--no-review"]),
    ("MAX_CYCLES_REACHED", |script| reviewer_answers(&changes("wrong"))(script), &["--max-cycles", "1"]),
    ("NEEDS_DISCUSSION", |script| reviewer_answers("Why?\n\n**Verdict: NEEDS_DISCUSSION**\n")(script), &[]),
    ("unreadable reviews", |script| reviewer_answers("Nice.\n")(script), &["--max-cycles", "1"]),
    ("reviewer failed", |script| developer(script).rule(ScriptRule::role("review").exit(3)), &[]),
    ("implementer failed", |script| script.rule(ScriptRule::role("implement").exit(3)), &[]),
    ("nothing changed", |script| script.rule(ScriptRule::role("implement").say("Done.\n")), &[]),
    (
        "fixer failed",
        |script| {
            let script = script.rule(ScriptRule::role("fix").exit(3));
            reviewer_answers(&changes("wrong"))(script)
        },
        &[],
    ),
    ("asks", |script| reviewer_answers(&changes("wrong"))(script), &["--max-cycles", "1", "asks"]),
];

#[test]
fn work_and_then_push_pushes_only_what_is_approved() {
    let mut table = String::new();
    for (name, script, add) in OUTCOMES {
        let asks = if add.contains(&"asks") { "[gate]\non_exhausted = \"ask\"\n" } else { "" };
        let project = project(script, &format!("{REVIEWER}{asks}"));
        let flags = add.iter().copied().filter(|flag| *flag != "asks");
        project.run(&["add", "Add login"].into_iter().chain(flags).collect::<Vec<_>>());
        let (first, again) = (pushed(&project, "work"), pushed(&project, "work"));
        let (named, lenient) = (pushed(&project, "work 1"), pushed(&project, "--lenient work 1"));
        let state = state(&project, 1);
        table += &format!("{name}: {first}; again {again}; named {named}; lenient {lenient} ({state})\n");
        let done = state.starts_with("approved ") || state.starts_with("unreviewed ");
        assert_eq!(first == "pushed", done, "{name}: {state}");
        assert_eq!(named == "pushed", done, "{name}: {state}");
    }
    insta::assert_snapshot!(table, @r#"
    approved: pushed; again pushed; named pushed; lenient pushed (approved "APPROVED" "approved")
    review turned off: pushed; again pushed; named pushed; lenient pushed (unreviewed null null)
    MAX_CYCLES_REACHED: stopped: 3; again stopped: 3; named stopped: 3; lenient pushed (needs_you "MAX_CYCLES_REACHED" "exhausted")
    NEEDS_DISCUSSION: stopped: 3; again stopped: 3; named stopped: 3; lenient pushed (needs_you "NEEDS_DISCUSSION" "discussion")
    unreadable reviews: stopped: 3; again stopped: 3; named stopped: 3; lenient pushed (needs_you null "exhausted")
    reviewer failed: stopped: 1; again stopped: 1; named stopped: 1; lenient stopped: 1 (failed "CHANGES_REQUESTED" "failed")
    implementer failed: stopped: 1; again stopped: 1; named stopped: 1; lenient stopped: 1 (failed null "failed")
    nothing changed: stopped: 1; again stopped: 1; named stopped: 1; lenient stopped: 1 (failed null "failed")
    fixer failed: stopped: 1; again stopped: 1; named stopped: 1; lenient stopped: 1 (failed "CHANGES_REQUESTED" "failed")
    asks: stopped: 3; again stopped: 3; named stopped: 3; lenient pushed (needs_you null null)
    "#);
}

/// A person lets unapproved work proceed: every later command exits with 3.
#[test]
fn work_that_a_person_lets_proceed_is_never_pushed() {
    let asks: [(&str, String); 3] = [
        ("on_exhausted = \"ask\"\nmax_cycles = 1\n", changes("wrong")),
        ("on_unclear = \"ask\"\n", "Nice.\n".to_owned()),
        ("on_discussion = \"ask\"\n", "Why?\n\n**Verdict: NEEDS_DISCUSSION**\n".to_owned()),
    ];
    for (gate, answer) in asks {
        let project = project(reviewer_answers(&answer), &format!("{REVIEWER}[gate]\n{gate}"));
        project.run(&["add", "Add login"]);
        assert_eq!(pushed(&project, "work"), "stopped: 3", "{gate}");
        assert_eq!(project.run(&["answer", "1", "proceed"]).code, Some(0), "{gate}");
        for command in ["work", "work", "work 1", "run --resume", "run --resume 1"] {
            let stopped = pushed(&project, command);
            assert_eq!(stopped, "stopped: 3", "{gate} {command}: {}", state(&project, 1));
        }
        for command in [&["work"][..], &["run", "--resume"]] {
            let output = project.run(command);
            assert!(output.to_string().contains("task 1 is not approved"), "{output}");
        }
    }
}

#[test]
fn a_run_with_a_task_that_needs_a_person_does_not_succeed_later() {
    let project = project(reviewer_answers(&changes("wrong")), &format!("{REVIEWER}[gate]\nmax_cycles = 1\n"));
    project.run(&["add", "Add login"]);
    project.run(&["add", "Add logout", "--depends-on", "1"]);
    project.run(&["work"]);
    for command in ["run --resume", "run --resume 1", "work"] {
        assert!(pushed(&project, command).starts_with("stopped: "), "{command}");
    }
    project.run(&["cancel", "1"]);
    assert_eq!(pushed(&project, "run --resume"), "stopped: 1");
}

#[test]
fn land_names_work_that_changed_after_its_review() {
    let project = project(reviewer_answers(APPROVED), REVIEWER);
    project.run(&["add", "Add login"]);
    project.run(&["work"]);
    project.env.shell("cd .signoff/worktrees/* && echo more >> auth.txt && git commit -qam more");
    let landed = project.run(&["land"]);
    assert_eq!(landed.code, Some(3), "{landed}");
    assert!(landed.to_string().contains("changed after its review: task 1"), "{landed}");
}

/// The first review approves; a later review that a person requests rejects the same commit.
#[test]
fn a_later_review_that_rejects_voids_the_approval() {
    let refuses = |script: AgentScript| {
        let first = ScriptRule::role("review").task("1").say(APPROVED);
        developer(script).rule(first).rule(ScriptRule::role("review").say(&changes("it loses money")))
    };
    let project = project(refuses, REVIEWER);
    project.run(&["add", "Add login"]);
    assert_eq!(project.run(&["work"]).code, Some(0));
    let review = project.run(&["review", "1"]);
    assert_eq!(review.code, Some(1), "{review}");
    assert!(review.stderr.contains("Task #1 is no longer approved"), "{review}");
    assert!(state(&project, 1).contains("CHANGES_REQUESTED"), "{}", state(&project, 1));
    let shown = project.run(&["show", "1"]).stdout;
    assert!(shown.contains("the review of run 2: edit CHANGES_REQUESTED"), "{shown}");
    assert!(!shown.contains("a person"), "{shown}");
    assert!(shown.contains("it loses money"), "{shown}");
    assert_eq!(project.run(&["merge", "1"]).code, Some(1));
    project.run(&["land"]);
    assert!(!project.git("log --oneline").contains("login"), "it landed");
    assert!(pushed(&project, "work").starts_with("stopped: "));
    // Its findings are fixed, and a person's verdict still counts.
    assert_eq!(project.run(&["edit", "1", "--verdict", "APPROVED", "--reason", "no"]).code, Some(0));
    assert_eq!(project.run(&["merge", "1"]).code, Some(0));
}

/// A rejection is a finding of the task: `retry` fixes it before the work is reviewed again.
#[test]
fn findings_of_a_later_review_or_a_person_are_fixed_by_retry() {
    for refusal in
        [&["review", "1"][..], &["edit", "1", "--verdict", "CHANGES_REQUESTED", "--reason", "it loses money"]]
    {
        let script = |script: AgentScript| {
            developer(script)
                .rule(ScriptRule::role("review").task("1").say(APPROVED))
                .rule(ScriptRule::role("review").say(&changes("it loses money")))
        };
        let project = project(script, REVIEWER);
        project.run(&["add", "Add login"]);
        project.run(&["work"]);
        project.run(refusal);
        let open = project.run(&["show", "1", "--json"]).json()["ledger"][0]["state"].clone();
        assert_eq!(open, "open", "{refusal:?}");
        let retried = project.run(&["retry", "1"]);
        assert!(retried.stdout.contains("Improving..."), "{refusal:?}: {retried}");
        let calls = project.calls();
        let fixes: Vec<_> = calls.all().iter().filter(|call| call.start.role == "fix").collect();
        assert!(fixes.iter().any(|call| call.prompt.contains("it loses money")), "{refusal:?}: {retried}");
    }
}

#[test]
fn a_later_review_that_approves_or_is_unreadable_keeps_the_approval() {
    for answer in [APPROVED, "Nice.\n"] {
        let script = |script: AgentScript| {
            developer(script)
                .rule(ScriptRule::role("review").task("1").say(APPROVED))
                .rule(ScriptRule::role("review").say(answer))
        };
        let project = project(script, REVIEWER);
        project.run(&["add", "Add login"]);
        project.run(&["work"]);
        project.run(&["review", "1"]);
        assert_eq!(state(&project, 1), r#"approved "APPROVED" "approved""#);
    }
}

#[test]
fn review_is_on_if_a_reviewer_is_configured() {
    let project = project(reviewer_answers(APPROVED), REVIEWER);
    project.run(&["add", "Add login"]);
    project.run(&["add", "Add logout", "--no-review"]);
    assert_eq!(project.run(&["work"]).code, Some(0));
    assert_eq!(state(&project, 1), r#"approved "APPROVED" "approved""#);
    assert_eq!(state(&project, 2), "unreviewed null null");
    assert_eq!(project.run(&["improve", "1"]).code, Some(0));
    assert_eq!(state(&project, 3), r#"approved "APPROVED" "approved""#);
    assert_eq!(project.run(&["add", "Add it", "-a", "--no-review"]).code, Some(2));
    // If a review is requested and not possible, it is an error.
    assert_eq!(project.run(&["add", "Plan it", "-t", "plan", "-a"]).code, Some(2));
    // A task can request a review that the configuration turns off.
    project.configure(&format!("{REVIEWER}[defaults]\nauto_review = false\n"));
    project.run(&["add", "Add tea"]);
    project.run(&["add", "Add coffee", "-a"]);
    assert_eq!(project.run(&["work"]).code, Some(0));
    assert_eq!(state(&project, 4), "unreviewed null null");
    assert_eq!(state(&project, 5), r#"approved "APPROVED" "approved""#);
}

#[test]
fn without_a_reviewer_or_a_check_nothing_is_reviewed() {
    let project = project(reviewer_answers(APPROVED), "");
    project.run(&["add", "Add login"]);
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0));
    assert!(worked.stdout.contains("○ Task #1 completed (not reviewed)"), "{worked}");
}

/// A project whose `make test` fails if the file `broken` exists.
fn checked(script: impl FnOnce(AgentScript) -> AgentScript, more: &str) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, script);
    project.env.write("Makefile", "test:\n\t@test ! -f broken || { echo 'broken:1: it is broken'; exit 1; }\n");
    project.configure(more);
    project
}

#[test]
fn a_check_detected_in_the_base_is_the_gate_if_there_is_no_reviewer() {
    let project = checked(
        |script| {
            script
                .rule(ScriptRule::role("implement").write("broken", "yes\n").say("Done.\n"))
                .rule(ScriptRule::role("fix").shell("git rm -q broken && echo fixed > auth.txt").say("Fixed.\n"))
        },
        "",
    );
    project.run(&["add", "Add login"]);
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 0
    --- stdout
    Running task #1: Add login
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - `test` (`make test`) exited with 2. The end of its output: broken:1: it is broken make: *** [Makefi…
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    assert_eq!(state(&project, 1), r#"approved "APPROVED" "approved""#);
    assert!(project.calls().with_role("review").next().is_none());
}

#[test]
fn a_task_with_a_failing_test_is_not_approved_whatever_its_reviewer_says() {
    let broken = |script: AgentScript| {
        script
            .rule(ScriptRule::role("implement").write("broken", "yes\n").say("Done.\n"))
            .rule(ScriptRule::role("fix").append("broken", "still\n").say("Fixed.\n"))
            .rule(ScriptRule::role("review").say(APPROVED))
    };
    let project = checked(broken, REVIEWER);
    project.run(&["add", "Add login", "--max-cycles", "2"]);
    assert_eq!(project.run(&["work"]).code, Some(3));
    assert_eq!(state(&project, 1), r#"needs_you "MAX_CYCLES_REACHED" "exhausted""#);
}

/// The branch under review cannot change the checks of its own gate.
#[test]
fn checks_configured_on_the_branch_do_not_count() {
    let disarms = |script: AgentScript| {
        let disarm = ScriptRule::role("implement").write("broken", "yes\n").write("Makefile", "test:\n\t@true\n");
        script.rule(disarm.say("Done.\n")).rule(ScriptRule::role("fix").append("broken", "still\n").say("Fixed.\n"))
    };
    // The commands are those of the base; the Makefile is that of the work.
    let project = checked(disarms, "[checks]\ntest = \"test ! -f broken\"\n");
    project.run(&["add", "Add login", "--max-cycles", "1"]);
    assert_eq!(project.run(&["work"]).code, Some(3));
    // A check that the work adds is not run.
    let brings = |script: AgentScript| {
        script.rule(ScriptRule::role("implement").write("Makefile", "test:\n\t@false\n").say("Done.\n"))
    };
    let project = self::project(brings, "");
    project.run(&["add", "Add login"]);
    assert_eq!(project.run(&["work"]).code, Some(0));
    assert_eq!(state(&project, 1), "unreviewed null null");
}

#[test]
fn checks_run_in_a_copy_that_is_deleted() {
    let project = checked(developer, "");
    project.env.write("Makefile", "test:\n\t@touch made-by-the-check && test -f auth.txt\n");
    project.commit("Check more");
    project.run(&["add", "Add login"]);
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    let listed = project.env.shell("find .signoff/worktrees -name made-by-the-check; ls .signoff/worktrees");
    assert!(!listed.stdout.contains("made-by-the-check") && !listed.stdout.contains("copy"), "{listed}");
}

/// The sandbox stops a check from writing outside its copy.
#[test]
fn checks_run_in_the_sandbox() {
    for way in sandbox::ways() {
        let project = TestProject::outside_shared_memory(PROGRAM);
        project.set_agent(developer);
        project.env.write("Makefile", "test:\n\t@! touch ../../../trespass 2>/dev/null && touch mine\n");
        project.configure("sandbox = true\n");
        project.run(&["add", "Add login"]);
        let worked = sandbox::work(&project, way);
        assert_eq!(worked.code, Some(0), "{way:?}: {worked}");
        assert!(!project.env.work().join("trespass").exists(), "{way:?}");
        assert!(sandbox::attempts(&project, "hold").contains(&format!("review {:?}", way.into_str())));
    }
}

#[test]
fn retry_exits_by_the_result_of_the_named_task() {
    let project = project(
        |script| {
            script
                .rule(ScriptRule::role("implement").task("1").call(1).exit(3))
                .rule(ScriptRule::role("implement").task("2").exit(3))
                .rule(ScriptRule::role("implement").write("auth-{task}.txt", "login\n").say("Done.\n"))
                .rule(ScriptRule::role("review").say(APPROVED))
        },
        REVIEWER,
    );
    project.run(&["add", "Add login"]);
    project.run(&["add", "Add logout"]);
    assert_eq!(project.run(&["work"]).code, Some(1));
    let retried = project.run(&["retry", "1"]);
    assert_eq!(retried.code, Some(0), "{retried}");
    assert_eq!(project.run(&["retry", "2"]).code, Some(1));
    assert_eq!(project.run(&["answer", "999", "retry"]).code, Some(2));
    let unknown = project.run(&["answer", "999", "retry"]).stderr;
    assert!(unknown.contains("there is no open question 999"), "{unknown}");
}

#[test]
fn landed_work_is_reported_as_landed_without_further_suggestions() {
    let project = project(reviewer_answers(APPROVED), REVIEWER);
    project.run(&["add", "Add login"]);
    project.run(&["work"]);
    let shown = project.run(&["show", "1"]).stdout;
    assert!(shown.contains("Next: signoff diff 1, then signoff merge 1"), "{shown}");
    assert_eq!(project.run(&["merge", "1"]).code, Some(0));
    let row = project.run(&["status", "--json"]).json()["tasks"][0].clone();
    assert_eq!(row["state"], "landed");
    assert!(row["landed_commit"].is_string() && row["run_commit"].is_null(), "{row}");
    let shown = project.run(&["show", "1"]).stdout;
    assert!(!shown.contains("Next:"), "{shown}");
    assert_eq!(project.run(&["show", "1", "--json"]).json()["task"]["state"], "landed");
}

#[test]
fn an_approval_names_the_number_of_open_findings() {
    let answer = "- [HIGH] auth.txt:1 it can be guessed\n\n**Verdict: CHANGES_REQUESTED**\n";
    let project = project(reviewer_answers(answer), &format!("{REVIEWER}[gate]\nfail_on = \"NONE\"\n"));
    project.run(&["add", "Add login"]);
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert!(worked.stdout.contains("✓ Task #1 completed (APPROVED after 1 cycle, 1 open finding)"), "{worked}");
    let status = project.run(&["status"]).stdout;
    assert!(status.contains("completed  APPROVED (1 cycle), 1 open finding"), "{status}");
}

/// `work` covers the whole queue and names the tasks it could not start.
#[test]
fn work_fails_while_a_task_of_the_queue_is_blocked() {
    let project = project(|script| developer(script).rule(ScriptRule::role("review").say(APPROVED)), REVIEWER);
    project.run(&["add", "First"]);
    project.run(&["add", "Second", "--depends-on", "1"]);
    project.run(&["add", "Third"]);
    project.run(&["cancel", "1"]);
    let output = project.run(&["work"]);
    assert_eq!(output.code, Some(1), "{output}");
    assert!(output.stdout.contains("✓ Task #3 completed"), "{output}");
    assert!(output.stderr.contains("task 2 waits for task 1, which did not pass"), "{output}");
    assert_eq!(project.run(&["work", "3"]).code, Some(0));
}

/// A minor note of an approving review is shown and stored.
#[test]
fn minor_notes_are_shown_and_stored() {
    let answer = "Fine.\n\n- auth.txt:1 a shorter name would do\n\n**Verdict: APPROVED**\n";
    let project = project(reviewer_answers(answer), REVIEWER);
    project.run(&["add", "Add login"]);
    assert_eq!(project.run(&["work"]).code, Some(0));
    let shown = project.run(&["show", "1"]).stdout;
    assert!(shown.contains("note by general: auth.txt:1 a shorter name would do"), "{shown}");
}
