//! Sandboxed agents: they are stopped and killed like all others, and the sandbox limits signals and ports.

use std::time::Duration;

use signoff_core::sandbox::SandboxBackend;
use signoff_engine::process::{ProcessExit, ProcessLaunch, ProcessLimits, RunningAttempt};
use signoff_engine::sandbox::{SandboxPolicy, SandboxSupport};

use crate::process::fixture::{FifoReader, NO_LIMITS, ProcessFixture};

const SHORT: Duration = Duration::from_millis(100);

/// Returns whether bubblewrap works here. Prints a note if not.
fn has_bubblewrap() -> bool {
    let missing = SandboxSupport::probe(Some(SandboxBackend::Bubblewrap)).missing;
    if let Some(reason) = &missing {
        eprintln!("SKIPPED: agents behind bubblewrap: {reason}");
    }
    missing.is_none()
}

fn sandboxed_launch(fixture: &ProcessFixture, script: &str, limits: ProcessLimits) -> ProcessLaunch {
    let writable = vec![fixture.path("attempt")];
    ProcessLaunch {
        sandbox: Some(SandboxPolicy { backend: SandboxBackend::Bubblewrap, writable, ports: None }),
        ..fixture.launch(script, limits)
    }
}

async fn start(fixture: &ProcessFixture, script: &str, limits: ProcessLimits) -> RunningAttempt {
    fixture.launcher().start(&sandboxed_launch(fixture, script, limits), &fixture.dir()).await.unwrap()
}

#[tokio::test]
async fn the_exit_code_is_that_of_the_agent() {
    if !has_bubblewrap() {
        return;
    }
    for (script, exit) in [
        ("cat; exit 0", ProcessExit::Code(0)),
        ("exit 7", ProcessExit::Code(7)),
        ("exit 1", ProcessExit::Code(1)),
        ("kill -KILL $$", ProcessExit::Signal(9)),
    ] {
        let fixture = ProcessFixture::new();
        assert_eq!(start(&fixture, script, NO_LIMITS).await.wait().await.exit, exit, "{script}");
    }
}

#[tokio::test]
async fn a_sandboxed_agent_can_handle_sigterm() {
    if !has_bubblewrap() {
        return;
    }
    let fixture = ProcessFixture::new();
    let script = "trap 'echo bye; exit 0' TERM; echo ready; sleep 1000 & wait";
    let mut running = start(&fixture, script, NO_LIMITS).await;
    assert_eq!(running.lines().next().await.as_deref(), Some("ready"));
    running.stopper().stop();
    assert_eq!(running.wait().await.exit, ProcessExit::Stopped);
    assert_eq!(fixture.stdout(), "ready\nbye\n");
}

#[tokio::test]
async fn a_sandboxed_agent_that_ignores_sigterm_is_killed_with_its_children() {
    if !has_bubblewrap() {
        return;
    }
    let fixture = ProcessFixture::new();
    let pipe = fixture.pipe("daemons");
    let script = "exec 3> daemons; trap '' TERM; setsid sleep 1000 & echo ready >&3; sleep 1000; sleep 1000";
    let running = start(&fixture, script, ProcessLimits { grace: SHORT, ..NO_LIMITS }).await;
    let mut daemons = FifoReader::open(&pipe);
    assert_eq!(daemons.line(), "ready");
    running.stopper().stop();
    assert_eq!(running.wait().await.exit, ProcessExit::Stopped);
    assert_eq!(daemons.rest(), "", "no process holds the pipe");
}

#[tokio::test]
async fn a_missing_program_is_reported() {
    if !has_bubblewrap() {
        return;
    }
    let fixture = ProcessFixture::new();
    let launch = ProcessLaunch { program: "no-such-agent".to_owned(), ..sandboxed_launch(&fixture, "", NO_LIMITS) };
    let ended = fixture.launcher().start(&launch, &fixture.dir()).await.unwrap().wait().await;
    assert!(matches!(ended.exit, ProcessExit::NotStarted { missing: true, .. }), "{:?}", ended.exit);
}

