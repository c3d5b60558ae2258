//! `[auth]` of the configuration, on the socket of the real binary.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::served::{Served, baton, text};

pub(crate) const HEAD: &str = "listen = \"127.0.0.1:0\"\nstore = \"memory:\"\n";

pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn with(text: &str) -> Self {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.write("baton.toml", &format!("{HEAD}{text}"));
        folder
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join("half"), text).unwrap();
        fs::rename(self.0.path().join("half"), self.0.path().join(name)).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap()
    }

    pub(crate) fn serve(&self) -> Served {
        Served::of(baton(&["serve"]).current_dir(self.0.path() as &Path))
    }
}

/// A call with these headers: the status, the challenges, the body.
async fn call(
    server: &Served,
    path: &str,
    headers: &[(&str, &str)],
    method: &str,
    params: Value,
) -> (u16, String, Value) {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut request =
        reqwest::Client::new().post(format!("{}{path}", server.url)).header("A2A-Version", "1.0").json(&body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    let challenges: Vec<_> = answer
        .headers()
        .get_all("www-authenticate")
        .iter()
        .map(|value| value.to_str().unwrap().to_owned())
        .collect();
    (status, challenges.join("; "), answer.json().await.unwrap_or_default())
}

pub(crate) async fn list(server: &Served, headers: &[(&str, &str)]) -> u16 {
    call(server, "/", headers, "ListTasks", json!({})).await.0
}

pub(crate) fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

const TOKENS: &str = r#"
[[auth.bearer.token]]
id = "alice"
secret = "alice-0123456789"
scopes = ["read"]
[[auth.bearer.token]]
id = "bob"
secret = "@bob"
"#;

#[tokio::test]
async fn p05_static_tokens_of_the_configuration_protect_every_call_and_are_declared() {
    let folder = Folder::with(TOKENS);
    folder.write("bob", "bob-9876543210-bob\n");
    let server = folder.serve();
    let (status, challenge, _) = call(&server, "/", &[], "ListTasks", json!({})).await;
    assert_eq!(status, 401);
    assert!(challenge.starts_with("Bearer"), "{challenge}");
    assert_eq!(list(&server, &[("authorization", &bearer("alice-0123456789"))]).await, 200);
    assert_eq!(list(&server, &[("authorization", &bearer("bob-9876543210-bob"))]).await, 200);
    assert_eq!(list(&server, &[("authorization", &bearer("bob-9876543210-bo"))]).await, 401);
    let card = server.card().await;
    assert_eq!(card["securitySchemes"]["bearer"]["httpAuthSecurityScheme"]["scheme"], "bearer", "{card}");
    assert!(card["securityRequirements"].to_string().contains("bearer"), "{card}");
    // One owner's task is not there for the other.
    let sent = call(
        &server,
        "/",
        &[("authorization", &bearer("alice-0123456789"))],
        "SendMessage",
        json!({"message": text("m-1", "hi")}),
    )
    .await;
    let id = sent.2["result"]["task"]["id"].clone();
    assert!(id.is_string(), "{sent:?}");
    let foreign =
        call(&server, "/", &[("authorization", &bearer("bob-9876543210-bob"))], "GetTask", json!({"id": id}))
            .await;
    assert!(foreign.2["error"].is_object(), "{foreign:?}");
    let log = server.stop_and_log();
    assert!(!log.contains("0123456789") && !log.contains("9876543210"), "{log}");
}

#[tokio::test]
async fn p05_agents_and_skills_have_requirements_of_their_own() {
    let folder = Folder::with(&format!(
        r#"{TOKENS}
[[agent]]
id = "open"
require = ["none"]
[[agent.skill]]
id = "a"
builtin = "echo"
[[agent]]
id = "scoped"
require = ["bearer(read)"]
[[agent.skill]]
id = "b"
builtin = "echo"
[[agent]]
id = "usual"
[[agent.skill]]
id = "c"
builtin = "echo"
require = ["bearer(read)"]
"#
    ));
    folder.write("bob", "bob-9876543210-bob\n");
    let server = folder.serve();
    let (alice, bob) = (bearer("alice-0123456789"), bearer("bob-9876543210-bob"));
    let (alice, bob) = ([("authorization", alice.as_str())], [("authorization", bob.as_str())]);
    for (path, headers, operation, status) in [
        ("/open", &[][..], "ListTasks", 200),
        ("/open", &alice, "ListTasks", 200),
        ("/scoped", &[], "ListTasks", 401),
        ("/scoped", &alice, "ListTasks", 200),
        ("/scoped", &bob, "ListTasks", 403),
        ("/usual", &[], "ListTasks", 401),
        ("/usual", &bob, "ListTasks", 200),
        ("/usual", &bob, "SendMessage", 403),
        ("/usual", &alice, "SendMessage", 200),
    ] {
        let params =
            if operation == "SendMessage" { json!({"message": text("m-1", "hi")}) } else { json!({}) };
        let answer = call(&server, path, headers, operation, params).await;
        assert_eq!(answer.0, status, "{path} {headers:?} {operation} {answer:?}");
    }
}

#[tokio::test]
async fn p05_a_reload_removes_and_adds_tokens_at_once() {
    let folder = Folder::with(&format!("[auth.throttle]\nburst = 1000\n{TOKENS}"));
    folder.write("bob", "bob-9876543210-bob\n");
    let server = folder.serve();
    let (alice, bob, carol) =
        (bearer("alice-0123456789"), bearer("bob-9876543210-bob"), bearer("carol-0123456789"));
    assert_eq!(list(&server, &[("authorization", &alice)]).await, 200);
    // A secret in a file, a token that is gone, one that is new.
    folder.write("bob", "bob-has-another-one\n");
    folder.write(
        "baton.toml",
        &format!("{HEAD}[auth.throttle]\nburst = 999\n{}", TOKENS.replace("alice", "carol")),
    );
    server.signal("-HUP");
    let log = server.log_with("configuration reloaded");
    assert!(log.contains("auth.bearer.token[alice]") && log.contains("auth.throttle.burst"), "{log}");
    assert!(!log.contains("needs a restart"), "{log}");
    assert_eq!(list(&server, &[("authorization", &alice)]).await, 401);
    assert_eq!(list(&server, &[("authorization", &bob)]).await, 401);
    assert_eq!(list(&server, &[("authorization", &carol)]).await, 200);
    assert_eq!(list(&server, &[("authorization", &bearer("bob-has-another-one"))]).await, 200);
    // Only the file with the secret changes: the key that names it is the same.
    folder.write("bob", "bob-has-a-third-one\n");
    server.signal("-HUP");
    server.log_with("applied=\"auth\"");
    assert_eq!(list(&server, &[("authorization", &bearer("bob-has-another-one"))]).await, 401);
    assert_eq!(list(&server, &[("authorization", &bearer("bob-has-a-third-one"))]).await, 200);
}

/// Also a stream that was opened before the first reload: nothing else keeps the schemes of the start.
#[tokio::test]
async fn p05_a_reload_ends_the_streams_of_tokens_that_are_gone() {
    let token = |id: &str, secret: &str| {
        format!("[[auth.bearer.token]]\nid = \"{id}\"\nowner = \"team\"\nsecret = \"{secret}\"\n")
    };
    let bob = token("bob", "bob-9876543210-bob");
    let folder = Folder::with(&format!("{}{bob}", token("alice", "alice-0123456789")));
    let server = folder.serve();
    let params = json!({"message": text("m-1", "tck-cancel")});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params});
    let request = reqwest::Client::new().post(&server.url).header("A2A-Version", "1.0").json(&body);
    let mut stream = request.bearer_auth("alice-0123456789").send().await.unwrap();
    let first = stream.chunk().await.unwrap().unwrap();
    let first = String::from_utf8_lossy(&first).into_owned();
    let (_, data) = first.split_once("data: ").unwrap();
    let first: Value = serde_json::from_str(data.lines().next().unwrap()).unwrap();
    let id = &first["result"]["task"]["id"];

    folder.write("baton.toml", &format!("{HEAD}{bob}"));
    server.signal("-HUP");
    server.log_with("configuration reloaded");
    let bob = bearer("bob-9876543210-bob");
    let bob = [("authorization", bob.as_str())];
    let (status, _, canceled) = call(&server, "/", &bob, "CancelTask", json!({"id": id})).await;
    assert_eq!((status, &canceled["result"]["status"]["state"]), (200, &json!("TASK_STATE_CANCELED")));
    let rest = stream.text().await.unwrap();
    assert!(rest.contains("no longer valid") && !rest.contains("CANCELED"), "{rest}");
}

