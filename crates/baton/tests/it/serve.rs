//! `baton serve`: welcome, mistakes, stores, signals.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::user::{Said, User};
use crate::served::{Served, baton, finished, text};

#[test]
fn the_welcome_names_what_a_newcomer_needs() {
    let server = Served::start();
    assert!(server.url.starts_with("http://127.0.0.1:") && !server.url.ends_with(":0"), "{}", server.welcome);
    assert_eq!(server.line("card"), format!("{}/.well-known/agent-card.json", server.url));
    assert!(server.line("store").starts_with("memory:"));
    assert!(server.welcome.contains("Baton"));
}

/// What nobody has said follows from who can call.
#[test]
fn s14_the_welcome_and_the_configuration_tell_whether_webhooks_are_on() {
    let folder = tempfile::tempdir().unwrap();
    let card = r#"{"name": "Loud", "description": "d", "version": "7",
                   "skills": [{"id": "s", "name": "s", "description": "s", "tags": []}]}"#;
    std::fs::write(folder.path().join("card.json"), card).unwrap();
    let public = &["--listen", "0.0.0.0:0", "--allow-public"][..];
    let proxied = Some(("BATON_ALLOWED_HOSTS", "agents.example"));
    let (on, off) = (("BATON_PUSH_ENABLED", "true"), ("BATON_PUSH_ENABLED", "false"));
    for (args, variable, told, enabled, development) in [
        (&["--listen", "127.0.0.1:0"][..], None, "on, for development: also to this machine", true, true),
        (&["--listen", "127.0.0.1:0", "--exec", "cat"], None, "on", true, false),
        (&["--listen", "127.0.0.1:0"], Some(off), "off (`push.enabled`)", false, true),
        (public, None, "off, since others may call without authentication", false, false),
        (public, Some(on), "on", true, false),
        (
            &["--listen", "127.0.0.1:0"],
            proxied,
            "off, since others may call without authentication",
            false,
            false,
        ),
        (
            &["--listen", "127.0.0.1:0", "--exec", "cat", "--card", "card.json"],
            None,
            "off: the card",
            true,
            false,
        ),
    ] {
        let command = |first: &[&str]| {
            let mut command = baton(&[first, &["--store", "memory:"]].concat());
            command.current_dir(folder.path()).envs(variable);
            command
        };
        let server = Served::of(&mut command(&[&["serve"], args].concat()));
        let line = server.line("webhooks");
        assert!(line.starts_with(told) && (told != "on" || line == "on"), "{args:?}: {line}");
        if !args.contains(&"--exec") {
            let show = [&["serve", "config", "show", "--format", "json"], args].concat();
            let shown = Said::of(&mut command(&show)).ok().json();
            let push = &shown["push"];
            assert_eq!(
                (&push["enabled"]["value"], &push["development"]["value"]),
                (&json!(enabled), &json!(development)),
                "{args:?}"
            );
            let given = variable.filter(|(name, _)| *name == on.0);
            let source = given.map_or("default", |(name, _)| name);
            assert_eq!(push["enabled"]["source"], source);
        }
    }
}

/// The answer to the line that the welcome shows.
fn pasted(server: &Served) -> Value {
    let line = server.welcome.lines().find(|line| line.contains("curl ")).unwrap();
    let output = Command::new("sh").args(["-c", line]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_printed_curl_line_works_twice() {
    let server = Served::start();
    let answers = [(); 2].map(|()| pasted(&server));
    for answer in &answers {
        let task = &answer["result"]["task"];
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{answer}");
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], "Hello, Baton");
    }
    assert_eq!(answers[0], answers[1], "the same message is the same task");
}

/// The line for our own client can be pasted too: with a key, and with a certificate that has to be trusted.
#[test]
fn the_printed_send_line_works() {
    let user = User::new();
    std::fs::write(user.folder().join("key"), "a-secret-of-sixteen-or-more\n").unwrap();
    for more in [&[][..], &["--api-key", "@key", "--tls-self-signed"]] {
        let serve = [&["serve", "--listen", "127.0.0.1:0", "--store", "memory:"], more].concat();
        let server = Served::of(&mut user.command(&serve));
        let line = server.welcome.lines().find(|line| line.contains("baton send ")).unwrap();
        let said = Said::of(&mut user.paste(line)).ok();
        assert_eq!(said.field("State"), "TASK_STATE_COMPLETED", "{line}");
        assert!(said.out.contains("  Hello, Baton\n"), "{said:?}");
    }
}

