//! Agents behind a program that holds them: they are asked to end, and ended, like all others.

use std::time::Duration;

use signoff_core::hold::Hold;
use signoff_engine::confine::{Held, Power};
use signoff_engine::process::{Exit, Launch, Limits, Running};

use crate::place::{Listener, NO_LIMITS, Place};

const SHORT: Duration = Duration::from_millis(100);

/// Whether there is such a program here. If not, that is said aloud.
fn is_there() -> bool {
    let lacks = Power::probe(Some(Hold::Bubblewrap)).lacks;
    if let Some(why) = &lacks {
        eprintln!("SKIPPED: agents behind bubblewrap: {why}");
    }
    lacks.is_none()
}

fn held(place: &Place, script: &str, limits: Limits) -> Launch {
    let writable = vec![place.path("attempt")];
    Launch {
        held: Some(Held { by: Hold::Bubblewrap, writable, ports: None }),
        ..place.launch(script, limits)
    }
}

async fn start(place: &Place, script: &str, limits: Limits) -> Running {
    place.keeper().start(&held(place, script, limits), &place.dir()).await.unwrap()
}

#[tokio::test]
async fn its_end_is_the_agents_end() {
    if !is_there() {
        return;
    }
    for (script, exit) in [
        ("cat; exit 0", Exit::Code(0)),
        ("exit 7", Exit::Code(7)),
        ("exit 1", Exit::Code(1)),
        ("kill -KILL $$", Exit::Signal(9)),
    ] {
        let place = Place::new();
        assert_eq!(start(&place, script, NO_LIMITS).await.wait().await.exit, exit, "{script}");
    }
}

#[tokio::test]
async fn an_agent_behind_it_may_say_good_bye() {
    if !is_there() {
        return;
    }
    let place = Place::new();
    let script = "trap 'echo bye; exit 0' TERM; echo ready; sleep 1000 & wait";
    let mut running = start(&place, script, NO_LIMITS).await;
    assert_eq!(running.lines().next().await.as_deref(), Some("ready"));
    running.stopper().stop();
    assert_eq!(running.wait().await.exit, Exit::Stopped);
    assert_eq!(place.stdout(), "ready\nbye\n");
}

#[tokio::test]
async fn one_that_will_not_hear_is_killed_with_all_it_started() {
    if !is_there() {
        return;
    }
    let place = Place::new();
    let pipe = place.pipe("daemons");
    let script = "exec 3> daemons; trap '' TERM; setsid sleep 1000 & echo ready >&3; sleep 1000; sleep 1000";
    let running = start(&place, script, Limits { grace: SHORT, ..NO_LIMITS }).await;
    let mut daemons = Listener::open(&pipe);
    assert_eq!(daemons.line(), "ready");
    running.stopper().stop();
    assert_eq!(running.wait().await.exit, Exit::Stopped);
    assert_eq!(daemons.rest(), "", "nobody holds the pipe");
}

#[tokio::test]
async fn a_program_that_is_missing_is_said_to_be() {
    if !is_there() {
        return;
    }
    let place = Place::new();
    let launch = Launch { program: "no-such-agent".to_owned(), ..held(&place, "", NO_LIMITS) };
    let ended = place.keeper().start(&launch, &place.dir()).await.unwrap().wait().await;
    assert!(matches!(ended.exit, Exit::NotStarted { missing: true, .. }), "{:?}", ended.exit);
}

/// Whether the kernel's Landlock can keep signals apart. If not, that is said aloud.
fn keeps_signals_apart() -> bool {
    let version = Power::probe(None).landlock;
    let does = version.is_some_and(|version| version >= 6);
    if !does {
        eprintln!("SKIPPED: signals of agents that Landlock holds: its version is {version:?}, not 6");
    }
    does
}

async fn start_confined(place: &Place, script: &str, limits: Limits) -> Running {
    let writable = vec![place.path("attempt")];
    let launch = Launch {
        held: Some(Held { by: Hold::Landlock, writable, ports: None }),
        ..place.launch(script, limits)
    };
    place.keeper().start(&launch, &place.dir()).await.unwrap()
}

#[tokio::test]
async fn nobody_can_end_its_keeper_or_who_started_that() {
    if !keeps_signals_apart() {
        return;
    }
    let place = Place::new();
    // Whoever may ask whether somebody is there may also end it.
    let script = format!(
        "kill -9 $PPID || echo its keeper stays; kill -0 {} || echo so does who started that; kill -0 $$ && echo ok",
        std::process::id()
    );
    let ended = start_confined(&place, &script, NO_LIMITS).await.wait().await;
    assert_eq!(ended.exit, Exit::Code(0));
    assert_eq!(place.stdout(), "its keeper stays\nso does who started that\nok\n");
}

#[tokio::test]
async fn its_own_processes_are_its_to_end_and_all_are_ours() {
    if !keeps_signals_apart() {
        return;
    }
    let place = Place::new();
    // One in its own group, one in a group apart, and one that will not hear.
    let script = "sleep 1000 & kill -STOP $!; kill -CONT $!; kill -TERM $!; wait $!; echo ended $?; \
                  setsid sleep 1000 & kill -TERM $!; wait $!; echo ended $?; \
                  trap '' TERM; setsid sleep 1000 & echo ready; wait";
    let mut running = start_confined(&place, script, Limits { grace: SHORT, ..NO_LIMITS }).await;
    let mut lines = running.lines();
    assert_eq!(lines.next().await.as_deref(), Some("ended 143"));
    assert_eq!(lines.next().await.as_deref(), Some("ended 143"));
    assert_eq!(lines.next().await.as_deref(), Some("ready"));
    running.stopper().stop();
    assert_eq!(running.wait().await.exit, Exit::Stopped);
}

/// From version 4 on, Landlock limits the ports that a process connects to.
#[tokio::test]
async fn a_held_process_connects_only_to_the_listed_ports() {
    let version = Power::probe(None).landlock;
    if version.is_none_or(|version| version < 4) {
        eprintln!("SKIPPED: ports that Landlock closes: its version is {version:?}, not 4");
        return;
    }
    let [open, shut] = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let [first, second] = [&open, &shut].map(|listener| listener.local_addr().unwrap().port());
    let script = format!(
        "for port in {first} {second}; do bash -c \"exec 3<>/dev/tcp/127.0.0.1/$port\" 2>/dev/null && echo reached || echo shut; done"
    );
    for (ports, said) in [(None, "reached\nreached\n"), (Some(vec![first]), "reached\nshut\n")] {
        let place = Place::new();
        let held = Some(Held { by: Hold::Landlock, writable: vec![place.path("attempt")], ports });
        let launch = Launch { held, ..place.launch(&script, NO_LIMITS) };
        let ended = place.keeper().start(&launch, &place.dir()).await.unwrap().wait().await;
        assert_eq!((ended.exit, place.stdout().as_str()), (Exit::Code(0), said));
    }
}
