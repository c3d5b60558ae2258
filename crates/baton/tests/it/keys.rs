//! API keys: `--api-key`, and `baton key` on a running server and on its store.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::keep_alive::{Connection, request};
use crate::served::{Served, baton, finished, text};

const SECRET: &str = "canary-correct-horse-battery";

/// A command in a folder of its own, with the default store in it.
fn within(folder: &Path, args: &[&str]) -> Command {
    let mut command = baton(args);
    command.current_dir(folder);
    command
}

fn serve(folder: &Path) -> Command {
    within(folder, &["serve", "--listen", "127.0.0.1:0"])
}

/// What a command that must succeed prints.
fn printed(folder: &Path, args: &[&str]) -> String {
    let output = within(folder, args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Issues a key: its id and its text.
fn issue(folder: &Path, args: &[&str]) -> (String, String) {
    let printed = printed(folder, &[&["key", "new", "--json"], args].concat());
    let issued: Value = serde_json::from_str(&printed).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&issued["key"]["id"]), text(&issued["secret"]))
}

/// Calls an operation with these headers: the HTTP status and the answer.
async fn call(server: &Served, query: &str, headers: &[(&str, &str)]) -> (u16, Value) {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}});
    let mut sent =
        reqwest::Client::new().post(format!("{}/{query}", server.url)).header("A2A-Version", "1.0");
    for (name, value) in headers {
        sent = sent.header(*name, *value);
    }
    let answer = sent.json(&request).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

async fn status(server: &Served, key: &str) -> u16 {
    call(server, "", &[("X-API-Key", key)]).await.0
}

fn secret_file(folder: &Path) -> String {
    let path = folder.join("secret");
    std::fs::write(&path, format!("{SECRET}\n")).unwrap();
    format!("@{}", path.display())
}

/// The whole log, whatever its level.
fn verbose(command: &mut Command) -> &mut Command {
    let others = ('a'..='z').map(|letter| format!(",{letter}=trace")).collect::<String>();
    command.arg("--log-requests").env("BATON_LOG", format!("trace{others}"))
}

#[tokio::test]
async fn s16_one_secret_protects_everything_but_the_card() {
    let folder = TempDir::new().unwrap();
    let file = secret_file(folder.path());
    let mut command = serve(folder.path());
    let server = Served::of(verbose(command.args(["--api-key", &file])));
    assert_eq!(status(&server, SECRET).await, 200);
    let (missing, answer) = call(&server, "", &[]).await;
    assert_eq!((missing, &answer["error"]["code"], &answer["id"]), (401, &json!(-32000), &Value::Null));
    let nearly = &SECRET[..SECRET.len() - 1];
    for wrong in [nearly, "wrong", "", &SECRET.to_uppercase()] {
        assert_eq!(status(&server, wrong).await, 401, "{wrong}");
    }
    let twice = [("X-API-Key", SECRET), ("X-API-Key", SECRET)];
    assert_eq!(call(&server, "", &twice).await.0, 401);
    for elsewhere in
        [("Authorization", format!("Bearer {SECRET}")), ("Cookie", format!("X-API-Key={SECRET}"))]
    {
        assert_eq!(call(&server, "", &[(elsewhere.0, &elsewhere.1)]).await.0, 401, "{elsewhere:?}");
    }
    assert_eq!(call(&server, &format!("?X-API-Key={SECRET}"), &[]).await.0, 401);
    for path in ["/tasks", "/tasks/unknown", "/v1/tasks", "/extendedAgentCard"] {
        assert_eq!(server.probe(path).await.0, 401, "{path}");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.probe(path).await.0, 200, "{path}");
    }

    let card = server.card().await;
    assert_eq!(
        card["securitySchemes"]["apiKey"]["apiKeySecurityScheme"],
        json!({"location": "header", "name": "X-API-Key"})
    );
    assert_eq!(card["securityRequirements"], json!([{"schemes": {"apiKey": {}}}]));
    // As pasted it works: the shell reads the file.
    let cat = format!("-H \"X-API-Key: $(cat {})\"", &file[1..]);
    assert!(server.welcome.contains("Try it:") && server.welcome.contains(&cat), "{}", server.welcome);
    let command_line = std::fs::read(format!("/proc/{}/cmdline", server.pid())).unwrap();
    assert!(!String::from_utf8_lossy(&command_line).contains("canary"));
    assert!(!server.welcome.contains("canary"), "{}", server.welcome);
    let log = server.stop_and_log();
    assert!(log.contains("ListTasks") && !log.contains(nearly), "{log}");
}