/// Returns whether the kernel's Landlock can restrict signals. Prints a note if not.
fn has_landlock_signal_scope() -> bool {
    let version = SandboxSupport::probe(None).landlock;
    let is_supported = version.is_some_and(|version| version >= 6);
    if !is_supported {
        eprintln!("SKIPPED: signals of agents that Landlock holds: its version is {version:?}, not 6");
    }
    is_supported
}

async fn start_in_landlock(fixture: &ProcessFixture, script: &str, limits: ProcessLimits) -> RunningAttempt {
    let writable = vec![fixture.path("attempt")];
    let launch = ProcessLaunch {
        sandbox: Some(SandboxPolicy { backend: SandboxBackend::Landlock, writable, ports: None }),
        ..fixture.launch(script, limits)
    };
    fixture.launcher().start(&launch, &fixture.dir()).await.unwrap()
}

#[tokio::test]
async fn an_agent_cannot_signal_its_supervisor_or_signoff() {
    if !has_landlock_signal_scope() {
        return;
    }
    let fixture = ProcessFixture::new();
    // A process that may send signal 0 may also send SIGKILL.
    let script = format!(
        "kill -9 $PPID || echo cannot kill the supervisor; kill -0 {} || echo cannot signal signoff; kill -0 $$ && echo ok",
        std::process::id()
    );
    let ended = start_in_landlock(&fixture, &script, NO_LIMITS).await.wait().await;
    assert_eq!(ended.exit, ProcessExit::Code(0));
    assert_eq!(fixture.stdout(), "cannot kill the supervisor\ncannot signal signoff\nok\n");
}

#[tokio::test]
async fn an_agent_can_signal_its_children_and_signoff_can_end_all() {
    if !has_landlock_signal_scope() {
        return;
    }
    let fixture = ProcessFixture::new();
    // One child in the agent's process group, one in another session, and one that ignores SIGTERM.
    let script = "sleep 1000 & kill -STOP $!; kill -CONT $!; kill -TERM $!; wait $!; echo ended $?; \
                  setsid sleep 1000 & kill -TERM $!; wait $!; echo ended $?; \
                  trap '' TERM; setsid sleep 1000 & echo ready; wait";
    let mut running = start_in_landlock(&fixture, script, ProcessLimits { grace: SHORT, ..NO_LIMITS }).await;
    let mut lines = running.lines();
    assert_eq!(lines.next().await.as_deref(), Some("ended 143"));
    assert_eq!(lines.next().await.as_deref(), Some("ended 143"));
    assert_eq!(lines.next().await.as_deref(), Some("ready"));
    running.stopper().stop();
    assert_eq!(running.wait().await.exit, ProcessExit::Stopped);
}

/// From version 4 on, Landlock limits the ports that a process connects to.
#[tokio::test]
async fn a_sandboxed_process_connects_only_to_the_listed_ports() {
    let version = SandboxSupport::probe(None).landlock;
    if version.is_none_or(|version| version < 4) {
        eprintln!("SKIPPED: ports that Landlock closes: its version is {version:?}, not 4");
        return;
    }
    let [open, shut] = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let [first, second] = [&open, &shut].map(|listener| listener.local_addr().unwrap().port());
    let script = format!(
        "for port in {first} {second}; do bash -c \"exec 3<>/dev/tcp/127.0.0.1/$port\" 2>/dev/null && echo reached || echo shut; done"
    );
    for (ports, output) in [(None, "reached\nreached\n"), (Some(vec![first]), "reached\nshut\n")] {
        let fixture = ProcessFixture::new();
        let sandbox =
            Some(SandboxPolicy { backend: SandboxBackend::Landlock, writable: vec![fixture.path("attempt")], ports });
        let launch = ProcessLaunch { sandbox, ..fixture.launch(&script, NO_LIMITS) };
        let ended = fixture.launcher().start(&launch, &fixture.dir()).await.unwrap().wait().await;
        assert_eq!((ended.exit, fixture.stdout().as_str()), (ProcessExit::Code(0), output));
    }
}
