//! Questions on a terminal: they appear at once and are answered with keys while other loops continue.

use std::fs;

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::terminal::{TerminalScreen, TerminalSize, TestTerminal, key};

use crate::PROGRAM;
use crate::actors::{APPROVED, changes};

const HUP: i32 = 1;
const TERM: i32 = 15;

const KEYS: &str = "Esc defers it";
const ASKS: &str = "[gate]\nmax_cycles = 1\non_exhausted = \"ask\"\n";

/// The first review finds something, the second does not; only one review is allowed.
fn strict(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("implement").write("auth.txt", "login\n").say("Done.\n"))
        .rule(ScriptRule::role("fix").append("auth.txt", "fixed\n").say("Fixed.\n"))
        .rule(ScriptRule::role("review").cycle(1).say(&changes("missing input validation")))
        .rule(ScriptRule::role("review").say(APPROVED))
}

/// A project with one task that leads to a question.
fn project() -> TestProject {
    let project = TestProject::with_agent(PROGRAM, strict);
    project.configure(ASKS);
    project.run(&["add", "Log in", "-a"]);
    project
}

/// The same with a second task, whose implementer waits for a file.
fn beside_another() -> (TestProject, impl Fn(&str)) {
    let project = TestProject::new(PROGRAM);
    let gate = project.state().with_file_name("go-on");
    let waits = ScriptRule::role("implement").task("2").write("b.txt", "b\n").say("Reading it.\n");
    project.set_agent(|script| {
        strict(
            script
                .rule(waits.wait_for(&gate.display().to_string()))
                .rule(ScriptRule::role("review").task("2").say(APPROVED)),
        )
    });
    project.configure(&format!("jobs = 2\n{ASKS}"));
    project.run(&["add", "Log in", "-a"]);
    project.run(&["add", "Log out", "-a"]);
    (project, move |text: &str| fs::write(&gate, text).expect("a file"))
}

fn task(project: &TestProject, id: &str) -> String {
    let shown = project.run(&["show", id, "--json"]).json();
    let task = &shown["task"];
    format!("{} {}", task["status"], task["final_verdict"])
}

/// The output from this line on: the order in which the two tasks start varies.
fn from(start: &str, screen: &TerminalScreen) -> String {
    screen.lines().skip_while(|line| !line.starts_with(start)).collect::<Vec<_>>().join("\n")
}

/// The lines of the question without the frame around them.
fn dialogue(screen: &TerminalScreen) -> String {
    let inside = |line: &str| Some(line.split_once('│')?.1.rsplit_once('│')?.0.trim_end().to_owned());
    let lines = screen.lines().filter_map(inside).skip_while(|line| !line.trim_start().starts_with("? "));
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether the list shows a task as done.
fn is_done(screen: &TerminalScreen, title: &str) -> bool {
    !screen.contains(KEYS) && screen.lines().any(|line| line.contains("DONE") && line.contains(title))
}

/// Waits until the question is on the screen.
fn open_question(project: &TestProject) -> TestTerminal {
    let terminal = project.env.terminal(&["work"]);
    terminal.wait_for(KEYS);
    terminal
}

#[test]
fn one_task_asks_while_the_other_works() {
    let (project, release_agent) = beside_another();
    let terminal = project.env.terminal(&["work", "-j", "2"]);
    let screen = terminal.wait_until("both", |screen| screen.contains(KEYS) && screen.contains("Reading it."));
    insta::assert_snapshot!(dialogue(&screen), @"
    ? Task #1 Log in  review 1/1
      1 review did not lead to approval. One more fix and review, proceed with
      the findings open, or stop?
        - critical auth.txt:1 missing input validation
        1 continue  one more fix and review
        2 proceed   continue; the findings stay open
        3 stop      end it here: MAX_CYCLES_REACHED
        4 restart   start over at implement (pass 2/10)
      ↑/↓ or 1–4 choose, Enter answers, Esc defers it
    ");
    terminal.send(key::DOWN);
    terminal.wait_for("› 1 continue");
    terminal.send(key::ENTER);
    terminal.wait_until("the first is through", |screen| is_done(screen, "Log in"));
    assert_eq!(task(&project, "2"), "\"in_progress\" null");
    release_agent("");
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(0), true), "{end}");
    insta::assert_snapshot!(from("  #1 [1/1] a person", &end.screen), @"
      #1 [1/1] a person answers: continue
      #1 [2/2] Improving...
      #1 [2/2] Running review...
      #1 [2/2] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
      #2 [1/1] Implementation complete
      #2 [1/1] Running review...
      #2 [1/1] Review: APPROVED
    ✓ Task #2 completed (APPROVED after 1 cycle)
    ✓ Run 1 completed, all approved: 2 tasks, 2 completed
    ");
    assert_eq!(task(&project, "1"), "\"completed\" \"APPROVED\"");
}

#[test]
fn starting_over_is_offered_if_there_is_an_earlier_phase() {
    let project = project();
    let terminal = open_question(&project);
    terminal.send("4");
    terminal.wait_for("› 4 restart   start over at implement (pass 2/10)");
    terminal.send(key::ENTER);
    terminal.wait_until("it asks again", |screen| screen.contains(KEYS) && !screen.contains("›"));
    terminal.send("3");
    terminal.wait_for("› 3 stop");
    terminal.send(key::ENTER);
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(3), true), "{end}");
    assert_eq!(task(&project, "1"), "\"completed\" \"MAX_CYCLES_REACHED\"");
    assert_eq!(project.calls().all().iter().filter(|call| call.start.role == "implement").count(), 2);
}

