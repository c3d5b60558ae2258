//! P-09: webhooks and lists of them, in every dialect, against a server made of the codecs alone: Baton has none yet.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use baton_client::protocol::domain::{
    AgentCard, AgentInterface, PushAuthentication, PushConfig, PushConfigId, TaskId,
};
use baton_client::protocol::generation::{AskedVersion, Generations, Named, of_method};
use baton_client::protocol::operation::{Call, Reply};
use baton_client::protocol::wire::dialect::{AnswerFacts, Dialect};
use baton_client::protocol::wire::pb::Package;
use baton_client::protocol::wire::{http_json, jsonrpc};
use baton_client::protocol::{Error, ErrorKind, Generation};
use baton_client::{Binding, Client};

use crate::harness::{quick, serve_router};
use crate::scripted_grpc;

type Configs = Arc<Mutex<Vec<PushConfig>>>;

fn reply(configs: &Configs, call: Call) -> Result<Reply, Error> {
    let mut configs = configs.lock().unwrap();
    match call {
        Call::CreatePushConfig(mut config) => {
            config.id.get_or_insert_with(|| PushConfigId::parse("made-by-server").unwrap());
            configs.push(config.clone());
            Ok(Reply::PushConfig(config))
        }
        Call::GetPushConfig { id, .. } => {
            let found = configs.iter().find(|config| config.id == id || id.is_none());
            found.cloned().map(Reply::PushConfig).ok_or_else(|| Error::of(ErrorKind::TaskNotFound))
        }
        Call::ListPushConfigs { page_token, .. } => {
            let configs = configs.clone();
            let next_page_token = if page_token.is_none() { "more".to_owned() } else { String::new() };
            Ok(Reply::PushConfigs { configs, next_page_token })
        }
        Call::DeletePushConfig { id, .. } => {
            configs.retain(|config| config.id.as_ref() != Some(&id));
            Ok(Reply::PushConfigDeleted)
        }
        Call::GetExtendedCard => Ok(Reply::Card(Box::new(AgentCard::new("extended", "", "1")))),
        other => panic!("not in this test: {other:?}"),
    }
}

async fn answer(
    State(configs): State<Configs>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let version = headers.get("a2a-version").and_then(|value| value.to_str().ok());
    let asked = AskedVersion::read(version, None);
    let mut out = Vec::new();
    let mut status = StatusCode::OK;
    if let Some((package, operation)) = Package::of_path(uri.path()) {
        let call = package.decode_call(operation, scripted_grpc::message(&body)).unwrap().call;
        return match reply(&configs, call) {
            Ok(reply) => scripted_grpc::Script::of(&package.write_reply(&reply).unwrap()).answer(),
            Err(error) => scripted_grpc::Script::default().failed(package, &error).answer(),
        };
    }
    if uri.path() == "/rpc" {
        let request = jsonrpc::parse_request(&body).unwrap();
        let id = request.id.unwrap();
        let named = of_method(&request.method, &asked, Generations::ALL).unwrap();
        let Named::Generation(generation, operation) = named else { panic!("{named:?}") };
        let dialect = Dialect::in_jsonrpc(generation);
        let call = dialect.decode_call(operation, request.params).unwrap().call;
        match reply(&configs, call) {
            Ok(reply) => jsonrpc::write_result(&mut out, &id, |out| {
                dialect.write_reply(out, &reply, &AnswerFacts::default());
            }),
            Err(error) => jsonrpc::write_error(&mut out, Some(&id), generation, &error),
        }
    } else {
        let path = uri.path().strip_prefix("/rest").unwrap();
        let route = http_json::route(method.as_str(), path, &asked, |_| false).unwrap().unwrap();
        let text = Some(std::str::from_utf8(&body).unwrap()).filter(|text| !text.is_empty());
        let call = http_json::call_of(&route, uri.query(), text).unwrap().call;
        let dialect = Dialect::in_http_json(route.generation);
        match reply(&configs, call) {
            // As some servers do.
            Ok(Reply::PushConfigDeleted) => status = StatusCode::NO_CONTENT,
            Ok(reply) => dialect.write_reply(&mut out, &reply, &AnswerFacts::default()),
            Err(error) => {
                http_json::write_error(&mut out, route.generation, &error);
                status = StatusCode::NOT_FOUND;
            }
        }
    }
    (status, [(header::CONTENT_TYPE, "application/json")], out).into_response()
}

