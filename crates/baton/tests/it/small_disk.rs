//! A place with little room, that can be filled and cleared while a server runs on it: a small file system of its
//! own, or a limit on the size of files.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::served::{Served, baton};

const DISK_BYTES: usize = 8 << 20;
const FILE_BYTES: usize = 360 << 10;

pub(crate) struct SmallDisk {
    kind: Kind,
    folder: TempDir,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A tmpfs of 8 MiB; another file on it takes what room there is.
    Mounted,
    /// No file of the process may grow beyond 360 KiB while it is full.
    Limited,
}

impl SmallDisk {
    /// Needs the right to mount. Without it, a limit on files stands in: the same refusals by another error of the
    /// system, which is said loudly, because a disk of its own is the better test.
    #[allow(clippy::print_stderr, reason = "whoever reads the test's output must know what it did not show")]
    pub(crate) fn mounted() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={DISK_BYTES}");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        let refused = match mount {
            Ok(output) if output.status.success() => return SmallDisk { kind: Kind::Mounted, folder },
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        eprintln!(
            "NO DISK OF ITS OWN: mount says {refused:?}. A limit on the size of files stands in for a full disk; \
             run as root, or with CAP_SYS_ADMIN, to see the real thing."
        );
        SmallDisk { kind: Kind::Limited, folder }
    }

    /// Needs no rights, but the program `prlimit` (util-linux).
    pub(crate) fn limited() -> Self {
        SmallDisk { kind: Kind::Limited, folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("data/tasks.db")
    }

    pub(crate) fn serve(&self) -> Served {
        let store = format!("sqlite:{}", self.database().display());
        Served::of(&mut baton(&["serve", "--listen", "127.0.0.1:0", "--store", &store]))
    }

    /// From now on there is little room: of a disk this many bytes, and whatever the store's files have within them.
    pub(crate) fn fill(&self, server: &Served, left: u64) {
        match self.kind {
            Kind::Mounted => {
                let mut filler = File::create(self.filler()).unwrap();
                let error = loop {
                    if let Err(error) = filler.write_all(&[0; 4096]) {
                        break error;
                    }
                };
                assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
                filler.set_len(filler.metadata().unwrap().len() - left).unwrap();
            }
            Kind::Limited => limit(server, &FILE_BYTES.to_string()),
        }
    }

    /// A message of this size fits when [`fill`](Self::fill) has left 600 KiB; what its turn makes of it (the echo,
    /// and a snapshot with both) does not.
    pub(crate) fn more_than_half(&self) -> usize {
        match self.kind {
            Kind::Mounted => 250_000,
            // A task of at most 256 KiB, message and echo, ends with a snapshot: larger ones do without.
            Kind::Limited => 125_000,
        }
    }

    /// Another server on the same disk, while that is full.
    pub(crate) fn crowded(&self) -> Command {
        let store = format!("sqlite:{}", self.database().with_file_name("other.db").display());
        let server = baton(&["serve", "--listen", "127.0.0.1:0", "--store", &store]);
        match self.kind {
            Kind::Mounted => server,
            Kind::Limited => {
                let mut limited = Command::new("prlimit");
                limited.arg("--fsize=8192:").arg(server.get_program()).args(server.get_args());
                limited
            }
        }
    }

    pub(crate) fn make_room(&self, server: &Served) {
        match self.kind {
            Kind::Mounted => fs::remove_file(self.filler()).unwrap(),
            Kind::Limited => limit(server, "unlimited"),
        }
    }

    fn filler(&self) -> PathBuf {
        self.folder.path().join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if self.kind == Kind::Mounted {
            unmount(self.folder.path());
        }
    }
}

fn unmount(folder: &Path) {
    // Lazily, if a process that is being killed still holds a file.
    let plain = Command::new("umount").arg(folder).output();
    if !plain.is_ok_and(|output| output.status.success()) {
        let _ = Command::new("umount").arg("--lazy").arg(folder).status();
    }
}

/// The soft limit alone: that can be lifted again.
fn limit(server: &Served, bytes: &str) {
    let (pid, limit) = (server.pid().to_string(), format!("--fsize={bytes}:"));
    let limited = Command::new("prlimit").args(["--pid", &pid, &limit]).output();
    let limited = limited.unwrap_or_else(|error| panic!("prlimit (of util-linux) is needed here: {error}"));
    assert!(limited.status.success(), "{}", String::from_utf8_lossy(&limited.stderr));
}
