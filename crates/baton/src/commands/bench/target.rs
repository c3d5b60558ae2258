//! The agent that is put under load: one interface of it, and only where that is allowed.

use std::time::Duration;

use baton_client::{Client, Interface, Reconnects, Retries, Timeouts};
use tokio::net::lookup_host;

use super::plan::Plan;
use crate::client::Call;
use crate::client::agent::{connected, failure, prepare};
use crate::client::error::CallError;

/// The flag with which a user says that the load is allowed.
pub(super) const PERMISSION: &str = "i-may-load-test-this-agent";

/// The longest time for a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// Finds the agent and chooses its interface. An agent on another machine needs the user's word.
pub(super) async fn connect(call: &Call, plan: &Plan, permitted: bool) -> Result<Client, CallError> {
    let (builder, mut found) = prepare(call).await?;
    let mut timeouts = Timeouts::default();
    timeouts.connect = plan.timeout.min(CONNECT);
    timeouts.call = plan.timeout;
    timeouts.send = Some(plan.timeout);
    // Streams may be silent as long as they are held.
    timeouts.idle = plan.duration + plan.timeout;
    // What fails is counted, not tried again.
    let mut reconnects = Reconnects::default();
    reconnects.most = 0;
    let builder = builder.timeouts(timeouts).retries(Retries::none()).reconnects(reconnects);
    // The card's other interfaces would be tried if the first cannot be reached; they may be anywhere, and a figure must
    // belong to one.
    let chosen = builder.with_card(found.clone()).map_err(|error| failure(&error))?.interface().clone();
    found.card.interfaces.retain(|offered| offered.url == chosen.listed_url());
    if !permitted && !is_this_machine(&chosen).await {
        let host = host(&chosen).unwrap_or_else(|| chosen.url().to_owned());
        let error = CallError::usage(format!(
            "{host} is not this machine: a load test makes its agent work, which costs its owner money, and may be \
             taken for an attack"
        ));
        return Err(error.with_hint(format!("if you are allowed to do that, add --{PERMISSION}")));
    }
    connected(call, &builder, found)
}

fn host(interface: &Interface) -> Option<String> {
    let url = reqwest::Url::parse(interface.url()).ok()?;
    Some(url.host_str()?.to_owned())
}

/// Whether every address of the interface's host is one of the loopback.
async fn is_this_machine(interface: &Interface) -> bool {
    let Some(host) = host(interface) else { return false };
    let name = host.trim_start_matches('[').trim_end_matches(']');
    match lookup_host((name, 0)).await {
        Ok(addresses) => {
            let addresses: Vec<_> = addresses.collect();
            !addresses.is_empty() && addresses.iter().all(|address| address.ip().to_canonical().is_loopback())
        }
        Err(_) => false,
    }
}
