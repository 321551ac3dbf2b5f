//! The fake agent follows its script.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use signoff_testkit::agent_script::{AgentScript, GitTrap, ScriptRule};
use signoff_testkit::calls::AgentCalls;
use tempfile::TempDir;

struct FakeAgentFixture(TempDir);

impl FakeAgentFixture {
    fn new(rules: impl IntoIterator<Item = ScriptRule>) -> Self {
        let this = Self(TempDir::new().expect("a temporary directory"));
        let script = rules.into_iter().fold(AgentScript::new(this.path().join("state")), AgentScript::rule);
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

    fn calls(&self) -> AgentCalls {
        AgentCalls::read(&self.path().join("state"))
    }

    #[expect(clippy::disallowed_methods, reason = "these tests' one door for spawning")]
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path().join("work")).env("HOME", self.path()).env("GIT_CONFIG_NOSYSTEM", "1");
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

fn stdout_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_first_matching_rule_is_used() {
    let fixture = FakeAgentFixture::new([
        ScriptRule::role("review").reviewer("ann").call(2).say("again {call} {nonce} {task}/{cycle}"),
        ScriptRule::role("review").reviewer("ann").say("first"),
        ScriptRule::role("review").prompt_contains("security").say("about security").complain("hm").exit(3),
        ScriptRule::role("fix").cycle(2).die(9),
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
    assert_eq!(stdout_of(&fixture.call("look", &env("review", "ann"))), "first");
    assert_eq!(stdout_of(&fixture.call("look", &env("review", "ann"))), "again 2 n1 7/2");
    let about = fixture.call("mind security", &env("review", "bob"));
    assert_eq!(
        (stdout_of(&about).as_str(), about.stderr.as_slice(), about.status.code()),
        ("about security", &b"hm"[..], Some(3))
    );
    assert_eq!(fixture.call("", &env("fix", "")).status.signal(), Some(9));
    assert_eq!(fixture.call("", &env("plan", "")).status.code(), Some(95));
    let calls = fixture.calls();
    assert_eq!(
        calls.summary(),
        "review ann task 7 cycle 2: exit 0\n\
         review ann task 7 cycle 2: exit 0\n\
         review bob task 7 cycle 2: exit 3\n\
         fix task 7 cycle 2: signal 9\n\
         plan task 7 cycle 2: exit 95\n"
    );
    let prompts: Vec<_> = calls.with_role("review").map(|call| call.prompt.as_str()).collect();
    assert_eq!(prompts, ["look", "look", "mind security"]);
    assert_eq!(calls.max_concurrent(), 1);
}

#[test]
fn files_are_written_committed_and_left_in_disorder() {
    let fixture = FakeAgentFixture::new([ScriptRule::always()
        .write("a/b.txt", "one\n")
        .append("a/b.txt", "two\n")
        .write("c.txt", "")
        .delete("c.txt")
        .commit("work of {role}")
        .usage(json!({ "cost_usd": 0.5 }))
        .shell("git log -1 --format=%s")
        .leave_index_lock()
        .say(" {commit}")]);
    fixture.git_init();
    let usage = fixture.path().join("work/usage.json");
    let output = fixture.call("", &[("SIGNOFF_ROLE", "fix"), ("SIGNOFF_USAGE_FILE", usage.to_str().unwrap())]);
    let output_text = stdout_of(&output);
    assert!(output_text.starts_with("work of fix ") && output_text.len() == 12 + 40, "{output:?}");
    assert_eq!(fixture.read("a/b.txt"), "one\ntwo\n");
    assert_eq!(fixture.read("usage.json"), r#"{"cost_usd":0.5}"#);
    assert!(fixture.path().join("work/.git/index.lock").exists());
}

#[test]
fn every_trap_is_triggered_by_plain_git() {
    for trap in [GitTrap::HooksPath, GitTrap::Hooks, GitTrap::Fsmonitor, GitTrap::Filter, GitTrap::Diff] {
        let fixture = FakeAgentFixture::new([ScriptRule::always().plant(trap, "../sprung")]);
        fixture.git_init();
        fs::write(fixture.path().join("work/file"), "one\n").unwrap();
        fixture.git(&["add", "file"]);
        let output = fixture.call("", &[]);
        assert!(output.status.success() && !fixture.path().join("sprung").exists(), "{trap:?} {output:?}");
        fs::write(fixture.path().join("work/file"), "two\n").unwrap();
        fixture.git(&["diff"]);
        fixture.git(&["add", "file"]);
        fixture.git(&["-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "second"]);
        assert!(fixture.path().join("sprung").exists(), "{trap:?} does not work");
    }
}

#[test]
fn agents_can_wait_for_each_other() {
    let fixture = FakeAgentFixture::new([
        ScriptRule::role("left").without_reading_prompt().write("left", "").wait_for("right"),
        ScriptRule::role("right").without_reading_prompt().write("right", "").wait_for("left"),
    ]);
    let both = [fixture.start(&[("SIGNOFF_ROLE", "left")]), fixture.start(&[("SIGNOFF_ROLE", "right")])];
    for mut agent in both {
        assert!(agent.wait().unwrap().success());
    }
    assert_eq!((fixture.calls().all().len(), fixture.calls().max_concurrent()), (2, 2));
}

#[test]
fn a_flood_has_the_requested_length() {
    let fixture = FakeAgentFixture::new([ScriptRule::always().without_reading_prompt().flood(1_000_001)]);
    let output = fixture.call("", &[]);
    assert_eq!(output.stdout.len(), 1_000_001);
}

#[test]
fn an_agent_that_ignores_sigterm_and_its_daemons_must_be_killed() {
    let fixture = FakeAgentFixture::new([ScriptRule::always()
        .without_reading_prompt()
        .ignore_term()
        .daemon("daemon")
        .term_ignoring_daemon("deaf")
        .say("ready\n")
        .hang()]);
    let mut agent = fixture.start(&[]);
    let mut line = String::new();
    BufReader::new(agent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let pid = |text: &str| Pid::from_raw(text.parse().unwrap()).unwrap();
    let own = pid(&agent.id().to_string());
    kill_process(own, Signal::TERM).unwrap();
    for name in ["daemon", "deaf"] {
        let daemon = pid(&fixture.read(name));
        assert_eq!(rustix::process::getsid(Some(daemon)).unwrap(), daemon, "in a session of its own");
        kill_process(daemon, Signal::KILL).unwrap();
    }
    kill_process(own, Signal::KILL).unwrap();
    assert_eq!(agent.wait().unwrap().signal(), Some(9), "it ignored the first signal");
    assert_eq!(fixture.calls().summary(), ": did not end\n");
}
