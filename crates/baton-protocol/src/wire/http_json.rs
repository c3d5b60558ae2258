//! HTTP+JSON: which operation a method and a path mean, what the query and the body add, what an error looks like.
//! Shared by server and client, for 1.0 and for 0.3 (under `/v1`); 0.1 has no such binding.
//!
//! Bodies are the JSON of the generation's codec: of 1.0 the same as in JSON-RPC, of 0.3 its ProtoJSON.

mod call;
mod error;
mod path;
mod percent;
mod query;
mod request;

pub use self::call::call_of;
pub use self::error::{http_status, write_error};
pub use self::path::{Route, WrongMethod, is_tenant, route};
pub use self::query::version_in;
pub use self::request::{HttpRequest, path_of};
