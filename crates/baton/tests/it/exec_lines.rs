//! `--exec` with lines of JSON: what a program can say, and how it gets its answers.

use serde_json::{Value, json};

use crate::programs::{LINES, Seen, output, python, reason, shell, state, until};
use crate::served::{Served, text, to};

/// For Python programs: one line in, one line out.
const TALK: &str = "import json, os, sys
def hear():
    line = sys.stdin.readline()
    return json.loads(line) if line else None
def say(**what): print(json.dumps(what), flush=True)
def words(heard): return heard['message']['parts'][0]['text']
";

#[tokio::test]
async fn everything_a_program_can_say_reaches_the_client_in_order() {
    let program = python(&format!(
        "{TALK}
say(progress='looking')
say(progress={{'parts': [{{'data': {{'done': 0.5}}}}]}})
say(artifact={{'name': 'note', 'text': 'a note', 'description': 'short'}})
say(artifact={{'id': 'chart', 'name': 'Chart', 'raw': 'aGk=', 'mediaType': 'image/png', 'filename': 'c.png', 'metadata': {{'dpi': 72}}}})
say(artifact={{'url': 'https://example.com/a'}})
say(artifact={{'data': [1, 2]}})
for word in ['Once ', 'upon ']: say(artifact={{'name': 'story', 'text': word, 'append': True}})
say(artifact={{'name': 'story', 'text': 'a time', 'append': True, 'lastChunk': True}})
say(artifact={{'name': 'note', 'text': 'another note'}})
say(complete='That is all.')"
    ));
    let server = program.serve(LINES);
    let events = server.send_stream(text("m-1", "go")).await;
    let said: Vec<&Value> =
        events[2..].iter().map(|event| &event["statusUpdate"]["status"]["message"]["parts"]).collect();
    assert_eq!(said[..2], [&json!([{"text": "looking"}]), &json!([{"data": {"done": 0.5}}])]);
    let names: Vec<&str> = events
        .iter()
        .filter_map(|event| event["artifactUpdate"]["artifact"]["artifactId"].as_str())
        .collect();
    assert_eq!(names[..4], ["note", "chart", "artifact-1", "artifact-2"]);
    assert_eq!(names.last(), Some(&"note"));

    let task = server.get(&events[0]["task"]).await;
    assert_eq!((state(&task), reason(&task)), ("COMPLETED", "That is all."));
    let artifacts = task["artifacts"].as_array().unwrap();
    let of = |id: &str| artifacts.iter().find(|artifact| artifact["artifactId"] == id).unwrap();
    assert_eq!(artifacts.len(), 5);
    assert_eq!(of("note")["parts"], json!([{"text": "another note"}]), "said again, it is replaced");
    assert_eq!(
        *of("chart"),
        json!({"artifactId": "chart", "name": "Chart", "metadata": {"dpi": 72},
               "parts": [{"raw": "aGk=", "mediaType": "image/png", "filename": "c.png"}]})
    );
    assert_eq!(of("artifact-1")["parts"], json!([{"url": "https://example.com/a"}]));
    assert_eq!(of("artifact-2")["parts"], json!([{"data": [1, 2]}]));
    assert_eq!(output(&json!({"artifacts": [of("story")]})), "Once upon a time");
}

#[tokio::test]
async fn s04_a_program_that_waits_reads_the_answer_on_its_next_line() {
    let program = python(&format!(
        "{TALK}
name = words(hear())
say(inputRequired=f'Which city, {{name}}?')
city = words(hear())
say(authRequired='Sign in.')
hear()
say(artifact={{'name': 'answer', 'text': f'{{name}} in {{city}}, as {{os.getpid()}}'}})
say(artifact={{'name': 'parent', 'text': str(os.getppid())}})"
    ));
    let server = program.serve(LINES);
    let asked = server.answer_to("Ada").await;
    assert_eq!((state(&asked), reason(&asked)), ("INPUT_REQUIRED", "Which city, Ada?"));
    let asked = server.send(to(&asked, text("m-2", "Paris"))).await;
    assert_eq!((state(&asked), reason(&asked)), ("AUTH_REQUIRED", "Sign in."));
    let done = server.send(to(&asked, text("m-3", "I did"))).await;
    assert_eq!(state(&done), "COMPLETED", "{done}");
    assert!(output(&done).starts_with("Ada in Paris, as "), "{done}");
    let said: Vec<_> = done["history"].as_array().unwrap().iter().map(|m| &m["parts"][0]["text"]).collect();
    assert_eq!(said, ["Ada", "Which city, Ada?", "Paris", "Sign in.", "I did"]);
}

