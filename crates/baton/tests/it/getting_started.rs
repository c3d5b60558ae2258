//! `docs/getting-started.md`, `docs/cli.md` and the first screen of the README, done as they say: every file saved, every
//! command run, every output compared.
//!
//! A fenced block after "Save this as `name`:" is a file. A `console` block holds commands and what they print; one that is
//! `console background` holds a server, which runs until a comment says `stop` (as Ctrl-C would) or `kill`. A `sh` block
//! installs something, one that is `console by-hand` takes too long, and `text` is only shown: none of them is run. The page's
//! port becomes a free one.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::cli::user::with_clean_environment;

/// Longest a command may take, and longest until a server is there.
const PATIENCE: Duration = Duration::from_secs(60);
const PORT: &str = "3000";

enum Step {
    File { name: String, text: String },
    Run { command: String, prints: String },
    Serve { command: String, prints: String },
    Stop(&'static str),
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = page.lines();
    let mut before = String::new();
    while let Some(line) = lines.next() {
        match line {
            "<!-- stop -->" => steps.push(Step::Stop("-INT")),
            "<!-- kill -->" => steps.push(Step::Stop("-KILL")),
            fence if fence.starts_with("```") => {
                let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
                let name = before.strip_suffix("`:").and_then(|text| text.rsplit('`').next());
                match (fence, name) {
                    ("```sh" | "```text" | "```console by-hand", _) => {}
                    ("```console", _) => {
                        steps.extend(commands(&block).map(|(command, prints)| Step::Run { command, prints }))
                    }
                    ("```console background", _) => steps
                        .extend(commands(&block).map(|(command, prints)| Step::Serve { command, prints })),
                    (_, Some(name)) => {
                        steps.push(Step::File { name: name.to_owned(), text: block.join("\n") + "\n" });
                    }
                    (fence, None) => panic!("a block nobody does anything with: {fence} {block:?}"),
                }
            }
            _ => {}
        }
        if !line.is_empty() {
            before = line.to_owned();
        }
    }
    steps
}

/// Each `$ command` with what follows it.
fn commands<'a>(block: &'a [&'a str]) -> impl Iterator<Item = (String, String)> + 'a {
    let starts: Vec<usize> = (0..block.len()).filter(|at| block[*at].starts_with("$ ")).collect();
    let ends = starts.iter().skip(1).copied().chain([block.len()]).collect::<Vec<_>>();
    starts
        .into_iter()
        .zip(ends)
        .map(|(start, end)| (block[start][2..].to_owned(), block[start + 1..end].join("\n")))
}

/// True if the output matches the page. `…` matches anything, also several lines.
fn looks_like(shown: &str, text: &str) -> bool {
    let mut rest = text.trim();
    let parts: Vec<&str> = shown.trim().split('…').map(str::trim).collect();
    let [first, between @ .., last] = &parts[..] else { return rest == shown.trim() };
    for (at, part) in std::iter::once(first).chain(between).enumerate() {
        let found = if at == 0 { rest.starts_with(part).then_some(0) } else { rest.find(part) };
        match found {
            Some(start) => rest = &rest[start + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

struct Desk {
    folder: PathBuf,
    port: u16,
    server: Option<(Child, PathBuf)>,
}

impl Desk {
    /// A shell command in the folder, with `baton` being the one that was built.
    fn shell(&self, command: &str) -> Command {
        let built = Path::new(env!("CARGO_BIN_EXE_baton")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("bash");
        shell.args(["-c", &command.replace(PORT, &self.port.to_string())]).current_dir(&self.folder);
        shell.env("PATH", format!("{}:{path}", built.display())).stdin(Stdio::null());
        let mut shell = with_clean_environment(shell);
        // A user whose own settings are nobody's.
        shell.env("HOME", &self.folder);
        // The page listens where everybody does; here that place may be taken.
        shell.env("BATON_LISTEN", format!("127.0.0.1:{}", self.port));
        if let Some((server, _)) = &self.server {
            shell.env("BATON_PID", server.id().to_string());
        }
        shell
    }

    fn run(&self, command: &str) -> String {
        let (out, err) = (self.folder.join("out"), self.folder.join("err"));
        let mut shell = self.shell(command);
        shell.stdout(fs::File::create(&out).unwrap()).stderr(fs::File::create(&err).unwrap());
        let mut child = shell.spawn().unwrap();
        let since = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if since.elapsed() > PATIENCE {
                child.kill().unwrap();
                panic!("`{command}` does not end");
            }
            thread::sleep(Duration::from_millis(5)); // tidy: allow-sleep a process that ends tells nobody
        };
        let (out, err) = (fs::read_to_string(&out).unwrap(), fs::read_to_string(&err).unwrap());
        assert!(status.success(), "`{command}`: {status}\n{out}{err}");
        // Said only where an answer takes long, as on a busy machine.
        let waiting = |line: &&str| !line.starts_with("Waiting for task ");
        out + &err.split_inclusive('\n').filter(waiting).collect::<String>()
    }

    fn serve(&mut self, command: &str, prints: &str) {
        assert!(self.server.is_none(), "`{command}`: the page has not stopped the one before");
        // A person's shell is free again and knows the number; here every command is told it.
        let command = command.strip_suffix(" & BATON_PID=$!").unwrap_or(command);
        let out = self.folder.join("server-out");
        let mut shell = self.shell(&format!("exec {command}"));
        shell.stdout(fs::File::create(&out).unwrap()).stderr(Stdio::null());
        let child = shell.spawn().unwrap();
        self.server = Some((child, out.clone()));
        let since = Instant::now();
        loop {
            let said = fs::read_to_string(&out).unwrap().replace(&self.port.to_string(), PORT);
            let answers = |scheme: &str| {
                let mut curl = Command::new("curl");
                curl.args(["-sSfk", &format!("{scheme}://127.0.0.1:{}/healthz", self.port)]);
                curl.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
            };
            if (answers("http") || answers("https")) && looks_like(prints, &said) {
                return;
            }
            assert!(
                since.elapsed() < PATIENCE,
                "`{command}` printed\n{said}\nwhere the page shows\n{prints}"
            );
        }
    }

    fn stop(&mut self, signal: &str) {
        let (mut server, _) = self.server.take().expect("a server to stop");
        assert!(Command::new("kill").args([signal, &server.id().to_string()]).status().unwrap().success());
        let status = server.wait().unwrap();
        assert_eq!(status.success(), signal != "-KILL", "the server ended with {status}");
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if let Some((mut server, _)) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// Runs all commands of a page, in a folder of its own.
fn follow(page: &str, at_least: usize) {
    let steps = steps(page);
    assert!(steps.len() >= at_least, "the page was read");
    let folder = tempfile::tempdir().unwrap();
    // Free a moment ago; the server is told to take just this one.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut desk = Desk { folder: folder.path().to_owned(), port, server: None };
    for step in steps {
        match step {
            Step::File { name, text } => {
                fs::File::create(desk.folder.join(name)).unwrap().write_all(text.as_bytes()).unwrap();
            }
            Step::Run { command, prints } => {
                let said = desk.run(&command).replace(&port.to_string(), PORT);
                assert!(
                    looks_like(&prints, &said),
                    "`{command}` printed\n{said}\nwhere the page shows\n{prints}"
                );
            }
            Step::Serve { command, prints } => desk.serve(&command, &prints),
            Step::Stop(signal) => desk.stop(signal),
        }
    }
    assert!(desk.server.is_none(), "the page leaves a server running");
}

#[test]
fn s18_every_command_of_getting_started_does_what_the_page_shows() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/getting-started.md");
    follow(&fs::read_to_string(page).unwrap(), 20);
}

#[test]
fn p09_every_command_of_the_client_s_manual_does_what_it_shows() {
    follow(&fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md")).unwrap(), 6);
}

/// From one secret to an identity provider: each scheme has an example.
#[test]
fn p05_every_command_of_the_page_about_callers_does_what_it_shows() {
    follow(&fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/auth.md")).unwrap(), 40);
}

#[test]
fn s18_every_command_on_the_first_screen_does_what_it_shows() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let (first_screen, _) = page.split_once("\n## ").expect("the README has headings");
    follow(first_screen, 7);
}

#[test]
fn what_the_page_shows_is_compared() {
    for (shown, text, alike) in [
        ("ok", "ok\n", true),
        ("ok", "okay", false),
        ("a …", "a b\nc", true),
        ("a … c", "a b c", true),
        ("a … c", "a b c d", false),
        ("…\nb\n…", "a\nb\nc", true),
        ("…\nb\n…", "a\nc", false),
        ("", "", true),
        ("", "x", false),
    ] {
        assert_eq!(looks_like(shown, text), alike, "{shown:?} {text:?}");
    }
}
