//! A request as a `curl` line, to reproduce it.

use super::evidence::Sent;

/// Secrets are already masked in the evidence; the user has to insert them.
pub fn line(sent: &Sent) -> String {
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

/// Quotes text for a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
