//! `signoff serve`: the pages, their actions and live updates on a real project.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::processes::wait_until;
use signoff_testkit::serve::ServeProcess;
use signoff_testkit::web_client::WebClient;

use crate::PROGRAM;
use crate::actors::{APPROVED, FEATURE, changes, developer};

const ASKS: &str = "[gate]\nmax_cycles = 1\non_exhausted = \"ask\"\n";

/// A project whose reviewer never approves.
fn refused() -> TestProject {
    let script = |script| developer(script).rule(ScriptRule::role("review").say(&changes("<b>no</b> validation")));
    let project = TestProject::with_agent(PROGRAM, script);
    project.run(&["add", "Log in <i>safely</i>", "-a", "--max-cycles", "1"]);
    project
}

/// The implementer waits for the test.
fn waits() -> ScriptRule {
    let begins = ScriptRule::role("implement").write("work.txt", "work\n").say("Begun.\n");
    begins.write("../../../../begun-{task}", "").wait_for("../../../../go-{task}")
}

fn release_agent(project: &TestProject, task: u64) {
    fs::write(project.env.root().join(format!("go-{task}")), "").expect("a file");
}

fn until_begun(project: &TestProject, task: u64) {
    wait_until("the agent is at work", || project.env.root().join(format!("begun-{task}")).exists());
}

fn status(project: &TestProject, task: u64) -> String {
    let shown = project.run(&["show", &task.to_string(), "--json"]).json();
    format!("{} {} {}", shown["task"]["status"], shown["task"]["final_verdict"], shown["task"]["outcome"])
}

#[test]
fn every_page_shows_the_work_and_escapes_agents_text() {
    let project = refused();
    project.run(&["work"]);
    let page = ServeProcess::start(&project);
    for (path, expected) in [
        ("/", "Log in &lt;i&gt;safely&lt;/i&gt;"),
        ("/?all=1", "Log in &lt;i&gt;safely&lt;/i&gt;"),
        ("/tasks/1", "&lt;b&gt;no&lt;/b&gt; validation"),
        ("/tasks/1/diff", FEATURE),
        ("/tasks/1/transcript/a1", "Done."),
        ("/tasks/1/transcript/1", "Done."),
        ("/runs/1", "Log in &lt;i&gt;safely&lt;/i&gt;"),
        ("/stats", "implement"),
        ("/add", "<form"),
        ("/tasks/1/report.html", "&lt;b&gt;no&lt;/b&gt; validation"),
        ("/runs/1/report.html", "&lt;b&gt;no&lt;/b&gt; validation"),
    ] {
        let answer = page.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert!(answer.body.contains(expected), "{path}: {}", answer.body);
        assert!(!answer.body.contains("<i>safely") && !answer.body.contains("<b>no</b>"), "{path}");
    }
    for (path, text) in [
        ("/tasks/9", "there is no task 9"),
        ("/runs/9", "there is no run 9"),
        ("/tasks/1/transcript/a9", "task 1 has no attempt a9"),
    ] {
        let answer = page.get(path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.body.contains(text), "{path}: {}", answer.body);
    }
}

#[test]
fn get_requests_change_nothing() {
    let project = refused();
    project.run(&["work"]);
    let (checkout, kept) = (project.checkout(), project.list(".signoff/worktrees"));
    let page = ServeProcess::start(&project);
    for path in ["/", "/tasks/1", "/tasks/1/diff", "/runs/1", "/stats"] {
        assert_eq!(page.get(path).status, 200, "{path}");
    }
    assert_eq!((project.checkout(), project.list(".signoff/worktrees")), (checkout, kept));
    // A missing worktree is not created again for a diff; the diff of its branch is shown.
    fs::remove_dir_all(project.env.work().join(".signoff/worktrees/task-1")).expect("a worktree");
    project.run(&["edit", "1", "--verdict", "APPROVED"]);
    assert!(page.get("/tasks/1/diff").body.contains(FEATURE));
    assert_eq!(project.list(".signoff/worktrees"), [""; 0]);
}

