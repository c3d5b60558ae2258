//! The servers that are compared.

/// One server and how it is started.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Subject {
    /// The name in figures and files.
    pub name: &'static str,
    /// The name on the page.
    pub shown: &'static str,
    pub program: Program,
    pub path: &'static str,
    pub kind: Kind,
    pub env: &'static [(&'static str, &'static str)],
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Program {
    Rust(&'static str),
    Python,
    Node,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Baton,
    Peer,
    Control,
}

const fn rust(
    name: &'static str,
    shown: &'static str,
    kind: Kind,
    program: &'static str,
    env: &'static [(&'static str, &'static str)],
) -> Subject {
    Subject { name, shown, program: Program::Rust(program), path: "/", kind, env }
}

pub const BATON: Subject = rust("baton", "Baton", Kind::Baton, "baton-echo", &[]);
pub const BATON_KEY: Subject =
    rust("baton-key", "Baton, API key", Kind::Baton, "baton-echo", &[("GUARD", "key")]);
pub const BATON_JWT: Subject =
    rust("baton-jwt", "Baton, JWT", Kind::Baton, "baton-echo", &[("GUARD", "jwt")]);
pub const BATON_TLS: Subject =
    rust("baton-tls", "Baton, TLS", Kind::Baton, "baton-echo", &[("GUARD", "tls")]);
pub const BATON_COUNTED: Subject = rust("baton-counted", "Baton", Kind::Baton, "baton-echo-counted", &[]);

const GRPC: &[(&str, &str)] = &[("GRPC", "1")];
pub const BATON_GRPC: Subject = rust("baton-grpc", "Baton", Kind::Baton, "baton-echo-grpc", GRPC);
pub const CONTROL_GRPC: Subject =
    rust("control-grpc", "control: tonic, fixed messages", Kind::Control, "control-grpc", &[]);
pub const LF_GRPC: Subject =
    rust("a2a-grpc", "a2a-server-lf 0.5.3 by a2a-grpc 0.3.11, mimalloc", Kind::Peer, "echo-a2a-grpc", &[]);
pub const SDK_GRPC: Subject = rust(
    "a2a-protocol-sdk-grpc",
    "a2a-protocol-sdk 0.15.0, mimalloc",
    Kind::Peer,
    "echo-a2a-protocol-sdk-mimalloc",
    GRPC,
);
pub const PYTHON_GRPC: Subject = Subject { name: "python-grpc", env: GRPC, ..PYTHON };
pub const NODE_GRPC: Subject = Subject { name: "node-grpc", env: GRPC, ..NODE };

pub const BATON_PUSH: Subject =
    rust("baton-push", "Baton, in memory", Kind::Baton, "baton-echo", &[("PUSH", "1")]);
pub const BATON_PUSH_SQLITE: Subject =
    rust("baton-push-sqlite", "Baton, SQLite", Kind::Baton, "baton-echo", &[("PUSH", "1")]);
pub const BATON_HOOK_OFF: Subject =
    rust("baton-hook-off", "Baton, webhooks switched off", Kind::Baton, "baton-echo", &[]);
pub const BATON_HOOK_NONE: Subject =
    rust("baton-hook-none", "Baton, no webhook", Kind::Baton, "baton-echo", &[("PUSH", "1")]);
pub const BATON_HOOK_HEALTHY: Subject =
    rust("baton-hook-healthy", "Baton, receiver answers", Kind::Baton, "baton-echo", &[("PUSH", "1")]);
pub const BATON_HOOK_REFUSING: Subject =
    rust("baton-hook-refusing", "Baton, receiver refuses", Kind::Baton, "baton-echo", &[("PUSH", "1")]);
pub const BATON_HOOK_SILENT: Subject =
    rust("baton-hook-silent", "Baton, receiver is silent", Kind::Baton, "baton-echo", &[("PUSH", "1")]);

pub const REPLY: Subject = rust("control", "control: axum, fixed body", Kind::Control, "control-reply", &[]);
pub const KEEP: Subject =
    rust("control-keep", "control: axum, keeps the bytes", Kind::Control, "control-reply", &[("KEEP", "1")]);
pub const REPLY_COUNTED: Subject =
    rust("control-counted", "control: axum, fixed body", Kind::Control, "control-reply-counted", &[]);
pub const STREAM: Subject =
    rust("control-stream", "control: raw hyper", Kind::Control, "control-stream", &[]);
pub const STREAM_HELD: Subject =
    rust("control-held", "control: raw hyper", Kind::Control, "control-stream", &[("HOLD", "1")]);
pub const SQLITE: Subject =
    rust("probe-sqlite", "probe: one insert per request", Kind::Control, "control-sqlite", &[]);

pub const LF: Subject = rust("a2a-server-lf", "a2a-server-lf 0.5.3", Kind::Peer, "echo-a2a-server-lf", &[]);
pub const LF_MIMALLOC: Subject = rust(
    "a2a-server-lf-mimalloc",
    "a2a-server-lf 0.5.3, mimalloc",
    Kind::Peer,
    "echo-a2a-server-lf-mimalloc",
    &[],
);
pub const LF_PUSH: Subject =
    rust("a2a-server-lf-push", "a2a-server-lf 0.5.3", Kind::Peer, "echo-a2a-server-lf", &[("PUSH", "1")]);
pub const LF_PUSH_MIMALLOC: Subject = rust(
    "a2a-server-lf-push-mimalloc",
    "a2a-server-lf 0.5.3, mimalloc",
    Kind::Peer,
    "echo-a2a-server-lf-mimalloc",
    &[("PUSH", "1")],
);
pub const LF_COUNTED: Subject =
    rust("a2a-server-lf-counted", "a2a-server-lf 0.5.3", Kind::Peer, "echo-a2a-server-lf-counted", &[]);

pub const SDK: Subject =
    rust("a2a-protocol-sdk", "a2a-protocol-sdk 0.15.0", Kind::Peer, "echo-a2a-protocol-sdk", &[]);
pub const SDK_MIMALLOC: Subject = rust(
    "a2a-protocol-sdk-mimalloc",
    "a2a-protocol-sdk 0.15.0, mimalloc",
    Kind::Peer,
    "echo-a2a-protocol-sdk-mimalloc",
    &[],
);
pub const SDK_COUNTED: Subject = rust(
    "a2a-protocol-sdk-counted",
    "a2a-protocol-sdk 0.15.0",
    Kind::Peer,
    "echo-a2a-protocol-sdk-counted",
    &[],
);

pub const PYTHON: Subject = Subject {
    name: "python",
    shown: "a2a-sdk 1.3.0 (Python)",
    program: Program::Python,
    path: "/",
    kind: Kind::Peer,
    env: &[],
};
pub const NODE: Subject = Subject {
    name: "node",
    shown: "@a2a-js/sdk 1.3.0 (Node)",
    program: Program::Node,
    path: "/",
    kind: Kind::Peer,
    env: &[],
};
pub const SDK_SQLITE: Subject = rust(
    "a2a-protocol-sdk-sqlite",
    "a2a-protocol-sdk 0.15.0, SQLite",
    Kind::Peer,
    "echo-a2a-protocol-sdk-mimalloc",
    &[],
);
pub const PYTHON_SQLITE: Subject =
    Subject { name: "python-sqlite", shown: "a2a-sdk 1.3.0 (Python), SQLite", ..PYTHON };