#[tokio::test]
async fn p05_a_key_in_the_query_or_in_a_cookie_is_not_logged() {
    for (location, query, cookie) in [
        ("query", format!("?api_key={SECRET}"), String::new()),
        ("cookie", String::new(), format!("theme=dark; api_key={SECRET}")),
    ] {
        let folder = TempDir::new().unwrap();
        let mut command = serve(folder.path());
        command.env("BATON_API_KEY", SECRET).env("BATON_AUTH_API_KEY_LOCATION", location);
        let server = Served::of(verbose(&mut command));
        let cookies: &[(&str, &str)] = &[("Cookie", &cookie)];
        let headers = if cookie.is_empty() { &[] } else { cookies };
        assert_eq!(call(&server, &query, headers).await.0, 200, "{location}");
        assert_eq!(call(&server, &query.replace("canary", "x"), &[]).await.0, 401, "{location}");
        assert_eq!(status(&server, SECRET).await, 401, "{location}");
        let card = server.card().await;
        let declared = &card["securitySchemes"]["apiKey"]["apiKeySecurityScheme"];
        assert_eq!(declared, &json!({"location": location, "name": "api_key"}));
        let shown =
            if location == "query" { "/?api_key=$BATON_API_KEY\"" } else { "-b \"api_key=$BATON_API_KEY\"" };
        assert!(server.welcome.contains(shown), "{}", server.welcome);
        assert!(server.welcome.contains("with a key in the variable BATON_API_KEY:"), "{}", server.welcome);
        // Also when the call itself cannot be understood.
        assert_eq!(
            call(&server, &format!("?{}&pageSize=%zz", query.trim_start_matches('?')), headers).await.0,
            200,
            "{location}"
        );
        let log = server.stop_and_log();
        assert!(log.contains("ListTasks"), "{log}");
        let lines: Vec<_> = log.lines().filter(|line| line.contains("canary")).collect();
        assert!(lines.is_empty(), "{lines:?}");
    }
}

#[test]
fn s16_secrets_that_cannot_be_used_stop_the_start_and_are_not_shown() {
    let folder = TempDir::new().unwrap();
    for (secret, enabled, reason) in [
        ("canary-short", "", "fewer than 16 characters"),
        ("canary with some spaces", "", "cannot be sent in a header"),
        ("@canary-missing", "", "No such file"),
        ("canary-0123456789", "false", "would protect nothing"),
    ] {
        for args in [&["serve", "config", "check"][..], &["serve", "--listen", "127.0.0.1:0"]] {
            let mut command = within(folder.path(), args);
            command.env("BATON_API_KEY", secret).env("BATON_AUTH_API_KEY_ENABLED", enabled);
            let (code, said) = finished(&mut command);
            assert_eq!(code, Some(2), "{secret}: {said}");
            assert!(said.contains("BATON_API_KEY") && said.contains(reason), "{said}");
            assert!(secret.starts_with('@') || !said.contains("canary"), "{said}");
        }
    }
    let mut show = within(folder.path(), &["serve", "config", "show", "--api-key", "canary-0123456789"]);
    let shown = String::from_utf8(show.output().unwrap().stdout).unwrap();
    assert!(shown.contains("secret = \"***\"") && shown.contains("# --api-key"), "{shown}");
    assert!(!shown.contains("canary"), "{shown}");
}

/// The answer's status to a call with this key.
fn status_on(connection: &mut Connection, key: &str) -> u16 {
    connection.exchange(&request("ListTasks", json!({}), &[("X-API-Key", key)])).0
}

