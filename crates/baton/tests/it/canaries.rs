//! S-16: a word that must not get out is put wherever a credential can be: in the configuration, in files, in variables and
//! in requests. Calls succeed, fail, and end in a panic. The words are in no log, trace, metric, database, answer or output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::collector::Collector;
use crate::secrets::{base64, canary, disguises};
use crate::served::{Served, baton};

/// Where callers send their API key, with the name of the header, parameter or cookie.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Location {
    Header,
    Query,
    Cookie,
}

/// Everything that the server and its callers know, in a folder of its own.
struct Planted {
    folder: tempfile::TempDir,
    location: Location,
    /// Texts that are as secret as the words they were made of.
    derived: Vec<String>,
}

/// How a request proves who sends it.
#[derive(Debug, Clone)]
struct Credential {
    query: String,
    headers: Vec<(&'static str, String)>,
    is_valid: bool,
}

#[tokio::test]
async fn s16_a_secret_in_any_credential_is_found_nowhere() {
    for (location, format) in
        [(Location::Header, "text"), (Location::Query, "json"), (Location::Cookie, "text")]
    {
        let planted = Planted::new(location);
        let collector = Collector::start();
        let mut command = planted.serve(&collector, format);
        let server = Served::of(&mut command);
        let mut answers = server.welcome.clone();
        for credential in planted.credentials() {
            answers += &call_everything(&server, &credential).await;
        }
        let metrics =
            client().get(format!("{}/metrics", server.url)).send().await.unwrap().text().await.unwrap();
        let log = server.stop_and_log();
        let traces = collector.text();
        let shown = planted.config_show();

        // Without these, the search below would show nothing.
        assert!(log.contains("hyper") || log.contains("h2"), "the log is not as long as asked for: {log}");
        assert!(log.contains("unknown key"), "nobody was refused: {log}");
        assert!(traces.contains("SendMessage"), "{traces}");
        assert!(metrics.contains("operation=\"SendMessage\",outcome=\"ok\""), "{metrics}");
        assert!(shown.contains("[[auth.bearer.token]]") && shown.contains("***"), "{shown}");
        for (place, text) in [
            ("the log", &log),
            ("the traces", &traces),
            ("the metrics", &metrics),
            ("the answers", &answers),
            ("`config show`", &shown),
        ] {
            planted.search(place, text);
        }
        planted.search_files();
    }
}

/// The text of a panic may quote a request; and a thread that panics has credentials in its memory.
#[cfg(debug_assertions)]
#[tokio::test]
async fn s16_a_panic_while_an_authenticated_request_is_served_tells_no_secret() {
    let planted = Planted::new(Location::Header);
    let collector = Collector::start();
    let mut command = planted.serve(&collector, "text");
    let text = canary("panic");
    let server = Served::of(command.env("BATON_FAULT_PANIC", format!("send-launched:{text}")));
    let credential = &planted.credentials()[0];
    let message = json!({"messageId": uuid(), "role": "ROLE_USER", "parts": [{"text": "hello"}]});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}});
    let mut request = client().post(&server.url).header("a2a-version", "1.0").json(&body);
    for (name, value) in &credential.headers {
        request = request.header(*name, value);
    }
    // The answer is an error or none at all.
    let mut answers = server.welcome.clone();
    if let Ok(answer) = request.send().await {
        assert!(!answer.status().is_success(), "{}", answer.status());
        answers += &answer.text().await.unwrap_or_default();
    }
    // The others are served.
    answers += &call_everything(&server, credential).await;
    let log = server.log_with("a thread panicked");
    drop(server);
    for (place, text) in [("the log", &log), ("the traces", &collector.text()), ("the answers", &answers)] {
        planted.search(place, text);
    }
    planted.search_files();
}

