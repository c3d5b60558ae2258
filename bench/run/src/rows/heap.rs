//! Heap allocations and system calls of one SendMessage.

use bench_load::{Expect, Stop};

use super::replies::{fleet, good, start};
use super::{Point, Points, Row, Verdict};
use crate::strace::Strace;
use crate::subjects::{BATON_COUNTED, LF_COUNTED, REPLY_COUNTED, SDK_COUNTED};
use crate::wire::{self, COMPLETED};

pub const COUNTED: Row = Row {
    id: "heap",
    work: "heap allocations and system calls per SendMessage, 32 connections",
    remark: "Allocations and reallocations, by a counting allocator; system calls by strace. Binaries with the \
             system's allocator.",
    rounds: (1, 2),
    subjects: &[BATON_COUNTED, REPLY_COUNTED, LF_COUNTED, SDK_COUNTED],
    measure,
    columns: &[("allocations", "allocations/request"), ("syscalls", "system calls/request")],
    judge: |figures| {
        let allocations = figures.get("heap", "allocations", &BATON_COUNTED);
        let syscalls = figures.get("heap", "syscalls", &BATON_COUNTED);
        vec![
            Verdict::at_most("at most 100 allocations", allocations, 100.0, ""),
            Verdict::at_most("at most 2.5 system calls", syscalls, 2.5, ""),
        ]
    },
};

fn measure(point: &Point<'_>) -> Result<Points, String> {
    let mut server = start(point, &point.bench.recorded.send)?;
    let mut calls = wire::send_calls(&server);
    let mut fleet = fleet(&server, 32)?;
    let expect = Expect::reply(COMPLETED);
    let mut send = |count| {
        let outcome =
            fleet.closed(&mut calls, expect, Stop::Count(count)).map_err(|error| error.to_string())?;
        good(outcome).map(|outcome| outcome.answered as f64)
    };
    send(2000)?;
    let (before, _) = server.heap()?;
    let count = send(point.bench.pick(5000, 20_000))?;
    let (after, _) = server.heap()?;
    let allocations = (after - before) as f64 / count;
    let strace = Strace::attach(&server, &[], &point.bench.scratch)?;
    let count = send(point.bench.pick(2000, 20_000))?;
    Ok(vec![("allocations", allocations), ("syscalls", strace.finish()? as f64 / count)])
}
