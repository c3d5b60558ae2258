//! A request as a `curl` line, or a `grpcurl` line, to reproduce it.

use super::evidence::Sent;

/// Secrets are already masked in the evidence; the user has to insert them.
pub fn line(sent: &Sent) -> String {
    if let Some(line) = grpcurl(sent) {
        return line;
    }
    let mut line = "curl -sS".to_owned();
    if sent.method != "GET" && !(sent.method == "POST" && sent.body.is_some()) {
        line += &format!(" -X {}", sent.method);
    }
    line += &format!(" {}", quoted(&sent.url));
    for (name, value) in &sent.headers {
        line += &format!(" -H {}", quoted(&format!("{name}: {value}")));
    }
    if let Some(body) = &sent.body {
        line += &format!(" --data-binary {}", quoted(body));
    }
    line
}

/// For calls of gRPC, whose body is shown as JSON. The tool asks the agent for the messages by reflection; without that
/// it needs the `.proto` file.
fn grpcurl(sent: &Sent) -> Option<String> {
    let own = ["content-type", "te"];
    let is_own = |name: &str| own.iter().any(|known| name.eq_ignore_ascii_case(known));
    sent.headers.iter().find(|(name, value)| is_own(name) && value == "application/grpc")?;
    let (scheme, rest) = sent.url.split_once("://")?;
    let (host, method) = rest.split_once('/')?;
    let mut line = "grpcurl".to_owned();
    if scheme == "http" {
        line += " -plaintext";
    }
    for (name, value) in sent.headers.iter().filter(|(name, _)| !is_own(name)) {
        line += &format!(" -H {}", quoted(&format!("{name}: {value}")));
    }
    if let Some(body) = &sent.body {
        line += &format!(" -d {}", quoted(body));
    }
    Some(format!("{line} {host} {method}"))
}

/// Quotes text for a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_grpc_is_one_for_grpcurl() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let sent = Sent {
            method: "POST".to_owned(),
            url: "http://h:1/lf.a2a.v1.A2AService/GetTask".to_owned(),
            headers: vec![header("Content-Type", "application/grpc"), header("A2A-Version", "1.0")],
            body: Some("{}".to_owned()),
        };
        let line = "grpcurl -plaintext -H 'A2A-Version: 1.0' -d '{}' h:1 lf.a2a.v1.A2AService/GetTask";
        assert_eq!(super::line(&sent), line);
    }

    #[test]
    fn the_line_can_be_pasted() {
        let sent = |method: &str, body: Option<&str>| Sent {
            method: method.to_owned(),
            url: "http://h/a?b=c&d".to_owned(),
            headers: vec![("A2A-Version".to_owned(), "1.0".to_owned())],
            body: body.map(str::to_owned),
        };
        for (sent, line) in [
            (sent("GET", None), "curl -sS 'http://h/a?b=c&d' -H 'A2A-Version: 1.0'"),
            (sent("DELETE", None), "curl -sS -X DELETE 'http://h/a?b=c&d' -H 'A2A-Version: 1.0'"),
            (sent("POST", None), "curl -sS -X POST 'http://h/a?b=c&d' -H 'A2A-Version: 1.0'"),
            (
                sent("POST", Some("it's")),
                "curl -sS 'http://h/a?b=c&d' -H 'A2A-Version: 1.0' --data-binary 'it'\\''s'",
            ),
        ] {
            assert_eq!(super::line(&sent), line);
        }
    }
}
