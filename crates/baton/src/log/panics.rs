//! A panic leaves a line in the log. Its message may have been put together from anything, a payload included, so only
//! messages that stand in the program as they are get told.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{self, PanicHookInfo};

pub(super) fn tell() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string);
        // Taken where `RUST_BACKTRACE` asks for it.
        let trace = Backtrace::capture();
        let trace = (trace.status() == BacktraceStatus::Captured).then(|| trace.to_string());
        tracing::error!(place, reason = fixed_message(info), trace, "a thread panicked");
    }));
}

fn fixed_message<'a>(info: &'a PanicHookInfo<'_>) -> Option<&'a str> {
    info.payload().downcast_ref::<&'static str>().copied()
}
