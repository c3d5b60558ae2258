//! What stands between hyper and the application: refusals, names and origins, the drain, and the end of each request.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, ORIGIN};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::{Body as _, Incoming};

use super::answers::{AnswerRoom, Asker, OfConnection, Reader};
use super::authority::Authority;
use super::bodies::{BodyRoom, Faults, Observed, PatientBody, UnderWay, Watch};
use super::caps::Registry;
use super::cors::Origins;
use super::half_close::Owed;
use super::hosts::Hosts;
use super::lent::{Outgoing, Tray, closes_after};
use super::options::Connections;
use super::pulse::{Order, Pulse};
use super::refusal::{self, Refusal};
use crate::binding::App;
use crate::telemetry::Telemetry;

/// What all connections of a server share.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) app: App,
    pub(super) hosts: Hosts,
    pub(super) cors: Option<Origins>,
    pub(super) registry: Arc<Registry>,
    pub(super) options: Arc<Connections>,
    pub(super) body_room: Arc<BodyRoom>,
    pub(super) answers: Arc<AnswerRoom>,
    pub(super) telemetry: Option<Telemetry>,
}

impl Door {
    /// Somebody was sent away before the application heard of it.
    pub(super) fn refused(&self, status: StatusCode) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.refused(status.as_u16());
        }
    }
}

/// Who asks, over which connection. In HTTP/2 each request has its own watch.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) door: Arc<Door>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) peer: SocketAddr,
    /// HTTP/1 only: where its event streams lie.
    pub(super) tray: Option<Arc<Tray>>,
    /// Gets room for the answers of the connection.
    pub(super) answers: Arc<OfConnection>,
}

impl Caller {
    /// Answers one request. Never fails: what goes wrong is an answer, too.
    ///
    /// What is counted is counted now, not when the future is polled: hyper may read on before that.
    pub(super) fn answer(
        self,
        request: Request<Incoming>,
        watch: Option<Arc<Watch>>,
    ) -> impl Future<Output = Result<Response<Outgoing>, Infallible>> {
        let under_way = UnderWay::new(&self.pulse);
        let owed = Owed::new(&self.pulse, self.tray.is_some());
        let length = request.body().size_hint().exact();
        let counted = self.tray.as_ref().is_none_or(|tray| tray.requests.announce(length));
        async move {
            if !counted {
                // Nothing of it can be trusted, not even that it is a request.
                tracing::error!("a request was read in two ways; its connection is closed");
                self.pulse.tell(Order::Leave);
                std::future::pending::<()>().await;
            }
            self.answer_counted(request, watch, under_way, owed).await
        }
    }

    async fn answer_counted(
        self,
        request: Request<Incoming>,
        watch: Option<Arc<Watch>>,
        under_way: UnderWay,
        owed: Owed,
    ) -> Result<Response<Outgoing>, Infallible> {
        let (version, closes) = (request.version(), closes_after(request.headers()));
        let only_head = version > Version::HTTP_11 && *request.method() == Method::HEAD;
        let origin = match &self.door.cors {
            Some(_) => request.headers().get(ORIGIN).cloned(),
            None => None,
        };
        let mut response = match self.refuse(&request) {
            Some(response) => {
                self.door.refused(response.status());
                response
            }
            None => self.pass_on(request, watch.as_ref()).await,
        };
        if let Some(cors) = &self.door.cors {
            cors.decorate(origin.as_ref(), response.headers_mut());
        }
        if version == Version::HTTP_10 || (version == Version::HTTP_11 && self.door.registry.is_draining()) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if only_head {
            response = without_body(response);
        }
        let response = response.map(|body| Observed::new(body, under_way, watch));
        Ok(Outgoing::of(response, owed, version, closes, self.tray.as_ref()))
    }

    /// The answer, where the application is not to be asked.
    fn refuse(&self, request: &Request<Incoming>) -> Option<Response<Body>> {
        let version = request.version();
        if let Some(refusal) = Refusal::of(request) {
            return Some(refusal.response(version));
        }
        if version > Version::HTTP_11
            && let Some(refusal) = check_http2_head(request)
        {
            return Some(refusal.response(version));
        }
        let path = request.uri().path();
        if self.door.registry.is_draining() && !self.door.hosts.is_health(path) {
            return Some(Refusal::Stopping.response(version));
        }
        let cors = self.door.cors.as_ref();
        if let Err(not_here) = self.door.hosts.check(request, cors) {
            tracing::debug!(status = not_here.status.as_u16(), "a request was refused by its host or origin");
            return Some(refusal::plain(not_here.status, &not_here.text, version));
        }
        match cors {
            Some(cors) if !self.door.hosts.is_for_everybody(request.method(), path) => {
                cors.preflight(request)
            }
            _ => None,
        }
    }

