//! How many event streams are open: of everybody, and of one owner.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_protocol::operation::Operation;
use baton_protocol::{Error, ErrorKind, Name};

/// The owner that stands for everybody who did not say who they are.
const ANONYMOUS: &str = "anonymous";

/// Seconds after which a refused stream may be tried again.
const COME_BACK: u32 = 5;

/// A cheap handle; all clones count together.
#[derive(Debug, Clone)]
pub(crate) struct StreamPlaces(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max: usize,
    max_per_owner: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_owner: HashMap<Arc<str>, usize>,
}

/// One stream's place, free again when it is dropped.
#[derive(Debug)]
pub(crate) struct StreamPlace {
    places: StreamPlaces,
    owner: Option<Arc<str>>,
}

impl StreamPlaces {
    pub(crate) fn new(max: usize, max_per_owner: usize) -> Self {
        StreamPlaces(Arc::new(Shared { max, max_per_owner, open: Mutex::default() }))
    }

    /// A place for one more. Asked before anything is done for the caller: a message whose stream is refused must not
    /// have started a task.
    pub(crate) fn take(&self, owner: &Arc<str>) -> Result<StreamPlace, Error> {
        let owner = Some(owner).filter(|owner| &***owner != ANONYMOUS);
        let mut open = self.open();
        if let Some(owner) = owner {
            let most = self.0.max_per_owner;
            if open.by_owner.get(owner).copied().unwrap_or_default() >= most {
                let message =
                    format!("This caller has {most} streams open, and may have no more; close some");
                return Err(Error::new(ErrorKind::QuotaExceeded, message).with_retry_after(COME_BACK));
            }
        }
        if open.all >= self.0.max {
            let poll = Name::Method(Operation::GetTask);
            let message =
                format!("The server has no room for another stream; poll with {poll}, or try again");
            return Err(Error::new(ErrorKind::ResourceExhausted, message).with_retry_after(COME_BACK));
        }
        open.all += 1;
        if let Some(owner) = owner {
            *open.by_owner.entry(Arc::clone(owner)).or_default() += 1;
        }
        Ok(StreamPlace { places: self.clone(), owner: owner.cloned() })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // Counts are whole at every moment the lock is free.
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.places.open();
        open.all -= 1;
        if let Some(owner) = &self.owner
            && let Some(count) = open.by_owner.get_mut(owner)
        {
            *count -= 1;
            if *count == 0 {
                open.by_owner.remove(owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_and_everybody_have_their_bounds() {
        let places = StreamPlaces::new(5, 2);
        let take = |owner: &str| places.take(&Arc::from(owner)).map_err(|error| error.kind());
        let (a, b) = (take("a").unwrap(), take("a").unwrap());
        assert_eq!(take("a").unwrap_err(), ErrorKind::QuotaExceeded);
        let anonymous: Vec<_> = (0..3).map(|_| take(ANONYMOUS).unwrap()).collect();
        assert_eq!(take(ANONYMOUS).unwrap_err(), ErrorKind::ResourceExhausted);
        assert_eq!(take("b").unwrap_err(), ErrorKind::ResourceExhausted);
        drop(a);
        take("a").unwrap();
        drop((b, anonymous));
        assert!(places.open().by_owner.is_empty());
        assert_eq!(places.open().all, 0);
    }
}
