//! `baton task push-config delete`: removes a webhook.

use super::{OneConfig, task_of};
use crate::client::Call;
use crate::client::agent::Agent;
use crate::client::error::CallError;
use crate::output;

pub(super) async fn delete(call: &Call, args: &OneConfig) -> Result<(), CallError> {
    let (task, id) = args.ids()?;
    let agent = Agent::connect(call).await?;
    agent.delete_push_config(&task, &id).await?;
    let of = task_of(call, &agent, &task).await;
    call.output.result("{}", || Ok(output::push_config::removed(&of, &args.id)))
}
