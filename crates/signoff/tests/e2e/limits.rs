//! Concurrency limits, rate limits, fallback agents and cost caps.

use std::fs;

use serde_json::{Value, json};
use signoff_testkit::TestProject;
use signoff_testkit::agent_script::ScriptRule;
use signoff_testkit::processes::{self, wait_until};

use crate::PROGRAM;
use crate::actors::APPROVED;

const INT: i32 = 2;

/// Adds this many tasks without a review.
fn add(project: &TestProject, tasks: usize) {
    for number in 1..=tasks {
        project.run(&["add", &format!("Task {number}")]);
    }
}

/// Agents in a chain of fallbacks, each a shell script that logs its calls.
fn chain(agents: &[(&str, &str)]) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| script.rule(ScriptRule::role("review").say(APPROVED)));
    let mut tables = "[roles]\nimplement = \"one\"\nreview = \"scripted\"\n".to_owned();
    for (number, (name, script)) in agents.iter().enumerate() {
        let fallback = agents.get(number + 1).map(|(next, _)| format!("fallback = \"{next}\"\n"));
        let script = format!("cat > /dev/null; echo {name} >> ../../../../asked; {script}");
        tables.push_str(&format!(
            "[agents.{name}]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", {script:?}]\n{}",
            fallback.unwrap_or_default()
        ));
    }
    project.configure(&format!("[limits]\nbackoff = \"0s\"\nmax_rate_limits = 5\n{tables}"));
    project
}

fn started_agents(project: &TestProject) -> String {
    fs::read_to_string(project.env.root().join("asked")).unwrap_or_default().replace('\n', " ")
}

/// Reports a retry delay and exits as rate limited.
fn rate_limited_for(seconds: u32) -> String {
    format!("echo '{{\"retry_after_seconds\": {seconds}}}' > $SIGNOFF_USAGE_FILE; exit 75")
}

#[test]
fn status_names_the_agent_that_is_waited_for() {
    let project = chain(&[("one", &rate_limited_for(5 * 3600)), ("two", &rate_limited_for(3600))]);
    project.run(&["add", "Try", "-a"]);
    let program = project.env.start_group(&["work"]);
    let status = || project.run(&["status", "--json"]).json()["tasks"][0].clone();
    wait_until("it waits", || status()["status"] == "paused");
    let wait = status()["wait"].clone();
    assert_eq!((&wait["agent"], &wait["fell_in"]), (&json!("two"), &json!(["one"])));
    processes::signal_group(program.id(), INT);
    assert_eq!(project.env.finish(program).code, Some(130));
}

/// Replays a recording of Claude Code and does not exit.
fn hangs_after(recording: &str, more: &str) -> TestProject {
    let project = TestProject::new(PROGRAM);
    let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../signoff-engine/testdata/agents");
    let script = format!(
        "cat > /dev/null; echo claude >> ../../../../asked; echo hi > a.txt; \
         [ $(grep -c claude ../../../../asked) = 2 ] && exec cat {testdata}/claude/work.stdout; \
         cat {testdata}/claude/{recording}.stdout; exec sleep 1000"
    );
    let limits = "[limits]\nbackoff = \"0s\"\ngrace = \"1s\"\n";
    let agent = format!("[agents.claude]\ncommand = [\"sh\", \"-c\", {script:?}, \"claude\"]\n");
    let roles = "[roles]\nimplement = \"claude\"\n";
    project.env.write("signoff.toml", format!("sandbox = false\n{limits}{more}\n{roles}{agent}"));
    project.commit("Configure");
    project.run(&["add", "Try"]);
    project
}

#[test]
fn a_final_message_counts_even_if_the_agent_does_not_exit() {
    for limit in ["silence = \"5s\"", "attempt = \"5s\""] {
        let project = hangs_after("work", limit);
        let work = project.run(&["work"]);
        assert_eq!((work.code, started_agents(&project).as_str()), (Some(0), "claude "), "{work}");
        let note = "claude finished but did not exit; it was stopped, and its work counts";
        assert!(work.stderr.contains(note), "{work}");
        assert_eq!(project.git("show signoff/task-1-try:a.txt"), "hi\n");
    }
}

