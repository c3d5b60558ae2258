//! The library's own option types, filled in from the configuration.

use baton_server::Connections;
use baton_server::Options;
use baton_server::store::sqlite;

use super::schema::Config;

impl Config {
    /// Limits on turns and tasks of all agents, and retention.
    pub(crate) fn engine_options(&self) -> Options {
        let (limits, kept) = (&self.limits, &self.retention);
        let mut options = Options::default();
        options.max_running = *limits.max_running;
        options.max_queued = *limits.max_queued;
        options.owners.max_running = *limits.owner_running;
        options.owners.max_queued = *limits.owner_queued;
        options.owners.max_tasks = *limits.owner_tasks;
        options.owners.max_bytes = limits.owner_bytes.0;
        options.owners.rate_send = *limits.rate_send;
        options.owners.rate_read = *limits.rate_read;
        options.owners.rate_subscribe = *limits.rate_subscribe;
        options.owners.rate_burst = *limits.rate_burst;
        options.owners.max_counted = *limits.max_counted_callers;
        options.max_pending_messages = *limits.max_pending_messages;
        options.send_wait = *limits.send_wait;
        options.cancel_grace = *limits.cancel_grace;
        options.turn_deadline = *limits.turn_deadline;
        options.turn_idle = *limits.turn_idle;
        options.answer_wait = *limits.answer_wait;
        options.store_patience = *limits.store_patience;
        options.text_merge = *limits.text_merge;
        options.max_event_bytes = limits.max_event.bytes();
        options.max_parts = *limits.max_parts;
        options.max_metadata_bytes = limits.max_metadata.bytes();
        options.max_object_keys = *limits.max_object_keys;
        options.max_json_depth = *limits.max_json_depth;
        options.max_artifacts = *limits.max_artifacts;
        options.max_artifact_bytes = limits.max_artifact_bytes.0;
        options.max_history = *limits.max_history;
        options.internal_file_urls = *limits.internal_file_urls;
        options.max_references = *limits.max_references;
        options.snapshot_events = *limits.snapshot_events;
        options.snapshot_bytes = limits.snapshot_bytes.bytes();
        options.tail_events = *limits.tail_events;
        options.tail_bytes = limits.tail_bytes.bytes();
        options.retention.ended = *kept.ended;
        options.retention.fold = *kept.fold;
        options.retention.max_tasks = *kept.max_tasks;
        options.retention.min_age = *kept.min_age;
        options.retention.records = *kept.records;
        options.retention.webhooks = *kept.webhooks;
        options.retention.every = *kept.every;
        options
    }

    pub(crate) fn connection_bounds(&self) -> Connections {
        let said = &self.connections;
        let mut bounds = Connections::default();
        bounds.first_byte = *said.first_byte;
        bounds.handshake = *said.handshake;
        bounds.head = *said.head;
        bounds.idle = *said.idle;
        bounds.body_total = *said.body_total;
        bounds.body_grace = *said.body_grace;
        bounds.body_rate = said.body_rate.0;
        bounds.reader_stall = *said.reader_stall;
        bounds.max_connections = *said.max_connections;
        bounds.max_per_address = *said.max_per_address;
        bounds.max_streams = *said.max_streams;
        bounds.max_streams_per_owner = *said.max_streams_per_owner;
        bounds.max_requests_per_owner = *said.max_requests_per_owner;
        bounds.max_bodies_bytes = said.max_bodies.bytes();
        bounds.max_answers_bytes = said.max_answers.bytes();
        bounds.max_answers_per_connection = said.max_answers_per_connection.bytes();
        bounds.room_wait = *said.room_wait;
        bounds.crowded_stall = *said.crowded_stall;
        bounds.max_unsent_bytes = u32::try_from(said.max_unsent.0).unwrap_or(u32::MAX);
        bounds.max_head_bytes = said.max_head.bytes();
        bounds.max_header_list_bytes = u32::try_from(said.max_header_list.0).unwrap_or(u32::MAX);
        bounds.max_concurrent_requests = *said.max_concurrent_requests;
        bounds.max_concurrent_requests_of_proxy = *said.max_concurrent_requests_of_proxy;
        bounds.write_buffer = said.write_buffer.bytes();
        bounds.last_patience = *said.last_patience;
        bounds.flood_burst = *said.flood_burst;
        bounds.flood_rate = *said.flood_rate;
        bounds.linger = *said.linger;
        bounds.linger_bytes = said.linger_bytes.bytes();
        bounds
    }

    pub(crate) fn sqlite_options(&self) -> sqlite::Options {
        let mut options = sqlite::Options::default();
        options.readers = *self.store.readers;
        options.batch = *self.store.batch;
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::setting::{Field, Section, Sections, Source, Visit};
    use crate::config::value::Shown;

    #[test]
    fn the_defaults_are_the_librarys() {
        let config = Config::default();
        assert_eq!(format!("{:?}", config.engine_options()), format!("{:?}", Options::default()));
        assert_eq!(format!("{:?}", config.connection_bounds()), format!("{:?}", Connections::default()));
        assert_eq!(config.sqlite_options(), sqlite::Options::default());
    }

    /// Changes every value: doubles it, or halves it if that is too much. A library option that does not change has no
    /// key, or is not copied.
    #[test]
    fn every_bound_can_be_set() {
        let mut config = Config::default();
        config.limits.visit(&mut Change);
        config.retention.visit(&mut Change);
        config.connections.visit(&mut Change);
        check(&format!("{:#?}", Options::default()), &format!("{:#?}", config.engine_options()));
        check(&format!("{:#?}", Connections::default()), &format!("{:#?}", config.connection_bounds()));
    }

    fn check(usual: &str, doubled: &str) {
        assert_eq!(usual.lines().count(), doubled.lines().count());
        let lines = usual.lines().zip(doubled.lines());
        for (usual, doubled) in lines.filter(|(line, _)| line.ends_with(',') && line.contains(':')) {
            assert_ne!(usual, doubled, "it has no key");
        }
    }

    struct Change;

    impl Visit for Change {
        fn field(&mut self, _name: &'static str, field: &mut dyn Field) {
            let (number, unit) = match field.show() {
                Shown::Whole(number) => (number, String::new()),
                Shown::Text(text) => {
                    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap();
                    (text[..digits].parse().unwrap(), text[digits..].to_owned())
                }
                Shown::Flag(on) => {
                    return field.accept_text(&(!on).to_string(), Source::Flag("--other")).unwrap();
                }
                other => panic!("{other:?}"),
            };
            let mut accept =
                |number: u64| field.accept_text(&format!("{number}{unit}"), Source::Flag("--other"));
            // Zero may mean: no limit.
            let doubled = if number == 0 { 1 } else { number * 2 };
            accept(doubled).or_else(|_| accept(number / 2)).unwrap();
        }

        fn table(&mut self, _name: &'static str, _section: &mut dyn Section) {}

        fn list(&mut self, _name: &'static str, _sections: &mut dyn Sections) {}
    }
}
