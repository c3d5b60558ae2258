//! Webhook configurations: create, get, list, delete. `capability` has refused them if the card does not declare webhooks.

use baton_protocol::domain::{MessageId, PushConfig, PushConfigId, TaskId};
use baton_protocol::{Error, ErrorKind, Generation};
use sha2::{Digest as _, Sha256};

use super::{Answered, CallContext, Outcome, Service};
use crate::engine::{Accepted, Incoming, InlineWebhook, from_store, not_found};
use crate::push::{Push, to_its_end};

impl Service {
    pub(super) fn push(&self) -> Result<&Push, Error> {
        self.inner.push.as_ref().ok_or_else(|| Error::of(ErrorKind::PushNotSupported))
    }

    pub(super) async fn create_push_config(
        &self,
        context: &CallContext,
        config: PushConfig,
    ) -> Result<Answered, Error> {
        let Some(task) = config.task_id.clone() else {
            let problem = "Name the task whose events are sent";
            return Err(Error::new(ErrorKind::InvalidParams, problem));
        };
        let shown = self.push()?.create(&context.scope, &task, context.generation, &config).await?;
        Ok(Outcome::PushConfig(shown).fresh(None))
    }

    /// Without an id: the one with the task's id, as clients of 0.3 and 0.1 make it, else the first.
    pub(super) async fn get_push_config(
        &self,
        context: &CallContext,
        task: &TaskId,
        id: Option<&PushConfigId>,
    ) -> Result<Answered, Error> {
        let mut configs = self.push()?.list(&context.scope, task).await?;
        let name = id.map_or(task.as_str(), PushConfigId::as_str);
        let is_named = |config: &PushConfig| config.id.as_ref().is_some_and(|id| id.as_str() == name);
        let found = match configs.iter().position(is_named) {
            None if id.is_none() && !configs.is_empty() => Some(0),
            found => found,
        };
        match found {
            Some(at) => Ok(Outcome::PushConfig(configs.swap_remove(at)).fresh(None)),
            // The specification has no error of its own for it.
            None => Err(not_found(task)),
        }
    }

    /// All of them: a task has few.
    pub(super) async fn list_push_configs(
        &self,
        context: &CallContext,
        task: &TaskId,
        page_size: Option<i32>,
        page_token: Option<&str>,
    ) -> Result<Answered, Error> {
        let (scope, cursors) = (&context.scope, &self.inner.cursors);
        let page_size = match page_size.map(usize::try_from) {
            None | Some(Ok(0)) => usize::MAX,
            Some(Ok(size)) => size,
            Some(Err(_)) => return Err(Error::invalid("pageSize", "must not be negative")),
        };
        let token = page_token.filter(|token| !token.is_empty());
        let after = token.map(|token| cursors.open_webhook(token, scope, task)).transpose()?;
        // Few, and sorted by their ids.
        let mut configs = self.push()?.list(scope, task).await?;
        if let Some(after) = after {
            configs.retain(|config| config.id.as_ref().is_some_and(|id| id.as_str() > after.as_str()));
        }
        let more = configs.len() > page_size;
        configs.truncate(page_size);
        let last = configs.last().and_then(|config| config.id.as_ref()).filter(|_| more);
        let next_page_token = last.map(|last| cursors.seal_webhook(last, scope, task)).unwrap_or_default();
        Ok(Outcome::PushConfigs { configs, next_page_token }.fresh(None))
    }

    pub(super) async fn delete_push_config(
        &self,
        context: &CallContext,
        task: &TaskId,
        id: &PushConfigId,
    ) -> Result<Answered, Error> {
        self.push()?.delete(&context.scope, task, id).await?;
        Ok(Outcome::PushConfigDeleted.fresh(None))
    }

    /// A webhook that comes with a message.
    pub(super) fn inline_webhook(
        &self,
        config: Option<PushConfig>,
    ) -> Result<Option<Box<InlineWebhook>>, Error> {
        let Some(config) = config else { return Ok(None) };
        let push = self.push()?.clone();
        push.check(&config)?;
        Ok(Some(Box::new(InlineWebhook { push, config })))
    }

    /// Accepts a message. Its webhook is stored with the task that it creates; that of a task which exists is stored before
    /// the message, so that it misses nothing of the answer, and taken back if the message is not accepted.
    pub(super) async fn accept(
        &self,
        context: &CallContext,
        mut incoming: Incoming,
    ) -> Result<Accepted, Error> {
        let scope = &context.scope;
        let named = incoming.message.task_id.clone().or_else(|| incoming.client_task_id.clone());
        let (Some(task), Some(mut inline)) = (named, incoming.webhook.clone()) else {
            return self.engine().send(scope, incoming).await;
        };
        if self.engine().store().head(scope, &task).await.map_err(from_store)?.is_none() {
            return self.engine().send(scope, incoming).await;
        }
        incoming.webhook = None;
        if inline.config.id.is_none() && context.generation == Generation::V1 {
            inline.config.id = Some(id_by(&incoming.record_id));
        }
        let before = inline.push.list(scope, &task).await?;
        // The message of a known webhook may be a repeat: then the webhook stays as it is. In 0.1 equal messages may be two.
        if incoming.client_task_id.is_none() && before.iter().any(|known| known.id == inline.config.id) {
            let repeat = Incoming { known_only: true, ..incoming.clone() };
            if let Ok(accepted) = self.engine().send(scope, repeat).await {
                return Ok(accepted);
            }
        }
        let (service, scope, generation) = (self.clone(), scope.clone(), context.generation);
        // Whether the caller is still there or not: else a webhook could stay whose message was not accepted.
        to_its_end(async move {
            let made = inline.push.create(&scope, &task, generation, &inline.config).await?;
            let accepted = service.engine().send(&scope, incoming).await;
            let is_used = matches!(&accepted, Ok(Accepted::Turn(turn)) if !turn.replayed);
            if !is_used
                && let Some(id) = &made.id
                && before.iter().all(|known| known.id.as_ref() != Some(id))
            {
                inline.push.delete(&scope, &task, id).await?;
            }
            accepted
        })
        .await
    }
}

/// The id of a webhook that came with this message and without an id. A message that is repeated, since nobody answered, would
/// have two webhooks otherwise.
fn id_by(message: &MessageId) -> PushConfigId {
    let digest = Sha256::digest(message.as_str());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    let id = uuid::Builder::from_custom_bytes(bytes).into_uuid();
    PushConfigId::parse(&id.to_string()).expect("every id follows the same rules")
}
