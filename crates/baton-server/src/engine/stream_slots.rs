//! Limits the number of open event streams, in total and per caller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_protocol::operation::Operation;
use baton_protocol::{Error, ErrorKind, Name};

use super::caller::Caller;

/// Seconds after which a refused stream may be tried again.
const RETRY_AFTER: u32 = 5;

/// A cheap handle; clones share the same counts.
#[derive(Debug, Clone)]
pub(crate) struct StreamSlots(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max: usize,
    max_per_caller: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_caller: HashMap<Caller, usize>,
}

/// Counts one open stream until it is dropped.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    slots: StreamSlots,
    caller: Option<Caller>,
}

impl StreamSlots {
    pub(crate) fn new(max: usize, max_per_caller: usize) -> Self {
        StreamSlots(Arc::new(Shared { max, max_per_caller, open: Mutex::default() }))
    }

    /// Counts one more stream, or refuses it. Must be called first: a message whose stream is refused must not start a task.
    pub(crate) fn take(&self, caller: &Caller) -> Result<StreamSlot, Error> {
        let caller = Some(caller).filter(|caller| caller.is_limited());
        let mut open = self.open();
        if let Some(caller) = caller {
            let most = self.0.max_per_caller;
            if open.by_caller.get(caller).copied().unwrap_or_default() >= most {
                let message =
                    format!("This caller has {most} streams open, and may have no more; close some");
                return Err(Error::new(ErrorKind::QuotaExceeded, message).with_retry_after(RETRY_AFTER));
            }
        }
        if open.all >= self.0.max {
            let poll = Name::Method(Operation::GetTask);
            let message =
                format!("The server has no room for another stream; poll with {poll}, or try again");
            return Err(Error::new(ErrorKind::ResourceExhausted, message).with_retry_after(RETRY_AFTER));
        }
        open.all += 1;
        if let Some(caller) = caller {
            *open.by_caller.entry(caller.clone()).or_default() += 1;
        }
        Ok(StreamSlot { slots: self.clone(), caller: caller.cloned() })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // The counts are consistent whenever the lock is free, so a poisoned lock can be used.
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = self.slots.open();
        open.all -= 1;
        if let Some(caller) = &self.caller
            && let Some(count) = open.by_caller.get_mut(caller)
        {
            *count -= 1;
            if *count == 0 {
                open.by_caller.remove(caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_and_everybody_have_their_bounds() {
        let slots = StreamSlots::new(6, 2);
        let take = |caller: &Caller| slots.take(caller).map_err(|error| error.kind());
        let owner = |name: &str| Caller::Owner(Arc::from(name));
        let address = Caller::Address("192.0.2.1".parse().unwrap());
        let (a, b) = (take(&owner("a")).unwrap(), take(&owner("a")).unwrap());
        assert_eq!(take(&owner("a")).unwrap_err(), ErrorKind::QuotaExceeded);
        let here = [take(&address).unwrap(), take(&address).unwrap()];
        assert_eq!(take(&address).unwrap_err(), ErrorKind::QuotaExceeded);
        let unknown = [take(&Caller::Unknown).unwrap(), take(&Caller::Unknown).unwrap()];
        assert_eq!(take(&Caller::Unknown).unwrap_err(), ErrorKind::ResourceExhausted);
        assert_eq!(take(&owner("b")).unwrap_err(), ErrorKind::ResourceExhausted);
        drop(a);
        take(&owner("a")).unwrap();
        drop((b, here, unknown));
        assert!(slots.open().by_caller.is_empty());
        assert_eq!(slots.open().all, 0);
    }
}
