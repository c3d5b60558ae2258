//! Ambiguous and invalid requests: name, bytes, and expected status.

pub(crate) type Case = (String, Vec<u8>, u16);

const LINE: &[u8] = b"POST / HTTP/1.1\r\n";
const HOST: &[u8] = b"Host: localhost\r\n";
const TYPE: &[u8] = b"Content-Type: application/json\r\nA2A-Version: 1.0\r\n";

pub(crate) fn corpus() -> Vec<Case> {
    let mut all = Vec::new();
    all.extend(headers("length", 400, LENGTHS));
    all.extend(headers("encoding", 400, ENCODINGS));
    all.extend(headers("name", 400, NAMES));
    all.extend(headers("line", 400, LINES));
    all.extend(headers("expect", 417, EXPECTATIONS));
    all.extend(hosts());
    all.extend(request_lines());
    all.extend(line_ends());
    all.extend(chunks());
    all.extend(too_much());
    all
}

/// Header lines after an otherwise valid head; the five bytes of a body, or of a chunk, follow.
fn headers(kind: &str, status: u16, lines: &[&[u8]]) -> Vec<Case> {
    let case = |line: &&[u8]| {
        let bytes = [LINE, HOST, TYPE, line, b"\r\n\r\n", b"0\r\n\r\n"].concat();
        (format!("{kind} {}", line.escape_ascii()), bytes, status)
    };
    lines.iter().map(case).collect()
}

const LENGTHS: &[&[u8]] = &[
    b"Content-Length: 5\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nContent-Length: 5",
    b"Content-Length: 0\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nX: y\r\nCONTENT-LENGTH: 5",
    b"Content-Length: 5\r\nContent-Length: 5",
    b"Content-Length: 5\r\nContent-Length: 6",
    b"Content-Length: 6\r\nX: y\r\ncontent-length: 5",
    b"Content-Length: 5\r\nContent_Length: 5",
    b"Content_Length: 0\r\nContent-Length: 5",
    b"Content-Length: 5\r\nTransfer_Encoding: chunked",
    b"Content-Length: 5, 5",
    b"Content-Length: 5,6",
    b"Content-Length: 5;5",
    b"Content-Length: 5 5",
    b"Content-Length: 5\t5",
    b"Content-Length: +5",
    b"Content-Length: -5",
    b"Content-Length: -0",
    b"Content-Length: 0x5",
    b"Content-Length: 5.0",
    b"Content-Length: 05",
    b"Content-Length: 00",
    b"Content-Length: 1e1",
    b"Content-Length: 5a",
    b"Content-Length: five",
    b"Content-Length:",
    b"Content-Length: ",
    b"Content-Length: \"5\"",
    b"Content-Length: 1_0",
    b"Content-Length: 18446744073709551616",
    b"Content-Length: 18446744073709551621",
    b"Content-Length: 9999999999999999999999",
    b"Content-Length: \xd9\xa5",
    b"Content-Length: 5\xa0",
];

/// Header names that a gateway may take for one that controls framing.
const NAMES: &[&[u8]] = &[
    b"Content_Length: 5",
    b"content_length: 5",
    b"CONTENT.LENGTH: 5",
    b"Content--Length: 5",
    b"ContentLength: 5",
    b"Content-Length-: 5",
    b"_Content-Length: 5",
    b"Content~Length: 5",
    b"Transfer_Encoding: chunked",
    b"Transfer.Encoding: chunked",
    b"TransferEncoding: chunked",
    b"Transfer-Encoding_: chunked",
    b"Content-Length: 5\r\nTransfer+Encoding: chunked",
    b"Content-Length: 5\r\nHost_: other",
    b"Content-Length: 5\r\n_Host: other",
    b"Content-Length: 5\r\nConnection_: close",
    b"Content-Length: 5\r\nUp-grade: h2c",
    b"Content-Length: 5\r\nEx_pect: 100-continue",
    b"Content-Length: 5\r\nTrailer.: Host",
    b"Content-Length: 5\r\nT_E: trailers",
];