#[tokio::test]
async fn s16_a_key_works_at_once_and_a_revoked_one_no_longer() {
    let folder = TempDir::new().unwrap();
    let mut command = serve(folder.path());
    let server = Served::of(command.env("BATON_AUTH_API_KEY_ENABLED", "true"));
    let command = "`baton key new NAME --store sqlite:./baton-data/demo.db`";
    assert!(server.log_with("there is none yet").contains(command));
    assert!(server.welcome.contains(command), "{}", server.welcome);
    let (id, alice) = issue(folder.path(), &["alice"]);
    let (_, bob) =
        issue(folder.path(), &["bob-laptop", "--owner", "bob", "--scope", "read", "--scope", "write"]);
    assert!(alice.starts_with(&format!("bk_{id}_")) && alice.len() == 55, "{alice}");

    // Each owner has tasks of its own.
    let wait =
        json!({"message": text("m", "wait until I cancel"), "configuration": {"returnImmediately": true}});
    let task = server.call_with("SendMessage", wait, &[("X-API-Key", &alice)]).await["task"].take();
    for (key, tasks) in [(&alice, 1), (&bob, 0)] {
        let listed = call(&server, "", &[("X-API-Key", key)]).await.1;
        assert_eq!(listed["result"]["tasks"].as_array().unwrap().len(), tasks, "{listed}");
    }
    let subscribe = async |key: &str| {
        let call =
            json!({"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task["id"]}});
        let sent = reqwest::Client::new().post(&server.url).header("A2A-Version", "1.0");
        sent.header("X-API-Key", key).json(&call).send().await.unwrap()
    };
    let open = subscribe(&alice).await;
    assert_eq!(open.status(), 200);

    let mut connection = Connection::to(&server);
    assert_eq!((status_on(&mut connection, &alice), status_on(&mut connection, &alice)), (200, 200));
    let said = printed(folder.path(), &["key", "revoke", "alice"]);
    assert_eq!(said, format!("Key {id} (alice) of owner alice is revoked\n"));
    assert_eq!((status_on(&mut connection, &alice), status_on(&mut connection, &bob)), (401, 200));
    assert_eq!(subscribe(&alice).await.status(), 401, "a stream is not opened again");
    drop(open);

    let listed: Value = serde_json::from_str(&printed(folder.path(), &["key", "list", "--json"])).unwrap();
    assert_eq!(listed["keys"][0]["state"], "revoked");
    assert_eq!(listed["keys"][1]["scopes"], json!(["read", "write"]));
    for verb in [&["key", "list"][..], &["key", "list", "--json"]] {
        let shown = printed(folder.path(), verb);
        assert!(shown.contains("bob-laptop") && !shown.contains("bk_"), "{shown}");
    }
    for (again, reason) in [
        (&["key", "revoke", "alice"][..], &*format!("the key {id} has been revoked before")),
        (&["key", "revoke", &id], &format!("the key {id} has been revoked before")),
        (&["key", "revoke", "nobody"], "there is no key `nobody`"),
        (&["key", "new", "bob-laptop"], "has the name `bob-laptop` already"),
        (&["key", "new", "x", "--owner", "anonymous"], "choose another name"),
        (&["key", "new", "x", "--scope", "a b"], "is not a scope"),
    ] {
        let (code, said) = finished(&mut within(folder.path(), again));
        assert!(code == Some(1) && said.contains(reason), "{said}");
    }
    drop(server);

    // What the server has written, its log included, holds no secret.
    for file in std::fs::read_dir(folder.path().join("baton-data")).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            let bytes = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            for key in [&alice, &bob] {
                assert!(!bytes.contains(&key[12..]), "{}", path.display());
            }
        }
    }
}

