//! The program is killed, or the keeper, or both.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use signoff_engine::process::{Exit, Found, Identity, Limits, end_strays, settle};

use crate::place::{Listener, NO_LIMITS, Place};

/// An agent and a daemon that hold a pipe as long as they live, and do not mind being asked to end.
const AT_WORK: &str = r#"
trap '' TERM
exec 3> agent
setsid sh -c 'echo daemon >&3; sleep 1000; sleep 1000' &
read go < go
echo working >&3
sleep 1000
sleep 1000
"#;

/// Waits until both are at work.
fn at_work(place: &Place) -> Listener {
    let mut agent = Listener::open(&place.path("agent"));
    assert_eq!(agent.line(), "daemon");
    fs::write(place.path("go"), "go\n").expect("a pipe with a reader");
    assert_eq!(agent.line(), "working");
    agent
}

fn with_pipes() -> Place {
    let place = Place::new();
    place.pipe("agent");
    place.pipe("go");
    place
}

#[test]
fn when_the_program_is_killed_its_agent_ends() {
    let place = with_pipes();
    let driver = place.drive(AT_WORK, Limits { grace: Duration::from_millis(50), ..NO_LIMITS });
    let mut agent = at_work(&place);
    driver.kill();
    assert_eq!(agent.rest(), "", "all are gone, though nobody did anything about it");
    assert_eq!(settle(&place.dir()).unwrap(), Found::Lost);
    assert_eq!(place.dir().ended().unwrap().exit, Exit::Orphaned);
    assert_eq!(settle(&place.dir()).unwrap(), Found::Lost, "it can be asked again");
}

/// Kills the program as soon as `moment` has come, and whatever it was doing then.
fn killed_at(moment: impl Fn(&Place) -> bool) {
    let place = Place::new();
    let limits = Limits { grace: Duration::from_millis(50), ..NO_LIMITS };
    let driver = place.drive("echo started >> starts; echo hello; exec sleep 1000", limits);
    while !moment(&place) {
        std::thread::yield_now();
    }
    driver.kill();
    assert_eq!(settle(&place.dir()).expect("a disk that works"), Found::Lost);
    let starts = fs::read_to_string(place.path("starts")).unwrap_or_default();
    place.await_desertion();
    let later = fs::read_to_string(place.path("starts")).unwrap_or_default();
    assert_eq!(starts, later, "an agent was started after the attempt had been settled");
}

#[test]
fn at_whatever_moment_the_program_is_killed_nothing_is_left() {
    for _ in 0..5 {
        killed_at(|_| true);
        killed_at(|place| place.dir().launch().exists());
        killed_at(|place| place.dir().path().join("lock").exists());
        killed_at(|place| place.live().exists());
        killed_at(|place| place.dir().keeper().exists());
        killed_at(|place| place.dir().stdout().exists());
        killed_at(|place| place.path("starts").exists());
    }
}

#[test]
fn what_was_finished_when_the_program_was_killed_is_not_lost() {
    let place = with_pipes();
    let driver = place.drive("exec 3> agent; echo ready >&3; read go < go; echo done; exit 3", NO_LIMITS);
    let mut agent = Listener::open(&place.path("agent"));
    assert_eq!(agent.line(), "ready");
    driver.send(Signal::STOP);
    let keeper = place.keeper_process();
    fs::write(place.path("go"), "go\n").unwrap();
    keeper.outlive();
    driver.kill();
    let Found::Ended(ended) = settle(&place.dir()).unwrap() else { panic!("it was lost") };
    assert_eq!((ended.exit, ended.stdout_bytes), (Exit::Code(3), 5));
    fs::write(place.dir().stdout(), "do").unwrap();
    assert_eq!(settle(&place.dir()).unwrap(), Found::Lost, "a transcript cut short is no result");
}

#[tokio::test]
async fn when_the_keeper_is_killed_the_program_ends_what_it_kept() {
    let place = with_pipes();
    let running = place.start(AT_WORK, NO_LIMITS).await;
    let mut agent = at_work(&place);
    place.keeper_process().kill();
    let ended = running.wait().await;
    assert_eq!(ended.exit, Exit::Signal(9));
    assert!(ended.strays_ended >= 2, "{ended:?}");
    assert_eq!(agent.rest(), "");
}

