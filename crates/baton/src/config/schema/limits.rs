//! Limits of the server and of one agent, and retention. The defaults are the library's.

use std::time::Duration;

use crate::config::setting::{Section, Setting, Visit};
use crate::config::value::Size;

const KIB: u64 = 1024;
const GIB: u64 = KIB * KIB * KIB;

/// Limits on requests and on work.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) max_body: Setting<Size>,
    pub(crate) default_page: Setting<u32>,
    pub(crate) max_page: Setting<u32>,
    pub(crate) max_page_bytes: Setting<Size>,
    pub(crate) legacy_wait: Setting<Duration>,
    pub(crate) keep_alive: Setting<Duration>,
    pub(crate) max_running: Setting<usize>,
    pub(crate) max_queued: Setting<usize>,
    pub(crate) owner_running: Setting<usize>,
    pub(crate) owner_queued: Setting<usize>,
    pub(crate) owner_tasks: Setting<u64>,
    pub(crate) owner_bytes: Setting<Size>,
    pub(crate) rate_send: Setting<u32>,
    pub(crate) rate_read: Setting<u32>,
    pub(crate) rate_subscribe: Setting<u32>,
    pub(crate) rate_burst: Setting<u32>,
    pub(crate) max_counted_callers: Setting<usize>,
    pub(crate) max_pending_messages: Setting<u32>,
    pub(crate) send_wait: Setting<Duration>,
    pub(crate) cancel_grace: Setting<Duration>,
    pub(crate) turn_deadline: Setting<Duration>,
    pub(crate) turn_idle: Setting<Duration>,
    pub(crate) answer_wait: Setting<Duration>,
    pub(crate) store_patience: Setting<Duration>,
    pub(crate) text_merge: Setting<Duration>,
    pub(crate) max_event: Setting<Size>,
    pub(crate) max_parts: Setting<usize>,
    pub(crate) max_metadata: Setting<Size>,
    pub(crate) max_object_keys: Setting<usize>,
    pub(crate) max_json_depth: Setting<usize>,
    pub(crate) max_artifacts: Setting<usize>,
    pub(crate) max_artifact_bytes: Setting<Size>,
    pub(crate) max_history: Setting<usize>,
    pub(crate) internal_file_urls: Setting<bool>,
    pub(crate) max_references: Setting<usize>,
    pub(crate) snapshot_events: Setting<u64>,
    pub(crate) snapshot_bytes: Setting<Size>,
    pub(crate) tail_events: Setting<usize>,
    pub(crate) tail_bytes: Setting<Size>,
}

/// Limits of one agent that override `[limits]`.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentLimits {
    pub(crate) max_body: Setting<Option<Size>>,
    pub(crate) default_page: Setting<Option<u32>>,
    pub(crate) max_page: Setting<Option<u32>>,
    pub(crate) legacy_wait: Setting<Option<Duration>>,
    pub(crate) keep_alive: Setting<Option<Duration>>,
    pub(crate) max_running: Setting<Option<usize>>,
    pub(crate) max_queued: Setting<Option<usize>>,
}

/// How long things are kept.
#[derive(Debug, Clone)]
pub(crate) struct Retention {
    pub(crate) ended: Setting<Duration>,
    pub(crate) fold: Setting<Duration>,
    pub(crate) max_tasks: Setting<u64>,
    pub(crate) min_age: Setting<Duration>,
    pub(crate) records: Setting<Duration>,
    pub(crate) webhooks: Setting<Duration>,
    pub(crate) every: Setting<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        let service = baton_server::Limits::default();
        let engine = baton_server::Options::default();
        let moment = Duration::from_millis(1);
        Limits {
            max_body: Setting::new(Size::of(service.max_body_bytes)).at_least(Size(KIB)).at_most(Size(GIB)),
            default_page: Setting::new(service.default_page).at_least(1).at_most(10_000),
            max_page: Setting::new(service.max_page).at_least(1).at_most(10_000),
            max_page_bytes: Setting::new(Size::of(service.max_page_bytes))
                .at_least(Size(KIB))
                .at_most(Size(GIB)),
            legacy_wait: Setting::new(service.legacy_wait),
            keep_alive: Setting::new(service.keep_alive).at_least(Duration::from_millis(100)),
            max_running: Setting::new(engine.max_running).at_least(1).at_most(1_000_000),
            max_queued: Setting::new(engine.max_queued).at_most(100_000_000),
            owner_running: Setting::new(engine.owners.max_running).at_most(1_000_000),
            owner_queued: Setting::new(engine.owners.max_queued).at_most(100_000_000),
            owner_tasks: Setting::new(engine.owners.max_tasks),
            owner_bytes: Setting::new(Size(engine.owners.max_bytes)),
            rate_send: Setting::new(engine.owners.rate_send).at_most(1_000_000),
            rate_read: Setting::new(engine.owners.rate_read).at_most(1_000_000),
            rate_subscribe: Setting::new(engine.owners.rate_subscribe).at_most(1_000_000),
            rate_burst: Setting::new(engine.owners.rate_burst).at_least(1).at_most(3600),
            max_counted_callers: Setting::new(engine.owners.max_counted).at_least(256).at_most(16_777_216),
            max_pending_messages: Setting::new(engine.max_pending_messages).at_most(10_000),
            send_wait: Setting::new(engine.send_wait),
            cancel_grace: Setting::new(engine.cancel_grace),
            turn_deadline: Setting::new(engine.turn_deadline).at_least(moment),
            turn_idle: Setting::new(engine.turn_idle).at_least(moment),
            answer_wait: Setting::new(engine.answer_wait),
            store_patience: Setting::new(engine.store_patience),
            text_merge: Setting::new(engine.text_merge).at_most(Duration::from_secs(10)),
            max_event: Setting::new(Size::of(engine.max_event_bytes)).at_least(Size(KIB)).at_most(Size(GIB)),
            max_parts: Setting::new(engine.max_parts).at_least(1),
            max_metadata: Setting::new(Size::of(engine.max_metadata_bytes)).at_most(Size(GIB)),
            max_object_keys: Setting::new(engine.max_object_keys).at_least(1),
            max_json_depth: Setting::new(engine.max_json_depth).at_least(1).at_most(engine.max_json_depth),
            max_artifacts: Setting::new(engine.max_artifacts).at_least(1).at_most(10_000_000),
            max_artifact_bytes: Setting::new(Size(engine.max_artifact_bytes)).at_least(Size(KIB)),
            max_history: Setting::new(engine.max_history).at_least(1).at_most(1_000_000),
            internal_file_urls: Setting::new(engine.internal_file_urls),
            max_references: Setting::new(engine.max_references),
            snapshot_events: Setting::new(engine.snapshot_events).at_least(1),
            snapshot_bytes: Setting::new(Size::of(engine.snapshot_bytes)).at_least(Size(KIB)),
            tail_events: Setting::new(engine.tail_events).at_least(1),
            tail_bytes: Setting::new(Size::of(engine.tail_bytes)).at_least(Size(KIB)),
        }
    }
}

