//! The limit on open files: every connection needs one.

/// Raises the soft limit to the hard limit, which is often much higher, and returns it; `None` if there is no limit, or
/// it cannot be read.
#[cfg(unix)]
pub(crate) fn raise_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let before = getrlimit(Resource::Nofile);
    if before.current != before.maximum {
        let wanted = Rlimit { current: before.maximum, maximum: before.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, wanted) {
            tracing::debug!(%error, "the limit on open files could not be raised");
        }
    }
    let now = getrlimit(Resource::Nofile).current;
    tracing::debug!(before = before.current, now, "open files");
    now
}

#[cfg(not(unix))]
pub(crate) fn raise_limit() -> Option<u64> {
    None
}

/// How many of the files may be connections: the store, programs, and connections that are refused need some, too.
pub(crate) fn for_connections(limit: u64) -> usize {
    usize::try_from(limit / 4 * 3).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::for_connections;

    #[test]
    fn connections_leave_room_for_others() {
        for (limit, connections) in
            [(0, 1), (64, 48), (1024, 768), (20_000, 15_000), (u64::MAX, usize::MAX / 4 * 3)]
        {
            assert_eq!(for_connections(limit), connections, "{limit}");
        }
    }
}