#[test]
fn the_printed_curl_line_says_an_example_in_a_generation_that_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("card.json");
    let words = "it's \"3\" $HOME";
    let check = |flags: &[&str], version: &str| {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--exec", "cat"];
        // 0.1 answers at once unless told.
        let mut command = baton(&[&serve[..], flags].concat());
        let server = Served::of(command.env("BATON_LIMITS_LEGACY_WAIT", "60s"));
        let answers = [(); 2].map(|()| pasted(&server)["result"].take());
        let task = if version == "1.0" { &answers[0]["task"] } else { &answers[0] };
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], words, "{version}: {}", answers[0]);
        assert_eq!(answers[0], answers[1], "{version}: the same message is the same task");
    };
    check(&["--example", words], "1.0");
    for version in ["1.0", "0.3", "0.1"] {
        let interface =
            json!({"url": "https://a.example", "protocolBinding": "JSONRPC", "protocolVersion": version});
        let skill = json!({"id": "s", "name": "s", "description": "d", "tags": ["t"], "examples": [words]});
        let card = json!({"name": "n", "description": "d", "version": "1", "skills": [skill],
            "supportedInterfaces": [interface]});
        std::fs::write(&file, card.to_string()).unwrap();
        check(&["--card", file.to_str().unwrap()], version);
    }
}

#[test]
fn a_taken_port_is_said_with_the_flag_to_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, said) = finished(&mut baton(&["serve", "--listen", &address, "--store", "memory:"]));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&address) && said.contains("taken") && said.contains("--listen"), "{said}");
}

#[test]
fn a_public_address_needs_consent() {
    let args = ["serve", "--listen", "0.0.0.0:0", "--store", "memory:"];
    let (code, said) = finished(&mut baton(&args));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("nobody is authenticated") && said.contains("--allow-public"), "{said}");

    let server = Served::with(&[&args[..], &["--allow-public"]].concat());
    assert!(server.url.starts_with("http://127.0.0.1:"), "an address one can call: {}", server.url);
}

#[test]
fn a_bad_listen_address_is_said() {
    let (code, said) = finished(&mut baton(&["serve", "--listen", "nowhere", "--store", "memory:"]));
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("--listen: ") && said.contains("\"nowhere\"") && said.contains("127.0.0.1:3000"),
        "{said}"
    );
}

#[test]
fn an_unknown_store_is_said_with_what_is_accepted() {
    for (store, reason) in [
        ("mongo://user:secret@host/db", "unknown store `mongo`"),
        ("postgres://user:secret@host/db", "not supported yet"),
        ("redis://user:secret@host", "not supported yet"),
    ] {
        let (code, said) = finished(&mut baton(&["serve", "--listen", "127.0.0.1:0", "--store", store]));
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(reason) && said.contains("memory:") && said.contains("sqlite:PATH"), "{said}");
        assert!(!said.contains("secret"), "a password was repeated: {said}");
    }
}

#[tokio::test]
async fn without_arguments_tasks_are_kept_in_the_working_folder() {
    let folder = tempfile::tempdir().unwrap();
    let start = || Served::of(baton(&[]).env("BATON_LISTEN", "127.0.0.1:0").current_dir(folder.path()));
    let server = start();
    let task = server.send(text("m-1", "keep this")).await;
    assert!(folder.path().join("baton-data/demo.db").is_file());
    assert!(server.terminate().success());

    let server = start();
    assert_eq!(server.get(&task).await, task);
}

#[test]
fn a_store_in_use_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("demo.db").display());
    let args = ["serve", "--listen", "127.0.0.1:0", "--store", &store];
    let _server = Served::with(&args);
    let (code, said) = finished(&mut baton(&args));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("--store: sqlite:"), "{said}");
}

#[tokio::test]
async fn the_public_url_is_on_the_card() {
    let args =
        ["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--public-url", "https://a.example/x/"];
    let server = Served::with(&args);
    let card: Value = reqwest::get(server.line("card")).await.unwrap().json().await.unwrap();
    assert_eq!(card["supportedInterfaces"][0]["url"], "https://a.example/x/");
    assert_eq!(server.line("known as"), "https://a.example/x/");
}

#[tokio::test]
async fn a_stop_is_quick_and_the_next_start_takes_the_work_up_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("demo.db").display());
    let start = || Served::with(&["serve", "--listen", "127.0.0.1:0", "--store", &store]);
    let server = start();
    let waiting = server.start_task(text("m-1", "tck-cancel")).await;
    let working = server.start_task(text("m-2", "tck-long-running")).await;
    server.until(&working, "TASK_STATE_WORKING").await;
    let since = Instant::now();
    assert!(server.terminate().success());
    assert!(since.elapsed() < Duration::from_secs(5), "took {:?}", since.elapsed());

    let server = start();
    // The subscription ends with the work.
    server.stream("SubscribeToTask", json!({"id": working["id"]})).await;
    let done = server.get(&working).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(done["artifacts"].as_array().unwrap().len(), 1);
    assert_eq!(server.cancel(&waiting).await["status"]["state"], "TASK_STATE_CANCELED");
}

