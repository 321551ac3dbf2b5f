//! Requests to a run that another process works on.

use signoff_core::command::LoopCommand;
use signoff_core::ids::RunId;
use signoff_core::machine::Choice;
use signoff_store::{CommandRequest, StoreError};

use crate::conformance::factory::StoreFactory;
use crate::conformance::make;

pub fn a_request_is_answered_once(factory: &dyn StoreFactory) {
    let (driver, person) = (factory.open_store(), factory.open_store());
    let lease = driver.open_run(make::at(1)).expect("a run");
    let run = lease.run();
    let answer = LoopCommand::Answer { question: None, choice: Choice::Retry, by: "ann".into() };
    let cancel = LoopCommand::Cancel { by: "ann".into() };
    let first = person.post_request(run, &"A".into(), &answer).expect("posted");
    let second = person.post_request(run, &"B".into(), &cancel).expect("posted");
    assert!(matches!(person.post_request(RunId(9), &"A".into(), &cancel), Err(StoreError::NoRun(RunId(9)))));
    assert_eq!(person.request_answer(first).expect("looked"), None);

    let request = |id, loop_id: &str, command| CommandRequest { id, loop_id: loop_id.into(), command };
    let open = driver.pending_requests(run).expect("requests");
    assert_eq!(open, [request(first, "A", answer), request(second, "B", cancel)]);
    driver.answer_request(first, None).expect("settled");
    driver.answer_request(second, Some("it has ended already")).expect("settled");
    assert_eq!(driver.pending_requests(run).expect("requests"), []);
    assert_eq!(person.request_answer(first).expect("looked"), Some(Ok(())));
    assert_eq!(person.request_answer(second).expect("looked"), Some(Err("it has ended already".into())));
    assert!(driver.answer_request(99, None).is_err() && driver.request_answer(99).is_err());

    driver.rebuild().expect("rebuilt");
    assert_eq!(person.request_answer(first).expect("looked"), Some(Ok(())), "the table is not built from the log");
}
