//! Ends agents that time out or are stopped, and the processes they leave behind.

use std::time::Duration;

use signoff_engine::process::{ProcessExit, ProcessLimits};

use crate::process::fixture::{FifoReader, NO_LIMITS, ProcessFixture};

const SHORT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn an_agent_that_takes_too_long_is_ended() {
    let fixture = ProcessFixture::new();
    let ended = fixture.run("exec sleep 1000", ProcessLimits { time: Some(SHORT), ..NO_LIMITS }).await;
    assert_eq!(ended.exit, ProcessExit::TimedOut);
    assert!(ended.duration_ms >= 100);
}

#[tokio::test]
async fn an_agent_that_falls_silent_is_ended() {
    let fixture = ProcessFixture::new();
    let ended = fixture.run("echo hello; exec sleep 1000", ProcessLimits { silence: Some(SHORT), ..NO_LIMITS }).await;
    assert_eq!(ended.exit, ProcessExit::Silent);
    assert_eq!(fixture.stdout(), "hello\n");
}

#[tokio::test]
async fn an_agent_can_handle_sigterm() {
    let fixture = ProcessFixture::new();
    let mut running = fixture.start("trap 'echo bye; exit 0' TERM; echo ready; sleep 1000 & wait", NO_LIMITS).await;
    assert_eq!(running.lines().next().await.as_deref(), Some("ready"));
    running.stopper().stop();
    assert_eq!(running.wait().await.exit, ProcessExit::Stopped);
    assert_eq!(fixture.stdout(), "ready\nbye\n");
}

#[tokio::test]
async fn an_agent_that_ignores_sigterm_is_killed_after_the_grace_period() {
    let fixture = ProcessFixture::new();
    let script = "trap '' TERM; echo ready; sleep 1000; sleep 1000";
    let mut running = fixture.start(script, ProcessLimits { grace: SHORT, ..NO_LIMITS }).await;
    assert_eq!(running.lines().next().await.as_deref(), Some("ready"));
    running.stopper().stop();
    let ended = running.wait().await;
    assert_eq!(ended.exit, ProcessExit::Stopped);
    assert!(ended.duration_ms >= 100);
}

#[tokio::test]
async fn stop_and_kill_requests_are_both_delivered() {
    let fixture = ProcessFixture::new();
    let script = "trap 'echo not yet' TERM; echo ready; while :; do sleep 1000 & wait; done";
    let mut running = fixture.start(script, NO_LIMITS).await;
    let (mut lines, stopper) = (running.lines(), running.stopper());
    assert_eq!(lines.next().await.as_deref(), Some("ready"));
    stopper.stop();
    assert_eq!(lines.next().await.as_deref(), Some("not yet"));
    stopper.stop();
    stopper.clone().kill();
    assert_eq!(running.wait().await.exit, ProcessExit::Stopped);
    assert_eq!(fixture.stdout(), "ready\nnot yet\n");
    stopper.stop();
}

/// Daemons that keep the agent's stdout and a FIFO of the test open, each harder to end than the one before.
const DAEMONS: &str = r#"
exec 3> daemons
setsid sh -c 'echo daemon >&3; exec sleep 1000' &
setsid sh -c 'trap "" TERM; echo deaf daemon >&3; sleep 1000; sleep 1000' &
(setsid setsid sh -c 'echo forked twice >&3; sleep 1000 & sleep 1000' & ) &
"#;

#[tokio::test]
async fn daemons_end_with_the_agent() {
    let fixture = ProcessFixture::new();
    let pipe = fixture.pipe("daemons");
    let script = format!("{DAEMONS} exec 3>&-; read go < go; exit 3");
    let go = fixture.pipe("go");
    let running = fixture.start(&script, ProcessLimits { grace: SHORT, ..NO_LIMITS }).await;
    let mut daemons = FifoReader::open(&pipe);
    let mut lines = [daemons.line(), daemons.line(), daemons.line()];
    lines.sort();
    assert_eq!(lines, ["daemon", "deaf daemon", "forked twice"]);
    std::fs::write(go, "go\n").unwrap();
    let ended = running.wait().await;
    assert_eq!(ended.exit, ProcessExit::Code(3));
    assert!((3..=6).contains(&ended.strays_ended), "{ended:?}");
    assert_eq!(daemons.rest(), "", "no process holds the pipe");
}

#[tokio::test]
async fn daemons_end_when_the_agent_is_ended() {
    let fixture = ProcessFixture::new();
    let pipe = fixture.pipe("daemons");
    let script = format!("{DAEMONS} trap '' TERM; sleep 1000; sleep 1000");
    let running = fixture.start(&script, ProcessLimits { grace: SHORT, ..NO_LIMITS }).await;
    let mut daemons = FifoReader::open(&pipe);
    let _all_there = [daemons.line(), daemons.line(), daemons.line()];
    running.stopper().stop();
    assert_eq!(running.wait().await.exit, ProcessExit::Stopped);
    assert_eq!(daemons.rest(), "", "no process holds the pipe");
}

#[tokio::test]
async fn dropping_an_attempt_ends_it() {
    let fixture = ProcessFixture::new();
    let pipe = fixture.pipe("agent");
    let running = fixture.start("exec 3> agent; echo ready >&3; exec sleep 1000", NO_LIMITS).await;
    let mut agent = FifoReader::open(&pipe);
    assert_eq!(agent.line(), "ready");
    let stopper = running.stopper();
    drop(running);
    stopper.stop();
    assert_eq!(agent.rest(), "");
    // This also waits for the supervisor.
    signoff_engine::process::recover_attempt(&fixture.dir()).unwrap();
    assert_eq!(fixture.dir().read_result().unwrap().exit, ProcessExit::Orphaned);
}

#[tokio::test]
async fn a_daemon_that_keeps_forking_is_ended() {
    let fixture = ProcessFixture::new();
    // Each process starts the next one in a new session and exits.
    std::fs::write(fixture.path("hop"), "echo >> hops; setsid sh hop & exit").unwrap();
    let ended =
        fixture.run("sh hop; until test -s hops; do :; done", ProcessLimits { grace: SHORT, ..NO_LIMITS }).await;
    assert_eq!(ended.exit, ProcessExit::Code(0));
    assert!(ended.strays_ended > 0);
}
