//! `baton test --as-server`: serves scripted agents and judges the client that calls them.

mod client;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use baton_lab::case::Case;
use baton_lab::generation::{Binding, Generation};
use baton_lab::judge::{Credential, Judge, SCRIPTS, Script, Variant, rules};
use baton_lab::plan;
use baton_lab::report::{Agent, Run, Subject, text::Paint};
use tokio::net::TcpListener;

use super::args::{RunArgs, duration};
use super::{baseline, choice, conclude, explain, output, terminal};
use crate::exit::Failure;

const JUDGING: &str = "Judging clients";
/// How often a run without a command checks whether it should end.
const POLL: Duration = Duration::from_millis(100);

#[derive(Debug, clap::Args)]
pub(super) struct Judging {
    /// Serve scripted agents, correct and faulty ones, and judge the client that calls them.
    #[arg(long, conflicts_with_all = ["second", "skills", "suite", "var", "bearer", "api_key", "header"], help_heading = JUDGING)]
    pub(super) as_server: bool,

    /// The address to listen at [default: 127.0.0.1:0, a free port].
    #[arg(long, value_name = "ADDR", help_heading = JUDGING)]
    listen: Option<SocketAddr>,

    /// Scripts to serve; default: all. `--list` shows them.
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = JUDGING)]
    script: Vec<String>,

    /// End this long after the last call; not before the first call.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = JUDGING)]
    until_idle: Option<Duration>,

    /// A command to run once per script. `{url}` and `{card}` are the agent's address and its card's, `{do}` what the
    /// client must do, `{script}`, `{generation}`, `{binding}`; also in A2A_URL, A2A_CARD_URL, A2A_DO and so on.
    #[arg(last = true, value_name = "COMMAND", help_heading = JUDGING)]
    command: Vec<OsString>,
}

/// Refuses flags that make sense with --as-server only.
pub(super) fn refuse_stray_flags(args: &Judging) -> Result<(), Failure> {
    let stray = [
        (args.listen.is_some(), "--listen"),
        (!args.script.is_empty(), "--script"),
        (args.until_idle.is_some(), "--until-idle"),
        (!args.command.is_empty(), "-- COMMAND"),
    ];
    match stray.into_iter().find(|(given, _)| *given) {
        Some((_, name)) => Err(Failure::usage(format!("{name} is for judging clients: add --as-server"))),
        None => Ok(()),
    }
}

/// The rules for clients, as cases.
pub(super) fn cases() -> impl Iterator<Item = Arc<Case>> {
    rules::cases().into_iter().map(|(_, case)| case)
}

pub(super) async fn run(args: RunArgs, paint: Paint) -> Result<(), Failure> {
    if args.url.is_some() {
        return Err(Failure::usage(
            "--as-server waits for a client and takes no address; a command comes after `--`: baton test --as-server -- ./client {url}",
        ));
    }
    let cases: Vec<Arc<Case>> = cases().collect();
    if let Some(id) = &args.explain {
        terminal::print(&explain::explain(choice::case_of(id, &cases)?, paint));
        return Ok(());
    }
    choice::check_words(&args.select, &cases)?;
    let variants = variants(&args)?;
    let scripts = scripts(&args.judging.script)?;
    let wanted = |case: &Case| {
        variants.iter().any(|variant| variant.generation == case.generation)
            && plan::selects(&args.select, case)
    };
    if args.list {
        let listed: Vec<Arc<Case>> = cases.iter().filter(|case| wanted(case)).cloned().collect();
        terminal::print(&(list(&scripts, &variants, paint) + &explain::list(&listed, paint)));
        return Ok(());
    }
    let files = output::wanted(&args.report)?;
    let baseline = args.baseline.as_deref().map(|path| baseline(path, &cases)).transpose()?;
    let judge = start(&args.judging, &variants, &scripts).await?;
    let began = (SystemTime::now(), Instant::now());
    let cut = if args.judging.command.is_empty() {
        wait(&judge, &args).await
    } else {
        drive(&judge, &args).await?
    };
    let outcomes = judge.outcomes(wanted);
    judge.stop().await;
    let result = Run {
        faults: None,
        subject: Subject::Client,
        agent: subject(&judge, &args, &variants),
        began: began.0,
        duration: began.1.elapsed(),
        baseline: baseline.map(|baseline| baseline.compare(&outcomes)),
        outcomes,
        warnings: Vec::new(),
        strict: args.strict,
        selected: !args.select.is_empty() || !args.judging.script.is_empty(),
        seed: args.seed.unwrap_or_else(crate::commands::any_seed),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cut,
        all_evidence: args.all_evidence,
    };
    let mut troubles = output::deliver(&result, &args, &files);
    if let Some(path) = &args.write_baseline {
        let written = std::fs::write(path, baton_lab::baseline::Baseline::of(&result.outcomes));
        troubles.extend(written.err().map(|error| format!("{}: {error}", path.display())));
    }
    if judge.quiet_for().is_none() {
        return Err(Failure::usage(format!("no client called {}; there is nothing to judge", judge.url())));
    }
    conclude(&result, &troubles)
}

/// The default is 1.0; there is no gRPC yet.
fn variants(args: &RunArgs) -> Result<Vec<Variant>, Failure> {
    let generations = if args.generation.is_empty() { &[Generation::V1][..] } else { &args.generation };
    let fits = |variant: &Variant| {
        let binding = args.binding.is_empty() || args.binding.contains(&variant.binding);
        binding && generations.contains(&variant.generation)
    };
    let found: Vec<Variant> = Variant::ALL.into_iter().filter(fits).collect();
    if found.is_empty() {
        let grpc = args.binding.contains(&Binding::Grpc);
        let why = if grpc { "the scripted agents do not speak gRPC yet" } else { "0.1 has JSON-RPC alone" };
        return Err(Failure::usage(format!("there are no scripts for this generation and binding: {why}")));
    }
    Ok(found)
}

