//! Servers that cut, stall, drip, flood, talk nonsense or lie, each against every command that reads something from an agent:
//! the command ends by itself, with the right code and exit status, and with bounded memory.

/// Cut, stalled and slow servers.
mod broken;
/// Cards of hostile servers.
mod cards;
/// Servers that lie.
mod lying;
/// Servers that talk nonsense.
mod malformed;
/// Servers that flood.
mod oversized;
/// A server on a plain socket, which sends whatever bytes it is told to.
mod server;
/// A command whose time and memory are watched.
mod watched;

use std::thread;

use self::server::{Asked, Hostile, Sent, right};
use self::watched::Ended;
use super::User;

/// Every command that reads something from an agent.
const COMMANDS: [&[&str]; 6] = [
    &["card", "get"],
    &["send", "hi"],
    &["send", "hi", "--stream"],
    &["task", "get", "t-1"],
    &["task", "subscribe", "t-1", "--stream"],
    &["task", "list"],
];

/// It works.
const OK: &str = "";
/// The answer is not of the protocol.
const BAD: &str = "InvalidAgentResponseError";
/// The connection does not hold.
const LOST: &str = "A2ACLI_ERR_UNREACHABLE";
/// The user's `--timeout` ran out.
const LATE: &str = "A2ACLI_ERR_TIMEOUT";
const NO_CARD: &str = "A2ACLI_ERR_CARD_NOT_FOUND";
const BAD_CARD: &str = "A2ACLI_ERR_CARD_INVALID";
const NO_CREDENTIALS: &str = "A2ACLI_ERR_CREDENTIALS_MISSING";
const AUTH_FAILED: &str = "A2ACLI_ERR_AUTH_FAILED";
/// Not an answer of the protocol, but with a status of its own.
const INTERNAL: &str = "A2ACLI_ERR_INTERNAL";

/// More than a command needs on the largest answers that it accepts, and far less than a flood would take.
const MOST_MEMORY: u64 = 700;

fn exit_status(code: &str) -> i32 {
    match code {
        OK => 0,
        NO_CARD | LOST => 3,
        NO_CREDENTIALS | AUTH_FAILED => 4,
        LATE => 5,
        _ => 1,
    }
}

/// What a server is wrong about. It is right about everything else.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Card,
    Calls,
    Streams,
}

/// A server, and what becomes of each command.
struct Row {
    name: &'static str,
    wrong: Wrong,
    answer: fn(&Asked) -> Sent,
    expected: [&'static str; COMMANDS.len()],
    /// `--timeout`, short for servers that keep the client waiting.
    timeout: &'static str,
}

/// All commands fail alike, since all read the card first.
fn card(name: &'static str, expected: &'static str, answer: fn(&Asked) -> Sent) -> Row {
    Row { name, wrong: Wrong::Card, answer, expected: [expected; COMMANDS.len()], timeout: "60s" }
}

/// All calls fail alike.
fn calls(name: &'static str, expected: &'static str, answer: fn(&Asked) -> Sent) -> Row {
    each_call(name, [expected; COMMANDS.len() - 1], answer)
}

fn each_call(
    name: &'static str,
    expected: [&'static str; COMMANDS.len() - 1],
    answer: fn(&Asked) -> Sent,
) -> Row {
    let [send, watch, get, subscribe, list] = expected;
    let expected = [OK, send, watch, get, subscribe, list];
    Row { name, wrong: Wrong::Calls, answer, expected, timeout: "60s" }
}

/// `send`, `send --stream` and `task subscribe` open a stream.
fn streams(name: &'static str, expected: [&'static str; 3], answer: fn(&Asked) -> Sent) -> Row {
    let [send, watch, subscribe] = expected;
    let expected = [OK, send, watch, OK, subscribe, OK];
    Row { name, wrong: Wrong::Streams, answer, expected, timeout: "60s" }
}

impl Row {
    fn timeout(self, timeout: &'static str) -> Self {
        Row { timeout, ..self }
    }

    fn serve(&self) -> Hostile {
        let (wrong, answer) = (self.wrong, self.answer);
        Hostile::start(move |asked| {
            let is_wrong = match wrong {
                Wrong::Card => asked.is_card(),
                Wrong::Calls => !asked.is_card(),
                Wrong::Streams => asked.streams(),
            };
            if is_wrong { answer(asked) } else { right(asked) }
        })
    }
}

/// Runs every command against the server of every row. `also` are further arguments; `look` sees each command's end.
fn check(rows: &[Row], also: &[&str], look: impl Fn(&Row, &Hostile, &Ended) + Sync) {
    let look = &look;
    let failed: Vec<String> = thread::scope(|scope| {
        let rows = rows.iter().map(|row| scope.spawn(move || check_row(row, also, look)));
        rows.collect::<Vec<_>>().into_iter().flat_map(|row| row.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn check_row(row: &Row, also: &[&str], look: &impl Fn(&Row, &Hostile, &Ended)) -> Vec<String> {
    let user = User::new();
    let mut failed = Vec::new();
    for (words, expected) in COMMANDS.iter().zip(row.expected) {
        let server = row.serve();
        let common = ["-a", &server.url, "--timeout", row.timeout, "--poll-interval", "50ms"];
        let form: &[&str] = if also.contains(&"-o") { &[] } else { &["-o", "json"] };
        let ended = Ended::of(&mut user.command(&[*words, &common, form, also].concat()));
        let (error, code) = (ended.error(), ended.code);
        if error != expected || code != Some(exit_status(expected)) {
            let said = [&ended.out, &ended.err].map(|text| text.chars().take(400).collect::<String>());
            let came = format!("{code:?} {error:?}, expected {expected:?}");
            failed.push(format!("{}: {words:?}: {came}: {said:?}", row.name));
        }
        if ended.peak > MOST_MEMORY {
            failed.push(format!("{}: {words:?}: {} MiB", row.name, ended.peak));
        }
        look(row, &server, &ended);
    }
    failed
}

/// Nothing more to look at.
fn nothing(_: &Row, _: &Hostile, _: &Ended) {}
