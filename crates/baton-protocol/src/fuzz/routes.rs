//! HTTP+JSON: the input is `METHOD path?query`, and on the next lines the body. A call that can be read is written by
//! the client's code and must be read as the same.

use super::json_text::assert_well_formed;
use crate::generation::{AskedVersion, Generation};
use crate::wire::http_json::{Route, WrongMethod, call_of, is_tenant, path_of, route, version_in};

pub(super) fn check(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let (line, body) = text.split_once('\n').map_or((text, None), |(line, body)| (line, Some(body)));
    let (method, target) = line.split_once(' ').unwrap_or(("GET", line));
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    if let Some(query) = query {
        let _ = version_in(query);
    }
    for asked in [AskedVersion::Unsaid, Generation::V1.into_asked(), Generation::V0_3.into_asked()] {
        match find(method, path, &asked) {
            Err(WrongMethod { allow }) => {
                for method in allow.split(", ") {
                    assert!(
                        matches!(find(method, path, &asked), Ok(Some(_))),
                        "{method} {path} is not allowed"
                    );
                }
            }
            Ok(None) => {}
            Ok(Some(found)) => understood(&found, query, body),
        }
    }
}

fn find(method: &str, path: &str, asked: &AskedVersion) -> Result<Option<Route>, WrongMethod> {
    route(method, path, asked, |tenant| tenant == "v1")
}

fn understood(found: &Route, query: Option<&str>, body: Option<&str>) {
    let decoded = match call_of(found, query, body) {
        Ok(decoded) => decoded,
        Err(error) => {
            assert!(error.to_string().len() < 2000, "an error as long as the request");
            return;
        }
    };
    assert_eq!(decoded.call.operation(), found.operation);
    // A tenant from a query or a body may be any text; one in a path may not.
    if decoded.tenant.as_deref().is_some_and(|tenant| !is_tenant(tenant)) {
        return;
    }
    let Some(request) = path_of(found.generation, decoded.tenant.as_deref(), &decoded.call) else { return };
    let target = request.path_and_query.as_str();
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let again = find(request.method, path, &found.generation.into_asked());
    let Ok(Some(again)) = again else { panic!("{} {path}: {again:?}", request.method) };
    let body = request.body.map(|body| String::from_utf8(body).expect("codecs write text"));
    if let Some(body) = &body {
        assert_well_formed(body);
    }
    let read = call_of(&again, query, body.as_deref()).expect("a call written is a call read");
    assert_eq!(read, decoded, "{} {target} {body:?}", request.method);
}

impl Generation {
    fn into_asked(self) -> AskedVersion {
        AskedVersion::Known(self)
    }
}