    async fn pass_on(&self, request: Request<Incoming>, watch: Option<&Arc<Watch>>) -> Response<Body> {
        let version = request.version();
        let faults = match watch {
            Some(watch) => Faults::Stream(Arc::clone(watch)),
            None => Faults::Connection(Arc::clone(&self.pulse)),
        };
        let Door { options, body_room, .. } = &*self.door;
        let request = request.map(|body| Body::new(PatientBody::new(body, faults, options, body_room)));
        let reader = match watch {
            Some(watch) => Reader::Stream(Arc::clone(watch)),
            None => Reader::Connection(Arc::clone(&self.pulse)),
        };
        let asker = Asker::new(&self.answers, reader);
        let response = self.door.app.answer(request, self.peer, asker).await;
        let fault = match watch {
            Some(watch) => watch.found_fault(),
            None => self.pulse.found_fault(),
        };
        // What the application made of half a body does not matter.
        fault.map_or(response, |fault| fault.response(version))
    }
}

/// What HEAD is answered with. hyper leaves the body out in HTTP/1 only.
fn without_body(mut response: Response<Body>) -> Response<Body> {
    if let Some(length) = response.body().size_hint().exact().filter(|length| *length > 0) {
        response.headers_mut().entry(CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(length));
    }
    response.map(|_| Body::empty())
}

/// The h2 crate has checked the frames and the pseudo headers; these are ours to refuse in either protocol.
fn check_http2_head(request: &Request<Incoming>) -> Option<Refusal> {
    if matches!(*request.method(), Method::CONNECT | Method::TRACE) {
        return Some(Refusal::Method);
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    let (header, another) = (hosts.next(), hosts.next());
    let named = request.uri().authority().map(|authority| authority.as_str());
    let header = match header.map(|host| host.to_str()) {
        Some(Ok(host)) => Some(host),
        Some(Err(_)) => return Some(Refusal::Host),
        None => None,
    };
    let Some(host) = named.or(header).and_then(Authority::parse) else { return Some(Refusal::Host) };
    if another.is_some() {
        return Some(Refusal::Host);
    }
    match header.map(Authority::parse) {
        Some(Some(header)) if host.same_place(&header) => None,
        Some(_) => Some(Refusal::HostDiffers),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::Router;
    use axum::routing::get;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::Instant;

    use super::super::head::BodyShape;
    use super::*;

    fn caller() -> Caller {
        let options = Arc::new(Connections::default());
        let peer = SocketAddr::from(([127, 0, 0, 1], 3000));
        let door = Door {
            app: App::Routes(Router::new().route("/", get(async || "served"))),
            hosts: Hosts::new(peer, &[], None, String::new()),
            cors: None,
            registry: Registry::new(1, 1, Vec::new()),
            body_room: Arc::new(BodyRoom::new(options.max_bodies_bytes)),
            answers: AnswerRoom::new(&options),
            options,
            telemetry: None,
        };
        let (pulse, tray) = (Arc::new(Pulse::new(Instant::now())), Some(Arc::default()));
        let answers = door.answers.of_connection(peer.ip());
        Caller { door: Arc::new(door), pulse, peer, tray, answers }
    }

    /// hyper without a filter below it: all that is known of requests is what the tray was told.
    async fn served(passed_on: (u64, BodyShape), bytes: &str) -> (usize, Order) {
        let caller = caller();
        caller.tray.as_ref().unwrap().requests.passed_on(passed_on, true);
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let service = service_fn(|request| caller.clone().answer(request, None));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(server), service);
        client.write_all(bytes.as_bytes()).await.unwrap();
        // On a clock that moves when nobody has anything left to do.
        let _ = tokio::time::timeout(Duration::from_secs(1), connection).await;
        let mut came = String::new();
        client.read_to_string(&mut came).await.unwrap();
        (came.matches("served").count(), caller.pulse.order())
    }

    const GET: &str = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

    #[tokio::test(start_paused = true)]
    async fn what_the_filter_has_not_counted_ends_the_connection() {
        let none = BodyShape::Length(0);
        assert_eq!(served((1, none), GET).await, (1, Order::None));
        assert_eq!(served((0, none), GET).await, (0, Order::Leave));
        let twice = format!("{GET}{GET}");
        assert_eq!(served((1, none), &twice).await, (1, Order::Leave), "the second was a body to the filter");
        let bodies = [BodyShape::Length(GET.len() as u64), BodyShape::Chunked];
        for shape in bodies {
            assert_eq!(served((1, shape), &twice).await, (0, Order::Leave), "{shape:?}");
        }
    }
}
