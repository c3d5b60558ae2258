//! How callers give a URL: in five dialects, with a message and for a task that exists.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::served::Served;

/// How the state of a task that waits to be canceled is called.
pub(super) const WAITING: &str = "TASK_STATE_WORKING";

/// Longer than any healthy call takes.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Rpc1,
    Rest1,
    Rpc03,
    Rest03,
    Rpc01,
}

use Dialect::{Rest1, Rest03, Rpc01, Rpc1, Rpc03};

pub(super) const DIALECTS: [Dialect; 5] = [Rpc1, Rest1, Rpc03, Rest03, Rpc01];

/// When a webhook is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    WithMessage,
    Later,
}

/// A caller of one server.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    http: reqwest::Client,
    url: String,
}

/// What the server said.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<String>,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The refusal in a caller's words; `None` if the webhook was taken.
    pub(super) fn refusal(&self) -> Option<String> {
        let body = self.json();
        let error = body.get("error")?;
        let is_the_callers = matches!(error["code"].as_i64(), Some(-32602 | -32004 | 400));
        assert!(is_the_callers && self.status < 500, "{} {}", self.status, self.body);
        Some(error["message"].as_str().unwrap().to_owned())
    }

    /// The task that a message began.
    pub(super) fn task(&self) -> String {
        let body = self.json();
        let places = ["/result/task/id", "/task/id", "/result/id"];
        let found = places.iter().find_map(|place| body.pointer(place).and_then(Value::as_str));
        found.unwrap_or_else(|| panic!("no task: {body}")).to_owned()
    }
}

