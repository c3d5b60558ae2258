//! How large the task has become that a stream's events add up to: an agent may send events for ever.

use baton_protocol::domain::Task;
use baton_protocol::wire::{StreamItem, v1};

/// The size of the folded task in bytes of JSON, never less than it is.
#[derive(Debug, Default)]
pub(super) struct Held(usize);

impl Held {
    /// Counts an event that was folded in. False if the task is larger than the limit.
    pub(super) fn take(
        &mut self,
        item: &StreamItem,
        bytes: usize,
        task: Option<&Task>,
        limit: usize,
    ) -> bool {
        match item {
            StreamItem::Task(_) => self.0 = bytes,
            StreamItem::Artifact { .. } => self.0 += bytes,
            StreamItem::Status { update, .. } if update.message.is_some() => self.0 += bytes,
            StreamItem::Status { .. } | StreamItem::Message(_) => {}
        }
        if self.0 <= limit {
            return true;
        }
        // What was replaced was counted, too. Measuring takes time: the next time is a good while away.
        let Some(task) = task else { return true };
        let mut json = Vec::new();
        v1::write_task(&mut json, task);
        self.0 = json.len().min(limit / 4 * 3);
        json.len() <= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_protocol::lifecycle::Fold;

    fn item(json: &str) -> StreamItem {
        v1::read_stream_item(json).unwrap()
    }

    #[test]
    fn p09_only_what_is_kept_counts() {
        let chunk = |append| {
            let text = "x".repeat(400);
            format!(
                r#"{{"artifactUpdate":{{"taskId":"t","contextId":"c","append":{append},"artifact":{{"artifactId":"a","parts":[{{"text":"{text}"}}]}}}}}}"#
            )
        };
        let status = |message: &str| {
            format!(
                r#"{{"statusUpdate":{{"taskId":"t","contextId":"c","status":{{"state":"TASK_STATE_WORKING"{message}}}}}}}"#
            )
        };
        let said = r#","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"and more"}]}"#;
        for (event, fits) in
            [(chunk(false), true), (status(""), true), (chunk(true), false), (status(said), false)]
        {
            let (mut held, mut fold) = (Held::default(), Fold::default());
            let all = (0..100).all(|_| {
                fold.take(&item(&event)).unwrap();
                held.take(&item(&event), event.len(), fold.task(), 2000)
            });
            assert_eq!(all, fits, "{event}");
        }
    }
}