#[test]
fn a_diff_page_writes_nothing_and_names_omitted_files() {
    let project = refused();
    project.run(&["work"]);
    let worktree = project.env.work().join(".signoff/worktrees/task-1");
    fs::write(worktree.join("new.txt"), "not committed\n").expect("a file");
    fs::write(worktree.join("logo.png"), b"\0png").expect("a file");
    fs::File::create(worktree.join("<b>dump")).and_then(|file| file.set_len(1 << 38)).expect("a file");
    let objects = project.git("count-objects -v");
    let page = ServeProcess::start(&project);
    for path in ["/tasks/1/diff", "/tasks/1"] {
        let body = page.get(path).body;
        assert!(body.contains("not committed"), "{path}: {body}");
        assert!(body.contains("logo.png") && body.contains("a binary file"), "{path}: {body}");
        assert!(body.contains("&lt;b&gt;dump") && body.contains("too large to show (262144 MiB)"));
    }
    assert_eq!(project.git("count-objects -v"), objects);
    // The reason for a missing diff is shown in its place.
    fs::write(project.env.work().join(".git/worktrees/task-1/index"), "no index").expect("a file");
    wait_until("git's message is shown", || page.get("/tasks/1/diff").body.contains("No diff: "));
}

#[test]
fn a_deleted_or_broken_store_is_detected() {
    let project = refused();
    let page = ServeProcess::start(&project);
    let mut listening = page.listen();
    listening.next();
    let own = project.env.work().join(".signoff");
    assert!(page.get("/").body.contains("Log in"));
    fs::remove_dir_all(&own).expect("a store");
    assert!(listening.next().expect("a change")["tasks"].is_null(), "everything");
    assert!(!page.get("/").body.contains("Log in"));
    // Once the new store is detected, its events are sent as usual.
    loop {
        project.run(&["add", "Anew"]);
        let change = listening.next().expect("a change");
        if change["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty()) {
            break;
        }
    }
    for file in ["signoff.db", "signoff.db-wal", "signoff.db-shm"] {
        fs::remove_file(own.join(file)).ok();
    }
    fs::write(own.join("signoff.db"), "no store at all, whatever its name says\n".repeat(100)).expect("a file");
    while page.get("/").status != 500 || !listening.next().expect("a change")["tasks"].is_null() {}
}

#[test]
fn without_a_store_the_page_is_empty_and_the_first_task_creates_one() {
    let project = TestProject::with_agent(PROGRAM, |script| script);
    let page = ServeProcess::start(&project);
    assert_eq!(page.get("/").status, 200);
    assert_eq!(page.get("/stats").status, 200);
    assert_eq!(page.get("/tasks/1").status, 404);
    assert_eq!(project.list(".signoff"), [""; 0]);
    let mut listening = page.listen();
    listening.next();
    let added = page.submit("/tasks", "text=Greet%0D%0A%0D%0AEverybody.&auto_review=true&max_cycles=2");
    assert!(added.body.contains("Added task #1: Greet"), "{}", added.body);
    assert!(listening.next().is_some(), "the first task sends an event");
    let task = project.run(&["show", "1", "--json"]).json()["task"].clone();
    assert_eq!((&task["auto_review"], &task["max_review_cycles"]), (&true.into(), &2.into()));
    let refused = page.post("/tasks", "text=Later&depends_on=9");
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("there is no task 9 to depend on"), "{}", refused.body);
    assert_eq!(project.run(&["status", "--json"]).json()["tasks"].as_array().map(Vec::len), Some(1));
}

#[test]
fn the_form_for_a_task_has_the_configured_default_and_unticking_it_counts() {
    let project = TestProject::with_agent(PROGRAM, |script| script);
    let page = ServeProcess::start(&project);
    let is_ticked = |body: &str| body.contains("value=\"true\" checked");
    assert!(!is_ticked(&page.get("/add").body));
    project.configure("[defaults]\nauto_review = true\n");
    assert!(is_ticked(&page.get("/add").body), "{}", page.get("/add").body);
    page.submit("/tasks", "text=Greet&auto_review=true");
    page.submit("/tasks", "text=Sketch");
    let reviewed = |task: &str| project.run(&["show", task, "--json"]).json()["task"]["auto_review"].clone();
    assert_eq!((reviewed("1"), reviewed("2")), (true.into(), false.into()));
}

