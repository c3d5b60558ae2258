//! Event streams that stay open.

use std::io;
use std::time::{Duration, Instant};

use crate::fleet::Look;
use crate::{Calls, Expect, Fleet, Outcome};

impl Fleet {
    /// Opens `count` more streams, each on a connection of its own; returns when each has had its first event. At most
    /// `at_once` are opened in parallel, since slow accepts are not measured here, and a server may close connections
    /// that are silent for too long.
    pub fn begin(&mut self, calls: &mut Calls, count: usize, at_once: usize) -> io::Result<()> {
        let expect = Expect { has: "", artifacts: None, stream: true };
        let (mut begun, mut waiting) = (0, 0);
        let mut heard = Instant::now();
        while begun < count || waiting > 0 {
            while begun < count && waiting < at_once {
                let index = self.add()?;
                self.connections[index].send(calls.next(begun as u64))?;
                begun += 1;
                waiting += 1;
            }
            self.wait(Some(Duration::from_millis(200)))?;
            let now = Instant::now();
            if self.ready.is_empty() {
                self.lose_patience(now - heard)?;
                continue;
            }
            heard = now;
            for at in 0..self.ready.len() {
                let index = self.ready[at].data.u64() as usize;
                waiting -= usize::from(self.has_begun(index, expect, now)?);
            }
        }
        Ok(())
    }

    /// True if its first event has just arrived.
    fn has_begun(&mut self, index: usize, expect: Expect<'_>, now: Instant) -> io::Result<bool> {
        let had_one = self.connections[index].first_event.is_some();
        match self.look_at(index, expect, now)? {
            Look::Waiting => Ok(!had_one && self.connections[index].first_event.is_some()),
            Look::Whole | Look::Closed => {
                let answer = &self.connections[index].answer;
                let body = &answer.body()[..answer.body().len().min(300)];
                let text = String::from_utf8_lossy(body).into_owned();
                Err(io::Error::other(format!("a stream ended at once, {}: {text}", answer.status())))
            }
        }
    }

    /// Waits until every stream has ended.
    pub fn finish(&mut self, expect: Expect<'_>) -> io::Result<Outcome> {
        let mut outcome = Outcome::default();
        let start = Instant::now();
        let mut heard = start;
        while self.connections.iter().any(|connection| connection.busy) {
            self.wait(Some(Duration::from_millis(200)))?;
            let now = Instant::now();
            if self.ready.is_empty() {
                self.lose_patience(now - heard)?;
                continue;
            }
            heard = now;
            for at in 0..self.ready.len() {
                let index = self.ready[at].data.u64() as usize;
                self.settle(index, now, expect, &mut outcome)?;
            }
        }
        outcome.elapsed = start.elapsed();
        Ok(outcome)
    }
}
