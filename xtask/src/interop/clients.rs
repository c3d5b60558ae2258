//! The clients under test. A client consists of a row here, a script, and its pinned packages.

use std::path::{Path, PathBuf};

use crate::workspace::Workspace;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Language {
    Python,
    JavaScript,
}

pub struct Client {
    /// For `--only`, and the name of its environment in the tools folder.
    pub name: &'static str,
    /// The package in its registry.
    pub package: &'static str,
    pub language: Language,
    /// The stem of its files: `interop/python/{stem}.py`, `interop/python/requirements/{stem}.txt`;
    /// `interop/js/{stem}.mjs`, `interop/js/packages/{stem}/package.json`.
    pub stem: &'static str,
    pub bindings: &'static [Binding],
    /// Versions and bindings that an SDK has not, for the page. Empty for frameworks: they have what their SDK has.
    pub lacks: &'static [Lack],
    /// Whether `cargo xtask test` runs it; the others run with `--all`.
    pub tested: bool,
    /// Known failures, and why they are not ours to fix. A failure that is not listed fails the run, and so does a
    /// listed one that passes.
    pub known: &'static [Known],
}

pub struct Binding {
    /// The script's argument.
    pub argument: &'static str,
    pub shown: &'static str,
}

impl Binding {
    /// Whether the agent has to serve gRPC.
    pub fn is_grpc(&self) -> bool {
        self.argument.starts_with("grpc")
    }
}

/// The end of a [`Binding::shown`] or its whole, and why it is missing.
pub struct Lack {
    pub what: &'static str,
    pub reason: &'static str,
}

pub struct Known {
    pub binding: &'static str,
    pub check: &'static str,
    pub reason: &'static str,
}

const fn binding(argument: &'static str, shown: &'static str) -> Binding {
    Binding { argument, shown }
}

const V1: &[Binding] = &[binding("jsonrpc", "JSON-RPC 1.0"), binding("rest", "HTTP+JSON 1.0")];
const V0_3: &[Binding] = &[binding("jsonrpc", "JSON-RPC 0.3"), binding("rest", "HTTP+JSON 0.3")];
const V0_3_WITH_GRPC: &[Binding] =
    &[binding("jsonrpc", "JSON-RPC 0.3"), binding("rest", "HTTP+JSON 0.3"), binding("grpc", "gRPC 0.3")];
/// For SDKs of 1.0 that also have transports for 0.3 agents.
const V1_AND_0_3: &[Binding] = &[
    binding("jsonrpc", "JSON-RPC 1.0"),
    binding("rest", "HTTP+JSON 1.0"),
    binding("grpc", "gRPC 1.0"),
    binding("jsonrpc-0.3", "JSON-RPC 0.3"),
    binding("rest-0.3", "HTTP+JSON 0.3"),
    binding("grpc-0.3", "gRPC 0.3"),
];
/// Of SDKs whose page rows are of 0.3.
const NO_V1: Lack = Lack { what: "1.0", reason: "this version of the SDK is older than 1.0" };
const JSON_RPC_0_3: &[Binding] = &[binding("jsonrpc", "JSON-RPC 0.3")];

