//! The contract as cases that every backend runs (feature `store-suite`). For a store of your own:
//!
//! ```
//! # use baton_server::store::memory::MemoryStore as MyStore;
//! use baton_server::store::suite;
//!
//! # /*
//! #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
//! # */
//! async fn my_store_keeps_the_contract() {
//!     suite::check(|| async { MyStore::new() }).await;
//! }
//!
//! # /*
//! #[test]
//! # */
//! fn any_sequence_of_calls_is_answered_like_the_model() {
//!     suite::check_model(|| async { MyStore::new() });
//! }
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(my_store_keeps_the_contract());
//! ```
//!
//! The example `own_store` is a whole store that does this.

// A case is an async function over `&Arc<dyn Store>` in the file of its theme and a name in `for_every_case`; one that
// is not named there is dead code, which the compiler reports. A backend of ours is one line at the end of this file.

mod append;
mod check;
mod credential;
mod extremes;
pub(super) mod fixture;
#[cfg(test)]
pub(crate) mod golden;
mod idempotency;
mod list;
mod model;
mod owner;
mod races;
mod reading;
mod recovery;
mod request;
mod retention;
mod scope;
mod webhook;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

pub use fixture::Fixture;

use super::Store;
#[cfg(test)]
use super::memory::MemoryStore;
#[cfg(all(test, feature = "sqlite"))]
use super::sqlite::{Options, SqliteStore};

