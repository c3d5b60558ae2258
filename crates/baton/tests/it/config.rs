//! `baton serve config` and `baton serve --config`: what a file says is what is served.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::served::{MASTER_KEY, Served, baton, finished, text};

const DEFAULT_FILE: &str = include_str!("../../config.default.toml");

/// Stdout of a command that must succeed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

/// A folder with a `baton.toml`, and commands run in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("baton.toml"), text).unwrap();
        Folder(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn baton(&self, args: &[&str]) -> Command {
        let mut command = baton(args);
        command.current_dir(self.0.path());
        command
    }
}

async fn card(url: &str) -> Value {
    reqwest::get(format!("{url}/.well-known/agent-card.json")).await.unwrap().json().await.unwrap()
}

#[test]
fn the_default_file_is_printed_and_passes_its_own_check() {
    let folder = Folder::with("");
    assert_eq!(output(&mut folder.baton(&["serve", "config", "default"])), DEFAULT_FILE);
    fs::write(folder.path("baton.toml"), DEFAULT_FILE).unwrap();
    let said = output(&mut folder.baton(&["serve", "config", "check"]));
    assert_eq!(
        said,
        "ok: baton.toml\n  agent  default at /: the demo agent\n  store  sqlite:./baton-data/demo.db\n  \
         callers  anybody, unless the store has keys\n"
    );
}

/// A card file may list gRPC, if that is switched on: the file that explains the settings says so, and it is true.
#[cfg(feature = "grpc")]
#[test]
fn p03_a_card_file_with_grpc_needs_grpc_to_be_switched_on() {
    assert!(DEFAULT_FILE.contains("an interface of gRPC needs `grpc = true`"), "{DEFAULT_FILE}");
    let folder = Folder::with("card = \"card.json\"\n");
    let interface = |binding: &str| json!({"url": "https://a.example", "protocolBinding": binding, "protocolVersion": "1.0"});
    let card = json!({
        "name": "Some", "description": "d", "version": "1",
        "supportedInterfaces": [interface("JSONRPC"), interface("GRPC")],
        "skills": [{"id": "s", "name": "s", "description": "s", "tags": []}],
    });
    fs::write(folder.path("card.json"), card.to_string()).unwrap();
    let check = |more: &[&str]| {
        finished(&mut folder.baton(&[&["serve", "config", "check", "--exec", "cat"], more].concat()))
    };
    let (code, said) = check(&[]);
    assert!(code == Some(2) && said.contains("grpc = true"), "{said}");
    assert_eq!(check(&["--grpc"]).0, Some(0));
}

