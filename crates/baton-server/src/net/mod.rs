//! Sockets: who may connect, how long they may take, what counts as a request.
//!
//! Our own loop around hyper, since `axum::serve` keeps a silent client for ever, takes any number of them, and passes
//! on requests that two readers understand differently. From the outside in: [`accept`] takes connections as far as
//! [`caps`] lets it; [`connection`] lives with one: [`preface`] tells its protocol, [`socket`] filters what is read
//! through [`framing`] (HTTP/1) or [`frames`] (HTTP/2), hyper speaks, [`guard`] checks each request before the
//! application sees it ([`requests`]: and that the filter has seen it), [`half_close`] answers those who have said all they want to say, [`lent`] keeps event streams on which nothing happens small, and [`patience`] ends what takes too
//! long, by what [`pulse`] shows.

mod accept;
mod answers;
mod authority;
mod bodies;
mod caps;
mod connection;
mod cors;
mod executor;
mod frames;
mod framing;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod guard;
mod half_close;
mod head;
mod hosts;
mod lent;
mod options;
mod patience;
mod preface;
mod pulse;
mod refusal;
mod requests;
mod socket;

use std::sync::Arc;

use tokio::net::TcpListener;

pub(crate) use answers::{Asker, Share};
pub(crate) use answers::{NoRoom, SMALL};
pub(crate) use authority::Authority;
pub use options::{Connections, Cors};

use crate::binding::App;
use crate::card::base_path;
use crate::engine::stream_places::StreamPlaces;
use crate::proxy::IpRange;
use crate::telemetry::Telemetry;
use answers::AnswerRoom;
use bodies::BodyRoom;
use caps::Registry;
use cors::Origins;
use guard::Door;
use hosts::{AllowedHost, Hosts};

/// What a builder was told about the network.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) connections: Connections,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) cors: Option<Cors>,
}

/// The same, checked.
#[derive(Debug, Clone)]
pub(crate) struct Network {
    connections: Arc<Connections>,
    allowed: Vec<AllowedHost>,
    public: Option<AllowedHost>,
    base_path: String,
    origins: Option<Origins>,
    trusted: Vec<IpRange>,
}

impl Settings {
    /// The error names the setting.
    pub(crate) fn check(self, public_url: Option<&str>, trusted: &[IpRange]) -> Result<Network, String> {
        let allowed: Result<_, _> = self.allowed_hosts.iter().map(|host| AllowedHost::parse(host)).collect();
        Ok(Network {
            connections: Arc::new(self.connections),
            allowed: allowed?,
            public: public_url.and_then(AllowedHost::of_url),
            base_path: base_path(public_url).to_owned(),
            origins: self.cors.as_ref().map(Origins::parse).transpose()?,
            trusted: trusted.to_vec(),
        })
    }
}

impl Network {
    pub(crate) fn stream_places(&self) -> StreamPlaces {
        StreamPlaces::new(self.connections.max_streams, self.connections.max_streams_per_owner)
    }

    /// Serves the application until `stop`, then until `drained` and a moment longer. What goes on is counted, if
    /// there is somebody to count it.
    pub(crate) async fn serve(
        &self,
        listener: TcpListener,
        app: App,
        telemetry: Option<Telemetry>,
        stop: impl Future<Output = ()>,
        drained: impl Future<Output = ()>,
    ) -> std::io::Result<()> {
        let options = Arc::clone(&self.connections);
        let trusted = self.trusted.clone();
        let registry = Registry::new(options.max_connections, options.max_per_address, trusted);
        let (public, base_path) = (self.public.clone(), self.base_path.clone());
        let hosts = Hosts::new(listener.local_addr()?, &self.allowed, public, base_path);
        let (cors, body_room) = (self.origins.clone(), Arc::new(BodyRoom::new(options.max_bodies_bytes)));
        let answers = AnswerRoom::new(&options);
        bound_unsent(&listener, options.max_unsent_bytes);
        let door = Door { app, hosts, cors, registry, options, body_room, answers, telemetry };
        accept::serve(listener, Arc::new(door), stop, drained).await;
        Ok(())
    }
}

/// What the kernel takes for a reader that does not read, on the connections that will be accepted: by default it is up to
/// 4 MiB each.
#[cfg(target_os = "linux")]
fn bound_unsent(listener: &TcpListener, bytes: u32) {
    if let Err(error) = socket2::SockRef::from(listener).set_tcp_notsent_lowat(bytes) {
        tracing::debug!(%error, "TCP_NOTSENT_LOWAT could not be set");
    }
}

#[cfg(not(target_os = "linux"))]
fn bound_unsent(_: &TcpListener, _: u32) {}
