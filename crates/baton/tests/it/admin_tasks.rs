//! A13. The administration socket tells a task that it is authorized.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::served::{Served, baton};

/// The status and the answer of a call of the socket.
async fn tell(folder: &TempDir, path: &str, text: &'static str) -> (u16, Value) {
    let socket = folder.path().join("baton-data/demo.db.admin/socket");
    let client = reqwest::Client::builder().unix_socket(socket).build().unwrap();
    let answer = client.post(format!("http://localhost/{path}")).body(text).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn a13_a_task_goes_on_that_waited_for_authorization() {
    let folder = TempDir::new().unwrap();
    let config = "[[auth.bearer.token]]\nid = \"ann\"\nsecret = \"ann-0123456789abc\"\n";
    std::fs::write(folder.path().join("baton.toml"), config).unwrap();
    let served = Served::of(baton(&["serve", "--listen", "127.0.0.1:0"]).current_dir(folder.path()));
    let served = served.authorized("Bearer ann-0123456789abc");
    let message = |text: &str| json!({"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}]});
    let task = served.send(message("ask me to sign in")).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_AUTH_REQUIRED", "{task}");
    let id = task["id"].as_str().unwrap();
    let path = format!("tasks/{id}/authorized");

    for (path, status, says) in [
        (path.clone(), 404, "not found"),
        (format!("{path}?owner=bob"), 404, "not found"),
        (format!("{path}?owner=ann&tenant=acme"), 404, "not found"),
        (format!("{path}?owner=ann&agent=nobody"), 400, "no agent is `nobody`"),
    ] {
        let (got, answer) = tell(&folder, &path, "").await;
        let error = answer["error"].as_str().unwrap();
        assert!(got == status && error.contains(says), "{path}: {got} {error}");
    }
    let told = tell(&folder, &format!("{path}?owner=ann"), "the badge was shown").await;
    assert_eq!(told, (200, json!({"task": id})));
    let ended = loop {
        let task = served.get(&task).await;
        if task["status"]["state"] == "TASK_STATE_COMPLETED" {
            break task;
        }
    };
    let last = ended["history"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["role"], &last["parts"][0]["text"]),
        (&json!("ROLE_USER"), &json!("the badge was shown"))
    );
    let (status, answer) = tell(&folder, &format!("{path}?owner=ann"), "").await;
    assert_eq!(
        (status, answer["error"].as_str().unwrap()),
        (409, "The task does not wait for authorization")
    );
}
