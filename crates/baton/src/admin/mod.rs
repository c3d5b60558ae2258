//! Administration of a running server: a Unix socket that speaks HTTP with JSON, for `baton key`, `baton push` and an
//! operator's own tools.
//!
//! A store in a file belongs to one process at a time, so a command cannot change its keys or webhooks while a server runs; the
//! server does it. The socket is in a folder that only the server's user can enter, has mode 0600, and the server compares the
//! user of each peer with its own.
//!
//! | call | answer |
//! |---|---|
//! | `GET /keys` | `{"keys": […]}` |
//! | `POST /keys` with `{"name", "owner", "scopes", "expires"}` | 201, `{"key": …, "secret": "bk_…", "enforced": true, "url": …}` |
//! | `DELETE /keys/{id or name}` | the revoked key |
//! | `GET /webhooks`, with `?state=open`, `failing` or `failed`, `owner`, `task`, `host` | `{"webhooks": […], "delivering": true, "next": …}`; the next page is `?after=` and `next` |
//! | `GET /webhooks/{name}`, with `?owner`, `agent`, `tenant` | the webhook; its name is `TASK%2FID`, or `TASK` if the task has one |
//! | `POST /webhooks/{name}/replay` | `{"results": [{"webhook": …, "done": …}], "delivering": true}` |
//! | `POST /webhooks/{name}/disable` | the webhook |
//! | `POST /failed-webhooks/replay`, with `?owner`, `task`, `host`, `after` | `{"results": [{"webhook": …, "done" or "error": …}], "next": …}` |
//! | `POST /tasks/{id}/authorized`, with `?owner`, `agent`, `tenant`; the body is a text for the agent | `{"task": "…"}`: the task goes on that waited for authorization |
//!
//! A call that fails answers `{"error": "…"}`.

mod calls;
#[cfg(unix)]
mod listener;
mod place;
mod reach;
#[cfg(unix)]
mod task_routes;
#[cfg(unix)]
mod webhook_routes;
pub(crate) mod webhooks;

pub(crate) use calls::{Issued, Key, Listed, NewKeyCall, Refused, now};
#[cfg(unix)]
pub(crate) use listener::{AdminServer, bind};
#[cfg(unix)]
pub(crate) use place::refused_socket;
pub(crate) use place::{NoSocket, socket_path};
#[cfg(unix)]
pub(crate) use reach::Socket;
pub(crate) use reach::{Reach, reach, server_elsewhere};
