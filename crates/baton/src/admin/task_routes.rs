//! The server's side of the calls about tasks.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::routing::post;
use baton_server::a2a::{Error, ErrorKind, TaskId};
use baton_server::{LocalClient, Server};
use http::{Response, StatusCode};
use serde::{Deserialize, Serialize};

use super::Refused;
use super::listener::json;

/// What the agent is told if the call has no text.
const AUTHORIZED: &str = "Authorized";

pub(super) fn routes(server: Server) -> Router {
    Router::new().route("/tasks/{task}/authorized", post(authorized)).with_state(server)
}

/// Whose task it is. Nothing: that of a caller who is not authenticated, with the agent at the root.
#[derive(Debug, Default, Deserialize)]
struct OfTask {
    owner: Option<String>,
    agent: Option<String>,
    tenant: Option<String>,
}

#[derive(Debug, Serialize)]
struct Told {
    task: String,
}

async fn authorized(
    State(server): State<Server>,
    Path(task): Path<String>,
    Query(whose): Query<OfTask>,
    text: String,
) -> Response<Body> {
    let text = Some(text.trim()).filter(|text| !text.is_empty()).unwrap_or(AUTHORIZED);
    match tell(&server, &task, whose, text).await {
        Ok(()) => json(StatusCode::OK, &Told { task }),
        Err((status, error)) => json(status, &Refused { error }),
    }
}

async fn tell(server: &Server, task: &str, whose: OfTask, text: &str) -> Result<(), (StatusCode, String)> {
    let bad = |error: String| (StatusCode::BAD_REQUEST, error);
    let OfTask { owner, agent, tenant } = whose;
    let mut client: LocalClient = match agent {
        None => server.client(),
        Some(agent) => server.client_of(&agent).ok_or_else(|| bad(format!("no agent is `{agent}`")))?,
    };
    if let Some(owner) = owner {
        client = client.as_owner(&owner).map_err(|error| bad(error.to_string()))?;
    }
    if let Some(tenant) = tenant {
        client = client.in_tenant(&tenant);
    }
    let id = TaskId::parse(task).map_err(|error| bad(error.to_string()))?;
    client.authorized(&id, text).await.map(drop).map_err(|error: Error| {
        let status = match error.kind() {
            ErrorKind::TaskNotFound => StatusCode::NOT_FOUND,
            ErrorKind::Unavailable | ErrorKind::ResourceExhausted => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::CONFLICT,
        };
        (status, error.to_string())
    })
}
