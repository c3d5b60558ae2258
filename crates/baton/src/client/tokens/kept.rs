//! The token of a login as several processes of one user share it: one renews it, the others take the new one.

use std::any::Any;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use baton_client::{Token, TokenStore};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Login, Stored, file_name, load, make_private_folder, open_private, save};
use crate::client::secrets::Secrets;
use crate::output;

/// The token of one agent.
pub(crate) struct Kept {
    pub(crate) folder: PathBuf,
    pub(crate) login: Login,
    /// Is told of new tokens, which must not be shown.
    pub(crate) secrets: Secrets,
}

/// Taken while this process renews a token.
static RENEWING: Semaphore = Semaphore::const_new(1);

/// Waits until a renewal that is under way has kept its token: the server may have replaced the old one already. Not for
/// long, since the user wants to leave.
pub(crate) async fn settle() {
    const PATIENCE: Duration = Duration::from_secs(10);
    let _ = tokio::time::timeout(PATIENCE, RENEWING.acquire()).await;
}

/// Held while a token is renewed. The system unlocks the file of a process that is killed.
struct Renewing {
    _file: Option<fs::File>,
    _here: SemaphorePermit<'static>,
}

impl Kept {
    /// Beside the token, which is replaced and so cannot be locked itself.
    fn open_lock(&self) -> io::Result<fs::File> {
        let folder = self.folder.join("tokens");
        make_private_folder(&folder)?;
        open_private(&folder.join(format!(".{}.lock", file_name(&self.login.agent))))
    }
}

impl TokenStore for Kept {
    fn try_lock(&self) -> Option<Box<dyn Any + Send>> {
        let here = RENEWING.try_acquire().ok()?;
        let file = match self.open_lock().map(|file| (file.try_lock(), file)) {
            Ok((Ok(()), file)) => Some(file),
            Ok((Err(fs::TryLockError::WouldBlock), _)) => return None,
            // Where files cannot be locked, the token is renewed nevertheless.
            Ok((Err(fs::TryLockError::Error(_)), _)) | Err(_) => None,
        };
        Some(Box::new(Renewing { _file: file, _here: here }))
    }

    fn load(&self) -> Option<Token> {
        let token = load(&self.folder, &self.login.agent)?.token()?;
        self.secrets.add(token.access.clone());
        Some(token)
    }

    fn save(&self, token: &Token) {
        self.secrets.add(token.access.clone());
        if let Err(error) = save(&self.folder, &Stored::of(&self.login, token)) {
            output::warn(&format!("the renewed token could not be kept: {error}"));
        }
    }
}