#[tokio::test]
async fn s16_an_expired_key_is_refused() {
    let folder = TempDir::new().unwrap();
    let server = Served::of(serve(folder.path()).env("BATON_AUTH_API_KEY_ENABLED", "true"));
    let (_, lasting) = issue(folder.path(), &["lasting", "--expires", "90d"]);
    let (_, brief) = issue(folder.path(), &["brief", "--expires", "2s"]);
    let since = Instant::now();
    let refused = loop {
        let (status, answer) = call(&server, "", &[("X-API-Key", &brief)]).await;
        if status != 200 {
            break (status, answer);
        }
        assert!(since.elapsed() < Duration::from_secs(60), "it does not expire");
    };
    assert_eq!(refused.0, 401);
    assert!(refused.1["error"]["message"].as_str().unwrap().contains("expired"), "{}", refused.1);
    assert_eq!(status(&server, &lasting).await, 200);
    let listed: Value = serde_json::from_str(&printed(folder.path(), &["key", "list", "--json"])).unwrap();
    assert_eq!(
        (&listed["keys"][0]["state"], &listed["keys"][1]["state"]),
        (&json!("active"), &json!("expired"))
    );
}

#[tokio::test]
async fn p05_the_scopes_of_a_key_are_compared_with_the_card() {
    let folder = TempDir::new().unwrap();
    let card = json!({
        "name": "Scoped", "description": "d", "version": "1",
        "capabilities": {}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [
            {"id": "task", "name": "n", "description": "d", "tags": []},
            {"id": "message", "name": "n", "description": "d", "tags": []},
        ],
        "securitySchemes": {"apiKey": {"apiKeySecurityScheme": {"location": "header", "name": "X-API-Key"}}},
        "securityRequirements": [{"schemes": {"apiKey": {"list": ["tasks:read"]}}}],
    });
    std::fs::write(folder.path().join("card.json"), card.to_string()).unwrap();
    let mut command = serve(folder.path());
    command.args(["--card", "card.json"]);
    // Nothing is behind the scheme that the card declares.
    let (code, said) = finished(&mut command);
    assert!(code == Some(2) && said.contains("authenticates nobody"), "{code:?} {said}");
    let server = Served::of(command.env("BATON_AUTH_API_KEY_ENABLED", "true"));
    let (_, reader) = issue(folder.path(), &["reader", "--scope", "tasks:read"]);
    let (_, writer) = issue(folder.path(), &["writer", "--scope", "tasks:write"]);
    assert_eq!(status(&server, &reader).await, 200);
    assert_eq!(status(&server, &writer).await, 403);
    assert_eq!(status(&server, "nobody").await, 401);
}

#[tokio::test]
async fn s16_the_first_key_is_required_from_the_next_start_and_for_good() {
    let folder = TempDir::new().unwrap();
    let server = Served::of(&mut serve(folder.path()));
    server.send(text("m", "Hello, Baton")).await;
    let said = printed(folder.path(), &["key", "new", "ci"]);
    assert!(said.contains("lets everybody in until it is restarted"), "{said}");
    assert!(said.contains(&format!("curl -sS {}/ -H \"X-API-Key: bk_", server.url)), "{said}");
    let key = said.split_whitespace().find(|word| word.starts_with("bk_")).unwrap();
    assert_eq!(call(&server, "", &[]).await.0, 200);
    assert_eq!(status(&server, key).await, 200);
    server.terminate();

    let server = Served::of(&mut serve(folder.path()));
    let log = server.log_with("no key can see them");
    assert!(log.contains("tasks=1"), "{log}");
    assert_eq!(call(&server, "", &[]).await.0, 401);
    let (_, listed) = call(&server, "", &[("X-API-Key", key)]).await;
    assert_eq!(listed["result"]["tasks"], json!([]), "tasks of anonymous callers are not the key's");
    server.terminate();

    // Without a server the store is changed. Revoking the last key does not let everybody in.
    printed(folder.path(), &["key", "revoke", "ci"]);
    let server = Served::of(&mut serve(folder.path()));
    assert_eq!((call(&server, "", &[]).await.0, status(&server, key).await), (401, 401));
    server.terminate();
    let server = Served::of(serve(folder.path()).env("BATON_AUTH_API_KEY_ENABLED", "false"));
    server.log_with("auth.api_key.enabled is false");
    assert_eq!(call(&server, "", &[]).await.0, 200);
}

