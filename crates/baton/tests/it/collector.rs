//! A receiver of spans: OTLP over HTTP in JSON, just enough of it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// Longer than any healthy step takes on a busy machine.
const HANG: Duration = Duration::from_secs(60);

pub(crate) struct Collector {
    address: SocketAddr,
    received: Arc<(Mutex<Received>, Condvar)>,
}

#[derive(Default)]
struct Received {
    /// All that came in, heads and bodies.
    text: String,
    spans: Vec<Span>,
}

#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) service: String,
    pub(crate) name: String,
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty for a root.
    pub(crate) parent: String,
    /// 2 is a server's.
    pub(crate) kind: u64,
    pub(crate) start: u64,
    pub(crate) attributes: BTreeMap<String, Value>,
    /// Trace and span.
    pub(crate) links: Vec<(String, String)>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new((Mutex::new(Received::default()), Condvar::new()));
        let kept = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                // A connection that breaks is its sender's matter.
                thread::spawn(move || take(stream, &kept));
            }
        });
        Collector { address, received }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that was sent, as it came.
    pub(crate) fn text(&self) -> String {
        self.received.0.lock().unwrap().text.clone()
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        self.received.0.lock().unwrap().spans.clone()
    }

    /// Waits until the spans are as a test wants them.
    pub(crate) fn until(&self, what: &str, wanted: impl Fn(&[Span]) -> bool) -> Vec<Span> {
        let (received, came) = &*self.received;
        let waited = came.wait_timeout_while(received.lock().unwrap(), HANG, |now| !wanted(&now.spans));
        let (received, late) = waited.unwrap();
        assert!(!late.timed_out(), "no {what} among {:#?}", received.spans);
        received.spans.clone()
    }
}

/// Requests of one connection, until it closes.
fn take(stream: TcpStream, kept: &(Mutex<Received>, Condvar)) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut writer = stream;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let lengths = head.lines().filter_map(|line| line.split_once(':'));
        let mut lengths = lengths.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let mut body = vec![0; lengths.next()?.1.trim().parse().ok()?];
        reader.read_exact(&mut body).ok()?;
        assert!(head.starts_with("POST /v1/traces "), "{head}");
        let text = String::from_utf8(body).unwrap();
        let spans = spans(&serde_json::from_str(&text).unwrap());
        {
            let mut received = kept.0.lock().unwrap();
            received.text += &format!("{head}{text}\n");
            received.spans.extend(spans);
            kept.1.notify_all();
        }
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        writer.write_all(answer.as_bytes()).ok()?;
    }
}

fn spans(request: &Value) -> Vec<Span> {
    let list = |value: &Value, member: &str| value[member].as_array().cloned().unwrap_or_default();
    let mut all = Vec::new();
    for resource in list(request, "resourceSpans") {
        let about = attributes(&resource["resource"]);
        for scope in list(&resource, "scopeSpans") {
            for span in list(&scope, "spans") {
                let text = |member: &str| span[member].as_str().unwrap_or_default().to_owned();
                let link = |link: &Value| {
                    let text = |member: &str| link[member].as_str().unwrap_or_default().to_owned();
                    (text("traceId"), text("spanId"))
                };
                all.push(Span {
                    service: about["service.name"].as_str().unwrap().to_owned(),
                    name: text("name"),
                    trace: text("traceId"),
                    id: text("spanId"),
                    parent: text("parentSpanId"),
                    kind: span["kind"].as_u64().unwrap(),
                    start: text("startTimeUnixNano").parse().unwrap(),
                    attributes: attributes(&span),
                    links: list(&span, "links").iter().map(link).collect(),
                });
            }
        }
    }
    all
}

/// By name, whatever the type.
fn attributes(holder: &Value) -> BTreeMap<String, Value> {
    let pairs = holder["attributes"].as_array().cloned().unwrap_or_default();
    let pair = |pair: &Value| {
        let value = pair["value"].as_object().unwrap().values().next().unwrap().clone();
        (pair["key"].as_str().unwrap().to_owned(), value)
    };
    pairs.iter().map(pair).collect()
}
