//! Serves an application on a listener with checked settings.

use std::sync::Arc;

use tokio::net::TcpListener;

use super::accept;
use super::answers::AnswerRoom;
use super::application::{Application, Observer};
use super::authority::Scheme;
use super::body_room::BodyRoom;
use super::caps::Registry;
use super::cors::Origins;
use super::guard::Shared;
use super::hosts::{AllowedHost, Hosts};
use super::in_flight::InFlight;
use super::options::Connections;
use super::proxy::IpRange;
use super::settings::OpenPaths;
#[cfg(feature = "tls")]
use super::tls::Tls;

/// Checked [`Settings`](super::Settings). A cheap handle.
#[derive(Debug, Clone)]
pub struct Network(pub(super) Arc<Checked>);

#[derive(Debug)]
pub(super) struct Checked {
    pub(super) connections: Arc<Connections>,
    pub(super) allowed: Vec<AllowedHost>,
    pub(super) public: Option<AllowedHost>,
    pub(super) origins: Option<Origins>,
    pub(super) trusted: Vec<IpRange>,
    pub(super) paths: OpenPaths,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<Tls>,
}

impl Checked {
    fn scheme(&self) -> Scheme {
        #[cfg(feature = "tls")]
        if self.tls.is_some() {
            return Scheme::Https;
        }
        Scheme::Http
    }
}

impl Network {
    /// The limits that were set.
    pub fn connections(&self) -> &Connections {
        &self.0.connections
    }

    /// Serves the application until `stop`. Then no new connections and requests are taken, until `drained`; connections that
    /// are still open have [`Connections::last_patience`] to finish. The observer, if there is one, is told of connections
    /// and refusals.
    pub async fn serve(
        &self,
        listener: TcpListener,
        app: impl Application,
        observer: Option<Arc<dyn Observer>>,
        stop: impl Future<Output = ()>,
        drained: impl Future<Output = ()>,
    ) -> std::io::Result<()> {
        let Checked { connections, allowed, public, origins, trusted, paths, .. } = &*self.0;
        let options = Arc::clone(connections);
        let registry = Registry::new(options.max_connections, options.max_per_address, trusted.clone());
        let (address, scheme) = (listener.local_addr()?, self.0.scheme());
        let hosts = Hosts::new(address, scheme, allowed, public.clone(), paths.clone());
        let (cors, body_room) = (origins.clone(), Arc::new(BodyRoom::new(options.max_bodies_bytes)));
        let answers = AnswerRoom::new(&options);
        let in_flight = InFlight::new(options.max_requests_per_owner.min(options.max_connections / 2));
        bound_unsent(&listener, options.max_unsent_bytes);
        let shared = Shared {
            app,
            hosts,
            cors,
            registry,
            options,
            body_room,
            answers,
            in_flight,
            observer,
            #[cfg(feature = "tls")]
            tls: self.0.tls.clone(),
        };
        accept::serve(listener, Arc::new(shared), stop, drained).await;
        Ok(())
    }
}

/// Limits what the kernel buffers for clients that do not read: by default up to 4 MiB for each connection. Accepted
/// connections inherit it from the listener.
#[cfg(target_os = "linux")]
fn bound_unsent(listener: &TcpListener, bytes: u32) {
    if let Err(error) = socket2::SockRef::from(listener).set_tcp_notsent_lowat(bytes) {
        tracing::debug!(%error, "TCP_NOTSENT_LOWAT could not be set");
    }
}

#[cfg(not(target_os = "linux"))]
fn bound_unsent(_: &TcpListener, _: u32) {}