const ENCODINGS: &[&[u8]] = &[
    b"Transfer-Encoding: xchunked",
    b"Transfer-Encoding: chunkedx",
    b"Transfer-Encoding: chunked, chunked",
    b"Transfer-Encoding: chunked, identity",
    b"Transfer-Encoding: identity, chunked",
    b"Transfer-Encoding: identity",
    b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: gzip",
    b"Transfer-Encoding:",
    b"Transfer-Encoding: ,chunked",
    b"Transfer-Encoding: chunked,",
    b"Transfer-Encoding: chunked;q=1",
    b"Transfer-Encoding: \"chunked\"",
    b"Transfer-Encoding: 'chunked'",
    b"Transfer-Encoding: chun ked",
    b"Transfer-Encoding: x chunked",
    b"Transfer-Encoding: chunked\xa0",
    b"Transfer-Encoding: \xefchunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
    b"Transfer-Encoding: chunked\r\nTransfer_Encoding: x",
    b"transfer-ENCODING: cow",
];

const LINES: &[&[u8]] = &[
    b"Transfer-Encoding : chunked",
    b"Transfer-Encoding\t: chunked",
    b"Content-Length : 5",
    b" Content-Length: 5",
    b"\tContent-Length: 5",
    b"X: y\r\n z",
    b"X: y\r\n\tz",
    b"X:\r\n y",
    b"Transfer-Encoding:\r\n chunked",
    b"Transfer-Encoding: chunked\r\n , identity",
    b"Content-Length: 5\r\n 5",
    b"Content-Length:\r\n 5",
    b": no name",
    b"no colon",
    b"X",
    b"X Y: z",
    b"(X): y",
    b"X[]: y",
    b"\"X\": y",
    b"X/Y: z",
    b"X@Y: z",
    b"X,Y: z",
    b"{X}: y",
    b"X\\Y: z",
    b"H\xc3\xb6st: y",
    b"X\0Y: z",
    b"X: y\0",
    b"X: \x01",
    b"X: \x08y",
    b"X: y\x0bz",
    b"X: y\x0cTransfer-Encoding: chunked",
    b"X: y\x1b[2J",
    b"X: y\x7f",
    b"\0",
    b"\x0bTransfer-Encoding: chunked",
    b"Content-Length\0: 5",
    b"Transfer-Encoding:\x0bchunked",
    b"Transfer-Encoding: chunked\0",
];

const EXPECTATIONS: &[&[u8]] = &[b"Expect: 200-ok", b"Expect: 100-continue, x", b"Expect:", b"Expect: 100"];

fn hosts() -> Vec<Case> {
    let lines: &[&[u8]] = &[
        b"",
        b"Host: localhost\r\nHost: localhost\r\n",
        b"Host: localhost\r\nHost: evil.test\r\n",
        b"Host: localhost\r\nX: y\r\nHOST: localhost\r\n",
        b"Host:\r\n",
        b"Host: \r\n",
        b"Host : localhost\r\n",
        b"Host: local host\r\n",
        b"Host: localhost:\r\n",
        b"Host: localhost:99999\r\n",
        b"Host: localhost:x\r\n",
        b"Host: localhost:80:80\r\n",
        b"Host: user@localhost\r\n",
        b"Host: localhost/path\r\n",
        b"Host: localhost\\path\r\n",
        b"Host: localhost, evil.test\r\n",
        b"Host: localhost?x\r\n",
        b"Host: localhost#x\r\n",
        b"Host: http://localhost\r\n",
        b"Host: [::1\r\n",
        b"Host: ::1\r\n",
        b"Host: [localhost]\r\n",
        b"Host: local%68ost\r\n",
        b"Host: loc\xe4lhost\r\n",
        b"Host: localhost\r\n evil.test\r\n",
        b"Host: localhost\0\r\n",
    ];
    let case = |line: &&[u8]| {
        let bytes = [LINE, line, TYPE, b"Content-Length: 2\r\n\r\n{}"].concat();
        (format!("host {}", line.escape_ascii()), bytes, 400)
    };
    lines.iter().map(case).collect()
}

