//! `baton task push-config create`: registers a webhook.

use baton_protocol::domain::{PushAuthentication, PushConfig};

use super::{config_id, task_of};
use crate::client::agent::Agent;
use crate::client::error::CallError;
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::{self, Call, wait};
use crate::exit::Failure;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = SETTINGS_HELP)]
pub(crate) struct Create {
    /// The task's id.
    #[arg(value_name = "TASK_ID")]
    task: String,

    /// The webhook's address.
    #[arg(long, value_name = "URL")]
    url: String,

    /// The webhook's id [default: the agent chooses one].
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// Sent with every call, so that the receiver can check the sender.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,

    /// How the agent authenticates to the webhook, such as Bearer.
    #[arg(long, value_name = "SCHEME")]
    auth_scheme: Option<String>,

    /// The credentials for that scheme.
    #[arg(long, value_name = "TEXT", requires = "auth_scheme")]
    auth_credentials: Option<String>,

    #[command(flatten)]
    options: Options,
}

pub(crate) async fn run(args: Create) -> Result<(), Failure> {
    client::run(&args.options, async |call| create(call, &args).await).await
}

async fn create(call: &Call, args: &Create) -> Result<(), CallError> {
    let task_id = wait::task_id(&args.task)?;
    let authentication = args.auth_scheme.as_ref().map(|scheme| PushAuthentication {
        scheme: scheme.clone(),
        credentials: args.auth_credentials.clone(),
    });
    let config = PushConfig {
        id: args.id.as_deref().map(config_id).transpose()?,
        task_id: Some(task_id.clone()),
        token: args.token.clone(),
        authentication,
        ..PushConfig::new(args.url.clone())
    };
    let agent = Agent::connect(call).await?;
    let made = agent.create_push_config(config).await?;
    let of = task_of(call, &agent, &task_id).await;
    call.output.result(&made, || Ok(output::push_config::push_configs(&of, &[output::view::read(&made)?])))
}
