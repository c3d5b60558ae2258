//! `grpc.health.v1`: whether a server takes calls.

use bytes::Bytes;
use prost::Message as _;

use self::messages::health_check_response::ServingStatus;
use self::messages::{HealthCheckRequest, HealthCheckResponse};
use super::decode;
use crate::error::Error;
use crate::wire::read::Subject;

#[allow(clippy::all, dead_code, missing_docs, unnameable_types, unreachable_pub)]
mod messages {
    include!("generated/health.rs");
}

/// The full name of the service.
pub const HEALTH_SERVICE: &str = "grpc.health.v1.Health";

/// What an answer says of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serving {
    Yes,
    No,
    /// The server has no such service. Only `Watch` answers this.
    Unknown,
}

/// The service that is asked about; empty for the server as a whole.
pub fn read_health_request(message: Bytes) -> Result<String, Error> {
    Ok(decode::<HealthCheckRequest>(message, Subject::PARAMS)?.service)
}

pub fn write_health(serving: Serving) -> Vec<u8> {
    let status = match serving {
        Serving::Yes => ServingStatus::Serving,
        Serving::No => ServingStatus::NotServing,
        Serving::Unknown => ServingStatus::ServiceUnknown,
    };
    HealthCheckResponse { status: status.into() }.encode_to_vec()
}
