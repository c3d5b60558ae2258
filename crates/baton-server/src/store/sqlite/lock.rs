//! One process at a time: what keeps others out of a database.
//!
//! The lock is on the database file itself (`flock` on a descriptor of our own), so that no other name of the file, a
//! symbolic link or a lock file that somebody removed, leads round it. POSIX drops all of a process's locks on a file,
//! SQLite's among them, as soon as *any* descriptor of that file is closed. So ours is opened before SQLite's and closed
//! after them, and a file that this process has open already is refused before another descriptor of it is made.
//!
//! The `.lock` file beside the database is for older versions, which know nothing else, and for systems other than Linux,
//! where `flock` on the database would lock out SQLite itself.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::{room, with_suffix};
use crate::store::{StoreError, StoreResult};

/// Between two tries for a lock that somebody holds.
const LOOK: Duration = Duration::from_millis(20);

/// Held as long as the store is open.
#[derive(Debug)]
pub(super) struct Lock {
    // Dropped in this order: the process may open the file again only when the descriptor is closed.
    database: File,
    _open_here: identity::OpenHere,
    _names: Vec<File>,
    real: PathBuf,
    /// The lock files that were not there before.
    made: Vec<PathBuf>,
}

impl Lock {
    /// Makes folder and file as needed and takes the lock. A process that is just dying may hold it for a moment after
    /// it was killed, so a lock that is taken is waited for, for as long as `patience` says.
    pub(super) fn take(path: &Path, patience: Duration) -> StoreResult<Self> {
        let folder = folder_of(path);
        create_folder(folder).map_err(|error| failed(folder, &error))?;
        let until = Instant::now() + patience;
        loop {
            if let Some(lock) = Self::try_take(path)? {
                return Ok(lock);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(StoreError::Unavailable(format!("another Baton runs on {}", path.display())));
            }
            thread::sleep(LOOK.min(left));
        }
    }

    /// `None` when somebody else has it.
    fn try_take(path: &Path) -> StoreResult<Option<Self>> {
        let folder = folder_of(path);
        let Some(name) = path.file_name() else {
            return Err(StoreError::Unavailable(format!("{}: this is no file name", path.display())));
        };
        let as_given = fs::canonicalize(folder).map_err(|error| failed(folder, &error))?.join(name);
        let mut made = Vec::new();
        let Some(first) = lock_file(&as_given, &mut made)? else { return Ok(None) };
        let mut names = vec![first];
        let is_new = !path.exists();
        if is_new {
            // Through a link whose target is not there yet, too.
            let made =
                owner_only(&mut OpenOptions::new()).write(true).create(true).truncate(false).open(path);
            made.map_err(|error| failed(path, &error))?;
        }
        let real = fs::canonicalize(path).map_err(|error| failed(path, &error))?;
        if real != as_given {
            let Some(second) = lock_file(&real, &mut made)? else { return Ok(None) };
            names.push(second);
        }
        if is_new {
            // The file's name must be as durable as what will be in it.
            let folder = folder_of(&real);
            sync_names(folder).map_err(|error| failed(folder, &error))?;
        }
        let Some((database, open_here)) = identity::open(&real).map_err(|error| failed(&real, &error))?
        else {
            return Ok(None);
        };
        identity::refuse_several_names(&database, &real)?;
        // Elsewhere it would be in the way of SQLite's own locks.
        if cfg!(target_os = "linux") && !try_lock(&database, &real)? {
            return Ok(None);
        }
        if is_new {
            made.clear();
        }
        Ok(Some(Lock { database, _open_here: open_here, _names: names, real, made }))
    }

    /// To be called when the file turns out not to be a store: nothing of ours stays beside another program's file.
    pub(super) fn leave_no_file(&self) {
        for path in &self.made {
            // If it cannot be removed, it does no harm.
            let _ = fs::remove_file(path);
        }
    }

    /// Our own descriptor.
    pub(super) fn database(&self) -> &File {
        &self.database
    }

    /// The path without symbolic links: SQLite's other files are beside it.
    pub(super) fn real_path(&self) -> &Path {
        &self.real
    }
}