#[test]
fn a_question_answered_elsewhere_disappears() {
    let (project, release_agent) = beside_another();
    let terminal = project.env.terminal(&["work", "-j", "2"]);
    terminal.wait_for(KEYS);
    terminal.send("3");
    terminal.wait_for("› 3 stop");
    assert_eq!(project.run(&["answer", "1", "continue"]).code, Some(0));
    let screen = terminal.wait_until("no question", |screen| is_done(screen, "Log in"));
    assert!(!screen.contains("› 3 stop"), "{screen}");
    release_agent("");
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(0), true), "{end}");
    assert_eq!(task(&project, "1"), "\"completed\" \"APPROVED\"");
}

#[test]
fn a_question_left_for_later_stays_open() {
    let project = project();
    let terminal = open_question(&project);
    assert!(!terminal.is_sane(), "keys come one by one while the screen is shown");
    terminal.send(key::ESC);
    let end = terminal.finish();
    assert!(end.sane);
    insta::assert_snapshot!(end, @"
    exit 3
    Running task #1: Log in
      [1/1] Implementing...
      [1/1] Implementation complete
      [1/1] Running review...
      [1/1] Review: CHANGES_REQUESTED - missing input validation
      [1/1] Question: 1 review did not lead to approval. One more fix and review, pr
    oceed with the findings open, or stop?
        signoff answer 1 CHOICE (continue, proceed, stop, restart)
    Question postponed: signoff answer 1 CHOICE (continue, proceed, stop, restart)
    ");
    assert_eq!(task(&project, "1"), "\"waiting\" null");
    assert_eq!(project.run(&["answer", "1", "continue"]).code, Some(0));
    let terminal = project.env.terminal(&["work"]);
    let end = terminal.finish();
    assert_eq!((end.code, task(&project, "1")), (Some(0), "\"completed\" \"APPROVED\"".to_owned()), "{end}");
}

#[test]
fn several_questions_are_asked_one_after_the_other() {
    let project = TestProject::with_agent(PROGRAM, strict);
    project.configure(&format!("jobs = 2\n{ASKS}"));
    project.run(&["add", "Log in", "-a"]);
    project.run(&["add", "Log out", "-a"]);
    let terminal = project.env.terminal(&["work"]);
    let screen = terminal.wait_for("(1 more question)");
    let (first, second) = if screen.contains("? Task #1") { ("1", "2") } else { ("2", "1") };
    terminal.send(key::ESC);
    terminal.wait_for(&format!("? Task #{second}"));
    terminal.send(key::DOWN);
    terminal.wait_for("› 1 continue");
    terminal.send(key::ENTER);
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(3), true), "{end}");
    assert_eq!(task(&project, first), "\"waiting\" null");
    assert_eq!(task(&project, second), "\"completed\" \"APPROVED\"");
}

#[test]
fn ctrl_c_ends_it_and_the_question_is_asked_again_next_time() {
    let project = project();
    let terminal = open_question(&project);
    terminal.send(key::CTRL_C);
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(130), true), "{end}");
    assert!(!end.screen.contains(KEYS), "{end}");
    assert_eq!(task(&project, "1"), "\"waiting\" null");
    let terminal = open_question(&project);
    terminal.send(&format!("1{}", key::ENTER));
    let end = terminal.finish();
    insta::assert_snapshot!(end, @"
    exit 0
    Resuming task #1: Log in
      [1/1] a person answers: continue
      [2/2] Improving...
      [2/2] Running review...
      [2/2] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    assert!(end.sane);
}

