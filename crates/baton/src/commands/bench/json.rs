//! The result as one JSON document. Times are in milliseconds.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::histogram::Summary;
use super::plan::Pace;
use super::report::{Lost, Report};

pub(super) fn json(report: &Report) -> Value {
    let mut latency = Map::new();
    for row in report.rows() {
        let (of, from) = row.key;
        let object = latency.entry(of).or_insert_with(|| json!({}));
        object[from] = summary(&row.summary);
    }
    let errors = report.errors();
    let errors = errors
        .0
        .iter()
        .map(|(name, failures)| json!({"name": name, "count": failures.count, "example": failures.example}));
    json!({
        "agent": report.agent,
        "interface": {"binding": report.binding, "version": report.version, "url": report.url},
        "plan": plan(report),
        "stoppedAfterSeconds": report.stopped_after.map(|after| after.as_secs_f64()),
        "requests": requests(report),
        "latency": latency,
        "errors": errors.collect::<Vec<_>>(),
        "streams": streams(report),
        "notes": report.notes(),
    })
}

fn plan(report: &Report) -> Value {
    let plan = &report.plan;
    let load = plan.load.as_ref();
    let open = load.and_then(|load| match load.pace {
        Pace::Open { per_second, arrivals } => Some((per_second, format!("{arrivals:?}").to_lowercase())),
        Pace::Max => None,
    });
    json!({
        "operation": load.map(|load| load.mix.to_string()),
        "ratePerSecond": open.as_ref().map(|(per_second, _)| per_second),
        "arrivals": open.as_ref().map(|(_, arrivals)| arrivals),
        "requests": load.map(|load| load.most),
        "durationSeconds": plan.duration.as_secs_f64(),
        "concurrency": plan.concurrency,
        "warmUp": plan.warm_up,
        "streams": plan.streams.map(|streams| streams.count),
        "storm": plan.streams.map(|streams| streams.storm),
        "timeoutSeconds": plan.timeout.as_secs_f64(),
        "seed": plan.seed,
    })
}

fn requests(report: &Report) -> Value {
    let Some(load) = &report.load else { return Value::Null };
    let tally = &load.tally;
    json!({
        "sent": tally.sent,
        "answered": tally.answered,
        "failed": tally.failed,
        "unanswered": tally.sent.saturating_sub(tally.answered + tally.failed),
        "sentLate": tally.waited,
        "notSent": tally.unsent,
        "answeredPerSecond": report.per_second(load),
        "seconds": load.elapsed.as_secs_f64(),
        "sendDelay": summary(&tally.send_delay.summary()),
        "outcomes": tally.outcomes,
    })
}

fn streams(report: &Report) -> Value {
    let Some(streams) = report.streams() else { return Value::Null };
    let checked = &report.checked;
    let is_numbered = streams.order.numbered > 0 || streams.events == 0;
    let known = |count: u64| is_numbered.then_some(count);
    let lost = match report.lost(&streams) {
        Lost::Counted(lost) => Some(lost),
        Lost::NoIds | Lost::NotChecked | Lost::NotAllReplayed(_) => None,
    };
    json!({
        "count": streams.count,
        "events": streams.events,
        "eventsWithoutId": streams.order.unnumbered,
        // Null if that cannot be known.
        "lost": lost,
        "doubled": known(streams.order.repeated),
        "outOfOrder": known(streams.order.out_of_order),
        "numbersSkipped": known(streams.order.skipped),
        "afterEnd": streams.after_end,
        "ofOtherTasks": streams.misplaced,
        "leftOpen": streams.left_open,
        "endings": streams.endings,
        "checked": {
            "streams": checked.streams,
            "agreeing": checked.agreeing,
            "differing": checked.differing,
            "difference": checked.difference,
            "replayed": checked.replayed,
            "lostInReplayed": checked.lost,
            "notReplayed": checked.not_replayed,
        },
        "held": report.held.as_ref().map(|held| json!({
            "wanted": held.wanted,
            "opened": held.opened,
            "openedInMs": milliseconds(held.opened_in),
            "openAtTheEnd": held.held,
            "unfinished": held.unfinished,
        })),
        "storm": report.held.as_ref().and_then(|held| held.storm.as_ref()).map(|storm| json!({
            "cut": storm.cut,
            "back": storm.back,
            "repeatedTries": storm.repeated_tries,
            "allBackAfterMs": (storm.back == storm.cut).then(|| storm.times.summary().max.map(milliseconds)),
        })),
    })
}

fn summary(summary: &Summary) -> Value {
    let [p50, p90, p99, p99_9] = summary.shares.map(|time| time.map(milliseconds));
    json!({
        "count": summary.count,
        "p50Ms": p50,
        "p90Ms": p90,
        "p99Ms": p99,
        "p99_9Ms": p99_9,
        "maxMs": summary.max.map(milliseconds),
    })
}

/// To the microsecond.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
