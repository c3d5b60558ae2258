//! Starts a PostgreSQL and a Redis server, on free ports and in a temporary folder, for the stores' contract suite.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, io};

use crate::process::{output, run as execute};
use crate::workspace::Workspace;

const START: Duration = Duration::from_secs(30);

/// Debian's folder for PostgreSQL programs that are not on the PATH.
const DEBIAN: &str = "/usr/lib/postgresql/15/bin";

const FEATURES: &str = "postgres,redis,store-suite";

/// Runs the contract suite, and each backend's own tests, on real servers; and the suite on a store from outside.
pub fn test_stores(workspace: &Workspace) -> Result<(), String> {
    // The clippy stage does not enable these features.
    let clippy = ["clippy", "--package", "baton-server", "--all-targets", "--no-deps", "--locked"];
    execute(workspace.cargo(&clippy).args(["--features", FEATURES, "--", "-D", "warnings"]))?;
    let folder = Folder::new()?;
    let postgres = start_postgres(&folder.0)?;
    let redis = start_redis(&folder.0)?;
    // Only these tests of baton-server: the others do not depend on the features.
    let args = [
        "nextest",
        "run",
        "--package",
        "baton-server",
        "--lib",
        "--example",
        "own_store",
        "--features",
        FEATURES,
        "--locked",
        "--profile",
        "stores",
        "--filterset",
        "test(postgres) | test(redis) | test(a_store_from_outside)",
    ];
    execute(
        workspace
            .cargo(&args)
            .env("BATON_TEST_POSTGRES", format!("postgres://baton@{}/postgres", postgres.address))
            .env("BATON_TEST_REDIS", format!("redis://{}", redis.address)),
    )
    .map_err(|reason| format!("{reason}\n{}\n{}", postgres.log_tail(), redis.log_tail()))
}

/// A server that we started; dropping this stops it, also if the tests fail.
struct Server {
    process: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Server {
    fn start(command: &mut Command, address: SocketAddr, log: PathBuf) -> Result<Self, String> {
        let out = fs::File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let errors = out.try_clone().map_err(|e| format!("{}: {e}", log.display()))?;
        let process = command.stdin(Stdio::null()).stdout(out).stderr(errors).spawn();
        let process = process.map_err(|e| format!("{}: {e}", command.get_program().display()))?;
        let mut server = Server { process, address, log };
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            let ended = server.process.try_wait().map_err(|e| format!("the server: {e}"))?;
            if ended.is_some() || start.elapsed() > START {
                return Err(format!("no server listens on {address}\n{}", server.log_tail()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    fn log_tail(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let all: Vec<&str> = log.lines().collect();
        format!("-- {} --\n{}", self.log.display(), all[all.len().saturating_sub(20)..].join("\n"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGINT lets PostgreSQL end its own processes; a kill would leave them, and shared memory, behind.
        let pid = self.process.id().to_string();
        let asked = Command::new("kill").args(["-INT", &pid]).status().is_ok_and(|status| status.success());
        let start = Instant::now();
        while asked && start.elapsed() < START {
            if matches!(self.process.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A temporary folder; dropped after the servers that use it.
struct Folder(PathBuf);

impl Folder {
    /// In the system's temporary folder, since another user must be able to enter it.
    fn new() -> Result<Self, String> {
        let path = env::temp_dir().join(format!("baton-stores-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn start_postgres(folder: &Path) -> Result<Server, String> {
    let user = Unprivileged::find()?;
    let home = folder.join("postgres");
    fs::create_dir_all(&home)
        .and_then(|()| user.own(&home))
        .map_err(|e| format!("{}: {e}", home.display()))?;
    let data = home.join("data");
    let mut initdb = user.command(&program("initdb"));
    initdb.args(["--username", "baton", "--auth", "trust", "--encoding", "UTF8", "--no-sync"]);
    // A collation of a language, as many databases have by default: lists must not depend on it.
    initdb.args(["--locale-provider", "icu", "--icu-locale", "en-US", "--pgdata"]);
    output(initdb.arg(&data).current_dir(&home))?;
    let address = free_address()?;
    let mut postgres = user.command(&program("postgres"));
    postgres.arg("-D").arg(&data).args(["-p", &address.port().to_string()]).current_dir(&home);
    // The suite tests order and atomicity; PostgreSQL's durability is not tested here.
    for setting in
        ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200", "fsync=off"]
    {
        postgres.args(["-c", setting]);
    }
    Server::start(&mut postgres, address, folder.join("postgres.log"))
}

fn start_redis(folder: &Path) -> Result<Server, String> {
    let home = folder.join("redis");
    fs::create_dir_all(&home).map_err(|e| format!("{}: {e}", home.display()))?;
    let address = free_address()?;
    let mut redis = Command::new("redis-server");
    redis.args(["--bind", "127.0.0.1", "--port", &address.port().to_string(), "--save", ""]);
    redis.args(["--appendonly", "yes", "--maxmemory-policy", "noeviction"]).current_dir(&home);
    Server::start(&mut redis, address, folder.join("redis.log"))
}

/// PostgreSQL refuses to run as root.
struct Unprivileged(Option<(u32, u32)>);

impl Unprivileged {
    fn find() -> Result<Self, String> {
        let number = |args: &[&str]| -> Result<u32, String> {
            let said = output(Command::new("id").args(args))?;
            said.trim().parse().map_err(|_| format!("`id {}` said {said}", args.join(" ")))
        };
        if number(&["-u"])? != 0 {
            return Ok(Unprivileged(None));
        }
        Ok(Unprivileged(Some((number(&["-u", "postgres"])?, number(&["-g", "postgres"])?))))
    }

    fn own(&self, folder: &Path) -> io::Result<()> {
        self.0.map_or(Ok(()), |(user, group)| chown(folder, Some(user), Some(group)))
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group);
        }
        command
    }
}

fn program(name: &str) -> PathBuf {
    let debian = Path::new(DEBIAN).join(name);
    if debian.exists() { debian } else { PathBuf::from(name) }
}

/// A port that was free a moment ago; the system gives the next ephemeral port another number.
fn free_address() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| format!("no free port: {e}"))?;
    listener.local_addr().map_err(|e| format!("no free port: {e}"))
}
