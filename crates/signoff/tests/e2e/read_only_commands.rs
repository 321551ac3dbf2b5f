//! Read-only commands (status, show, logs, diff, doctor), their JSON, and the environment of agents.

use std::collections::BTreeMap;

use serde_json::Value;
use signoff_testkit::TestProject;
use signoff_testkit::agent_script::ScriptRule;
use signoff_testkit::processes::wait_until;

use crate::PROGRAM;
use crate::actors::{APPROVED, FEATURE, approving_agent, changes, developer, strict_reviewer};

/// A task that was approved at its third review.
fn approved() -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| strict_reviewer(developer(script)));
    project.run(&["add", "Add user authentication", "-a"]);
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    project
}

#[test]
fn every_json_has_its_version_and_its_keys() {
    let project = TestProject::with_agent(PROGRAM, |script| strict_reviewer(developer(script)));
    let added = project.run(&["add", "Add user authentication", "-a", "--json"]).json();
    assert_eq!(
        (&added["version"], &added["task"]["id"], &added["task"]["status"]),
        (&1.into(), &1.into(), &"pending".into())
    );
    let worked = project.run(&["work", "--json"]);
    let json = worked.json();
    assert_eq!((&json["version"], &json["run_id"], &json["stage"]), (&1.into(), &1.into(), &"done".into()));
    assert_eq!(json["tasks"][0]["final_verdict"], "APPROVED");
    assert!(worked.stderr.contains("[3/3] Review: APPROVED"), "{worked}");
    let status = project.run(&["status", "--json"]).json();
    assert_eq!((&status["version"], &status["questions"]), (&1.into(), &Value::Array(vec![])));
    let row = &status["tasks"][0];
    for (key, value) in [
        ("id", 1.into()),
        ("title", "Add user authentication".into()),
        ("type", "implement".into()),
        ("status", "completed".into()),
        ("outcome", "approved".into()),
        ("final_verdict", "APPROVED".into()),
        ("review_cycle", 3.into()),
        ("max_review_cycles", 3.into()),
        ("branch", "signoff/task-1-add-user-authentication".into()),
        ("reason", Value::Null),
        ("cost_usd", 0.0.into()),
    ] {
        assert_eq!(row[key], value, "{key}");
    }
    let shown = project.run(&["show", "1", "--json"]).json();
    let keys: Vec<_> = shown.as_object().unwrap().keys().map(String::as_str).collect();
    let first = ["version", "task", "cycles", "ledger", "attempts", "artifacts", "decisions"];
    assert_eq!(keys, [first.as_slice(), &["approved_commit", "voided", "question"]].concat());
    assert_eq!(shown["cycles"].as_array().unwrap().len(), 3);
    assert_eq!(shown["attempts"].as_array().unwrap().len(), 6);
    assert_eq!(shown["artifacts"].as_array().unwrap().len(), 3);
    assert!(shown["ledger"].as_array().unwrap().iter().all(|line| line["state"] == "fixed"), "{shown:#}");
    assert_eq!(project.run(&["diff", "1", "--json"]).json()["task_id"], 1);
    assert_eq!(project.run(&["doctor", "--json"]).json()["ok"], true);
    assert_eq!(project.run(&["--json"]).json()["tasks"][0]["id"], 1);
    assert_eq!(project.run(&["work", "--json"]).json()["tasks"], Value::Array(vec![]));
}

