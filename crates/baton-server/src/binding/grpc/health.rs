//! `grpc.health.v1.Health`: what `/readyz` says, for clients and load balancers that speak gRPC. Everybody may call it.

use std::time::Duration;

use axum::body::Body;
use baton_protocol::ErrorKind;
use baton_protocol::error::GrpcCode;
use baton_protocol::wire::pb::{
    HEALTH_SERVICE, Package, REFLECTION_SERVICES, Serving, read_health_request, write_health,
};
use http::request::Parts;
use http::{Response, StatusCode};
use tokio::time::{Instant, sleep_until};

use super::messages::{self, Messages};
use super::status::Ending;
use super::{Deadline, MEDIA_TYPE, Refused, in_time, message, plain_failure};
use crate::binding::respond;
use crate::engine::caller::Caller;
use crate::engine::stream_slots::StreamSlot;
use crate::engine::{Engine, Health};
use crate::site::Site;

/// How often a watched server looks whether it is ready: each look writes to the store, at most once a second. That it
/// stops is told at once.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Longest request: the name of a service.
const MAX_REQUEST: usize = 1024;

/// The two methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::binding) enum Probe {
    Check,
    Watch,
}

impl Probe {
    pub(in crate::binding) fn at(path: &str) -> Option<Self> {
        match path.strip_prefix('/')?.strip_prefix(HEALTH_SERVICE)? {
            "/Check" => Some(Self::Check),
            "/Watch" => Some(Self::Watch),
            _ => None,
        }
    }
}

/// `caller` is who is counted for the stream.
pub(in crate::binding) async fn handle(
    site: &Site,
    probe: Probe,
    caller: &Caller,
    parts: &Parts,
    body: Body,
) -> Response<Body> {
    let answered = answer(site, probe, caller, parts, body).await;
    answered.unwrap_or_else(|refused| plain_failure(&Ending::plain(&refused)))
}

async fn answer(
    site: &Site,
    probe: Probe,
    caller: &Caller,
    parts: &Parts,
    body: Body,
) -> Result<Response<Body>, Refused> {
    let deadline = Deadline::of(&parts.headers).checked()?;
    message::check_encoding(&parts.headers)?;
    let service = read_health_request(message::read(MAX_REQUEST, &parts.headers, body).await?)?;
    let (engine, known) = (site.engine(), is_known(site, &service));
    let body = match probe {
        Probe::Check if !known => {
            let ending = Ending::saying(GrpcCode::NotFound, "This server has no such service");
            return Ok(plain_failure(&ending));
        }
        Probe::Check => {
            let serving = async { Ok::<_, Refused>(serving(engine).await) };
            super::body(write_health(in_time(deadline, serving).await?).into(), None)
        }
        Probe::Watch => {
            let slot = site.nearest().stream_slot_of(caller)?;
            let engine = engine.clone();
            messages::body(Watch { engine, known, told: None, deadline, _slot: slot })
        }
    };
    Ok(respond::json(StatusCode::OK, MEDIA_TYPE, body))
}

fn is_known(site: &Site, service: &str) -> bool {
    let of_a2a = || Package::ALL.iter().any(|package| package.service() == service);
    let reflects = || site.grpc_services().reflection.is_some() && REFLECTION_SERVICES.contains(&service);
    service.is_empty() || service == HEALTH_SERVICE || of_a2a() || reflects()
}

async fn serving(engine: &Engine) -> Serving {
    if engine.health().await == Health::Ready { Serving::Yes } else { Serving::No }
}

/// Tells what is so now, and each change of it.
struct Watch {
    engine: Engine,
    known: bool,
    told: Option<Serving>,
    deadline: Option<Instant>,
    _slot: StreamSlot,
}

impl Messages for Watch {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Ending> {
        loop {
            let now = if self.known { serving(&self.engine).await } else { Serving::Unknown };
            if self.told != Some(now) {
                self.told = Some(now);
                return Ok(Some(write_health(now)));
            }
            if self.engine.closing().is_cancelled() {
                return Err(Ending::saying(GrpcCode::Unavailable, "The server is stopping"));
            }
            if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                let over = ErrorKind::DeadlineExceeded.row();
                return Err(Ending::saying(over.grpc, over.message));
            }
            self.change().await;
        }
    }
}

impl Watch {
    /// Waits until there may be something to tell.
    async fn change(&self) {
        let look = Instant::now() + LOOK_EVERY;
        let until = self.deadline.map_or(look, |deadline| deadline.min(look));
        let stopping = self.engine.stopping();
        tokio::select! {
            () = stopping.cancelled(), if !stopping.is_cancelled() => {}
            () = self.engine.closing().cancelled() => {}
            () = sleep_until(until) => {}
        }
    }
}
