//! What every store does, told once and asked of each back end.

mod drive;
mod house;
mod laws;
mod leases;
mod log;
mod queue;
mod requests;
mod say;
mod tables;

use house::{InMemory, OnDisk};

macro_rules! asked_of_each {
    ($($story:path as $name:ident),+ $(,)?) => {
        mod on_disk {
            use super::*;
            $(#[test] fn $name() { $story(&OnDisk::default()) })+
        }
        mod in_memory {
            use super::*;
            $(#[test] fn $name() { $story(&InMemory::default()) })+
        }
    };
}

asked_of_each! {
    queue::tasks_are_numbered_in_order as tasks_are_numbered_in_order,
    queue::reserved_numbers_are_given_to_nobody_else as reserved_numbers_are_given_to_nobody_else,
    queue::a_withdrawn_task_is_out_of_the_queue as a_withdrawn_task_is_out_of_the_queue,
    queue::a_task_is_taken_once as a_task_is_taken_once,
    queue::a_task_of_a_runs_own_log_is_its_own as a_task_of_a_runs_own_log_is_its_own,
    queue::an_unknown_task_cannot_be_taken as an_unknown_task_cannot_be_taken,
    queue::what_a_tracker_knows_is_one_task as what_a_tracker_knows_is_one_task,
    queue::a_cancelled_task_gives_its_claim_up as a_cancelled_task_gives_its_claim_up,
    queue::what_was_opened_again_is_had_once as what_was_opened_again_is_had_once,
    queue::a_hundred_claims_are_raced_and_each_is_had_once as a_hundred_claims_are_raced_and_each_is_had_once,
    leases::one_holder_at_a_time as one_holder_at_a_time,
    leases::a_holder_that_was_taken_over_writes_nothing as a_holder_that_was_taken_over_writes_nothing,
    leases::many_ask_and_one_gets_it as many_ask_and_one_gets_it,
    leases::looking_disturbs_nobody as looking_disturbs_nobody,
    log::facts_come_back_as_they_were_written as facts_come_back_as_they_were_written,
    log::what_was_added_after_a_fact as what_was_added_after_a_fact,
    log::parts_of_a_log as parts_of_a_log,
    log::nothing_is_a_fact_less as nothing_is_a_fact_less,
    log::another_program_goes_on_where_one_stopped as another_program_goes_on_where_one_stopped,
    log::what_is_refused_leaves_no_trace as what_is_refused_leaves_no_trace,
    log::writers_of_different_runs_do_not_lose_facts as writers_of_different_runs_do_not_lose_facts,
    log::the_version_tells_that_another_program_wrote as the_version_tells_that_another_program_wrote,
    requests::a_wish_is_answered_once as a_wish_is_answered_once,
    tables::a_task_from_queue_to_sign_off as a_task_from_queue_to_sign_off,
    tables::questions_are_numbered_across_runs as questions_are_numbered_across_runs,
    tables::findings_are_found_by_their_first_characters as findings_are_found_by_their_first_characters,
    tables::runs_are_open_until_nothing_is_left_to_do as runs_are_open_until_nothing_is_left_to_do,
    tables::a_loop_that_is_reopened_opens_its_run as a_loop_that_is_reopened_opens_its_run,
    tables::a_run_whose_loop_was_reopened_ends_anew as a_run_whose_loop_was_reopened_ends_anew,
    tables::a_rebuild_changes_nothing as a_rebuild_changes_nothing,
}
