//! A person at a terminal is asked at once, and answers with keys, while other loops go on.

use std::fs;

use signoff_testkit::Project;
use signoff_testkit::script::{Rule, Script};
use signoff_testkit::terminal::{Screen, Terminal, key};

use crate::PROGRAM;
use crate::actors::{APPROVED, changes};

const HUP: i32 = 1;
const TERM: i32 = 15;

const KEYS: &str = "Esc leaves it for later";
const ASKS: &str = "[gate]\nmax_cycles = 1\non_exhausted = \"ask\"\n";

/// The first review finds something, the second nothing; one review is all there is.
fn strict(script: Script) -> Script {
    script
        .rule(Rule::role("implement").write("auth.txt", "login\n").say("Done.\n"))
        .rule(Rule::role("fix").append("auth.txt", "fixed\n").say("Fixed.\n"))
        .rule(Rule::role("review").cycle(1).say(&changes("missing input validation")))
        .rule(Rule::role("review").say(APPROVED))
}

/// One task that comes to a question.
fn project() -> Project {
    let project = Project::with_agent(PROGRAM, strict);
    project.configure(ASKS);
    project.run(&["add", "Log in", "-a"]);
    project
}

/// The same beside another task, whose implementer waits for a file.
fn beside_another() -> (Project, impl Fn(&str)) {
    let project = Project::new(PROGRAM);
    let gate = project.state().with_file_name("go-on");
    let waits = Rule::role("implement").task("2").write("b.txt", "b\n").say("Reading it.\n");
    project.set_agent(|script| {
        strict(
            script
                .rule(waits.wait_for(&gate.display().to_string()))
                .rule(Rule::role("review").task("2").say(APPROVED)),
        )
    });
    project.configure(&format!("jobs = 2\n{ASKS}"));
    project.run(&["add", "Log in", "-a"]);
    project.run(&["add", "Log out", "-a"]);
    (project, move |text: &str| fs::write(&gate, text).expect("a file"))
}

fn task(project: &Project, id: &str) -> String {
    let shown = project.run(&["show", id, "--json"]).json();
    let task = &shown["task"];
    format!("{} {}", task["status"], task["final_verdict"])
}

/// The screen from a line on, without how long things take. Which of two tasks begins first is anyone's guess.
fn from(start: &str, screen: &Screen) -> String {
    let is_clock =
        |word: &str| word.len() == 5 && word.chars().enumerate().all(|(at, c)| (at == 2) == (c == ':'));
    let told = |line: &str| {
        let words: Vec<_> = line.split(' ').map(|word| if is_clock(word) { "MM:SS" } else { word }).collect();
        words.join(" ")
    };
    screen.lines().skip_while(|line| !line.starts_with(start)).map(told).collect::<Vec<_>>().join("\n")
}

/// The question and what belongs to it.
fn dialogue(screen: &Screen) -> String {
    from("? ", screen)
}

/// Comes to the question, which is shown.
fn asked(project: &Project) -> Terminal {
    let terminal = project.env.terminal(&["work"]);
    terminal.wait_for(KEYS);
    terminal
}

