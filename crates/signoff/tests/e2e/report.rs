//! `signoff report`: one file about a task or a run in every state.

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::ScriptRule;
use signoff_testkit::processes::wait_until;

use crate::PROGRAM;
use crate::actors::{APPROVED, FEATURE, approving_agent, changes, clean, developer, issue, sees, strict_reviewer};

const FORMATS: [&str; 5] = ["html", "markdown", "json", "sarif", "junit"];

fn approved() -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| strict_reviewer(developer(script)));
    project.run(&["add", "Add user authentication", "-a"]);
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    project
}

/// A report in every format, each of which must contain these words.
fn assert_in_every_format(project: &TestProject, subject: &[&str], words: &[&str]) {
    for format in FORMATS {
        let arguments = [&["report"], subject, &["--format", format]].concat();
        let report = project.run(&arguments);
        assert_eq!((report.code, report.stderr.as_str()), (Some(0), ""), "{report}");
        for word in words {
            assert!(report.stdout.contains(word), "{word} is missing in {format}:\n{}", report.stdout);
        }
        if ["json", "sarif"].contains(&format) {
            report.json();
        }
    }
}

/// Fixed findings are in every format except the one that lists only open findings.
fn assert_fixed(project: &TestProject, subject: &str, words: &str) {
    for format in FORMATS {
        let text = project.run(&["report", subject, "--format", format]).stdout;
        assert_eq!(text.contains(words), format != "sarif", "{format}:\n{text}");
    }
}

#[test]
fn an_approved_task_in_every_format() {
    let project = approved();
    assert_in_every_format(&project, &["1"], &["Add user authentication", "Approved after 3 reviews"]);
    assert_fixed(&project, "1", "missing input validation");
    let markdown = project.run(&["report", "1"]).stdout;
    assert_eq!(markdown, project.run(&["report", "#1", "--format", "markdown"]).stdout);
    let head: Vec<&str> = markdown.lines().take(3).collect();
    assert_eq!(
        head,
        ["## ✓ Add user authentication", "", "**Approved after 3 reviews**, reviewed by general."],
        "{markdown}"
    );
    assert!(markdown.contains("1 file changed, 3 insertions(+)"), "{markdown}");
    assert!(
        markdown.contains("| missing input validation | critical | `auth.txt:1` | general | fixed |"),
        "{markdown}"
    );
    let json = project.run(&["report", "1", "--json"]).json();
    assert_eq!(
        (&json["version"], &json["about"]["kind"], &json["totals"]["cycles"]),
        (&1.into(), &"task".into(), &3.into())
    );
    assert_eq!(json["tasks"][0]["report"], project.run(&["show", "1", "--json"]).json());
    assert_eq!(
        (&json["tasks"][0]["changes"]["files"], &json["tasks"][0]["changes"]["insertions"]),
        (&1.into(), &3.into())
    );
}

#[test]
fn a_report_is_written_completely_or_not_at_all() {
    let project = approved();
    let written = project.run(&["report", "1", "--output", "report.md"]);
    assert_eq!((written.code, written.stdout.as_str()), (Some(0), ""), "{written}");
    assert_eq!(project.read("report.md"), project.run(&["report", "1"]).stdout);
    let kept = project.run(&["report", "9", "--output", "report.md"]);
    assert_eq!(kept.code, Some(2));
    assert_eq!(project.read("report.md"), project.run(&["report", "1"]).stdout, "as it was");
    assert!(!project.list(".").iter().any(|name| name.contains("draft")));
}

