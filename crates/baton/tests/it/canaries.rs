//! S-16: a word that must not get out is put wherever a credential can be: in the configuration, in files, in variables and
//! in requests. Calls succeed, fail, and end in a panic. The words are in no log, trace, metric, database, answer or output.
//! What is made of the words (hashes, signatures, keys that the server issues) is searched for as well.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use rcgen::SigningKey as _;
use serde_json::{Value, json};

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
    /// A JWT that is accepted.
    jwt: String,
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
    search_everything(Location::Header, "text").await;
}

#[tokio::test]
async fn s16_a_secret_in_any_credential_is_found_nowhere_with_keys_in_the_query() {
    search_everything(Location::Query, "json").await;
}

#[tokio::test]
async fn s16_a_secret_in_any_credential_is_found_nowhere_with_keys_in_cookies() {
    search_everything(Location::Cookie, "text").await;
}

async fn search_everything(location: Location, format: &str) {
    let mut planted = Planted::new(location, &issuer().await);
    let collector = Collector::start();
    let mut command = planted.serve(&collector, format);
    let server = Served::of(&mut command);
    let mut answers = server.welcome.clone();
    for credential in planted.credentials() {
        answers += &call_everything(&server, &credential).await;
    }
    answers += &planted.call_with_digest(&server);
    answers += &planted.call_with_issued_key(&server).await;
    let metrics = client().get(format!("{}/metrics", server.url)).send().await.unwrap().text().await.unwrap();
    let log = server.stop_and_log();
    let traces = collector.text();
    let shown = planted.config_show();

    // Without these, the search below would show nothing.
    assert!(log.contains("hyper") || log.contains("h2"), "the log is not as long as asked for: {log}");
    let audit = fs::read_to_string(planted.path("audit.jsonl")).unwrap_or_default();
    assert_eq!(audit.is_empty(), location != Location::Query, "a file of its own: {audit}");
    for refused in [
        "unknown key",
        "unknown token",
        "wrong user or password",
        "wrong signature",
        "not active",
        "key issued",
        "key revoked",
        "revoked",
    ] {
        assert!(log.contains(refused) || audit.contains(refused), "no {refused}: {log}{audit}");
    }
    assert!(planted.has_wrapped_secrets(), "the master key is not used");
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

/// The text of a panic may quote a request; and a thread that panics has credentials in its memory.
#[cfg(debug_assertions)]
#[tokio::test]
async fn s16_a_panic_while_an_authenticated_request_is_served_tells_no_secret() {
    let planted = Planted::new(Location::Header, &issuer().await);
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
    /// `issuer` is the address of one that knows opaque tokens.
    fn new(location: Location, issuer: &str) -> Self {
        let (folder, signer) = (tempfile::tempdir().unwrap(), ed25519());
        let jwt = jwt(&signer);
        let mut planted = Planted { folder, location, derived: Vec::new(), jwt };
        planted.derived.extend(planted.jwt.rsplit('.').next().map(str::to_owned));
        let keys = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "kid": "k", "x": url_base64(signer.public_key_raw())}]});
        fs::write(planted.path("keys.json"), keys.to_string()).unwrap();
        fs::write(planted.path("token"), canary("filetoken")).unwrap();
        let (basic, digest) =
            (hashed(&[], &canary("basicpassword")), hashed(&["--digest", "bob"], &canary("digestpassword")));
        planted.derived.extend(basic.rsplit('$').take(2).map(str::to_owned));
        planted.derived.push(digest.clone());
        fs::write(planted.path("bob.digest"), digest).unwrap();
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
        // The master key: in its variable, and in files that a variable and the configuration name.
        let (master, audit) = match location {
            Location::Header => ("", ""),
            Location::Query => {
                let hex: String = master_key().iter().map(|byte| format!("{byte:02x}")).collect();
                fs::write(planted.path("master"), hex + "\n").unwrap();
                ("", "[log]\naudit = \"audit.jsonl\"")
            }
            Location::Cookie => {
                fs::write(planted.path("master"), base64(&master_key())).unwrap();
                ("master_key = \"@master\"", "")
            }
        };
        let client_auth = if location == Location::Query { "post" } else { "basic" };
        let place = format!("{location:?}").to_lowercase();
        let tls = match location {
            Location::Cookie => "[tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"",
            _ => "",
        };
        let config = format!(
            r#"
listen = "127.0.0.1:0"
{master}
{audit}
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
[[auth.basic.user]]
name = "alice"
password = '{basic}'
[[auth.digest.user]]
name = "bob"
password = "@bob.digest"
[auth.jwt]
issuer = "{ISSUER}"
audience = ["agent"]
jwks = "@keys.json"
[auth.introspection]
url = "{issuer}/introspect"
client_id = "agent"
client_secret = "env:CANARY_CLIENT"
client_auth = "{client_auth}"
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
        command.current_dir(self.folder.path());
        command.env("CANARY_TOKEN", canary("variabletoken")).env("CANARY_CLIENT", canary("clientsecret"));
        match self.location {
            Location::Header => {
                command.env("BATON_API_KEY", canary("apikey"));
                command.env("BATON_MASTER_KEY", base64(&master_key()));
            }
            Location::Query => {
                command.env("BATON_MASTER_KEY_FILE", "master");
            }
            Location::Cookie => {}
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
            all.push(self.api_key(key, is_valid));
        }
        for (token, is_valid) in [
            ("writtentoken", true),
            ("filetoken", true),
            ("variabletoken", true),
            ("opaquetoken", true),
            ("unknowntoken", false),
        ] {
            all.push(of_header("authorization", format!("Bearer {}", canary(token)), is_valid));
        }
        // A JWT, with the word in each part.
        let part = |name: &str| base64(format!("{{\"a\":\"{}\"}}", canary(name)).as_bytes()).replace('=', "");
        let token = format!("Bearer {}.{}.{}", part("jwthead"), part("jwtbody"), part("jwtsignature"));
        all.push(of_header("authorization", token, false));
        all.push(of_header("authorization", format!("Bearer {}", self.jwt), true));
        // With another signature, which begins like the right one.
        let (signed, signature) = self.jwt.rsplit_once('.').unwrap();
        let other = format!("{}AAAA", &signature[..signature.len() - 4]);
        all.push(of_header("authorization", format!("Bearer {signed}.{other}"), false));
        let basic = |user: &str, password: String| {
            format!("Basic {}", base64(format!("{user}:{password}").as_bytes()))
        };
        all.push(of_header("authorization", basic("alice", canary("basicpassword")), true));
        for malformed in [
            basic("alice", canary("basicpassword") + "x"),
            basic("nobody", canary("basicpassword")),
            basic(&canary("basicuser"), "x".to_owned()),
            format!("Basic {}", base64(canary("nocolon").as_bytes())),
            format!("Basic {}", canary("notbase64")),
            format!("Bearer {} {}", canary("two"), canary("words")),
            format!("Digest username=\"bob\", response=\"{}\"", canary("response")),
            format!("Digest {}", canary("nodigest")),
            format!("{} {}", canary("scheme"), canary("rest")),
            canary("alone"),
        ] {
            all.push(of_header("authorization", malformed, false));
        }
        all
    }

    /// The key where this server looks for it.
    fn api_key(&self, key: &str, is_valid: bool) -> Credential {
        match self.location {
            Location::Header => of_header("x-api-key", key.to_owned(), is_valid),
            Location::Cookie => of_header("cookie", format!("a=b; api_key={key}"), is_valid),
            Location::Query => {
                let query = format!("?api_key={}", key.replace('+', "%2B"));
                Credential { query, headers: Vec::new(), is_valid }
            }
        }
    }

    /// Calls with the right and with wrong passwords, as `curl` makes the header. What it sent is searched for, too.
    fn call_with_digest(&mut self, server: &Served) -> String {
        let mut answers = String::new();
        for (user, password, expected) in [
            ("bob", canary("digestpassword"), "200"),
            ("bob", canary("digestpassword") + "x", "401"),
            ("nobody", canary("digestpassword"), "401"),
        ] {
            for path in ["/tasks", "/tasks/none", "/extendedAgentCard"] {
                let mut curl = Command::new("curl");
                curl.args([
                    "-sSvk",
                    "--digest",
                    "-u",
                    &format!("{user}:{password}"),
                    "-H",
                    "A2A-Version: 1.0",
                ]);
                curl.args(["-w", "\nstatus %{http_code}"]).arg(format!("{}{path}", server.url));
                let output = curl.output().unwrap();
                let (answer, said) = (
                    String::from_utf8(output.stdout).unwrap(),
                    String::from_utf8_lossy(&output.stderr).into_owned(),
                );
                let status = answer.rsplit("status ").next().unwrap();
                assert_eq!(status == "401", expected == "401", "{user} {path}: {answer}\n{said}");
                let sent = said.lines().filter(|line| line.contains("uthorization: Digest"));
                let hashes: Vec<String> = sent
                    .filter_map(|line| line.split("response=\"").nth(1)?.split('"').next())
                    .map(str::to_owned)
                    .collect();
                assert!(!hashes.is_empty(), "nothing was tried: {said}");
                self.derived.extend(hashes);
                answers += &answer;
                answers.extend(
                    said.lines().filter(|line| line.starts_with('<')).map(|line| format!("{line}\n")),
                );
            }
        }
        answers
    }

    /// `baton key new`, calls with the key and one that nearly is, `baton key list`, `baton key revoke`, and a call after that.
    async fn call_with_issued_key(&mut self, server: &Served) -> String {
        let key = |args: &[&str]| {
            let place = ["--config", "baton.toml"];
            let output = self.baton(&[&["key"], args, &place].concat()).output().unwrap();
            assert!(output.status.success(), "{args:?}: {output:?}");
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
        };
        let (made, mut said) = key(&["new", "issued", "--json"]);
        let made: Value = serde_json::from_str(&made).unwrap();
        let text = made["secret"].as_str().unwrap();
        let secret = text.rsplit('_').next().unwrap();
        // A wrong one begins the same.
        let wrong = format!("{}{}", &text[..text.len() - 1], if text.ends_with('a') { 'b' } else { 'a' });
        let word = secret[..secret.len() - 1].to_owned();
        assert!(word.len() > 30);
        for (text, is_valid) in [(text, true), (&wrong, false)] {
            said += &call_everything(server, &self.api_key(text, is_valid)).await;
        }
        for args in [&["list"][..], &["list", "--json"], &["revoke", "issued"]] {
            let (stdout, stderr) = key(args);
            said += &(stdout + &stderr);
        }
        said += &call_everything(server, &self.api_key(text, false)).await;
        self.derived.push(word);
        said
    }

    fn has_wrapped_secrets(&self) -> bool {
        let bytes = fs::read(self.path("tasks.db")).unwrap();
        String::from_utf8_lossy(&bytes).contains("baton-secret 1 ")
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
        let own =
            ["baton.toml", "token", "apikey", "key.pem", "cert.pem", "master", "bob.digest", "keys.json"];
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

/// The value of `iss`. Its keys are in a file.
const ISSUER: &str = "https://issuer.example";

/// 32 bytes with the word in them, and some that no text has: a phrase is refused.
fn master_key() -> Vec<u8> {
    let key = [canary("masterkey").as_bytes(), b"\x9c\x01\xfe\x80\xf3\x07\xe2\x1b\xd6\xaa\x4e"].concat();
    assert_eq!(key.len(), 32);
    key
}

fn ed25519() -> rcgen::KeyPair {
    rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap()
}

fn url_base64(bytes: &[u8]) -> String {
    base64(bytes).replace('+', "-").replace('/', "_").replace('=', "")
}

/// A token for this server, with the word in its claims.
fn jwt(signer: &rcgen::KeyPair) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let claims = json!({"iss": ISSUER, "aud": "agent", "sub": "carol", "iat": now, "exp": now + 3600,
        "jti": canary("jti"), "email": canary("email")});
    let head = json!({"alg": "EdDSA", "kid": "k", "typ": "JWT"});
    let signed = [head, claims].map(|part| url_base64(part.to_string().as_bytes())).join(".");
    let signature = signer.sign(signed.as_bytes()).unwrap();
    format!("{signed}.{}", url_base64(&signature))
}

