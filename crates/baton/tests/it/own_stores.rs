use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::served::{Served, baton, text};

const AGENTS: &str = "[[skill]]\nid = \"echo\"\nbuiltin = \"echo\"\n[card]\nname = \"Echo\"\ndescription = \"Says it again\"\n";

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = baton(&[&["serve", "--listen", "127.0.0.1:0"], args].concat());
    command.current_dir(folder);
    command
}

fn serve(folder: &Path, args: &[&str]) -> Served {
    Served::of(&mut command(folder, args))
}

async fn tasks(server: &Served) -> Vec<Value> {
    server.call("ListTasks", json!({})).await["tasks"].as_array().unwrap().clone()
}

/// What is said to be the answer, and whether it was one before.
async fn said(server: &Served, id: &str) -> String {
    let task = server.send(text(id, "Word")).await;
    task["artifacts"][0]["parts"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_is_served_from_one_folder_has_tasks_of_its_own() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("echo.toml"), AGENTS).unwrap();
    let things: [(&[&str], &str); 4] = [
        (&[], "Word"),
        (&["--exec", "tr a-z A-Z"], "WORD"),
        (&["--exec", "tr A-Z a-z"], "word"),
        (&["--config", "echo.toml"], "Word"),
    ];
    let mut stores = Vec::new();
    // Twice: what a thing has, it finds again.
    for round in 1..=2 {
        for (args, answer) in things {
            let server = serve(folder.path(), args);
            assert_eq!(said(&server, "the same id").await, answer, "{args:?}");
            assert_eq!(said(&server, &format!("round {round}")).await, answer, "{args:?}");
            assert_eq!(tasks(&server).await.len(), 1 + round, "{args:?}: its own and no others");
            stores.push(server.line("store").to_owned());
            assert!(server.terminate().success());
        }
    }
    assert_eq!(stores[..4], stores[4..]);
    assert_eq!(stores[0], "sqlite:./baton-data/demo.db");
    assert_eq!(stores[3], "sqlite:./baton-data/echo.toml.db");
    assert_ne!(stores[1], stores[2]);
}

#[tokio::test]
async fn in_a_store_that_somebody_chose_programs_and_the_demo_agent_stay_apart() {
    let folder = TempDir::new().unwrap();
    let store = ["--store", "sqlite:all.db"];
    for (exec, answer) in
        [(&[][..], "Word"), (&["--exec", "tr a-z A-Z"], "WORD"), (&["--exec", "cat"], "Word")]
    {
        let server = serve(folder.path(), &[&store[..], exec].concat());
        assert_eq!(said(&server, "the same id").await, answer, "{exec:?}");
        assert_eq!(tasks(&server).await.len(), 1, "{exec:?}");
        assert!(server.terminate().success());
    }
    // The arguments of a program may change, and a reload does not lose it.
    let server = serve(folder.path(), &[&store[..], &["--exec", "cat -"]].concat());
    assert_eq!(tasks(&server).await.len(), 1);
    server.signal("-HUP");
    assert!(!server.log_with("configuration reloaded").contains("needs a restart"));
}

#[tokio::test]
async fn an_old_file_with_everybodys_tasks_stays_in_use_and_the_start_says_so() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("baton-data/demo.db");
    let old = serve(folder.path(), &[]);
    let task = old.send(text("old", "kept")).await;
    assert!(old.terminate().success());
    // As versions before this one left it.
    let file = rusqlite::Connection::open(&path).unwrap();
    assert_eq!(file.execute("DELETE FROM meta WHERE name = 'note:scopes'", []).unwrap(), 1);
    drop(file);

    let server = serve(folder.path(), &["--exec", "tr a-z A-Z"]);
    assert_eq!(server.get(&task).await, task);
    let said = server.line("store").to_owned();
    assert!(
        said.starts_with("sqlite:./baton-data/demo.db (kept, with the tasks of an earlier version;"),
        "{said}"
    );
    server.log_with("the store has tasks of an earlier version");
    server.signal("-HUP");
    assert!(!server.log_with("configuration reloaded").contains("needs a restart"));
    assert!(server.terminate().success());

    // The way out that it names.
    let own = said.split("--store ").nth(1).unwrap().trim_end_matches(')');
    let server = serve(folder.path(), &["--exec", "tr a-z A-Z", "--store", own]);
    assert!(server.terminate().success());
    let server = serve(folder.path(), &["--exec", "tr a-z A-Z"]);
    assert_eq!(server.line("store"), own, "once it is there, it is the one");
    assert_eq!(tasks(&server).await.len(), 0);
}

/// An author who edits a program and sends the same line again wonders why nothing has changed.
#[tokio::test]
async fn a_message_that_came_before_leaves_a_line_in_the_log() {
    let server = Served::start();
    let task = server.send(text("m-1", "hello")).await;
    assert!(!server.log().contains("was sent again"));
    assert_eq!(server.send(text("m-1", "hello")).await, task);
    let log = server.log_with("the same message was sent again");
    assert!(log.contains(task["id"].as_str().unwrap()), "{log}");
}

#[test]
fn another_programs_database_is_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("music.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE songs (title)").unwrap();
    let before = fs::read(&path).unwrap();
    let (status, log) =
        match Served::unless_it_dies(&mut command(folder.path(), &["--store", "sqlite:music.db"])) {
            Ok(_) => panic!("it is served from"),
            Err(ended) => ended,
        };
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("another program's SQLite database") && !log.contains("damaged"), "{log}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_port_alone_is_of_this_machine() {
    let server = Served::with(&["serve", "--listen", "0", "--store", "memory:"]);
    assert!(server.url.starts_with("http://127.0.0.1:"), "{}", server.url);
}
