//! A server under valgrind, to count how often one of its functions is called.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use crate::bench::Bench;
use crate::server::Server;
use crate::subjects::Subject;

pub struct Counted {
    pub server: Server,
    file: PathBuf,
}

impl Counted {
    pub fn start(bench: &Bench, subject: &Subject, env: &[(&str, &Path)]) -> Result<Self, String> {
        let file = bench.scratch.join("callgrind.out");
        let _ = fs::remove_file(&file);
        Ok(Counted { server: bench.start_under_callgrind(subject, env, &file)?, file })
    }

    /// Stops the server, and returns how many instructions it has executed.
    pub fn instructions(self) -> Result<u64, String> {
        let text = self.stop()?;
        let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
        total.and_then(|total| total.trim().parse().ok()).ok_or_else(|| "callgrind wrote no total".to_owned())
    }

    /// Stops the server, and returns the number of calls of the first of these functions that was called at all.
    pub fn calls_of(self, functions: &[&str]) -> Result<f64, String> {
        let text = self.stop()?;
        let first = functions.iter().map(|function| calls(&text, function)).find(|calls| *calls > 0);
        first
            .map(|calls| calls as f64)
            .ok_or_else(|| format!("callgrind saw no call of {}", functions.join(" or ")))
    }

    /// Stops the server, and returns what callgrind wrote.
    fn stop(mut self) -> Result<String, String> {
        let pid = Pid::from_raw(self.server.pid() as i32).ok_or("a process without an id")?;
        kill_process(pid, Signal::TERM).map_err(|error| format!("valgrind: {error}"))?;
        self.server.wait()?;
        fs::read_to_string(&self.file).map_err(|error| format!("callgrind: {error}"))
    }
}

/// In this format a name is written once, as `(7) name`, and later as its number; `calls=` follows the `cfn=` of its
/// function.
fn calls(text: &str, function: &str) -> u64 {
    let mut wanted: Vec<&str> = Vec::new();
    let mut is_it = false;
    let mut total = 0;
    for line in text.lines() {
        let named = line.strip_prefix("cfn=").map(|rest| (true, rest));
        let named = named.or_else(|| line.strip_prefix("fn=").map(|rest| (false, rest)));
        if let Some((called, rest)) = named {
            let (number, name) = rest.split_once(' ').unwrap_or((rest, ""));
            if name.contains(function) {
                wanted.push(number);
            }
            if called {
                is_it = wanted.contains(&number);
            }
        } else if let Some(rest) = line.strip_prefix("calls=")
            && is_it
        {
            let count = rest.split(' ').next().and_then(|count| count.parse::<u64>().ok());
            total += count.unwrap_or_default();
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_added_up_by_name_and_number() {
        let text = "fn=(1) main\ncfn=(2) write_it::h12\ncalls=7 10\n5 100\ncfn=(3) other\ncalls=9 1\n5 1\n\
                    fn=(3)\ncfn=(2)\ncalls=3 10\n6 20\n";
        assert_eq!(calls(text, "write_it"), 10);
        assert_eq!(calls(text, "none"), 0);
    }
}
