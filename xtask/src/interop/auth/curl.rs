//! `curl` with every kind of credential.

use std::process::{Command, Stdio};

use super::super::oidc::AUDIENCE;
use super::site::{ANN, API_KEY, BOB, CAROL, DAVE, ROBOT, Site};

const MESSAGE: &str = r#"{"message":{"messageId":"MESSAGE","role":"ROLE_USER","parts":[{"text":"hello"}]}}"#;

/// curl's exit codes: the peer's certificate was refused; failures of the handshake and of reading.
const UNKNOWN_SERVER: i32 = 60;
const REFUSED: [i32; 3] = [35, 55, 56];

type Check = (&'static str, fn(&Site) -> Result<(), String>);

const ALL: &[Check] = &[
    ("p05_api_key", |site| works(site, &["-H", &format!("X-API-Key: {API_KEY}")])),
    ("p05_api_key_in_query", |site| {
        let list = format!("{}/tasks?api_key={API_KEY}", site.with_query);
        expect(site, &[&list], 200)?;
        expect(site, &[&format!("{list}x")], 401)
    }),
    ("p05_api_key_in_cookie", |site| {
        let list = format!("{}/tasks", site.with_cookie);
        expect(site, &["-b", &format!("a=b; api_key={API_KEY}"), &list], 200)?;
        expect(site, &["-b", "api_key=another-key-0123", &list], 401)
    }),
    ("p05_bearer_token", |site| works(site, &["-H", &bearer(ANN)])),
    ("p05_oauth_client_credentials", |site| works(site, &["-H", &bearer(&token(site, "tasks")?)])),
    ("p05_http_basic", |site| works(site, &["--basic", "-u", &CAROL.join(":")])),
    ("p05_http_digest", |site| works(site, &["--digest", "-u", &DAVE.join(":")])),
    ("p05_client_certificate", |site| works(site, &certificate(site, "build"))),
    ("p05_certificates_of_strangers_are_refused", |site| {
        let list = format!("{}/tasks", site.url);
        let ca = site.file("stranger.pem").display().to_string();
        let unknown = call(site, &["--cacert", &ca, &list]).exit;
        ensure(unknown == UNKNOWN_SERVER, format!("an unknown server: exit code {unknown}"))?;
        let intruder = certificate(site, "intruder");
        let args: Vec<&str> = intruder.iter().map(String::as_str).chain([list.as_str()]).collect();
        let refused = call(site, &args).exit;
        ensure(REFUSED.contains(&refused), format!("an unknown client: exit code {refused}"))
    }),
    ("p05_extended_card", |site| {
        let card = format!("{}/extendedAgentCard", site.url);
        expect(site, &[&card], 401)?;
        expect(site, &["-H", &bearer(ANN), &card], 200)
    }),
    ("s16_refuses_without_credential", |site| {
        expect(site, &[&format!("{}/tasks", site.url)], 401)?;
        expect(site, &["-d", MESSAGE, &format!("{}/message:send", site.url)], 401)
    }),
    ("s16_refuses_wrong_credentials", |site| {
        let list = format!("{}/tasks", site.url);
        let wrong = bearer("not-a-token-0123");
        let [carol, dave] = [CAROL[0], DAVE[0]].map(|user| format!("{user}:not the password"));
        expect(site, &["-H", "X-API-Key: not-the-key-0123", &list], 401)?;
        expect(site, &["-H", &wrong, &list], 401)?;
        expect(site, &["--basic", "-u", &carol, &list], 401)?;
        expect(site, &["--digest", "-u", &dave, &list], 401)
    }),
    ("s16_refuses_a_missing_scope", |site| {
        expect(site, &["-H", &bearer(&token(site, "")?), &format!("{}/tasks", site.url)], 403)
    }),
    ("s16_foreign_tasks_are_not_found", |site| {
        let task = format!("{}/tasks/{}", site.url, send(site, &["-H", &bearer(ANN)])?);
        expect(site, &["-H", &bearer(ANN), &task], 200)?;
        expect(site, &["-H", &bearer(BOB), &task], 404)
    }),
];

/// The lines that scripts print.
pub fn checks(site: &Site) -> String {
    let mut lines = vec!["skip p05_reads_the_schemes_of_the_card: curl reads no cards".to_owned()];
    lines.extend(ALL.iter().map(|(name, check)| match check(site) {
        Ok(()) => format!("ok {name}"),
        Err(reason) => format!("FAIL {name}: {}", reason.replace('\n', " ")),
    }));
    lines.push(String::new());
    lines.join("\n")
}

/// Sends a message and reads the task with this credential.
fn works<T: AsRef<str>>(site: &Site, credential: &[T]) -> Result<(), String> {
    let credential: Vec<&str> = credential.iter().map(AsRef::as_ref).collect();
    let task = format!("{}/tasks/{}", site.url, send(site, &credential)?);
    expect(site, &[&credential[..], &[&task]].concat(), 200)
}

/// Returns the task's id.
fn send(site: &Site, credential: &[&str]) -> Result<String, String> {
    let url = format!("{}/message:send", site.url);
    let unique = format!("{:?}-{:?}", std::thread::current().id(), std::time::Instant::now());
    let message = MESSAGE.replace("MESSAGE", &unique.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
    let json = ["-H", "Content-Type: application/json", "-d", &message, &url];
    let answer = call(site, &[credential, &json].concat());
    ensure(answer.status == 200, format!("a send: {} {}", answer.status, answer.body))?;
    member(&answer.body, "id")
}

fn token(site: &Site, scope: &str) -> Result<String, String> {
    let client = ROBOT.join(":");
    let form = format!("grant_type=client_credentials&resource={AUDIENCE}&scope={scope}");
    let answer = call(site, &["-u", &client, "-d", &form, &site.token_url]);
    ensure(answer.status == 200, format!("no token: {}", answer.body))?;
    member(&answer.body, "access_token")
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

fn certificate(site: &Site, name: &str) -> [String; 4] {
    let file = |end| site.file(&format!("{name}.{end}")).display().to_string();
    ["--cert".to_owned(), file("pem"), "--key".to_owned(), file("key")]
}

fn expect(site: &Site, args: &[&str], status: u16) -> Result<(), String> {
    let answer = call(site, args);
    let url = args.last().unwrap_or(&"");
    ensure(answer.status == status, format!("{url}: {} {}", answer.status, answer.body))
}

struct Answer {
    exit: i32,
    /// Of the last answer: digest has two. 0 if there was none.
    status: u16,
    body: String,
}

fn call(site: &Site, args: &[&str]) -> Answer {
    let done = Command::new("curl")
        .args(["-sS", "--max-time", "20", "-H", "A2A-Version: 1.0", "-w", "\n%{http_code}", "--cacert"])
        .arg(site.file("ca.pem"))
        .args(args)
        .stdin(Stdio::null())
        .output();
    let Ok(done) = done else { return Answer { exit: -1, status: 0, body: "curl cannot be run".to_owned() } };
    let text = String::from_utf8_lossy(&done.stdout);
    let (body, status) = text.rsplit_once('\n').unwrap_or(("", "0"));
    let body = if body.is_empty() { String::from_utf8_lossy(&done.stderr).into() } else { body.to_owned() };
    Answer { exit: done.status.code().unwrap_or(-1), status: status.parse().unwrap_or(0), body }
}

/// The first member of that name; the values that are read here have no escapes.
fn member(json: &str, name: &str) -> Result<String, String> {
    let start = format!("\"{name}\":\"");
    let value = json.split_once(&start).and_then(|(_, rest)| rest.split_once('"'));
    value.map(|(value, _)| value.to_owned()).ok_or_else(|| format!("no {name} in {json}"))
}

fn ensure(condition: bool, otherwise: String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(otherwise) }
}
