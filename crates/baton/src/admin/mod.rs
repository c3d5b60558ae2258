//! Administration of a running server: a Unix socket that speaks HTTP with JSON, for `baton key`.
//!
//! A store in a file belongs to one process at a time, so a command cannot change its keys while a server runs; the server
//! does it. The socket is in a folder that only the server's user can enter, has mode 0600, and the server compares the
//! user of each peer with its own.
//!
//! | call | answer |
//! |---|---|
//! | `GET /keys` | `{"keys": […]}` |
//! | `POST /keys` with `{"name", "owner", "scopes", "expires"}` | 201, `{"key": …, "secret": "bk_…", "enforced": true, "url": …}` |
//! | `DELETE /keys/{id or name}` | the revoked key |
//!
//! A call that fails answers `{"error": "…"}`.

mod calls;
#[cfg(unix)]
mod listener;
mod place;

pub(crate) use calls::{Issued, Key, Listed, NewKeyCall, Refused, now};
#[cfg(unix)]
pub(crate) use listener::{AdminServer, bind};
pub(crate) use place::{NoSocket, socket_path};
