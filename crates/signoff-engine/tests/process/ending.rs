//! Agents that have to be ended, and what they leave behind.

use std::time::Duration;

use signoff_engine::process::{Exit, Limits};

use crate::place::{Listener, NO_LIMITS, Place};

const SHORT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn an_agent_that_takes_too_long_is_ended() {
    let place = Place::new();
    let ended = place.run("exec sleep 1000", Limits { time: Some(SHORT), ..NO_LIMITS }).await;
    assert_eq!(ended.exit, Exit::TimedOut);
    assert!(ended.duration_ms >= 100);
}

#[tokio::test]
async fn an_agent_that_falls_silent_is_ended() {
    let place = Place::new();
    let ended = place.run("echo hello; exec sleep 1000", Limits { silence: Some(SHORT), ..NO_LIMITS }).await;
    assert_eq!(ended.exit, Exit::Silent);
    assert_eq!(place.stdout(), "hello\n");
}

#[tokio::test]
async fn an_agent_may_say_good_bye() {
    let place = Place::new();
    let mut running =
        place.start("trap 'echo bye; exit 0' TERM; echo ready; sleep 1000 & wait", NO_LIMITS).await;
    assert_eq!(running.lines().next().await.as_deref(), Some("ready"));
    running.stopper().stop();
    assert_eq!(running.wait().await.exit, Exit::Stopped);
    assert_eq!(place.stdout(), "ready\nbye\n");
}

#[tokio::test]
async fn an_agent_that_will_not_hear_is_killed_after_its_grace() {
    let place = Place::new();
    let script = "trap '' TERM; echo ready; sleep 1000; sleep 1000";
    let mut running = place.start(script, Limits { grace: SHORT, ..NO_LIMITS }).await;
    assert_eq!(running.lines().next().await.as_deref(), Some("ready"));
    running.stopper().stop();
    let ended = running.wait().await;
    assert_eq!(ended.exit, Exit::Stopped);
    assert!(ended.duration_ms >= 100);
}

#[tokio::test]
async fn who_asks_twice_is_heard_twice() {
    let place = Place::new();
    let script = "trap 'echo not yet' TERM; echo ready; while :; do sleep 1000 & wait; done";
    let mut running = place.start(script, NO_LIMITS).await;
    let (mut lines, stopper) = (running.lines(), running.stopper());
    assert_eq!(lines.next().await.as_deref(), Some("ready"));
    stopper.stop();
    assert_eq!(lines.next().await.as_deref(), Some("not yet"));
    stopper.stop();
    stopper.clone().kill();
    assert_eq!(running.wait().await.exit, Exit::Stopped);
    assert_eq!(place.stdout(), "ready\nnot yet\n");
    stopper.stop();
}

/// Daemons that hold the agent's stdout and a pipe of ours, each deafer than the one before.
const DAEMONS: &str = r#"
exec 3> daemons
setsid sh -c 'echo daemon >&3; exec sleep 1000' &
setsid sh -c 'trap "" TERM; echo deaf daemon >&3; sleep 1000; sleep 1000' &
(setsid setsid sh -c 'echo forked twice >&3; sleep 1000 & sleep 1000' & ) &
"#;

#[tokio::test]
async fn daemons_end_with_the_agent() {
    let place = Place::new();
    let pipe = place.pipe("daemons");
    let script = format!("{DAEMONS} exec 3>&-; read go < go; exit 3");
    let go = place.pipe("go");
    let running = place.start(&script, Limits { grace: SHORT, ..NO_LIMITS }).await;
    let mut daemons = Listener::open(&pipe);
    let mut said = [daemons.line(), daemons.line(), daemons.line()];
    said.sort();
    assert_eq!(said, ["daemon", "deaf daemon", "forked twice"]);
    std::fs::write(go, "go\n").unwrap();
    let ended = running.wait().await;
    assert_eq!(ended.exit, Exit::Code(3));
    assert!((3..=6).contains(&ended.strays_ended), "{ended:?}");
    assert_eq!(daemons.rest(), "", "nobody holds the pipe");
}

#[tokio::test]
async fn daemons_end_when_the_agent_is_ended() {
    let place = Place::new();
    let pipe = place.pipe("daemons");
    let script = format!("{DAEMONS} trap '' TERM; sleep 1000; sleep 1000");
    let running = place.start(&script, Limits { grace: SHORT, ..NO_LIMITS }).await;
    let mut daemons = Listener::open(&pipe);
    let _all_there = [daemons.line(), daemons.line(), daemons.line()];
    running.stopper().stop();
    assert_eq!(running.wait().await.exit, Exit::Stopped);
    assert_eq!(daemons.rest(), "", "nobody holds the pipe");
}

#[tokio::test]
async fn who_drops_an_attempt_ends_it() {
    let place = Place::new();
    let pipe = place.pipe("agent");
    let running = place.start("exec 3> agent; echo ready >&3; exec sleep 1000", NO_LIMITS).await;
    let mut agent = Listener::open(&pipe);
    assert_eq!(agent.line(), "ready");
    let stopper = running.stopper();
    drop(running);
    stopper.stop();
    assert_eq!(agent.rest(), "");
    // Waits for the keeper, too.
    signoff_engine::process::settle(&place.dir()).unwrap();
    assert_eq!(place.dir().ended().unwrap().exit, Exit::Orphaned);
}

#[tokio::test]
async fn a_daemon_that_keeps_moving_is_caught() {
    let place = Place::new();
    // Each starts the next in a session of its own and ends.
    std::fs::write(place.path("hop"), "echo >> hops; setsid sh hop & exit").unwrap();
    let ended =
        place.run("sh hop; until test -s hops; do :; done", Limits { grace: SHORT, ..NO_LIMITS }).await;
    assert_eq!(ended.exit, Exit::Code(0));
    assert!(ended.strays_ended > 0);
}