fn request_lines() -> Vec<Case> {
    let lines: &[(&[u8], u16)] = &[
        (b"CONNECT localhost:80 HTTP/1.1", 400),
        (b"CONNECT / HTTP/1.1", 400),
        (b"TRACE / HTTP/1.1", 400),
        (b"REFUSED-BY-BATON /1 HTTP/1.1", 400),
        (b"POST http://evil.test/ HTTP/1.1", 400),
        (b"POST http://localhost:81/ HTTP/1.1", 400),
        (b"POST https://evil.test/ HTTP/1.1", 400),
        (b"POST http://user@localhost/ HTTP/1.1", 400),
        (b"POST http://localhost@evil.test/ HTTP/1.1", 400),
        (b"POST http:// HTTP/1.1", 400),
        (b"POST http:/x HTTP/1.1", 400),
        (b"POST http://local host/ HTTP/1.1", 400),
        (b"POST ftp://localhost/ HTTP/1.1", 400),
        (b"POST javascript:x HTTP/1.1", 400),
        (b"POST localhost:80 HTTP/1.1", 400),
        (b"POST localhost HTTP/1.1", 400),
        (b"POST * HTTP/1.1", 400),
        (b"POST ?x HTTP/1.1", 400),
        (b"POST \\ HTTP/1.1", 400),
        (b"POST /\0 HTTP/1.1", 400),
        (b"POST /\x1b HTTP/1.1", 400),
        (b"POST / HTTP/1.1 ", 400),
        (b"POST / HTTP/1.1 x", 400),
        (b"POST  / HTTP/1.1", 400),
        (b"POST /  HTTP/1.1", 400),
        (b" POST / HTTP/1.1", 400),
        (b"POST\t/ HTTP/1.1", 400),
        (b"POST /\tHTTP/1.1", 400),
        (b"POST /\tx HTTP/1.1", 400),
        (b"PO ST / HTTP/1.1", 400),
        (b"P(ST / HTTP/1.1", 400),
        (b"POST / http/1.1", 400),
        (b"POST / HTTP/1.10", 400),
        (b"POST / HTTP/1.1.1", 400),
        (b"POST / HTTP/1.", 400),
        (b"POST / HTTP/11", 400),
        (b"POST / HTTP/+1.1", 400),
        (b"POST / HTCPCP/1.1", 400),
        (b"POST /", 400),
        (b"POST", 400),
        (b"POST / HTTP/0.9", 505),
        (b"POST / HTTP/1.2", 505),
        (b"POST / HTTP/2.0", 505),
        (b"POST / HTTP/3.0", 505),
        (b"PRI * HTTP/2.0", 505),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"{\"jsonrpc\":\"2.0\"}", 400),
    ];
    let case = |(line, status): &(&[u8], u16)| {
        let bytes = [line, &b"\r\n"[..], HOST, TYPE, b"Content-Length: 2\r\n\r\n{}"].concat();
        (format!("request line {}", line.escape_ascii()), bytes, *status)
    };
    lines.iter().map(case).collect()
}

