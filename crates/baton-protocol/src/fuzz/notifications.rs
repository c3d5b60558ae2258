//! Bodies of webhook calls: what is read in any generation can be written in 1.0, and is then read as 1.0.

use super::written;
use crate::generation::Generation;
use crate::wire::dialect::Dialect;
use crate::wire::read_notification;

pub(super) fn check(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(read) = read_notification(text) else { return };
    let json = written(|out| Dialect::V1.write_stream_update(out, &read.item.value));
    let again = read_notification(&json).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(again.generation, Generation::V1, "{json}");
    assert_eq!(written(|out| Dialect::V1.write_stream_update(out, &again.item.value)), json);
}
