//! SubscribeToTask and `Last-Event-ID`.

use baton_protocol::operation::SubscribeToTask;
use baton_protocol::{Error, Generation};

use super::{Answered, CallContext, Outcome, Service};
use crate::engine::CloseAt;
use crate::telemetry::trace;

impl Service {
    pub(super) async fn subscribe(
        &self,
        context: &CallContext,
        call: SubscribeToTask,
    ) -> Result<Answered, Error> {
        trace::record_task(&call.id, None);
        let close = match context.generation {
            Generation::V1 => CloseAt::TaskEnd,
            older => turn_end(older),
        };
        let last_seen = last_seen(context)?;
        let slot = self.stream_slot(context)?;
        let asker = context.asker.as_ref();
        let stream = self.engine().subscribe(&context.scope, &call.id, last_seen, close, asker).await?;
        Ok(Outcome::Stream(stream.with_slot(slot)).fresh(None))
    }
}

/// When the stream of a turn closes. 0.1 has no auth-required; its clients see input-required instead, which closes the
/// stream.
pub(super) fn turn_end(generation: Generation) -> CloseAt {
    match generation {
        Generation::V1 | Generation::V0_3 => CloseAt::TurnEnd,
        Generation::V0_1 => CloseAt::Rest,
    }
}

/// The number in `Last-Event-ID`. Anything else is refused: ignoring it would repeat events.
pub(super) fn last_seen(context: &CallContext) -> Result<Option<u64>, Error> {
    let Some(text) = context.last_event_id.as_deref().map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if digits { text.parse::<u64>().ok().filter(|number| *number < 1 << 63) } else { None };
    number
        .map(Some)
        .ok_or_else(|| Error::invalid("Last-Event-ID", "must be the id of an event of this stream, a number"))
}
