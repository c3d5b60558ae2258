//! P-02, S-14: the webhooks of a task, page by page, in every binding whose request has a page.

use baton_server::PushOptions;
use http::Method;
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::harness::{Answer, TestServer, serve, with_agent};
use crate::speakers::{read, request};

/// A page: `None` for the refusal of the request.
type Page = Option<(Vec<String>, String)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    V1Rpc,
    V1Rest,
    V03Rest,
    #[cfg(feature = "grpc")]
    V1Grpc,
    #[cfg(feature = "grpc")]
    V03Grpc,
}

const WAYS: &[Way] = &[
    Way::V1Rpc,
    Way::V1Rest,
    Way::V03Rest,
    #[cfg(feature = "grpc")]
    Way::V1Grpc,
    #[cfg(feature = "grpc")]
    Way::V03Grpc,
];

fn page(json: &Value) -> (Vec<String>, String) {
    let configs = json["configs"].as_array().cloned().unwrap_or_default();
    // In 0.3 a config is named with its task.
    let name = |config: &Value| {
        config.get("id").or_else(|| config.get("name")).unwrap().as_str().unwrap().to_owned()
    };
    let last = |name: String| name.rsplit('/').next().unwrap().to_owned();
    let token = json["nextPageToken"].as_str().unwrap_or_default().to_owned();
    (configs.iter().map(name).map(last).collect(), token)
}

fn answered(answer: &Answer) -> Page {
    let body = answer.body.get("result").unwrap_or(&answer.body);
    if body.get("error").is_none() {
        return Some(page(body));
    }
    assert!(answer.body.to_string().contains("INVALID_PARAMS"), "{}", answer.body);
    None
}

async fn list(server: &TestServer, way: Way, task: &str, size: Option<i32>, token: &str) -> Page {
    let query = || {
        let size = size.map(|size| format!("pageSize={size}&")).unwrap_or_default();
        format!("/tasks/{task}/pushNotificationConfigs?{size}pageToken={token}")
    };
    let mut params = json!({"pageToken": token});
    if let Some(size) = size {
        params["pageSize"] = json!(size);
    }
    match way {
        Way::V1Rpc => {
            params["taskId"] = json!(task);
            answered(&server.call("ListTaskPushNotificationConfigs", params).await)
        }
        Way::V1Rest => {
            let version = [("a2a-version", "1.0")];
            answered(&read(request(server, Method::GET, &query(), &version, "").await).await)
        }
        Way::V03Rest => {
            let path = format!("/v1{}", query());
            answered(&read(request(server, Method::GET, &path, &[], "").await).await)
        }
        #[cfg(feature = "grpc")]
        Way::V1Grpc | Way::V03Grpc => {
            use crate::grpc_client::{Grpc, told};
            use baton_protocol::wire::pb::Package;
            let (package, method) = match way {
                Way::V1Grpc => (Package::V1, "ListTaskPushNotificationConfigs"),
                _ => (Package::V0_3, "ListTaskPushNotificationConfig"),
            };
            match package {
                Package::V1 => params["taskId"] = json!(task),
                Package::V0_3 => params["parent"] = json!(format!("tasks/{task}")),
            }
            match Grpc::connect(server, package).await.call(method, params).await {
                Ok(reply) => Some(page(&reply.json)),
                Err(status) => {
                    assert_eq!(told(&status).1, "INVALID_PARAMS", "{way:?}");
                    None
                }
            }
        }
    }
}

#[tokio::test]
async fn p02_webhooks_are_listed_page_by_page() {
    let mut options = PushOptions::default();
    options.development = true;
    let server = serve(with_agent(obedient).push(options)).await;
    let mut tasks = Vec::new();
    for _ in 0..2 {
        let task = server.start("hold").await["id"].as_str().unwrap().to_owned();
        for id in ["c", "a", "e", "b", "d"] {
            let config = json!({"taskId": task, "id": id, "url": "http://127.0.0.1:9999/hook"});
            server.call("CreateTaskPushNotificationConfig", config).await.result();
        }
        tasks.push(task);
    }
    let [task, other] = [&tasks[0], &tasks[1]];
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    for way in WAYS.iter().copied() {
        for all in [None, Some(0), Some(5), Some(1000)] {
            let whole = list(&server, way, task, all, "").await.unwrap();
            assert_eq!(whole, (names(&["a", "b", "c", "d", "e"]), String::new()), "{way:?} {all:?}");
        }
        let (first, token) = list(&server, way, task, Some(2), "").await.unwrap();
        assert_eq!(first, names(&["a", "b"]), "{way:?}");
        // What is removed meanwhile is not missed.
        let gone = json!({"taskId": task, "id": "b"});
        server.call("DeleteTaskPushNotificationConfig", gone.clone()).await.result();
        let (second, next) = list(&server, way, task, Some(2), &token).await.unwrap();
        assert_eq!(second, names(&["c", "d"]), "{way:?}");
        let last = list(&server, way, task, Some(2), &next).await.unwrap();
        assert_eq!(last, (names(&["e"]), String::new()), "{way:?}");
        let mut back = gone;
        back["url"] = json!("http://127.0.0.1:9999/hook");
        server.call("CreateTaskPushNotificationConfig", back).await.result();

        for (task, size, token) in [(task, -1, ""), (task, 2, "YQ"), (other, 2, token.as_str())] {
            assert_eq!(list(&server, way, task, Some(size), token).await, None, "{way:?} {size} {token}");
        }
    }
}