#[test]
fn one_task_asks_while_the_other_works() {
    let (project, let_go) = beside_another();
    let terminal = project.env.terminal(&["work", "-j", "2"]);
    let screen = terminal.wait_until("both", |screen| {
        screen.contains(KEYS) && screen.contains("1 at work, 1 waiting") && screen.contains("Reading it.")
    });
    insta::assert_snapshot!(from("run 1  ", &screen), @"
    run 1  1 at work, 1 waiting for you  MM:SS
    WORK     #2 Log out  implement  MM:SS  Reading it.
    ? Task #1 Log in  review 1/1
      1 review did not lead to approval. One more fix and review, proceed with the
      findings open, or stop?
        - critical auth.txt:1 missing input validation
        1 continue  one more fix and review
        2 proceed   go on; the findings stay open
        3 stop      end it here: MAX_CYCLES_REACHED
        4 restart   start over at implement (pass 2/10)
      ↑/↓ or 1–4 choose, Enter answers, Esc leaves it for later
    ");
    terminal.send(key::DOWN);
    insta::assert_snapshot!(dialogue(&terminal.wait_for("› 1 continue")), @"
    ? Task #1 Log in  review 1/1
      1 review did not lead to approval. One more fix and review, proceed with the
      findings open, or stop?
        - critical auth.txt:1 missing input validation
      › 1 continue  one more fix and review
        2 proceed   go on; the findings stay open
        3 stop      end it here: MAX_CYCLES_REACHED
        4 restart   start over at implement (pass 2/10)
      ↑/↓ or 1–4 choose, Enter answers, Esc leaves it for later
    ");
    terminal.send(key::ENTER);
    terminal.wait_for("Task #1 completed (APPROVED");
    assert_eq!(task(&project, "2"), "\"in_progress\" null");
    let_go("");
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
    ✓ Run 1 is through, all approved: 2 tasks, 2 completed
    ");
    assert_eq!(task(&project, "1"), "\"completed\" \"APPROVED\"");
}

#[test]
fn starting_over_is_offered_where_there_is_an_earlier_phase() {
    let project = project();
    let terminal = asked(&project);
    terminal.send("4");
    insta::assert_snapshot!(dialogue(&terminal.wait_for("› 4 restart")), @"
    ? Task #1 Log in  review 1/1
      1 review did not lead to approval. One more fix and review, proceed with the
      findings open, or stop?
        - critical auth.txt:1 missing input validation
        1 continue  one more fix and review
        2 proceed   go on; the findings stay open
        3 stop      end it here: MAX_CYCLES_REACHED
      › 4 restart   start over at implement (pass 2/10)
      ↑/↓ or 1–4 choose, Enter answers, Esc leaves it for later
    ");
    terminal.send(key::ENTER);
    terminal.wait_for("Starting over at implement (pass 2/10)");
    terminal.wait_for("? Task #1");
    terminal.send("3");
    terminal.wait_for("› 3 stop");
    terminal.send(key::ENTER);
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(0), true), "{end}");
    assert_eq!(task(&project, "1"), "\"completed\" \"MAX_CYCLES_REACHED\"");
    assert_eq!(project.calls().all().iter().filter(|call| call.start.role == "implement").count(), 2);
}

#[test]
fn what_is_answered_elsewhere_is_not_asked_any_more() {
    let (project, let_go) = beside_another();
    let terminal = project.env.terminal(&["work", "-j", "2"]);
    terminal.wait_for(KEYS);
    terminal.send("3");
    terminal.wait_for("› 3 stop");
    assert_eq!(project.run(&["answer", "1", "continue"]).code, Some(0));
    let screen = terminal.wait_until("no question", |screen| !screen.contains(KEYS));
    assert!(!screen.contains("› 3 stop"), "{screen}");
    terminal.wait_for("Task #1 completed (APPROVED");
    assert!(terminal.is_sane(), "nobody is asked, so the keys are nobody's");
    let_go("");
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(0), true), "{end}");
    assert_eq!(task(&project, "1"), "\"completed\" \"APPROVED\"");
}

#[test]
fn what_is_left_for_later_stays_open() {
    let project = project();
    let terminal = asked(&project);
    assert!(!terminal.is_sane(), "keys come one by one while somebody is asked");
    terminal.send(key::ESC);
    let end = terminal.finish();
    assert!(end.sane);
    insta::assert_snapshot!(end, @"
    exit 0
    Running task #1: Log in
      [1/1] Implementing...
      [1/1] Implementation complete
      [1/1] Running review...
      [1/1] Review: CHANGES_REQUESTED - missing input validation
      [1/1] Question: 1 review did not lead to approval. One more fix and review, pr
    oceed with the findings open, or stop?
        signoff answer 1 CHOICE    (continue, proceed, stop, restart)
    Left for later: signoff answer 1 continue|proceed|stop|restart
    ");
    assert_eq!(task(&project, "1"), "\"waiting\" null");
    assert_eq!(project.run(&["answer", "1", "continue"]).code, Some(0));
    let terminal = project.env.terminal(&["work"]);
    let end = terminal.finish();
    assert_eq!((end.code, task(&project, "1")), (Some(0), "\"completed\" \"APPROVED\"".to_owned()), "{end}");
}

#[test]
fn one_question_follows_the_other() {
    let project = Project::with_agent(PROGRAM, strict);
    project.configure(&format!("jobs = 2\n{ASKS}"));
    project.run(&["add", "Log in", "-a"]);
    project.run(&["add", "Log out", "-a"]);
    let terminal = project.env.terminal(&["work"]);
    let screen = terminal.wait_for("(1 more question)");
    let (first, second) = if dialogue(&screen).starts_with("? Task #1") { ("1", "2") } else { ("2", "1") };
    terminal.send(key::ESC);
    terminal.wait_until("the other", |screen| dialogue(screen).starts_with(&format!("? Task #{second}")));
    terminal.send(key::DOWN);
    terminal.wait_for("› 1 continue");
    terminal.send(key::ENTER);
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(0), true), "{end}");
    assert_eq!(task(&project, first), "\"waiting\" null");
    assert_eq!(task(&project, second), "\"completed\" \"APPROVED\"");
}

