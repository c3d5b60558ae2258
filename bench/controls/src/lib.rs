//! Controls: the same work without an agent. Each control is a lower bound that a server with tasks cannot reach;
//! figures are ratios to it, within one run on one machine.

pub mod reply;
pub mod sqlite;
pub mod stream;

/// A file with the bytes of Baton's answer, so that every control sends the same number of bytes.
fn recorded(variable: &str) -> Result<Vec<u8>, String> {
    let path = std::env::var(variable)
        .map_err(|_| format!("{variable} is not set: the file with the bytes to send"))?;
    std::fs::read(&path).map_err(|error| format!("{path}: {error}"))
}
