//! P-05: basic and digest as `curl` and Python's `requests` do them, and the user that a trusted proxy names.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;

use argon2::password_hash::PasswordHasher as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_protocol::domain::security::{SchemeKind, SecurityScheme};
use baton_server::auth::{
    Basic, BasicOptions, Chain, Digest, DigestOptions, ProxyUser, ProxyUserOptions, StoredUser,
    digest_password, hash_password,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::agents::obedient;
use crate::harness::{TestServer, message, serve, with_agent};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks"}"#;

/// Fast to compute, for tests that are about something else.
fn weak(password: &str) -> String {
    let hasher = argon2::Argon2::from(argon2::Params::new(8, 1, 1, None).unwrap());
    hasher.hash_password(password.as_bytes()).unwrap().to_string()
}

fn basic() -> Basic {
    let users = vec![
        StoredUser::new("ann", weak("open sesame")),
        StoredUser::new("bob", weak("pw")).owner("team").scopes(["read"]),
        StoredUser::new("Jäsøn", weak("pässwörd")),
    ];
    Basic::new(users, BasicOptions::default()).unwrap()
}

fn digest() -> Digest {
    let user =
        |user: &str, password: &str| StoredUser::new(user, digest_password(user, "baton", &password.into()));
    let users = vec![user("ann", "open sesame"), user("Jäsøn", "pässwörd")];
    Digest::new(users, DigestOptions::default()).unwrap()
}

async fn serve_with(chain: impl Into<Arc<Chain>>) -> TestServer {
    serve(with_agent(obedient).auth(chain)).await
}

fn is_installed(command: &str, arguments: &[&str]) -> bool {
    let status = Command::new(command).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// The status and the body of a call by `curl` with these options. `None` if there is no `curl`.
async fn curl(url: &str, options: &[&str]) -> Option<(u16, Value)> {
    if !is_installed("curl", &["--version"]) {
        return None;
    }
    let mut command = Command::new("curl");
    command.args(["-sS", "--max-time", "20", "-w", "\n%{http_code}"]).args(options);
    command.args(["-H", "content-type: application/json", "-H", "a2a-version: 1.0", "--url", url]);
    let out = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let (body, status) =
        text.rsplit_once('\n').unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&out.stderr)));
    Some((status.parse().unwrap(), serde_json::from_str(body).unwrap_or(Value::Null)))
}

#[tokio::test]
async fn p05_basic_by_curl() {
    let chain = Arc::new(Chain::new().scheme("password", basic()));
    let server = serve_with(Arc::clone(&chain)).await;
    for (user, expected) in [
        ("ann:open sesame", 200),
        ("ann:open sesame", 200),
        ("bob:pw", 200),
        ("Jäsøn:pässwörd", 200),
        ("ann:open sesam", 401),
        ("ann:", 401),
        ("cid:pw", 401),
    ] {
        let Some((status, body)) = curl(&server.url, &["--basic", "-u", user, "-d", LIST]).await else {
            return;
        };
        assert_eq!(status, expected, "{user}: {body}");
        if expected == 401 {
            assert_eq!(body["error"]["message"], "The credential was refused: wrong user or password");
        }
    }
    // With the cost that stored passwords have.
    let stored = tokio::task::spawn_blocking(|| hash_password(&"pw".into()).unwrap()).await.unwrap();
    let dora = Basic::new(vec![StoredUser::new("dora", stored)], BasicOptions::default()).unwrap();
    chain.replace(Chain::new().scheme("password", dora)).unwrap();
    for (user, expected) in [("dora:pw", 200), ("dora:pw", 200), ("ann:open sesame", 401)] {
        let (status, body) = curl(&server.url, &["--basic", "-u", user, "-d", LIST]).await.unwrap();
        assert_eq!(status, expected, "{user}: {body}");
    }
}

#[tokio::test]
async fn p05_digest_by_curl() {
    let server = serve_with(Chain::new().scheme("digest", digest())).await;
    for (user, expected) in
        [("ann:open sesame", 200), ("Jäsøn:pässwörd", 200), ("ann:open sesam", 401), ("cid:open sesame", 401)]
    {
        for request in [["-d", LIST].as_slice(), &["-G", "-d", "pageSize=3&contextId=a%20b"]] {
            let url =
                if request.contains(&"-G") { format!("{}/tasks", server.url) } else { server.url.clone() };
            let options = [&["--digest", "-u", user], request].concat();
            let Some((status, body)) = curl(&url, &options).await else { return };
            assert_eq!(status, expected, "{user} {request:?}: {body}");
        }
    }
    // Of two schemes, curl takes the stronger one.
    let both = Chain::new().scheme("password", basic()).scheme("digest", digest());
    let server = serve_with(both).await;
    for options in [["--anyauth", "-u", "ann:open sesame"], ["--basic", "-u", "bob:pw"]] {
        let (status, body) = curl(&server.url, &[&options[..], &["-d", LIST]].concat()).await.unwrap();
        assert_eq!(status, 200, "{options:?}: {body}");
    }
}

