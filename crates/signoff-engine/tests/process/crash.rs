//! Cleanup after a kill of signoff, of its supervisor process, or of both.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use signoff_engine::process::{ProcessExit, ProcessIdentity, ProcessLimits, kill_orphans, recover_attempt};

use crate::process::fixture::{FifoReader, NO_LIMITS, ProcessFixture};

/// An agent and a daemon that keep a FIFO open while they live and ignore SIGTERM.
const AT_WORK: &str = r#"
trap '' TERM
exec 3> agent
setsid sh -c 'echo daemon >&3; sleep 1000; sleep 1000' &
read go < go
echo working >&3
sleep 1000
sleep 1000
"#;

/// Waits until the agent and its daemon run.
fn wait_until_working(fixture: &ProcessFixture) -> FifoReader {
    let mut agent = FifoReader::open(&fixture.path("agent"));
    assert_eq!(agent.line(), "daemon");
    fs::write(fixture.path("go"), "go\n").expect("a pipe with a reader");
    assert_eq!(agent.line(), "working");
    agent
}

fn with_pipes() -> ProcessFixture {
    let fixture = ProcessFixture::new();
    fixture.pipe("agent");
    fixture.pipe("go");
    fixture
}

#[test]
fn killing_signoff_ends_its_agent() {
    let fixture = with_pipes();
    let process = fixture.start_process(AT_WORK, ProcessLimits { grace: Duration::from_millis(50), ..NO_LIMITS });
    let mut agent = wait_until_working(&fixture);
    process.kill();
    assert_eq!(agent.rest(), "", "all processes are gone without a kill");
    assert_eq!(recover_attempt(&fixture.dir()).unwrap(), None);
    assert_eq!(fixture.dir().read_result().unwrap().exit, ProcessExit::Orphaned);
    assert_eq!(recover_attempt(&fixture.dir()).unwrap(), None, "recovery is repeatable");
}

/// Kills signoff as soon as `moment` returns true.
fn kill_at(moment: impl Fn(&ProcessFixture) -> bool) {
    let fixture = ProcessFixture::new();
    let limits = ProcessLimits { grace: Duration::from_millis(50), ..NO_LIMITS };
    let process = fixture.start_process("echo started >> starts; echo hello; exec sleep 1000", limits);
    while !moment(&fixture) {
        std::thread::yield_now();
    }
    process.kill();
    assert_eq!(recover_attempt(&fixture.dir()).expect("a disk that works"), None);
    let starts = fs::read_to_string(fixture.path("starts")).unwrap_or_default();
    fixture.wait_until_no_processes();
    let later = fs::read_to_string(fixture.path("starts")).unwrap_or_default();
    assert_eq!(starts, later, "an agent was started after the attempt was recovered");
}

#[test]
fn killing_signoff_at_any_moment_leaves_no_process() {
    for _ in 0..5 {
        kill_at(|_| true);
        kill_at(|fixture| fixture.dir().launch().exists());
        kill_at(|fixture| fixture.dir().path().join("lock").exists());
        kill_at(|fixture| fixture.live().exists());
        kill_at(|fixture| fixture.dir().supervisor_record().exists());
        kill_at(|fixture| fixture.dir().stdout().exists());
        kill_at(|fixture| fixture.path("starts").exists());
    }
}

#[test]
fn an_attempt_that_ended_before_the_kill_is_not_lost() {
    let fixture = with_pipes();
    let process = fixture.start_process("exec 3> agent; echo ready >&3; read go < go; echo done; exit 3", NO_LIMITS);
    let mut agent = FifoReader::open(&fixture.path("agent"));
    assert_eq!(agent.line(), "ready");
    process.send(Signal::STOP);
    let supervisor = fixture.supervisor_process();
    fs::write(fixture.path("go"), "go\n").unwrap();
    supervisor.wait();
    process.kill();
    let Some(ended) = recover_attempt(&fixture.dir()).unwrap() else { panic!("it was lost") };
    assert_eq!((ended.exit, ended.stdout_bytes), (ProcessExit::Code(3), 5));
    fs::write(fixture.dir().stdout(), "do").unwrap();
    assert_eq!(recover_attempt(&fixture.dir()).unwrap(), None, "a transcript cut short is no result");
}

#[tokio::test]
async fn signoff_ends_the_agent_of_a_killed_supervisor() {
    let fixture = with_pipes();
    let running = fixture.start(AT_WORK, NO_LIMITS).await;
    let mut agent = wait_until_working(&fixture);
    fixture.supervisor_process().kill();
    let ended = running.wait().await;
    assert_eq!(ended.exit, ProcessExit::Signal(9));
    assert!(ended.strays_ended >= 2, "{ended:?}");
    assert_eq!(agent.rest(), "");
}