/// What `serve` refuses later than at the reading of the file is refused by the check, too, and nothing is made on the way.
#[cfg(unix)]
#[test]
fn a_socket_that_serve_would_refuse_fails_the_check() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::with("listen = \"127.0.0.1:0\"\nstore = \"memory:\"\n");
    let mode = |name: &str, mode| {
        fs::create_dir(folder.path(name)).unwrap();
        fs::set_permissions(folder.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("open", 0o755);
    mode("own", 0o700);
    fs::write(folder.path("own/file"), "mine").unwrap();
    std::os::unix::fs::symlink(folder.path("own"), folder.path("link")).unwrap();
    let with = |args: &[&str], socket: &str| {
        let text = format!("listen = \"127.0.0.1:0\"\nstore = \"memory:\"\n[admin]\nsocket = \"{socket}\"\n");
        fs::write(folder.path("baton.toml"), text).unwrap();
        finished(&mut folder.baton(args))
    };
    let long = format!("own/{}", "s".repeat(200));
    for (socket, words) in [
        ("open/x", "chmod 700"),
        ("own/file", "is there and is not a socket"),
        ("link/x", "a link, not a folder"),
        ("own/file/x", "own/file"),
        (&long, "set admin.socket to a shorter one"),
    ] {
        let (code, said) = with(&["serve", "config", "check"], socket);
        assert!(code == Some(2) && said.contains("admin.socket") && said.contains(words), "{said}");
        assert!(said.contains("baton.toml, line 4"), "{said}");
        let (code, said) = with(&["serve"], socket);
        assert!(code != Some(0) && said.contains("admin.socket"), "{said}");
    }
    for socket in ["own/x", "new/folder/x", "off"] {
        let (code, said) = with(&["serve", "config", "check"], socket);
        assert_eq!(code, Some(0), "{said}");
    }
    assert!(!folder.path("new").exists() && !folder.path("own/x").exists());
}

#[test]
fn show_tells_the_source_of_each_value_and_hides_secrets() {
    let folder =
        Folder::with("listen = \"127.0.0.1:8080\"\n[traces]\notlp = \"http://me:canary-1@127.0.0.1:4318\"\n");
    let show = |more: &[&str]| {
        let args = [&["serve", "config", "show", "--public-url", "https://a.example"], more].concat();
        let mut command = folder.baton(&args);
        command.env("BATON_LIMITS_MAX_BODY", "1MiB").env("BATON_MASTER_KEY", MASTER_KEY);
        output(&mut command)
    };
    let shown = show(&[]);
    for (value, source) in [
        ("listen = \"127.0.0.1:8080\"", "baton.toml line 1"),
        ("public_url = \"https://a.example\"", "--public-url"),
        ("max_body = \"1MiB\"", "BATON_LIMITS_MAX_BODY"),
        ("drain = \"30s\"", "default"),
        ("master_key = \"***\"", "BATON_MASTER_KEY"),
        ("otlp = \"http://***@127.0.0.1:4318\"", "baton.toml line 3"),
    ] {
        let line = shown.lines().find(|line| line.starts_with(value));
        let line = line.unwrap_or_else(|| panic!("no {value} in\n{shown}"));
        assert!(line.ends_with(&format!("# {source}")), "{line}");
    }
    let json: Value = serde_json::from_str(&show(&["--format", "json"])).unwrap();
    assert_eq!(json["limits"]["max_body"], json!({"value": "1MiB", "source": "BATON_LIMITS_MAX_BODY"}));
    assert!(show(&["--all"]).contains("#icon_url ="));
    for seen in [shown, json.to_string(), show(&["--all"])] {
        assert!(!seen.contains("canary") && !seen.contains(MASTER_KEY), "{seen}");
    }
}

/// A usage error exits with code 2 before anything is opened.
#[test]
fn a_broken_file_stops_everything_before_it_begins() {
    let folder = Folder::with("[limits]\nmax_bdy = \"4MiB\"\n\n[log]\nformat = \"xml\"\n");
    for args in [&["serve", "config", "check"][..], &["serve", "config", "show"], &["serve"], &[]] {
        let (code, said) = finished(&mut folder.baton(args));
        assert_eq!(code, Some(2), "{said}");
        assert_eq!(
            said,
            "error: 2 problems with the configuration\n  \
             baton.toml, line 2: limits.max_bdy: unknown key; did you mean `max_body`?\n  \
             baton.toml, line 5: log.format: expected \"text\" or \"json\", not \"xml\"\n"
        );
    }
    assert!(!folder.path("baton-data").exists(), "a store was made");
}

#[test]
fn a_file_that_is_not_there_is_told_by_who_named_it() {
    let folder = Folder::with("");
    for (mut command, name) in [
        (folder.baton(&["serve", "config", "check", "--config", "gone.toml"]), "--config"),
        (folder.baton(&["serve", "config", "check"]), "BATON_CONFIG"),
    ] {
        if name == "BATON_CONFIG" {
            command.env(name, "gone.toml");
        }
        let (code, said) = finished(&mut command);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.starts_with(&format!("error: {name}: gone.toml: ")), "{said}");
    }
    fs::write(folder.path("big.toml"), vec![b'#'; 2 << 20]).unwrap();
    let (code, said) = finished(&mut folder.baton(&["serve", "config", "check", "--config", "big.toml"]));
    assert!(code == Some(2) && said.contains("more than 1048576 bytes"), "{said}");
    fs::write(folder.path("latin.toml"), b"# fine\n# caf\xe9\n").unwrap();
    let (code, said) = finished(&mut folder.baton(&["serve", "config", "check", "--config", "latin.toml"]));
    assert!(code == Some(2) && said.contains("line 2: not UTF-8"), "{said}");
}

#[test]
fn a_misspelt_variable_is_warned_of() {
    let folder = Folder::with("");
    let output = folder.baton(&["serve", "config", "check"]).env("BATON_LISTNE", "x").output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "warning: BATON_LISTNE: unknown variable, not used; did you mean `BATON_LISTEN`?\n");

    let args = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:"];
    let server = Served::of(folder.baton(&args).env("BATON_LISTNE", "x"));
    server.log_with("did you mean `BATON_LISTEN`?");
}

