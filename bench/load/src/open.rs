//! The open loop: requests are sent when they are due, whatever the server does.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use crate::{Calls, Expect, Fleet, Outcome};

impl Fleet {
    /// Sends at a fixed rate. Time is measured from when a request was due, so it includes the wait for a free
    /// connection and for a server that stalls.
    pub fn open(
        &mut self,
        calls: &mut Calls,
        expect: Expect<'_>,
        per_second: f64,
        time: Duration,
    ) -> io::Result<Outcome> {
        let mut outcome = Outcome::default();
        let total = (per_second * time.as_secs_f64()) as u64;
        let pause = Duration::from_secs_f64(1.0 / per_second);
        let mut free: Vec<usize> = (0..self.connections.len()).collect();
        let mut due: VecDeque<Instant> = VecDeque::new();
        let start = Instant::now();
        let (mut planned, mut sent, mut done) = (0u64, 0u64, 0u64);
        let mut heard = start;
        while done < total {
            let mut now = Instant::now();
            while planned < total && now >= start + pause.mul_f64(planned as f64) {
                due.push_back(start + pause.mul_f64(planned as f64));
                planned += 1;
            }
            while !due.is_empty()
                && let Some(index) = free.pop()
                && let Some(when) = due.pop_front()
            {
                let connection = &mut self.connections[index];
                connection.send(calls.next(sent))?;
                connection.since = when;
                sent += 1;
            }
            // Do not sleep while something is to be sent: waking up would take longer than a request.
            let idle = planned == total && due.is_empty();
            self.wait(Some(if idle { Duration::from_millis(200) } else { Duration::ZERO }))?;
            now = Instant::now();
            if self.ready.is_empty() {
                self.lose_patience(now - heard)?;
                continue;
            }
            heard = now;
            for at in 0..self.ready.len() {
                let index = self.ready[at].data.u64() as usize;
                if self.settle(index, now, expect, &mut outcome)? {
                    free.push(index);
                    done += 1;
                }
            }
        }
        outcome.elapsed = start.elapsed();
        Ok(outcome)
    }
}
