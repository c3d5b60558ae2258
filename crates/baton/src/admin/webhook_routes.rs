//! The server's side of the calls about webhooks.

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::routing::{get, post};
use baton_server::{WebhookError, Webhooks};
use http::{Response, StatusCode};
use serde::Serialize;

use super::Refused;
use super::listener::json;
use super::webhooks::{self, Parameters, WhichWebhooks, Whose};

pub(super) fn routes(webhooks: Webhooks) -> Router {
    Router::new()
        .route("/webhooks", get(list))
        .route("/webhooks/{name}", get(show))
        .route("/webhooks/{name}/replay", post(replay))
        .route("/webhooks/{name}/disable", post(disable))
        .route("/failed-webhooks/replay", post(replay_failed))
        .with_state(webhooks)
}

/// The parameters of a call.
type Asked = Result<Query<Parameters>, QueryRejection>;

async fn list(State(webhooks): State<Webhooks>, which: Asked) -> Response<Body> {
    match read(which, WhichWebhooks::from_query) {
        Ok(which) => answer(webhooks::list(&webhooks, &which).await),
        Err(bad) => misunderstood(bad),
    }
}

async fn show(State(webhooks): State<Webhooks>, Path(name): Path<String>, whose: Asked) -> Response<Body> {
    match read(whose, Whose::from_query) {
        Ok(whose) => answer(webhooks::show(&webhooks, &name, &whose).await),
        Err(bad) => misunderstood(bad),
    }
}

async fn replay(State(webhooks): State<Webhooks>, Path(name): Path<String>, whose: Asked) -> Response<Body> {
    match read(whose, Whose::from_query) {
        Ok(whose) => answer(webhooks::replay(&webhooks, &name, &whose).await),
        Err(bad) => misunderstood(bad),
    }
}

async fn replay_failed(State(webhooks): State<Webhooks>, which: Asked) -> Response<Body> {
    match read(which, WhichWebhooks::from_query) {
        Ok(which) => answer(webhooks::replay_failed(&webhooks, &which).await),
        Err(bad) => misunderstood(bad),
    }
}

async fn disable(State(webhooks): State<Webhooks>, Path(name): Path<String>, whose: Asked) -> Response<Body> {
    match read(whose, Whose::from_query) {
        Ok(whose) => answer(webhooks::disable(&webhooks, &name, &whose).await),
        Err(bad) => misunderstood(bad),
    }
}

fn answer(done: Result<impl Serialize, WebhookError>) -> Response<Body> {
    let error = match done {
        Ok(done) => return json(StatusCode::OK, &done),
        Err(error) => error,
    };
    let status = match error {
        WebhookError::Unknown(_) | WebhookError::Removed => StatusCode::NOT_FOUND,
        WebhookError::BadPosition => StatusCode::BAD_REQUEST,
        WebhookError::NotDelivered(_) => StatusCode::BAD_GATEWAY,
        WebhookError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::CONFLICT,
    };
    json(status, &Refused { error: error.to_string() })
}

fn read<T>(asked: Asked, from_query: fn(Parameters) -> Result<T, String>) -> Result<T, String> {
    let Ok(Query(parameters)) = asked else { return Err("the query cannot be read".to_owned()) };
    from_query(parameters)
}

fn misunderstood(error: String) -> Response<Body> {
    json(StatusCode::BAD_REQUEST, &Refused { error })
}