#[tokio::test]
async fn a_stop_closes_open_streams_properly() {
    let server = Served::start();
    let mut stream = server.post("SendStreamingMessage", json!({"message": text("m-1", "tck-cancel")})).await;
    assert!(stream.chunk().await.unwrap().is_some());
    let since = Instant::now();
    assert!(server.terminate().success());
    assert!(since.elapsed() < Duration::from_secs(5), "took {:?}", since.elapsed());
    // An end in order, not a broken connection.
    while stream.chunk().await.unwrap().is_some() {}
}

/// At a terminal Ctrl-C says at once what is waited for, and the second one does not wait.
#[tokio::test]
async fn a_person_who_stops_a_busy_server_is_told_what_it_waits_for() {
    let line = format!(
        "echo pid $$; exec '{}' serve --listen 127.0.0.1:0 --store memory: --exec 'sleep 600'",
        env!("CARGO_BIN_EXE_baton")
    );
    let mut terminal = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`script` of util-linux makes the terminal");
    let mut lines = BufReader::new(terminal.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut after = |label: &str| {
        let found = lines.find_map(|line| Some(line.trim().strip_prefix(label)?.trim().to_owned()));
        found.unwrap_or_else(|| panic!("it said no {label}"))
    };
    let (pid, url) = (after("pid"), after("listening"));
    let body = json!({"message": text("m-1", "hi"), "configuration": {"returnImmediately": true}});
    let send = reqwest::Client::new().post(format!("{url}/message:send")).header("A2A-Version", "1.0");
    assert_eq!(send.json(&body).send().await.unwrap().status(), 200);
    let interrupt = || assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    interrupt();
    let said = after("Stopping");
    let expected = ": waiting for 1 task to come to rest, up to 30s; press Ctrl-C again to stop now";
    assert_eq!(said, expected);
    interrupt();
    assert_eq!(after("error:"), "stopped before the running turns had ended");
    assert_eq!(terminal.wait().unwrap().code(), Some(130));
}

/// Somebody else's file is refused without a word on its mode, and nothing is left beside it.
#[test]
fn another_programs_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes.txt");
    std::fs::write(&notes, "not a database at all\n".repeat(400)).unwrap();
    let (code, said) = finished(
        baton(&["serve", "--listen", "127.0.0.1:0", "--store", "sqlite:notes.txt"]).current_dir(&folder),
    );
    assert!(code == Some(1) && !said.contains("chmod"), "{code:?} {said}");
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["notes.txt"]);
}

