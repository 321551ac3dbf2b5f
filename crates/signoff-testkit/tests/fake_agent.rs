//! The fake agent does what its script says.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use signoff_testkit::calls::Calls;
use signoff_testkit::script::{Rule, Script, Trap};
use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        let this = Self(TempDir::new().expect("a temporary directory"));
        let script = rules.into_iter().fold(Script::new(this.path().join("state")), Script::rule);
        script.save(&this.path().join("script.json"));
        fs::create_dir(this.path().join("work")).expect("a directory");
        this
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join("work").join(name)).expect("a file")
    }

    fn calls(&self) -> Calls {
        Calls::read(&self.path().join("state"))
    }

    #[expect(clippy::disallowed_methods, reason = "these tests' one door for spawning")]
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path().join("work"))
            .env("HOME", self.path())
            .env("GIT_CONFIG_NOSYSTEM", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start(&self, environment: &[(&str, &str)]) -> Child {
        let mut command = self.command(env!("CARGO_BIN_EXE_fake_agent"));
        command.arg(self.path().join("script.json")).envs(environment.iter().copied());
        command.spawn().expect("a started agent")
    }

    fn call(&self, prompt: &str, environment: &[(&str, &str)]) -> Output {
        let mut child = self.start(environment);
        child.stdin.take().expect("a pipe").write_all(prompt.as_bytes()).ok();
        child.wait_with_output().expect("an ended agent")
    }

    fn git(&self, arguments: &[&str]) {
        let output = self.command("git").args(arguments).output().expect("git");
        assert!(output.status.success(), "{output:?}");
    }

    fn git_init(&self) {
        self.git(&["init", "--quiet"]);
        let name = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
        self.git(&[&name[..], &["commit", "--quiet", "--allow-empty", "--message", "first"]].concat());
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_first_rule_that_fits_is_carried_out() {
    let place = Place::new([
        Rule::role("review").reviewer("ann").call(2).say("again {call} {nonce} {task}/{cycle}"),
        Rule::role("review").reviewer("ann").say("first"),
        Rule::role("review").asked_for("security").say("about security").complain("hm").exit(3),
        Rule::role("fix").cycle(2).die(9),
    ]);
    let env = |role, reviewer| {
        [
            ("SIGNOFF_ROLE", role),
            ("SIGNOFF_REVIEWER", reviewer),
            ("SIGNOFF_NONCE", "n1"),
            ("SIGNOFF_TASK_ID", "7"),
            ("SIGNOFF_CYCLE", "2"),
        ]
    };
    assert_eq!(said(&place.call("look", &env("review", "ann"))), "first");
    assert_eq!(said(&place.call("look", &env("review", "ann"))), "again 2 n1 7/2");
    let about = place.call("mind security", &env("review", "bob"));
    assert_eq!(
        (said(&about).as_str(), about.stderr.as_slice(), about.status.code()),
        ("about security", &b"hm"[..], Some(3))
    );
    assert_eq!(place.call("", &env("fix", "")).status.signal(), Some(9));
    assert_eq!(place.call("", &env("plan", "")).status.code(), Some(95));
    let calls = place.calls();
    assert_eq!(
        calls.story(),
        "review ann task 7 cycle 2: exit 0\n\
         review ann task 7 cycle 2: exit 0\n\
         review bob task 7 cycle 2: exit 3\n\
         fix task 7 cycle 2: signal 9\n\
         plan task 7 cycle 2: exit 95\n"
    );
    let prompts: Vec<_> = calls.of_role("review").map(|call| call.prompt.as_str()).collect();
    assert_eq!(prompts, ["look", "look", "mind security"]);
    assert_eq!(calls.most_at_once(), 1);
}

#[test]
fn files_are_written_committed_and_left_in_disorder() {
    let place = Place::new([Rule::always()
        .write("a/b.txt", "one\n")
        .append("a/b.txt", "two\n")
        .write("c.txt", "")
        .delete("c.txt")
        .commit("work of {role}")
        .usage(json!({ "cost_usd": 0.5 }))
        .shell("git log -1 --format=%s")
        .leave_index_lock()
        .say(" {commit}")]);
    place.git_init();
    let usage = place.path().join("work/usage.json");
    let output = place.call("", &[("SIGNOFF_ROLE", "fix"), ("SIGNOFF_USAGE_FILE", usage.to_str().unwrap())]);
    let said = said(&output);
    assert!(said.starts_with("work of fix ") && said.len() == 12 + 40, "{output:?}");
    assert_eq!(place.read("a/b.txt"), "one\ntwo\n");
    assert_eq!(place.read("usage.json"), r#"{"cost_usd":0.5}"#);
    assert!(place.path().join("work/.git/index.lock").exists());
}

#[test]
fn every_trap_is_sprung_by_a_careless_git() {
    for trap in [Trap::HooksPath, Trap::Hooks, Trap::Fsmonitor, Trap::Filter, Trap::Diff] {
        let place = Place::new([Rule::always().plant(trap, "../sprung")]);
        place.git_init();
        fs::write(place.path().join("work/file"), "one\n").unwrap();
        place.git(&["add", "file"]);
        let output = place.call("", &[]);
        assert!(output.status.success() && !place.path().join("sprung").exists(), "{trap:?} {output:?}");
        fs::write(place.path().join("work/file"), "two\n").unwrap();
        place.git(&["diff"]);
        place.git(&["add", "file"]);
        place.git(&[
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.com",
            "commit",
            "--quiet",
            "-m",
            "second",
        ]);
        assert!(place.path().join("sprung").exists(), "{trap:?} does not work");
    }
}

#[test]
fn agents_meet_without_sleeping() {
    let place = Place::new([
        Rule::role("left").unread().write("left", "").wait_for("right"),
        Rule::role("right").unread().write("right", "").wait_for("left"),
    ]);
    let both = [place.start(&[("SIGNOFF_ROLE", "left")]), place.start(&[("SIGNOFF_ROLE", "right")])];
    for mut agent in both {
        assert!(agent.wait().unwrap().success());
    }
    assert_eq!((place.calls().all().len(), place.calls().most_at_once()), (2, 2));
}

#[test]
fn a_flood_is_as_long_as_it_should_be() {
    let place = Place::new([Rule::always().unread().flood(1_000_001)]);
    let output = place.call("", &[]);
    assert_eq!(output.stdout.len(), 1_000_001);
}

#[test]
fn who_ignores_term_and_its_daemons_must_be_killed() {
    let place = Place::new([Rule::always()
        .unread()
        .ignore_term()
        .daemon("daemon")
        .deaf_daemon("deaf")
        .say("ready\n")
        .hang()]);
    let mut agent = place.start(&[]);
    let mut line = String::new();
    BufReader::new(agent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let pid = |text: &str| Pid::from_raw(text.parse().unwrap()).unwrap();
    let own = pid(&agent.id().to_string());
    kill_process(own, Signal::TERM).unwrap();
    for name in ["daemon", "deaf"] {
        let daemon = pid(&place.read(name));
        assert_eq!(rustix::process::getsid(Some(daemon)).unwrap(), daemon, "in a session of its own");
        kill_process(daemon, Signal::KILL).unwrap();
    }
    kill_process(own, Signal::KILL).unwrap();
    assert_eq!(agent.wait().unwrap().signal(), Some(9), "it had not heard the first signal");
    assert_eq!(place.calls().story(), ": did not end\n");
}