fn scripts(names: &[String]) -> Result<Vec<&'static Script>, Failure> {
    if names.is_empty() || names.iter().any(|name| name == "all") {
        return Ok(SCRIPTS.iter().collect());
    }
    let named = |name: &String| {
        Script::named(name).ok_or_else(|| {
            let hint = choice::did_you_mean(name, SCRIPTS.iter().map(|script| script.name));
            Failure::usage(format!(
                "no script is called `{name}`{hint}; baton test --as-server --list shows all"
            ))
        })
    };
    names.iter().map(named).collect()
}

fn list(scripts: &[&'static Script], variants: &[Variant], paint: Paint) -> String {
    let mut text = String::new();
    for script in scripts.iter().filter(|script| variants.iter().any(|variant| script.fits(*variant))) {
        let name = paint.bold(&format!("{:<28}", script.name));
        let _ =
            writeln!(text, "{name}  {}  {}", paint.dim(&format!("{:<13}", script.does.word())), script.about);
    }
    text + "\n"
}

async fn start(args: &Judging, variants: &[Variant], scripts: &[&'static Script]) -> Result<Judge, Failure> {
    let address = args.listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    let failed = |error: std::io::Error| Failure::usage(format!("cannot listen at {address}: {error}"));
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let judge = Judge::start(listener, variants, scripts).await.map_err(failed)?;
    if judge.plays().is_empty() {
        return Err(Failure::usage("none of these scripts is there for this generation and binding"));
    }
    Ok(judge)
}

/// The client's name in reports.
fn subject(judge: &Judge, args: &RunArgs, variants: &[Variant]) -> Agent {
    // `node client.mjs` says more than `node`.
    let words = args.judging.command.iter().take(2).map(|word| word.to_string_lossy());
    let files = words.filter(|word| !word.starts_with('-') && !word.contains('{'));
    let names: Vec<String> =
        files.filter_map(|word| Some(word.rsplit(['/', '\\']).next()?.to_owned())).collect();
    let name = if names.is_empty() { "client".to_owned() } else { names.join(" ") };
    let address =
        |variant: &Variant| ((variant.generation, variant.binding), format!("{}/{variant}", judge.url()));
    Agent {
        url: judge.url().to_owned(),
        name,
        version: "as a client".to_owned(),
        interfaces: variants.iter().map(address).collect(),
        ..Agent::default()
    }
}

/// Serves until Ctrl-C, the timeout, or the idle time.
async fn wait(judge: &Judge, args: &RunArgs) -> Option<String> {
    if args.quiet {
        terminal::say(judge.url());
    } else {
        terminal::say(&judge.index());
        let ends = match (args.judging.until_idle, args.timeout) {
            (Some(idle), _) => {
                format!("Ends when nobody has called for {} s, or with Ctrl-C.", idle.as_secs_f32())
            }
            (None, Some(time)) => format!("Ends in {} s, or with Ctrl-C.", time.as_secs_f32()),
            (None, None) => "Ends with Ctrl-C (or see --until-idle, --timeout).".to_owned(),
        };
        terminal::say(&ends);
    }
    let over = async {
        let since = Instant::now();
        loop {
            tokio::time::sleep(POLL).await;
            let idle =
                args.judging.until_idle.zip(judge.quiet_for()).is_some_and(|(idle, quiet)| quiet >= idle);
            if idle || args.timeout.is_some_and(|time| since.elapsed() >= time) {
                return;
            }
        }
    };
    tokio::select! {
        () = over => {}
        // Ctrl-C is the normal end of such a run, so the report is complete.
        _ = tokio::signal::ctrl_c() => {}
    }
    None
}

/// Runs the command once per script.
async fn drive(judge: &Judge, args: &RunArgs) -> Result<Option<String>, Failure> {
    use futures_util::StreamExt as _;
    let plays = judge.plays();
    let alone = args.parallel == 1;
    let client = client::Client { command: &args.judging.command, timeout: args.timeout() };
    client.check().map_err(Failure::usage)?;
    let total = plays.len();
    let done = std::sync::atomic::AtomicUsize::new(0);
    let runs = plays.iter().map(|play| {
        let (client, done) = (&client, &done);
        async move {
            if alone {
                judge.put_at_root(Some(play));
            }
            let ran = client.run(play).await?;
            let number = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            if !args.quiet {
                let name = format!("{} {}", play.variant, play.script.name);
                terminal::say(&format!("{number:>4}/{total}  {name:<40} {}", client::in_words(&ran)));
            }
            judge.ended(play, ran);
            Ok::<(), String>(())
        }
    });
    let parallel = usize::from(args.parallel);
    let mut all = std::pin::pin!(futures_util::stream::iter(runs).buffer_unordered(parallel));
    loop {
        tokio::select! {
            ended = all.next() => match ended {
                Some(Ok(())) => {}
                Some(Err(why)) => return Err(Failure::usage(why)),
                None => return Ok(None),
            },
            _ = tokio::signal::ctrl_c() => {
                let left = total - done.load(std::sync::atomic::Ordering::Relaxed);
                return Ok(Some(format!("interrupted: {left} of {total} scripts did not run")));
            }
        }
    }
}

/// The environment variable for a credential.
fn variable(credential: Credential) -> &'static str {
    match credential {
        Credential::Bearer => "A2A_BEARER_TOKEN",
        Credential::ApiKey => "A2A_API_KEY",
    }
}
