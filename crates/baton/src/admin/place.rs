//! Where the socket is.

use std::path::{Path, PathBuf};

use crate::config::{AdminSocket, Config, StoreUrl};

/// The socket in the folder beside the store.
const NAME: &str = "socket";

/// Most bytes of a socket's path: 104 on macOS and the BSDs, 108 on Linux, with a zero byte at the end.
const LONGEST: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// Why there is no socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoSocket {
    /// The configuration switches it off.
    Off,
    /// A store in memory has no place beside it.
    Memory,
    TooLong(PathBuf),
}

impl NoSocket {
    pub(crate) fn reason(&self) -> String {
        match self {
            NoSocket::Off => "it is switched off (admin.socket = \"off\")".to_owned(),
            NoSocket::Memory => "a store in memory has none by itself; set admin.socket to a path".to_owned(),
            NoSocket::TooLong(path) => format!(
                "the path {} has more than the {LONGEST} bytes that a socket may have; set admin.socket to a shorter one",
                path.display()
            ),
        }
    }
}

/// The path of the socket; `store` is the one in use.
pub(crate) fn socket_path(config: &Config, store: &StoreUrl) -> Result<PathBuf, NoSocket> {
    let path = match (&*config.admin.socket, store) {
        (AdminSocket::Off, _) => return Err(NoSocket::Off),
        (AdminSocket::At(path), _) => path.clone(),
        (AdminSocket::Auto, StoreUrl::Memory) => return Err(NoSocket::Memory),
        (AdminSocket::Auto, StoreUrl::Sqlite(file)) => beside(file),
    };
    if path.as_os_str().len() > LONGEST { Err(NoSocket::TooLong(path)) } else { Ok(path) }
}

/// Why `serve` would refuse the place that the configuration names. Without a socket beside the store it runs all the same.
#[cfg(unix)]
pub(crate) fn refused_socket(config: &Config) -> Option<String> {
    let AdminSocket::At(_) = &*config.admin.socket else { return None };
    match socket_path(config, &config.store.url) {
        Ok(path) => super::listener::check(&path).err(),
        Err(none) => Some(none.reason()),
    }
}

fn beside(file: &Path) -> PathBuf {
    let mut folder = file.as_os_str().to_owned();
    folder.push(".admin");
    Path::new(&folder).join(NAME)
}
