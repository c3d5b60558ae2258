//! SIGHUP: cards and limits change under load, the rest waits for a restart, a mistake changes nothing.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::served::{Served, baton, parts, text};

/// Longer than any healthy reload takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

struct Folder(tempfile::TempDir);

impl Folder {
    fn with(text: &str) -> Self {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.write("baton.toml", text);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// As a whole or not at all: an editor's half-written file would be told of as broken.
    fn write(&self, name: &str, text: &str) {
        fs::write(self.path("half"), text).unwrap();
        fs::rename(self.path("half"), self.path(name)).unwrap();
    }

    fn serve(&self) -> Served {
        Served::of(baton(&["serve"]).current_dir(self.0.path() as &Path))
    }
}

/// Waits until the log holds a text so many times; asking the server in between keeps the loop polite.
async fn logged(server: &Served, text: &str, times: usize) -> String {
    let since = Instant::now();
    loop {
        let log = server.log();
        if log.matches(text).count() >= times {
            return log;
        }
        assert!(since.elapsed() < PATIENCE, "no {times} times {text:?} in\n{log}");
        server.card().await;
    }
}

/// The status of a send with so long a text.
async fn status(server: &Served, id: &str, length: usize) -> u16 {
    let sent = server.post("SendMessage", json!({"message": text(id, &"x".repeat(length))})).await;
    sent.status().as_u16()
}

const HEAD: &str = "listen = \"127.0.0.1:0\"\nstore = \"memory:\"\n";

#[tokio::test]
async fn a_card_changed_twenty_times_under_load_fails_no_request() {
    const CLIENTS: usize = 4;
    const CHANGES: u32 = 20;
    /// Sends between two changes.
    const AT_LEAST: usize = 20;
    let folder =
        Folder::with(&format!("{HEAD}card = \"card.json\"\n[[skill]]\nid = \"a\"\nbuiltin = \"echo\"\n"));
    let edition = |number: u32| {
        let card = json!({
            "name": "N", "description": "d", "version": number.to_string(), "supportedInterfaces": [],
            "capabilities": {"streaming": true}, "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "a", "name": "A", "description": "d", "tags": ["t"]}],
        });
        folder.write("card.json", &card.to_string());
    };
    edition(0);
    let server = Arc::new(folder.serve());
    let stop = Arc::new(AtomicBool::new(false));
    let newest = Arc::new(AtomicU32::new(0));
    let sent = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (server, stop) = (Arc::clone(&server), Arc::clone(&stop));
            let (newest, sent) = (Arc::clone(&newest), Arc::clone(&sent));
            tokio::spawn(async move {
                let (mut count, mut seen) = (0, 0);
                while !stop.load(Ordering::Relaxed) {
                    let words = format!("{client}-{count}");
                    // Each of these panics unless it succeeds.
                    let task = server.send(text(&format!("m-{words}"), &words)).await;
                    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
                    assert_eq!(task["artifacts"][0]["parts"][0]["text"], words);
                    let version: u32 = server.card().await["version"].as_str().unwrap().parse().unwrap();
                    assert!(
                        version >= seen && version <= newest.load(Ordering::SeqCst),
                        "{version} after {seen}"
                    );
                    seen = version;
                    count += 1;
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for number in 1..=CHANGES {
        newest.store(number, Ordering::SeqCst);
        let before = sent.load(Ordering::Relaxed);
        edition(number);
        server.signal("-HUP");
        let since = Instant::now();
        // Until it is served, and every client has asked some times meanwhile.
        while server.card().await["version"] != *number.to_string()
            || sent.load(Ordering::Relaxed) < before + AT_LEAST
        {
            assert!(since.elapsed() < PATIENCE, "edition {number} is not served\n{}", server.log());
        }
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    assert!(sent.load(Ordering::Relaxed) >= AT_LEAST * CHANGES as usize);
    assert_eq!(server.card().await["version"], CHANGES.to_string());
}

#[tokio::test]
async fn limits_take_effect_at_once() {
    let folder = Folder::with(&format!("{HEAD}[limits]\nmax_body = \"1MiB\"\n"));
    let server = folder.serve();
    assert_eq!(status(&server, "m-1", 5000).await, 200);
    folder.write("baton.toml", &format!("{HEAD}[limits]\nmax_body = \"2KiB\"\n"));
    server.signal("-HUP");
    let log = logged(&server, "configuration reloaded", 1).await;
    assert!(log.contains("limits.max_body") && !log.contains("needs a restart"), "{log}");
    assert_eq!(status(&server, "m-2", 5000).await, 413);
    assert_eq!(status(&server, "m-3", 100).await, 200);
}

/// The engine's own bounds, too.
#[tokio::test]
async fn engine_limits_take_effect_at_once() {
    let folder = Folder::with(HEAD);
    let server = folder.serve();
    let two_parts = |id: &str| json!({"message": parts(id, json!([{"text": "a"}, {"text": "b"}]))});
    server.call("SendMessage", two_parts("m-1")).await;
    folder.write("baton.toml", &format!("{HEAD}[limits]\nmax_parts = 1\n"));
    server.signal("-HUP");
    logged(&server, "configuration reloaded", 1).await;
    let refused = server.ask("SendMessage", two_parts("m-2")).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    server.send(text("m-3", "one part")).await;
}

/// With one place to run and none to wait in, a second task has to go.
#[tokio::test]
async fn s12_fewer_places_count_from_the_next_task_on() {
    let folder = Folder::with(HEAD);
    let server = folder.serve();
    let busy = server.start_task(text("m-1", "tck-cancel")).await;
    server.until(&busy, "TASK_STATE_WORKING").await;
    folder.write("baton.toml", &format!("{HEAD}[limits]\nmax_running = 1\nmax_queued = 0\n"));
    server.signal("-HUP");
    logged(&server, "configuration reloaded", 1).await;
    let refused = server.ask("SendMessage", json!({"message": text("m-2", "hi")})).await;
    assert_eq!(refused["error"]["code"], -32050, "{refused}");
    server.cancel(&busy).await;
    server.send(text("m-3", "hi")).await;
}

#[tokio::test]
async fn a_broken_file_changes_nothing_and_is_told_of() {
    let file = |limit: &str, name: &str| {
        format!(
            "{HEAD}[limits]\nmax_body = \"{limit}\"\n[card]\nname = \"{name}\"\ndescription = \"d\"\n\
             [[skill]]\nid = \"a\"\nbuiltin = \"echo\"\n"
        )
    };
    let folder = Folder::with(&file("1MiB", "Old"));
    let server = folder.serve();
    folder.write("baton.toml", &file("2KiB", "New").replace("id = \"a\"", "idd = \"a\""));
    server.signal("-HUP");
    let log = logged(&server, "configuration not reloaded", 1).await;
    assert!(log.contains("baton.toml, line 9: skill.idd: unknown key; did you mean `id`?"), "{log}");
    assert_eq!(server.card().await["name"], "Old");
    assert_eq!(status(&server, "m-1", 5000).await, 200, "the limit is not half taken over");

    // A file that has gone is a mistake, too, and no wish for the defaults.
    fs::remove_file(folder.path("baton.toml")).unwrap();
    server.signal("-HUP");
    let log = logged(&server, "configuration not reloaded", 2).await;
    assert!(log.contains("baton.toml: No such file"), "{log}");
    assert_eq!(server.card().await["name"], "Old", "not the demo agent's");

    folder.write("baton.toml", &file("2KiB", "New"));
    server.signal("-HUP");
    logged(&server, "configuration reloaded", 1).await;
    assert_eq!(server.card().await["name"], "New");
    assert_eq!(status(&server, "m-2", 5000).await, 413);
}

#[tokio::test]
async fn what_needs_a_restart_is_named_every_time() {
    let skill = |id: &str| format!("[[skill]]\nid = \"{id}\"\nbuiltin = \"echo\"\n");
    let head = "[card]\nname = \"N\"\ndescription = \"d\"\n";
    let folder = Folder::with(&format!("{HEAD}{head}{}", skill("a")));
    let server = folder.serve();
    let other = format!("{}[limits]\nmax_body = \"1MiB\"\n", HEAD.replace("memory:", "sqlite:other.db"));
    let changed = head.replace("\"N\"", "\"M\"");
    let agent = "[[agent]]\nid = \"x\"\n[[agent.skill]]\nid = \"s\"\nbuiltin = \"echo\"\n";
    folder.write("baton.toml", &format!("{other}{changed}{}{}{agent}", skill("a"), skill("b")));
    for times in 1..=2 {
        server.signal("-HUP");
        let log = logged(&server, "needs a restart", times).await;
        let last = |text: &str| log.lines().rfind(|line| line.contains(text)).unwrap().to_owned();
        let line = last("needs a restart");
        assert!(line.contains("agent[x], skill[b], store.url, card"), "{line}");
        // What waits is not told as applied.
        let line = last("configuration reloaded");
        let applied = if times == 1 { "applied=\"limits.max_body\"" } else { "applied=\"nothing\"" };
        assert!(line.contains(applied), "{line}");
    }
    // A card for a skill that is not there yet has to wait for it.
    let served = server.card().await;
    assert_eq!((&served["name"], served["skills"].as_array().unwrap().len()), (&json!("N"), 1));
    assert!(!folder.path("other.db").exists());
    // With the skills that run, it can be served.
    folder.write("baton.toml", &format!("{HEAD}{changed}{}", skill("a")));
    server.signal("-HUP");
    let log = logged(&server, "configuration reloaded", 3).await;
    let line = log.lines().rfind(|line| line.contains("configuration reloaded")).unwrap();
    assert!(line.contains("applied=\"limits.max_body, card\""), "{line}");
    assert_eq!(server.card().await["name"], "M");
}

/// Flags and variables are as they were typed: the file changes below them.
#[tokio::test]
async fn flags_still_win_after_a_reload() {
    let folder = Folder::with(
        "[card]\nname = \"One\"\ndescription = \"d\"\n[[skill]]\nid = \"a\"\nbuiltin = \"echo\"\n",
    );
    let mut command = baton(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:"]);
    command.env("BATON_LIMITS_MAX_BODY", "2KiB");
    let server = Served::of(command.current_dir(folder.0.path()));
    folder.write(
        "baton.toml",
        "listen = \"127.0.0.1:1\"\n[limits]\nmax_body = \"1MiB\"\n[card]\nname = \"Two\"\ndescription = \"d\"\n\
         [[skill]]\nid = \"a\"\nbuiltin = \"echo\"\n",
    );
    server.signal("-HUP");
    let log = logged(&server, "configuration reloaded", 1).await;
    assert!(!log.contains("needs a restart"), "{log}");
    assert_eq!(server.card().await["name"], "Two");
    assert_eq!(status(&server, "m-1", 5000).await, 413);
}

/// A server in a terminal window ends with the window, as it would if SIGHUP meant nothing else.
#[tokio::test]
async fn a_closed_terminal_stops_it() {
    let line = format!(
        "echo pid $$; exec '{}' serve --listen 127.0.0.1:0 --store memory:",
        env!("CARGO_BIN_EXE_baton")
    );
    // `script` is the terminal: killed, it is gone.
    let mut window = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`script` of util-linux makes the terminal");
    let mut lines = BufReader::new(window.stdout.take().unwrap()).lines();
    let mut after = |label: &str| {
        let found = lines
            .by_ref()
            .map(Result::unwrap)
            .find_map(|line| Some(line.trim().strip_prefix(label)?.trim().to_owned()));
        found.unwrap_or_else(|| panic!("it said no {label}"))
    };
    let (pid, url) = (after("pid"), after("listening"));
    let address = url.strip_prefix("http://").unwrap().to_owned();
    TcpStream::connect(&address).unwrap();
    window.kill().unwrap();
    window.wait().unwrap();
    let since = Instant::now();
    while TcpStream::connect(&address).is_ok() {
        if since.elapsed() > PATIENCE {
            Command::new("kill").args(["-KILL", &pid]).status().unwrap();
            panic!("it lives on");
        }
    }
}
