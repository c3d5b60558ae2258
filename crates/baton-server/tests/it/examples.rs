use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use baton_protocol::wire::sse::SseParser;
use serde_json::{Value, json};

use crate::harness::{TEST_TIMEOUT, id, message, message_to, state};

/// A running example program.
struct Example {
    child: Child,
    url: String,
    http: reqwest::Client,
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Cargo builds examples together with the tests, in a folder next to them.
fn program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().and_then(|deps| deps.parent()).unwrap();
    let program = built.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(program.exists(), "{} is not built; `cargo build --examples` does it", program.display());
    program
}

impl Example {
    /// Starts it at a free port and waits until it answers.
    async fn start(name: &str) -> Self {
        let http = reqwest::Client::new();
        let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
        loop {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let address = format!("127.0.0.1:{port}");
            let child = Command::new(program(name)).arg(&address).stdin(Stdio::null()).spawn().unwrap();
            let mut example = Example { child, url: format!("http://{address}"), http: http.clone() };
            // Another process may have taken the port in between: then the program ends, and another port is tried.
            while example.child.try_wait().unwrap().is_none() {
                assert!(tokio::time::Instant::now() < give_up, "{name} does not answer");
                if http.get(&example.url).send().await.is_ok() {
                    return example;
                }
            }
            assert!(tokio::time::Instant::now() < give_up, "{name} does not start");
        }
    }

    async fn post(&self, path: &str, method: &str, params: Value) -> reqwest::Response {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let request = self.http.post(format!("{}{path}", self.url)).body(body);
        let request = request.header("content-type", "application/json").header("a2a-version", "1.0");
        tokio::time::timeout(TEST_TIMEOUT, request.send()).await.expect("an answer came").unwrap()
    }

    async fn call(&self, path: &str, method: &str, params: Value) -> Value {
        let answer: Value =
            serde_json::from_str(&self.post(path, method, params).await.text().await.unwrap()).unwrap();
        answer.get("result").unwrap_or_else(|| panic!("an error: {answer}")).clone()
    }

    async fn send(&self, params: Value) -> Value {
        self.call("/", "SendMessage", params).await["task"].clone()
    }

    async fn card(&self, path: &str) -> Value {
        let url = format!("{}{path}/.well-known/agent-card.json", self.url);
        self.http.get(url).send().await.unwrap().json().await.unwrap()
    }
}

fn status_text(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn p08_hello_greets() {
    let hello = Example::start("hello").await;
    let task = hello.send(message("Baton")).await;
    assert_eq!(state(&task), "COMPLETED");
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "Hello, Baton!");
}

#[tokio::test]
async fn p08_a_server_in_three_files_works_asks_fails_and_answers() {
    let dice = Example::start("three_files").await;
    let card = dice.card("").await;
    assert_eq!(card["name"], "Dice");
    assert_eq!(card["supportedInterfaces"][0]["url"], format!("{}/", dice.url));

    let task = dice.send(message("Roll 3d6, please")).await;
    assert_eq!(state(&task), "COMPLETED");
    let rolls = task["artifacts"][0]["parts"][0]["data"].as_array().unwrap();
    assert!(rolls.len() == 3 && rolls.iter().all(|roll| (1..=6).contains(&roll.as_u64().unwrap())), "{task}");
    let sum: u64 = rolls.iter().map(|roll| roll.as_u64().unwrap()).sum();
    assert_eq!(status_text(&task), format!("You rolled {sum}"));

    let asked = dice.send(message("some dice")).await;
    assert_eq!(state(&asked), "INPUT_REQUIRED");
    assert!(status_text(&asked).starts_with("Which dice?"));
    let answered = dice.send(message_to(&asked, "1d20")).await;
    assert_eq!((state(&answered), id(&answered)), ("COMPLETED", id(&asked)));

    let failed = dice.send(message("Roll 1000d6")).await;
    assert_eq!((state(&failed), status_text(&failed)), ("FAILED", "I have 100 dice, with 2 to 1000 sides"));

    let explained = dice.call("/", "SendMessage", message("What does 2d6 mean?")).await;
    assert!(explained["message"]["parts"][0]["text"].as_str().unwrap().starts_with("2d6 are"), "{explained}");
}

#[tokio::test]
async fn p08_ask_takes_answers_in_one_turn() {
    let booking = Example::start("ask").await;
    let task = booking.send(message("A trip")).await;
    assert_eq!((state(&task), status_text(&task)), ("INPUT_REQUIRED", "Where do you want to go?"));
    let task = booking.send(message_to(&task, "Oslo")).await;
    assert!(status_text(&task).contains("go to Oslo"), "{task}");
    let task = booking.send(message_to(&task, "many")).await;
    assert_eq!((state(&task), status_text(&task)), ("INPUT_REQUIRED", "That is no number. How many?"));
    let task = booking.send(message_to(&task, " 3 ")).await;
    assert_eq!((state(&task), status_text(&task)), ("COMPLETED", "Have a good trip!"));
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "3 to Oslo");
}

#[tokio::test]
async fn p08_stream_shows_text_as_it_comes() {
    let poet = Example::start("stream").await;
    let mut response = poet.post("/", "SendStreamingMessage", message("Rust")).await;
    let mut parser = SseParser::new(1 << 20);
    let (mut chunks, mut last) = (Vec::new(), Value::Null);
    while let Some(bytes) = tokio::time::timeout(TEST_TIMEOUT, response.chunk()).await.unwrap().unwrap() {
        parser.feed(&bytes).unwrap();
        while let Some(event) = parser.next_event() {
            last = serde_json::from_str::<Value>(&event.data).unwrap()["result"].clone();
            if let Some(text) = last["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str() {
                chunks.push(text.to_owned());
            }
        }
    }
    assert_eq!(last["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(chunks.len() > 2, "all at once: {chunks:?}");
    assert_eq!(chunks.concat(), "Roses are red, violets are blue, Rust is fine, and so are you.");
}

#[tokio::test]
async fn p08_mounted_stands_next_to_other_routes() {
    let app = Example::start("mounted").await;
    let own = app.http.get(&app.url).send().await.unwrap().text().await.unwrap();
    assert_eq!(own, "My own page\n");
    let card = app.card("/agents/counter").await;
    assert_eq!(card["supportedInterfaces"][0]["url"], format!("{}/agents/counter", app.url));
    let counted = app.call("/agents/counter", "SendMessage", message("0")).await;
    assert_eq!((state(&counted["task"]), status_text(&counted["task"])), ("COMPLETED", "0 seconds"));
}

/// A stream that would last for an hour does not keep the application from stopping.
#[cfg(unix)]
#[tokio::test]
async fn p08_mounted_stops_at_ctrl_c_with_a_stream_open() {
    let mut app = Example::start("mounted").await;
    let mut stream = app.post("/agents/counter", "SendStreamingMessage", message("3600")).await;
    stream.chunk().await.unwrap().expect("it has begun");
    let pid = app.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    // One timeout for the whole stream: an open stream sends keep-alive comments, so a timeout per read would not end.
    let rest = tokio::time::timeout(TEST_TIMEOUT, stream.text()).await.expect("the stream ends").unwrap();
    assert!(rest.contains("the server is stopping"), "{rest}");
    let ended = tokio::task::spawn_blocking(move || app.child.wait().unwrap());
    let status = tokio::time::timeout(TEST_TIMEOUT, ended).await.expect("the application ends").unwrap();
    assert!(status.success(), "{status}");
}
