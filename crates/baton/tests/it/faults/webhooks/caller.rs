//! Calls to a server that is killed now and then, and started again somewhere else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use baton_protocol::Generation;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::forms::{self, Form, Said};

const CALL: Duration = Duration::from_secs(20);
/// A client that finds nobody tries again after this, or when there is a new address.
const AGAIN: Duration = Duration::from_millis(20);

/// Nobody answered, or not to the end.
pub(super) struct Cut;

/// What one client calls with.
pub(super) struct Caller {
    http: reqwest::Client,
    listening: watch::Receiver<String>,
    cut: Arc<AtomicU64>,
}

impl Caller {
    /// `cut` counts the calls that got no answer.
    pub(super) fn new(listening: watch::Receiver<String>, cut: Arc<AtomicU64>) -> Self {
        Caller { http: reqwest::Client::new(), listening, cut }
    }

    /// A message until it is acknowledged. Answers the task.
    pub(super) async fn sent(&mut self, generation: Generation, said: &Said<'_>) -> String {
        let form = forms::send(generation, said);
        loop {
            if let Ok(answer) = self.call(generation, &form).await {
                let task = forms::task_of(&answer);
                return task.unwrap_or_else(|| panic!("{form:?}: {answer}")).to_owned();
            }
            self.wait().await;
        }
    }

    pub(super) async fn cancel(&mut self, task: &str) {
        loop {
            // Canceled before is refused: then the task says so.
            let _ = self.call(Generation::V1, &("CancelTask", json!({"id": task}))).await;
            if self.state(task).await.is_some_and(|state| state == "TASK_STATE_CANCELED") {
                return;
            }
            self.wait().await;
        }
    }

    /// Waits until the task has ended or has this state; answers its state.
    pub(super) async fn until(&mut self, task: &str, state: &str) -> String {
        loop {
            if let Some(now) = self.state(task).await
                && (now.ends_with(state) && !state.is_empty()
                    || ["COMPLETED", "FAILED", "CANCELED"].iter().any(|end| now.ends_with(end)))
            {
                return now;
            }
            self.wait().await;
        }
    }

    /// `None` if there is no such task.
    pub(super) async fn state(&mut self, task: &str) -> Option<String> {
        loop {
            if let Ok(answer) = self.call(Generation::V1, &("GetTask", json!({"id": task}))).await {
                return answer["result"]["status"]["state"].as_str().map(str::to_owned);
            }
            self.wait().await;
        }
    }

    pub(super) async fn call(&self, generation: Generation, (method, params): &Form) -> Result<Value, Cut> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let url = format!("{}/demo/", self.listening.borrow().as_str());
        let request = self.http.post(url).header("A2A-Version", generation.version()).json(&body);
        let cut = |_| {
            self.cut.fetch_add(1, Ordering::Relaxed);
            Cut
        };
        request.timeout(CALL).send().await.map_err(cut)?.json().await.map_err(cut)
    }

    /// Until there may be somebody again.
    pub(super) async fn wait(&mut self) {
        let _ = tokio::time::timeout(AGAIN, self.listening.changed()).await;
    }
}
