//! The audit log in a file of its own: JSON, one event per line, only for the server's own user to read.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

/// The target of security events.
pub(super) const TARGET: &str = "audit";

/// A file that is appended to. Clones write to the same file.
#[derive(Debug, Clone)]
pub(super) struct AuditFile {
    path: PathBuf,
    file: Arc<Mutex<File>>,
}

impl AuditFile {
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let file = Arc::new(Mutex::new(append(&path)?));
        Ok(AuditFile { path, file })
    }

    /// Opens the file by its name again, after a log rotation has renamed it. If that fails, the open one stays in use.
    pub(super) fn reopen(&self) -> io::Result<()> {
        let file = append(&self.path)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file;
        Ok(())
    }

    pub(super) fn path(&self) -> &std::path::Path {
        &self.path
    }
}

fn append(path: &std::path::Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// One line at a time, whole.
#[derive(Debug)]
pub(super) struct Line(Arc<Mutex<File>>);

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for AuditFile {
    type Writer = Line;

    fn make_writer(&self) -> Line {
        Line(Arc::clone(&self.file))
    }
}