/// One case of the contract. [`check`] runs all of them; a test harness of your own may run them by name.
#[derive(Clone, Copy)]
pub struct Case {
    name: &'static str,
    run: fn(Arc<dyn Store>) -> Running,
}

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Case {
    /// Its theme and what it says: `append::a_conflict_writes_nothing`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Runs it on an empty store, in a runtime with more than one thread. Panics where the store does not do what the
    /// contract says.
    pub async fn check(&self, store: Arc<dyn Store>) {
        (self.run)(store).await;
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All of them.
pub fn cases() -> &'static [Case] {
    CASES
}

/// Runs all cases, each on a store of its own that `open` makes: an empty store, or a pair of one and whatever must live
/// as long (a temporary folder, a schema). Runs in a runtime with more than one thread, since stores are raced. Panics
/// at the end with the names of the cases that failed.
pub async fn check<S: Into<Fixture>, F: Future<Output = S>>(open: impl Fn() -> F) {
    let mut failed = Vec::new();
    for case in cases() {
        let fixture = open().await.into();
        let store = Arc::clone(&fixture.store);
        // A task of its own, so that a panic ends this case and no other.
        if tokio::spawn(case.check(store)).await.is_err() {
            failed.push(case.name);
        }
    }
    assert!(failed.is_empty(), "{} of {} cases failed: {}", failed.len(), CASES.len(), failed.join(", "));
}

/// Makes random sequences of calls, each on a store of its own, and compares the answers with those of a plain
/// implementation of the contract. In a runtime of its own: not to be called in another. Panics with the shortest
/// sequence that is answered otherwise.
pub fn check_model<S: Into<Fixture>, F: Future<Output = S>>(open: impl Fn() -> F) {
    model::check(async || open().await.into());
}

/// The cases that new backends most often fail: run these first (`docs/stores.md`).
#[cfg(test)]
const HARDEST: [&str; 10] = [
    "races::one_of_64_appenders_wins",
    "races::one_of_20_births_for_one_message_wins",
    "races::requests_never_exceed_the_bound",
    "races::a_load_between_appends_is_whole",
    "append::a_conflict_writes_nothing",
    "idempotency::a_duplicate_writes_nothing",
    "request::settling_writes_the_number_into_the_record",
    "list::paging_shows_each_of_1000_tasks_once",
    "list::ties_are_broken_by_the_bytes_of_the_id",
    "retention::folding_keeps_the_task_and_drops_its_events",
];

macro_rules! for_every_case {
    ($then:ident) => {
        $then! {
            append {
                a_birth_makes_the_task
                a_birth_with_a_taken_id_conflicts
                a_task_that_is_not_there_conflicts
                another_version_conflicts
                another_fence_conflicts
                a_conflict_writes_nothing
                events_are_numbered_without_a_gap
                a_thousand_events_in_one_append
                an_append_without_events_changes_the_head_alone
                the_head_is_kept_as_told
                the_birth_is_kept_as_told
                a_snapshot_is_replaced_and_otherwise_kept
                stores_never_decide
                keys_are_unique_and_never_reused
            }
            request {
                requests_are_noted_oldest_first
                a_request_changes_no_state
                request_ids_rise_even_after_settling
                an_unknown_task_is_not_found
                an_ended_task_takes_no_request
                a_full_task_takes_no_request
                settled_requests_are_removed_and_others_stay
                settling_writes_the_number_into_the_record
                a_request_settled_into_nothing_leaves_its_record
                settling_what_is_not_pending_is_no_fault
                the_same_message_is_noted_once
                a_duplicate_is_told_before_anything_else
                a_noted_event_enters_the_log_renumbered
                a_task_does_not_end_before_its_messages_are_written
            }
            idempotency {
                a_record_is_kept_as_told
                an_unknown_message_has_no_record
                a_duplicate_writes_nothing
                a_duplicate_birth_makes_no_task
                a_duplicate_is_told_before_a_conflict
                a_duplicate_of_a_noted_request_is_told
                the_same_id_with_another_hash_is_another_message
                the_first_reply_is_kept
                a_reply_and_a_task_share_one_record
                s12_a_record_is_found_under_any_version_of_its_hash
            }
            reading {
                nothing_is_read_of_an_unknown_task
                a_load_is_the_snapshot_and_the_events_after_it
                a_snapshot_of_the_last_version_leaves_no_tail
                events_come_after_a_number_up_to_a_limit
                events_stop_early_by_bytes
                what_is_loaded_folds_into_the_task
            }
            scope {
                foreign_scopes_read_nothing
                foreign_scopes_write_nothing
                the_same_names_live_side_by_side
                names_that_run_together_stay_apart
                s12_nothing_is_left_of_invented_tenants
                s12_calls_that_write_nothing_leave_nothing
                s12_a_message_record_keeps_its_scope
                s12_a_scope_that_was_removed_may_come_back
            }
            list {
                newest_status_comes_first
                ties_are_broken_by_the_bytes_of_the_id
                a_new_status_moves_the_task
                a_context_narrows
                states_narrow
                a_state_named_twice_counts_once
                updated_since_is_inclusive
                nothing_is_newer_than_the_bound
                filters_narrow_together
                a_position_need_not_exist
                a_page_holds_at_most_the_limit
                paging_shows_each_of_1000_tasks_once
                paging_through_a_context_shows_each_once
                new_tasks_do_not_disturb_a_listing
                rows_are_whole_tasks
                the_total_is_what_a_listing_shows
                the_total_of_a_large_context_stays_right
                a_page_tells_whether_others_follow
                a_page_is_bounded_in_bytes
                brief_tasks_say_what_their_status_says
            }
            retention {
                folding_keeps_the_task_and_drops_its_events
                s12_folding_goes_as_far_as_the_snapshot
                folding_leaves_what_lives_or_ended_later
                folding_goes_up_to_the_limit_and_then_on
                purging_removes_the_oldest_first
                purging_leaves_what_lives_or_ended_later
                purging_removes_events_requests_and_rows
                message_records_outlive_their_task
                records_go_once_old_and_their_task_is_gone
                replies_go_once_old
                records_go_up_to_the_limit
                a_purged_id_may_be_born_again
                tasks_of_all_scopes_are_counted
            }
            owner {
                s12_a_task_counts_its_events_its_snapshot_and_its_requests
                s12_what_is_not_written_counts_nothing
                s12_folding_and_purging_give_the_room_back
                s12_message_records_and_replies_count_until_they_are_removed
                s12_all_scopes_of_an_owner_count_together
                s12_nothing_is_counted_twice_or_lost_in_a_race
            }
            recovery {
                queued_and_running_tasks_are_open
                a_pending_request_keeps_an_idle_task_open
                open_tasks_come_page_by_page_by_key
                the_first_secret_is_kept
                secrets_are_any_bytes_under_any_name
                a_secret_is_replaced_by_whoever_knows_it
                the_last_note_is_kept
            }
            credential {
                s16_credentials_are_kept_as_given
                s16_the_last_record_of_a_credential_is_kept
                s16_a_removed_credential_is_gone
            }
            webhook {
                s14_a_webhook_begins_after_the_last_event
                s14_a_webhook_that_comes_with_the_task_misses_nothing
                s14_a_task_has_several_webhooks_up_to_a_limit
                s14_a_replaced_webhook_goes_on_where_it_was
                s14_a_webhook_of_an_ended_task_is_finished
                s14_whoever_knows_the_revision_moves_the_webhook
                s14_a_removed_webhook_is_gone
                s14_an_old_revision_removes_nothing
                s14_open_webhooks_come_page_by_page
                s14_retention_waits_for_open_webhooks_within_a_bound
                s14_webhooks_count_for_their_owner
                s14_failed_webhooks_outlive_their_task
                s14_webhooks_of_tasks_that_ended_are_found_oldest_first
                s14_one_of_20_moves_wins
                s14_no_webhook_stays_open_beside_the_end
            }
            check {
                a_store_that_works_says_so
                a_check_changes_nothing_that_is_shown
                checks_and_appends_go_side_by_side
            }
            races {
                one_of_64_appenders_wins
                one_of_64_births_of_one_id_wins
                one_of_20_births_for_one_message_wins
                one_of_20_requests_for_one_message_is_noted
                requests_never_exceed_the_bound
                appenders_that_read_again_all_get_through
                a_load_between_appends_is_whole
                requests_and_settling_lose_none
                no_message_slips_in_beside_the_end
                s12_a_task_is_found_however_often_its_scope_was_empty
                one_of_20_secrets_is_kept
                one_of_20_replaces_a_secret
                one_of_20_replies_is_kept
            }
            extremes {
                ids_with_odd_characters
                scopes_with_odd_characters
                times_far_away
                numbers_of_64_bits
                an_event_of_one_mebibyte
                a_snapshot_and_a_reply_of_one_mebibyte
            }
        }
    };
}

macro_rules! list_cases {
    ($($theme:ident { $($case:ident)* })*) => {
        const CASES: &[Case] = &[$($(Case {
            name: concat!(stringify!($theme), "::", stringify!($case)),
            run: |store| Box::pin(async move { $theme::$case(&store).await }),
        },)*)*];
    };
}

for_every_case!(list_cases);

#[cfg(test)]
macro_rules! test_cases {
    ($($theme:ident { $($case:ident)* })*) => {
        $(mod $theme {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let fixture = super::open().await;
                    crate::store::suite::$theme::$case(&fixture.store).await;
                }
            )*
        })*
    };
}

/// Runs the whole suite on one backend. The factory is called once per case; it returns an empty store, or a pair of an
/// empty store and a value that must live as long as the store (a temporary folder, for example).
#[cfg(test)]
macro_rules! store_suite {
    ($backend:ident, $factory:expr) => {
        mod $backend {
            use super::*;

            async fn open() -> fixture::Fixture {
                fixture::Fixture::from(($factory)().await)
            }

            for_every_case!(test_cases);

            #[test]
            fn any_sequence_of_calls_is_answered_like_the_model() {
                check_model(open);
            }
        }
    };
}

#[test]
fn the_hardest_cases_are_cases() {
    for name in HARDEST {
        assert!(CASES.iter().any(|case| case.name == name), "{name}");
    }
}

#[cfg(test)]
store_suite!(memory, || async { MemoryStore::new() });
#[cfg(all(test, feature = "sqlite"))]
store_suite!(sqlite, || async {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = SqliteStore::open(folder.path().join("baton.db"), Options::default()).expect("a fresh store");
    (store, folder)
});
#[cfg(all(test, feature = "postgres"))]
store_suite!(postgres, crate::store::postgres::tests::open);
#[cfg(all(test, feature = "redis"))]
store_suite!(redis, crate::store::redis::tests::open);
