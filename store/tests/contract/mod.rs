//! What any store must do, whatever it's made of.
//!
//! A store's own test file says how one is opened and lets [`every_store`] make
//! a test of each case:
//!
//! ```ignore
//! async fn open() -> (Arc<dyn State>, impl Sized) { … }
//! contract::every_store!(open);
//! ```

pub(crate) mod delivery;
pub(crate) mod given;
pub(crate) mod load;
pub(crate) mod message;
pub(crate) mod session;
pub(crate) mod story;
pub(crate) mod turn;

/// One test for each case of the contract, each with a store of its own.
macro_rules! every_store {
    (@cases $open:path; $($subject:ident { $($case:ident)+ })+) => {$(
        mod $subject {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let (store, _kept) = $open().await;
                    crate::contract::$subject::$case(store).await;
                }
            )+
        }
    )+};
    ($open:ident) => {
        mod keeps {
            $crate::contract::every_store! { @cases super::super::$open;
                message {
                    a_message_is_taken_once
                    a_message_id_counts_within_its_place
                    a_message_comes_back_as_it_was_handed_in
                    a_full_session_takes_no_more
                    messages_say_how_many_are_before_them
                    a_command_is_carried_out_once
                    a_command_and_a_message_share_ids
                    a_command_that_cant_be_carried_out_leaves_nothing
                }
                session {
                    a_channel_is_known_from_its_first_message
                    commands_change_the_session_and_the_settings
                    a_session_of_another_channel_is_not_switched_to
                    sessions_come_last_used_first_and_in_pages
                    an_engine_session_belongs_to_one_session
                    what_is_missing_is_named
                }
                turn {
                    a_turn_takes_what_waits_oldest_first
                    a_session_has_one_running_turn
                    sessions_wait_in_order_until_a_turn_runs
                    a_running_turn_is_found_again
                    attempts_are_counted
                    a_turn_ends_once
                    an_end_that_fails_changes_nothing
                    a_turn_that_answers_tells_of_failed_deliveries
                }
                delivery {
                    deliveries_come_in_order_and_in_pages
                    deliveries_go_to_their_provider_and_channels
                    a_delivery_is_done_with_its_last_piece
                    a_delivery_that_failed_is_no_longer_pending
                    a_request_is_queued_once
                    attempts_are_counted
                }
                story {
                    lines_are_what_was_said
                    counts_are_what_there_is_to_do
                    a_trace_is_found_by_each_kind_of_id
                    a_trace_is_cut_at_its_old_end
                    the_caller_is_whom_the_turn_answers
                }
                load {
                    many_channels_lose_and_mix_up_nothing
                    one_message_from_many_tasks_is_taken_once
                    a_turn_is_begun_once_by_many_tasks
                    a_journal_keeps_its_order
                    a_change_outlives_its_caller
                }
            }
        }
    };
}
pub(crate) use every_store;
