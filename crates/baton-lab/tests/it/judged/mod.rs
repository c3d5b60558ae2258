//! Judging clients: a right one keeps all rules, and for each rule there is one that breaks it.

mod client;
mod wrongs;

use std::collections::BTreeSet;
use std::time::Duration;

use baton_lab::case::{Outcome, Verdict};
use baton_lab::generation::Generation;
use baton_lab::judge::{Judge, Play, SCRIPTS, Script, Variant, rules};
use tokio::net::TcpListener;

use client::{Client, Habit, plain_send};
use wrongs::{How, WRONGS, Wrong};

/// No run of one script takes nearly that long.
const HANG: Duration = Duration::from_secs(60);

async fn judge(variants: &[Variant], scripts: &[&'static Script]) -> Judge {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    Judge::start(listener, variants, scripts).await.unwrap()
}

async fn plays_right(judge: &Judge, play: &Play) {
    let mut client = Client::new(play, Habit::None, None);
    let ran = tokio::time::timeout(HANG, client.run()).await.expect(play.script.name);
    judge.ended(play, ran);
}

async fn plays_wrong(judge: &Judge, play: &Play, wrong: &Wrong) {
    let (habit, edit) = match wrong.how {
        How::Habit(habit) => (habit, None),
        How::Always(edit) => (Habit::None, Some(edit)),
        _ => (Habit::None, None),
    };
    let mut client = Client::new(play, habit, edit);
    let mut ran = tokio::time::timeout(HANG, client.run()).await.expect(play.script.name);
    match &wrong.how {
        How::Sends(times, change) => {
            for number in 0..*times {
                client.scene.number = number;
                let mut request = plain_send(&client);
                change(&mut request, &client.scene);
                client.blurt(&request).await;
            }
        }
        How::Asks(operation, params, change) => {
            let params = params(&client.scene);
            let mut request = client.request(*operation, &params, &client.scene.interface);
            change(&mut request, &client.scene);
            client.blurt(&request).await;
        }
        How::Ends(change) => change(&mut ran),
        How::Always(_) | How::Habit(_) => {}
    }
    judge.ended(play, ran);
}

fn failed(outcomes: &[Outcome]) -> BTreeSet<String> {
    let failed = outcomes.iter().filter(|outcome| matches!(outcome.verdict, Verdict::Fail(_)));
    failed.map(|outcome| outcome.case.id().to_owned()).collect()
}

#[tokio::test]
async fn a_right_client_keeps_every_rule() {
    let scripts: Vec<&Script> = SCRIPTS.iter().collect();
    let judge = judge(&Variant::ALL, &scripts).await;
    let plays = judge.plays();
    // Twice: who runs a client again on the same script is not to be accused of anything either.
    for _ in 0..2 {
        futures_util::future::join_all(plays.iter().map(|play| plays_right(&judge, play))).await;
    }
    let outcomes = judge.outcomes(|_| true);
    for outcome in &outcomes {
        let (id, binding) = (outcome.case.id(), outcome.binding);
        match &outcome.verdict {
            Verdict::Pass => {}
            // It does try again.
            Verdict::Skip(_) if id.ends_with("RETRY-003") => {}
            other => panic!("{id} {binding}: {other:?}\n{:#?}", outcome.evidence),
        }
    }
    judge.stop().await;
}

#[tokio::test]
async fn every_wrong_client_is_caught() {
    let mut runs = Vec::new();
    for wrong in WRONGS {
        let rule = rules::all().find(|rule| rule.id == wrong.rule).expect(wrong.rule);
        let script = Script::named(wrong.script).expect(wrong.script);
        assert!(rule.looks_at(script), "{} does not look at {}", rule.id, script.name);
        let variants = Variant::ALL.into_iter();
        let fitting = variants.filter(|variant| rule.holds_in(*variant) && script.fits(*variant));
        runs.extend(fitting.map(|variant| (wrong, script, variant)));
    }
    use futures_util::StreamExt as _;
    let caught = runs.into_iter().map(|(wrong, script, variant)| async move {
        let basics = ["send", "stream"].into_iter().filter(|name| *name != script.name);
        let mut scripts: Vec<&Script> = basics.filter_map(Script::named).collect();
        scripts.push(script);
        let judge = judge(&[variant], &scripts).await;
        for play in judge.plays() {
            if play.script.name == script.name {
                plays_wrong(&judge, &play, wrong).await;
            } else {
                plays_right(&judge, &play).await;
            }
        }
        let failed = failed(&judge.outcomes(|_| true));
        judge.stop().await;
        let id = |rule: &str| {
            let rule = rules::all().find(|known| known.id == rule).expect("a rule");
            rule.id_in(variant.generation)
        };
        let (wanted, also): (String, Vec<String>) =
            (id(wrong.rule), wrong.also.iter().map(|rule| id(rule)).collect());
        let strays: Vec<&String> =
            failed.iter().filter(|found| **found != wanted && !also.contains(found)).collect();
        match (failed.contains(&wanted), strays.is_empty()) {
            (true, true) => None,
            (false, _) => {
                Some(format!("{wanted} in {} ({variant}) is not caught; failed: {failed:?}", script.name))
            }
            (true, false) => Some(format!("{wanted} in {} ({variant}): {strays:?} failed, too", script.name)),
        }
    });
    let faults: Vec<String> = futures_util::stream::iter(caught)
        .buffer_unordered(8)
        .filter_map(|fault| async { fault })
        .collect()
        .await;
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_judgement_has_a_wrong_client() {
    let mut lacking = Vec::new();
    for rule in rules::all() {
        for variant in Variant::ALL.into_iter().filter(|variant| rule.holds_in(*variant)) {
            let fits = |wrong: &&Wrong| {
                let script = Script::named(wrong.script).expect("a script");
                wrong.rule == rule.id && script.fits(variant)
            };
            if !WRONGS.iter().any(|wrong| fits(&wrong)) {
                lacking.push(format!("{} ({variant})", rule.id_in(variant.generation)));
            }
        }
    }
    assert!(lacking.is_empty(), "no client breaks {lacking:?}");
}

#[test]
fn every_rule_says_what_it_is_about() {
    let mut seen = BTreeSet::new();
    for (rule, case) in rules::cases() {
        let id = case.id();
        assert!(seen.insert(id.to_owned()), "{id} is there twice");
        for text in [rule.requirement, rule.remedy] {
            assert!(text.ends_with('.') && text.len() > 20, "{id}: {text:?} is no sentence");
        }
        assert!(!rule.name.is_empty() && !rule.name.ends_with('.'), "{id}");
        for script in rule.scripts {
            let script =
                Script::named(script).unwrap_or_else(|| panic!("{id}: no script is called {script}"));
            let fits = Variant::ALL.into_iter().any(|variant| rule.holds_in(variant) && script.fits(variant));
            assert!(fits, "{id} never sees {}", script.name);
        }
    }
    // Whatever a script does, some rule beside the general ones looks at it, or its name says why not.
    let looked_at: BTreeSet<&str> = rules::all().flat_map(|rule| rule.scripts.iter().copied()).collect();
    let idle: Vec<&str> =
        SCRIPTS.iter().map(|script| script.name).filter(|name| !looked_at.contains(name)).collect();
    assert_eq!(idle, ["wrong-type"], "only whether the client comes to an end is judged there");
}

#[tokio::test]
async fn nobody_who_did_not_call_is_judged() {
    let scripts: Vec<&Script> = SCRIPTS.iter().collect();
    let judge = judge(&Variant::ALL, &scripts).await;
    assert!(judge.quiet_for().is_none());
    let outcomes = judge.outcomes(|_| true);
    assert!(!outcomes.is_empty());
    assert!(outcomes.iter().all(|outcome| matches!(outcome.verdict, Verdict::Skip(_))));
    judge.stop().await;
}

/// Whatever a client sends, the judge answers and has an opinion.
#[tokio::test]
async fn odd_requests_break_nothing() {
    let names = ["send", "talk", "tour", "tenant", "odd-ids", "busy-429", "redirect", "bearer"];
    let scripts: Vec<&Script> = names.into_iter().filter_map(Script::named).collect();
    let judge = judge(&Variant::ALL, &scripts).await;
    let http = client::http();
    for play in judge.plays() {
        let (send, streams) = match play.variant.generation {
            Generation::V1 => ("SendMessage", "SendStreamingMessage"),
            Generation::V0_3 => ("message/send", "message/stream"),
            Generation::V0_1 => ("tasks/send", "tasks/sendSubscribe"),
        };
        let params = r#"{"id":{"é_ü":[]},"_":1,"message":[{"parts":7}],"configuration":"x"}"#;
        let bodies = [
            String::new(),
            "\u{1}{".to_owned(),
            "null".to_owned(),
            "[[]]".to_owned(),
            r#"{"method":7,"params":"x","message":"y"}"#.to_owned(),
            format!(r#"{{"method":"{send}","params":[1],"message":{{"parts":{{}}}}}}"#),
            format!(r#"{{"method":"{send}","params":"x","id":{{}}}}"#),
            format!(r#"{{"method":"{streams}","params":{params},"id":1.5,"message":{{"messageId":[]}}}}"#),
            format!(r#"{{"method":"GetTask","params":{params}}}"#),
        ];
        let sent = bodies.into_iter().flat_map(|body| {
            let paths =
                ["/a2a", "/a2a/message:send", "/a2a/v1/message:stream", "/a2a/tasks/%ff%", "/nowhere?%=%zz"];
            paths.map(|path| http.post(format!("{}{path}", play.url)).body(body.clone()).send())
        });
        // Only that there is an answer, or an end, matters.
        for answer in futures_util::future::join_all(sent).await.into_iter().flatten() {
            let _ = tokio::time::timeout(HANG, answer.bytes()).await.unwrap();
        }
    }
    let outcomes = judge.outcomes(|_| true);
    assert!(outcomes.iter().any(|outcome| matches!(outcome.verdict, Verdict::Fail(_))));
    judge.stop().await;
}

#[tokio::test]
async fn evidence_holds_no_secret() {
    let script = Script::named("bearer").unwrap();
    let judge = judge(&Variant::ALL[..1], &[script]).await;
    let play = judge.plays().remove(0);
    plays_right(&judge, &play).await;
    let (_, secret) = play.secret.clone().unwrap();
    let outcomes = judge.outcomes(|_| true);
    let shown = format!("{outcomes:?}");
    assert!(shown.contains("***") && !shown.contains(&secret), "the token is in the evidence");
    // One script alone has its card at the root, too.
    let card = reqwest::get(format!("{}/.well-known/agent-card.json", judge.url())).await.unwrap();
    assert_eq!(card.json::<serde_json::Value>().await.unwrap()["name"], "Judge of bearer");
    let index = reqwest::get(judge.url()).await.unwrap().text().await.unwrap();
    assert!(index.contains(&play.url) && index.contains(script.does.sentence()));
    judge.stop().await;
}
