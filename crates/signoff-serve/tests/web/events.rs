//! The event stream: changes that the server sends to listening pages.

use std::collections::BTreeSet;

use serde_json::json;
use signoff_serve::web::ChangeSet;
use signoff_testkit::processes::wait_until;

use crate::web::WebFixture;

fn change_of(run: u64, task: u64) -> ChangeSet {
    ChangeSet { runs: BTreeSet::from([run]), tasks: BTreeSet::from([task]), ..ChangeSet::default() }
}

#[test]
fn a_new_listener_gets_a_full_refresh_and_then_each_change() {
    let fixture = WebFixture::start();
    let mut listening = fixture.visitor.listen();
    assert_eq!(listening.next(), Some(json!({ "seq": 0 })));
    fixture.probe.change(change_of(1, 3));
    assert_eq!(listening.next(), Some(json!({ "seq": 1, "runs": [1], "tasks": [3], "said": [] })));
    fixture.probe.change(ChangeSet { transcripts: BTreeSet::from([3]), ..ChangeSet::default() });
    assert_eq!(listening.next(), Some(json!({ "seq": 2, "runs": [], "tasks": [], "said": [3] })));
    fixture.probe.change(ChangeSet::everything());
    assert_eq!(listening.next(), Some(json!({ "seq": 3 })));
}

#[test]
fn a_returning_listener_gets_missed_changes_at_once() {
    let fixture = WebFixture::start();
    let mut listening = fixture.visitor.listen();
    listening.next();
    for task in 1..=3 {
        fixture.probe.change(change_of(1, task));
    }
    let is_last = |seq: &serde_json::Value| seq["seq"] == 3;
    while !is_last(&listening.next().expect("a change")) {}
    drop(listening);
    let mut again = fixture.visitor.listen_after(Some(1)).expect("a place");
    assert_eq!(again.next(), Some(json!({ "seq": 3, "runs": [1], "tasks": [2, 3], "said": [] })));
    // An unknown sequence number belongs to another server.
    let mut new_listener = fixture.visitor.listen_after(Some(77)).expect("a place");
    assert_eq!(new_listener.next(), Some(json!({ "seq": 3 })));
}

#[test]
fn all_listeners_get_a_change() {
    let fixture = WebFixture::start();
    let mut all: Vec<_> = (0..5).map(|_| fixture.visitor.listen()).collect();
    all.iter_mut().for_each(|listener| assert_eq!(listener.next(), Some(json!({ "seq": 0 }))));
    fixture.probe.change(change_of(2, 4));
    for listener in &mut all {
        assert_eq!(listener.wait_for_task(4)["runs"], json!([2]));
    }
}

#[test]
fn listeners_over_the_limit_are_refused() {
    let fixture = WebFixture::start();
    let mut all: Vec<_> = (0..64).map(|_| fixture.visitor.listen()).collect();
    let refused = fixture.visitor.listen_after(None).expect_err("no place");
    assert_eq!(refused.status, 503);
    assert_eq!(fixture.visitor.get("/").status, 200);
    all.pop();
    wait_until("a place that is free again", || fixture.visitor.listen_after(None).is_ok());
}

#[test]
fn stopping_the_server_ends_all_streams() {
    let WebFixture { runtime, web, visitor, .. } = WebFixture::start();
    let mut all: Vec<_> = (0..3).map(|_| visitor.listen()).collect();
    all.iter_mut().for_each(|listener| assert!(listener.next().is_some()));
    runtime.block_on(web.shutdown());
    all.iter_mut().for_each(|listener| assert_eq!(listener.next(), None));
    assert!(std::net::TcpStream::connect(("127.0.0.1", visitor.port)).is_err());
}