pub const CLIENTS: &[Client] = &[
    Client {
        name: "python-1.3.0",
        package: "a2a-sdk 1.3.0",
        language: Language::Python,
        stem: "client_1_3",
        bindings: V1_AND_0_3,
        lacks: &[],
        tested: true,
        known: &[],
    },
    Client {
        name: "python-0.3.26",
        package: "a2a-sdk 0.3.26",
        language: Language::Python,
        stem: "client_0_3",
        bindings: V0_3_WITH_GRPC,
        lacks: &[NO_V1],
        tested: true,
        known: &[],
    },
    Client {
        name: "python-0.2.16",
        package: "a2a-sdk 0.2.16",
        language: Language::Python,
        stem: "client_0_2",
        bindings: JSON_RPC_0_3,
        lacks: &[
            NO_V1,
            Lack { what: "HTTP+JSON 0.3", reason: "this version of the SDK has no such transport" },
            Lack {
                what: "gRPC 0.3",
                reason: "it has a client for stubs that the caller makes, which takes no address from a card; its messages \
                         are those of 0.3 with fewer members. Not run",
            },
        ],
        tested: false,
        known: &[],
    },
    Client {
        name: "js-1.3.0",
        package: "@a2a-js/sdk 1.3.0",
        language: Language::JavaScript,
        stem: "client_1_3",
        bindings: V1_AND_0_3,
        lacks: &[],
        tested: true,
        known: &[],
    },
    Client {
        name: "js-0.3.14",
        package: "@a2a-js/sdk 0.3.14",
        language: Language::JavaScript,
        stem: "client_0_3",
        bindings: V0_3_WITH_GRPC,
        lacks: &[NO_V1],
        tested: false,
        known: &[Known {
            binding: "grpc",
            check: "p02_maps_not_cancelable_error",
            reason: "the SDK reads FAILED_PRECONDITION for this error; 0.3 has no table, and Baton sends what the Python \
                     SDK sends, UNIMPLEMENTED",
        }],
    },
    Client {
        name: "google-adk",
        package: "google-adk 2.13.0",
        language: Language::Python,
        stem: "client_adk",
        bindings: V1,
        lacks: &[],
        tested: false,
        known: &[],
    },
    Client {
        name: "strands-agents",
        package: "strands-agents 1.62.0",
        language: Language::Python,
        stem: "client_strands",
        bindings: V0_3,
        lacks: &[],
        tested: false,
        known: &[],
    },
    Client {
        name: "agent-framework-a2a",
        package: "agent-framework-a2a 1.0.0b261022",
        language: Language::Python,
        stem: "client_agent_framework",
        bindings: V1,
        lacks: &[],
        tested: false,
        known: &[],
    },
    Client {
        name: "beeai-framework",
        package: "beeai-framework 0.1.85",
        language: Language::Python,
        stem: "client_beeai",
        bindings: JSON_RPC_0_3,
        lacks: &[],
        tested: false,
        known: &[],
    },
    Client {
        name: "fasta2a",
        package: "fasta2a 2.1.1",
        language: Language::Python,
        stem: "client_fasta2a",
        bindings: JSON_RPC_0_3,
        lacks: &[],
        tested: false,
        known: &[],
    },
];

pub fn tested() -> Vec<&'static Client> {
    CLIENTS.iter().filter(|client| client.tested).collect()
}

impl Client {
    pub fn script(&self, workspace: &Workspace) -> PathBuf {
        workspace.root.join(match self.language {
            Language::Python => format!("interop/python/{}.py", self.stem),
            Language::JavaScript => format!("interop/js/{}.mjs", self.stem),
        })
    }

    /// The file with the script's output.
    pub fn results(&self, folder: &Path, binding: &Binding) -> PathBuf {
        folder.join(format!("{}.{}.txt", self.name, binding.argument))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::interop::checks::CHECKS;

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<&str> = CLIENTS.iter().map(|client| client.name).collect();
        assert_eq!(names.len(), CLIENTS.len());
    }

    /// A version and a binding that is not in the grid is explained below it.
    #[test]
    fn every_version_and_binding_of_an_sdk_runs_or_is_said_to_be_missing() {
        let sdks =
            CLIENTS.iter().filter(|client| client.package.contains("a2a") && client.package.contains("sdk"));
        let names: Vec<&str> = sdks.clone().map(|client| client.name).collect();
        assert_eq!(names, ["python-1.3.0", "python-0.3.26", "python-0.2.16", "js-1.3.0", "js-0.3.14"]);
        for client in sdks {
            for every in V1_AND_0_3 {
                let runs = client.bindings.iter().any(|binding| binding.shown == every.shown);
                let lacks = client.lacks.iter().any(|lack| every.shown.ends_with(lack.what));
                assert!(runs != lacks, "{} over {}", client.name, every.shown);
            }
        }
    }

    #[test]
    fn known_failures_name_checks_and_bindings_that_exist() {
        for client in CLIENTS {
            for known in client.known {
                assert!(CHECKS.iter().any(|check| check.name == known.check), "{}", known.check);
                assert!(client.bindings.iter().any(|b| b.argument == known.binding), "{}", known.binding);
            }
        }
    }
}