/// The stored form of a password, as the command makes it.
fn hashed(args: &[&str], password: &str) -> String {
    let mut command = baton(&[&["hash-password"], args].concat());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{password}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// An issuer that knows one opaque token, and answers only who has the client's secret.
async fn issuer() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let introspect = |headers: http::HeaderMap, form: String| async move {
        let header = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
        let escaped = |name: &str| canary(name).replace('/', "%2F").replace('+', "%2B");
        let is_client = match header {
            Some(header) => {
                header == format!("Basic {}", base64(format!("agent:{}", escaped("clientsecret")).as_bytes()))
            }
            None => form.contains(&format!("client_secret={}", escaped("clientsecret"))),
        };
        assert!(is_client, "{headers:?} {form}");
        let is_active = form.contains(&format!("token={}", escaped("opaquetoken")));
        let answer =
            json!({"active": is_active, "sub": "dora", "client_id": canary("clientid"), "iss": ISSUER});
        ([("content-type", "application/json")], answer.to_string())
    };
    let app = axum::Router::new().route("/introspect", axum::routing::post(introspect));
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
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
    let calls = [
        ("1.0", "/", Some(rpc("SendMessage", json!({"message": message})))),
        ("1.0", "/", Some(rpc("GetTask", json!({"id": "none"})))),
        ("1.0", "/", Some(rpc("NoSuchMethod", json!({})))),
        ("0.3", "/", Some(rpc("tasks/get", json!({"id": "none"})))),
        ("1.0", "/tasks/none", None),
        ("1.0", "/extendedAgentCard", None),
        ("1.0", "/nowhere", None),
        ("9.9", "/tasks", None),
    ];
    // Without a valid credential, nothing of a request is read.
    let calls = if credential.is_valid { &calls[..] } else { &calls[3..6] };
    for (version, path, body) in calls {
        let target = format!("{url}{path}{}", credential.query);
        let mut request = match body {
            Some(body) => client().post(target).json(body),
            None => client().get(target),
        };
        request = request.header("a2a-version", *version);
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