#[test]
fn a_task_is_shown_with_all_details() {
    let project = approved();
    let shown = project.run(&["show", "1"]);
    let day = &project.list(".signoff/reviews")[0][..8];
    insta::assert_snapshot!(plain(&shown.stdout.replace(day, "DAY"), &project), @"
    ✓ 1. Add user authentication
      type implement
      status completed APPROVED (3 cycles)
      branch signoff/task-1-add-user-authentication
      base [commit]
      worktree [ROOT]/work/.signoff/worktrees/task-1
      cost $0.00, 0 tokens in, 0 out
      time [time] [time] to [time] [time] [length]

    Cycle 1 (review, [commit]…): CHANGES_REQUESTED
      general changes_requested [length] $0.00 - auth.txt:1 missing input validation
      1. [critical] auth.txt:1 missing input validation

    Cycle 2 (review, [commit]…): CHANGES_REQUESTED
      general changes_requested [length] $0.00 - auth.txt:1 add rate limiting
      1. [critical] auth.txt:1 add rate limiting

    Cycle 3 (review, [commit]…): APPROVED
      general approved [length] $0.00 All is well.

    Findings:
      fixed f-ad016be880 [critical] auth.txt:1 missing input validation
                   reported by general in review 1
                   fixed by general: approved without reporting it again in cycle 3 of pass 1
      fixed f-ad3ff0a5a1 [critical] auth.txt:1 add rate limiting
                   reported by general in review 2
                   fixed by general: approved without reporting it again in cycle 3 of pass 1

    Attempts:
      a1 implement scripted [time] [time] [length] $0.00 complete
      a2 review by general scripted [time] [time] [length] $0.00 reviewed: changes_requested
      a3 fix scripted [time] [time] [length] $0.00 complete
      a4 review by general scripted [time] [time] [length] $0.00 reviewed: changes_requested
      a5 fix scripted [time] [time] [length] $0.00 complete
      a6 review by general scripted [time] [time] [length] $0.00 reviewed: approved

    Artifacts:
      .signoff/reviews/DAY-task-1-review-1.md
      .signoff/reviews/DAY-task-1-review-2.md
      .signoff/reviews/DAY-task-1-review-3.md

    Next: signoff diff 1, then signoff merge 1
    ");
}

/// Replaces what differs from run to run: commits, times, paths.
fn plain(text: &str, project: &TestProject) -> String {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let commits = project.git("log --all --format=%H");
    let word = |word: &str| {
        let shape: String = word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        let time = ["0000-00-00", "00:00:00"].contains(&shape.as_str());
        let length = word.trim_matches(['(', ')']).strip_suffix('s');
        let length = length.is_some_and(|length| is_number(length.trim_end_matches('m')));
        let commit = word.trim_matches(['(', ')', ':', '…', ',']);
        let is_commit = commit.len() >= 7 && commits.lines().any(|known| known.starts_with(commit));
        match (time, length, is_commit) {
            (true, _, _) => "[time]".to_owned(),
            (_, true, _) => "[length]".to_owned(),
            (_, _, true) => word.replace(commit, "[commit]"),
            (false, false, false) => word.to_owned(),
        }
    };
    let line = |line: &str| {
        let indent = " ".repeat(line.len() - line.trim_start().len());
        indent + &line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn logs_print_what_the_agents_said() {
    let project = approved();
    insta::assert_snapshot!(project.run(&["logs", "1"]).stdout, @"
    ==> a1 implement (scripted), cycle 0: stdout
    Done.
    ==> a2 review general (scripted), cycle 1: stdout
    - auth.txt:1 missing input validation

    **Verdict: CHANGES_REQUESTED**
    ==> a3 fix (scripted), cycle 1: stdout
    Fixed.
    ==> a4 review general (scripted), cycle 2: stdout
    - auth.txt:1 add rate limiting

    **Verdict: CHANGES_REQUESTED**
    ==> a5 fix (scripted), cycle 2: stdout
    Fixed.
    ==> a6 review general (scripted), cycle 3: stdout
    All is well.

    **Verdict: APPROVED**
    ");
    insta::assert_snapshot!(project.run(&["logs", "1", "--attempt", "3"]).stdout, @"
    ==> a3 fix (scripted), cycle 1: stdout
    Fixed.
    ");
    assert!(project.run(&["logs", "1", "--attempt", "1", "--prompts"]).stdout.contains("Add user authentication"));
    assert_eq!(project.run(&["logs", "1", "-f"]), project.run(&["logs", "1"]), "it is over: nothing to follow");
}

#[test]
fn an_attempt_that_was_never_made_is_not_shown() {
    let project = approved();
    insta::assert_snapshot!(project.run(&["logs", "1", "--attempt", "77"]), @"
    exit 2
    --- stderr
    error: task 1 has no attempt 77
    hint: known attempts: 1, 2, 3, 4, 5, 6
    ");
    assert_eq!(project.run(&["logs", "1", "--attempt", "a3"]), project.run(&["logs", "1", "--attempt", "3"]));
}

#[test]
fn logs_as_json_are_lines() {
    let project = approved();
    let logs = project.run(&["logs", "1", "--json"]).stdout;
    let lines: Vec<serde_json::Value> = logs.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 6);
    insta::assert_snapshot!(format!("{:#}", lines[1]), @r#"
    {
      "version": 1,
      "task_id": 1,
      "attempt": 2,
      "role": "review",
      "reviewer": "general",
      "agent": "scripted",
      "cycle": 1,
      "stream": "stdout",
      "text": "- auth.txt:1 missing input validation\n\n**Verdict: CHANGES_REQUESTED**\n"
    }
    "#);
}

#[test]
fn a_long_transcript_is_shown_to_its_end() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script.rule(ScriptRule::role("implement").write(FEATURE, "x\n").flood(5 << 20).say("\nThe end.\n"))
    });
    project.run(&["add", "One"]);
    project.run(&["work"]);
    let written = project.env.work().join(".signoff/runs/1/1/a1/stdout").metadata().unwrap().len();
    assert!(written > 5 << 20);
    let logs = project.run(&["logs", "1"]);
    assert!(logs.stdout.ends_with("\nThe end.\n") && logs.stdout.len() as u64 > written, "{}", logs.stdout.len());
    let json = project.run(&["logs", "1", "--json"]).stdout;
    let text = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["text"].as_str().unwrap().len();
    assert_eq!(json.lines().map(text).sum::<usize>() as u64, written);
}

#[test]
fn following_ends_if_nothing_runs() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script.rule(ScriptRule::role("implement").say("Beginning.\n").hang())
    });
    project.run(&["add", "One"]);
    let mut work = project.start(&["work"]);
    wait_until("the agent is at work", || project.run(&["logs", "1"]).stdout.contains("Beginning."));
    work.kill().unwrap();
    work.wait().unwrap();
    insta::assert_snapshot!(project.run(&["logs", "1", "-f"]), @"
    exit 0
    --- stdout
    ==> a1 implement (scripted), cycle 0: stdout
    Beginning.
    --- stderr
    No signoff is running: `signoff work 1` continues
    ");
}

#[test]
fn following_shows_output_until_the_task_is_over() {
    let project = TestProject::new(PROGRAM);
    let go_on = project.state().with_file_name("go-on");
    project.set_agent(|script| {
        script.rule(
            ScriptRule::role("implement")
                .say("Beginning.\n")
                .wait_for(&go_on.display().to_string())
                .write(FEATURE, "x\n")
                .say("Done.\n"),
        )
    });
    project.configure("");
    project.run(&["add", "One"]);
    let work = project.start(&["work"]);
    assert!((0..2_000).any(|_| project.run(&["logs", "1"]).stdout.contains("Beginning.")), "never began");
    let follow = project.start(&["logs", "1", "-f"]);
    std::fs::write(&go_on, "").unwrap();
    let followed = project.env.finish(follow);
    assert!(followed.stdout.contains("Beginning.") && followed.stdout.contains("Done."), "{followed}");
    assert_eq!(project.env.finish(work).code, Some(0));
}

#[test]
fn diff_prints_the_diff_of_git() {
    let project = approved();
    let shown = project.run(&["diff", "1"]);
    assert_eq!(shown.stdout, project.git("diff main...signoff/task-1-add-user-authentication"));
    let stat = project.run(&["diff", "1", "--stat"]);
    insta::assert_snapshot!(stat.stdout, @"
    auth.txt | 3 +++
    1 file changed, 3 insertions(+)
    ");
    project.run(&["add", "Not begun"]);
    insta::assert_snapshot!(project.run(&["diff", "2"]), @"
    exit 2
    --- stderr
    error: task 2 has not been started
    hint: `signoff work 2` starts it
    ");
}

#[test]
fn a_bare_call_lists_what_needs_attention() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        developer(script)
            .rule(ScriptRule::role("review").task("1").say(&changes("more")))
            .rule(ScriptRule::role("review").task("2").exit(1))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    insta::assert_snapshot!(project.run(&[]).stdout, @r#"
    Nothing to do yet.

      signoff add "what is to be done" -a    a task, reviewed until it is approved
      signoff work                           works the tasks
      signoff run PLAN                       works the tasks of a plan file

    `signoff --help` lists all commands.
    "#);
    project.run(&["add", "Bounded", "-a", "--max-cycles", "1"]);
    project.run(&["add", "Failing", "-a"]);
    project.run(&["add", "Fine", "-a"]);
    project.run(&["work"]);
    project.run(&["add", "Later"]);
    insta::assert_snapshot!(project.run(&[]).stdout, @"
    Needs attention:
      ✗ 2. Failing: failed CHANGES_REQUESTED (1 cycle) reviewer_failed
          signoff show 2, then signoff retry 2
      ! 1. Bounded: completed MAX_CYCLES_REACHED (1 cycle)
          signoff show 1, then signoff improve 1 --review or signoff edit 1 --verdict APPROVED

    1 pending, 2 completed, 1 failed
      signoff work    works what is pending
    ");
}

#[test]
fn every_question_has_one_number_wherever_it_is_shown() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        approving_agent(developer(script).rule(ScriptRule::role("review").reviewer("code").exit(1)))
    });
    project.configure("preset = \"plan\"\n");
    project.run(&["add", "One"]);
    project.run(&["add", "Two"]);
    project.run(&["work"]);
    let status = project.run(&["status", "--json"]).json();
    let questions = status["questions"].as_array().unwrap();
    assert_eq!(questions.len(), 2, "{status:#}");
    for question in questions {
        let task = question["task_id"].to_string();
        let shown = project.run(&["show", &task, "--json"]).json();
        assert_eq!(shown["question"]["id"], question["id"]);
        assert_eq!(shown["question"]["choices"], question["choices"]);
    }
    let (first, second) = (&questions[0], &questions[1]);
    project.run(&["answer", second["id"].as_str().unwrap(), "stop"]);
    let left = project.run(&["status", "--json"]).json()["questions"].clone();
    assert_eq!(left, Value::Array(vec![first.clone()]));
}

#[test]
fn every_recorded_event_can_be_followed() {
    let project =
        TestProject::with_agent(PROGRAM, |script| developer(script).rule(ScriptRule::role("review").say(APPROVED)));
    project.run(&["add", "One", "-a"]);
    let worked = project.run(&["work", "-j", "1", "--json-events"]);
    let events: Vec<Value> = worked.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    insta::assert_snapshot!(kinds.join("\n"), @"
    run.opened
    run.started
    run.task_picked
    loop.added
    loop.governed
    loop.placed
    loop.base_set
    loop.started
    loop.attempt_started
    run.loop_moved
    loop.used
    loop.work_ended
    loop.attempt_started
    loop.used
    loop.review_arrived
    run.loop_moved
    run.nothing_to_pick
    ");
    assert!(events.iter().zip(1u64..).all(|(event, seq)| event["seq"] == seq && event["version"] == 1));
    assert_eq!(worked.stderr, "");
}

#[test]
fn quiet_prints_only_the_data() {
    let project = TestProject::with_agent(PROGRAM, developer);
    insta::assert_snapshot!(project.run(&["-q", "add", "One"]), @"
    exit 0
    --- stdout
    Added task #1: One
    ");
    insta::assert_snapshot!(project.run(&["-q", "work"]), @"
    exit 0
    --- stdout
    Running task #1: One
      Implementing...
      Implementation complete
    ○ Task #1 completed (not reviewed)
    ");
    insta::assert_snapshot!(project.run(&["-q", "work"]), @"exit 0");
    insta::assert_snapshot!(project.run(&["-q", "status"]), @"
    exit 0
    --- stdout
      ○ 1. implement One    completed  not reviewed
    ");
}

#[test]
fn an_unknown_task_is_wrong_usage_everywhere() {
    let project = approved();
    for words in [
        &["show", "9"][..],
        &["logs", "9"],
        &["diff", "9"],
        &["work", "9"],
        &["review", "9"],
        &["improve", "9"],
        &["retry", "9"],
        &["edit", "9", "--verdict", "APPROVED"],
        &["cancel", "9"],
        &["add", "x", "--depends-on", "9"],
    ] {
        let refused = project.run(words);
        assert_eq!(refused.code, Some(2), "{words:?}\n{refused}");
        assert!(refused.stderr.starts_with("error: there is no task 9"), "{words:?}\n{refused}");
        assert!(refused.stderr.contains("hint: `signoff status` lists the tasks"), "{words:?}\n{refused}");
        assert_eq!(refused.stdout, "", "{words:?}");
        let fresh = TestProject::with_agent(PROGRAM, developer).run(words);
        assert_eq!(fresh.code, Some(2), "where nothing was ever added: {words:?}\n{fresh}");
    }
    for words in [&["show", "x"][..], &["show"], &["logs", "-1"]] {
        assert_eq!(project.run(words).code, Some(2), "{words:?}");
    }
}

#[test]
fn outside_a_repository_it_is_an_error() {
    let env = crate::test_env();
    for words in [&["status"][..], &["add", "x"], &["work"], &["show", "1"], &["doctor"], &["review"]] {
        let refused = env.run(words);
        assert_eq!(refused.code, Some(2), "{words:?}\n{refused}");
        assert!(refused.stderr.contains("git repository"), "{words:?}\n{refused}");
    }
}

#[test]
fn the_doctor_finds_wrong_tables_and_rebuilds_them() {
    let project = approved();
    insta::assert_snapshot!(project.run(&["doctor"]), @"
    exit 0
    --- stdout
    ✓ repository: on branch main
    ✓ agents: scripted
    ✓ store: the log is readable and the tables match it
    ✓ sandbox: switched off; signoff reverts reviewers' changes
    ");
    let before = project.run(&["status", "--json"]).json();
    let database = rusqlite::Connection::open(project.env.work().join(".signoff/signoff.db")).unwrap();
    assert_eq!(database.execute("DELETE FROM tasks", []).unwrap(), 1);
    database.execute("UPDATE loops SET iteration = 77", []).unwrap();
    drop(database);
    assert_eq!(project.run(&["status", "--json"]).json()["tasks"], Value::Array(vec![]));
    insta::assert_snapshot!(project.run(&["doctor"]), @"
    exit 1
    --- stdout
    ✓ repository: on branch main
    ✓ agents: scripted
    ✗ store: table tasks: 1 row differs from the log: rebuild the tables; table loops: 1 row differs from the log: rebuild the tables; `signoff doctor --rebuild` rebuilds the tables
    ✓ sandbox: switched off; signoff reverts reviewers' changes
    ");
    insta::assert_snapshot!(project.run(&["doctor", "--rebuild"]), @"
    exit 0
    --- stdout
    ✓ repository: on branch main
    ✓ agents: scripted
    ✓ rebuild: 1 runs, 36 events replayed
    ✓ store: the log is readable and the tables match it
    ✓ sandbox: switched off; signoff reverts reviewers' changes
    ");
    assert_eq!(project.run(&["status", "--json"]).json(), before);
}

#[test]
fn the_doctor_checks_the_worktrees_of_unfinished_tasks() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        developer(script).rule(ScriptRule::role("review").say(&changes("more")))
    });
    project.configure("[gate]\nmax_cycles = 1\non_exhausted = \"ask\"\n");
    project.run(&["add", "One", "-a"]);
    project.run(&["work"]);
    let worktrees = || {
        let doctor = project.run(&["doctor"]);
        let lines = doctor.stdout.lines().filter(|line| line.contains("worktrees"));
        format!("exit {:?}\n{}", doctor.code, lines.collect::<Vec<_>>().join("\n"))
    };
    insta::assert_snapshot!(worktrees(), @"
    exit Some(0)
    ✓ worktrees: 1 worktree of unfinished tasks, each on its branch
    ");
    project.git("-C .signoff/worktrees/task-1 switch -q -c elsewhere");
    insta::assert_snapshot!(worktrees(), @"
    exit Some(1)
    ✗ worktrees: task 1 ([ROOT]/work/.signoff/worktrees/task-1): on branch elsewhere, not on signoff/task-1-one; `git -C [ROOT]/work/.signoff/worktrees/task-1 switch signoff/task-1-one` puts it there
    ");
    project.git("-C .signoff/worktrees/task-1 switch -q signoff/task-1-one");
    std::fs::remove_dir_all(project.env.work().join(".signoff/worktrees/task-1")).unwrap();
    insta::assert_snapshot!(worktrees(), @"
    exit Some(1)
    ✗ worktrees: task 1 ([ROOT]/work/.signoff/worktrees/task-1): missing; `signoff work` recreates it
    ");
    project.run(&["answer", "1", "continue"]);
    project.run(&["work"]);
    assert_eq!(project.run(&["doctor"]).code, Some(0));
}

#[test]
fn the_doctor_names_a_missing_agent() {
    let project = TestProject::new(PROGRAM);
    project.env.write("signoff.toml", "[agents.mine]\nkind = \"command\"\ncommand = [\"no-such-agent\"]\n");
    insta::assert_snapshot!(project.run(&["doctor"]), @"
    exit 1
    --- stdout
    ✓ repository: on branch main
    ✗ agents: agent mine: program no-such-agent was not found; signoff.toml:3; hint: install it, or set [agents.mine] command in signoff.toml
    ✓ store: the log is readable and the tables match it
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    ");
    project.run(&["add", "One"]);
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 2
    --- stderr
    error: agent mine: program no-such-agent was not found
      --> signoff.toml:3
    hint: install it, or set [agents.mine] command in signoff.toml
    ");
    assert_eq!(project.run(&["status", "--json"]).json()["tasks"][0]["status"], "pending");
}

#[test]
fn completions_name_every_command() {
    let script = crate::test_env().run(&["completions", "bash"]);
    assert_eq!(script.code, Some(0));
    for command in ["add", "work", "run", "review", "improve", "answer", "dispute"] {
        assert!(script.stdout.contains(command), "{command}");
    }
    assert_eq!(crate::test_env().run(&["completions", "tcl"]).code, Some(2));
}

/// The `SIGNOFF_` variables of an attempt, as the agent printed them.
fn agent_variables(project: &TestProject, attempt: &str) -> BTreeMap<String, String> {
    let stdout = project.run(&["logs", "1", "--attempt", attempt]).stdout;
    let pairs = stdout.lines().filter_map(|line| line.strip_prefix("SIGNOFF_")?.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn agents_get_their_own_variables_and_inherit_none() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        let tell = "env | grep ^SIGNOFF_";
        script
            .rule(ScriptRule::role("implement").shell(tell).write(FEATURE, "login\n"))
            .rule(ScriptRule::role("fix").shell(tell).append(FEATURE, "more\n"))
            .rule(ScriptRule::role("review").cycle(1).shell(tell).say("\n").say(&changes("more")))
            .rule(ScriptRule::role("review").shell(tell).say("\n").say(APPROVED))
    });
    project.configure("[task_types.implement]\nmodel = \"opus\"\n");
    project.run(&["add", "One", "-a"]);
    let inherited = [
        ("SIGNOFF_REVIEWER", "me"),
        ("SIGNOFF_NONCE", "x"),
        ("SIGNOFF_MCP_TOKEN", "t"),
        ("SIGNOFF_MCP_URL", "u"),
        ("SIGNOFF_MODEL", "m"),
    ];
    let worked = project.env.run_with(&["work"], &inherited);
    assert_eq!(worked.code, Some(0), "{worked}");
    let variables = ["1", "2", "3", "4"].map(|attempt| agent_variables(&project, attempt));
    let variable = |call: usize, name: &str| variables[call].get(name).cloned().unwrap_or("-".to_owned());
    let line = |call: usize| {
        [
            "ROLE",
            "PHASE",
            "REVIEWER",
            "REVIEW_KIND",
            "TASK_ID",
            "LOOP_ID",
            "RUN_ID",
            "ATTEMPT",
            "CYCLE",
            "MODEL",
            "MCP_URL",
            "MCP_TOKEN",
        ]
        .map(|name| variable(call, name))
        .join(" ")
    };
    insta::assert_snapshot!((0..variables.len()).map(line).collect::<Vec<_>>().join("\n"), @"
    implement implement - - 1 1 1 1 0 opus - -
    review review general task 1 1 1 2 1 - - -
    fix review - - 1 1 1 3 1 opus - -
    review review general task 1 1 1 4 2 - - -
    ");
    let base = project.git("rev-parse main");
    assert!((0..4).all(|call| variable(call, "BASE") == base.trim()));
    assert_eq!(
        (variable(0, "NONCE"), variable(2, "NONCE")),
        ("-".to_owned(), "-".to_owned()),
        "only reviewers have one"
    );
    assert!(variable(1, "NONCE").len() >= 16 && variable(1, "NONCE") != variable(3, "NONCE"));
    let calls = project.calls();
    assert!(calls.all()[1].prompt.contains(&variable(1, "NONCE")), "the prompt asks for it back");
    assert_eq!(variable(3, "COMMIT"), project.git("rev-parse signoff/task-1-one").trim());
    assert!((0..4).all(|call| variable(call, "USAGE_FILE").starts_with("[ROOT]/")));
}

#[test]
fn the_reported_costs_of_agents_are_added_up() {
    let usage = |cost: f64| serde_json::json!({"cost_usd": cost, "input_tokens": 1000, "output_tokens": 10});
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write(FEATURE, "login\n").usage(usage(0.25)))
            .rule(ScriptRule::role("review").usage(usage(0.5)).say(APPROVED))
    });
    project.run(&["add", "One", "-a"]);
    project.run(&["work"]);
    let row = project.run(&["show", "1", "--json"]).json()["task"].clone();
    assert_eq!(
        (&row["cost_usd"], &row["input_tokens"], &row["output_tokens"]),
        (&0.75.into(), &2000.into(), &20.into())
    );
}