/// Every message and every task of 0.1 has an id of its own.
fn fresh(kind: &str) -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("{kind}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

impl Caller {
    pub(super) fn of(server: &Served) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Caller { http, url: server.url.clone() }
    }

    /// A message with a webhook, on a task of its own.
    pub(super) async fn send(&self, dialect: Dialect, text: &str, webhook: &str) -> Answer {
        let id = fresh("m");
        let push = json!({"url": webhook});
        match dialect {
            Rpc1 | Rest1 => {
                let message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]});
                let configuration = json!({"returnImmediately": true, "taskPushNotificationConfig": push});
                let params = json!({"message": message, "configuration": configuration});
                self.operation(dialect, "SendMessage", "/message:send", params).await
            }
            Rpc03 => {
                let parts = json!([{"kind": "text", "text": text}]);
                let message = json!({"kind": "message", "messageId": id, "role": "user", "parts": parts});
                let configuration = json!({"blocking": false, "pushNotificationConfig": push});
                let params = json!({"message": message, "configuration": configuration});
                self.operation(dialect, "message/send", "", params).await
            }
            Rest03 => {
                let message = json!({"messageId": id, "role": "ROLE_USER", "content": [{"text": text}]});
                let configuration = json!({"blocking": false, "pushNotification": push});
                let params = json!({"message": message, "configuration": configuration});
                self.operation(dialect, "", "/v1/message:send", params).await
            }
            Rpc01 => {
                let message = json!({"role": "user", "parts": [{"type": "text", "text": text}]});
                let params = json!({"id": fresh("task"), "message": message, "pushNotification": push});
                self.operation(dialect, "tasks/send", "", params).await
            }
        }
    }

    /// A webhook for a task that exists.
    pub(super) async fn create(&self, dialect: Dialect, task: &str, webhook: &str) -> Answer {
        let push = json!({"url": webhook});
        let path = format!("/tasks/{task}/pushNotificationConfigs");
        match dialect {
            Rpc1 => {
                let params = json!({"taskId": task, "url": webhook});
                self.operation(dialect, "CreateTaskPushNotificationConfig", "", params).await
            }
            Rest1 => self.operation(dialect, "", &path, push).await,
            Rpc03 => {
                let params = json!({"taskId": task, "pushNotificationConfig": push});
                self.operation(dialect, "tasks/pushNotificationConfig/set", "", params).await
            }
            Rest03 => {
                let params = json!({"pushNotificationConfig": push});
                self.operation(dialect, "", &format!("/v1{path}"), params).await
            }
            Rpc01 => {
                let params = json!({"id": task, "pushNotificationConfig": push});
                self.operation(dialect, "tasks/pushNotification/set", "", params).await
            }
        }
    }

    /// What an owner reads about a task and its webhooks, in a dialect.
    pub(super) async fn read(&self, dialect: Dialect, task: &str, webhook: &str) -> Vec<Answer> {
        let (of_task, all) = (format!("/tasks/{task}"), format!("/tasks/{task}/pushNotificationConfigs"));
        let one = format!("{all}/{webhook}");
        let rpc = async |method: &str, params: Value| self.operation(dialect, method, "", params).await;
        match dialect {
            Rpc1 => vec![
                rpc("GetTaskPushNotificationConfig", json!({"taskId": task, "id": webhook})).await,
                rpc("ListTaskPushNotificationConfigs", json!({"taskId": task})).await,
                rpc("GetTask", json!({"id": task})).await,
                rpc("ListTasks", json!({})).await,
            ],
            Rpc03 => vec![
                rpc(
                    "tasks/pushNotificationConfig/get",
                    json!({"id": task, "pushNotificationConfigId": webhook}),
                )
                .await,
                rpc("tasks/pushNotificationConfig/list", json!({"id": task})).await,
                rpc("tasks/get", json!({"id": task})).await,
            ],
            Rpc01 => vec![
                rpc("tasks/pushNotification/get", json!({"id": task})).await,
                rpc("tasks/get", json!({"id": task})).await,
            ],
            Rest1 => vec![self.get(&one).await, self.get(&all).await, self.get(&of_task).await],
            Rest03 => {
                let v1 = |path: &str| format!("/v1{path}");
                vec![self.get(&v1(&one)).await, self.get(&v1(&all)).await, self.get(&v1(&of_task)).await]
            }
        }
    }

    /// A task that waits until it is canceled.
    pub(super) async fn waiting_task(&self) -> String {
        let message =
            json!({"messageId": fresh("m"), "role": "ROLE_USER", "parts": [{"text": "wait until I cancel"}]});
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        self.operation(Rpc1, "SendMessage", "", params).await.task()
    }

    pub(super) async fn until(&self, task: &str, state: &str) {
        let since = Instant::now();
        loop {
            let read = self.operation(Rpc1, "GetTask", "", json!({"id": task})).await;
            let status = &read.json()["result"]["status"];
            // A task that waits says so with a message.
            if status["state"] == state && (state != WAITING || status["message"].is_object()) {
                return;
            }
            assert!(since.elapsed() < PATIENCE, "not {state}: {status}");
        }
    }

    pub(super) async fn cancel(&self, task: &str) {
        let canceled = self.operation(Rpc1, "CancelTask", "", json!({"id": task})).await;
        assert_eq!(canceled.refusal(), None);
    }

    async fn operation(&self, dialect: Dialect, method: &str, path: &str, params: Value) -> Answer {
        let (path, body) = match dialect {
            Rest1 | Rest03 => (path, params),
            Rpc1 | Rpc03 | Rpc01 => {
                ("/", json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            }
        };
        self.answer(self.http.post(format!("{}{path}", self.url)).json(&body), dialect).await
    }

    async fn get(&self, path: &str) -> Answer {
        let dialect = if path.starts_with("/v1/") { Rest03 } else { Rest1 };
        self.answer(self.http.get(format!("{}{path}", self.url)), dialect).await
    }

    async fn answer(&self, mut request: reqwest::RequestBuilder, dialect: Dialect) -> Answer {
        if matches!(dialect, Rpc1 | Rest1) {
            request = request.header("A2A-Version", "1.0");
        }
        let response = request.timeout(PATIENCE).send().await.unwrap();
        let status = response.status().as_u16();
        let mut headers: Vec<String> =
            response.headers().iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
        headers.sort_unstable();
        Answer { status, headers, body: response.text().await.unwrap() }
    }
}