#[test]
fn s16_only_the_servers_user_reaches_its_socket_and_a_stale_one_is_replaced() {
    let folder = TempDir::new().unwrap();
    let place = folder.path().join("baton-data/demo.db.admin");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let server = Served::of(&mut serve(folder.path()));
    assert_eq!((mode(&place), mode(&place.join("socket"))), (0o700, 0o600));
    server.signal("-KILL");
    server.ended();
    assert!(place.join("socket").exists(), "it was killed");
    // Nobody listens there, so the store is opened; then a server takes the place over.
    assert_eq!(
        printed(folder.path(), &["key", "list"]),
        "There are no keys; `baton key new NAME` makes one\n"
    );
    let server = Served::of(&mut serve(folder.path()));
    issue(folder.path(), &["ci"]);
    server.terminate();
    assert!(!place.join("socket").exists(), "it was stopped");

    // A folder that others can enter, and a file that is not a socket, are not used.
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o755)).unwrap();
    let server = Served::of(&mut serve(folder.path()));
    assert!(server.log_with("no administration socket").contains("chmod 700"));
    let (code, said) = finished(&mut within(folder.path(), &["key", "list"]));
    assert!(code == Some(1) && said.contains("no server listens at"), "{said}");
    server.terminate();
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::write(place.join("socket"), "mine").unwrap();
    let server = Served::of(&mut serve(folder.path()));
    server.log_with("is there and is not a socket");
    assert_eq!(std::fs::read_to_string(place.join("socket")).unwrap(), "mine");
}

#[tokio::test]
async fn s16_a_store_in_memory_has_keys_in_the_running_server_only() {
    let folder = TempDir::new().unwrap();
    let memory = ["--store", "memory:"];
    let (code, said) = finished(&mut within(folder.path(), &[&["key", "new", "ci"], &memory[..]].concat()));
    assert!(code == Some(1) && said.contains("set admin.socket to a path"), "{said}");
    let private = folder.path().join("private");
    let socket = private.join("s");
    let mut command = serve(folder.path());
    command.args(memory).env("BATON_ADMIN_SOCKET", &socket).env("BATON_AUTH_API_KEY_ENABLED", "true");
    let server = Served::of(&mut command);
    let there = ["--socket", socket.to_str().unwrap()];
    let (_, key) = issue(folder.path(), &[&["ci"], &memory[..], &there].concat());
    assert_eq!(status(&server, &key).await, 200);
    server.terminate();
    let (code, said) =
        finished(&mut within(folder.path(), &[&["key", "list"], &memory[..], &there].concat()));
    assert!(code == Some(1) && said.contains("no server listens at"), "{said}");
}

#[test]
fn s16_a_path_that_is_too_long_for_a_socket_is_named() {
    let folder = TempDir::new().unwrap();
    let store = format!("sqlite:{}/tasks.db", "d".repeat(90));
    let mut command = serve(folder.path());
    command.args(["--store", &store]);
    let server = Served::of(&mut command);
    assert!(server.log_with("no administration socket").contains("set admin.socket to a shorter one"));
    server.terminate();
    // Named by the operator, it stops the start.
    let (code, said) = finished(command.env("BATON_ADMIN_SOCKET", "s".repeat(200)));
    assert!(code == Some(1) && said.contains("admin.socket") && said.contains("shorter"), "{said}");
    let (code, said) = finished(&mut within(folder.path(), &["key", "list", "--store", "sqlite:other.db"]));
    assert!(code == Some(1) && said.contains("there is no store at other.db"), "{said}");
}

