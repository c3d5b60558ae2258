//! What the same work costs without an agent. Each control is a lower bound that a server with tasks cannot reach, so
//! that figures are ratios within one run on one machine.

pub mod reply;
pub mod sqlite;
pub mod stream;

/// A file that the run wrote: the bytes that Baton answered with, so that every control sends as many.
fn recorded(variable: &str) -> Result<Vec<u8>, String> {
    let path = std::env::var(variable)
        .map_err(|_| format!("{variable} is not set: the file with the bytes to send"))?;
    std::fs::read(&path).map_err(|error| format!("{path}: {error}"))
}
