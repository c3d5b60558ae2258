//! The library's own option types, filled in from the configuration.

use baton_server::engine::options::Options;
use baton_server::store::sqlite;

use super::schema::Config;

impl Config {
    /// Bounds of the turns and tasks of all agents, and how long things are kept.
    pub(crate) fn engine_options(&self) -> Options {
        let (limits, kept) = (&self.limits, &self.retention);
        let mut options = Options::default();
        options.max_running = *limits.max_running;
        options.max_queued = *limits.max_queued;
        options.max_pending_messages = *limits.max_pending_messages;
        options.send_wait = *limits.send_wait;
        options.cancel_grace = *limits.cancel_grace;
        options.turn_deadline = *limits.turn_deadline;
        options.turn_idle = *limits.turn_idle;
        options.answer_wait = *limits.answer_wait;
        options.text_merge = *limits.text_merge;
        options.max_event_bytes = limits.max_event.bytes();
        options.max_parts = *limits.max_parts;
        options.max_references = *limits.max_references;
        options.snapshot_events = *limits.snapshot_events;
        options.snapshot_bytes = limits.snapshot_bytes.bytes();
        options.retention.ended = *kept.ended;
        options.retention.fold = *kept.fold;
        options.retention.max_tasks = *kept.max_tasks;
        options.retention.min_age = *kept.min_age;
        options.retention.records = *kept.records;
        options.retention.every = *kept.every;
        options
    }

    pub(crate) fn sqlite_options(&self) -> sqlite::Options {
        sqlite::Options { readers: *self.store.readers, batch: *self.store.batch, ..sqlite::Options::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bound that is not carried over would show: the library's debug form has every field.
    #[test]
    fn the_defaults_are_the_librarys_and_every_bound_is_carried_over() {
        let config = Config::default();
        let options = Options::default();
        assert_eq!(format!("{:?}", config.engine_options()), format!("{options:?}"));
        assert_eq!(config.sqlite_options(), sqlite::Options::default());
    }
}