#[test]
fn an_answer_resumes_the_loop_of_the_running_program() {
    let script = |script: AgentScript| {
        script
            .rule(ScriptRule::role("implement").task("1").write("work.txt", "work\n"))
            .rule(waits())
            .rule(ScriptRule::role("review").task("1").cycle(1).say(&changes("lacks a check")))
            .rule(ScriptRule::role("fix").append("work.txt", "fixed\n"))
            .rule(ScriptRule::role("review").say(APPROVED))
    };
    let project = TestProject::with_agent(PROGRAM, script);
    project.configure(ASKS);
    project.run(&["add", "Part 1", "-a"]);
    project.run(&["add", "Part 2", "-a"]);
    let program = project.start(&["work", "-j", "2"]);
    let page = ServeProcess::start(&project);
    wait_until("the question is on the page", || page.get("/").body.contains("/questions/q1/answer"));
    until_begun(&project, 2);
    let answered = page.submit("/questions/q1/answer", "choice=continue&back=/tasks/1");
    assert!(answered.body.contains("q1 answered: continue"), "{}", answered.body);
    assert!(!answered.body.contains("`signoff work` continues"), "a program is at work");
    wait_until("the answer is taken in", || project.calls().with_role("fix").count() == 1);
    let again = page.post("/questions/q1/answer", "choice=continue");
    assert_eq!(again.status, 409, "{}", again.body);
    release_agent(&project, 2);
    assert_eq!(project.env.finish(program).code, Some(0));
    assert_eq!(status(&project, 1), r#""completed" "APPROVED" "approved""#);
}

#[test]
fn an_answer_is_recorded_if_no_program_runs() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        developer(script)
            .rule(ScriptRule::role("review").cycle(1).say(&changes("lacks a check")))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project.configure(ASKS);
    project.run(&["add", "Part 1", "-a"]);
    project.run(&["work"]);
    let page = ServeProcess::start(&project);
    let invalid = page.post("/questions/q1/answer", "choice=maybe");
    assert_eq!(invalid.status, 409);
    assert!(invalid.body.contains("choose one of continue, proceed, stop, restart"), "{}", invalid.body);
    let answered = page.submit("/questions/q1/answer", "choice=continue");
    assert!(answered.body.contains("q1 answered: continue"), "{}", answered.body);
    assert!(answered.body.contains("signoff work"), "{}", answered.body);
    assert_eq!(project.run(&["work"]).code, Some(0));
    assert_eq!(status(&project, 1), r#""completed" "APPROVED" "approved""#);
}

/// What a form of a page sends without script: its action, hidden fields and the pressed button.
fn sends(html: &str, action: &str, button: &str) -> String {
    let form = html.split("<form").find(|form| form.contains(&format!("action=\"{action}\""))).expect(action);
    let form = form.split("</form>").next().expect("a form");
    let value = |tag: &str| {
        let value_of = |name: &str| {
            let (_, rest) = tag.split_once(&format!("{name}=\""))?;
            Some(rest.split('"').next()?.to_owned())
        };
        Some(format!("{}={}", value_of("name")?, value_of("value")?))
    };
    let hidden = form.split("<input").skip(1).filter(|tag| tag.contains("hidden")).filter_map(value);
    let pressed = form.split("<button").skip(1).filter(|tag| tag.contains(&format!(">{button}<")));
    hidden.chain(pressed.filter_map(value)).collect::<Vec<_>>().join("&")
}

#[test]
fn a_question_is_answered_without_script() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        developer(script)
            .rule(ScriptRule::role("review").cycle(1).say(&changes("lacks a check")))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project.configure(ASKS);
    project.run(&["add", "Part 1", "-a"]);
    project.run(&["work"]);
    let page = ServeProcess::start(&project);
    for path in ["/", "/tasks/1"] {
        assert_eq!(
            sends(&page.get(path).body, "/questions/q1/answer", "Continue"),
            format!("back={path}&choice=continue")
        );
    }
    let form = sends(&page.get("/tasks/1").body, "/questions/q1/answer", "Continue");
    let answered = page.submit("/questions/q1/answer", &form);
    assert!(answered.body.contains("q1 answered: continue"), "{}", answered.body);
    assert!(!answered.body.contains("/questions/q1/answer"), "{}", answered.body);
    assert_eq!(project.run(&["work"]).code, Some(0));
    assert_eq!(status(&project, 1), r#""completed" "APPROVED" "approved""#);
}

#[test]
fn a_verdict_can_be_set_if_it_is_offered_and_a_refused_form_keeps_its_text() {
    let project = TestProject::with_agent(PROGRAM, |script| script.rule(waits()));
    project.run(&["add", "Part 1"]);
    project.run(&["add", "Part 2"]);
    let program = project.start(&["work"]);
    until_begun(&project, 1);
    let page = ServeProcess::start(&project);
    assert!(!page.get("/tasks/1").body.contains("Set the verdict"), "{}", page.get("/tasks/1").body);
    // The page was opened before.
    let refused = page.submit("/tasks/1/edit", "verdict=APPROVED&reason=seen&back=/tasks/1").body;
    assert!(
        refused.contains("role=\"alert\"") && refused.contains("an agent is changing the files of task 1"),
        "{refused}"
    );
    assert!(refused.contains("You wrote: <bdi>seen</bdi>"), "{refused}");
    release_agent(&project, 1);
    release_agent(&project, 2);
    assert_eq!(project.env.finish(program).code, Some(0));
    let odd = page.submit("/tasks/1/edit", "verdict=FINE&reason=seen+it&back=/tasks/1").body;
    assert!(odd.contains("role=\"alert\"") && odd.contains("value=\"seen it\""), "{odd}");
}

#[test]
fn no_verdict_can_be_set_for_a_task_of_a_killed_program() {
    let project = TestProject::with_agent(PROGRAM, |script| script.rule(waits()));
    project.run(&["add", "Part 1"]);
    let mut program = project.start(&["work"]);
    until_begun(&project, 1);
    program.kill().expect("a program");
    program.wait().expect("its end");
    let page = ServeProcess::start(&project);
    let shown = page.get("/tasks/1").body;
    assert!(shown.contains("it was interrupted") && !shown.contains("Set the verdict"), "{shown}");
    let refused = page.submit("/tasks/1/edit", "verdict=APPROVED&back=/tasks/1").body;
    assert!(refused.contains("an agent is changing the files of task 1"), "{refused}");
    release_agent(&project, 1);
}

#[test]
fn findings_are_disputed_and_tasks_retried_and_cancelled() {
    let project = refused();
    project.run(&["add", "Later"]);
    project.run(&["work", "1"]);
    let page = ServeProcess::start_with(&project, &[("SIGNOFF_USER", "ann")]);
    let shown = project.run(&["show", "1", "--json"]).json();
    let finding = shown["ledger"][0]["id"].as_str().expect("a finding").to_owned();
    let disputed = page.submit(&format!("/findings/{finding}/dispute"), "reason=it+is+checked&task=1&back=/tasks/1");
    assert!(disputed.body.contains(&format!("Finding {finding} is refuted by ann")), "{}", disputed.body);
    let unknown = page.post("/findings/f-none/dispute", "reason=so");
    assert_eq!(unknown.status, 409);
    assert!(unknown.body.contains("there is no finding f-none"), "{}", unknown.body);

    let retried = page.submit("/tasks/1/retry", "back=/tasks/1");
    assert!(retried.body.contains("Task #1 continues"), "{}", retried.body);
    assert!(retried.body.contains("signoff work 1"), "{}", retried.body);
    let again = page.post("/tasks/1/retry", "");
    assert_eq!(again.status, 409, "{}", again.body);
    project.run(&["work", "1"]);
    assert_eq!(status(&project, 1), r#""completed" "APPROVED" "accepted""#);

    let cancelled = page.submit("/tasks/2/cancel", "back=/");
    assert!(cancelled.body.contains("Task #2 cancelled"), "{}", cancelled.body);
    assert_eq!(page.post("/tasks/2/cancel", "").status, 409);
    assert_eq!(page.post("/tasks/9/cancel", "").status, 404);
    assert!(status(&project, 2).starts_with(r#""cancelled""#), "{}", status(&project, 2));
}

#[test]
fn a_verdict_is_set_by_a_person() {
    let project = refused();
    project.run(&["work"]);
    let page = ServeProcess::start_with(&project, &[("SIGNOFF_USER", "ann")]);
    let odd = page.post("/tasks/1/edit", "verdict=FINE");
    assert_eq!(odd.status, 409, "{}", odd.body);
    let edited = page.submit("/tasks/1/edit", "verdict=approved&reason=seen&back=/tasks/1");
    assert!(edited.body.contains("Task #1 is APPROVED by ann"), "{}", edited.body);
    assert!(status(&project, 1).starts_with(r#""completed" "APPROVED""#), "{}", status(&project, 1));
}

#[test]
fn events_of_other_programs_and_agents_output_are_sent_at_once() {
    let project = TestProject::with_agent(PROGRAM, |script| script.rule(waits()));
    project.run(&["add", "First"]);
    let page = ServeProcess::start(&project);
    let mut listening = page.listen();
    listening.next();
    project.run(&["add", "Second"]);
    listening.wait_for_task(2);
    let program = project.start(&["work", "1"]);
    listening.wait_for_task(1);
    until_begun(&project, 1);
    let mut listener = page.listen_after(Some(0)).expect("a place");
    // If everything may have changed, no task is named.
    let of_first = |list: &serde_json::Value| list.as_array().is_none_or(|all| all.contains(&1.into()));
    while !of_first(&listener.next().expect("a change")["said"]) {}
    wait_until("what it says is on the page", || page.get("/tasks/1/transcript/a1").body.contains("Begun."));
    // A closed connection has no effect.
    drop(listener);
    release_agent(&project, 1);
    assert_eq!(project.env.finish(program).code, Some(0));
    while !page.get("/tasks/1").body.contains("work.txt") {
        listening.next();
    }
}

#[test]
fn two_servers_of_one_repository_accept_only_their_own_tokens() {
    let project = refused();
    let (first, second) = (ServeProcess::start(&project), ServeProcess::start(&project));
    assert_ne!((first.port, &first.token), (second.port, &second.token));
    let foreign_cookie =
        second.get_request("/").with("Cookie", Some(&format!("signoff-{}={}", second.port, first.token)));
    assert_eq!(second.request(&foreign_cookie).status, 401);
    let mut listening = second.listen();
    listening.next();
    assert_eq!(first.post("/tasks", "text=Both").status, 303);
    listening.wait_for_task(2);
    assert!(second.get("/tasks/2").body.contains("Both"));
}

#[test]
fn it_ends_at_once_even_with_open_connections() {
    for signal in [1, 2, 15] {
        let project = refused();
        let page = ServeProcess::start(&project);
        let mut listening = page.listen();
        listening.next();
        let output = page.end_with_signal(&project, signal);
        assert_eq!((output.code, output.signal), (Some(0), None), "{output}");
        assert_eq!(listening.next(), None);
    }
}

#[test]
fn the_token_is_printed_only_in_the_address() {
    let project = refused();
    let page = ServeProcess::start(&project);
    assert_eq!(page.get("/").status, 200);
    assert_eq!(page.get("/?token=wrong").status, 401);
    let token = page.token.clone();
    let output = page.end_with_signal(&project, 15);
    assert!(!output.stderr.contains(&token), "{output}");
    insta::assert_snapshot!(output.stderr, @"Open it in a browser. Anyone with this address can decide everything. Ctrl-C stops it");
}

#[test]
fn a_port_in_use_is_an_error_with_a_hint() {
    let project = refused();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let output = project.run(&["serve", "--port", &port]);
    insta::assert_snapshot!(output.to_string().replace(&port, "PORT"), @"
    exit 1
    --- stderr
    error: port PORT is in use by another program
    hint: `signoff serve --port 0` selects a free one
    ");
}

#[test]
fn remote_access_needs_an_explicit_flag() {
    let project = refused();
    insta::assert_snapshot!(project.run(&["serve", "--host", "0.0.0.0", "--port", "0"]), @"
    exit 2
    --- stderr
    error: other machines could reach 0.0.0.0
    hint: leave --host out; or add --allow-remote if you want that: anyone who sees the address on the network can decide everything. `ssh -L` brings the page to another machine safely
    ");
    let open = ["serve", "--host", "0.0.0.0", "--allow-remote", "--port", "0", "--quiet"];
    let mut child = project.start(&open);
    let mut url = String::new();
    BufReader::new(child.stdout.as_mut().expect("a piped stdout")).read_line(&mut url).expect("a line");
    assert_eq!(WebClient::from_url(&url).get("/").status, 200);
    child.kill().expect("a process that is there");
    let output = project.env.finish(child);
    assert!(output.stderr.starts_with("warning: other machines can reach this page"), "{output}");
}

#[test]
fn outside_of_a_repository_it_is_an_error() {
    let env = signoff_testkit::TestEnv::new(PROGRAM);
    insta::assert_snapshot!(env.run(&["serve", "--port", "0"]), @"
    exit 2
    --- stderr
    error: this is not a git repository
      --> [ROOT]/work
    hint: cd into a repository, or run `git init`
    ");
}