/// One session: the nonce of the first answer serves several requests, then the users are replaced and it is stale. The
/// library tries again by itself.
const PYTHON: &str = r#"
import sys, requests
from requests.auth import HTTPDigestAuth
session = requests.Session()
session.auth = HTTPDigestAuth("ann", "open sesame")
headers = {"a2a-version": "1.0"}
body = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}
def ask():
    return session.post(sys.argv[1], json=body, headers=headers)
answers = [ask() for _ in range(3)]
print(*[answer.status_code for answer in answers], *[len(answer.history) for answer in answers], flush=True)
input()
answer = ask()
print(answer.status_code, len(answer.history), session.get(sys.argv[1] + "/tasks?pageSize=2&contextId=a%20b", headers=headers).status_code)
"#;

#[tokio::test]
async fn p05_digest_by_python_requests_with_one_nonce_for_several_calls() {
    if !is_installed("python3", &["-c", "import requests"]) {
        return;
    }
    let chain = || Chain::new().scheme("digest", digest());
    let serving = Arc::new(chain());
    let server = serve_with(Arc::clone(&serving)).await;
    let url = server.url.clone();
    tokio::task::spawn_blocking(move || {
        let mut child = Command::new("python3")
            .args(["-c", PYTHON, &url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "200 200 200 1 0 0", "only the first call was challenged");
        serving.replace(chain()).unwrap();
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "200 1 200");
        assert!(child.wait().unwrap().success());
    })
    .await
    .unwrap();
}

