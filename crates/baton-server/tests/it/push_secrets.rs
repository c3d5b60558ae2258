//! S-14: tokens and credentials of webhooks at rest.

use std::path::Path;
use std::sync::Arc;

use baton_server::store::sqlite::{Options, SqliteStore};
use baton_server::{Builder, MasterKey, MasterKeys, Turn};
use serde_json::json;

use crate::fixtures::{Gate, agent_with};
use crate::harness::{id, message_to, serve, with_agent};
use crate::push::{Receiver, options};

const TOKEN: &str = "canary-of-the-token";
const CREDENTIALS: &str = "canary-of-the-credentials";

/// Also in the write-ahead log, which a running server has beside the database.
fn is_in_a_file_of(folder: &Path, canary: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        bytes.windows(canary.len()).any(|bytes| bytes == canary.as_bytes())
    })
}

#[tokio::test]
async fn s14_with_a_master_key_tokens_and_credentials_are_encrypted_in_the_store() {
    let master_key = MasterKey::parse("eKNJQC5x+hjYPoJk6mcGzslYX0hBg3R0F5xtbQzZ/0I=").unwrap();
    for (master_key, is_plain) in [(None, true), (Some(master_key), false)] {
        let (folder, gate, receiver) =
            (tempfile::tempdir().unwrap(), Gate::new(), Receiver::start(&[]).await);
        let builder = || -> Builder {
            let store = SqliteStore::open(folder.path().join("tasks.db"), Options::default()).unwrap();
            let agent = agent_with(&gate, |gate: Gate, turn: Turn| async move {
                gate.pass().await;
                turn.progress("after").await
            });
            let builder = with_agent(agent).push(options()).store(Arc::new(store));
            match &master_key {
                Some(key) => builder.master_key(key.clone()),
                None => builder,
            }
        };
        let server = serve(builder()).await;
        let task = server.start("go").await;
        let authentication = json!({"scheme": "Bearer", "credentials": CREDENTIALS});
        let webhook = json!({"taskId": id(&task), "url": receiver.url, "token": TOKEN, "authentication": authentication});
        server.call("CreateTaskPushNotificationConfig", webhook).await.result();
        for canary in [TOKEN, CREDENTIALS] {
            // Without a key it is in base64, which hides nothing.
            let encoded = encoded_within(canary);
            let found = encoded.iter().any(|part| is_in_a_file_of(folder.path(), part));
            assert_eq!(found || is_in_a_file_of(folder.path(), canary), is_plain, "{canary}");
        }
        gate.let_pass(1);
        for call in receiver.wait_for_end().await {
            assert_eq!(call.header("authorization"), format!("Bearer {CREDENTIALS}"));
            assert_eq!(call.header("x-a2a-notification-token"), TOKEN);
        }
        server.stop().await;
    }
}

#[tokio::test]
async fn s16_open_webhooks_keep_their_secrets_when_the_master_key_is_replaced() {
    let key = |text: &str| MasterKey::parse(text).unwrap();
    let first = key("eKNJQC5x+hjYPoJk6mcGzslYX0hBg3R0F5xtbQzZ/0I=");
    let second = key("qUe3hNRzX8JvYtBm5wKc0PdLs7GfAi2xZoE9yT4b6Vk=");
    let (folder, receiver) = (tempfile::tempdir().unwrap(), Receiver::start(&[]).await);
    let store = Arc::new(SqliteStore::open(folder.path().join("tasks.db"), Options::default()).unwrap());
    let builder = |keys: MasterKeys| -> Builder {
        let agent = |turn: Turn| async move {
            if turn.text() == "ask" {
                drop(turn.ask("which?"));
            }
            Ok(())
        };
        with_agent(agent).push(options()).store(store.clone()).master_key(keys)
    };
    let server = serve(builder(first.clone().into())).await;
    let task = server.send("ask").await;
    let authentication = json!({"scheme": "Bearer", "credentials": CREDENTIALS});
    let webhook =
        json!({"taskId": id(&task), "url": receiver.url, "token": TOKEN, "authentication": authentication});
    server.call("CreateTaskPushNotificationConfig", webhook).await.result();
    server.stop().await;
    serve(builder(MasterKeys::new(second.clone()).with_old(first))).await.stop().await;
    // The old key is gone.
    let server = serve(builder(second.into())).await;
    server.call("SendMessage", message_to(&task, "this one")).await.result();
    for call in receiver.wait_for_end().await {
        assert_eq!(call.header("authorization"), format!("Bearer {CREDENTIALS}"));
        assert_eq!(call.header("x-a2a-notification-token"), TOKEN);
    }
    server.stop().await;
}

/// How the text looks inside of base64, wherever in a group of three bytes it begins.
fn encoded_within(text: &str) -> [String; 3] {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD_NO_PAD;
    [0, 1, 2].map(|skipped| {
        let whole = &text[skipped..];
        STANDARD_NO_PAD.encode(&whole[..whole.len() / 3 * 3])
    })
}
