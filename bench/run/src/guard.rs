//! What a guarded server wants from its callers. It writes that to a file before it listens: for TLS its certificate, else a
//! header.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use bench_load::Target;

use crate::subjects::Subject;

pub struct Guard {
    is_tls: bool,
    file: PathBuf,
}

impl Guard {
    /// `None` if the subject lets everybody in. The file is beside the log.
    pub fn of(subject: &Subject, log: &Path) -> Option<Self> {
        let (_, kind) = subject.env.iter().find(|(name, _)| *name == "GUARD")?;
        Some(Guard { is_tls: *kind == "tls", file: log.with_extension("guard") })
    }

    /// Tells the server where the file is.
    pub fn env(&self) -> (&str, &Path) {
        ("GUARD_FILE", &self.file)
    }

    /// How to connect to the server, and the headers of every request.
    pub fn needs(&self, address: SocketAddr) -> Result<(Target, String), String> {
        let said = |error: std::io::Error| format!("{}: {error}", self.file.display());
        let text = fs::read_to_string(&self.file).map_err(said)?;
        if self.is_tls {
            Ok((Target::tls(address, &text)?, String::new()))
        } else {
            Ok((Target::plain(address), format!("{text}\r\n")))
        }
    }
}
