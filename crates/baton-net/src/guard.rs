//! Between hyper and the application: answers refused requests itself, checks host and origin, and follows each request to
//! its end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum_core::body::Body;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, ORIGIN, STRICT_TRANSPORT_SECURITY};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::{Body as _, Incoming};

use super::answers::{AnswerRoom, Asker, OfConnection, Reader};
use super::application::{Application, Observer};
use super::authority::{Authority, Scheme};
use super::bodies::{Faults, ObservedBody, PatientBody, UnderWay, Watch};
use super::body_room::BodyRoom;
use super::caps::Registry;
use super::client_certificates::ClientCertificates;
use super::cors::Origins;
use super::customer::CustomerOfRequest;
use super::half_close::Owed;
use super::hosts::Hosts;
use super::in_flight::InFlight;
use super::lent::{Outgoing, Tray, closes_after};
use super::options::Connections;
use super::pulse::{Order, Phase, Pulse};
use super::refusal::{self, Refusal};
#[cfg(feature = "tls")]
use super::tls::Tls;

/// What all connections of a server share.
#[derive(Debug)]
pub(super) struct Shared<A> {
    pub(super) app: A,
    pub(super) hosts: Hosts,
    pub(super) cors: Option<Origins>,
    pub(super) registry: Arc<Registry>,
    pub(super) options: Arc<Connections>,
    pub(super) body_room: Arc<BodyRoom>,
    pub(super) answers: Arc<AnswerRoom>,
    /// The requests of each customer.
    pub(super) in_flight: Arc<InFlight>,
    pub(super) observer: Option<Arc<dyn Observer>>,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<Tls>,
}

impl<A> Shared<A> {
    /// Whether the listener speaks TLS.
    pub(super) fn is_tls(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        false
    }

    /// The `Strict-Transport-Security` for the answer to this request.
    fn hsts<B>(&self, request: &Request<B>) -> Option<HeaderValue> {
        #[cfg(feature = "tls")]
        if let Some(hsts) = self.tls.as_ref().and_then(|tls| tls.hsts.as_ref()) {
            let named = request.uri().authority().map(|named| named.as_str());
            let host = named.or_else(|| request.headers().get(HOST)?.to_str().ok());
            let ours_alone = host.and_then(Authority::parse).is_some_and(|host| !host.is_loopback());
            return ours_alone.then(|| hsts.clone());
        }
        let _ = request;
        None
    }

    /// Tells the observer of an answer that the application was not asked for.
    pub(super) fn refused(&self, status: StatusCode) {
        if let Some(observer) = &self.observer {
            observer.refused(status);
        }
    }
}

/// Reports an open connection to the observer, until it is dropped.
#[derive(Debug)]
pub(super) struct Opened(Option<Arc<dyn Observer>>);

impl Opened {
    pub(super) fn new(observer: Option<&Arc<dyn Observer>>) -> Self {
        if let Some(observer) = observer {
            observer.opened();
        }
        Opened(observer.cloned())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(observer) = &self.0 {
            observer.closed();
        }
    }
}

/// What answers the requests of one connection.
#[derive(Debug)]
pub(super) struct Caller<A> {
    pub(super) shared: Arc<Shared<A>>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) peer: SocketAddr,
    /// HTTP/1 only: where hyper reads event streams from.
    pub(super) tray: Option<Arc<Tray>>,
    /// Memory limits for the answers of the connection.
    pub(super) answers: Arc<OfConnection>,
    /// What the client has shown at the TLS handshake.
    pub(super) certificates: Option<ClientCertificates>,
}

impl<A> Clone for Caller<A> {
    fn clone(&self) -> Self {
        let Caller { shared, pulse, peer, tray, answers, certificates } = self;
        let (shared, pulse, answers) = (Arc::clone(shared), Arc::clone(pulse), Arc::clone(answers));
        let (tray, certificates) = (tray.clone(), certificates.clone());
        Caller { shared, pulse, peer: *peer, tray, answers, certificates }
    }
}

