//! Limits on connections, and on how long a client may take. The defaults are the library's.

use std::time::Duration;

use baton_server::Connections as Library;

use crate::config::setting::{Section, Setting, Visit};
use crate::config::value::Size;

const KIB: u64 = 1024;

#[derive(Debug, Clone)]
pub(crate) struct Connections {
    pub(crate) first_byte: Setting<Duration>,
    pub(crate) handshake: Setting<Duration>,
    pub(crate) head: Setting<Duration>,
    pub(crate) idle: Setting<Duration>,
    pub(crate) body_total: Setting<Duration>,
    pub(crate) body_grace: Setting<Duration>,
    pub(crate) body_rate: Setting<Size>,
    pub(crate) reader_stall: Setting<Duration>,
    pub(crate) max_connections: Setting<usize>,
    pub(crate) max_per_address: Setting<usize>,
    pub(crate) max_streams: Setting<usize>,
    pub(crate) max_streams_per_owner: Setting<usize>,
    pub(crate) max_requests_per_owner: Setting<usize>,
    pub(crate) max_bodies: Setting<Size>,
    pub(crate) max_answers: Setting<Size>,
    pub(crate) max_answers_per_connection: Setting<Size>,
    pub(crate) room_wait: Setting<Duration>,
    pub(crate) crowded_stall: Setting<Duration>,
    pub(crate) max_unsent: Setting<Size>,
    pub(crate) max_head: Setting<Size>,
    pub(crate) max_header_list: Setting<Size>,
    pub(crate) max_concurrent_requests: Setting<u32>,
    pub(crate) max_concurrent_requests_of_proxy: Setting<u32>,
    pub(crate) write_buffer: Setting<Size>,
    pub(crate) last_patience: Setting<Duration>,
    pub(crate) flood_burst: Setting<u32>,
    pub(crate) flood_rate: Setting<u32>,
    pub(crate) linger: Setting<Duration>,
    pub(crate) linger_bytes: Setting<Size>,
}

impl Default for Connections {
    fn default() -> Self {
        let library = Library::default();
        // None of these timeouts may be infinite: without them, connections could stay open for ever.
        let patience = |value: Duration| Setting::new(value).at_least(Duration::from_millis(10));
        let size = |bytes: usize, least: u64| {
            Setting::new(Size::of(bytes)).at_least(Size(least)).at_most(Size(KIB * KIB))
        };
        Connections {
            first_byte: patience(library.first_byte),
            handshake: patience(library.handshake),
            head: patience(library.head),
            idle: patience(library.idle),
            body_total: patience(library.body_total),
            body_grace: Setting::new(library.body_grace),
            body_rate: Setting::new(Size(library.body_rate)),
            reader_stall: patience(library.reader_stall),
            max_connections: Setting::new(library.max_connections).at_least(1),
            max_per_address: Setting::new(library.max_per_address).at_least(1),
            max_streams: Setting::new(library.max_streams),
            max_streams_per_owner: Setting::new(library.max_streams_per_owner),
            max_requests_per_owner: Setting::new(library.max_requests_per_owner).at_least(1),
            max_bodies: Setting::new(Size::of(library.max_bodies_bytes)).at_least(Size(KIB)),
            max_answers: Setting::new(Size::of(library.max_answers_bytes)).at_least(Size(64 * KIB)),
            max_answers_per_connection: Setting::new(Size::of(library.max_answers_per_connection))
                .at_least(Size(64 * KIB)),
            room_wait: Setting::new(library.room_wait),
            crowded_stall: patience(library.crowded_stall),
            max_unsent: size(library.max_unsent_bytes as usize, KIB),
            max_head: size(library.max_head_bytes, 8 * KIB),
            max_header_list: size(library.max_header_list_bytes as usize, KIB),
            max_concurrent_requests: Setting::new(library.max_concurrent_requests).at_least(1),
            max_concurrent_requests_of_proxy: Setting::new(library.max_concurrent_requests_of_proxy)
                .at_least(2),
            write_buffer: size(library.write_buffer, KIB),
            last_patience: Setting::new(library.last_patience),
            flood_burst: Setting::new(library.flood_burst).at_least(1),
            flood_rate: Setting::new(library.flood_rate).at_least(1),
            linger: Setting::new(library.linger),
            linger_bytes: Setting::new(Size::of(library.linger_bytes)),
        }
    }
}

impl Section for Connections {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("first_byte", &mut self.first_byte);
        visit.field("handshake", &mut self.handshake);
        visit.field("head", &mut self.head);
        visit.field("idle", &mut self.idle);
        visit.field("body_total", &mut self.body_total);
        visit.field("body_grace", &mut self.body_grace);
        visit.field("body_rate", &mut self.body_rate);
        visit.field("reader_stall", &mut self.reader_stall);
        visit.field("max_connections", &mut self.max_connections);
        visit.field("max_per_address", &mut self.max_per_address);
        visit.field("max_streams", &mut self.max_streams);
        visit.field("max_streams_per_owner", &mut self.max_streams_per_owner);
        visit.field("max_requests_per_owner", &mut self.max_requests_per_owner);
        visit.field("max_bodies", &mut self.max_bodies);
        visit.field("max_answers", &mut self.max_answers);
        visit.field("max_answers_per_connection", &mut self.max_answers_per_connection);
        visit.field("room_wait", &mut self.room_wait);
        visit.field("crowded_stall", &mut self.crowded_stall);
        visit.field("max_unsent", &mut self.max_unsent);
        visit.field("max_head", &mut self.max_head);
        visit.field("max_header_list", &mut self.max_header_list);
        visit.field("max_concurrent_requests", &mut self.max_concurrent_requests);
        visit.field("max_concurrent_requests_of_proxy", &mut self.max_concurrent_requests_of_proxy);
        visit.field("write_buffer", &mut self.write_buffer);
        visit.field("last_patience", &mut self.last_patience);
        visit.field("flood_burst", &mut self.flood_burst);
        visit.field("flood_rate", &mut self.flood_rate);
        visit.field("linger", &mut self.linger);
        visit.field("linger_bytes", &mut self.linger_bytes);
    }
}