#[test]
fn an_unknown_task_is_wrong_usage_with_a_hint() {
    let project = TestProject::with_agent(PROGRAM, |script| strict_reviewer(developer(script)));
    insta::assert_snapshot!(project.run(&["report", "run-1"]), @"
    exit 2
    --- stderr
    error: there is no run 1
    hint: there are no runs yet: `signoff work` runs the queued tasks
    ");
    project.run(&["add", "One"]);
    project.run(&["work"]);
    insta::assert_snapshot!(project.run(&["report", "29"]), @"
    exit 2
    --- stderr
    error: there is no task 29
    hint: `signoff status` lists the tasks
    ");
    insta::assert_snapshot!(project.run(&["report", "run-29"]), @"
    exit 2
    --- stderr
    error: there is no run 29
    hint: the last one is run 1: `signoff report run-1`; a number alone is a task
    ");
    assert_eq!(project.run(&["report", "--run", "29"]), project.run(&["report", "run-29"]));
    for wrong in [
        vec!["report"],
        vec!["report", "run"],
        vec!["report", "1", "--run", "1"],
        vec!["report", "1", "--json", "--format", "html"],
    ] {
        assert_eq!(project.run(&wrong).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn a_task_that_was_never_started_is_reported_as_such() {
    let project = TestProject::with_agent(PROGRAM, developer);
    project.run(&["add", "Later"]);
    assert_in_every_format(&project, &["1"], &["Later", "Never started"]);
}

#[test]
fn a_run_that_failed_halfway_shows_the_result_of_each_task() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        developer(script)
            .rule(ScriptRule::role("review").task("1").say(APPROVED))
            .rule(ScriptRule::role("review").task("2").exit(1))
    });
    project.run(&["add", "Fine", "-a"]);
    project.run(&["add", "Broken", "-a"]);
    assert_eq!(project.run(&["work"]).code, Some(1));
    assert_in_every_format(
        &project,
        &["run-1"],
        &["Fine", "Broken", "Approved after 1 review", "a reviewer or check failed"],
    );
    assert_eq!(project.run(&["report", "run-1"]), project.run(&["report", "--run", "1"]));
    let xml = project.run(&["report", "run-1", "--format", "junit"]).stdout;
    assert!(xml.contains("<error message=\"Failed: a reviewer or check failed (reviewer_failed)\""), "{xml}");
    let sarif = project.run(&["report", "2", "--format", "sarif"]).json();
    assert_eq!(sarif["runs"][0]["invocations"][0]["executionSuccessful"], false);
}

#[test]
fn a_killed_run_is_reported_as_interrupted_and_a_running_one_as_running() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script.rule(ScriptRule::role("implement").write(FEATURE, "half\n").say("Beginning.\n").hang())
    });
    project.run(&["add", "One"]);
    let mut work = project.start(&["work"]);
    wait_until("the agent is at work", || project.run(&["logs", "1"]).stdout.contains("Beginning."));
    assert_in_every_format(&project, &["1"], &["Unfinished in phase implement; the work continues"]);
    let half = project.run(&["report", "1", "--json"]).json();
    assert_eq!(half["tasks"][0]["changes"]["insertions"], 1, "what is not committed counts: {half:#}");
    work.kill().unwrap();
    work.wait().unwrap();
    assert_in_every_format(
        &project,
        &["1"],
        &["no process is running: `signoff work 1` continues"].map(|_| "no process is running"),
    );
    assert_in_every_format(&project, &["run-1"], &["Left unfinished"]);
    for of in ["1", "run-1"] {
        let xml = project.run(&["report", of, "--format", "junit"]).stdout;
        assert!(xml.contains("type=\"unfinished\"") && !xml.contains("<skipped"), "{xml}");
    }
}

#[test]
fn a_report_of_an_interrupted_run_names_the_command_that_show_names() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script.rule(ScriptRule::role("implement").say("Beginning.\n").hang())
    });
    project.env.write("plan.md", "# Plan\n\n### Task 1: Store\n\n- [ ] Keep what is bought\n");
    project.commit("Plan");
    let mut run = project.start(&["run", "plan.md"]);
    wait_until("the agent is at work", || project.run(&["logs", "1"]).stdout.contains("Beginning."));
    run.kill().unwrap();
    run.wait().unwrap();
    let shown = project.run(&["show", "1"]).stdout;
    assert!(shown.contains("\nNext: signoff run --resume\n"), "{shown}");
    let reported = project.run(&["report", "1", "--format", "markdown"]).stdout;
    assert!(reported.contains("no process is running: `signoff run --resume` continues"), "{reported}");
}