/// The files in `examples` must be valid.
#[test]
fn the_examples_are_right() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut checked = 0;
    let mut folders = vec![examples];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                let checks =
                    output(&mut baton(&["serve", "config", "check", "--config", path.to_str().unwrap()]));
                assert!(checks.starts_with(&format!("ok: {}\n  agent  ", path.display())), "{checks}");
                checked += 1;
            }
        }
    }
    assert!(checked >= 2, "{checked} examples");
}

#[tokio::test]
async fn an_agent_of_a_file_is_served() {
    let folder = Folder::with(
        "listen = \"127.0.0.1:0\"\nstore = \"sqlite:kept/tasks.db\"\n\
         [card]\nname = \"Parrot\"\ndescription = \"Says it again\"\nversion = \"3.1\"\n\
         provider = \"Birds\"\nprovider_url = \"https://birds.example\"\nstreaming = false\n\
         [[skill]]\nid = \"later\"\nbuiltin = \"demo\"\n\
         [[skill]]\nid = \"again\"\nname = \"Say it again\"\ntags = [\"echo\"]\nexamples = [\"Hello\"]\n\
         default = true\nbuiltin = \"echo\"\nreplies = \"message\"\n",
    );
    let server = Served::of(&mut folder.baton(&[]));
    assert!(server.welcome.contains("Parrot") && server.line("config") == "baton.toml", "{}", server.welcome);
    let card = card(&server.url).await;
    assert_eq!((&card["name"], &card["version"]), (&json!("Parrot"), &json!("3.1")));
    assert_eq!(card["provider"], json!({"organization": "Birds", "url": "https://birds.example"}));
    assert_eq!(card["capabilities"]["streaming"], false);
    let ids: Vec<_> = card["skills"].as_array().unwrap().iter().map(|skill| skill["id"].clone()).collect();
    assert_eq!(ids, ["later", "again"], "as written");
    assert_eq!(card["skills"][1]["examples"], json!(["Hello"]));
    assert_eq!(card["skills"][0]["tags"], json!(["later"]));

    // The default skill answers, with a message.
    let reply = server.call("SendMessage", json!({"message": text("m-1", "hello")})).await;
    assert_eq!(reply["message"]["parts"][0]["text"], "hello");
    let mut named = text("m-2", "hello");
    named["metadata"] = json!({"skillId": "later"});
    assert_eq!(server.send(named).await["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(folder.path("kept/tasks.db").is_file());
}

#[tokio::test]
async fn several_agents_are_served_each_in_its_place() {
    let agent = |id: &str, place: &str, more: &str| {
        format!(
            "[[agent]]\nid = \"{id}\"\n{place}\n{more}[[agent.skill]]\nid = \"{id}\"\nbuiltin = \"echo\"\n"
        )
    };
    let file = [
        "listen = \"127.0.0.1:0\"\nstore = \"memory:\"\n".to_owned(),
        agent("first", "", "[agent.card]\nname = \"One\"\ndescription = \"d\"\n"),
        agent("second", "path = \"/deep/two\"", "[agent.limits]\nmax_body = \"2KiB\"\n"),
        agent("third", "tenant = \"acme\"", ""),
    ];
    let folder = Folder::with(&file.concat());
    let server = Served::of(&mut folder.baton(&["serve"]));
    assert!(server.welcome.contains("3 agents"), "{}", server.welcome);
    for (path, name) in [("/first", "One"), ("/deep/two", "second"), ("/acme", "third")] {
        let card = card(&format!("{}{path}", server.url)).await;
        assert_eq!(card["name"], name);
        let served = server.at(path);
        let task = served.send(text(&format!("m{path}"), "hello")).await;
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], "hello", "{name}");
        let long = served.post("SendMessage", json!({"message": text("long", &"x".repeat(4000))})).await;
        assert_eq!(long.status() == 413, name == "second", "only this one has a small limit");
    }
}

