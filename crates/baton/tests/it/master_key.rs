//! `BATON_MASTER_KEY`: the secrets in the store are encrypted, and the server does not start without the key.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::served::{MASTER_KEY, Served, baton, finished, text};

const OTHER_KEY: &str = "5f1e07c2a9b84d36e0f7123489abcdef00112233445566778899aabbccddeeff";

struct Folder(tempfile::TempDir);

impl Folder {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn serve(&self, variables: &[(&str, &str)]) -> Command {
        let mut command = baton(&["serve", "--listen", "127.0.0.1:0", "--store", "sqlite:tasks.db"]);
        command.current_dir(self.0.path()).envs(variables.iter().copied());
        command
    }

    /// The secrets as they are stored, while no server runs.
    fn stored(&self) -> Vec<(String, Vec<u8>)> {
        let database = rusqlite::Connection::open(self.path("tasks.db")).unwrap();
        let mut all = database.prepare("SELECT name, value FROM secret ORDER BY name").unwrap();
        all.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    }

    fn has(&self, secret: &[u8]) -> bool {
        let holds = |path: &Path| {
            fs::read(path).is_ok_and(|bytes| bytes.windows(secret.len()).any(|at| at == secret))
        };
        fs::read_dir(self.0.path()).unwrap().any(|entry| holds(&entry.unwrap().path()))
    }
}

fn count(log: &str, words: &str) -> usize {
    log.lines().filter(|line| line.contains(words)).count()
}

async fn page(server: &Served, token: &str) -> Value {
    server.call("ListTasks", json!({"pageSize": 1, "pageToken": token})).await
}

#[tokio::test]
async fn s16_a_master_key_wraps_the_secrets_of_a_store_and_is_needed_from_then_on() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let server = Served::of(&mut folder.serve(&[]));
    for id in ["m1", "m2"] {
        server.call("SendMessage", json!({"message": text(id, "hello")})).await;
    }
    let token = page(&server, "").await["nextPageToken"].as_str().unwrap().to_owned();
    server.stop_and_log();
    let plain = folder.stored();
    let names: Vec<&str> = plain.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["callers", "cursor", "webhook-ids"], "a new secret has to be wrapped, too");
    assert!(plain.iter().all(|(_, secret)| folder.has(secret)), "the control: they are found");

    let server = Served::of(&mut folder.serve(&[("BATON_MASTER_KEY", MASTER_KEY)]));
    let second = page(&server, &token).await;
    assert_eq!(second["tasks"].as_array().map(Vec::len), Some(1), "a page token of before: {second}");
    assert!(!plain.iter().any(|(_, secret)| folder.has(secret)), "while it runs");
    let log = server.stop_and_log();
    assert_eq!(count(&log, "are now wrapped with the master key"), 1, "{log}");
    assert!(!plain.iter().any(|(_, secret)| folder.has(secret)), "and after it");
    let wrapped = folder.stored();
    assert!(wrapped.iter().all(|(name, value)| name == "store-id" || value.starts_with(b"baton-secret 1 ")));

    // Neither without the key nor with another one; and nothing is written.
    let (code, said) = finished(&mut folder.serve(&[]));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("no master key was given; set BATON_MASTER_KEY to it"), "{said}");
    let (code, said) = finished(&mut folder.serve(&[("BATON_MASTER_KEY", OTHER_KEY)]));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("set BATON_MASTER_KEY_OLD to it for one start"), "{said}");
    assert!(!said.contains(OTHER_KEY) && !said.contains(MASTER_KEY), "{said}");
    assert_eq!(folder.stored(), wrapped);

    // Replaced by another; the old one is then of no use.
    fs::write(folder.path("new-key"), format!("{OTHER_KEY}\n")).unwrap();
    let file = ("BATON_MASTER_KEY_FILE", "new-key");
    let server = Served::of(&mut folder.serve(&[file, ("BATON_MASTER_KEY_OLD", MASTER_KEY)]));
    assert_eq!(page(&server, &token).await, second);
    let log = server.stop_and_log();
    assert_eq!(count(&log, "are now wrapped with the new master key"), 1, "{log}");
    let (code, said) = finished(&mut folder.serve(&[("BATON_MASTER_KEY", MASTER_KEY)]));
    assert_eq!(code, Some(1), "{said}");
    let server = Served::of(&mut folder.serve(&[file]));
    assert_eq!(page(&server, &token).await, second);
    let log = server.stop_and_log();
    assert_eq!(count(&log, "are now wrapped"), 0, "{log}");
}

#[test]
fn s16_a_weak_master_key_stops_the_start_before_anything_is_opened() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let phrase = "CanarySingsInTheMorningAndInTheEveningHours";
    for weak in ["canary-password", "Y2FuYXJ5", &"0".repeat(64), phrase] {
        let (code, said) = finished(&mut folder.serve(&[("BATON_MASTER_KEY", weak)]));
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("`openssl rand -base64 32` makes one") && !said.contains(weak), "{said}");
    }
    assert!(!folder.path("tasks.db").exists());
}

/// The key where the path of a file belongs: neither the start nor `config show` repeats it.
#[test]
fn s16_a_master_key_in_place_of_a_path_is_not_repeated() {
    let folder = Folder(tempfile::tempdir().unwrap());
    for name in ["BATON_MASTER_KEY_FILE", "BATON_MASTER_KEY_OLD_FILE"] {
        let variables = [("BATON_MASTER_KEY", MASTER_KEY), (name, OTHER_KEY)];
        let variables = if name == "BATON_MASTER_KEY_FILE" { &variables[1..] } else { &variables[..] };
        let (code, said) = finished(&mut folder.serve(variables));
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(name) && said.contains(&name[..name.len() - "_FILE".len()]), "{said}");
        assert!(!said.contains(OTHER_KEY) && !said.contains(MASTER_KEY), "{said}");
        let mut show = baton(&["serve", "config", "show"]);
        let shown = show.current_dir(folder.0.path()).envs(variables.iter().copied()).output().unwrap();
        let shown = [shown.stdout, shown.stderr].concat();
        let shown = String::from_utf8_lossy(&shown);
        assert!(!shown.contains(OTHER_KEY) && !shown.contains(MASTER_KEY), "{shown}");
    }
    assert!(!folder.path("tasks.db").exists());
}

/// A server of a later version may know more secrets. Without the master key it makes none of them before it refuses.
#[tokio::test]
async fn s16_a_start_without_the_master_key_makes_no_plain_secret() {
    let folder = Folder(tempfile::tempdir().unwrap());
    Served::of(&mut folder.serve(&[("BATON_MASTER_KEY", MASTER_KEY)])).stop_and_log();
    let database = rusqlite::Connection::open(folder.path("tasks.db")).unwrap();
    database.execute("DELETE FROM secret WHERE name = 'cursor'", []).unwrap();
    drop(database);
    let before = folder.stored();
    let (code, said) = finished(&mut folder.serve(&[]));
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(folder.stored(), before);
    Served::of(&mut folder.serve(&[("BATON_MASTER_KEY", MASTER_KEY)])).stop_and_log();
    assert_eq!(folder.stored().len(), before.len() + 1);
}