#[test]
fn a_missing_branch_is_reported_and_not_an_error() {
    let project = approved();
    let branch = "signoff/task-1-add-user-authentication";
    project.git("worktree remove --force .signoff/worktrees/task-1");
    project.git(&format!("branch -D {branch}"));
    assert_in_every_format(&project, &["1"], &["Add user authentication"]);
    let json = project.run(&["report", "1", "--json"]).json();
    let changes = &json["tasks"][0]["changes"];
    assert_eq!(changes["insertions"], 3, "git still has the commits: {changes:#}");
    assert_eq!(changes["note"], format!("The branch {branch} is gone; this is what its last commit changed."));
    for name in project.list(".git/refs/signoff/base/signoff") {
        project.git(&format!("update-ref -d refs/signoff/base/signoff/{name}"));
    }
    project.git("reflog expire --expire=now --all");
    project.git("gc --quiet --prune=now");
    let json = project.run(&["report", "1", "--json"]).json();
    let changes = &json["tasks"][0]["changes"];
    assert_eq!(changes["stat"], serde_json::Value::Null, "{changes:#}");
    assert_eq!(changes["note"], format!("the branch {branch} is gone, and git does not have its commits any more"));
}

#[test]
fn the_tasks_of_a_plan_have_changes_of_their_own() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        let script = script.rule(ScriptRule::role("implement").write("task-{task}.txt", "one\n"));
        let script = script.rule(ScriptRule::role("fix").append("task-{task}.txt", "fixed\n"));
        let refused = ScriptRule::role("review").reviewer("code").task("1").cycle(1);
        let refused = refused.say(&issue("code", 1, "critical", "it leaks"));
        approving_agent(script.rule(refused))
    });
    project.env.write("plan.md", "# Plan\n\n### Task 1: Store\n\n- [ ] Keep\n\n### Task 2: Logout\n\n- [ ] End\n");
    project.commit("Plan");
    let worked = project.run(&["run", "plan.md"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_in_every_format(&project, &["run-1"], &["Store", "Logout", "Completed with 2 tasks"]);
    assert_fixed(&project, "run-1", "it leaks");
    let json = project.run(&["report", "run-1", "--json"]).json();
    let files = |task: usize| json["tasks"][task]["changes"]["stat"].as_str().unwrap().to_owned();
    assert!(files(0).contains("task-1.txt") && !files(0).contains("task-2.txt"), "{}", files(0));
    assert!(files(1).contains("task-2.txt") && !files(1).contains("task-1.txt"), "{}", files(1));
    let all = json["run"]["changes"]["stat"].as_str().unwrap();
    assert!(all.contains("task-1.txt") && all.contains("task-2.txt"), "{all}");
}

#[test]
fn a_run_of_groups_shows_its_planning_and_its_final_review() {
    let tasks = r#"{"tasks": [{"id": "login", "title": "Log in", "description": "Write it.", "depends_on": []}]}"#;
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("enumerate").say(tasks))
            .rule(ScriptRule::role("plan").say(r#"{"groups": [["login"]]}"#))
            .rule(ScriptRule::role("implement").write("login.txt", "x\n").say("Done.\nTASK_COMPLETE\n"))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project.env.write("SPEC.md", "# Accounts\n\nPeople log in.\n");
    project.commit("Specify");
    let worked = project.run(&["run", "SPEC.md"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_in_every_format(&project, &["run-1"], &["Planning SPEC.md", "Final review", "Log in", "People log in."]);
}

#[test]
fn a_failed_planning_is_a_report_without_tasks() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script.rule(ScriptRule::role("enumerate").say("I cannot.")).rule(ScriptRule::role("review").say(APPROVED))
    });
    project.env.write("SPEC.md", "# Accounts\n\nPeople log in.\n");
    project.commit("Specify");
    assert_eq!(project.run(&["run", "SPEC.md", "--no-ask"]).code, Some(1));
    assert_in_every_format(&project, &["run-1"], &["Failed in planning", "Planning SPEC.md"]);
}

#[test]
fn agents_text_creates_no_mentions_links_or_images() {
    let answer = changes("@everyone see #1 <img src=x> https://evil.example/x ![x](y)");
    let project =
        TestProject::with_agent(PROGRAM, |script| developer(script).rule(ScriptRule::role("review").say(&answer)));
    project.run(&["add", "Add user authentication", "-a", "--max-cycles", "1"]);
    project.run(&["work"]);
    let markdown = project.run(&["report", "1"]).stdout;
    let finding = "`@everyone see #1 <img src=x> https://evil.example/x ![x](y)`";
    assert!(markdown.contains(&format!("| {finding} | critical |")), "{markdown}");
    let fenced = "```text\n  @everyone see #1 <img src=x> https://evil.example/x ![x](y)\n  ```\n";
    assert!(markdown.contains(fenced), "{markdown}");
    let summary = finding.replace("`@", "`- auth.txt:1 @");
    let outside = markdown.replace(finding, "").replace(fenced, "").replace(&summary, "");
    for word in ["@everyone", " #1", "<img", "https://", "![x]"] {
        assert!(!outside.contains(word), "{word} in {markdown}");
    }
}

#[test]
fn both_reviewers_are_named() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        let script = script.rule(ScriptRule::role("implement").write(FEATURE, "x\n"));
        script.rule(sees("spec", &clean("spec"))).rule(sees("code", &clean("code")))
    });
    project.env.write("plan.md", "# Plan\n\n### Task 1: Store\n\n- [ ] Keep\n");
    project.commit("Plan");
    project.run(&["run", "plan.md"]);
    let markdown = project.run(&["report", "1"]).stdout;
    assert!(markdown.contains("**Approved after 1 review**, reviewed by code, spec."), "{markdown}");
}

