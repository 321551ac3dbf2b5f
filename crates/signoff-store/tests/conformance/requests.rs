//! Requests to a run that another process works on.

use signoff_core::command::LoopCommand;
use signoff_core::ids::RunId;
use signoff_core::machine::Choice;
use signoff_store::{CommandRequest, StoreError};

use crate::conformance::factory::StoreFactory;
use crate::conformance::make;

pub fn a_request_is_answered_once(factory: &dyn StoreFactory) {
    let (executor, user) = (factory.open_store(), factory.open_store());
    let lease = executor.open_run(make::at(1)).expect("a run");
    let run = lease.run();
    let answer = LoopCommand::Answer { question: None, choice: Choice::Retry, by: "ann".into() };
    let cancel = LoopCommand::Cancel { by: "ann".into() };
    let first = user.post_request(run, &"A".into(), &answer).expect("posted");
    let second = user.post_request(run, &"B".into(), &cancel).expect("posted");
    assert!(matches!(user.post_request(RunId(9), &"A".into(), &cancel), Err(StoreError::NoRun(RunId(9)))));
    assert_eq!(user.request_answer(first).expect("query"), None);

    let request = |id, loop_id: &str, command| CommandRequest { id, loop_id: loop_id.into(), command };
    let open = executor.pending_requests(run).expect("requests");
    assert_eq!(open, [request(first, "A", answer), request(second, "B", cancel)]);
    executor.answer_request(first, None).expect("settled");
    executor.answer_request(second, Some("it has ended already")).expect("settled");
    assert_eq!(executor.pending_requests(run).expect("requests"), []);
    assert_eq!(user.request_answer(first).expect("query"), Some(Ok(())));
    assert_eq!(user.request_answer(second).expect("query"), Some(Err("it has ended already".into())));
    assert!(executor.answer_request(99, None).is_err() && executor.request_answer(99).is_err());

    executor.rebuild().expect("rebuilt");
    assert_eq!(user.request_answer(first).expect("query"), Some(Ok(())), "the table is not built from the log");
}
