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

/// The screen without how long things take.
fn shown(screen: &Screen) -> String {
    let is_clock =
        |word: &str| word.len() == 5 && word.chars().enumerate().all(|(at, c)| (at == 2) == (c == ':'));
    let told = |line: &str| {
        let words: Vec<_> = line.split(' ').map(|word| if is_clock(word) { "MM:SS" } else { word }).collect();
        words.join(" ")
    };
    screen.lines().map(told).collect::<Vec<_>>().join("\n")
}

/// Waits for the dialogue with the list as it is when nothing else changes any more.
fn asked(terminal: &Terminal) -> Screen {
    terminal.wait_for(KEYS)
}

#[test]
fn one_task_asks_while_the_other_works() {
    let (project, let_go) = beside_another();
    let terminal = project.env.terminal(&["work", "-j", "2"]);
    let screen =
        terminal.wait_until("both", |screen| screen.contains(KEYS) && screen.contains("Reading it."));
    insta::assert_snapshot!(shown(&screen), @"
    Running task #1: Log in
      #1 [1/1] Implementing...
    Running task #2: Log out
      #2 [1/1] Implementing...
      #1 [1/1] Implementation complete
      #1 [1/1] Running review...
      #1 [1/1] Review: CHANGES_REQUESTED - missing input validation
      #1 [1/1] Question: 1 review did not lead to approval. One more fix and review, proceed with the findings open, or stop?
        signoff answer 1 CHOICE    (continue, proceed, stop, restart)
    run 1  1 at work, 1 waiting for you  MM:SS                                      WORK     #2 Log out  implement  MM:SS  Reading it.                              ? Task #1 Log in  review 1/1                                                      1 review did not lead to approval. One more fix and review, proceed with the    findings open, or stop?                                                           - critical auth.txt:1 missing input validation                                  1 continue  one more fix and review                                             2 proceed   go on; the findings stay open                                       3 stop      end it here: MAX_CYCLES_REACHED                                     4 restart   start over at implement (pass 2/10)                               ↑/↓ or 1–4 chooses, Enter answers, Esc leaves it for later
    ");
    terminal.send(key::DOWN);
    let screen = terminal.wait_for("› 1 continue");
    insta::assert_snapshot!(screen.lines().last().unwrap_or_default(), @"run 1  1 at work, 1 waiting for you  00:00                                      WORK     #2 Log out  implement  00:00  Reading it.                              ? Task #1 Log in  review 1/1                                                      1 review did not lead to approval. One more fix and review, proceed with the    findings open, or stop?                                                           - critical auth.txt:1 missing input validation                                › 1 continue  one more fix and review                                             2 proceed   go on; the findings stay open                                       3 stop      end it here: MAX_CYCLES_REACHED                                     4 restart   start over at implement (pass 2/10)                               ↑/↓ or 1–4 chooses, Enter answers, Esc leaves it for later");
    terminal.send(key::ENTER);
    terminal.wait_for("Task #1 completed (APPROVED");
    assert_eq!(task(&project, "2"), "\"in_progress\" null");
    let_go("");
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(0), true), "{end}");
    insta::assert_snapshot!(shown(&end.screen), @"
    Running task #1: Log in
      #1 [1/1] Implementing...
    Running task #2: Log out
      #2 [1/1] Implementing...
      #1 [1/1] Implementation complete
      #1 [1/1] Running review...
      #1 [1/1] Review: CHANGES_REQUESTED - missing input validation
      #1 [1/1] Question: 1 review did not lead to approval. One more fix and review, proceed with the findings open, or stop?
        signoff answer 1 CHOICE    (continue, proceed, stop, restart)
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