#[test]
fn a_rate_limit_is_waited_out_even_if_the_agent_does_not_exit() {
    let project = hangs_after("status-429", "silence = \"5s\"");
    let work = project.run(&["work"]);
    assert_eq!((work.code, started_agents(&project).as_str()), (Some(0), "claude claude "), "{work}");
    assert!(work.stdout.contains("Rate limited"), "{work}");
}

#[test]
fn an_agent_stopped_before_its_final_message_has_failed() {
    let project = hangs_after("hang", "silence = \"5s\"");
    let work = project.run(&["work"]);
    assert_eq!((work.code, started_agents(&project).as_str()), (Some(1), "claude "), "{work}");
}

/// The output without times.
fn timeless(text: &str) -> String {
    let line = |line: &str| line.split(" until ").next().unwrap_or_default().to_owned();
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Agents that replay one recording each. A delay of seconds in it becomes one of hours.
fn recorded(more: &str, recordings: &[(&str, &str)]) -> TestProject {
    let project = TestProject::new(PROGRAM);
    let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../signoff-engine/testdata/agents");
    let mut text = format!("sandbox = false\n{more}\n[roles]\nimplement = \"{}\"\n", recordings[0].0);
    for (number, (kind, name)) in recordings.iter().enumerate() {
        let script = format!("cat > /dev/null; sed s/4.5s/5h0m0s/g {testdata}/{kind}/{name}.stdout; exit 1");
        let fallback = recordings.get(number + 1).map(|(next, _)| format!("fallback = \"{next}\"\n"));
        text.push_str(&format!(
            "[agents.{kind}]\ncommand = [\"sh\", \"-c\", {script:?}, \"{kind}\"]\n{}",
            fallback.unwrap_or_default()
        ));
    }
    project.env.write("signoff.toml", text);
    project.commit("Configure");
    project.run(&["add", "Try"]);
    project
}

#[test]
fn a_rate_limit_is_reported_in_the_agents_words() {
    let project = recorded(
        "[limits]\nbackoff = \"0s\"\nmax_rate_limits = 1\n",
        &[("claude", "status-529"), ("codex", "status-429")],
    );
    insta::assert_snapshot!(timeless(&project.run(&["work"]).to_string()), @"
    exit 1
    --- stdout
    Running task #1: Try
      Implementing...
      Overloaded (API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment.…): another agent takes over
      Rate limited (exceeded retry limit, last status: 429 Too Many Requests): waiting
      Resuming: the wait is over
      Overloaded (API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment.…): another agent takes over
      Implementation failed: its provider rate-limited it 4 times in a row (rate limited: exceeded retry limit, last status: 429 Too Many Requests)
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    --- stderr
    warning: agent claude is probably not logged in; `signoff agents --check claude` checks it
    warning: agent codex is probably not logged in; `signoff agents --check codex` checks it
    ");
}

#[test]
fn status_names_the_agent_that_is_waited_for_and_the_fallbacks() {
    let project = recorded(
        "[limits]\nbackoff = \"1h\"\nbackoff_max = \"1h\"\n",
        &[("claude", "status-529"), ("codex", "limit-with-delay")],
    );
    let program = project.env.start_group(&["work"]);
    let status = || project.run(&["status", "--json"]).json()["tasks"][0].clone();
    wait_until("it waits", || status()["status"] == "paused");
    let mut wait = status()["wait"].clone();
    wait["until"] = "(later)".into();
    insta::assert_snapshot!(wait, @r#"{"agent":"claude","until":"(later)","overloaded":true,"why":"API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:18701).","fell_in":["codex"]}"#);
    let status = project.run(&["status"]).stdout;
    insta::assert_snapshot!(status.split_once("UTC ").unwrap().1, @"(overload: API Error: 529 Overloaded. This is a server-side issue, usually temporary — try…; codex was rate limited too)");
    processes::signal_group(program.id(), INT);
    assert_eq!(project.env.finish(program).code, Some(130));
}

/// A program that is rate limited in its first call, as recorded, and succeeds in its second.
fn refused_once(kind: &str, refusal: &str, well: &str) -> String {
    let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../signoff-engine/testdata/agents");
    let script = format!(
        "cat > /dev/null; echo {kind} >> ../../../../asked\n\
         if [ $(grep -c {kind} ../../../../asked) = 1 ]; then {refusal}; exit 1; fi\n\
         echo hi > a.txt; cat {testdata}/{kind}/{well}.stdout"
    );
    format!("[agents.{kind}]\ncommand = [\"sh\", \"-c\", {script:?}, \"{kind}\"]\n").replace("TESTDATA", testdata)
}

#[test]
fn an_agent_resumes_after_the_stated_delay() {
    let project = TestProject::new(PROGRAM);
    let shorter = |end: &str| format!("sed s/4s/1s/g TESTDATA/gemini/status_429.{end}");
    let refusal = format!("{}; {} >&2", shorter("stdout"), shorter("stderr"));
    let gemini = refused_once("gemini", &refusal, "tools");
    let limits = "[limits]\nbackoff = \"0s\"\n";
    project.env.write("signoff.toml", format!("sandbox = false\n{limits}[roles]\nimplement = \"gemini\"\n{gemini}"));
    project.commit("Configure");
    project.run(&["add", "Try"]);
    insta::assert_snapshot!(timeless(&project.run(&["work"]).to_string()), @"
    exit 0
    --- stdout
    Running task #1: Try
      Implementing...
      Rate limited (Rate limit reached. Please retry in 1s.): waiting
      Resuming: the wait is over
      Implementation complete
    ○ Task #1 completed (not reviewed)
    --- stderr
    warning: agent gemini is probably not logged in; `signoff agents --check gemini` checks it
    ");
    assert_eq!(started_agents(&project), "gemini gemini ");
    assert_eq!(project.git("show signoff/task-1-try:a.txt"), "hi\n");
}

#[test]
fn a_fallback_starts_without_a_wait_and_nothing_has_failed() {
    let project = TestProject::new(PROGRAM);
    let claude = refused_once("claude", "cat TESTDATA/claude/status-429.stdout", "work");
    let codex = refused_once("codex", "echo hi > a.txt; cat TESTDATA/codex/work.stdout", "work");
    let limits = "[limits]\nbackoff = \"1h\"\nbackoff_max = \"1h\"\n";
    let roles = "[roles]\nimplement = \"claude\"\n";
    project.env.write("signoff.toml", format!("sandbox = false\n{limits}{roles}{claude}fallback = \"codex\"\n{codex}"));
    project.commit("Configure");
    project.run(&["add", "Try"]);
    insta::assert_snapshot!(timeless(&project.run(&["work"]).to_string()), @r#"
    exit 0
    --- stdout
    Running task #1: Try
      Implementing...
      Rate limited (API Error: Request rejected (429) · scripted 429): another agent takes over
      Implementation complete
    ○ Task #1 completed (not reviewed)
    --- stderr
    warning: agent claude is probably not logged in; `signoff agents --check claude` checks it
    warning: agent codex is probably not logged in; `signoff agents --check codex` checks it
    codex does not report which model it used, so it counts as $0: set `model` in [agents.codex]
    "#);
    assert_eq!(started_agents(&project), "claude codex ");
    let status = project.run(&["status", "--json"]).json()["tasks"][0].clone();
    assert_eq!((&status["status"], &status["wait"]), (&"completed".into(), &Value::Null));
    assert_eq!(project.git("show signoff/task-1-try:a.txt"), "hi\n");
}

/// The first task's agent is rate limited for a long time; the other task completes in the meantime.
fn waiting(seconds: u32) -> (TestProject, std::process::Child) {
    let refusal = json!({ "retry_after_seconds": seconds });
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").task("1").call(1).usage(refusal).exit(75))
            .rule(ScriptRule::role("implement").write("{task}.txt", "done\n"))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project.configure("jobs = 2\n[limits]\nbackoff = \"0s\"\n");
    for title in ["One", "Two"] {
        project.run(&["add", title, "-a"]);
    }
    let program = project.env.start_group(&["work"]);
    let status = |task: usize| project.run(&["status", "--json"]).json()["tasks"][task].clone();
    wait_until("the other task is done", || status(1)["status"] == "completed");
    wait_until("the first one waits", || status(0)["status"] == "paused");
    (project, program)
}

#[test]
fn others_continue_while_one_waits_and_ctrl_c_ends_the_wait() {
    let (project, program) = waiting(3600);
    assert_eq!(project.run(&["status", "--json"]).json()["tasks"][0]["reason"], "rate_limited");
    let status = project.run(&["status"]).stdout;
    let (before, after) = status.split_once(" until ").unwrap();
    assert_eq!(before.trim(), "‖ 1. implement One    paused      (implement)  waits for scripted");
    insta::assert_snapshot!(after.split_once(" UTC").unwrap().1, @"
     (rate limit)
      ✓ 2. implement Two    completed  APPROVED (1 cycle)
    ");
    // It continues without a person, so it is listed as running.
    let needed = project.run(&[]).stdout;
    assert!(needed.starts_with("Running:\n  ‖ 1. implement One"), "{needed}");
    let shown = project.run(&["show", "1"]).stdout;
    assert!(shown.contains("waits for scripted until"), "{shown}");
    processes::signal_group(program.id(), INT);
    assert_eq!(project.env.finish(program).code, Some(130));
}

#[test]
fn killed_while_waiting_it_resumes_when_the_wait_is_over() {
    let (project, program) = waiting(2);
    processes::signal_group(program.id(), 9);
    project.env.finish(program);
    assert_eq!(project.run(&["work"]).code, Some(0));
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
    ✓ 1. implement One    completed  APPROVED (1 cycle)
    ✓ 2. implement Two    completed  APPROVED (1 cycle)
    ");
    insta::assert_snapshot!(project.calls().with_role("implement").map(|call| call.start.task.as_str()).filter(|task| *task == "1").count(), @"2");
}

/// Status and reason of every task, and the total cost.
fn accounts(project: &TestProject) -> (Vec<String>, f64) {
    let tasks = project.run(&["status", "--json"]).json()["tasks"].as_array().unwrap().clone();
    let mut standing: Vec<_> =
        tasks.iter().map(|task| format!("{} {}", task["status"], task["reason"]).replace('"', "")).collect();
    standing.sort();
    (standing, tasks.iter().filter_map(|task| task["cost_usd"].as_f64()).sum())
}

/// It takes seconds until the agent is killed, and usage is checked all the time.
#[test]
fn an_agent_that_ignores_the_cap_is_reported_once_and_a_planner_is_not_a_task() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script.rule(ScriptRule::role("enumerate").ignore_term().usage(json!({"cost_usd": 1.5})).hang())
    });
    project.configure("[limits]\ngrace = \"3s\"\n[limits.run]\nmax_cost_usd = 1.0\n");
    project.env.write("SPEC.md", "# Accounts\n\nPeople log in.\n");
    project.commit("Specify");
    let stderr = project.run(&["run", "SPEC.md"]).stderr;
    insta::assert_snapshot!(stderr, @"Run 1 (plan) is paused: run limit: $1.50 of $1.00 is spent");
}

/// Invalid numbers in a usage report are ignored, and a later report cannot lower the cost.
#[test]
fn usage_counts_even_if_some_numbers_are_invalid() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        let odd = json!({"cost_usd": "0.6", "input_tokens": null, "output_tokens": 12.5});
        let works = ScriptRule::role("implement").usage(odd).wait_for("../../../../go");
        script.rule(works.usage(json!({"cost_usd": 0.1, "input_tokens": -1})).write("{task}.txt", "done\n"))
    });
    project.configure("jobs = 1\n[limits.run]\nmax_cost_usd = 1.0\n");
    add(&project, 2);
    let program = project.start(&["work"]);
    let is_recorded = || accounts(&project).1 > 0.0;
    wait_until("what it used is on record", is_recorded);
    fs::write(project.env.root().join("go"), "").unwrap();
    assert_eq!(project.env.finish(program).code, Some(3));
    let (standing, cost) = accounts(&project);
    assert!((cost - 0.6).abs() < 1e-9, "{cost}");
    // The next attempt may cost as much, which would exceed the cap.
    assert_eq!(standing, ["completed null", "paused budget"]);
    let used = &project.run(&["show", "1", "--json"]).json()["task"];
    assert_eq!((&used["input_tokens"], &used["output_tokens"]), (&json!(0), &json!(13)), "{used}");
}