/// Programs run in the file's folder, with the configured environment.
#[tokio::test]
async fn a_program_of_a_file_is_at_home_there() {
    let folder = Folder::with("");
    fs::create_dir_all(folder.path("conf/sub")).unwrap();
    fs::write(folder.path("conf/here.txt"), "in conf").unwrap();
    fs::write(folder.path("conf/sub/here.txt"), "in sub").unwrap();
    let skill = |id: &str, more: &str| {
        format!(
            "[[agent]]\nid = \"{id}\"\n[[agent.skill]]\nid = \"{id}\"\nexec = \"cat; cat here.txt; echo $NAME\"\n{more}"
        )
    };
    let file = [
        "listen = \"127.0.0.1:0\"\nstore = \"memory:\"\n",
        &skill("plain", ""),
        &skill("sub", "directory = \"sub\"\nenvironment = { NAME = \", named\" }\n"),
        &skill("message", "replies = \"message\"\n"),
    ];
    fs::write(folder.path("conf/agents.toml"), file.concat()).unwrap();
    let server = Served::of(&mut folder.baton(&["serve", "--config", "conf/agents.toml"]));
    for (agent, expected) in [("plain", "hello in conf\n"), ("sub", "hello in sub, named\n")] {
        let task = server.at(&format!("/{agent}")).send(text(agent, "hello ")).await;
        let parts = task["artifacts"][0]["parts"].as_array().unwrap();
        let said: String = parts.iter().map(|part| part["text"].as_str().unwrap()).collect();
        assert_eq!(said, expected, "{task}");
    }
    let answer = server.at("/message").post("SendMessage", json!({"message": text("m", "hello ")})).await;
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(answer["result"]["message"]["parts"][0]["text"], "hello in conf", "{answer}");
}

/// Allowed hosts, CORS origins and timeouts take effect: a page of another site is refused unless the file allows it.
#[tokio::test]
async fn the_doors_rules_come_from_the_file() {
    let folder = Folder::with(
        "listen = \"127.0.0.1:0\"\nstore = \"memory:\"\nallowed_hosts = [\"agents.example\"]\n\
         [cors]\norigins = [\"https://app.example\"]\n[connections]\nmax_head = \"8KiB\"\n",
    );
    let server = Served::of(&mut folder.baton(&["serve"]));
    let client = reqwest::Client::new();
    let ask = |header: &'static str, value: String| {
        let request =
            client.get(format!("{}/tasks", server.url)).header("A2A-Version", "1.0").header(header, value);
        async move { request.send().await.unwrap() }
    };
    assert_eq!(ask("host", "agents.example".to_owned()).await.status(), 200);
    assert_eq!(ask("host", "evil.example".to_owned()).await.status(), 421);
    let allowed = ask("origin", "https://app.example".to_owned()).await;
    assert_eq!(allowed.status(), 200);
    assert_eq!(allowed.headers()["access-control-allow-origin"], "https://app.example");
    assert_eq!(ask("origin", "https://evil.example".to_owned()).await.status(), 403);
    assert_eq!(ask("x-long", "x".repeat(10_000)).await.status(), 431);
}

/// With the JSON format, the log is one object per line with separate fields.
#[test]
fn the_log_can_be_json() {
    let folder = Folder::with("listen = \"127.0.0.1:0\"\nstore = \"memory:\"\n[log]\nformat = \"json\"\n");
    let server = Served::of(&mut folder.baton(&["serve"]));
    let log = server.log_with("listening");
    let listening = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let listening: Vec<_> = listening.filter(|line| line["message"] == "listening").collect();
    assert_eq!(listening.len(), 1, "{log}");
    assert_eq!(listening[0]["store"], "memory:");
}