impl Default for Retention {
    fn default() -> Self {
        let engine = baton_server::Retention::default();
        Retention {
            ended: Setting::new(engine.ended),
            fold: Setting::new(engine.fold),
            max_tasks: Setting::new(engine.max_tasks).at_least(1),
            min_age: Setting::new(engine.min_age),
            records: Setting::new(engine.records),
            webhooks: Setting::new(engine.webhooks),
            every: Setting::new(engine.every).at_least(Duration::from_secs(1)),
        }
    }
}

impl Section for Limits {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("max_body", &mut self.max_body);
        visit.field("default_page", &mut self.default_page);
        visit.field("max_page", &mut self.max_page);
        visit.field("max_page_bytes", &mut self.max_page_bytes);
        visit.field("legacy_wait", &mut self.legacy_wait);
        visit.field("keep_alive", &mut self.keep_alive);
        visit.field("max_running", &mut self.max_running);
        visit.field("max_queued", &mut self.max_queued);
        visit.field("owner_running", &mut self.owner_running);
        visit.field("owner_queued", &mut self.owner_queued);
        visit.field("owner_tasks", &mut self.owner_tasks);
        visit.field("owner_bytes", &mut self.owner_bytes);
        visit.field("rate_send", &mut self.rate_send);
        visit.field("rate_read", &mut self.rate_read);
        visit.field("rate_subscribe", &mut self.rate_subscribe);
        visit.field("rate_burst", &mut self.rate_burst);
        visit.field("max_counted_callers", &mut self.max_counted_callers);
        visit.field("max_pending_messages", &mut self.max_pending_messages);
        visit.field("send_wait", &mut self.send_wait);
        visit.field("cancel_grace", &mut self.cancel_grace);
        visit.field("turn_deadline", &mut self.turn_deadline);
        visit.field("turn_idle", &mut self.turn_idle);
        visit.field("answer_wait", &mut self.answer_wait);
        visit.field("store_patience", &mut self.store_patience);
        visit.field("text_merge", &mut self.text_merge);
        visit.field("max_event", &mut self.max_event);
        visit.field("max_parts", &mut self.max_parts);
        visit.field("max_metadata", &mut self.max_metadata);
        visit.field("max_object_keys", &mut self.max_object_keys);
        visit.field("max_json_depth", &mut self.max_json_depth);
        visit.field("max_artifacts", &mut self.max_artifacts);
        visit.field("max_artifact_bytes", &mut self.max_artifact_bytes);
        visit.field("max_history", &mut self.max_history);
        visit.field("internal_file_urls", &mut self.internal_file_urls);
        visit.field("max_references", &mut self.max_references);
        visit.field("snapshot_events", &mut self.snapshot_events);
        visit.field("snapshot_bytes", &mut self.snapshot_bytes);
        visit.field("tail_events", &mut self.tail_events);
        visit.field("tail_bytes", &mut self.tail_bytes);
    }
}

impl Section for AgentLimits {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("max_body", &mut self.max_body);
        visit.field("default_page", &mut self.default_page);
        visit.field("max_page", &mut self.max_page);
        visit.field("legacy_wait", &mut self.legacy_wait);
        visit.field("keep_alive", &mut self.keep_alive);
        visit.field("max_running", &mut self.max_running);
        visit.field("max_queued", &mut self.max_queued);
    }
}

impl Section for Retention {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("ended", &mut self.ended);
        visit.field("fold", &mut self.fold);
        visit.field("max_tasks", &mut self.max_tasks);
        visit.field("min_age", &mut self.min_age);
        visit.field("records", &mut self.records);
        visit.field("webhooks", &mut self.webhooks);
        visit.field("every", &mut self.every);
    }
}
