//! HTTP+JSON: maps a method and a path to an operation, reads the query and the body, and writes errors. Shared by
//! server and client, for 1.0 and for 0.3 (under `/v1`); 0.1 has no such binding.
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
pub use self::path::{
    HEALTH_PATH, METRICS_PATH, READY_PATH, Route, WrongMethod, generation_at, is_tenant, path_template, route,
};
pub use self::percent::{decode_form, encode_form};
pub use self::query::version_in;
pub use self::request::{HttpRequest, fits_in_path, path_of};