fn failed(what: &Path, error: &std::io::Error) -> StoreError {
    let text = format!("{}: {error}", what.display());
    if room::is_full(error) { StoreError::Full(text) } else { StoreError::Unavailable(text) }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The lock file beside a database, locked; `None` when somebody else has it.
fn lock_file(database: &Path, made: &mut Vec<PathBuf>) -> StoreResult<Option<File>> {
    let path = with_suffix(database, ".lock");
    let is_new = !path.exists();
    let file = owner_only(&mut OpenOptions::new()).create(true).append(true).open(&path);
    let file = file.map_err(|error| failed(&path, &error))?;
    let locked = try_lock(&file, &path)?;
    if is_new {
        made.push(path);
    }
    Ok(locked.then_some(file))
}

fn try_lock(file: &File, path: &Path) -> StoreResult<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => Ok(false),
        Err(TryLockError::Error(error)) => Err(failed(path, &error)),
    }
}

/// The store holds secrets and what people say, so only its owner may enter what is made for it.
fn create_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let made: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    builder.create(folder)?;
    // A synced file in a folder whose own name is not synced is gone with the folder.
    made.into_iter().filter_map(Path::parent).try_for_each(sync_names)
}

/// The names in a folder become as durable as what is behind them.
fn sync_names(folder: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        File::open(folder)?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// New files are the owner's alone. SQLite gives its log files the mode of the database.
pub(super) fn owner_only(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// A mode that somebody chose is not changed: it may be there for a backup.
pub(super) fn warn_if_others_may_read(path: &Path) {
    #[cfg(unix)]
    if let Ok(file) = fs::metadata(path) {
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o777;
        if mode & 0o077 != 0 {
            let (file, mode) = (path.display(), format!("{mode:o}"));
            tracing::warn!(%file, mode, "others may read the store; `chmod 600` keeps it to its owner");
        }
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// Which file it is, whatever it is called.
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

    /// The databases that are open in this process: as the locks they protect, a matter of the whole process. With each,
    /// descriptors that turned out to be of it too late, and that must not be closed before it is.
    static OPEN: Mutex<BTreeMap<Identity, Vec<File>>> = Mutex::new(BTreeMap::new());

    /// Notes that a database is open here, until it is dropped.
    #[derive(Debug)]
    pub(in crate::store::sqlite) struct OpenHere(Identity);

    impl OpenHere {
        fn enter(file: Identity) -> Option<Self> {
            match OPEN.lock().unwrap_or_else(PoisonError::into_inner).entry(file) {
                Entry::Occupied(_) => None,
                Entry::Vacant(free) => {
                    free.insert(Vec::new());
                    Some(OpenHere(file))
                }
            }
        }

        /// The same for a file that is open now. If this process has it open already, the descriptor is kept with it.
        pub(in crate::store::sqlite) fn enter_with(file: File) -> io::Result<Option<(File, Self)>> {
            let identity = Identity::of(&file.metadata()?);
            if let Some(open_here) = Self::enter(identity) {
                return Ok(Some((file, open_here)));
            }
            let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
            open.entry(identity).and_modify(|kept| kept.push(file));
            Ok(None)
        }
    }

    impl Drop for OpenHere {
        fn drop(&mut self) {
            OPEN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
        }
    }

    /// Opens a database, unless this process has it open. For writing: on a layered file system the file that is read
    /// is another one than the file that is written.
    pub(super) fn open(path: &Path) -> io::Result<Option<(File, OpenHere)>> {
        let expected = Identity::of(&fs::metadata(path)?);
        let Some(open_here) = OpenHere::enter(expected) else { return Ok(None) };
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let found = Identity::of(&file.metadata()?);
        if found == expected {
            return Ok(Some((file, open_here)));
        }
        // Writing made another file of it, or somebody replaced it this moment.
        OpenHere::enter_with(file)
    }

    /// SQLite finds the log by the database's name. Opened by another name, the file would be read without its log.
    pub(super) fn refuse_several_names(file: &File, path: &Path) -> StoreResult<()> {
        let names = file.metadata().map_or(1, |file| file.nlink());
        if names < 2 {
            return Ok(());
        }
        Err(StoreError::Unavailable(format!(
            "{} has {names} names (hard links), and its log is found by one of them only: remove the other names, or \
             make a copy (`cp`) and use that",
            path.display()
        )))
    }
}

/// Files have no identity that could be asked for here.
#[cfg(not(unix))]
mod identity {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::path::Path;

    use crate::store::StoreResult;

    #[derive(Debug)]
    pub(super) struct OpenHere;

    pub(super) fn open(path: &Path) -> io::Result<Option<(File, OpenHere)>> {
        Ok(Some((OpenOptions::new().read(true).write(true).open(path)?, OpenHere)))
    }

    pub(super) fn refuse_several_names(_: &File, _: &Path) -> StoreResult<()> {
        Ok(())
    }
}