/// A card file of another generation is served; what it promises beyond what is there is refused by its line.
#[tokio::test]
async fn s03_a_card_file_must_be_true() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("card.json");
    let serve = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let mut serve = baton(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--store",
            "memory:",
            "--card",
            path.to_str().unwrap(),
        ]);
        serve.env("BATON_PUSH_ENABLED", "false");
        serve
    };
    let card = |capabilities: &str, skill: &str| {
        format!(
            "{{\"protocolVersion\":\"0.3.0\",\"name\":\"Mine\",\"description\":\"d\",\"url\":\"http://x\",\"version\":\"7\",\n\
             \"capabilities\":{capabilities},\n\
             \"defaultInputModes\":[\"text/plain\"],\"defaultOutputModes\":[\"text/plain\"],\n\
             \"skills\":[{skill}]}}"
        )
    };
    let skills = r#"{"id":"task","name":"t","description":"t","tags":[]},{"id":"message","name":"m","description":"m","tags":[]}"#;

    for left_out in [r#"{"streaming":false}"#, "{}"] {
        let served = Served::of(&mut serve(&card(left_out, skills)));
        let shown = served.card().await;
        assert_eq!((&shown["name"], &shown["capabilities"]["streaming"]), (&"Mine".into(), &false.into()));
        let message = serde_json::json!({"message": text("m-1", "hi")});
        let refused = served.ask("SendStreamingMessage", message).await;
        assert_eq!(refused["error"]["code"], -32004, "{left_out}");
        served.log_with("streaming is switched off");
    }

    for (text, reason) in [
        (card(r#"{"pushNotifications":true}"#, skills), "line 2: capabilities.pushNotifications"),
        (
            card("{}", skills)
                .replace("{\"protocolVersion", "{\"preferredTransport\":\"GRPC\",\"protocolVersion"),
            "\"GRPC\" is no binding of this server",
        ),
        (card("{}", r#"{"id":"other","name":"o","description":"o","tags":[]}"#), "line 4: skills: `other`"),
        ("{".to_owned(), "card.json"),
        ("{}".to_owned(), "name"),
    ] {
        let (code, said) = finished(&mut serve(&text));
        assert!(code != Some(0) && said.contains(reason), "{said}");
    }
}

#[cfg(feature = "grpc")]
#[tokio::test]
async fn p03_grpc_is_served_where_it_is_switched_on() {
    let base = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:"];
    let plain = Served::with(&base);
    let off = grpc_status(&plain).await;
    assert_eq!((off.as_deref(), grpc_addresses(&plain).await), (Some("12"), Vec::new()), "unimplemented");

    let switched = Served::with(&[&base[..], &["--grpc"]].concat());
    let address = switched.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    assert_eq!(grpc_status(&switched).await.as_deref(), Some("5"), "no such task");
    assert_eq!(grpc_addresses(&switched).await, [address.clone(), address]);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("baton.toml");
    for (form, spelled) in [("url", 2), ("off", 0)] {
        std::fs::write(&file, format!("grpc = true\ncard.grpc = \"{form}\"\n")).unwrap();
        let served = Served::with(&[&base[..], &["--config", file.to_str().unwrap()]].concat());
        assert_eq!(grpc_status(&served).await.as_deref(), Some("5"), "{form}");
        let told = grpc_addresses(&served).await;
        let base = served.url.trim_end_matches('/');
        assert_eq!(told, vec![base.to_owned(); spelled], "{form}");
    }
}

/// The addresses of gRPC on the card.
#[cfg(feature = "grpc")]
async fn grpc_addresses(served: &Served) -> Vec<String> {
    let card = served.card().await;
    let interfaces = card["supportedInterfaces"].as_array().unwrap().iter();
    let of_grpc = interfaces.filter(|it| it["protocolBinding"] == "GRPC");
    of_grpc.map(|it| it["url"].as_str().unwrap().to_owned()).collect()
}

/// The status of a call for a task that does not exist; `None`: the answer is not one of gRPC.
#[cfg(feature = "grpc")]
async fn grpc_status(served: &Served) -> Option<String> {
    let url = served.url.trim_end_matches('/');
    let tcp = tokio::net::TcpStream::connect(url.trim_start_matches("http://")).await.unwrap();
    let (client, connection) = h2::client::handshake(tcp).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = http::Request::post(format!("{url}/lf.a2a.v1.A2AService/GetTask"))
        .header("content-type", "application/grpc")
        .header("a2a-version", "1.0");
    let (answer, mut body) =
        client.ready().await.unwrap().send_request(request.body(()).unwrap(), false).unwrap();
    // `id`, the second field: "t".
    body.send_data(vec![0, 0, 0, 0, 3, 0x12, 1, b't'].into(), true).unwrap();
    let answer = answer.await.unwrap();
    connection.abort();
    answer.headers().get("grpc-status").map(|status| status.to_str().unwrap().to_owned())
}

/// Strangers could make the server call others, very often; callers on this machine can call what is on it themselves.
#[tokio::test]
async fn s14_webhooks_are_taken_unless_strangers_could_use_them() {
    let demo = ["serve", "--store", "memory:", "--listen"];
    let echo = ["serve", "--store", "memory:", "--exec", "cat", "--listen"];
    let [local, open] = ["127.0.0.1:0", "0.0.0.0:0"];
    for (args, listen, more, takes_webhooks, on_this_machine) in [
        (&demo[..], local, &[][..], true, true),
        (&demo, local, &["--public-url", "https://a.example"], false, false),
        (&demo, open, &["--allow-public"], false, false),
        (&demo, open, &["--allow-public", "--api-key", "0123456789abcdef"], true, false),
        (&echo, local, &[], true, false),
    ] {
        let served = Served::with(&[args, &[listen], more].concat());
        let shown = served.card().await;
        assert_eq!(shown["capabilities"]["pushNotifications"], takes_webhooks, "{listen} {more:?}");
        if !takes_webhooks {
            served.log_with("webhooks are off: others may call this server");
            continue;
        }
        let push = serde_json::json!({"url": "http://127.0.0.1:9999/"});
        let message = serde_json::json!({"message": text("m-1", "hi"), "configuration": {"taskPushNotificationConfig": push}});
        let key = more.get(2).copied().unwrap_or_default();
        let answer = served.ask_with("SendMessage", message, &[("X-API-Key", key)]).await;
        assert_eq!(
            answer["error"]["code"].as_i64(),
            (!on_this_machine).then_some(-32602),
            "{listen} {more:?} {answer}"
        );
    }
}