/// A skill without logic, or logic without a skill, is reported with file and line.
#[test]
fn s03_the_card_and_the_skills_must_agree() {
    let folder = Folder::with(
        "card = \"card.json\"\n[[skill]]\nid = \"a\"\nbuiltin = \"echo\"\n[[skill]]\nid = \"b\"\nbuiltin = \"echo\"\n",
    );
    let card = |skills: &[&str]| {
        let skill =
            |id: &&str| format!("{{\"id\":\"{id}\",\"name\":\"n\",\"description\":\"d\",\"tags\":[]}}");
        let skills: Vec<_> = skills.iter().map(skill).collect();
        let head = "{\"name\":\"N\",\"description\":\"d\",\"version\":\"1\",\"supportedInterfaces\":[],\n\
            \"capabilities\":{},\"defaultInputModes\":[],\"defaultOutputModes\":[],\n\"skills\":[\n";
        fs::write(folder.path("card.json"), format!("{head}{}\n]}}", skills.join(",\n"))).unwrap();
        finished(&mut folder.baton(&["serve", "config", "check"]))
    };
    assert_eq!(card(&["a", "b"]), (Some(0), String::new()));
    assert_eq!(card(&[]), (Some(0), String::new()), "without a list, the skills are put on the card");
    let (code, said) = card(&["a", "c"]);
    assert_eq!(code, Some(2));
    assert_eq!(
        said,
        "error: 2 problems with the configuration\n  \
         card.json, line 5: skills: `c` is on the card, but no [[skill]] is behind it\n  \
         baton.toml, line 6: skill.id: `b` is not on the card, which lists `a`, `c`\n"
    );
    // With whatever else is wrong, at once.
    let text = fs::read_to_string(folder.path("card.json")).unwrap();
    let text = text.replace("\"capabilities\":{}", "\"capabilities\":{\"pushNotifications\":true}");
    fs::write(folder.path("card.json"), text).unwrap();
    let (_, said) = finished(folder.baton(&["serve", "config", "check"]).env("BATON_PUSH_ENABLED", "false"));
    let named =
        ["line 2: capabilities.pushNotifications: true", "line 5: skills: `c`", "line 6: skill.id: `b`"];
    assert!(said.starts_with("error: 3 problems") && named.iter().all(|it| said.contains(it)), "{said}");
    fs::write(folder.path("card.json"), "{").unwrap();
    let (code, said) = finished(&mut folder.baton(&["serve", "config", "check"]));
    assert!(code == Some(2) && said.starts_with("error: card.json: "), "{said}");

    // Said in two places, one of them would be ignored.
    fs::write(
        folder.path("baton.toml"),
        "card = \"card.json\"\n[[skill]]\nid = \"a\"\nbuiltin = \"echo\"\nname = \"A\"\n",
    )
    .unwrap();
    let (_, said) = card(&["a"]);
    assert_eq!(
        said,
        "error: baton.toml, line 5: skill.name: the card's file lists the skills; write it there\n"
    );
}

/// Paths that the protocol needs, and unsupported features in a card, are refused with the line.
#[test]
fn s03_what_the_server_would_refuse_is_told_with_its_line() {
    let folder = Folder::with(
        "[[agent]]\nid = \"a\"\npath = \"/v1\"\n[[agent.skill]]\nid = \"s\"\nbuiltin = \"echo\"\n",
    );
    let (code, said) = finished(&mut folder.baton(&["serve", "config", "check"]));
    assert!(
        code == Some(2) && said.starts_with("error: baton.toml, line 3: agent `a`: path `/v1`"),
        "{said}"
    );
}

#[test]
fn the_demo_agents_profile_is_not_for_other_agents() {
    let folder = Folder::with("[[skill]]\nid = \"a\"\nbuiltin = \"echo\"\n");
    let (code, said) = finished(&mut folder.baton(&["serve", "config", "check", "--profile", "minimal"]));
    assert!(code == Some(2) && said.starts_with("error: --profile: only for the demo agent"), "{said}");
}

/// The addresses in a card file are replaced by the server's own. Every flag and key for a card accepts such a file.
#[tokio::test]
async fn p08_a_card_file_need_not_say_where_its_agent_listens() {
    let example =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../baton-server/examples/three_files/card.json");
    let folder = Folder::with(&format!(
        "card = {:?}\n[[skill]]\nid = \"roll\"\nbuiltin = \"echo\"\n[[skill]]\nid = \"explain\"\nbuiltin = \"echo\"\n",
        example.display().to_string()
    ));
    assert!(output(&mut folder.baton(&["serve", "config", "check"])).starts_with("ok"));
    let folder = Folder::with("");
    let one = r#"{"name": "Loud", "description": "d", "version": "7",
                  "skills": [{"id": "s", "name": "s", "description": "s", "tags": []}]}"#;
    let older = r#"{"name": "Loud", "description": "d", "version": "7", "protocolVersion": "0.3.0",
                    "skills": [{"id": "s", "name": "s", "description": "s", "tags": []}]}"#;
    for text in [one, older] {
        fs::write(folder.path("card.json"), text).unwrap();
        let args = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--exec", "cat"];
        let server = Served::of(&mut folder.baton(&[&args[..], &["--card", "card.json"]].concat()));
        let card = card(&server.url).await;
        assert_eq!((&card["name"], &card["version"]), (&json!("Loud"), &json!("7")));
        assert_eq!(card["supportedInterfaces"].as_array().unwrap().len(), 4, "all generations are on");
    }
    fs::write(folder.path("card.json"), r#"{"name": "Loud"}"#).unwrap();
    let (code, said) = finished(&mut folder.baton(&["serve", "--exec", "cat", "--card", "card.json"]));
    assert_eq!(code, Some(2));
    assert!(said.contains("description is required") && !said.contains("Invalid response"), "{said}");
}

