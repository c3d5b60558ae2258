//! gRPC: every command by it, in both versions that have it. What the commands show is checked for all bindings together in
//! `live`; these are the ones that it does not have, and what is particular to gRPC.

use serde_json::json;

use super::User;
use super::scripted::{Answer, Scripted, all_bindings, card, task};
use crate::served::Served;

const GRPC: [&str; 2] = ["--transport", "grpc"];

#[test]
fn p09_cli_tx_005_every_command_speaks_grpc() {
    let (served, user) = (Served::with_grpc(), User::new());
    let url = served.url.as_str();
    for version in ["1.0", "0.3"] {
        let run = |args: &[&str]| {
            let said = user.run(&[args, &GRPC, &["--a2a-version", version, "--debug"]].concat());
            assert!(
                said.err.contains(&format!("Debug: interface GRPC {version} http://127.0.0.1:")),
                "{said:?}"
            );
            said
        };
        let done = run(&["send", url, "hello"]).ok();
        assert_eq!(done.field("State"), "TASK_STATE_COMPLETED");
        let lines = run(&["send", url, "hello", "--stream", "-o", "json"]).ok();
        assert!(lines.lines().len() > 2, "{lines:?}");
        assert!(!lines.out.contains("urn:baton:resume"), "{lines:?}");
        assert_eq!(
            run(&["task", "get", url, done.field("Task")]).ok().field("State"),
            "TASK_STATE_COMPLETED"
        );
        let held = run(&["send", url, "wait until I cancel", "--async"]).ok();
        let id = held.field("Task");
        let canceled = run(&["task", "cancel", url, id]).ok();
        assert_eq!(canceled.field("State"), "TASK_STATE_CANCELED");
        let refused = run(&["task", "subscribe", url, id, "-o", "json"]).failed(1);
        assert_eq!(refused.error().0, "UnsupportedOperationError");
        match version {
            "1.0" => assert_ne!(run(&["task", "list", url]).ok().field("Total"), "0"),
            _ => {
                let refused = run(&["task", "list", url, "-o", "json"]).failed(1);
                assert_eq!(refused.error().0, "UnsupportedOperationError");
            }
        }
    }
}

#[test]
fn p09_cli_tx_005_bench_counts_over_grpc() {
    let served = Served::with_grpc();
    for operation in ["send", "get", "stream"] {
        let args =
            ["bench", &served.url, "hello", "--operation", operation, "--rate", "50", "--duration", "1s"];
        let report = User::new().run(&[&args[..], &GRPC, &["-o", "json"]].concat()).ok().json();
        assert_eq!(report["interface"]["binding"], "GRPC", "{report}");
        assert_eq!((&report["requests"]["answered"], &report["requests"]["failed"]), (&json!(50), &json!(0)));
        if operation == "stream" {
            let streams = &report["streams"];
            assert_eq!((&streams["lost"], &streams["doubled"]), (&json!(0), &json!(0)), "{report}");
        }
    }
}

/// An address without a scheme does not tell whether TLS is spoken.
#[test]
fn p09_cli_tx_005_grpc_without_tls_has_to_be_asked_for_elsewhere() {
    let args = ["serve", "--listen", "127.0.0.2:0", "--store", "memory:", "--grpc"];
    let (served, user) = (Served::with(&args), User::new());
    let host = served.url.strip_prefix("http://").unwrap();
    let interface = json!({"url": host, "protocolBinding": "GRPC", "protocolVersion": "1.0"});
    let file = user.folder().join("card.json");
    std::fs::write(&file, card(&served.url, json!({"supportedInterfaces": [interface]})).to_string())
        .unwrap();
    let send = ["send", "-a", "./card.json", "hello", "-o", "json"];
    assert_eq!(user.run(&send).failed(3).error().0, "A2ACLI_ERR_UNREACHABLE");
    user.run(&[&send[..], &["--grpc-plaintext"]].concat()).ok();
    let said = user.run(&[&send[..5], &["text", "--grpc-plaintext"]].concat()).ok();
    assert!(said.field("Resume").contains("--grpc-plaintext"), "{said:?}");
    // The card came from there without TLS.
    user.run(&["send", &served.url, "hello", "--transport", "grpc"]).ok();
}

#[test]
fn p09_a_message_can_refer_to_other_tasks() {
    let user = User::new();
    for transport in ["jsonrpc", "rest", "grpc"] {
        let agent = Scripted::start(
            |url| card(url, json!({"supportedInterfaces": all_bindings(url)})),
            |_, _| Answer::Result(json!({"task": task("TASK_STATE_COMPLETED")})),
        );
        let args = ["send", &agent.url, "again", "--async", "--transport", transport];
        user.run(&[&args[..], &["--reference-task", "t-7", "--reference-task", "t-8"]].concat()).ok();
        let call = agent.calls().pop().unwrap();
        let body = if transport == "jsonrpc" { &call.body["params"] } else { &call.body };
        assert_eq!(body["message"]["referenceTaskIds"], json!(["t-7", "t-8"]), "{transport}");
    }
    let said = user.run(&["send", "http://127.0.0.1:1", "x", "--reference-task", ""]).failed(2);
    assert!(said.err.contains("--reference-task"), "{said:?}");
}