/// A reload makes the scheme anew; the keys of the store are still accepted, and a revoked one still is not.
#[tokio::test]
async fn s16_a_new_secret_in_the_file_replaces_the_old_one_and_leaves_the_keys() {
    let folder = TempDir::new().unwrap();
    let file = secret_file(folder.path());
    let server = Served::of(serve(folder.path()).args(["--api-key", &file]));
    let (_, key) = issue(folder.path(), &["ci"]);
    let (_, revoked) = issue(folder.path(), &["gone"]);
    printed(folder.path(), &["key", "revoke", "gone"]);
    assert_eq!((status(&server, SECRET).await, status(&server, &key).await), (200, 200));
    let [mut of_secret, mut of_key] =
        [stream(&server, SECRET, "m-1").await, stream(&server, &key, "m-2").await];
    std::fs::write(folder.path().join("secret"), "another-correct-horse\n").unwrap();
    server.signal("-HUP");
    server.log_with("configuration reloaded");
    assert_eq!(status(&server, SECRET).await, 401);
    assert!(rest(&mut of_secret).await.contains("no longer valid"));
    assert_eq!(status(&server, "another-correct-horse").await, 200);
    assert_eq!((status(&server, &key).await, status(&server, &revoked).await), (200, 401));
    // What is issued and revoked after the reload counts, too.
    let (_, later) = issue(folder.path(), &["later"]);
    assert_eq!(status(&server, &later).await, 200);
    printed(folder.path(), &["key", "revoke", "ci"]);
    assert_eq!(status(&server, &key).await, 401);
    assert!(rest(&mut of_key).await.contains("no longer valid"), "open until now");
}

/// The stream of a task that goes on until it is canceled.
async fn stream(server: &Served, key: &str, id: &str) -> reqwest::Response {
    let params = json!({"message": text(id, "tck-cancel")});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params});
    let request = reqwest::Client::new().post(format!("{}/", server.url)).header("A2A-Version", "1.0");
    let mut stream = request.header("X-API-Key", key).json(&body).send().await.unwrap();
    stream.chunk().await.unwrap().expect("the task");
    stream
}

async fn rest(stream: &mut reqwest::Response) -> String {
    let mut rest = String::new();
    while let Some(chunk) = stream.chunk().await.unwrap() {
        rest += &String::from_utf8_lossy(&chunk);
    }
    rest
}

#[test]
fn s16_without_a_socket_the_keys_of_a_running_server_stay_as_they_are() {
    let folder = TempDir::new().unwrap();
    let _server = Served::of(serve(folder.path()).env("BATON_ADMIN_SOCKET", "off"));
    assert!(!folder.path().join("baton-data/demo.db.admin").exists());
    let (code, said) =
        finished(within(folder.path(), &["key", "new", "ci"]).env("BATON_ADMIN_SOCKET", "off"));
    assert!(code == Some(1) && said.contains("it is switched off"), "{said}");
}

/// A command that finds no store of its own does not make one beside a server that it could have meant.
#[tokio::test]
async fn s16_a_key_is_not_put_into_a_store_that_nobody_serves() {
    let folder = TempDir::new().unwrap();
    let mut command = serve(folder.path());
    command.args(["--exec", "cat"]).env("BATON_AUTH_API_KEY_ENABLED", "true");
    let server = Served::of(&mut command);
    let store = server.line("store").to_owned();
    let advice = format!("--store {store}");
    assert!(server.welcome.contains(&format!("baton key new NAME {advice}")), "{}", server.welcome);
    for verb in [&["key", "new", "ci"][..], &["key", "list"], &["key", "revoke", "ci"]] {
        let (code, said) = finished(&mut within(folder.path(), verb));
        assert!(code == Some(1) && said.contains("a server runs on") && said.contains(&advice), "{said}");
    }
    assert!(!folder.path().join("baton-data/demo.db").exists());
    let said = printed(folder.path(), &["key", "new", "ci", "--store", &store]);
    assert!(said.contains(&format!("stored in {store}, and the server that runs on it has it")), "{said}");
    let key = said.split_whitespace().find(|word| word.starts_with("bk_")).unwrap();
    assert_eq!(status(&server, key).await, 200);
    server.terminate();
    let (code, said) = finished(&mut within(folder.path(), &["key", "new", "other"]));
    assert!(code == Some(1) && said.contains("but there is") && said.contains(&advice), "{said}");
    let issued = printed(folder.path(), &["key", "new", "other", "--store", &store, "--json"]);
    let issued: Value = serde_json::from_str(&issued).unwrap();
    assert_eq!((&issued["store"], &issued["running"]), (&json!(store), &json!(false)));
}

