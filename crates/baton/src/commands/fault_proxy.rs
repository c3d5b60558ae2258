//! `baton fault-proxy`: simulates a bad network, for testing one's own clients and agents.

use std::io::{self, Write as _};
use std::net::SocketAddr;

use baton_lab::fault::{Happened, Plan, Proxy, Recipe, Side, Tally};
use tokio::net::lookup_host;

use crate::commands;
use crate::exit::Failure;
use crate::signals::Signals;

const EXAMPLES: &str = "\
Examples:
  baton fault-proxy --to 127.0.0.1:3000                          some of each fault
  baton fault-proxy --to 127.0.0.1:3000 --fault split=1          one byte at a time
  baton fault-proxy --to 127.0.0.1:3000 --fault delay=20ms,cut@1000 --every 3
  baton fault-proxy --to 127.0.0.1:3000 --fault split+stall=2s@100/up --seed 7

Faults:
  split[=BYTES]       forward in small pieces, each in a write of its own
  delay=TIME          delay everything by that time
  slow=BYTES          forward at most so many bytes per second
  stall=TIME[@BYTES]  after so many bytes, forward nothing for that time, once
  cut[@BYTES]         after so many bytes, close both connections (FIN)
  reset[@BYTES]       after so many bytes, reset both connections (RST)
  half-close[@BYTES]  after so many bytes, close this direction and keep the other; default: towards the server

Add /up (to the server) or /down (to the client) for one direction. Faults joined by + happen together; from a list
separated by commas, one is chosen at random for each connection. Without @BYTES the position is random, within the first
512 bytes.

An A2A agent's card contains the agent's own address, so clients would bypass the proxy: start the agent with the proxy's
address as its public one (baton serve --public-url http://127.0.0.1:4000, baton fault-proxy --listen 127.0.0.1:4000).";

/// The faults if `--fault` is not given.
const USUAL: [&str; 6] = ["split", "delay=20ms", "stall=1s", "cut", "reset", "half-close"];

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FaultProxy {
    /// The server to forward connections to.
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    to: String,

    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: String,

    /// Faults to inject; default: some of each kind. Repeatable.
    #[arg(long, value_name = "FAULT", value_delimiter = ',')]
    fault: Vec<Recipe>,

    /// Inject faults into every Nth connection only.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,

    /// Repeat the faults of an earlier run with this seed.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// Most connections at the same time; further ones wait.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    max_connections: u32,

    /// Allow listening at an address that other machines can reach. They can reach the server behind the proxy, too.
    #[arg(long)]
    allow_public: bool,

    /// Do not print a line for each injected fault.
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) async fn run(args: FaultProxy) -> Result<(), Failure> {
    let listener =
        commands::bind(&args.listen, args.allow_public, ", and through it the server behind").await?;
    let address = listener.local_addr().map_err(|error| Failure::failed(format!("no address: {error}")))?;
    let mut signals =
        Signals::listen().map_err(|error| Failure::failed(format!("no signal handling: {error}")))?;
    let recipes = if args.fault.is_empty() {
        USUAL.iter().filter_map(|text| text.parse().ok()).collect()
    } else {
        args.fault.clone()
    };
    let seed = args.seed.unwrap_or_else(super::any_seed);
    let plan = Plan { recipes, every: args.every, seed };
    let to = resolved(&args.to).await?;
    say(&welcome(address, &args.to, &plan));
    let quiet = args.quiet;
    let proxy = Proxy::new(to.to_string(), plan)
        .at_most(usize::try_from(args.max_connections).unwrap_or(usize::MAX))
        .telling(move |happened| {
            if !quiet {
                say(&line(&happened));
            }
        });
    let stopped = async {
        signals.next().await;
    };
    proxy.serve(listener, stopped).await;
    say(&summary(&proxy.tally()));
    Ok(())
}

/// Resolved once, so that the name server does not affect the test.
async fn resolved(to: &str) -> Result<SocketAddr, Failure> {
    let found = lookup_host(to).await.map_err(|error| Failure::usage(format!("--to {to}: {error}")))?;
    let all: Vec<SocketAddr> = found.collect();
    // A name such as localhost has two addresses, and servers often listen at only one of them.
    for address in &all {
        if tokio::net::TcpStream::connect(address).await.is_ok() {
            return Ok(*address);
        }
    }
    all.first().copied().ok_or_else(|| Failure::usage(format!("--to {to}: the name has no address")))
}

/// `host:port`, also from a URL.
fn address(text: &str) -> Result<String, String> {
    let (scheme, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let has_port =
        host.rsplit_once(':').is_some_and(|(name, port)| !name.is_empty() && port.parse::<u16>().is_ok());
    match scheme {
        _ if has_port && !host.ends_with(']') => Ok(host.to_owned()),
        "http" if !host.is_empty() => Ok(format!("{host}:80")),
        "https" if !host.is_empty() => Ok(format!("{host}:443")),
        _ => Err("write HOST:PORT, such as 127.0.0.1:3000".to_owned()),
    }
}

fn welcome(at: SocketAddr, to: &str, plan: &Plan) -> String {
    let faults: Vec<String> = plan.recipes.iter().map(ToString::to_string).collect();
    let which = match plan.every {
        1 => "every connection".to_owned(),
        every => format!("one connection in {every}"),
    };
    format!(
        "listening   {at}\nforwarding  {to}\nfaults      {} ({which}, seed {})\n\nCtrl-C ends it.\n",
        faults.join(", "),
        plan.seed
    )
}

fn line(happened: &Happened) -> String {
    match happened {
        Happened::Injected { connection, fault, side, at } => {
            let way = match side {
                Side::Up => "to the server",
                Side::Down => "to the client",
            };
            format!("connection {connection}: {fault}, after {at} bytes {way}\n")
        }
        Happened::Unreachable { connection, why } => {
            format!("connection {connection}: the server cannot be reached: {why}\n")
        }
    }
}

fn summary(tally: &Tally) -> String {
    let faults: Vec<String> = tally.injected.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let faults = if faults.is_empty() { "nothing".to_owned() } else { faults.join(", ") };
    let lost = match tally.unreachable {
        0 => String::new(),
        count => format!(", {count} without a server"),
    };
    format!(
        "\n{} connections ({} hit{lost}), {} bytes to the server, {} to the client; injected: {faults}\n",
        tally.connections, tally.faulted, tally.up, tally.down
    )
}

/// Prints to stdout; a closed pipe is not an error.
fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_a_url() {
        for (text, to) in [
            ("127.0.0.1:3000", "127.0.0.1:3000"),
            ("http://h:1/a/b?c", "h:1"),
            ("http://h", "h:80"),
            ("https://u:p@h/", "h:443"),
            ("[::1]:9", "[::1]:9"),
            ("http://[::1]", "[::1]:80"),
        ] {
            assert_eq!(address(text).as_deref(), Ok(to), "{text}");
        }
        for bad in ["", "h", ":1", "h:x", "http://", "ftp://h"] {
            address(bad).unwrap_err();
        }
    }

    #[test]
    fn the_usual_faults_can_be_read() {
        for text in USUAL {
            text.parse::<Recipe>().unwrap();
        }
    }
}