/// A card file has to declare webhooks, which is easily forgotten.
#[test]
fn s14_whoever_switches_webhooks_on_is_warned_of_a_card_that_does_not_declare_them() {
    let folder = Folder::with("card = \"card.json\"\n[[skill]]\nid = \"s\"\nbuiltin = \"echo\"\n");
    let warnings = |capabilities: &str, enabled: &str| {
        let card = format!(
            "{{\"name\":\"N\",\"description\":\"d\",\"version\":\"1\",\n\"capabilities\":{{{capabilities}}}}}"
        );
        fs::write(folder.path("card.json"), card).unwrap();
        let mut check = folder.baton(&["serve", "config", "check"]);
        let (code, said) = finished(check.env("BATON_PUSH_ENABLED", enabled));
        assert_eq!(code, Some(0), "{said}");
        said
    };
    assert_eq!(
        warnings("", "true"),
        "warning: card.json, line 2: `push.enabled` is on, but this card does not declare webhooks: add \
         `\"pushNotifications\": true` to its `capabilities`, or `\"pushNotifications\": false` if that is meant\n"
    );
    for (capabilities, enabled) in [
        ("", ""),
        ("", "false"),
        ("\"pushNotifications\":true", "true"),
        ("\"pushNotifications\":false", "true"),
    ] {
        assert_eq!(warnings(capabilities, enabled), "", "{capabilities} {enabled}");
    }
}

/// A card that names some versions switches the others off, and the server says so at start.
#[tokio::test]
async fn s03_the_card_decides_which_generations_are_served() {
    let folder = Folder::with("");
    let write = |versions: &[&str]| {
        let interface = |version: &&str| json!({"url": "https://a.example", "protocolBinding": "JSONRPC", "protocolVersion": version});
        let card = json!({
            "name": "Some", "description": "d", "version": "1",
            "supportedInterfaces": versions.iter().map(interface).collect::<Vec<_>>(),
            "skills": [{"id": "s", "name": "s", "description": "s", "tags": []}],
        });
        fs::write(folder.path("card.json"), card.to_string()).unwrap();
    };
    let args =
        ["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--exec", "cat", "--card", "card.json"];
    write(&["1.0"]);
    let server = Served::of(&mut folder.baton(&args));
    server.log_with("protocol 0.3 and 0.1 switched off");
    assert!(server.welcome.contains("1.0 (the card switches 0.3 and 0.1 off)"), "{}", server.welcome);
    assert_eq!(server.send(text("m-1", "hello")).await["status"]["state"], "TASK_STATE_COMPLETED");
    // Of several agents, the one is named.
    fs::write(folder.path("several.toml"), "[[agent]]\nid = \"a\"\npath = \"/a\"\ncard = \"card.json\"\n[[agent.skill]]\nid = \"s\"\nbuiltin = \"echo\"\n[[agent]]\nid = \"b\"\npath = \"/b\"\n[agent.card]\nname = \"All\"\ndescription = \"d\"\n[[agent.skill]]\nid = \"s\"\nbuiltin = \"echo\"\n").unwrap();
    let several = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--config", "several.toml"];
    let server = Served::of(&mut folder.baton(&several));
    let told: Vec<_> = server.welcome.lines().filter(|line| line.contains("protocol")).collect();
    assert_eq!(told, ["  protocol   1.0 for Some (its card switches 0.3 and 0.1 off)"]);
    write(&["1.0", "7.0"]);
    let (code, said) = finished(&mut folder.baton(&args));
    assert!(code == Some(2) && said.contains("protocolVersion \"7.0\""), "{code:?} {said}");
}
