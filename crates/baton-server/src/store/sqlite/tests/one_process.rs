//! An open store cannot be opened again, by whatever name.

use super::*;
use std::fs;
use std::time::Duration;

fn refused(path: &Path) -> String {
    let options = Options { lock_wait: Duration::ZERO, ..Options::default() };
    let error = SqliteStore::open(path, options).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    error.to_string()
}

#[test]
fn one_process_at_a_time() {
    let (folder, store) = store();
    let path = folder.path().join("baton.db");
    let said = refused(&path);
    assert!(said.contains("another Baton runs on") && said.contains("baton.db"), "{said}");
    drop(store);
    open(&path);
}

/// Closing any descriptor of a file drops all locks that the process has on it, SQLite's among them.
#[cfg(target_os = "linux")]
#[test]
fn s12_a_second_descriptor_of_an_open_store_stays_open_with_it() {
    let (folder, store) = store();
    let path = fs::canonicalize(folder.path()).unwrap().join("baton.db");
    let descriptors = || {
        let all = fs::read_dir("/proc/self/fd").unwrap().flatten();
        all.filter(|descriptor| fs::read_link(descriptor.path()).is_ok_and(|to| to == path)).count()
    };
    let before = descriptors();
    let late = fs::File::options().read(true).write(true).open(&path).unwrap();
    assert!(super::super::lock::identity::OpenInProcess::register_file(late).unwrap().is_none());
    assert_eq!(descriptors(), before + 1);
    drop(store);
    assert_eq!(descriptors(), 0);
}

#[cfg(unix)]
#[tokio::test]
async fn no_symbolic_link_leads_to_an_open_store() {
    use std::os::unix::fs::symlink;
    let (folder, store) = store();
    let (path, at) = (folder.path().join("baton.db"), |name: &str| folder.path().join(name));
    symlink(&path, at("link.db")).unwrap();
    fs::create_dir(at("elsewhere")).unwrap();
    symlink("../baton.db", at("elsewhere/relative.db")).unwrap();
    symlink(folder.path(), at("folder")).unwrap();
    for name in ["link.db", "elsewhere/relative.db", "folder/baton.db", "elsewhere/../baton.db"] {
        assert!(refused(&at(name)).contains("another Baton runs on"), "{name}");
    }
    store.append(&scope("o"), append("t", 0, TaskState::Working)).await.unwrap();
    drop(store);
    // Each name opens the same store, one after the other.
    for name in ["link.db", "elsewhere/relative.db", "folder/baton.db"] {
        let store = open(&at(name));
        assert_eq!(store.task_count().await.unwrap(), 1, "{name}");
        assert!(refused(&path).contains("another Baton runs on"), "{name}");
    }
    symlink(at("not there yet.db"), at("ahead.db")).unwrap();
    drop(open(&at("ahead.db")));
    assert!(at("not there yet.db").exists());
}

/// POSIX forgets all locks that a process has on a file when it closes any descriptor of it.
#[cfg(target_os = "linux")]
#[test]
fn without_its_lock_file_a_store_is_locked_all_the_same() {
    use std::os::unix::fs::MetadataExt as _;
    let (folder, store) = store();
    let path = folder.path().join("baton.db");
    let inode = fs::metadata(&path).unwrap().ino();
    let locks = || {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        let of_file = locks.lines().filter(|line| line.contains(&format!(":{inode} ")));
        let mut kinds: Vec<_> =
            of_file.filter_map(|line| line.split_whitespace().nth(1)).map(str::to_owned).collect();
        kinds.sort();
        kinds
    };
    let before = locks();
    assert!(before.contains(&"FLOCK".to_owned()) && before.contains(&"POSIX".to_owned()), "{before:?}");
    fs::remove_file(folder.path().join("baton.db.lock")).unwrap();
    assert!(refused(&path).contains("another Baton runs on"));
    assert_eq!(locks(), before, "SQLite's own locks are as they were");
    drop(store);
    assert_eq!(locks(), Vec::<String>::new());
    open(&path);
}

#[cfg(unix)]
#[test]
fn a_file_with_several_names_is_refused() {
    let (folder, store) = store();
    drop(store);
    let (path, other) = (folder.path().join("baton.db"), folder.path().join("other.db"));
    fs::hard_link(&path, &other).unwrap();
    for name in [&path, &other] {
        let said = refused(name);
        assert!(said.contains("2 names (hard links)"), "{said}");
    }
    fs::remove_file(other).unwrap();
    open(&path);
}

#[test]
fn a_lock_that_is_about_to_be_freed_is_waited_for() {
    let (folder, store) = store();
    let path = folder.path().join("baton.db");
    let (tell, waits) = mpsc::channel();
    let next = std::thread::spawn(move || {
        tell.send(()).unwrap();
        SqliteStore::open(&path, Options { lock_wait: Duration::from_secs(60), ..Options::default() })
    });
    waits.recv().unwrap();
    drop(store);
    next.join().unwrap().unwrap();
}
