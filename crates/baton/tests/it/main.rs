//! The binary as a user meets it: started as a process, asked over a socket.

#![allow(clippy::unwrap_used, reason = "the lint knows test functions only, not what they call")]

/// A receiver of spans.
#[cfg(all(target_os = "linux", feature = "otel"))]
mod collector;
/// A served process and the calls a test makes to it.
mod served;
/// A place with little room, that can be filled and cleared while a server runs on it.
mod small_disk;

/// Attacks with a size: what one hostile client may cost the server and everybody else.
#[cfg(target_os = "linux")]
mod attacks;
/// `baton config`, and what a file says is served.
mod config;
/// What the demo agent does with each kind of message: states, artifacts, turns.
mod demo_behaviours;
/// The exact answers that other kits ask the demo agent for, by messageId.
mod demo_phrases;
/// What the demo agent's streams show, in which order.
mod demo_streams;
/// A full disk: writes are refused, reads go on, nothing acknowledged is lost, and room is all it needs.
mod disk_full;
/// `--exec`: nothing a program has started outlives its turn, whoever is killed.
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
/// `baton test --as-server` as the author of a client meets it: exit codes, a command, a client that hangs, mistakes.
mod judging;
/// `baton test` as a CI job meets it: exit codes, reports, selection, credentials, an agent that starts late.
mod lab;
/// `baton test --faults`, `baton test --second` and `baton fault-proxy`, as users type them.
mod lab_faults;
/// The lab's suites of 1.0 on the demo agent: nothing is accused, and what is left out says why.
mod lab_v1;
/// What the log says of requests, and where the numbers are.
mod logs;
/// Ten thousand connections, and more than there are files for.
#[cfg(target_os = "linux")]
mod many_connections;
/// Each thing that is served has tasks of its own, in a file of its own.
#[cfg(unix)]
mod own_stores;
/// Programs for `--exec`, and their processes as `/proc` shows them.
mod programs;
/// SIGHUP: cards and limits change under load, a mistake changes nothing.
mod reload;
/// Secrets planted everywhere are found nowhere: not in the log, not in traces, not in metrics.
#[cfg(all(target_os = "linux", feature = "otel"))]
mod secrets;
/// `baton serve`: welcome, mistakes, stores, signals.
mod serve;
/// Traces by OTLP: a task is one tree, whatever happens to it.
#[cfg(all(target_os = "linux", feature = "otel"))]
mod traces;
