//! The lock that keeps other processes out of a database.
//!
//! It is on the database file itself (`flock` on a descriptor of our own), so it holds for every name of the file, through
//! symbolic links, and if somebody removes the `.lock` file. POSIX drops all of a process's locks on a file, SQLite's
//! included, as soon as *any* descriptor of that file is closed. So our descriptor is opened before SQLite's and closed after
//! them, and a file that this process already has open is refused before another descriptor of it is opened.
//!
//! The `.lock` file beside the database is for older versions, which use only that, and for systems other than Linux,
//! where `flock` on the database would lock out SQLite itself.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::{disk_space, with_suffix};
use crate::store::{Cause, StoreError, StoreResult};

/// Pause between two tries for a lock that another process holds.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// HeldWriter as long as the store is open.
#[derive(Debug)]
pub(super) struct Lock {
    // Dropped in this order: the process may open the file again only after the descriptor is closed.
    database: File,
    _open_here: identity::OpenInProcess,
    _lock_files: Vec<File>,
    real: PathBuf,
    /// The lock files that this lock created.
    created: Vec<PathBuf>,
}

impl Lock {
    /// Creates folder and file if needed and takes the lock. Waits up to `timeout` for it, since a killed process may hold
    /// it until it has exited.
    pub(super) fn take(path: &Path, timeout: Duration) -> StoreResult<Self> {
        let folder = folder_of(path);
        create_folder(folder).map_err(|error| failed(folder, error))?;
        let until = Instant::now() + timeout;
        loop {
            if let Some(lock) = Self::try_take(path)? {
                return Ok(lock);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(StoreError::unavailable(format!("another Baton runs on {}", path.display())));
            }
            thread::sleep(RETRY_INTERVAL.min(left));
        }
    }

    /// `None` when another process, or another store of this process, has it.
    fn try_take(path: &Path) -> StoreResult<Option<Self>> {
        let folder = folder_of(path);
        let Some(name) = path.file_name() else {
            return Err(StoreError::unavailable(format!("{}: not a file name", path.display())));
        };
        let as_given = fs::canonicalize(folder).map_err(|error| failed(folder, error))?.join(name);
        let mut created = Vec::new();
        let Some(first) = lock_file(&as_given, &mut created)? else { return Ok(None) };
        let mut names = vec![first];
        let is_new = !path.exists();
        if is_new {
            // Also works through a link whose target does not exist yet.
            let created =
                owner_only(&mut OpenOptions::new()).write(true).create(true).truncate(false).open(path);
            created.map_err(|error| failed(path, error))?;
        }
        let real = fs::canonicalize(path).map_err(|error| failed(path, error))?;
        if real != as_given {
            let Some(second) = lock_file(&real, &mut created)? else { return Ok(None) };
            names.push(second);
        }
        if is_new {
            // Without this sync a power cut could lose the new file's name, and with it what is in the file.
            let folder = folder_of(&real);
            sync_folder(folder).map_err(|error| failed(folder, error))?;
        }
        let Some((database, open_in_process)) =
            identity::open(&real).map_err(|error| failed(&real, error))?
        else {
            return Ok(None);
        };
        identity::refuse_hard_links(&database, &real)?;
        // On other systems it would conflict with SQLite's own locks.
        if cfg!(target_os = "linux") && !try_lock(&database, &real)? {
            return Ok(None);
        }
        if is_new {
            created.clear();
        }
        Ok(Some(Lock { database, _open_here: open_in_process, _lock_files: names, real, created }))
    }

    /// To be called when the file turns out to be another program's: leaves no lock file beside it.
    pub(super) fn remove_created_lock_files(&self) {
        for path in &self.created {
            // A lock file that cannot be removed does no harm.
            let _ = fs::remove_file(path);
        }
    }

    /// The descriptor that holds the lock.
    pub(super) fn database(&self) -> &File {
        &self.database
    }

    /// The path with symbolic links resolved: SQLite's other files are beside it.
    pub(super) fn real_path(&self) -> &Path {
        &self.real
    }
}

fn failed(what: &Path, error: std::io::Error) -> StoreError {
    let kind = if disk_space::is_full(&error) { StoreError::Full } else { StoreError::Unavailable };
    kind(Cause::new(format!("{}: {error}", what.display())).with_source(error))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The lock file beside a database, locked; `None` when another process has it locked.
fn lock_file(database: &Path, created: &mut Vec<PathBuf>) -> StoreResult<Option<File>> {
    let path = with_suffix(database, ".lock");
    let is_new = !path.exists();
    let file = owner_only(&mut OpenOptions::new()).create(true).append(true).open(&path);
    let file = file.map_err(|error| failed(&path, error))?;
    let locked = try_lock(&file, &path)?;
    if is_new {
        created.push(path);
    }
    Ok(locked.then_some(file))
}

fn try_lock(file: &File, path: &Path) -> StoreResult<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => Ok(false),
        Err(TryLockError::Error(error)) => Err(failed(path, error)),
    }
}