#[test]
fn s16_what_a_key_command_cannot_do_is_said() {
    let folder = TempDir::new().unwrap();
    let said = printed(folder.path(), &["key", "new", "ci", "--expires", "12h"]);
    assert!(said.contains("stored in sqlite:./baton-data/demo.db; no server runs on it"), "{said}");
    assert!(said.contains("Try it, when the server runs:") && said.contains(" UTC\n"), "{said}");
    let listed: Value = {
        printed(folder.path(), &["key", "new", "dated", "--expires", "2199-01-31"]);
        serde_json::from_str(&printed(folder.path(), &["key", "list", "--json"])).unwrap()
    };
    assert_eq!(listed["keys"][1]["expires"], "2199-01-31T00:00:00.000Z");
    for (args, code, reason) in [
        (&["key", "list", "--socket", "nowhere"][..], 1, "--socket: no server listens at nowhere"),
        (&["key", "new", "x", "--scope", "a,b"], 2, "repeat --scope"),
        (&["key", "new", "x", "--expires", "90"], 2, "the unit is missing, as in 90d"),
        (&["key", "new", "x", "--expires", "1000000d"], 2, "more than 100 years"),
        (&["key", "new", "x", "--expires", "soon"], 2, "a day such as 2027-01-31"),
        (&["key", "new", "x", "--expires", "1999-01-01"], 1, "would have expired already"),
    ] {
        let (ended, said) = finished(&mut within(folder.path(), args));
        assert!(ended == Some(code) && said.contains(reason), "{args:?}: {said}");
    }
    // A mistake elsewhere does not prevent that a key is revoked.
    std::fs::write(folder.path().join("broken.toml"), "[tls]\ncert = \"gone\"\nkey = \"gone\"\nfoo = 1\n")
        .unwrap();
    printed(folder.path(), &["key", "revoke", "ci", "--config", "broken.toml"]);
}

/// A secret that is not there must never leave a server that everybody, or nobody, can enter.
#[test]
fn s16_an_empty_secret_stops_the_start() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("two"), "canary-0123456789\ncanary-0123456789\n").unwrap();
    std::fs::write(folder.path().join("short"), "canary\n").unwrap();
    for (secret, reason) in [
        ("", "the secret is empty"),
        ("@two", "the file `two`: it has more than one line"),
        ("@short", "the file `short`: the secret has fewer than 16 characters"),
    ] {
        let args = ["--listen", "0.0.0.0:0", "--api-key", secret];
        let (code, said) = finished(within(folder.path(), &["serve"]).args(args));
        assert_eq!((code, said.trim()), (Some(2), &*said_alone("--api-key", &said, reason)), "{said}");
        let (code, said) =
            finished(within(folder.path(), &["serve", "--listen", "0.0.0.0:0"]).env("BATON_API_KEY", secret));
        assert_eq!((code, said.trim()), (Some(2), &*said_alone("BATON_API_KEY", &said, reason)), "{said}");
    }
    assert!(!folder.path().join("baton-data").exists());
}

/// The only line: what follows from the mistake is not a problem of its own.
fn said_alone(name: &str, said: &str, reason: &str) -> String {
    let line = said.lines().next().unwrap_or_default();
    assert!(line.contains(&format!("{name}: {reason}")) && !said.contains("canary"), "{said}");
    line.trim().to_owned()
}