impl Planted {
    fn new(location: Location) -> Self {
        let mut planted = Planted { folder: tempfile::tempdir().unwrap(), location, derived: Vec::new() };
        fs::write(planted.path("token"), canary("filetoken")).unwrap();
        let pair = rcgen::KeyPair::generate().unwrap();
        let params =
            rcgen::CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        fs::write(planted.path("cert.pem"), params.self_signed(&pair).unwrap().pem()).unwrap();
        let key = pair.serialize_pem();
        fs::write(planted.path("key.pem"), &key).unwrap();
        let lines = key.lines().filter(|line| !line.starts_with('-') && line.len() >= 24);
        planted.derived.extend(lines.map(str::to_owned));
        // The key by its own variable, in the file, and in a file of its own.
        let secret = match location {
            Location::Header => String::new(),
            Location::Query => format!("secret = \"{}\"", canary("apikey")),
            Location::Cookie => {
                fs::write(planted.path("apikey"), canary("apikey")).unwrap();
                "secret = \"@apikey\"".to_owned()
            }
        };
        let place = format!("{location:?}").to_lowercase();
        let tls = match location {
            Location::Cookie => "[tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"",
            _ => "",
        };
        let config = format!(
            r#"
listen = "127.0.0.1:0"
{tls}
[store]
url = "sqlite:tasks.db"
[auth.api_key]
location = "{place}"
{secret}
[auth.bearer]
[[auth.bearer.token]]
id = "written"
secret = "{written}"
[[auth.bearer.token]]
id = "in-file"
secret = "@token"
[[auth.bearer.token]]
id = "in-variable"
secret = "env:CANARY_TOKEN"
"#,
            written = canary("writtentoken"),
        );
        fs::write(planted.path("baton.toml"), config).unwrap();
        planted
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn baton(&self, args: &[&str]) -> Command {
        let mut command = baton(args);
        command.current_dir(self.folder.path()).env("CANARY_TOKEN", canary("variabletoken"));
        if self.location == Location::Header {
            command.env("BATON_API_KEY", canary("apikey"));
        }
        command
    }

    fn serve(&self, collector: &Collector, format: &str) -> Command {
        let url = collector.url();
        let flags = ["--config", "baton.toml", "--otlp", &url, "--log-requests", "--log-format", format];
        let mut command = self.baton(&[&["serve"], &flags[..]].concat());
        // A level alone is that of our own crates; these are all others by their first letters.
        let others = ('a'..='z').map(|letter| format!(",{letter}=trace")).collect::<String>();
        command.env("BATON_LOG", format!("trace{others}")).env("OTEL_BSP_SCHEDULE_DELAY", "50");
        command
    }

    fn config_show(&self) -> String {
        let mut all = String::new();
        for command in ["show", "check"] {
            let output =
                self.baton(&["serve", "config", command, "--config", "baton.toml"]).output().unwrap();
            all += &String::from_utf8_lossy(&output.stdout);
            all += &String::from_utf8_lossy(&output.stderr);
        }
        all
    }

    /// Of every scheme: the right one, one that nearly is, and ones that cannot be read.
    fn credentials(&self) -> Vec<Credential> {
        let mut all = Vec::new();
        let right = canary("apikey");
        let twice = format!("{right}&api_key={right}");
        for (key, is_valid) in [(&right, true), (&format!("{right}x"), false), (&twice, false)] {
            all.push(match self.location {
                Location::Header => of_header("x-api-key", key.clone(), is_valid),
                Location::Cookie => of_header("cookie", format!("a=b; api_key={key}"), is_valid),
                Location::Query => {
                    let query = format!("?api_key={}", key.replace('+', "%2B"));
                    Credential { query, headers: Vec::new(), is_valid }
                }
            });
        }
        for (token, is_valid) in
            [("writtentoken", true), ("filetoken", true), ("variabletoken", true), ("unknowntoken", false)]
        {
            all.push(of_header("authorization", format!("Bearer {}", canary(token)), is_valid));
        }
        // A JWT, with the word in each part.
        let part = |name: &str| base64(format!("{{\"a\":\"{}\"}}", canary(name)).as_bytes()).replace('=', "");
        let token = format!("Bearer {}.{}.{}", part("jwthead"), part("jwtbody"), part("jwtsignature"));
        all.push(of_header("authorization", token, false));
        for malformed in [
            format!("Basic {}", base64(format!("alice:{}", canary("basic")).as_bytes())),
            format!("Basic {}", canary("notbase64")),
            format!("Bearer {} {}", canary("two"), canary("words")),
            format!("Digest username=\"bob\", response=\"{}\"", canary("response")),
            format!("{} {}", canary("scheme"), canary("rest")),
            canary("alone"),
        ] {
            all.push(of_header("authorization", malformed, false));
        }
        all
    }

    fn search(&self, place: &str, text: &str) {
        let words = disguises().into_iter().chain(self.derived.iter().cloned());
        let found: Vec<String> = words.filter(|word| text.contains(word.as_str())).collect();
        let lines = text.lines().filter(|line| found.iter().any(|word| line.contains(word.as_str())));
        let lines = lines.take(10).collect::<Vec<_>>().join("\n");
        assert!(found.is_empty(), "{:?}: {place} has {found:?}:\n{lines}", self.location);
    }

    /// Every file but those that the operator wrote.
    fn search_files(&self) {
        let own = ["baton.toml", "token", "apikey", "key.pem", "cert.pem"];
        let mut searched = 0;
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if !own.iter().any(|name| path.ends_with(name)) {
                    self.search_file(&path);
                    searched += 1;
                }
            }
        }
        assert!(searched > 0, "no database");
    }

    fn search_file(&self, path: &Path) {
        // A socket has no bytes.
        let Ok(bytes) = fs::read(path) else { return };
        self.search(&path.display().to_string(), &String::from_utf8_lossy(&bytes));
    }
}

fn of_header(name: &'static str, value: String, is_valid: bool) -> Credential {
    Credential { query: String::new(), headers: vec![(name, value)], is_valid }
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().danger_accept_invalid_certs(true).build().unwrap()
}

/// Calls in every binding and generation, some of which fail after authentication. All that was answered, heads included.
async fn call_everything(server: &Served, credential: &Credential) -> String {
    let url = &server.url;
    let message = json!({"messageId": uuid(), "role": "ROLE_USER", "parts": [{"text": "hello"}]});
    let rpc = |method: &str, params| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut answers = String::new();
    for (version, path, body) in [
        ("1.0", "/", Some(rpc("SendMessage", json!({"message": message})))),
        ("1.0", "/", Some(rpc("GetTask", json!({"id": "none"})))),
        ("1.0", "/", Some(rpc("NoSuchMethod", json!({})))),
        ("0.3", "/", Some(rpc("tasks/get", json!({"id": "none"})))),
        ("1.0", "/tasks/none", None),
        ("1.0", "/extendedAgentCard", None),
        ("1.0", "/nowhere", None),
        ("9.9", "/tasks", None),
    ] {
        let target = format!("{url}{path}{}", credential.query);
        let mut request = match &body {
            Some(body) => client().post(target).json(body),
            None => client().get(target),
        };
        request = request.header("a2a-version", version);
        for (name, value) in &credential.headers {
            request = request.header(*name, value);
        }
        let answer = request.send().await.unwrap_or_else(|error| panic!("{error}\n{}", server.log()));
        let is_refused = answer.status() == 401;
        assert_eq!(is_refused, !credential.is_valid, "{credential:?} {path}: {}", answer.status());
        answers += &format!("{:?}\n", answer.headers());
        answers += &answer.text().await.unwrap();
        answers.push('\n');
    }
    answers
}

/// Numbers do: they need to differ within this process.
fn uuid() -> String {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    format!("m-{}", NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}
