//! Whether the time of an answer tells what its bytes hide: another owner's id and an unknown one, a key that is wrong
//! at its beginning and one that is wrong at its end. `cargo xtask faults --only timing` measures and writes
//! `docs/results/timing.md`; the test command only compares the answers.
//!
//! Requests of the two kinds alternate in random order on one connection, and Welch's t says whether their times have
//! the same mean. Two servers that leak on purpose must be found out, otherwise a passing run would mean nothing.

/// A server with two owners, and schemes that leak.
mod stage;
/// The statistics.
mod welch;

use std::time::Duration;

use crate::faults::runs::{Run, say};

use self::stage::{Leak, Stage, StoreKind, Wire};
use self::welch::{Comparison, compare};

/// Beyond this, two means are different: about one in 100,000 comparisons of equal means gets there.
const FOUND: f64 = 4.5;

/// What a deliberate leak costs. A comparison that is too coarse to find it shows nothing, and fails.
const LEAKED: Duration = Duration::from_micros(10);

/// How often a comparison is made until it is fine enough.
const ATTEMPTS: u64 = 5;

/// Two kinds of requests that must take the same time.
struct Pair {
    name: &'static str,
    store: StoreKind,
    leak: Leak,
    requests: fn(&Stage) -> [Vec<Vec<u8>>; 2],
}

const PAIRS: [Pair; 7] = [
    Pair {
        name: "GetTask in memory, another owner's id and an unknown one",
        store: StoreKind::Memory,
        leak: Leak::None,
        requests: Stage::foreign_and_unknown,
    },
    Pair {
        name: "GetTask in SQLite, another owner's id and an unknown one",
        store: StoreKind::Sqlite,
        leak: Leak::None,
        requests: Stage::foreign_and_unknown,
    },
    Pair {
        name: "issued key, first and last character of the secret wrong",
        store: StoreKind::Memory,
        leak: Leak::None,
        requests: Stage::issued_key_wrong_at_both_ends,
    },
    Pair {
        name: "chosen key, first and last character wrong",
        store: StoreKind::Memory,
        leak: Leak::None,
        requests: Stage::chosen_key_wrong_at_both_ends,
    },
    Pair {
        name: "issued key, known id with a wrong secret and unknown id",
        store: StoreKind::Memory,
        leak: Leak::None,
        requests: Stage::known_and_unknown_key,
    },
    Pair {
        name: "control: GetTask on a server that leaks ids",
        store: StoreKind::Memory,
        leak: Leak::Ids,
        requests: Stage::foreign_and_unknown,
    },
    Pair {
        name: "control: a key compared from its beginning",
        store: StoreKind::Memory,
        leak: Leak::Keys,
        requests: Stage::issued_key_wrong_at_both_ends,
    },
];

#[test]
fn the_time_of_an_answer_does_not_tell_what_its_bytes_hide() {
    let mut run = Run::begin("timing");
    let calls = run.count(100, 10_000) as usize;
    let mut random = run.random();
    let mut wrong = Vec::new();
    for Pair { name, store, leak, requests } in &PAIRS {
        let stage = Stage::start(*store, *leak);
        let both = requests(&stage);
        let mut wire = Wire::connect(&stage);
        // The first calls of a connection warm caches.
        let _ = wire.measure(&both, calls / 10, &mut random);
        let mut comparison = compare(wire.measure(&both, calls, &mut random));
        // On a busy machine a leak of this size would be missed: then it is measured again, whatever t was.
        for _ in 0..run.count(0, ATTEMPTS - 1) {
            if comparison.would_find(LEAKED) {
                break;
            }
            comparison = compare(wire.measure(&both, calls, &mut random));
        }
        let Comparison { t, means, error } = comparison;
        let [one, other] = means.map(|mean| format!("{:.2}", mean * 1e6));
        let seen = format!("t {t:.2} ({one} and {other} us, standard error {:.2} us)", error * 1e6);
        say(&format!("{name}: {seen}"));
        run.figure(name, &seen);
        let is_control = *leak != Leak::None;
        if (t.abs() >= FOUND) != is_control || !comparison.would_find(LEAKED) {
            wrong.push(format!("{name}: {seen}"));
        }
    }
    run.figure("calls of each kind", calls);
    let is_full = run.full;
    run.end();
    // A few calls on a busy machine say nothing: in the test command it is the bytes that are compared, by `measure`.
    assert!(!is_full || wrong.is_empty(), "{}", wrong.join("\n"));
}
