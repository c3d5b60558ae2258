//! A reload and the callers: what those who stay have open goes on, those who are gone are out at once, and nobody gets in
//! because the last of them is gone.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::auth_config::{Folder, HEAD, bearer, curl, hashed, list};
use crate::served::{Served, text};

/// Of the password `password`, and fast to compute.
const HASH: &str = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";

/// `curl` with a call and the credential in `args`.
fn curl_call(server: &Served, args: &[&str], method: &str, params: &Value) -> Command {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let mut command = Command::new("curl");
    command.args(["-sSN", "-H", "A2A-Version: 1.0", "-H", "Content-Type: application/json", "-d", &body]);
    command.args(args).arg(format!("{}/", server.url));
    command
}

/// A send and a stream of one caller; neither ends before the task does.
struct Open {
    name: &'static str,
    send: Child,
    stream: Child,
    events: BufReader<ChildStdout>,
}

impl Open {
    fn new(server: &Served, name: &'static str, credential: &[&str]) -> Self {
        let message = |id: &str| json!({"message": text(&format!("{name}-{id}"), "tck-cancel")});
        let mut send = curl_call(server, credential, "SendMessage", &message("send"));
        let send = send.args(["-w", "\n%{http_code}"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut stream = curl_call(server, credential, "SendStreamingMessage", &message("stream"));
        let mut stream = stream.stdout(Stdio::piped()).spawn().unwrap();
        let mut events = BufReader::new(stream.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("\"id\"") {
            line.clear();
            assert!(events.read_line(&mut line).unwrap() > 0, "{name} gets a stream");
        }
        Open { name, send, stream, events }
    }

    /// The status of the send, and the rest of the stream.
    fn end(mut self) -> (&'static str, String, String) {
        let mut rest = String::new();
        self.events.read_to_string(&mut rest).unwrap();
        self.stream.wait().unwrap();
        let sent = String::from_utf8(self.send.wait_with_output().unwrap().stdout).unwrap();
        (self.name, sent.lines().last().unwrap().to_owned(), rest)
    }
}

/// What a call answers.
fn called(server: &Served, credential: &[&str], method: &str, params: &Value) -> Value {
    let output = curl_call(server, credential, method, params).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

fn working(server: &Served, credential: &[&str]) -> Vec<Value> {
    let params = json!({"status": "TASK_STATE_WORKING", "pageSize": 100});
    let listed = called(server, credential, "ListTasks", &params);
    listed["result"]["tasks"].as_array().unwrap_or_else(|| panic!("{listed}")).clone()
}

fn reload(server: &Served, folder: &Folder, text: &str) -> String {
    let reloads = |log: &str| log.matches("configuration reloaded").count();
    let before = reloads(&server.log());
    folder.write("baton.toml", text);
    server.signal("-HUP");
    loop {
        let log = server.log_with("configuration reloaded");
        assert!(!log.contains("nothing was changed"), "{log}");
        if reloads(&log) > before {
            return log;
        }
    }
}

fn token(id: &str, secret: &str) -> String {
    format!("[[auth.bearer.token]]\nid = \"{id}\"\nowner = \"team\"\nsecret = \"{secret}\"\n")
}

/// Of every list of callers one goes, one is changed and one stays.
#[test]
fn s16_a_reload_ends_what_callers_who_are_gone_have_open_and_leaves_the_others_alone() {
    let user = |scheme: &str, name: &str, password: &str, scope: &str| {
        format!(
            "[[auth.{scheme}.user]]\nname = \"{name}\"\nowner = \"team\"\npassword = '{password}'\nscopes = [\"{scope}\"]\n"
        )
    };
    let digests = ["dan", "eve", "flo"].map(|name| hashed(&["--digest", name], "password"));
    let file = |stays: &str, changes: &str| {
        format!(
            "{HEAD}{stays}{}{}{}{}",
            token("two", changes),
            token("three", "three-0123456789"),
            user("basic", "bob", HASH, "a") + &user("basic", "cid", HASH, &changes[..1]),
            user("digest", "eve", &digests[1], "a") + &user("digest", "flo", &digests[2], &changes[..1]),
        )
    };
    let gone = token("one", "one-0123456789-one")
        + &user("basic", "ann", HASH, "a")
        + &user("digest", "dan", &digests[0], "a");
    let folder = Folder::with("");
    folder.write("baton.toml", &file(&gone, "two-0123456789-two"));
    let server = folder.serve();
    let bearers = ["one-0123456789-one", "two-0123456789-two", "three-0123456789"]
        .map(|secret| format!("Authorization: {}", bearer(secret)));
    let callers: [(&'static str, &[&str], bool); 9] = [
        ("one", &["-H", &bearers[0]], false),
        ("two", &["-H", &bearers[1]], false),
        ("three", &["-H", &bearers[2]], true),
        ("ann", &["-u", "ann:password"], false),
        ("bob", &["-u", "bob:password"], true),
        ("cid", &["-u", "cid:password"], false),
        ("dan", &["--digest", "-u", "dan:password"], false),
        ("eve", &["--digest", "-u", "eve:password"], true),
        ("flo", &["--digest", "-u", "flo:password"], false),
    ];
    let open = callers.map(|(name, credential, _)| Open::new(&server, name, credential));
    let stays = callers[2].1;
    while working(&server, stays).len() < 2 * callers.len() {}
    let log = reload(&server, &folder, &file("", "changed-0123456789"));
    assert!(!log.contains("needs a restart") && !log.contains("no longer configured"), "{log}");

    let mut left = Vec::new();
    for (open, (_, _, stays)) in open.into_iter().zip(&callers) {
        if *stays {
            left.push(open);
            continue;
        }
        let (name, status, rest) = open.end();
        assert_eq!(status, "401", "{name}");
        assert!(rest.contains("no longer valid"), "{name}: {rest}");
    }
    // Work outlives its caller.
    let tasks = working(&server, stays);
    assert_eq!(tasks.len(), 2 * callers.len());
    for task in tasks {
        called(&server, stays, "CancelTask", &json!({"id": task["id"]}));
    }
    for open in left {
        let (name, status, rest) = open.end();
        assert_eq!(status, "200", "{name}");
        assert!(rest.contains("TASK_STATE_CANCELED"), "{name}: {rest}");
    }
}

/// Whatever stays of the table, whatever the cards require, and also where other machines may reach the server.
#[tokio::test]
async fn s16_who_is_the_last_of_a_scheme_and_is_removed_is_refused_at_once() {
    let public = "listen = \"0.0.0.0:0\"\nstore = \"memory:\"\ntrusted_proxies = [\"192.0.2.1\"]\n";
    let digest = hashed(&["--digest", "ann"], "password");
    let basic = format!("[[auth.basic.user]]\nname = \"ann\"\npassword = '{HASH}'\n");
    let digest = format!("[[auth.digest.user]]\nname = \"ann\"\npassword = '{digest}'\n");
    let key = "[auth.api_key]\nsecret = \"0123456789-for-all\"\n";
    let authorization = format!("Authorization: {}", bearer("one-0123456789-one"));
    let (bearer, one) = (["-H", &authorization], token("one", "one-0123456789-one"));
    let required = "[auth]\nrequire = [\"bearer\"]\n";
    for (head, schemes, remains, credential) in [
        (HEAD, &*one, "", &bearer[..]),
        (HEAD, &one, "[auth.bearer]\n", &bearer),
        (HEAD, &one, required, &bearer),
        (public, &one, "", &bearer),
        (HEAD, &basic, "[auth.basic]\nrealm = \"other\"\n", &["-u", "ann:password"]),
        (public, &basic, "", &["-u", "ann:password"]),
        (HEAD, &digest, "", &["--digest", "-u", "ann:password"]),
        (HEAD, key, "", &["-H", "X-API-Key: 0123456789-for-all"]),
        (HEAD, key, "[auth.api_key]\n", &["-H", "X-API-Key: 0123456789-for-all"]),
        (HEAD, key, "[auth.api_key]\nenabled = false\n", &["-H", "X-API-Key: 0123456789-for-all"]),
        (HEAD, &(one.clone() + &basic), &basic, &bearer),
    ] {
        let folder = Folder::with("");
        let with = format!("{head}{}{schemes}", if remains == required { required } else { "" });
        folder.write("baton.toml", &with);
        let server = folder.serve();
        assert_eq!(curl(&server, credential), "200", "{with}");
        let card = server.card().await;
        let open = Open::new(&server, "one", credential);
        let log = reload(&server, &folder, &format!("{head}{remains}"));
        let is_empty = remains == "[auth.api_key]\n";
        assert_eq!(log.contains("no longer configured"), !is_empty, "{log}");
        assert_eq!(curl(&server, credential), "401", "{remains}");
        assert_eq!(list(&server, &[]).await, 401, "{remains}: nobody else gets in");
        assert_eq!(server.card().await["securitySchemes"], card["securitySchemes"]);
        let (_, status, rest) = open.end();
        assert_eq!((&*status, rest.contains("no longer valid")), ("401", true), "{remains}: {rest}");
        // Once more changes nothing, and who comes back is let in.
        let said =
            reload(&server, &folder, &format!("{head}{remains}")).matches("no longer configured").count();
        assert_eq!((said, &*curl(&server, credential)), (usize::from(!is_empty), "401"), "{remains}");
        reload(&server, &folder, &with);
        assert_eq!(curl(&server, credential), "200", "{remains}");
    }
}

/// What cards say of it waits for a restart; who gets in does not.
#[tokio::test]
async fn s16_a_scheme_that_is_renamed_or_moved_follows_its_list_at_once() {
    let folder = Folder::with(&(token("one", "one-0123456789-one") + &token("two", "two-0123456789-two")));
    let server = folder.serve();
    let [one, two] = ["one-0123456789-one", "two-0123456789-two"].map(bearer);
    let open = Open::new(&server, "two", &["-H", &format!("Authorization: {two}")]);
    let renamed = format!("{HEAD}[auth.bearer]\nid = \"tokens\"\n{}", token("two", "two-0123456789-two"));
    let log = reload(&server, &folder, &renamed);
    assert!(log.contains("declare these schemes as before"), "{log}");
    assert_eq!(list(&server, &[("authorization", &one)]).await, 401);
    assert_eq!(list(&server, &[("authorization", &two)]).await, 200);
    assert!(server.card().await["securitySchemes"]["bearer"].is_object());
    for task in working(&server, &["-H", &format!("Authorization: {two}")]) {
        called(&server, &["-H", &format!("Authorization: {two}")], "CancelTask", &json!({"id": task["id"]}));
    }
    assert!(open.end().2.contains("CANCELED"), "the renamed scheme ends nothing");

    let key = |secret: &str, name: &str| {
        format!("{HEAD}[auth.api_key]\nsecret = \"{secret}\"\nname = \"{name}\"\n")
    };
    folder.write("baton.toml", &key("first-0123456789", "X-One"));
    let server = folder.serve();
    let log = reload(&server, &folder, &key("second-0123456789", "X-Two"));
    assert!(log.contains("applied=\"auth.api_key.secret\""), "{log}");
    server.log_with("keys=\"auth.api_key.name\"");
    assert_eq!(list(&server, &[("x-one", "first-0123456789")]).await, 401);
    assert_eq!(list(&server, &[("x-one", "second-0123456789")]).await, 200);
    assert_eq!(list(&server, &[("x-two", "second-0123456789")]).await, 401);
    // Back to where it was: the list is followed again.
    reload(&server, &folder, &key("first-0123456789", "X-One"));
    assert_eq!(list(&server, &[("x-one", "first-0123456789")]).await, 200);
    assert_eq!(list(&server, &[("x-one", "second-0123456789")]).await, 401);
}