#[tokio::test]
async fn at_whatever_moment_the_keeper_is_killed_nothing_is_left() {
    type Moment = fn(&Place) -> bool;
    let moments: [Moment; 3] = [
        |place| place.dir().keeper().exists(),
        |place| place.dir().stdout().exists(),
        |place| place.path("starts").exists(),
    ];
    for moment in moments.iter().cycle().take(15) {
        let place = Place::new();
        let running =
            place.start("echo started >> starts; setsid sleep 1000 & exec sleep 1000", NO_LIMITS).await;
        while !moment(&place) {
            std::thread::yield_now();
        }
        place.keeper_process().kill();
        assert_eq!(running.wait().await.exit, Exit::Signal(9));
    }
}

#[test]
fn when_both_are_killed_the_next_command_ends_what_is_left() {
    let place = with_pipes();
    let driver = place.drive(AT_WORK, NO_LIMITS);
    let mut agent = at_work(&place);
    assert_eq!(end_strays(&place.live()).unwrap(), 0, "what is kept is left alone");
    driver.send(Signal::STOP);
    place.keeper_process().kill();
    driver.kill();
    assert!(end_strays(&place.live()).unwrap() >= 2);
    assert_eq!(agent.rest(), "");
    assert_eq!(end_strays(&place.live()).unwrap(), 0);
    assert_eq!(settle(&place.dir()).unwrap(), Found::Lost);
}

#[test]
fn strays_are_found_even_if_somebody_removed_the_attempt() {
    let place = with_pipes();
    let driver = place.drive(AT_WORK, NO_LIMITS);
    let mut agent = at_work(&place);
    let keeper = place.keeper_process();
    driver.send(Signal::STOP);
    fs::remove_dir_all(place.dir().path()).unwrap();
    assert_eq!(end_strays(&place.live()).unwrap(), 0, "its keeper lives");
    keeper.kill();
    driver.kill();
    assert!(end_strays(&place.live()).unwrap() >= 2);
    assert_eq!(agent.rest(), "");
}

#[test]
fn a_keeper_that_hangs_is_killed_with_all_it_keeps() {
    let place = with_pipes();
    let driver = place.drive(AT_WORK, Limits { grace: Duration::ZERO, ..NO_LIMITS });
    let mut agent = at_work(&place);
    place.keeper_process().send(Signal::STOP);
    driver.kill();
    assert_eq!(settle(&place.dir()).unwrap(), Found::Lost);
    assert_eq!(agent.rest(), "");
}

#[test]
fn nobody_is_ended_for_having_the_number_of_one_of_ours() {
    let place = Place::new();
    let mut bystander = Place::bystander();
    let identity = Identity::of(i32::try_from(bystander.id()).unwrap()).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let settle_with = |boot: &str, start: u64| {
        let kept = json!({
            "boot": boot, "keeper": identity, "agent": { "pid": identity.pid, "start": start },
            "cookie": place.dir().path(), "link": place.path("link"),
        });
        fs::write(place.dir().keeper(), kept.to_string()).unwrap();
        assert_eq!(settle(&place.dir()).unwrap(), Found::Lost);
        identity.lives()
    };
    assert!(settle_with(boot.trim(), identity.start + 1), "it started at another time");
    assert!(settle_with("yesterday", identity.start), "it was before a reboot");
    assert!(!settle_with(boot.trim(), identity.start), "it is the agent");
    bystander.wait().unwrap();
}

#[tokio::test]
async fn a_keeper_that_comes_late_starts_nothing() {
    let place = Place::new();
    assert_eq!(settle(&place.dir()).unwrap(), Found::Lost);
    let ended = place.run("echo started", NO_LIMITS).await;
    let message = "the attempt was given up before it was started".to_owned();
    assert_eq!(ended.exit, Exit::NotStarted { message, missing: false });
    assert!(!place.dir().stdout().exists());
}

#[test]
fn a_keeper_whose_program_died_at_once_starts_nothing() {
    let place = Place::new();
    assert!(place.bare_keeper().status().unwrap().success());
    let files = fs::read_dir(place.dir().path()).unwrap().count();
    assert_eq!(files, 1, "there is only the prompt");
}

#[test]
fn a_place_without_attempts_has_no_strays() {
    let place = Place::new();
    assert_eq!(end_strays(&place.live()).unwrap(), 0);
    fs::create_dir(place.live()).unwrap();
    assert_eq!(end_strays(&place.live()).unwrap(), 0);
}