impl<A: Application> Caller<A> {
    /// Answers one request; an error is an answer, too. In HTTP/2 each request has a `watch`.
    ///
    /// The request is counted at once, not when the future is first polled: hyper may read on before that.
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
                // It may be a part of another request's body, so it gets no answer.
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
        let origin = match &self.shared.cors {
            Some(_) => request.headers().get(ORIGIN).cloned(),
            None => None,
        };
        let hsts = self.shared.hsts(&request);
        let limits = [Some(Arc::clone(&self.shared.in_flight)), self.answers.requests().cloned()];
        let customer = CustomerOfRequest::new(self.peer.ip(), limits);
        let mut response = match self.refuse(&request) {
            Some(response) => {
                self.shared.refused(response.status());
                response
            }
            None => self.pass_on(request, watch.as_ref(), &customer).await,
        };
        if let Some(cors) = &self.shared.cors {
            cors.decorate(origin.as_ref(), response.headers_mut());
        }
        if let Some(hsts) = hsts {
            response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, hsts);
        }
        if version == Version::HTTP_10
            || (version == Version::HTTP_11 && (self.shared.registry.is_draining() || self.leaves_body()))
        {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if only_head {
            response = without_body(response);
        }
        let response = response.map(|body| ObservedBody::new(body, under_way.of(customer), watch));
        Ok(Outgoing::of(response, owed, version, closes, self.tray.as_ref()))
    }

    /// HTTP/1 only: whether the answer is ready before hyper has read the body, as that to a caller who is not known. hyper
    /// then closes the connection after the answer, unless the rest has come by chance; a client that is not told would
    /// send its next request into a closed connection.
    fn leaves_body(&self) -> bool {
        self.tray.is_some() && self.pulse.phase() == Phase::Body
    }

    /// The answer, if the application must not be asked.
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
        if self.shared.registry.is_draining() && !self.shared.hosts.paths.is_health(path) {
            return Some(Refusal::Stopping.response(version));
        }
        let cors = self.shared.cors.as_ref();
        if let Err(not_here) = self.shared.hosts.check(request, cors) {
            tracing::debug!(status = not_here.status.as_u16(), "a request was refused by its host or origin");
            return Some(refusal::plain(not_here.status, &not_here.text, version));
        }
        match cors {
            Some(cors) if !self.shared.hosts.paths.is_for_everybody(request.method(), path) => {
                cors.preflight(request)
            }
            _ => None,
        }
    }

    async fn pass_on(
        &self,
        mut request: Request<Incoming>,
        watch: Option<&Arc<Watch>>,
        customer: &CustomerOfRequest,
    ) -> Response<Body> {
        let version = request.version();
        let faults = match watch {
            Some(watch) => Faults::Stream(Arc::clone(watch)),
            None => Faults::Connection(Arc::clone(&self.pulse)),
        };
        if let Some(certificates) = &self.certificates {
            request.extensions_mut().insert(certificates.clone());
        }
        let Shared { options, body_room, .. } = &*self.shared;
        let of_body = customer.clone();
        let request =
            request.map(|body| Body::new(PatientBody::new(body, faults, options, body_room, of_body)));
        let reader = match watch {
            Some(watch) => Reader::Stream(Arc::clone(watch)),
            None => Reader::Connection(Arc::clone(&self.pulse)),
        };
        let asker = Asker::new(&self.answers, reader, customer.clone());
        let response = self.shared.app.answer(request, self.peer, asker).await;
        let fault = match watch {
            Some(watch) => watch.found_fault(),
            None => self.pulse.found_fault(),
        };
        // The application has seen only a part of the body, so its answer is replaced.
        fault.map_or(response, |fault| fault.response(version))
    }
}

/// The answer to HEAD. hyper removes the body in HTTP/1 only.
fn without_body(mut response: Response<Body>) -> Response<Body> {
    if let Some(length) = response.body().size_hint().exact().filter(|length| *length > 0) {
        response.headers_mut().entry(CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(length));
    }
    response.map(|_| Body::empty())
}

/// The h2 crate has checked frames and pseudo headers; the rest of what is refused in HTTP/1 is checked here.
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
        Some(Some(header)) if host.same_place(&header, Scheme::of(request.uri())) => None,
        Some(_) => Some(Refusal::HostDiffers),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::Instant;

    use super::super::head::BodyShape;
    use super::super::settings::OpenPaths;
    use super::*;

    #[derive(Debug)]
    struct Served;

    impl Application for Served {
        async fn answer(&self, _: Request<Body>, _: SocketAddr, _: Asker) -> Response<Body> {
            Response::new(Body::from("served"))
        }
    }

    fn caller() -> Caller<Served> {
        let options = Arc::new(Connections::default());
        let peer = SocketAddr::from(([127, 0, 0, 1], 3000));
        let shared = Shared {
            app: Served,
            hosts: Hosts::new(peer, Scheme::Http, &[], None, OpenPaths::default()),
            cors: None,
            registry: Registry::new(1, 1, Vec::new()),
            body_room: Arc::new(BodyRoom::new(options.max_bodies_bytes)),
            answers: AnswerRoom::new(&options),
            in_flight: InFlight::new(1),
            options,
            observer: None,
            #[cfg(feature = "tls")]
            tls: None,
        };
        let (pulse, tray) = (Arc::new(Pulse::new(Instant::now())), Some(Arc::default()));
        let answers = shared.answers.of_connection();
        Caller { shared: Arc::new(shared), pulse, peer, tray, answers, certificates: None }
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