#[test]
fn a_signal_restores_the_terminal() {
    for signal in [HUP, TERM] {
        let project = project();
        let terminal = open_question(&project);
        terminal.signal(signal);
        let end = terminal.finish();
        assert_eq!((end.code, end.sane), (Some(130), true), "{signal}: {end}");
        assert_eq!(task(&project, "1"), "\"waiting\" null");
    }
}

#[test]
fn no_question_is_asked_without_an_interactive_terminal() {
    for (script, code) in [
        ("signoff work --no-ask", 1),
        ("signoff work --plain", 3),
        ("signoff work --quiet", 3),
        ("signoff work --json-events", 3),
        ("signoff work < /dev/null", 3),
        ("signoff work 2> /dev/null", 3),
        ("signoff work | cat", 0),
    ] {
        let project = project();
        let end = project.env.shell_on_terminal(script).finish();
        assert_eq!((end.code, end.sane), (Some(code), true), "{script}: {end}");
        let status = if code == 1 { "\"failed\" \"CHANGES_REQUESTED\"" } else { "\"waiting\" null" };
        assert_eq!(task(&project, "1"), status, "{script}: {end}");
    }
}

/// The system would stop the job if it touched the terminal.
#[test]
fn a_background_job_does_not_ask() {
    let project = project();
    let script = "set -m; signoff work & wait $!; echo \"it ended with $?\"";
    let end = project.env.shell_on_terminal(script).finish();
    assert!(end.screen.contains("it ended with 3"), "{end}");
    assert_eq!((end.sane, task(&project, "1")), (true, "\"waiting\" null".to_owned()), "{end}");
}

#[test]
fn a_stopped_job_asks_again_in_the_foreground() {
    let project = project();
    let script = "set -m; signoff work; echo stopped; read line; fg > /dev/null; echo \"it ended with $?\"";
    let terminal = project.env.shell_on_terminal(script);
    terminal.wait_for(KEYS);
    terminal.send(key::CTRL_Z);
    let screen = terminal.wait_for("stopped");
    assert!(!screen.contains(KEYS) && terminal.is_sane(), "the terminal was not given back:\n{screen}");
    terminal.send("\n");
    terminal.wait_for(KEYS);
    terminal.send("1");
    terminal.wait_for("› 1 continue");
    terminal.send(key::ENTER);
    let end = terminal.finish();
    assert!(end.screen.contains("it ended with 0"), "{end}");
    assert_eq!(task(&project, "1"), "\"completed\" \"APPROVED\"");
}

/// Keys typed before the question appears do not answer it.
#[test]
fn keys_pressed_before_the_question_are_ignored() {
    let project = TestProject::new(PROGRAM);
    let gate = project.state().with_file_name("go-on");
    let waits = ScriptRule::role("implement").write("auth.txt", "login\n").say("Reading it.\n");
    project.set_agent(|script| strict(script.rule(waits.wait_for(&gate.display().to_string()))));
    project.configure(ASKS);
    project.run(&["add", "Log in", "-a"]);
    let terminal = project.env.terminal(&["work"]);
    terminal.wait_for("Reading it.");
    terminal.send(&format!("1{0}{0}", key::ENTER));
    // The keys opened the task; the question appears only after the return to the list.
    terminal.wait_for("Transcript");
    fs::write(&gate, "").expect("a file");
    terminal.wait_for("ASK");
    terminal.send(key::ESC);
    let screen = terminal.wait_for(KEYS);
    assert!(!screen.contains("› 1"), "{screen}");
    // A key that follows immediately would still go to the list, so wait for two ticks of the clock.
    let ticked = terminal.wait_until("a second", |now| now.text() != screen.text());
    terminal.wait_until("another one", |now| now.text() != ticked.text());
    terminal.send(key::ESC);
    assert_eq!(terminal.finish().code, Some(3));
    assert_eq!(task(&project, "1"), "\"waiting\" null");
}

#[test]
fn a_small_terminal_is_sufficient() {
    let (project, release_agent) = beside_another();
    let terminal = project.env.terminal_with(TerminalSize::new(40, 10), &["work", "-j", "2"], &[("NO_COLOR", "1")]);
    let screen = terminal.wait_for("Esc: later");
    insta::assert_snapshot!(dialogue(&screen), @"
    ? Task #1 Log in  review 1/1
      1 review did not lead to approval…
        1 continue  one more fix and re…
        2 proceed   continue; the findi…
        3 stop      end it here: MAX_CY…
        4 restart   start over at imple…
      ↑/↓ 1–4, Enter; Esc: later
    ");
    terminal.resize(TerminalSize::DEFAULT);
    terminal.wait_for(KEYS);
    terminal.send(key::ESC);
    release_agent("");
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(3), true), "{end}");
}