#[tokio::test]
async fn killing_the_supervisor_at_any_moment_leaves_no_process() {
    type Moment = fn(&ProcessFixture) -> bool;
    let moments: [Moment; 3] = [
        |fixture| fixture.dir().supervisor_record().exists(),
        |fixture| fixture.dir().stdout().exists(),
        |fixture| fixture.path("starts").exists(),
    ];
    for moment in moments.iter().cycle().take(15) {
        let fixture = ProcessFixture::new();
        let running = fixture.start("echo started >> starts; setsid sleep 1000 & exec sleep 1000", NO_LIMITS).await;
        while !moment(&fixture) {
            std::thread::yield_now();
        }
        fixture.supervisor_process().kill();
        assert_eq!(running.wait().await.exit, ProcessExit::Signal(9));
    }
}

#[test]
fn the_next_command_ends_strays_after_both_are_killed() {
    let fixture = with_pipes();
    let process = fixture.start_process(AT_WORK, NO_LIMITS);
    let mut agent = wait_until_working(&fixture);
    assert_eq!(kill_orphans(&fixture.live()).unwrap(), 0, "supervised attempts are skipped");
    process.send(Signal::STOP);
    fixture.supervisor_process().kill();
    process.kill();
    assert!(kill_orphans(&fixture.live()).unwrap() >= 2);
    assert_eq!(agent.rest(), "");
    assert_eq!(kill_orphans(&fixture.live()).unwrap(), 0);
    assert_eq!(recover_attempt(&fixture.dir()).unwrap(), None);
}

#[test]
fn strays_are_found_even_if_the_attempt_was_removed() {
    let fixture = with_pipes();
    let process = fixture.start_process(AT_WORK, NO_LIMITS);
    let mut agent = wait_until_working(&fixture);
    let supervisor = fixture.supervisor_process();
    process.send(Signal::STOP);
    fs::remove_dir_all(fixture.dir().path()).unwrap();
    assert_eq!(kill_orphans(&fixture.live()).unwrap(), 0, "the supervisor is running");
    supervisor.kill();
    process.kill();
    assert!(kill_orphans(&fixture.live()).unwrap() >= 2);
    assert_eq!(agent.rest(), "");
}

#[test]
fn a_hanging_supervisor_is_killed_with_its_processes() {
    let fixture = with_pipes();
    let process = fixture.start_process(AT_WORK, ProcessLimits { grace: Duration::ZERO, ..NO_LIMITS });
    let mut agent = wait_until_working(&fixture);
    fixture.supervisor_process().send(Signal::STOP);
    process.kill();
    assert_eq!(recover_attempt(&fixture.dir()).unwrap(), None);
    assert_eq!(agent.rest(), "");
}

#[test]
fn a_reused_pid_is_not_killed() {
    let fixture = ProcessFixture::new();
    let mut bystander = ProcessFixture::bystander();
    let identity = ProcessIdentity::from_pid(i32::try_from(bystander.id()).unwrap()).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let is_alive_after_recovery = |boot: &str, start: u64| {
        let record = json!({
            "boot": boot, "keeper": identity, "agent": { "pid": identity.pid, "start": start },
            "cookie": fixture.dir().path(), "link": fixture.path("link"),
        });
        fs::write(fixture.dir().supervisor_record(), record.to_string()).unwrap();
        assert_eq!(recover_attempt(&fixture.dir()).unwrap(), None);
        identity.is_alive()
    };
    assert!(is_alive_after_recovery(boot.trim(), identity.start + 1), "it started at another time");
    assert!(is_alive_after_recovery("yesterday", identity.start), "it was before a reboot");
    assert!(!is_alive_after_recovery(boot.trim(), identity.start), "it is the agent");
    bystander.wait().unwrap();
}

#[tokio::test]
async fn a_late_supervisor_starts_nothing() {
    let fixture = ProcessFixture::new();
    assert_eq!(recover_attempt(&fixture.dir()).unwrap(), None);
    let ended = fixture.run("echo started", NO_LIMITS).await;
    let message = "the attempt was abandoned before it started".to_owned();
    assert_eq!(ended.exit, ProcessExit::NotStarted { message, missing: false });
    assert!(!fixture.dir().stdout().exists());
}

#[test]
fn a_supervisor_without_its_parent_starts_nothing() {
    let fixture = ProcessFixture::new();
    assert!(fixture.supervisor_command().status().unwrap().success());
    let files = fs::read_dir(fixture.dir().path()).unwrap().count();
    assert_eq!(files, 1, "there is only the prompt");
}

#[test]
fn without_attempts_there_are_no_strays() {
    let fixture = ProcessFixture::new();
    assert_eq!(kill_orphans(&fixture.live()).unwrap(), 0);
    fs::create_dir(fixture.live()).unwrap();
    assert_eq!(kill_orphans(&fixture.live()).unwrap(), 0);
}
