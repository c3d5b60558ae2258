//! Logs panics. A formatted panic message may contain parts of a request, so only constant messages are logged.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{self, PanicHookInfo};

pub(super) fn install() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string);
        // Captured only if `RUST_BACKTRACE` is set.
        let trace = Backtrace::capture();
        let trace = (trace.status() == BacktraceStatus::Captured).then(|| trace.to_string());
        tracing::error!(place, reason = fixed_message(info), trace, "a thread panicked");
    }));
}

fn fixed_message<'a>(info: &'a PanicHookInfo<'_>) -> Option<&'a str> {
    info.payload().downcast_ref::<&'static str>().copied()
}