#[tokio::test]
async fn s08_a_program_that_ended_after_its_question_is_started_anew_with_the_talk_so_far() {
    let program = python(&format!(
        "{TALK}
heard = hear()
if 'history' not in heard:
    say(inputRequired='For how many?')
    sys.exit()
said = [part['text'] for message in heard['history'] for part in message['parts']]
say(artifact={{'text': f'{{said}}, then {{words(heard)}}'}})"
    ));
    let server = program.serve(LINES);
    let asked = server.answer_to("pizza").await;
    assert_eq!((state(&asked), reason(&asked)), ("INPUT_REQUIRED", "For how many?"));
    let done = server.send(to(&asked, text("m-2", "four"))).await;
    assert_eq!(state(&done), "COMPLETED", "{done}");
    assert_eq!(output(&done), "['pizza', 'For how many?'], then four");

    // With text on stdin there is no other way: the answer cannot be read by the program that asked.
    let program = shell(
        "read -r said
if [ \"$said\" = pizza ]; then echo '{\"inputRequired\":\"For how many?\"}'; exit; fi
echo \"{\\\"complete\\\":\\\"for $said\\\"}\"",
    );
    let server = program.serve(&["--exec-output", "jsonl"]);
    let asked = server.answer_to("pizza").await;
    assert_eq!(state(&asked), "INPUT_REQUIRED");
    let done = server.send(to(&asked, text("m-2", "four"))).await;
    assert_eq!((state(&done), reason(&done)), ("COMPLETED", "for four"));
}

/// The waiting program is gone with the server, but the question is still open.
#[tokio::test]
async fn s06_a_question_outlives_the_server() {
    let program = python(&format!(
        "{TALK}
heard = hear()
if 'history' not in heard:
    say(inputRequired='For how many?')
    hear()
    say(fail='answered after the end')
say(complete=f'for {{words(heard)}}')"
    ));
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("tasks.db").display());
    let serve = || Served::of(&mut program.command(&[LINES, &["--store", &store]].concat()));
    for how in ["asked to stop", "killed"] {
        let server = serve();
        let asked = server.answer_to(how).await;
        assert_eq!(state(&asked), "INPUT_REQUIRED");
        if how == "killed" {
            drop(server);
        } else {
            assert!(server.terminate().success());
        }
        let server = serve();
        assert_eq!(state(&server.get(&asked).await), "INPUT_REQUIRED");
        let done = server.send(to(&asked, text(&format!("m-2 {how}"), "four"))).await;
        assert_eq!((state(&done), reason(&done)), ("COMPLETED", "for four"), "{done}");
    }
}

/// An answer that arrives while the program exits is not lost, even if an earlier message had the same id.
#[tokio::test]
async fn an_answer_that_a_program_left_unread_starts_it_anew() {
    let program = python(&format!(
        "{TALK}
import time
heard = hear()
if 'history' in heard:
    said = [part['text'] for message in heard['history'] for part in message['parts']]
    say(artifact={{'text': f'{{said}}, then {{words(heard)}}'}})
    sys.exit()
say(progress='reading')
say(artifact={{'text': 'draft. '}})
say(inputRequired='For how many?')
while not os.path.exists(os.environ['FOLDER'] + '/go'): time.sleep(0.01) # // tidy: allow-sleep the program's, not the test's"
    ));
    let server = program.serve(LINES);
    let asked = server.answer_to("pizza").await;
    assert_eq!(state(&asked), "INPUT_REQUIRED");
    let id = asked["history"][0]["messageId"].as_str().unwrap();
    server.start_task(to(&asked, text(id, "four"))).await;
    server.until(&asked, "TASK_STATE_WORKING").await;
    program.go();
    let done = server.until(&asked, "TASK_STATE_COMPLETED").await;
    assert_eq!(output(&done), "draft. ['pizza', 'reading', 'For how many?'], then four");
}

#[tokio::test]
async fn a_program_may_find_another_way_than_the_answer() {
    let program = python(&format!(
        "{TALK}
said = words(hear())
say(authRequired='Sign in.')
if said == 'ask twice': say(inputRequired='Or tell me the code.')
if said == 'go on': say(progress='found a key')
say(artifact={{'text': 'done'}})
if said == 'give up': say(fail='nobody signed in')
elif said == 'refuse': say(reject='not without a key')
else: say(complete='no key was needed')"
    ));
    let server = program.serve(LINES);
    for (said, ends, last) in [
        ("ask twice", "COMPLETED", "no key was needed"),
        ("go on", "COMPLETED", "no key was needed"),
        ("give up", "FAILED", "nobody signed in"),
        ("refuse", "REJECTED", "not without a key"),
    ] {
        let task = server.start_on(said).await;
        let done = server.until(&task, &format!("TASK_STATE_{ends}")).await;
        assert_eq!((reason(&done), output(&done).as_str()), (last, "done"), "{done}");
    }
}

