//! Tests of the binary: started as a process, called over a socket.

#![allow(clippy::unwrap_used, reason = "the lint knows test functions only, not what they call")]

/// A receiver of spans.
#[cfg(all(target_os = "linux", feature = "otel"))]
mod collector;
/// One HTTP/1 connection that stays open.
mod keep_alive;
/// A served process and the calls a test makes to it.
mod served;
/// A place with little room, that can be filled and cleared while a server runs on it.
mod small_disk;

/// Tasks that wait for authorization, and the administration socket.
#[cfg(unix)]
mod admin_tasks;
/// Who may call, as the configuration says.
#[cfg(unix)]
mod auth_config;

/// The tests that the threat table names.
mod security_page;

/// Attacks with a size: what one hostile client may cost the server and everybody else.
#[cfg(target_os = "linux")]
mod attacks;
/// Secrets in every credential: in the configuration, in files, in variables and in requests.
#[cfg(all(target_os = "linux", feature = "otel"))]
mod canaries;
/// The client commands: what they print, how they end, and what they send.
#[cfg(unix)]
mod cli;
/// `baton serve config`, and what a file says is served.
mod config;
/// What the demo agent does with each kind of message: states, artifacts, turns.
mod demo_behaviours;
/// The exact answers that other kits ask the demo agent for, by messageId.
mod demo_phrases;
/// What the demo agent's streams show, in which order.
mod demo_streams;
/// A full disk: writes are refused, reads go on, nothing acknowledged is lost, and it recovers when there is room.
mod disk_full;
/// `--exec`: no process of a program outlives its turn, even if server or guard are killed.
#[cfg(target_os = "linux")]
mod exec_ends;
/// `--exec`: what a program gets to read and to see, and what the command line says about it.
#[cfg(unix)]
mod exec_input;
/// `--exec` with lines of JSON: what a program can say, and how it gets its answers.
#[cfg(target_os = "linux")]
mod exec_lines;
/// `--exec`: what a program prints, how it ends, and what becomes of the task.
mod exec_output;
/// A failed sync ends the process, and the next one finds everything acknowledged.
mod failed_sync;
/// Faults of every kind under load: kills, power cuts, damage, clocks, crowds; one journal and one checker.
mod faults;
/// `docs/getting-started.md`, command by command.
mod getting_started;
/// `baton test --as-server` on the command line: exit codes, a command, a client that hangs, mistakes.
mod judging;
/// API keys: `--api-key`, and `baton key` on a running server and on its store.
#[cfg(unix)]
mod keys;
/// `baton test` on the command line: exit codes, reports, selection, credentials, an agent that starts late.
mod lab;
/// The lab on agents that ask who calls: with credentials, without, and with those of two users.
mod lab_auth;
/// `baton test --faults`, `baton test --second` and `baton fault-proxy`, as users type them.
mod lab_faults;
/// The lab's suites of 1.0 on the demo agent: nothing fails, and skipped cases have a reason.
mod lab_v1;
/// Log lines of requests, and the address of metrics.
mod logs;
/// Ten thousand connections, and more than the process has file descriptors for.
#[cfg(target_os = "linux")]
mod many_connections;
/// `BATON_MASTER_KEY`: the secrets in the store are encrypted, and the server does not start without the key.
mod master_key;
/// Each program and configuration has its own tasks, in its own file.
#[cfg(unix)]
mod own_stores;
/// Programs for `--exec`, and their processes as `/proc` shows them.
mod programs;
/// `baton push` on a running server and on its store.
#[cfg(unix)]
mod push;
/// SIGHUP: cards and limits change under load, a mistake changes nothing.
mod reload;
/// SIGHUP: callers who are gone are out at once, and the others notice nothing.
mod reloaded_callers;
/// Secrets in requests must not appear in the log, in traces or in metrics.
#[cfg(all(target_os = "linux", feature = "otel"))]
mod secrets;
/// `baton serve`: welcome, mistakes, stores, signals.
mod serve;
/// Whether the time of an answer tells what its bytes hide.
mod timing;
/// HTTPS by flags and by `[tls]`, with curl and openssl as clients.
#[cfg(unix)]
mod tls;
/// Traces by OTLP: a task is one tree, whatever happens to it.
#[cfg(all(target_os = "linux", feature = "otel"))]
mod traces;
/// Webhooks whose targets are in the server's own network, by every spelling, name and redirect.
#[cfg(target_os = "linux")]
mod webhook_targets;