#[test]
fn ctrl_c_ends_it_and_the_question_is_asked_again_next_time() {
    let project = project();
    let terminal = asked(&project);
    terminal.send(key::CTRL_C);
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(130), true), "{end}");
    assert!(!end.screen.contains(KEYS), "{end}");
    assert_eq!(task(&project, "1"), "\"waiting\" null");
    let terminal = asked(&project);
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
fn whoever_ends_it_the_terminal_is_given_back() {
    for signal in [HUP, TERM] {
        let project = project();
        let terminal = asked(&project);
        terminal.signal(signal);
        let end = terminal.finish();
        assert_eq!((end.code, end.sane), (Some(130), true), "{signal}: {end}");
        assert_eq!(task(&project, "1"), "\"waiting\" null");
    }
}

#[test]
fn nobody_is_asked_who_does_not_want_to_be() {
    for (script, code) in [
        ("signoff work --no-ask", 1),
        ("signoff work --plain", 0),
        ("signoff work --quiet", 0),
        ("signoff work --json-events", 0),
        ("signoff work < /dev/null", 0),
        ("signoff work 2> /dev/null", 0),
        ("signoff work | cat", 0),
    ] {
        let project = project();
        let end = project.env.shell_on_terminal(script).finish();
        assert_eq!((end.code, end.sane), (Some(code), true), "{script}: {end}");
        let status = if code == 1 { "\"failed\" \"CHANGES_REQUESTED\"" } else { "\"waiting\" null" };
        assert_eq!(task(&project, "1"), status, "{script}: {end}");
    }
}

/// It would be stopped if it touched the terminal.
#[test]
fn a_job_in_the_background_asks_nobody() {
    let project = project();
    let script = "set -m; signoff work & wait $!; echo \"it ended with $?\"";
    let end = project.env.shell_on_terminal(script).finish();
    assert!(end.screen.contains("it ended with 0"), "{end}");
    assert_eq!((end.sane, task(&project, "1")), (true, "\"waiting\" null".to_owned()), "{end}");
}

#[test]
fn a_job_that_was_stopped_asks_again_in_the_foreground() {
    let project = project();
    let script = "set -m; signoff work; echo stopped; read line; fg > /dev/null; echo \"it ended with $?\"";
    let terminal = project.env.shell_on_terminal(script);
    terminal.wait_for(KEYS);
    terminal.send(key::CTRL_Z);
    terminal.wait_for("stopped");
    terminal.send("\n");
    terminal.send("1");
    terminal.wait_for("› 1 continue");
    terminal.send(key::ENTER);
    let end = terminal.finish();
    assert!(end.screen.contains("it ended with 0"), "{end}");
    assert_eq!(task(&project, "1"), "\"completed\" \"APPROVED\"");
}

/// What was typed for somebody else is no answer.
#[test]
fn keys_pressed_before_it_asks_answer_nothing() {
    let project = Project::new(PROGRAM);
    let gate = project.state().with_file_name("go-on");
    let waits = Rule::role("implement").write("auth.txt", "login\n").say("Reading it.\n");
    project.set_agent(|script| strict(script.rule(waits.wait_for(&gate.display().to_string()))));
    project.configure(ASKS);
    project.run(&["add", "Log in", "-a"]);
    let terminal = project.env.terminal(&["work"]);
    terminal.wait_for("Reading it.");
    terminal.send(&format!("1{0}{0}", key::ENTER));
    fs::write(&gate, "").expect("a file");
    let screen = terminal.wait_for(KEYS);
    assert!(!screen.contains("›"), "{screen}");
    terminal.send(key::ESC);
    assert_eq!(terminal.finish().code, Some(0));
    assert_eq!(task(&project, "1"), "\"waiting\" null");
}

#[test]
fn a_small_terminal_is_enough() {
    let (project, let_go) = beside_another();
    let terminal = project.env.terminal_of((40, 10), &["work", "-j", "2"], &[("NO_COLOR", "1")]);
    let screen = terminal
        .wait_until("both", |screen| screen.contains("Esc: later") && screen.contains("… and 2 more"));
    insta::assert_snapshot!(from("…", &screen), @"
    … and 2 more
    ? Task #1 Log in  review 1/1
      1 review did not lead to approval. …
        1 continue  one more fix and review
        2 proceed   go on; the findings st…
        3 stop      end it here: MAX_CYCLE…
        4 restart   start over at implemen…
      ↑/↓ 1–4, Enter; Esc: later
    ");
    terminal.resize((80, 24));
    terminal.wait_for(KEYS);
    terminal.send(key::ESC);
    let_go("");
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(0), true), "{end}");
}
