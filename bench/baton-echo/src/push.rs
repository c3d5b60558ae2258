//! Whether clients may register webhooks. Their receivers are on this machine, and the caps are those of the row `webhooks`.

use std::time::Duration;

use baton_server::{Builder, PushOptions};

/// Most calls at the same time: in all, and to one host.
const AT_ONCE: usize = 64;

/// `PUSH_TIMEOUT_MS` is the longest time for a call, and `PUSH_PACE` multiplies the waits between attempts: ten attempts take
/// 75 hours otherwise.
pub(crate) fn applied(server: Builder) -> Result<Builder, String> {
    if std::env::var_os("PUSH").is_none() {
        return Ok(server);
    }
    let mut options = PushOptions::default();
    options.development = true;
    options.at_once = AT_ONCE;
    options.per_host = AT_ONCE;
    // The generator is one owner, and does not wait for deliveries.
    options.max_per_owner = 10_000_000;
    options.max_open = 10_000_000;
    if let Some(millis) = number("PUSH_TIMEOUT_MS")? {
        options.timeout = Duration::from_secs_f64(millis / 1000.0);
    }
    if let Some(pace) = number("PUSH_PACE")? {
        options.pace = pace;
    }
    Ok(server.push(options))
}

fn number(name: &str) -> Result<Option<f64>, String> {
    let Ok(text) = std::env::var(name) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| format!("{name} is no number: {text}"))
}