#[test]
fn a_run_without_approval_has_not_passed() {
    let answer = changes("it leaks");
    let project =
        TestProject::with_agent(PROGRAM, |script| developer(script).rule(ScriptRule::role("review").say(&answer)));
    project.run(&["add", "Add user authentication", "-a", "--max-cycles", "1"]);
    project.run(&["work"]);
    assert_in_every_format(&project, &["run-1"], &["Ended with 1 task, 1 of them not signed off"]);
    let json = project.run(&["report", "run-1", "--json"]).json();
    assert_eq!((&json["run"]["standing"]["kind"], &json["run"]["outcome"]), (&"open".into(), &"attention".into()));
}

#[test]
fn commits_after_the_review_are_counted_and_reported() {
    let project = approved();
    let worktree = ".signoff/worktrees/task-1";
    project.env.write(&format!("{worktree}/late.txt"), "late\n");
    project.git(&format!("-C {worktree} add late.txt"));
    project.git(&format!("-C {worktree} commit -q -m Late"));
    assert_in_every_format(&project, &["1"], &["which is not reviewed", "something was committed after the review"]);
    assert_in_every_format(&project, &["run-1"], &["which is not reviewed", "1 of them not signed off"]);
    let json = project.run(&["report", "1", "--json"]).json();
    let changes = &json["tasks"][0]["changes"];
    assert_eq!((&changes["files"], &changes["insertions"]), (&2.into(), &4.into()), "{changes:#}");
    assert!(changes["note"].as_str().unwrap().contains("1 file changed, 3 insertions(+)"), "{changes:#}");
    let stats = project.run(&["stats", "--json"]).json();
    assert_eq!((&stats["tasks"]["approved"], &stats["tasks"]["not_approved"]), (&0.into(), &1.into()));
}

