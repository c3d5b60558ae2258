//! What authentication and TLS cost.

use bench_load::{Expect, Stop};

use super::replies::{fleet, good, loaded};
use super::{Point, Points, Row, Verdict};
use crate::callgrind::Counted;
use crate::cores::Place;
use crate::server::Server;
use crate::subjects::{BATON, BATON_JWT, BATON_KEY, BATON_TLS};
use crate::wire::{self, COMPLETED};

const CONNECTIONS: usize = 32;
const TASKS: usize = 200;

pub const GET: Row = Row {
    id: "guarded",
    work: "GetTask with an API key, with a JWT, over TLS: server CPU per request, 32 kept-alive connections",
    remark: "The key is one that the operator chose (64 characters); the JWT (ES256, about 700 characters) is the \
             same in all requests, so its signature was checked before; TLS is 1.3 with AES-256-GCM. Instructions \
             are counted by valgrind, once, in the server's process and outside of the kernel; valgrind's processor \
             has no instructions for SHA-256, so key and JWT take fewer outside of it.",
    rounds: (1, 10),
    subjects: &[BATON, BATON_KEY, BATON_JWT, BATON_TLS],
    measure,
    columns: &[
        ("cpu", "CPU µs/request"),
        ("instructions", "instructions/request"),
        ("generator", "generator µs/request"),
    ],
    judge: |figures| {
        let to_plain = |subject| figures.ratio("guarded", "cpu", subject, &BATON);
        vec![
            Verdict::at_most("API key: at most 1.15 × none", to_plain(&BATON_KEY), 1.15, " ×"),
            Verdict::at_most("cached JWT: at most 1.2 × none", to_plain(&BATON_JWT), 1.2, " ×"),
            Verdict::at_most("TLS, kept alive: at most 1.35 × plain", to_plain(&BATON_TLS), 1.35, " ×"),
        ]
    },
};

fn measure(point: &Point<'_>) -> Result<Points, String> {
    let server = point.bench.start(&point.subject, Place::Own, &[])?;
    let mut calls = wire::get_calls(&server, &wire::task_ids(&server, TASKS)?);
    let load = loaded(point, &server, &mut calls, Expect::reply(COMPLETED), CONNECTIONS)?;
    let mut points = vec![("cpu", load.cpu), ("generator", load.generator)];
    drop(server);
    // They do not vary between rounds.
    if point.round == 0 {
        points.push(("instructions", instructions(point)?));
    }
    Ok(points)
}

/// The difference between many requests and few: start, handshakes and the first requests are not in it.
fn instructions(point: &Point<'_>) -> Result<f64, String> {
    let total = |requests| -> Result<u64, String> {
        let counted = Counted::start(point.bench, &point.subject, &[])?;
        get(&counted.server, requests)?;
        counted.instructions()
    };
    let (few, many) = (2000, point.bench.pick(6000, 12_000));
    let (least, most) = (total(few)?, total(many)?);
    Ok(most.saturating_sub(least) as f64 / (many - few) as f64)
}

fn get(server: &Server, requests: u64) -> Result<(), String> {
    let mut calls = wire::get_calls(server, &wire::task_ids(server, TASKS)?);
    let mut fleet = fleet(server, CONNECTIONS)?;
    let outcome = fleet.closed(&mut calls, Expect::reply(COMPLETED), Stop::Count(requests));
    good(outcome.map_err(|error| error.to_string())?).map(drop)
}
