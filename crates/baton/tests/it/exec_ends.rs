//! `--exec`: no process of a program outlives its turn, even if server or guard are killed.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::programs::{
    HANG, LINES, Seen, UNTIL_GO, all_gone, output, processes, python, reason, shell, state, until,
};
use crate::served::{Served, text, to};

/// Starts every kind of process, prints their process ids, and waits.
const FAMILY: &str = "
sleep 1000 & echo \"child $!\"
(sleep 1000 & echo \"grandchild $!\"; wait) &
setsid sh -c 'echo \"session $$\"; exec sleep 1000' &
(setsid sh -c 'echo \"daemon $$\"; sleep 1000' &)
setsid sh -c 'trap \"\" TERM; echo \"deaf $$\"; while :; do sleep 1000; done' &
echo \"self $$\"; echo \"guard $PPID\"
wait";

const MEMBERS: &[&str] = &["child", "grandchild", "session", "daemon", "deaf", "self", "guard"];

async fn started(server: &Served) -> (Value, Vec<(String, Seen)>) {
    let task = server.start_on("go").await;
    let task = server.until_said(&task, MEMBERS).await;
    let family = processes(&task);
    assert_eq!(family.len(), MEMBERS.len(), "{family:?}");
    (task, family)
}

#[tokio::test]
async fn s11_a_cancel_ends_children_sessions_and_daemons() {
    let program = shell(FAMILY);
    let server = program.serve(&[]);
    let (task, family) = started(&server).await;
    assert_eq!(state(&server.cancel(&task).await), "CANCELED");
    all_gone(&family).await;
    assert!(!server.log().contains("did not"), "{}", server.log());
}

#[tokio::test]
async fn a_program_is_asked_first_and_killed_later() {
    // One cleans up when it is asked to end, the other does not hear.
    let program = shell(
        "read -r said
if [ \"$said\" = polite ]; then trap 'echo cleaned > \"$FOLDER/cleaned\"; exit 0' TERM; else trap '' TERM; fi
echo \"self $$\"
while :; do sleep 0.01; done",
    );
    let server = program.serve(&[]);
    for said in ["polite", "deaf"] {
        let task = server.start_on(said).await;
        let family = processes(&server.until_said(&task, &["self"]).await);
        let canceled = server.cancel(&task).await;
        assert_eq!(state(&canceled), "CANCELED");
        all_gone(&family).await;
    }
    assert_eq!(std::fs::read_to_string(program.file("cleaned")).unwrap(), "cleaned\n");
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_ended_and_waiting_does_not_count() {
    let program = shell(FAMILY);
    let server = program.serve(&["--exec-timeout", "1.5"]);
    let (task, family) = started(&server).await;
    let task = server.until(&task, "TASK_STATE_FAILED").await;
    assert_eq!(reason(&task), "The agent's program took longer than 1.5 s");
    all_gone(&family).await;

    let program = python(
        "import json, sys, time
sys.stdin.readline()
print(json.dumps({'inputRequired': 'Well?'}), flush=True)
sys.stdin.readline()",
    );
    // Long enough for an interpreter to start on a busy machine.
    let server = program.serve(&[LINES, &["--exec-timeout", "5"]].concat());
    let task = server.answer_to("go").await;
    assert_eq!(state(&task), "INPUT_REQUIRED");
    tokio::time::sleep(Duration::from_millis(5500)).await; // tidy: allow-sleep longer than the program may work
    assert_eq!(state(&server.get(&task).await), "INPUT_REQUIRED");
    let done = server.send(to(&task, text("m-2", "yes"))).await;
    assert_eq!(state(&done), "COMPLETED", "{done}");
}

#[tokio::test]
async fn kill_9_of_the_server_leaves_nobody_behind() {
    let program = shell(FAMILY);
    let server = program.serve(&[]);
    let (_, family) = started(&server).await;
    drop(server); // SIGKILL
    for (what, process) in &family {
        if what == "guard" {
            process.ended().await;
        } else {
            process.gone().await;
        }
    }
}

#[tokio::test]
async fn kill_9_of_the_guard_ends_the_program_and_fails_the_task() {
    let program = shell(FAMILY);
    let server = program.serve(&[]);
    let (task, family) = started(&server).await;
    let guard = &family.iter().find(|(what, _)| what == "guard").unwrap().1;
    guard.signal("-KILL");
    let task = server.until(&task, "TASK_STATE_FAILED").await;
    assert_eq!(reason(&task), "The agent's program was ended from outside; see the server's log");
    // Not even a zombie: the server waits for whom it adopts.
    all_gone(&family).await;
    // And goes on.
    let (task, family) = started_again(&server).await;
    assert_eq!(state(&server.cancel(&task).await), "CANCELED");
    all_gone(&family).await;
}

async fn started_again(server: &Served) -> (Value, Vec<(String, Seen)>) {
    let task = server.start_on("go again").await;
    let task = server.until_said(&task, MEMBERS).await;
    let family = processes(&task);
    (task, family)
}

#[tokio::test]
async fn a_guard_that_is_stopped_cannot_keep_a_program_alive() {
    let program = shell(FAMILY);
    let server = program.serve(&[]);
    let (task, family) = started(&server).await;
    let guard = &family.iter().find(|(what, _)| what == "guard").unwrap().1;
    guard.signal("-STOP");
    assert_eq!(state(&server.cancel(&task).await), "CANCELED");
    all_gone(&family).await;
    server.until_logged("a guard did not end in time").await;
}

/// When the server stops, a program that may not be run again can use the drain time; a rerunnable one is ended at
/// once.
#[tokio::test]
async fn a_stopping_server_lets_programs_end_and_takes_up_those_that_may_be_run_again() {
    let body = format!("echo \"attempt $BATON_ATTEMPT\"; echo \"self $$\" >&2; {UNTIL_GO}; echo whole");
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("tasks.db").display());

    let program = shell(&body);
    let serve = |flags: &[&str]| Served::of(&mut program.command(&[&["--store", &store], flags].concat()));
    let server = serve(&["--exec-rerunnable"]);
    let task = server.start_on("again").await;
    server.until_said(&task, &["attempt 1"]).await;
    let since = Instant::now();
    assert!(server.terminate().success());
    assert!(since.elapsed() < HANG);

    let server = serve(&["--exec-rerunnable"]);
    server.until_said(&task, &["attempt 2"]).await;
    drop(server); // SIGKILL
    let server = serve(&["--exec-rerunnable"]);
    server.until_said(&task, &["attempt 3"]).await;
    program.go();
    let done = server.until(&task, "TASK_STATE_COMPLETED").await;
    assert_eq!(output(&done), "attempt 3\nwhole\n", "what earlier attempts printed was replaced");
    assert!(server.terminate().success());

    std::fs::remove_file(program.file("go")).unwrap();
    let server = serve(&[]);
    let task = server.start_on("once").await;
    server.until_said(&task, &["attempt 1"]).await;
    let ended = tokio::task::spawn_blocking(|| server.terminate());
    program.go();
    assert!(ended.await.unwrap().success());
    let server = serve(&[]);
    let done = server.get(&task).await;
    assert_eq!((state(&done), output(&done).as_str()), ("COMPLETED", "attempt 1\nwhole\n"));

    std::fs::remove_file(program.file("go")).unwrap();
    let task = server.start_on("once more").await;
    server.until_said(&task, &["attempt 1"]).await;
    drop(server); // SIGKILL
    let server = serve(&[]);
    let failed = server.until(&task, "TASK_STATE_FAILED").await;
    assert!(!reason(&failed).is_empty(), "{failed}");
}

#[tokio::test]
async fn s11_what_a_re_run_adds_to_replaces_what_the_attempt_before_made() {
    let program = shell(&format!(
        "say() {{ echo '{{\"artifact\":{{\"id\":\"o\",\"text\":\"'\"$1\"'\",\"append\":true}}}}'; }}
say \"attempt $BATON_ATTEMPT\"; {UNTIL_GO}; say ', '; say whole"
    ));
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("tasks.db").display());
    let flags = [LINES, &["--store", &store, "--exec-rerunnable"]].concat();
    let server = Served::of(&mut program.command(&flags));
    let task = server.start_on("go").await;
    server.until_said(&task, &["attempt 1"]).await;
    drop(server); // SIGKILL
    let server = Served::of(&mut program.command(&flags));
    server.until_said(&task, &["attempt 2"]).await;
    program.go();
    let done = server.until(&task, "TASK_STATE_COMPLETED").await;
    assert_eq!(done["artifacts"][0]["parts"], json!([{"text": "attempt 2, whole"}]), "{done}");
}

/// A re-run undoes what the interrupted attempt did to artifacts of this and of earlier turns.
#[tokio::test]
async fn s11_the_result_of_a_later_turn_is_what_its_last_attempt_said() {
    let program = shell(
        r#"say() { echo "{\"artifact\":{\"id\":\"$1\",\"text\":\"$2\",\"append\":true}}"; }
if [ $BATON_ATTEMPT = 1 ]; then
    say log 'one'; say kept 'kept'; say log ' and'; echo '{"inputRequired":"Go on?"}'; exit
fi
[ $BATON_ATTEMPT = 2 ] && { say log ' lost'; say kept ' lost'; say half 'lost'; say gone 'lost'; sleep 1000; }
say log ' two'; say log ', whole'; say half 'anew'; say half ', whole'"#,
    );
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("tasks.db").display());
    let flags = [LINES, &["--store", &store, "--exec-rerunnable"]].concat();
    let server = Served::of(&mut program.command(&flags));
    let asked = server.answer_to("go").await;
    let task = server.start_task(to(&asked, text("m-2", "yes"))).await;
    server.until_said(&task, &["and lost", "kept lost", "lostlost"]).await;
    drop(server); // SIGKILL
    let server = Served::of(&mut program.command(&flags));
    let done = server.until(&task, "TASK_STATE_COMPLETED").await;
    let parts: Vec<_> =
        done["artifacts"].as_array().unwrap().iter().map(|artifact| &artifact["parts"]).collect();
    let expected = ["one and two, whole", "kept", "anew, whole", ""].map(|text| json!([{"text": text}]));
    assert_eq!(parts, expected.iter().collect::<Vec<_>>(), "{done}");
}

