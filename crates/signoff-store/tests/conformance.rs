//! Conformance tests that run against every store backend.

mod deliveries;
mod factory;
mod leases;
mod log;
pub mod make;
mod properties;
mod queue;
mod random_run;
mod requests;
mod tables;

use factory::{MemoryFactory, SqliteFactory};

macro_rules! test_each_backend {
    ($($story:path as $name:ident),+ $(,)?) => {
        mod on_disk {
            use super::*;
            $(#[test] fn $name() { $story(&SqliteFactory::default()) })+
        }
        mod in_memory {
            use super::*;
            $(#[test] fn $name() { $story(&MemoryFactory::default()) })+
        }
    };
}

test_each_backend! {
    queue::tasks_are_numbered_in_order as tasks_are_numbered_in_order,
    queue::reserved_numbers_are_not_reused as reserved_numbers_are_not_reused,
    queue::a_withdrawn_task_leaves_the_queue as a_withdrawn_task_leaves_the_queue,
    queue::a_task_is_taken_once as a_task_is_taken_once,
    queue::a_task_added_by_a_run_belongs_to_that_run as a_task_added_by_a_run_belongs_to_that_run,
    queue::an_unknown_task_cannot_be_taken as an_unknown_task_cannot_be_taken,
    queue::a_tracker_id_is_claimed_by_one_task as a_tracker_id_is_claimed_by_one_task,
    queue::a_cancelled_task_releases_its_claim as a_cancelled_task_releases_its_claim,
    queue::a_reopened_tracker_task_is_claimed_once as a_reopened_tracker_task_is_claimed_once,
    queue::of_concurrent_claims_each_succeeds_once as of_concurrent_claims_each_succeeds_once,
    leases::one_holder_at_a_time as one_holder_at_a_time,
    leases::a_fenced_holder_cannot_write as a_fenced_holder_cannot_write,
    leases::of_concurrent_acquires_one_succeeds as of_concurrent_acquires_one_succeeds,
    leases::checking_a_lease_does_not_block_acquire as checking_a_lease_does_not_block_acquire,
    log::facts_round_trip as facts_round_trip,
    log::a_reader_gets_only_facts_after_a_sequence_number as a_reader_gets_only_facts_after_a_sequence_number,
    log::a_log_can_be_read_by_loop_and_in_parts as a_log_can_be_read_by_loop_and_in_parts,
    log::an_empty_append_adds_nothing as an_empty_append_adds_nothing,
    log::another_process_continues_a_run as another_process_continues_a_run,
    log::each_observer_gets_the_whole_log as each_observer_gets_the_whole_log,
    log::a_refused_append_changes_nothing as a_refused_append_changes_nothing,
    log::writers_of_different_runs_do_not_lose_facts as writers_of_different_runs_do_not_lose_facts,
    log::the_version_changes_when_another_process_writes as the_version_changes_when_another_process_writes,
    deliveries::a_delivered_message_stays_delivered as a_delivered_message_stays_delivered,
    deliveries::delivery_records_are_kept_for_a_week as delivery_records_are_kept_for_a_week,
    deliveries::expired_deliveries_are_removed as expired_deliveries_are_removed,
    requests::a_request_is_answered_once as a_request_is_answered_once,
    tables::a_task_from_queue_to_sign_off as a_task_from_queue_to_sign_off,
    tables::questions_are_numbered_across_runs as questions_are_numbered_across_runs,
    tables::findings_are_found_by_id_prefix as findings_are_found_by_id_prefix,
    tables::runs_are_open_until_all_work_is_done as runs_are_open_until_all_work_is_done,
    tables::reopening_a_loop_reopens_its_run as reopening_a_loop_reopens_its_run,
    tables::a_reopened_run_ends_again as a_reopened_run_ends_again,
    tables::a_rebuild_changes_nothing as a_rebuild_changes_nothing,
}
