//! `baton task push-config get`: shows a webhook.

use super::{OneConfig, task_of};
use crate::client::Call;
use crate::client::agent::Agent;
use crate::client::error::CallError;
use crate::output;

pub(super) async fn get(call: &Call, args: &OneConfig) -> Result<(), CallError> {
    let (task, id) = args.ids()?;
    let agent = Agent::connect(call).await?;
    let found = agent.push_config(&task, &id).await?;
    let of = task_of(call, &agent, &task).await;
    call.output.result(&found, || Ok(output::push_config::push_configs(&of, &[output::view::read(&found)?])))
}
