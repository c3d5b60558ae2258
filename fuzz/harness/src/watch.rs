//! Saves an input whose check does not end, and then aborts the process.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for slow machines: this finds endless loops and exploding costs.
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Watch(Arc<Mutex<Current>>);

#[derive(Debug, Default)]
struct Current {
    input: Vec<u8>,
    since: Option<Instant>,
    over: bool,
}

impl Watch {
    pub(crate) fn start(name: &str) -> Self {
        let (current, name) = (Arc::new(Mutex::new(Current::default())), name.to_owned());
        let watched = Arc::clone(&current);
        thread::spawn(move || {
            loop {
                thread::sleep(Duration::from_secs(1));
                let current = watched.lock().unwrap_or_else(PoisonError::into_inner);
                if current.over {
                    return;
                }
                if current.since.is_some_and(|since| since.elapsed() > LONGEST) {
                    let file = super::save(&name, &current.input);
                    eprintln!("{name}: no end after {LONGEST:?}; the input is {}", file.display());
                    // A thread that loops cannot be stopped in another way.
                    std::process::abort();
                }
            }
        });
        Watch(current)
    }

    pub(crate) fn begins(&self, input: &[u8]) {
        self.set(|current| {
            current.input.clear();
            current.input.extend_from_slice(input);
            current.since = Some(Instant::now());
        });
    }

    pub(crate) fn ended(&self) {
        self.set(|current| current.since = None);
    }

    fn set(&self, change: impl FnOnce(&mut Current)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.set(|current| current.over = true);
    }
}
