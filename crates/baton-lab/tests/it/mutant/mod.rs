//! An A2A agent that is right, until it is told to be wrong in one way.
//!
//! It proves that the lab's cases can fail. So it shares no code with Baton's server, and none with the lab but the names of
//! generations, bindings and operations: it has its own tables, its own spelling, its own streams. It holds everything in
//! memory, listens on loopback, and calls nobody outside of it.
//!
//! A request's way: [`door`] → [`rpc`] or [`rest`], or else [`grpc`] → [`handle`] → [`operations`] → [`spell`] → out. A [`fault::Fault`] can
//! change every station.

mod agent;
mod ask;
mod card;
mod clock;
mod door;
pub(crate) mod edit;
mod entry;
pub(crate) mod fault;
mod feed;
mod grpc;
mod handle;
mod lists;
mod message_rules;
mod operations;
pub(crate) mod profile;
mod push;
pub(crate) mod refusal;
mod rest;
mod rpc;
mod scripts;
pub(crate) mod seal;
mod send;
mod spell;

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use agent::Agent;
use fault::{Defect, Fault, Quirk};
use profile::Profile;
use seal::Seal;

/// An agent that listens until it is dropped.
#[derive(Debug)]
pub(crate) struct Mutant {
    pub(crate) url: String,
    agent: Arc<Agent>,
    /// Its certificate, if it speaks TLS.
    pub(crate) seal: Option<Arc<Seal>>,
    _stop: DropGuard,
}

impl Mutant {
    pub(crate) async fn start(profile: Profile, defect: Option<&'static Defect>) -> Self {
        let faults = defect.map_or(&[][..], |defect| defect.faults);
        let seal = (profile == Profile::Sealed).then(|| Arc::new(Seal::new()));
        Self::listen(seal, |url| Agent::new(profile, url, faults)).await
    }

    /// A second agent beside it, with what the defect says of that one.
    pub(crate) async fn beside(&self, defect: Option<&'static Defect>) -> Self {
        let faults = defect.map_or(&[][..], |defect| defect.second);
        let shares = faults.iter().any(|fault| matches!(fault, Fault::Quirk(Quirk::SharesAll, _)));
        let first = &self.agent;
        Self::listen(self.seal.clone(), |url| {
            let agent = Agent::new(first.profile, url, faults);
            if shares { agent.sharing(first) } else { agent }
        })
        .await
    }

    async fn listen(seal: Option<Arc<Seal>>, agent: impl FnOnce(String) -> Agent) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let scheme = if seal.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().expect("it is bound"));
        let mut agent = agent(url.clone());
        let stop = CancellationToken::new();
        let grpc = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        agent.grpc = grpc.local_addr().expect("it is bound").to_string();
        let agent = Arc::new(agent);
        if agent.profile.speaks_grpc() {
            tokio::spawn(grpc::listen(grpc, Arc::clone(&agent), stop.clone()));
        }
        let acceptor = seal.as_ref().map(|seal| seal.acceptor(&agent));
        tokio::spawn(door::listen(listener, acceptor, Arc::clone(&agent), stop.clone()));
        Mutant { url, agent, seal, _stop: stop.drop_guard() }
    }
}