#[test]
fn a_report_goes_to_stdout_or_into_an_existing_directory() {
    let project = approved();
    insta::assert_snapshot!(project.run(&["report", "1", "--output", "no/such/report.md"]), @"
    exit 2
    --- stderr
    error: there is no directory no/such
    hint: `mkdir -p no/such` creates it; or name another file with --output
    ");
    let (plain, dash) = (project.run(&["report", "1"]), project.run(&["report", "1", "--output", "-"]));
    assert_eq!(plain, dash);
    assert!(!project.list(".").iter().any(|name| name == "-" || name == "no"));
}

/// The plain text of a report in any format.
fn plain_text(text: &str) -> String {
    let mut out = String::new();
    let mut within = false;
    for c in text.chars() {
        match c {
            '<' => within = true,
            '>' => within = false,
            _ if within || "\\*`\u{200b}".contains(c) => {}
            _ => out.push(c),
        }
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn markdown_and_html_hold_the_same_facts() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        let script = script.rule(ScriptRule::role("implement").write(FEATURE, "x\n"));
        let script = script.rule(ScriptRule::role("fix").append(FEATURE, "fixed\n"));
        let spec = ScriptRule::role("review").reviewer("spec").cycle(1).say(&issue("spec", 1, "critical", "no OAuth"));
        let code = ScriptRule::role("review").reviewer("code").cycle(1).say(&issue("code", 1, "critical", "it leaks"));
        approving_agent(script.rule(spec).rule(code))
    });
    project.env.write("plan.md", "# Plan\n\n### Task 1: Store\n\n- [ ] Keep what is bought\n");
    project.commit("Plan");
    project.run(&["run", "plan.md"]);
    let finding = project.run(&["show", "1", "--json"]).json()["ledger"][0]["id"].clone();
    let disputed = project.run(&["dispute", finding.as_str().unwrap(), "--reason", "there is a lock"]);
    assert_eq!(disputed.code, Some(0), "{disputed}");
    let shown = project.run(&["show", "1", "--json"]).json();
    let mut facts: Vec<String> = [
        "Store",
        "Keep what is bought",
        "What was asked",
        "no OAuth",
        "it leaks",
        "Requirement",
        "Support OAuth 2.0 login",
        "Suggestion",
        "Do it right",
        "auth.txt:1",
        "Attempts",
        "Cost and time",
        "1 file changed, 2 insertions(+)",
        "Decisions of people",
        "there is a lock",
    ]
    .map(str::to_owned)
    .into();
    facts.push(
        project.run(&["report", "run-1", "--json"]).json()["run"]["standing"]["text"].as_str().unwrap().to_owned(),
    );
    facts
        .extend(shown["attempts"].as_array().unwrap().iter().map(|attempt| attempt["id"].as_str().unwrap().to_owned()));
    for format in ["markdown", "html"] {
        let text = plain_text(&project.run(&["report", "run-1", "--format", format]).stdout);
        for fact in &facts {
            assert!(text.contains(fact.as_str()), "{fact} is missing in {format}:\n{text}");
        }
    }
}

/// A branch of a person with one commit.
fn on_a_branch(project: &TestProject) {
    project.git("checkout -q -b feature");
    project.env.write("auth.txt", "login\n");
    project.commit("Add login");
}

#[test]
fn a_review_of_the_checkout_in_every_format() {
    let project = TestProject::with_agent(PROGRAM, strict_reviewer);
    on_a_branch(&project);
    assert_eq!(project.run(&["review", "--base", "main"]).code, Some(1));
    let words = ["Review of the checkout", "missing input validation", "Not approved after 1 review"];
    assert_in_every_format(&project, &["run-1"], &words);
    let json = project.run(&["report", "run-1", "--json"]).json();
    let totals = &json["totals"];
    assert_eq!(
        (&totals["cycles"], &totals["findings"]["open"], &totals["attempts"]),
        (&1.into(), &1.into(), &1.into()),
        "{totals:#}"
    );
    assert_eq!(totals["reviewers"][0]["reviewer"], "general");
    let cost = format!("${:.2}", totals["cost_usd"].as_f64().unwrap());
    let markdown = project.run(&["report", "run-1"]).stdout;
    assert!(markdown.contains(&format!("1 review cycle, findings: 1 open. {cost}")), "{markdown}");
    let html = plain_text(&project.run(&["report", "run-1", "--format", "html"]).stdout);
    assert!(html.contains(&format!("Cost{cost}")) || html.contains(&format!("Cost {cost}")), "{html}");
    assert!(!html.contains("0 of 0"), "there are no tasks to count: {html}");
    let sarif = project.run(&["report", "run-1", "--format", "sarif"]).json();
    assert_eq!(sarif["runs"][0]["results"].as_array().map(Vec::len), Some(1), "{sarif:#}");
    let xml = project.run(&["report", "run-1", "--format", "junit"]).stdout;
    assert!(xml.contains("<failure message=\"missing input validation\""), "{xml}");
}