/// Whether the store has keys is known only when it is open.
#[tokio::test]
async fn s16_keys_that_only_the_store_has_are_enough_to_be_required_and_to_listen() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("baton.toml"), "[auth]\nrequire = [\"apiKey\"]\n").unwrap();
    let public = || within(folder.path(), &["serve", "--listen", "0.0.0.0:0", "--tls-self-signed"]);
    let (code, said) = finished(&mut public());
    assert!(code == Some(2) && said.contains("there is no scheme `apiKey`"), "{said}");
    let (_, key) = issue(folder.path(), &["ci"]);
    let server = Served::of(&mut serve(folder.path()));
    assert_eq!((call(&server, "", &[]).await.0, status(&server, &key).await), (401, 200));
    server.terminate();
    let server = Served::of(&mut public());
    assert!(
        server.welcome.contains("0.0.0.0:") && server.welcome.contains("all addresses"),
        "{}",
        server.welcome
    );
    let warned = server.log_with("which other machines cannot reach");
    assert!(warned.contains("--public-url https://HOST:"), "{warned}");
    server.terminate();
    // The certificate is for the names by which others call it.
    let server = Served::of(public().args(["--public-url", "https://agent.example.com:4000"]));
    let certificate = std::fs::read_to_string(folder.path().join("baton-data/self-signed.crt")).unwrap();
    assert!(certificate.lines().next().unwrap().contains("agent.example.com"), "{certificate}");
    assert!(!server.log().contains("other machines cannot reach"));
}

/// Where a secret is expected, what was written there instead is not repeated.
#[test]
fn s16_no_message_has_what_stands_in_the_place_of_a_secret() {
    let folder = TempDir::new().unwrap();
    for text in [
        "[auth]\napi_key = \"canary-12345\"",
        "[auth]\nbearer = \"canary-12345\"",
        "[auth]\nbasic = [\"canary-12345\"]",
        "[auth]\nintrospection = \"canary-12345\"",
        "[auth]\nintrospection = [\"canary-12345\"]",
        "[auth.bearer]\ntoken = [\"canary-12345\"]",
        "[auth.basic]\nuser = [\"canary-12345\"]",
        "auth = \"canary-12345\"",
        "[auth.api_key]\nsecret = 12345",
        "[auth.api_key]\nsecret = 12345.5",
        "[[auth.bearer.token]]\nid = \"a\"\nsecret = 12345",
        "[[auth.basic.user]]\nname = \"a\"\npassword = [\"canary-12345\"]",
        "[auth.introspection]\nclient_secret = 12345",
    ] {
        std::fs::write(folder.path().join("baton.toml"), text).unwrap();
        let (code, said) = finished(&mut within(folder.path(), &["serve", "config", "check"]));
        assert!(code == Some(2) && said.contains("expected"), "{text}: {said}");
        assert!(!said.contains("12345"), "{text}: {said}");
    }
}

/// Another user could lead a link elsewhere later.
#[test]
fn s16_a_link_is_no_folder_for_the_socket() {
    let folder = TempDir::new().unwrap();
    let private = folder.path().join("private");
    std::fs::create_dir(&private).unwrap();
    std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::symlink(&private, folder.path().join("link")).unwrap();
    let (code, said) = finished(serve(folder.path()).env("BATON_ADMIN_SOCKET", "link/socket"));
    assert!(code == Some(1) && said.contains("a link, not a folder"), "{said}");
    Served::of(serve(folder.path()).env("BATON_ADMIN_SOCKET", "private/socket"));
}

/// It would be unclear whose the tasks of such a caller are.
#[test]
fn s16_two_tokens_with_the_same_secret_are_refused() {
    let folder = TempDir::new().unwrap();
    let token = |id: &str| format!("[[auth.bearer.token]]\nid = \"{id}\"\nsecret = \"{SECRET}\"\n");
    std::fs::write(folder.path().join("baton.toml"), token("one") + &token("other")).unwrap();
    let (code, said) = finished(&mut serve(folder.path()));
    assert!(code == Some(2) && said.contains("line 6: auth.bearer.token.secret: the same secret"), "{said}");
    assert!(!said.contains("canary"), "{said}");
}

/// The store by default exists, but the server that runs has another.
#[test]
fn s16_a_key_for_no_server_comes_with_a_warning() {
    let folder = TempDir::new().unwrap();
    printed(folder.path(), &["key", "new", "first"]);
    let server = Served::of(serve(folder.path()).args(["--exec", "cat"]));
    let said = printed(folder.path(), &["key", "new", "second"]);
    assert!(said.contains("no server runs on it"), "{said}");
    assert!(said.contains("Warning: a server runs on ./baton-data/cat-"), "{said}");
    assert!(said.contains(&format!("--store {}", server.line("store"))), "{said}");
}
