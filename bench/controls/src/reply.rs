//! axum that parses the JSON-RPC envelope and answers with the bytes of `BODY`; with `KEEP` it also keeps the bytes of
//! every request in a map.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use bench_host::{Heap, Host};
use serde::Deserialize;
use serde_json::value::RawValue;

pub fn main(heap: Heap) -> ExitCode {
    bench_host::run(heap, serve)
}

/// The envelope only.
#[derive(Deserialize)]
struct Envelope<'a> {
    jsonrpc: &'a str,
    method: &'a str,
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    params: &'a RawValue,
}

struct Control {
    body: Bytes,
    /// The kept bytes, by consecutive numbers.
    kept: Option<Mutex<HashMap<u64, Bytes>>>,
}

async fn serve(host: Host) -> Result<(), String> {
    let kept = std::env::var_os("KEEP").map(|_| Mutex::default());
    let control = Arc::new(Control { body: crate::recorded("BODY")?.into(), kept });
    let router = Router::new().route("/", post(answer)).with_state(control);
    let listener = tokio::net::TcpListener::bind(host.address()).await.map_err(|error| error.to_string())?;
    let listener = listener.tap_io(|socket| {
        let _ = socket.set_nodelay(true);
    });
    let served = tokio::spawn(async move { axum::serve(listener, router).await }).await;
    served.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

async fn answer(State(control): State<Arc<Control>>, request: Bytes) -> Response {
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(&request) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    if envelope.jsonrpc != "2.0" || envelope.method.is_empty() || envelope.id.get().is_empty() {
        return StatusCode::BAD_REQUEST.into_response();
    }
    if let Some(kept) = &control.kept {
        // A copy, as every server that keeps a message must make: the connection reuses the request's buffer.
        let bytes = Bytes::copy_from_slice(envelope.params.get().as_bytes());
        let mut kept = kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let number = kept.len() as u64;
        kept.insert(number, bytes);
    }
    ([(CONTENT_TYPE, "application/json")], control.body.clone()).into_response()
}
