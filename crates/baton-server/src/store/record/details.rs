//! The details of a request, as a message of a user keeps them.

use baton_protocol::domain::{ActiveExtension, JsonObject, SendDetails};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::push_json;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DetailsJson<'a> {
    #[serde(default)]
    accepted_output_modes: Vec<String>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(default, borrow)]
    extensions: Vec<ExtensionJson<'a>>,
}

#[derive(Deserialize)]
struct ExtensionJson<'a> {
    uri: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// Details that say nothing are not written.
pub(super) fn write_details(out: &mut Vec<u8>, details: &SendDetails) {
    let mut before = b'{';
    if !details.accepted_output_modes.is_empty() {
        out.extend_from_slice(b"{\"acceptedOutputModes\":");
        push_json(out, &details.accepted_output_modes);
        before = b',';
    }
    if let Some(metadata) = &details.metadata {
        out.push(before);
        out.extend_from_slice(b"\"metadata\":");
        out.extend_from_slice(metadata.as_str().as_bytes());
        before = b',';
    }
    for (at, extension) in details.extensions.iter().enumerate() {
        if at == 0 {
            out.push(before);
            out.extend_from_slice(b"\"extensions\":[");
        } else {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"uri\":");
        push_json(out, &extension.uri);
        if let Some(params) = &extension.params {
            out.extend_from_slice(b",\"params\":");
            out.extend_from_slice(params.as_str().as_bytes());
        }
        out.push(b'}');
    }
    if !details.extensions.is_empty() {
        out.push(b']');
    }
    out.push(b'}');
}

pub(super) fn read_details(json: &str) -> Result<SendDetails, String> {
    let details: DetailsJson<'_> = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let object = |raw: Option<&RawValue>| {
        let object = raw.map(|raw| JsonObject::parse(raw.get())).transpose();
        object.map_err(|error| error.to_string())
    };
    let extensions = details.extensions.into_iter().map(|ExtensionJson { uri, params }| {
        let params = object(params)?;
        Ok::<_, String>(ActiveExtension { uri, params })
    });
    let (metadata, extensions) = (object(details.metadata)?, extensions.collect::<Result<_, _>>()?);
    Ok(SendDetails { accepted_output_modes: details.accepted_output_modes, metadata, extensions })
}
