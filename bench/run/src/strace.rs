//! Counts the system calls of a running server with strace.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::server::Server;

pub struct Strace {
    process: Child,
    said: BufReader<ChildStderr>,
    table: PathBuf,
}

impl Strace {
    /// Starts counting, in all threads.
    pub fn attach(server: &Server, flags: &[&str], scratch: &Path) -> Result<Self, String> {
        let table = scratch.join("strace.txt");
        let _ = fs::remove_file(&table);
        let mut command = Command::new("strace");
        command.args(["-f", "-c", "-U", "name,calls"]).args(flags).arg("-o").arg(&table);
        command.args(["-p", &server.pid().to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process =
            command.spawn().map_err(|error| format!("strace: {error}; `cargo xtask setup` gets it"))?;
        let said = process.stderr.take().ok_or("strace without the output it was given")?;
        let mut strace = Strace { process, said: BufReader::new(said), table };
        strace.await_attached()?;
        Ok(strace)
    }

    /// strace prints a line when it has attached to every thread.
    fn await_attached(&mut self) -> Result<(), String> {
        let mut line = String::new();
        self.said.read_line(&mut line).map_err(|error| format!("strace: {error}"))?;
        if line.contains("attached") { Ok(()) } else { Err(format!("strace: {}", line.trim())) }
    }

    /// Detaches from the server, and returns the number of calls.
    pub fn finish(mut self) -> Result<u64, String> {
        let pid = Pid::from_child(&self.process);
        kill_process(pid, Signal::INT).map_err(|error| format!("strace: {error}"))?;
        self.process.wait().map_err(|error| format!("strace: {error}"))?;
        let text = fs::read_to_string(&self.table).map_err(|error| format!("strace: {error}"))?;
        // Without any call there is no table.
        Ok(total(&text))
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Lines of `name calls`, with rulers, a heading and a total.
fn total(table: &str) -> u64 {
    let rows = table.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (name, calls) = (words.next()?, words.next()?.parse::<u64>().ok()?);
        // Caused by strace itself.
        (name != "total" && name != "restart_syscall").then_some(calls)
    });
    rows.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_added_up() {
        let table = "syscall              calls\n---------------- ---------\nwritev                 100\nread   7\n\
                     restart_syscall 1\n---------------- ---------\ntotal                  108\n";
        assert_eq!(total(table), 107);
        assert_eq!(total(""), 0);
    }
}
