//! Changes, as they are told to those who listen.

use std::collections::BTreeSet;

use serde_json::json;
use signoff_serve::web::Change;
use signoff_testkit::processes::until;

use crate::Site;

fn of(run: u64, task: u64) -> Change {
    Change { runs: BTreeSet::from([run]), tasks: BTreeSet::from([task]), ..Change::default() }
}

#[test]
fn who_begins_to_listen_hears_that_everything_may_be_new_and_then_what_is() {
    let site = Site::start();
    let mut listening = site.visitor.listen();
    assert_eq!(listening.next(), Some(json!({ "seq": 0 })));
    site.told.change(of(1, 3));
    assert_eq!(listening.next(), Some(json!({ "seq": 1, "runs": [1], "tasks": [3], "said": [] })));
    site.told.change(Change { said: BTreeSet::from([3]), ..Change::default() });
    assert_eq!(listening.next(), Some(json!({ "seq": 2, "runs": [], "tasks": [], "said": [3] })));
    site.told.change(Change::everything());
    assert_eq!(listening.next(), Some(json!({ "seq": 3 })));
}

#[test]
fn who_comes_back_hears_what_was_missed_at_once() {
    let site = Site::start();
    let mut listening = site.visitor.listen();
    listening.next();
    for task in 1..=3 {
        site.told.change(of(1, task));
    }
    let heard = |seq: &serde_json::Value| seq["seq"] == 3;
    while !heard(&listening.next().expect("a change")) {}
    drop(listening);
    let mut again = site.visitor.listen_after(Some(1)).expect("a place");
    assert_eq!(again.next(), Some(json!({ "seq": 3, "runs": [1], "tasks": [2, 3], "said": [] })));
    // A number that was never told is another server's.
    let mut stranger = site.visitor.listen_after(Some(77)).expect("a place");
    assert_eq!(stranger.next(), Some(json!({ "seq": 3 })));
}

#[test]
fn everybody_hears_it() {
    let site = Site::start();
    let mut all: Vec<_> = (0..5).map(|_| site.visitor.listen()).collect();
    all.iter_mut().for_each(|one| assert_eq!(one.next(), Some(json!({ "seq": 0 }))));
    site.told.change(of(2, 4));
    for one in &mut all {
        assert_eq!(one.hears_of_task(4)["runs"], json!([2]));
    }
}

#[test]
fn too_many_are_told_so_and_who_leaves_makes_room() {
    let site = Site::start();
    let mut all: Vec<_> = (0..64).map(|_| site.visitor.listen()).collect();
    let refused = site.visitor.listen_after(None).expect_err("no place");
    assert_eq!(refused.status, 503);
    assert_eq!(site.visitor.get("/").status, 200);
    all.pop();
    until("a place that is free again", || site.visitor.listen_after(None).is_ok());
}

#[test]
fn the_end_of_the_server_ends_all_listening() {
    let Site { runtime, web, visitor, .. } = Site::start();
    let mut all: Vec<_> = (0..3).map(|_| visitor.listen()).collect();
    all.iter_mut().for_each(|one| assert!(one.next().is_some()));
    runtime.block_on(web.end());
    all.iter_mut().for_each(|one| assert_eq!(one.next(), None));
    assert!(std::net::TcpStream::connect(("127.0.0.1", visitor.port)).is_err());
}
