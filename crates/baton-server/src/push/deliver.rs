//! One attempt to deliver a webhook: resolve and judge the host, connect to an address that was judged, send, and read the
//! status. Redirects are not followed, and no proxy is used: both would choose an address that nobody judged.

mod connect;
mod exchange;
#[cfg(not(feature = "tls"))]
mod no_tls;
mod outcome;
mod pool;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls")]
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Full;
#[cfg(not(feature = "tls"))]
use no_tls::Tls;
#[cfg(feature = "tls")]
use tls::Tls;
use tokio::time::{Instant, timeout_at};

use self::exchange::Open;
pub(crate) use self::outcome::{NoAnswer, Outcome, Stage};
use self::pool::{Place, Pool};
use super::schedule;
use super::target::{Guard, Target};

const OUR_NAME: HeaderValue = HeaderValue::from_static(concat!("baton/", env!("CARGO_PKG_VERSION")));

/// Bounds of an attempt.
#[derive(Debug, Clone)]
pub(crate) struct DeliverOptions {
    /// Longest time for a whole attempt. Default: 15 s.
    pub(crate) timeout: Duration,
    /// Longest time to open a connection to one of the host's addresses, before the next one is tried. Default: 5 s.
    pub(crate) connect_timeout: Duration,
    /// Longest time to wait for the rest of an answer whose status is known. Only a connection whose answer was read to its
    /// end can be used again. Default: 1 s.
    pub(crate) drain_timeout: Duration,
    /// Most bytes of an answer's body that are read. Default: 4 KiB.
    pub(crate) max_answer_bytes: usize,
    /// Most idle connections that are kept. Default: 256.
    pub(crate) max_idle: usize,
    /// How long an idle connection is kept. Default: 15 s.
    pub(crate) idle_time: Duration,
    /// Certificates as PEM that are trusted beside those of the system, for receivers with a private certificate authority.
    pub(crate) extra_roots: Vec<Vec<u8>>,
}

impl Default for DeliverOptions {
    fn default() -> Self {
        DeliverOptions {
            timeout: Duration::from_secs(15),
            connect_timeout: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(1),
            max_answer_bytes: 4096,
            max_idle: 256,
            idle_time: Duration::from_secs(15),
            extra_roots: Vec::new(),
        }
    }
}

/// What is sent. The headers are ours alone: values that callers chose come from [`credentials`](super::credentials).
#[derive(Debug, Clone)]
pub(crate) struct Post {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Delivers webhooks. A cheap handle.
#[derive(Debug, Clone)]
pub(crate) struct Deliverer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    guard: Guard,
    options: DeliverOptions,
    tls: Tls,
    pool: Arc<Pool>,
}

impl Deliverer {
    /// Fails if the extra certificates cannot be read.
    pub(crate) fn new(guard: Guard, options: DeliverOptions) -> Result<Self, String> {
        let tls = Tls::new(&options.extra_roots)?;
        let pool = Pool::new(options.max_idle, options.idle_time);
        Ok(Deliverer(Arc::new(Shared { guard, options, tls, pool })))
    }

    /// One attempt, within the timeout. Dropping the future closes the connection.
    pub(crate) async fn post(&self, url: &str, post: Post) -> Outcome {
        match self.0.attempt(url, post).await {
            Ok((status, headers)) => Outcome::Answered { status, retry_after: retry_after(&headers) },
            Err(why) => Outcome::NoAnswer(why),
        }
    }
}

impl Shared {
    async fn attempt(&self, url: &str, post: Post) -> Result<(StatusCode, HeaderMap), NoAnswer> {
        let deadline = Instant::now() + self.options.timeout;
        let target = self.guard.check(url).map_err(NoAnswer::Target)?;
        let resolved = timeout_at(deadline, self.guard.addresses(&target)).await;
        let addresses =
            resolved.map_err(|_| NoAnswer::Timeout(Stage::Resolve))?.map_err(NoAnswer::Address)?;
        let authority = HeaderValue::from_str(&target.authority()).map_err(|_| NoAnswer::Authority)?;
        if let Some((place, open)) = self.pool.take(&target, &addresses) {
            let request = request(&target, authority.clone(), post.clone());
            match self.exchange(open, place, request, deadline).await {
                // The receiver has closed the connection meanwhile, as anybody may after an answer. If it did so while the
                // request was under way, it may get the event twice: the id is the same.
                Err(NoAnswer::Http(_)) => {}
                other => return other,
            }
        }
        let (address, open) = self.connect(&target, &addresses, deadline).await?;
        self.exchange(open, Place::new(&target, address), request(&target, authority, post), deadline).await
    }

    /// Tries one address after the other.
    async fn connect(
        &self,
        target: &Target,
        addresses: &[SocketAddr],
        deadline: Instant,
    ) -> Result<(SocketAddr, Open), NoAnswer> {
        let mut failed = None;
        for address in addresses {
            let by = deadline.min(Instant::now() + self.options.connect_timeout);
            match connect::open(*address, target, &self.tls, by).await {
                Ok(open) => return Ok((*address, open)),
                Err(why) => failed = Some(why),
            }
            if Instant::now() >= deadline {
                break;
            }
        }
        Err(failed.unwrap_or(NoAnswer::Timeout(Stage::Connect)))
    }

    /// Sends, and keeps the connection if it can be used again.
    async fn exchange(
        &self,
        mut open: Open,
        place: Place,
        request: Request<Full<Bytes>>,
        deadline: Instant,
    ) -> Result<(StatusCode, HeaderMap), NoAnswer> {
        let answered = timeout_at(deadline, open.send(request)).await;
        let response = answered.map_err(|_| NoAnswer::Timeout(Stage::Answer))?.map_err(NoAnswer::Http)?;
        let (head, body) = response.into_parts();
        // The status is the receiver's answer, whatever becomes of the body.
        let by = deadline.min(Instant::now() + self.options.drain_timeout);
        if timeout_at(by, open.finish(body, self.options.max_answer_bytes)).await == Ok(true) {
            self.pool.put(place, open);
        }
        Ok((head.status, head.headers))
    }
}

fn request(target: &Target, authority: HeaderValue, post: Post) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(post.body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from(target.path().clone());
    *request.headers_mut() = post.headers;
    request.headers_mut().insert(HOST, authority);
    request.headers_mut().insert(USER_AGENT, OUR_NAME);
    request
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    schedule::read_retry_after(value.as_bytes(), now.as_secs())
}