/// Creates the folder for its owner only: the store holds secrets and messages.
fn create_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let created: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    builder.create(folder)?;
    // Each new folder's name is synced in its parent; otherwise a power cut could lose the folder with its synced files.
    created.into_iter().filter_map(Path::parent).try_for_each(sync_folder)
}

/// Syncs a folder, so that the names in it survive a power cut.
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        File::open(folder)?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// New files are accessible to their owner only. SQLite gives its log files the mode of the database.
pub(super) fn owner_only(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Does not change the mode: the operator may have chosen it, for a backup for example.
pub(super) fn warn_if_others_may_read(path: &Path) {
    #[cfg(unix)]
    if let Ok(file) = fs::metadata(path) {
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o777;
        if mode & 0o077 != 0 {
            let (file, mode) = (path.display(), format!("{mode:o}"));
            tracing::warn!(%file, mode, "other users may access the store; `chmod 600` restricts it to its owner");
        }
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// Tells files apart by device and inode, whatever their names.
#[cfg(unix)]
pub(super) mod identity {
    use std::collections::BTreeMap;
    use std::collections::btree_map::Entry;
    use std::fs::{self, File, Metadata, OpenOptions};
    use std::io;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;
    use std::sync::{Mutex, PoisonError};

    use crate::store::{StoreError, StoreResult};

    /// Device and inode.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(in crate::store::sqlite) struct Identity(u64, u64);

    impl Identity {
        pub(in crate::store::sqlite) fn of(file: &Metadata) -> Self {
            Identity(file.dev(), file.ino())
        }
    }

    /// The databases that are open in this process; a static, since POSIX locks belong to the whole process. The files are
    /// further descriptors of a database, recognised only after they were opened; they must not be closed before it.
    static OPEN: Mutex<BTreeMap<Identity, Vec<File>>> = Mutex::new(BTreeMap::new());

    /// Marks a database as open in this process until dropped.
    #[derive(Debug)]
    pub(in crate::store::sqlite) struct OpenInProcess(Identity);

    impl OpenInProcess {
        fn register(file: Identity) -> Option<Self> {
            match OPEN.lock().unwrap_or_else(PoisonError::into_inner).entry(file) {
                Entry::Occupied(_) => None,
                Entry::Vacant(free) => {
                    free.insert(Vec::new());
                    Some(OpenInProcess(file))
                }
            }
        }

        /// Registers a file that is already open. `None` if this process has it open as a database; then the descriptor is
        /// kept until that database is closed.
        pub(in crate::store::sqlite) fn register_file(file: File) -> io::Result<Option<(File, Self)>> {
            let identity = Identity::of(&file.metadata()?);
            if let Some(open_in_process) = Self::register(identity) {
                return Ok(Some((file, open_in_process)));
            }
            let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
            open.entry(identity).and_modify(|kept| kept.push(file));
            Ok(None)
        }
    }

    impl Drop for OpenInProcess {
        fn drop(&mut self) {
            OPEN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
        }
    }

    /// Opens a database, unless this process has it open. Opens it for writing, since on a layered file system (overlayfs)
    /// the file may get another inode when it is opened for writing.
    pub(super) fn open(path: &Path) -> io::Result<Option<(File, OpenInProcess)>> {
        let expected = Identity::of(&fs::metadata(path)?);
        let Some(open_in_process) = OpenInProcess::register(expected) else { return Ok(None) };
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let found = Identity::of(&file.metadata()?);
        if found == expected {
            return Ok(Some((file, open_in_process)));
        }
        // Opening for writing copied it (layered file system), or it was replaced in between.
        OpenInProcess::register_file(file)
    }

    /// SQLite finds the write-ahead log by the database's name. Opened by another name, the file would be read without it.
    pub(super) fn refuse_hard_links(file: &File, path: &Path) -> StoreResult<()> {
        let names = file.metadata().map_or(1, |file| file.nlink());
        if names < 2 {
            return Ok(());
        }
        Err(StoreError::unavailable(format!(
            "{} has {names} names (hard links), and its log is found by one of them only: remove the other names, or \
             make a copy (`cp`) and use that",
            path.display()
        )))
    }
}

/// Files cannot be identified on this system.
#[cfg(not(unix))]
mod identity {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::path::Path;

    use crate::store::StoreResult;

    #[derive(Debug)]
    pub(super) struct OpenInProcess;

    pub(super) fn open(path: &Path) -> io::Result<Option<(File, OpenInProcess)>> {
        Ok(Some((OpenOptions::new().read(true).write(true).open(path)?, OpenInProcess)))
    }

    pub(super) fn refuse_hard_links(_: &File, _: &Path) -> StoreResult<()> {
        Ok(())
    }
}
