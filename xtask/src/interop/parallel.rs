//! Runs scripts in parallel.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Scripts mostly wait for slow demo tasks, so several run at a time.
const AT_ONCE: usize = 4;

/// Returns what was not as expected in any of the runs, sorted.
pub fn each<T: Send>(
    runs: impl IntoIterator<Item = T>,
    run: impl Fn(T) -> Result<Vec<String>, String> + Sync,
) -> Result<Vec<String>, String> {
    let waiting: Mutex<VecDeque<T>> = Mutex::new(runs.into_iter().collect());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let worker = || -> Result<Vec<String>, String> {
        let mut surprises = Vec::new();
        while let Some(one) = next() {
            surprises.extend(run(one)?);
        }
        Ok(surprises)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        let mut surprises = Vec::new();
        for worker in workers {
            surprises.extend(worker.join().map_err(|_| "a worker panicked")??);
        }
        surprises.sort();
        Ok(surprises)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_made_once() {
        let found = each(0..50, |number| Ok(vec![format!("{number:02}")])).unwrap();
        assert_eq!(found, (0..50).map(|number| format!("{number:02}")).collect::<Vec<_>>());
        assert_eq!(each([1, 2], |_| Err("no".to_owned())), Err("no".to_owned()));
    }
}
