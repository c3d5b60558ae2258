//! Extensions: how a client names those that it supports.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use baton_client::protocol::Generation;
use baton_client::{Binding, Discovered};

use crate::harness::{quick, serve_router};

/// Several are joined with commas in one header; those of 0.3 have the older name.
#[tokio::test]
async fn p09_several_extensions_are_named_in_one_header() {
    let heard: Arc<Mutex<Vec<HeaderMap>>> = Arc::default();
    let hear = Arc::clone(&heard);
    let url = serve_router(Router::new().fallback(move |request: Request| async move {
        hear.lock().unwrap().push(request.headers().clone());
        StatusCode::NOT_FOUND
    }))
    .await;
    let interface = |binding: &str, version: &str| {
        format!(r#"{{"url":"{url}","protocolBinding":"{binding}","protocolVersion":"{version}"}}"#)
    };
    let faces = [
        (Binding::JsonRpc, "JSONRPC", Generation::V1, "1.0", "a2a-extensions"),
        (Binding::HttpJson, "HTTP+JSON", Generation::V1, "1.0", "a2a-extensions"),
        (Binding::JsonRpc, "JSONRPC", Generation::V0_3, "0.3", "x-a2a-extensions"),
        (Binding::HttpJson, "HTTP+JSON", Generation::V0_3, "0.3", "x-a2a-extensions"),
        (Binding::Grpc, "GRPC", Generation::V1, "1.0", "a2a-extensions"),
        (Binding::Grpc, "GRPC", Generation::V0_3, "0.3", "x-a2a-extensions"),
    ];
    let interfaces = faces.map(|(_, binding, _, version, _)| interface(binding, version)).join(",");
    let card = format!(
        r#"{{"name":"n","description":"","version":"1","capabilities":{{}},"defaultInputModes":["text/plain"],
        "defaultOutputModes":["text/plain"],"skills":[],"supportedInterfaces":[{interfaces}]}}"#
    );
    for (binding, _, version, _, header) in faces {
        let card = Discovered::from_json(card.clone()).unwrap();
        let builder = quick().bindings([binding]).versions([version]);
        let builder = builder.extension("https://a.example/one").extension("urn:two");
        builder.with_card(card).unwrap().send("hello").await.unwrap_err();
        let headers = heard.lock().unwrap().pop().expect("the message was sent");
        let named: Vec<_> = headers.get_all(header).iter().collect();
        assert_eq!(named, ["https://a.example/one,urn:two"], "{binding:?} {version:?}: {headers:?}");
    }
}
