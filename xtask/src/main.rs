//! Development tasks of the project. Contributors and the CI run `cargo xtask test`; most other commands are parts of
//! it.

mod agent;
mod api;
mod bench;
mod compliance;
mod conformance;
mod deny;
mod faults;
mod fuzz;
mod generated;
mod interop;
mod judged;
mod junit;
mod lab;
mod lab_mutants;
mod mission;
mod process;
mod proto;
mod servers;
mod setup;
mod stages;
mod tidy;
mod workspace;

use std::process::ExitCode;

use workspace::Workspace;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  setup            install the pinned tools outside the repository ($BATON_TOOLS or ~/.cache/baton-tools)
  test             run every stage, with a table of times at the end
      --only STAGE     run this stage alone (may be repeated)
      --skip STAGE     leave this stage out (may be repeated)
      --keep-going     run the remaining stages after a failure
      --list           name the stages
  interop          run the A2A clients of the test command against our release binary
      --all            run all clients
      --only CLIENT    run this client alone (may be repeated)
      --exec           only run the programs of examples/exec behind our binary, called by a2a-sdk 1.3.0
      --servers        run the lab on agents made with third-party SDKs; every failure has to be in
                       interop/servers/verdicts.tsv, checked by hand (with --write: docs/results/third-party-servers.md)
      --client         only run our client with agents made with third-party SDKs (with --all: with all of them)
      --metrics        only check /metrics with the official Prometheus library
      --oidc           only check the tokens of a real identity provider, npm oidc-provider
      --auth           only run the official clients and curl with credentials, over HTTPS
      --webhooks       only check webhooks with the official SDKs (with --all: with all of them)
      --signing        only check signed cards with the official SDKs, ours and theirs
      --messages       only compare the messages of gRPC with those in the official Python packages
      --debug          use the debug binary
      --url URL        run against this agent instead
      --list           name the clients
      --write          write docs/interop.md (with --all)
  judge-clients    test the official SDKs as clients, and compare with the known failures (interop/judged)
  bench            build the servers of bench/, compare them, and write docs/benchmarks.md
      --quick          short and rough (below 5 minutes); prints, writes no page unless told to with --write
      --only ROW       this row alone (may be repeated); prints, writes no page
      --server NAME    this server alone (may be repeated); prints, writes no page
      --no-build       use the servers of the last build
      --list           name the rows
      --counts         count instructions of the hot paths, and compare with bench/counts/baseline.tsv
      --bless          with --counts: store the new counts as the baseline
  lab-mutants      run every defect of the lab's test agent on every case, and write the table of docs/lab.md
      --only TABLE…    run only these tables of defects; keep the last results of the others
  fuzz             run the fuzz targets under libFuzzer, or with our own loop if that cannot be built
      --target NAME    run this target alone (may be repeated)
      --time TIME      for each of them: 90s, 2m; 60s by default
      --own            use our own loop, as the test command does
      --write          write docs/results/fuzz.md
      --list           name the targets
  faults           run the fault tests at length, and write docs/results
      --only KIND      this kind alone: T1, T4 and so on (may be repeated)
      --seed N         with the random choices of an earlier run
      --list           name the kinds
  tidy             check the repository's own rules
  api --write      write what each library crate offers into crates/*/public-api.txt; tidy compares
  proto            generate the messages and descriptors of gRPC from crates/baton-protocol/proto
  mission          check docs/mission.md against the last test results
      --write          write it
  compliance       check docs/cli-compliance.yaml against the last test results, and that every requirement is shown
      --write          write it
  conformance      run the lab on our own agents, and check docs/conformance.md against it and the last test results
      --write          write it
      --debug          use the debug binary";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) = args.split_first() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let done = Workspace::find().and_then(|workspace| match (command.as_str(), rest) {
        ("setup", []) => setup::run(&workspace),
        ("test", flags) => stages::run(&workspace, &stages::Choice::parse(flags)?),
        ("interop", flags) => interop::run(&workspace, &interop::Choice::parse(flags)?),
        ("judge-clients", []) => judged::run(&workspace),
        ("bench", flags) => bench::run(&workspace, &bench::Choice::parse(flags)?),
        ("lab-mutants", []) => lab_mutants::run(&workspace, &[]),
        ("lab-mutants", [flag, tables @ ..]) if flag == "--only" => lab_mutants::run(&workspace, tables),
        ("fuzz", flags) => fuzz::run(&workspace, &fuzz::Choice::parse(flags)?),
        ("faults", flags) => faults::run(&workspace, &faults::Choice::parse(flags)?),
        ("api", [flag]) if flag == "--write" => api::write(&workspace),
        ("proto", []) => proto::write(&workspace),
        ("tidy", []) => tidy::run(&workspace),
        ("compliance", []) => compliance::check(&workspace),
        ("compliance", [flag]) if flag == "--write" => compliance::write(&workspace),
        ("conformance", flags) => conformance::run(&workspace, &conformance::Choice::parse(flags)?),
        ("mission", []) => mission::check(&workspace),
        ("mission", [flag]) if flag == "--write" => mission::write(&workspace),
        ("help" | "--help" | "-h", _) => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("unknown command: {}\n\n{USAGE}", args.join(" "))),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            // An empty reason means that the command has already printed everything.
            if !reason.is_empty() {
                eprintln!("error: {reason}");
            }
            ExitCode::FAILURE
        }
    }
}
