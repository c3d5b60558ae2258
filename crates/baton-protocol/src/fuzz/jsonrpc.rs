//! The JSON-RPC envelope: for any input the answer must be readable by a client, with the client's id.

use serde::de::IgnoredAny;

use super::written;
use crate::ErrorKind;
use crate::generation::{AskedVersion, Generation, Generations, of_method};
use crate::wire::jsonrpc::{
    NoRequest, Response, parse_request, parse_response, write_error, write_request, write_result,
};

pub(super) fn check(bytes: &[u8]) {
    let error = match parse_request(bytes) {
        Ok(request) => {
            for version in ["", "1.0", "0.3", "0.1", "9"] {
                let asked = AskedVersion::read(Some(version), None);
                let _ = of_method(&request.method, &asked, Generations::ALL);
            }
            let params = request.params.unwrap_or("null");
            serde_json::from_str::<IgnoredAny>(params).expect("params are JSON");
            // The same request, written by our client, must be read as the same.
            let mut again = Vec::new();
            let Some(id) = &request.id else { return };
            write_request(&mut again, id, &request.method, |out| out.extend_from_slice(params.as_bytes()));
            let read = parse_request(&again).expect("a request written is a request read");
            assert_eq!((read.id.as_ref(), &read.method), (Some(id), &request.method));
            let result = written(|out| write_result(out, id, |out| out.extend_from_slice(b"{}")));
            let (answered, response) = parse_response(result.as_bytes()).expect("a result");
            assert_eq!(answered.as_ref(), Some(id).filter(|id| id.as_str() != "null"));
            assert!(matches!(response, Response::Result(raw) if raw == "{}"));
            None
        }
        Err(NoRequest { id, error }) => {
            assert!(id.is_none() || error.kind() == ErrorKind::InvalidRequest);
            let is_json =
                str::from_utf8(bytes).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
            let expected = if is_json { ErrorKind::InvalidRequest } else { ErrorKind::ParseError };
            assert_eq!(error.kind(), expected, "{error}");
            assert!(error.to_string().len() < 1000, "an error as long as the request");
            Some(error)
        }
    };
    for generation in [Generation::V1, Generation::V0_3, Generation::V0_1] {
        if let Some(error) = &error {
            let text = written(|out| write_error(out, None, generation, error));
            parse_response(text.as_bytes()).expect("an error is a response");
        }
    }
    // The client's side: the input as an agent's answer.
    if let Ok((id, _)) = parse_response(bytes) {
        assert!(id.is_none_or(|id| id.as_str().len() < 300));
    }
}