fn authorization(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

#[tokio::test]
async fn p05_passwords_declare_themselves_on_the_card_and_in_the_challenge() {
    let server = serve_with(Chain::new().scheme("password", basic()).scheme("digest", digest())).await;
    let card = server.http.get(format!("{}/.well-known/agent-card.json", server.url)).send().await.unwrap();
    let card: Value = card.json().await.unwrap();
    for (name, scheme) in [("password", "basic"), ("digest", "digest")] {
        let declared = &card["securitySchemes"][name]["httpAuthSecurityScheme"]["scheme"];
        assert_eq!(declared, scheme, "{card}");
    }
    let answer = server.call("ListTasks", json!({})).await;
    assert_eq!(answer.status, 401);
    let challenges: Vec<_> =
        answer.headers.get_all("www-authenticate").iter().map(|value| value.to_str().unwrap()).collect();
    assert_eq!(challenges[0], r#"Basic realm="baton", charset="UTF-8""#);
    let start = r#"Digest realm="baton", qop="auth", algorithm=SHA-256, nonce=""#;
    assert!(challenges.len() == 2 && challenges[1].starts_with(start), "{challenges:?}");
}

#[tokio::test]
async fn p05_users_see_their_owners_tasks_and_a_revoked_password_ends_at_once() {
    let users = || {
        let of = |name: &str| StoredUser::new(name, weak("pw"));
        vec![of("ann"), of("bob").owner("team"), of("cid").owner("team")]
    };
    let chain = |users| {
        let scheme = Basic::new(users, BasicOptions::default()).unwrap();
        Chain::new().scheme("password", scheme)
    };
    let serving = Arc::new(chain(users()));
    let server = serve_with(Arc::clone(&serving)).await;
    let count = async |user: &str| {
        let header = authorization(user, "pw");
        let answer = server.call_with("ListTasks", json!({}), &[("authorization", &header)]).await;
        if answer.status == 200 { answer.result()["totalSize"].as_u64() } else { None }
    };
    let header = authorization("bob", "pw");
    server.call_with("SendMessage", message("a"), &[("authorization", &header)]).await.result();
    assert_eq!((count("ann").await, count("bob").await, count("cid").await), (Some(0), Some(1), Some(1)));
    serving.replace(chain(users().into_iter().take(1).collect())).unwrap();
    assert_eq!((count("ann").await, count("bob").await, count("cid").await), (Some(0), None, None));
}

/// 200 wrong passwords at once from one address; the queue has room for four.
#[tokio::test]
async fn p05_a_flood_of_wrong_passwords_keeps_nobody_else_out() {
    let hasher = argon2::Argon2::from(argon2::Params::new(4096, 1, 1, None).unwrap());
    let stored = |password: &str| hasher.hash_password(password.as_bytes()).unwrap().to_string();
    let users = ["ann", "bob"].map(|name| StoredUser::new(name, stored(name))).to_vec();
    let mut options = BasicOptions::default();
    options.max_waiting = 4;
    let scheme = Basic::new(users, options).unwrap();
    let server = serve_with(Chain::new().scheme("password", scheme)).await;
    let ask = async |user: &str, password: &str, from: &str| {
        let header = authorization(user, password);
        let headers = [("authorization", header.as_str()), ("x-forwarded-for", from)];
        let answer = server.call_with("ListTasks", json!({}), &headers).await;
        (answer.status, answer.header("retry-after").is_some())
    };
    let flood = futures_util::future::join_all(
        (0..200).map(async |guess| ask("ann", &format!("guess {guess}"), "203.0.113.1").await),
    );
    let honest = async {
        let mut answers = Vec::new();
        for (user, from) in [("bob", "203.0.113.2"), ("ann", "203.0.113.3"), ("bob", "203.0.113.2")] {
            answers.push(ask(user, user, from).await);
        }
        answers
    };
    let (flood, honest) = futures_util::future::join(flood, honest).await;
    assert_eq!(honest, [(200, false); 3]);
    for (status, waits) in flood {
        assert!(status == 401 && !waits || matches!(status, 429 | 503) && waits, "{status}");
    }
}

/// What a client sends after this challenge, computed without our code.
fn digest_header(challenge: &str, method: &str, uri: &str) -> String {
    let hash = |text: String| {
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let nonce = challenge.split_once("nonce=\"").unwrap().1.split_once('"').unwrap().0;
    let (user, request) = (hash("ann:baton:open sesame".to_owned()), hash(format!("{method}:{uri}")));
    let response = hash(format!("{user}:{nonce}:00000001:c:auth:{request}"));
    format!(
        "Digest username=\"ann\", realm=\"baton\", nonce=\"{nonce}\", uri=\"{uri}\", cnonce=\"c\", nc=00000001, \
         qop=auth, response=\"{response}\", algorithm=SHA-256"
    )
}

async fn challenge(server: &TestServer) -> String {
    server.call("ListTasks", json!({})).await.header("www-authenticate").unwrap().to_owned()
}

#[tokio::test]
async fn p05_digest_behind_a_proxy_that_removes_the_public_path() {
    let builder = with_agent(obedient).public_url("https://a.example/pre");
    let server = serve(builder.auth(Chain::new().scheme("digest", digest()))).await;
    for (sent, claimed, expected) in [
        ("/tasks?pageSize=1", "/pre/tasks?pageSize=1", 200),
        ("/tasks?pageSize=1", "/tasks?pageSize=1", 200),
        ("/pre/tasks?pageSize=1", "/pre/tasks?pageSize=1", 200),
        ("/tasks?pageSize=1", "/pre/tasks?pageSize=2", 401),
        ("/tasks?pageSize=1", "/other/tasks?pageSize=1", 401),
    ] {
        let header = digest_header(&challenge(&server).await, "GET", claimed);
        let get = || {
            let get = server.http.get(format!("{}{sent}", server.url)).header("a2a-version", "1.0");
            get.header("authorization", &header).send()
        };
        assert_eq!(get().await.unwrap().status(), expected, "{sent} as {claimed}");
        let again = get().await.unwrap();
        assert_eq!(again.status(), 401, "the same header passes once");
        let challenge = again.headers()["www-authenticate"].to_str().unwrap();
        assert_eq!(challenge.ends_with(", stale=true"), expected == 200, "{challenge}");
    }
}

/// The `curl` of today's systems fails by itself at the second request of an HTTP/2 connection without TLS, so it gets a
/// header that is ready.
#[tokio::test]
async fn p05_digest_over_http2() {
    let server = serve_with(Chain::new().scheme("digest", digest())).await;
    for (uri, expected) in [("/".to_owned(), 200), (format!("{}/", server.url), 200), ("/x".to_owned(), 401)]
    {
        let header = digest_header(&challenge(&server).await, "POST", &uri);
        let header = format!("authorization: {header}");
        let options = ["--http2-prior-knowledge", "-H", &header, "-d", LIST];
        let Some((status, body)) = curl(&server.url, &options).await else { return };
        assert_eq!(status, expected, "{uri}: {body}");
    }
}

#[tokio::test]
async fn p05_the_user_of_a_trusted_proxy_and_of_nobody_else() {
    let declared = || {
        let kind = SchemeKind::Http { scheme: "bearer".to_owned(), bearer_format: None };
        SecurityScheme { description: Some("A token of the company".to_owned()), kind }
    };
    let ann = ("x-forwarded-user", "ann");
    for (proxies, status) in [("127.0.0.0/8", 200), ("10.0.0.0/8", 401)] {
        let options = ProxyUserOptions::new(vec![proxies.parse().unwrap()], declared());
        let server = serve_with(Chain::new().scheme("company", ProxyUser::new(options).unwrap())).await;
        let answer = server.call_with("ListTasks", json!({}), &[ann]).await;
        assert_eq!(answer.status, status, "{proxies}");
        for headers in [&[][..], &[("x-forwarded-user", "")], &[ann, ("x-forwarded-user", "bob")]] {
            let answer = server.call_with("ListTasks", json!({}), headers).await;
            assert_eq!(
                (answer.status, answer.header("www-authenticate")),
                (401, Some("Bearer")),
                "{headers:?}"
            );
        }
        let card =
            server.http.get(format!("{}/.well-known/agent-card.json", server.url)).send().await.unwrap();
        let card: Value = card.json().await.unwrap();
        let shown = &card["securitySchemes"]["company"]["httpAuthSecurityScheme"];
        assert_eq!(shown["scheme"], "bearer", "{card}");
        assert!(!card.to_string().to_ascii_lowercase().contains("x-forwarded-user"), "{card}");
    }
}