fn line_ends() -> Vec<Case> {
    let heads: &[&[u8]] = &[
        b"POST / HTTP/1.1\nHost: localhost\nContent-Length: 2\n\n{}",
        b"POST / HTTP/1.1\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
        b"POST / HTTP/1.1\r\nHost: localhost\nContent-Length: 2\r\n\r\n{}",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\n\r\n{}",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\n{}",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nX: y\n\r\n",
        b"POST / HTTP/1.1\rHost: localhost\rContent-Length: 2\r\r{}",
        b"POST / HTTP/1.1\r\nHost: localhost\rX: y\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nX: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nX: y\r\r\n\r\n",
        b"POST / HTTP/1.1\r\r\nHost: localhost\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\r\n",
        b"POST / HTTP/1.1\n\rHost: localhost\n\r\n\r",
        b"\n",
        b"\r\n\r\nPOST / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\r\n\nPOST / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\r\rPOST / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ];
    heads.iter().map(|head| (format!("line end {}", head.escape_ascii()), head.to_vec(), 400)).collect()
}

fn chunks() -> Vec<Case> {
    let bodies: &[&[u8]] = &[
        b"5\nhello\r\n0\r\n\r\n",
        b"5\rhello\r\n0\r\n\r\n",
        b"5\r\nhello\n0\r\n\r\n",
        b"5\r\nhello\r0\r\n\r\n",
        b"5\r\nhelloX\r\n0\r\n\r\n",
        b"5\r\nhello\r\n0\n\r\n",
        b"5\r\nhello\r\n0\r\n\n",
        b"5\r\nhello\r\n0\r\n\rX",
        b"5\r\nhello0\r\n\r\n",
        b"4\r\nhello\r\n0\r\n\r\n",
        b"\r\n5\r\nhello\r\n0\r\n\r\n",
        b" 5\r\nhello\r\n0\r\n\r\n",
        b"5 \r\nhello\r\n0\r\n\r\n",
        b"5\t;a\r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"+5\r\nhello\r\n0\r\n\r\n",
        b"-5\r\nhello\r\n0\r\n\r\n",
        b"5_\r\nhello\r\n0\r\n\r\n",
        b"g\r\nhello\r\n0\r\n\r\n",
        b";a=b\r\nhello\r\n0\r\n\r\n",
        b"\"5\"\r\nhello\r\n0\r\n\r\n",
        b"ffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        b"10000000000000005\r\nhello\r\n0\r\n\r\n",
        b"5;a\nb\r\nhello\r\n0\r\n\r\n",
        b"5;a\rb\r\nhello\r\n0\r\n\r\n",
        b"5;a\0b\r\nhello\r\n0\r\n\r\n",
        b"5;\x0b\r\nhello\r\n0\r\n\r\n",
        b"5\0\r\nhello\r\n0\r\n\r\n",
        b"0\r\nX: y\n\r\n",
        b"0\r\nX: y\rZ: z\r\n\r\n",
        b"0\r\nX : y\r\n\r\n",
        b"0\r\n X: y\r\n\r\n",
        b"0\r\nX: y\r\n z\r\n\r\n",
        b"0\r\n: y\r\n\r\n",
        b"0\r\nno colon\r\n\r\n",
        b"0\r\nX: \0\r\n\r\n",
        b"POST / HTTP/1.1\r\n\r\n",
    ];
    let case = |body: &&[u8]| {
        let bytes = [LINE, HOST, TYPE, b"Transfer-Encoding: chunked\r\n\r\n", body].concat();
        (format!("chunk {}", body.escape_ascii()), bytes, 400)
    };
    bodies.iter().map(case).collect()
}

fn too_much() -> Vec<Case> {
    let with = |name: &str, line: &[u8], lines: &[u8], status| {
        (name.to_owned(), [line, b"\r\n", HOST, lines, b"\r\n"].concat(), status)
    };
    let long = "x".repeat(64 * 1024);
    let old = b"POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    let extension = format!("5;{long}\r\nhello\r\n0\r\n\r\n");
    let chunked: &[u8] = b"Transfer-Encoding: chunked\r\n\r\n";
    vec![
        with("a long target", format!("GET /{long} HTTP/1.1").as_bytes(), b"", 414),
        with("a long method", format!("{long} / HTTP/1.1").as_bytes(), b"", 414),
        with("a large header", b"GET / HTTP/1.1", format!("X: {long}\r\n").as_bytes(), 431),
        with(
            "large headers",
            b"GET / HTTP/1.1",
            format!("X: {}\r\n", &long[..1000]).repeat(60).as_bytes(),
            431,
        ),
        with("many headers", b"GET / HTTP/1.1", "X: y\r\n".repeat(100).as_bytes(), 431),
        ("an encoding in HTTP/1.0".to_owned(), old.to_vec(), 400),
        ("a long extension".to_owned(), [LINE, HOST, TYPE, chunked, extension.as_bytes()].concat(), 400),
    ]
}