async fn client(url: &str, binding: Binding, version: Generation) -> Client {
    let url = match binding {
        Binding::JsonRpc => format!("{url}/rpc"),
        Binding::HttpJson => format!("{url}/rest"),
        _ => url.strip_prefix("http://").unwrap().to_owned(),
    };
    let mut card = AgentCard::new("webhooks", "", "1");
    card.interfaces = vec![AgentInterface {
        url,
        protocol_binding: binding.name().to_owned(),
        protocol_version: version.version().to_owned(),
        tenant: None,
    }];
    let mut json = Vec::new();
    baton_client::protocol::wire::v1::write_card(&mut json, &card);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("card.json");
    std::fs::write(&file, json).unwrap();
    quick().connect(file.to_str().unwrap()).await.unwrap()
}

#[tokio::test]
async fn p09_webhooks_are_made_read_listed_and_removed() {
    let task_id = TaskId::parse("t-1").unwrap();
    for (binding, version) in [
        (Binding::JsonRpc, Generation::V1),
        (Binding::HttpJson, Generation::V1),
        (Binding::JsonRpc, Generation::V0_3),
        (Binding::HttpJson, Generation::V0_3),
        (Binding::Grpc, Generation::V1),
        (Binding::Grpc, Generation::V0_3),
    ] {
        let configs = Configs::default();
        let url = serve_router(Router::new().fallback(answer).with_state(Arc::clone(&configs))).await;
        let client = client(&url, binding, version).await;
        let config = PushConfig {
            id: Some(PushConfigId::parse("hook/1").unwrap()),
            task_id: Some(task_id.clone()),
            token: Some("token".to_owned()),
            authentication: Some(PushAuthentication {
                scheme: "Bearer".to_owned(),
                credentials: Some("secret".to_owned()),
            }),
            ..PushConfig::new("https://hook.example.org/?a=b")
        };
        // A slash in a resource name of 0.3 would be a path.
        let config = match version {
            Generation::V1 => config,
            _ => PushConfig { id: Some(PushConfigId::parse("hook-1").unwrap()), ..config },
        };
        let id = config.id.clone().unwrap();
        let case = format!("{binding} {version:?}");
        assert_eq!(client.create_push_config(config.clone()).await.unwrap(), config, "{case}");
        assert_eq!(client.push_config(&task_id, &id).await.unwrap(), config, "{case}");
        let page = client.push_configs(&task_id, None).await.unwrap();
        assert_eq!(page.configs, std::slice::from_ref(&config), "{case}");
        client.delete_push_config(&task_id, &id).await.unwrap();
        assert!(configs.lock().unwrap().is_empty(), "{case}");
        let error = client.push_config(&task_id, &id).await.unwrap_err();
        assert_eq!(error.kind(), Some(ErrorKind::TaskNotFound), "{case} {error}");
        let nameless = PushConfig { task_id: None, ..config };
        assert!(matches!(
            client.create_push_config(nameless).await.unwrap_err(),
            baton_client::Error::Invalid(_)
        ));
    }
}

/// The JavaScript SDK reads another form of 0.3 than those of Python and Go.
#[tokio::test]
async fn p09_webhooks_of_0_3_are_sent_in_the_form_that_the_server_reads() {
    async fn picky(State(bodies): State<Arc<Mutex<Vec<String>>>>, body: String) -> Response {
        bodies.lock().unwrap().push(body.clone());
        if body.contains("\"parent\"") {
            let error = r#"{"code":-32602,"message":"pushNotificationConfig is missing"}"#;
            return (StatusCode::BAD_REQUEST, error).into_response();
        }
        (StatusCode::CREATED, body).into_response()
    }
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let url = serve_router(Router::new().fallback(picky).with_state(Arc::clone(&bodies))).await;
    let client = client(&url, Binding::HttpJson, Generation::V0_3).await;
    let config = PushConfig {
        id: Some(PushConfigId::parse("hook-1").unwrap()),
        task_id: Some(TaskId::parse("t-1").unwrap()),
        ..PushConfig::new("https://hook.example.org")
    };
    for requests in [2, 3] {
        assert_eq!(client.create_push_config(config.clone()).await.unwrap(), config);
        assert_eq!(bodies.lock().unwrap().len(), requests, "the client remembers");
    }
}