#[tokio::test]
async fn p05_security_events_are_in_the_log_or_in_a_file_of_their_own() {
    let folder = Folder::with(TOKENS);
    folder.write("bob", "bob-9876543210-bob\n");
    let server = folder.serve();
    assert_eq!(list(&server, &[("authorization", &bearer("wrong"))]).await, 401);
    let log = server.log_with("credential refused");
    assert!(log.contains("audit"), "{log}");
    drop(server);

    folder.write("baton.toml", &format!("{HEAD}[log]\naudit = \"audit.jsonl\"\n{TOKENS}"));
    let server = folder.serve();
    assert_eq!(list(&server, &[("authorization", &bearer("wrong"))]).await, 401);
    let first: Value = serde_json::from_str(folder.read("audit.jsonl").lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["target"], &first["event"]),
        (&json!("audit"), &json!("credential refused")),
        "{first}"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(folder.0.path().join("audit.jsonl")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // Rotation: renamed, then SIGHUP.
    fs::rename(folder.0.path().join("audit.jsonl"), folder.0.path().join("audit.1")).unwrap();
    server.signal("-HUP");
    server.log_with("configuration reloaded");
    assert_eq!(list(&server, &[("authorization", &bearer("wrong"))]).await, 401);
    assert_eq!((folder.read("audit.1").lines().count(), folder.read("audit.jsonl").lines().count()), (1, 1));
    let log = server.stop_and_log();
    assert!(!log.contains("credential refused"), "{log}");
}

/// What is left out is counted, where the others are.
#[tokio::test]
async fn p05_a_flood_of_wrong_tokens_does_not_hide_a_wrong_password() {
    let user = format!("[[auth.basic.user]]\nname = \"alice\"\npassword = '{}'\n", hashed(&[], "right"));
    let folder = Folder::with("");
    folder.write("baton.toml", &format!("{HEAD}[log]\naudit = \"audit.jsonl\"\n{TOKENS}{user}"));
    folder.write("bob", "bob-9876543210-bob\n");
    let server = folder.serve();
    for _ in 0..300 {
        assert_eq!(list(&server, &[("authorization", &bearer("wrong"))]).await, 401);
    }
    assert_eq!(curl(&server, &["-u", "alice:wrong"]), "401");
    server.stop_and_log();
    let audit = folder.read("audit.jsonl");
    let events: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str, scheme: &str| {
        events.iter().filter(|it| it["event"] == event && it["scheme"] == scheme).collect::<Vec<_>>()
    };
    let told = of("credential refused", "bearer").len() as u64;
    assert!((1..300).contains(&told), "{told}");
    assert_eq!(of("credential refused", "basic").len(), 1, "{audit}");
    let left_out: u64 = of("events left out", "bearer").iter().map(|it| it["lines"].as_u64().unwrap()).sum();
    assert_eq!(told + left_out, 300, "{audit}");
}

/// A quiet log tells of attacks, too.
#[tokio::test]
async fn p05_security_events_are_logged_at_every_level() {
    let folder = Folder::with(&format!("[log]\nfilter = \"error\"\n{TOKENS}"));
    folder.write("bob", "bob-9876543210-bob\n");
    let server = folder.serve();
    assert_eq!(list(&server, &[("authorization", &bearer("wrong"))]).await, 401);
    server.log_with("credential refused");
}

/// What a reload does not apply is named.
#[tokio::test]
async fn p05_a_reload_tells_the_truth_about_keys_and_issuers() {
    let authority = |name: &str| {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        made.cert.pem()
    };
    let file = |fetch: &str, most: u32| {
        format!(
            "{HEAD}[auth.api_key]\nmax_keys = {most}\n[auth.oidc]\nissuer = \"https://login.example.com\"\n\
             audience = [\"agent\"]\n[auth.fetch]\nca = \"ca.pem\"\n{fetch}"
        )
    };
    let folder = Folder::with("");
    folder.write("baton.toml", &file("", 5));
    folder.write("ca.pem", &authority("one.example.com"));
    let server = folder.serve();
    let reloaded = |times: usize| {
        server.signal("-HUP");
        loop {
            let log = server.log_with("configuration reloaded");
            if log.matches("configuration reloaded").count() == times {
                return log;
            }
        }
    };
    // The same file with another text.
    folder.write("ca.pem", &authority("two.example.com"));
    let log = reloaded(1);
    assert!(log.contains("applied=\"auth\""), "{log}");
    folder.write("baton.toml", &file("timeout = \"7s\"\n", 5));
    let log = reloaded(2);
    assert!(log.contains("applied=\"auth.fetch.timeout\""), "{log}");
    folder.write("baton.toml", &file("timeout = \"7s\"\n", 6));
    let log = reloaded(3);
    assert!(log.contains("applied=\"nothing\"") && !log.contains("applied=\"auth.api_key"), "{log}");
    server.log_with("keys=\"auth.api_key.max_keys\"");
}

/// The address in use counts, whatever the new configuration says about `listen`.
#[tokio::test]
async fn p05_a_reload_opens_no_agent_to_other_machines() {
    let file = |listen: &str, require: &str| {
        format!(
            "listen = \"{listen}:0\"\nstore = \"memory:\"\ntrusted_proxies = [\"192.0.2.1\"]\n\
             [auth]\nrequire = [\"{require}\"]\n{TOKENS}"
        )
    };
    let folder = Folder::with("");
    folder.write("bob", "bob-9876543210-bob\n");
    folder.write("baton.toml", &file("0.0.0.0", "bearer"));
    let server = folder.serve();
    assert_eq!(list(&server, &[]).await, 401);
    folder.write("baton.toml", &file("127.0.0.1", "none"));
    server.signal("-HUP");
    let log = server.log_with("nothing was changed");
    assert!(log.contains("needs no credential"), "{log}");
    assert_eq!(list(&server, &[]).await, 401);
}

/// Consequences of a mistake in `[auth]` are not listed as mistakes of the cards.
#[test]
fn p05_a_check_tells_mistakes_in_auth_once_and_who_may_call() {
    let check = |text: &str| {
        let folder = Folder::with(text);
        let output =
            baton(&["serve", "config", "check"]).current_dir(folder.0.path() as &Path).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    for (text, said) in [
        (
            "[auth]\nrequire = [\"bearr\"]\n[[auth.bearer.token]]\nid = \"ci\"\nsecret = \"0123456789abcdef\"\n",
            1,
        ),
        ("[auth.bearer]\n", 1),
        ("[auth]\nrequire = [\"bearer\"]\n[auth.bearer]\n", 1),
        ("[auth]\nrequire = [\"bearr\"]\n[auth.bearer]\n", 2),
    ] {
        let output = check(text);
        assert_eq!(output.matches("baton.toml, line ").count(), said, "{output}");
        assert!(!output.contains("agent `") && !output.contains("securit"), "{output}");
    }
    let token = "[[auth.bearer.token]]\nid = \"ci\"\nsecret = \"0123456789abcdef\"\n";
    for (text, who) in [
        (String::new(), "callers  anybody, unless the store has keys"),
        ("[auth]\nrequire = []\n".to_owned(), "callers  anybody, unless the store has keys"),
        (token.to_owned(), "callers  need bearer"),
        (format!("[auth]\nrequire = [\"none\"]\n{token}"), "callers  anybody"),
        (format!("{token}[auth.api_key]\n"), "callers  need apiKey or bearer"),
        (
            format!("[auth]\nrequire = [\"bearer(read)+apiKey\"]\n{token}[auth.api_key]\n"),
            "callers  need bearer(read)+apiKey",
        ),
    ] {
        let output = check(&text);
        assert_eq!(output.lines().last().map(str::trim), Some(who), "{text}{output}");
    }
}

#[tokio::test]
async fn p05_the_extended_card_is_a_file_for_authenticated_callers() {
    let extended = |description: &str| {
        json!({"name": "N", "description": description, "version": "1", "supportedInterfaces": [],
            "capabilities": {"streaming": true}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "a", "name": "A", "description": "d", "tags": ["t"]}]})
        .to_string()
    };
    let folder = Folder::with(&format!(
        "{TOKENS}[card]\nname = \"N\"\ndescription = \"public\"\nextended = \"extended.json\"\n[[skill]]\nid = \"a\"\nbuiltin = \"echo\"\n"
    ));
    folder.write("bob", "bob-9876543210-bob\n");
    folder.write("extended.json", &extended("for those who are known"));
    let server = folder.serve();
    assert_eq!(server.card().await["capabilities"]["extendedAgentCard"], true);
    assert_eq!(call(&server, "/", &[], "GetExtendedAgentCard", json!({})).await.0, 401);
    let alice = bearer("alice-0123456789");
    let headers = [("authorization", alice.as_str())];
    let card = call(&server, "/", &headers, "GetExtendedAgentCard", json!({})).await.2;
    assert_eq!(card["result"]["description"], "for those who are known", "{card}");
    folder.write("extended.json", &extended("changed"));
    server.signal("-HUP");
    server.log_with("card.extended");
    let card = call(&server, "/", &headers, "GetExtendedAgentCard", json!({})).await.2;
    assert_eq!(card["result"]["description"], "changed", "{card}");
    // Clients go by the version.
    server.log_with("the card changed, and its version did not");
}

