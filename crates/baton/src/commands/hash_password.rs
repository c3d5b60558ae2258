//! `baton hash-password`: the stored form of a password, for the users of `[auth.basic]` and `[auth.digest]`.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use baton_server::auth::{digest_password, hash_password};
use secrecy::ExposeSecret as _;

use crate::exit::Failure;

/// Longest password that `[auth.basic]` can be told to accept.
const MOST_BYTES: usize = 8192;

#[derive(Debug, clap::Args)]
pub(crate) struct HashPassword {
    /// For HTTP digest authentication: the user's name, which is part of the stored form. Without it the result is an
    /// argon2id hash for HTTP basic authentication.
    #[arg(long, value_name = "USER")]
    digest: Option<String>,

    /// The realm of `[auth.digest]`, which is part of the stored form.
    #[arg(long, default_value = "baton", requires = "digest")]
    realm: String,
}

pub(crate) fn run(args: &HashPassword) -> Result<(), Failure> {
    let password = read().map_err(|error| Failure::failed(format!("no password: {error}")))?;
    if password.is_empty() || password.len() > MOST_BYTES {
        return Err(Failure::usage(format!(
            "expected a password of 1 to {MOST_BYTES} bytes on the standard input"
        )));
    }
    let stored = match &args.digest {
        Some(user) if user.contains(':') => return Err(Failure::usage("a user's name has no colon")),
        Some(user) => digest_password(user, &args.realm, &password.into()).expose_secret().to_owned(),
        None => hash_password(&password.into())
            .map_err(|error| Failure::failed(format!("the password {error}")))?,
    };
    let mut stdout = io::stdout().lock();
    let written = writeln!(stdout, "{stored}").and_then(|()| stdout.flush());
    written.map_err(|error| Failure::failed(format!("cannot write: {error}")))
}

/// The first line of the standard input. On a terminal it is asked for and not shown.
fn read() -> io::Result<String> {
    let stdin = io::stdin();
    let mut line = String::new();
    if stdin.is_terminal() {
        write!(io::stderr(), "Password: ")?;
        let hidden = Hidden::new();
        stdin.lock().read_line(&mut line)?;
        drop(hidden);
        writeln!(io::stderr())?;
    } else {
        stdin.lock().read_line(&mut line)?;
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Switches the terminal's echo off until it is dropped.
struct Hidden(#[cfg(unix)] Option<rustix::termios::Termios>);

#[cfg(unix)]
impl Hidden {
    fn new() -> Self {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let stdin = io::stdin();
        let Ok(before) = tcgetattr(&stdin) else { return Hidden(None) };
        let mut without = before.clone();
        without.local_modes.remove(LocalModes::ECHO);
        Hidden(tcsetattr(&stdin, OptionalActions::Flush, &without).is_ok().then_some(before))
    }
}

#[cfg(unix)]
impl Drop for Hidden {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        if let Some(before) = &self.0 {
            // If the terminal is gone, nothing is left to restore.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

#[cfg(not(unix))]
impl Hidden {
    fn new() -> Self {
        Hidden()
    }
}