/// The Python SDK's helper prints an artifact part by part, a line each.
#[tokio::test]
async fn text_added_to_text_is_one_part_in_whichever_turn() {
    let program = python(&format!(
        "{TALK}
first = 'history' not in hear()
def more(id, text, **beside): say(artifact={{'id': id, 'text': text, 'append': True, **beside}})
for word in ['Once ', 'upon '] if first else ['a ', 'time']:
    more('story', word)
    more('notes', word, mediaType='text/markdown')
    more('other', word)
if first: say(inputRequired='Go on?')
else: more('story', '.', name='Story', lastChunk=True)"
    ));
    let server = program.serve(LINES);
    let asked = server.answer_to("go").await;
    let done = server.send(to(&asked, text("m-2", "yes"))).await;
    let artifacts = &done["artifacts"];
    assert_eq!(artifacts[0]["parts"], json!([{"text": "Once upon a time."}]), "{done}");
    assert_eq!(artifacts[0]["name"], "Story");
    assert_eq!(artifacts[1]["parts"].as_array().unwrap().len(), 4, "not plain text: {done}");
    assert_eq!(artifacts[2]["parts"], json!([{"text": "Once upon a time"}]));
}

#[tokio::test]
async fn s09_a_line_that_says_nothing_fails_the_task_and_ends_the_program() {
    let program = python(&format!(
        "{TALK}
open(os.environ['FOLDER'] + '/pid', 'w').write(str(os.getpid()))
say(progress='so far so good')
print()
print(words(hear()), flush=True)
hear()
while True: pass"
    ));
    let server = program.serve(LINES);
    for (line, told) in [
        (
            "loading model…",
            "line 3 is not JSON. Each line must be one JSON object with one of progress, artifact",
        ),
        ("{\"progres\":\"x\"}", "line 3 says `progres`, which is not known; did you mean `progress`?"),
        ("{\"artifact\":{\"name\":\"x\"}}", "line 3 `artifact` needs one of text, raw, url, data and parts"),
        ("{\"artifact\":{\"name\":\"\",\"text\":\"x\"}}", "`artifact.name` must not be empty"),
    ] {
        let task = server.answer_to(line).await;
        assert_eq!(state(&task), "FAILED", "{task}");
        let prefix = "The agent's program gave an invalid response: ";
        assert!(reason(&task).starts_with(prefix) && reason(&task).contains(told), "{task}");
        let pid = std::fs::read_to_string(program.file("pid")).unwrap();
        let gone = until(|| (!std::fs::exists(format!("/proc/{pid}")).unwrap()).then_some(())).await;
        assert!(gone.is_some(), "it is still there");
    }
}

#[tokio::test]
async fn s05_the_last_word_ends_the_program_though_it_would_go_on() {
    let program = python(&format!(
        "{TALK}
import time
said = words(hear())
say(artifact={{'name': 'pid', 'text': str(os.getpid())}})
say(**{{said: 'enough'}})
try:
    say(progress='not heard')
    time.sleep(1000) # // tidy: allow-sleep the program's, not the test's
finally: pass"
    ));
    let server = program.serve(LINES);
    // All at once: each of them is given a while to end by itself.
    let mut tasks = Vec::new();
    for (word, ends) in [("complete", "COMPLETED"), ("fail", "FAILED"), ("reject", "REJECTED")] {
        tasks.push((server.start_on(word).await, ends));
    }
    for (task, ends) in tasks {
        let task = server.until(&task, &format!("TASK_STATE_{ends}")).await;
        assert_eq!((state(&task), reason(&task)), (ends, "enough"));
        let pid: u32 = output(&task).parse().unwrap();
        if std::fs::exists(format!("/proc/{pid}")).unwrap() {
            Seen::now(pid).gone().await;
        }
    }
}

#[tokio::test]
async fn a_message_to_a_busy_program_starts_its_next_turn() {
    let program = shell(
        "read -r said; echo \"begun $said on $BATON_ATTEMPT\"
while [ ! -e \"$FOLDER/go\" ]; do sleep 0.01; done; echo \"done $said\"",
    );
    let server = program.serve(&[]);
    let task = server.start_on("one").await;
    server.until_said(&task, &["begun one"]).await;
    let second = server.start_task(to(&task, text("m-2", "two"))).await;
    assert_eq!(second["id"], task["id"]);
    program.go();
    let done = server.until_said(&task, &["done two"]).await;
    assert_eq!(output(&done), "begun one on 1\ndone one\nbegun two on 2\ndone two\n");
    server.until(&task, "TASK_STATE_COMPLETED").await;
}
