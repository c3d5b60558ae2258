//! S3: a receiver on the internet that sends the server on to internal addresses.

use std::collections::HashMap;

use futures_util::StreamExt as _;
use futures_util::stream::iter;

use super::faces::{Caller, DIALECTS};
use super::internal::{LINK_LOCAL, V4, V6};
use super::namespace::{FIGURES, in_own_network};
use super::stage::{Stage, until_failed};
use crate::faults::runs::say;

const CODES: [u16; 5] = [301, 302, 303, 307, 308];

/// Names that lead to internal addresses, as any name does that the name server has not been told.
const NAMED: [&str; 3] = ["moved.example", "localhost", "metadata.google.internal"];

/// Calls at the same time.
const AT_ONCE: usize = 8;

#[test]
fn s14_redirects_to_internal_addresses_are_not_followed() {
    in_own_network(s14_redirects_to_internal_addresses_are_not_followed, story);
}

async fn story() {
    let stage = Stage::set(HashMap::new());
    stage.sink.sees_all_of(&[V4, V6].concat()).await;
    let server = stage.serve("");
    let caller = Caller::of(&server);
    let v6 = V6.iter().chain([&LINK_LOCAL]).map(|address| format!("[{address}]"));
    let hosts: Vec<String> = V4.iter().chain(&NAMED).map(|host| (*host).to_owned()).chain(v6).collect();
    let places = hosts.iter().flat_map(|host| [format!("https://{host}:8443/x"), format!("http://{host}/")]);
    let paths: Vec<String> =
        places.flat_map(|place| CODES.map(|code| format!("/redirect/{code}/{place}"))).collect();
    let sending = paths.iter().enumerate().map(|(index, path)| {
        let (caller, url) = (&caller, format!("https://r{index}.sink.example{path}"));
        async move {
            let answer = caller.send(DIALECTS[index % DIALECTS.len()], "echo", &url).await;
            assert_eq!(answer.refusal(), None, "{url}");
        }
    });
    iter(sending).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    // Each was answered with its redirect, and tried again: a redirect is a failure.
    let attempts = until_failed(&server, 2 * paths.len()).await;
    stage.sink.assert_no_hits().await;
    let came = stage.sink.deliveries();
    for path in &paths {
        assert!(came.iter().any(|delivery| delivery.path == *path), "{path} was never asked for");
    }
    for name in NAMED {
        assert_eq!(stage.names.asked(name), 0, "{name} was looked up");
    }
    let log = server.log();
    for code in CODES {
        let record = format!("kind=\"status\" why=\"{code}\"");
        assert!(log.contains(&record), "no {record}:\n{log}");
    }
    assert!(server.terminate().success());
    stage.sink.assert_no_hits().await;
    say(&format!(
        "{FIGURES}: redirects {}; attempts: {attempts}; connections to their targets: 0",
        paths.len()
    ));
}