#[test]
fn a_review_of_the_checkout_that_approved_has_passed() {
    let project = TestProject::with_agent(PROGRAM, |script| script.rule(ScriptRule::role("review").say(APPROVED)));
    on_a_branch(&project);
    assert_eq!(project.run(&["review"]).code, Some(0));
    assert_in_every_format(&project, &["run-1"], &["Review of the checkout", "Approved after 1 review"]);
    let json = project.run(&["report", "run-1", "--json"]).json();
    assert_eq!((&json["run"]["standing"]["kind"], &json["run"]["outcome"]), (&"passed".into(), &"approved".into()));
}

#[test]
fn a_finding_without_a_file_has_a_location_too() {
    let answer = "There are no tests\n\n**Verdict: CHANGES_REQUESTED**\n";
    let project =
        TestProject::with_agent(PROGRAM, |script| developer(script).rule(ScriptRule::role("review").say(answer)));
    project.run(&["add", "Add user authentication", "-a", "--max-cycles", "1"]);
    project.run(&["work"]);
    for command in ["report", "export"] {
        let sarif = project.run(&[command, "1", "--format", "sarif"]).json();
        let result = &sarif["runs"][0]["results"][0];
        assert_eq!(result["message"]["text"], "There are no tests", "{sarif:#}");
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "no-file-was-named", "{sarif:#}");
    }
}

#[test]
fn a_question_is_in_every_format_with_the_command_that_answers_it() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        let mumbles = ScriptRule::role("review").reviewer("code").say("Looks nice.\n");
        developer(script).rule(mumbles).rule(sees("spec", &clean("spec")))
    });
    project.env.write("plan.md", "# Plan\n\n### Task 1: Login\n\nPeople log in.\n");
    project.commit("Plan");
    project.run(&["run", "plan.md"]);
    let words = ["or stop?", "signoff answer 1 CHOICE", "proceed"];
    assert_in_every_format(&project, &["1"], &[&words[..], &["Waits for an answer: "]].concat());
    assert_in_every_format(
        &project,
        &["run-1"],
        &[&words[..], &["Task 1 waits for an answer: ", "signoff run --resume 1"]].concat(),
    );
    let answered = project.run(&["answer", "1", "retry"]);
    assert_eq!(answered.code, Some(0), "{answered}");
    assert_in_every_format(&project, &["run-1"], &["and no process is running"]);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let project = approved();
    let shown = project.env.shell("signoff report 1 --output /dev/stdout | head -n 1");
    assert!(shown.stdout.starts_with("## ✓ Add user authentication"), "{shown}");
    assert_eq!(shown.stderr, "");
    let unheard = project.env.run_with_closed_stdout(&["report", "1", "--output", "/dev/stdout"], b"");
    assert_eq!((unheard.code, unheard.stderr.as_str()), (Some(0), ""), "{unheard}");
}

#[test]
fn a_branch_that_never_existed_is_not_reported_as_gone() {
    let tasks = r#"{"tasks": [{"id": "login", "title": "Log in", "description": "Write it.", "depends_on": []}]}"#;
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("enumerate").say(tasks))
            .rule(ScriptRule::role("plan").say(r#"{"groups": [["login"]]}"#))
            .rule(ScriptRule::role("implement").write("login.txt", "x\n").say("Done.\nTASK_COMPLETE\n"))
            .rule(ScriptRule::role("review").task("1").exit(1))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project.env.write("SPEC.md", "# Accounts\n\nPeople log in.\n");
    project.commit("Specify");
    let worked = project.run(&["run", "SPEC.md", "--no-ask"]);
    assert_eq!(worked.code, Some(1), "{worked}");
    let json = project.run(&["report", "run-1", "--json"]).json();
    assert_eq!(json["tasks"][0]["changes"]["files"], 1, "{json:#}");
    let changes = || project.run(&["report", "run-1", "--json"]).json()["run"]["changes"]["note"].clone();
    assert_eq!(changes(), "nothing has landed yet", "the branch is there, and empty");
    project.git("branch -D signoff/run-1");
    assert_eq!(changes(), "the branch signoff/run-1 is gone");
    project.git("update-ref -d refs/signoff/base/signoff/run-1");
    assert_eq!(changes(), "nothing has landed yet", "no branch is known");
}