#[tokio::test]
async fn s11_a_re_run_that_prints_nothing_leaves_nothing_of_the_attempt_before() {
    let program = shell("[ $BATON_ATTEMPT = 1 ] && { echo lost; sleep 1000; }; true");
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("tasks.db").display());
    let serve = || Served::of(&mut program.command(&["--store", &store, "--exec-rerunnable"]));
    let server = serve();
    let task = server.start_on("go").await;
    server.until_said(&task, &["lost"]).await;
    drop(server); // SIGKILL
    let done = serve().until(&task, "TASK_STATE_COMPLETED").await;
    assert_eq!(output(&done), "", "{done}");
}

/// A program that ignores SIGTERM lives two seconds longer than its killed server. The next server starts sooner.
#[tokio::test]
async fn s11_a_run_after_a_kill_waits_for_the_run_before() {
    let program = shell(
        "trap '' TERM
exec 9>>\"$FOLDER/lock\"
if flock -n 9; then echo alone; else echo not alone; fi >>\"$FOLDER/runs\"
echo \"attempt $BATON_ATTEMPT\"
[ $BATON_ATTEMPT = 1 ] && sleep 1000
true",
    );
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("tasks.db").display());
    let serve = || Served::of(&mut program.command(&["--store", &store, "--exec-rerunnable"]));
    let server = serve();
    let task = server.start_on("go").await;
    server.until_said(&task, &["attempt 1"]).await;
    drop(server); // SIGKILL
    let server = serve();
    let done = server.until(&task, "TASK_STATE_COMPLETED").await;
    assert_eq!(output(&done), "attempt 2\n");
    assert_eq!(std::fs::read_to_string(program.file("runs")).unwrap(), "alone\nalone\n");
}

/// Processes come and go by the thousand; none may stay as a zombie under the guard or the server.
#[tokio::test]
async fn orphans_that_end_by_themselves_are_cleared_away() {
    let program = shell(&format!(
        "i=0; while [ $i -lt 200 ]; do (true &); i=$((i+1)); done; echo \"guard $PPID\"; {UNTIL_GO}"
    ));
    let server = program.serve(&[]);
    let task = server.start_on("go").await;
    let guard = processes(&server.until_said(&task, &["guard"]).await)[0].1.pid;
    let children = || {
        let tasks = std::fs::read_dir(format!("/proc/{guard}/task")).unwrap();
        let lists = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap());
        lists.map(|list| list.split_whitespace().count()).sum::<usize>()
    };
    assert!(until(|| (children() == 1).then_some(())).await.is_some(), "{} are left", children());
    program.go();
    server.until(&task, "TASK_STATE_COMPLETED").await;
}
