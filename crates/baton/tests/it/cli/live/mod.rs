//! What the client commands do with any agent that knows the `tck-` phrases. These tests run it with the demo agent;
//! `cargo xtask interop --client` runs the same with agents of other SDKs (`crates/baton/examples/cli_tour`).
//!
//! Each check is named after the requirements of the CLI specification that it shows.

mod cards;
mod output;
mod sending;
mod tasks;

use std::process::Command;

use super::user::{Said, User};

/// A user who talks to one agent by one binding. Agent, binding and credential come from variables.
pub(crate) struct Live {
    pub(crate) user: User,
    pub(crate) url: String,
    bearer: Option<String>,
    /// As `--transport` takes it.
    pub(crate) transport: &'static str,
}

/// A check and its name.
#[cfg(not(test))]
pub(crate) type Check = (&'static str, fn(&Live));

/// Every binding, and its name on cards.
pub(crate) const TRANSPORTS: [(&str, &str); 3] =
    [("jsonrpc", "JSONRPC"), ("rest", "HTTP+JSON"), ("grpc", "GRPC")];

const COMPLETED: &str = "TASK_STATE_COMPLETED";
const CANCELED: &str = "TASK_STATE_CANCELED";
const INPUT_REQUIRED: &str = "TASK_STATE_INPUT_REQUIRED";
const AUTH_REQUIRED: &str = "TASK_STATE_AUTH_REQUIRED";

impl Live {
    pub(crate) fn new(url: &str, bearer: Option<&str>, transport: &'static str) -> Self {
        Live { user: User::new(), url: url.to_owned(), bearer: bearer.map(str::to_owned), transport }
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.with_settings(self.user.command(args))
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        Said::of(&mut self.command(args))
    }

    fn with_settings(&self, mut command: Command) -> Command {
        command.env("A2ACLI_AGENT_CARD", &self.url).env("A2ACLI_TRANSPORT", self.transport);
        command
            .env("A2ACLI_POLL_INTERVAL", "100ms")
            .envs(self.bearer.as_ref().map(|it| ("A2ACLI_BEARER", it)));
        command
    }

    /// A line that was printed to be copied.
    fn paste(&self, line: &str) -> Said {
        Said::of(&mut self.with_settings(self.user.paste(line)))
    }

    /// A task that goes on until it is canceled.
    fn start_task(&self) -> Said {
        self.run(&["send", "tck-cancel", "--async"]).ok()
    }

    /// The binding's name on cards.
    fn binding(&self) -> &'static str {
        TRANSPORTS.iter().find(|(name, _)| *name == self.transport).unwrap().1
    }

    /// The bindings of this agent.
    pub(crate) fn offered(&self) -> Vec<&'static str> {
        let card = self.run(&["card", "get", "-o", "json"]).ok().json();
        let interfaces = card["supportedInterfaces"].as_array().unwrap();
        let is_offered = |on_card: &str| {
            let fits = |it: &&serde_json::Value| {
                it["protocolBinding"] == on_card
                    && it["protocolVersion"].as_str().is_some_and(|it| it.starts_with("1."))
            };
            interfaces.iter().any(|it| fits(&it))
        };
        TRANSPORTS.iter().filter(|(_, on_card)| is_offered(on_card)).map(|(name, _)| *name).collect()
    }
}

macro_rules! checks {
    ($($module:ident::$name:ident,)+) => {
        /// Every check.
        #[cfg(not(test))]
        pub(crate) const CHECKS: &[Check] = &[$((stringify!($name), $module::$name)),+];

        #[cfg(test)]
        mod demo_agent {
            $(
                #[test]
                fn $name() {
                    let served = crate::served::Served::with_grpc();
                    for (transport, _) in super::TRANSPORTS {
                        super::$module::$name(&super::Live::new(&served.url, None, transport));
                    }
                }
            )+
        }
    };
}

checks! {
    cards::p09_cli_card_get_001_a_card_is_found_by_host_address_or_file_and_used,
    cards::p09_cli_card_get_002_a_card_is_valid_or_its_problems_are_named,
    cards::p09_cli_tx_001_002_the_card_s_order_unless_a_binding_is_preferred,
    cards::p09_cli_tx_004_all_bindings_show_the_same,
    cards::p09_cli_ver_001_the_version_is_in_every_request,
    sending::p09_cli_send_001_a_message_opens_an_interaction,
    sending::p09_cli_send_002_waits_by_default_and_leaves_at_once_with_async,
    sending::p09_cli_send_003_events_as_they_come_and_a_message_is_a_clean_end,
    sending::p09_cli_send_004_artifacts_of_every_kind_are_shown,
    sending::p09_cli_interact_001_002_conversations_go_on_by_explicit_ids,
    sending::p09_cli_interact_002_a_refused_id_fails_and_begins_nothing,
    sending::p09_cli_interact_004_the_printed_commands_go_on,
    sending::p09_cli_exit_002_what_becomes_of_the_task_does_not_change_the_status,
    sending::p09_cli_auth_011_an_authorization_is_asked_for_and_then_the_task_goes_on,
    sending::p09_cli_chat_001_context_and_task_are_carried,
    tasks::p09_cli_task_get_001_state_artifacts_and_history,
    tasks::p09_cli_task_cancel_001_the_resulting_state_is_shown,
    tasks::p09_cli_task_poll_001_one_look_or_until_the_end,
    tasks::p09_cli_task_poll_002_a_timeout_ends_the_wait_and_keeps_the_id,
    tasks::p09_cli_task_poll_003_a_pause_ends_the_wait,
    tasks::p09_cli_task_list_001_pages_and_filters,
    tasks::p09_cli_task_subscribe_001_the_first_event_is_the_task,
    tasks::p09_cli_download_001_artifacts_are_saved_in_the_folder,
    output::p09_cli_out_001_002_003_ids_and_state_in_every_form,
    output::p09_cli_out_004_errors_are_envelopes_with_the_protocol_s_names,
    output::p09_cli_out_006_an_async_result_has_both_ids,
    output::p09_cli_out_007_debug_shows_the_exchanged_messages,
    output::p09_cli_exit_001_statuses_by_kind_of_failure,
    output::p09_cli_conform_001_the_agent_s_card_is_checked,
}
