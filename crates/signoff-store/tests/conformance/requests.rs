//! Wishes for a run that somebody else drives.

use signoff_core::command::Command;
use signoff_core::ids::RunId;
use signoff_store::{Request, StoreError};

use crate::house::House;
use crate::say;

pub fn a_wish_is_answered_once(house: &dyn House) {
    let (driver, person) = (house.program(), house.program());
    let lease = driver.open_run(say::at(1)).expect("a run");
    let run = lease.run();
    let answer = Command::Answer { question: None, choice: "retry".into(), by: "ann".into() };
    let cancel = Command::Cancel { by: "ann".into() };
    let first = person.post(run, &"A".into(), &answer).expect("posted");
    let second = person.post(run, &"B".into(), &cancel).expect("posted");
    assert!(matches!(person.post(RunId(9), &"A".into(), &cancel), Err(StoreError::NoRun(RunId(9)))));
    assert_eq!(person.answer(first).expect("looked"), None);

    let request = |id, loop_id: &str, command| Request { id, loop_id: loop_id.into(), command };
    let open = driver.requests(run).expect("requests");
    assert_eq!(open, [request(first, "A", answer), request(second, "B", cancel)]);
    driver.settle(first, None).expect("settled");
    driver.settle(second, Some("it has ended already")).expect("settled");
    assert_eq!(driver.requests(run).expect("requests"), []);
    assert_eq!(person.answer(first).expect("looked"), Some(Ok(())));
    assert_eq!(person.answer(second).expect("looked"), Some(Err("it has ended already".into())));
    assert!(driver.settle(99, None).is_err() && driver.answer(99).is_err());

    driver.rebuild().expect("rebuilt");
    assert_eq!(person.answer(first).expect("looked"), Some(Ok(())), "no table that is told from the log");
}