/// The stored form of a password, as the command makes it.
pub(crate) fn hashed(args: &[&str], password: &str) -> String {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut command = baton(&[&["hash-password"], args].concat());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{password}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The status that `curl` sees.
pub(crate) fn curl(server: &Served, args: &[&str]) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}).to_string();
    let url = format!("{}/", server.url);
    let mut command = std::process::Command::new("curl");
    command.args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", "-H", "A2A-Version: 1.0"]);
    command.args(["-H", "Content-Type: application/json", "-d", &body]).args(args).arg(url);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[tokio::test]
async fn p05_basic_and_digest_users_of_the_configuration_are_let_in_and_removed_by_a_reload() {
    let basic = hashed(&[], "alice's password");
    let digest = hashed(&["--digest", "bob"], "bob's password");
    let users = format!(
        "[[auth.basic.user]]\nname = \"alice\"\npassword = '{basic}'\n[[auth.digest.user]]\nname = \"bob\"\npassword = \"{digest}\"\n"
    );
    let folder = Folder::with(&users);
    let server = folder.serve();
    assert_eq!(curl(&server, &[]), "401");
    for _ in 0..2 {
        assert_eq!(curl(&server, &["-u", "alice:alice's password"]), "200");
        assert_eq!(curl(&server, &["--digest", "-u", "bob:bob's password"]), "200");
    }
    assert_eq!(curl(&server, &["-u", "alice:bob's password"]), "401");
    assert_eq!(curl(&server, &["--digest", "-u", "bob:alice's password"]), "401");
    let schemes = server.card().await["securitySchemes"].clone();
    assert_eq!(schemes["basic"]["httpAuthSecurityScheme"]["scheme"], "basic", "{schemes}");
    assert_eq!(schemes["digest"]["httpAuthSecurityScheme"]["scheme"], "digest", "{schemes}");
    // Her header was verified and remembered a moment ago.
    folder.write(
        "baton.toml",
        &format!("{HEAD}{}", users.replace("\"alice\"", "\"carol\"").replace("\"bob\"", "\"dave\"")),
    );
    server.signal("-HUP");
    server.log_with("configuration reloaded");
    assert_eq!(curl(&server, &["-u", "alice:alice's password"]), "401");
    assert_eq!(curl(&server, &["-u", "carol:alice's password"]), "200");
    assert_eq!(curl(&server, &["--digest", "-u", "bob:bob's password"]), "401");
    let log = server.stop_and_log();
    assert!(!log.contains("'s password") && !log.contains("argon2id"), "{log}");
}

#[tokio::test]
async fn p05_the_user_that_a_trusted_proxy_names_is_believed_from_its_address_only() {
    let proxy = |address: &str| {
        format!(
            "trusted_proxies = [\"{address}\"]\n[auth.proxy]\ndeclare = \"bearer\"\nscopes_header = \"X-Groups\"\n[auth]\nrequire = [\"proxy(admins)\"]\n"
        )
    };
    for (address, named, in_group) in [("127.0.0.1", 403, 200), ("192.0.2.1", 401, 401)] {
        let server = Folder::with(&proxy(address)).serve();
        let user = ("X-Forwarded-User", "alice");
        assert_eq!(list(&server, &[]).await, 401);
        assert_eq!(list(&server, &[user]).await, named, "{address}");
        assert_eq!(list(&server, &[user, ("X-Groups", "users,admins")]).await, in_group, "{address}");
        let schemes = server.card().await["securitySchemes"].clone();
        assert_eq!(schemes["proxy"]["httpAuthSecurityScheme"]["scheme"], "bearer", "{schemes}");
    }
}
