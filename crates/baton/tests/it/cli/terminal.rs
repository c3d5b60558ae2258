//! `baton chat` and a waiting `send` as a person sees them, on a terminal of the kernel's.
//!
//! The test itself holds the other end: `script` of util-linux gives up 10 ms after the command's end, and on a busy machine
//! the last words are still on their way then. Only a session's first process can own a terminal; `setsid` makes it one.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::User;
use super::user::with_clean_environment;
use crate::served::Served;

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const SIZE: Winsize = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };

/// A command in a terminal.
struct Terminal {
    child: Child,
    keys: File,
    shown: Receiver<Vec<u8>>,
    /// Everything that was shown and not looked at yet.
    rest: String,
}

impl Terminal {
    fn start(user: &User, args: &[&str]) -> Self {
        Self::named("xterm", user, args)
    }

    fn named(kind: &str, user: &User, args: &[&str]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let of_child =
            rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        tcsetwinsize(&of_child, SIZE).unwrap();
        let command = user.command(args);
        let mut setsid = with_clean_environment(Command::new("setsid"));
        setsid.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args());
        setsid.env("HOME", user.home()).env("NO_COLOR", "1").env("TERM", kind).current_dir(user.folder());
        setsid.stdin(of_child.try_clone().unwrap()).stdout(of_child.try_clone().unwrap()).stderr(of_child);
        let child = setsid.spawn().expect("`setsid` of util-linux is needed");
        let mut out = File::from(ours);
        let keys = out.try_clone().unwrap();
        let (send, shown) = channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // An error once nobody has the other end open, and everything was read.
            while let Ok(count @ 1..) = out.read(&mut buffer) {
                if send.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { child, keys, shown, rest: String::new() }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until these words are shown; returns what was shown up to their end.
    #[track_caller]
    fn until(&mut self, words: &str) -> String {
        loop {
            if let Some(at) = self.rest.find(words) {
                let rest = self.rest.split_off(at + words.len());
                return std::mem::replace(&mut self.rest, rest);
            }
            let more = self.shown.recv_timeout(PATIENCE);
            let more = more.unwrap_or_else(|error| panic!("no {words:?}: {error}: {:?}", self.rest));
            self.rest += &String::from_utf8_lossy(&more);
            // They change how pasted text is sent, and show nothing.
            self.rest = self.rest.replace("\u{1b}[?2004h", "").replace("\u{1b}[?2004l", "");
        }
    }

    /// All the rest, and the exit status.
    fn end(mut self) -> (String, Option<i32>) {
        let status = self.child.wait().unwrap();
        while let Ok(more) = self.shown.recv_timeout(PATIENCE) {
            self.rest += &String::from_utf8_lossy(&more);
        }
        (self.rest, status.code())
    }
}

#[test]
fn p09_cli_chat_001_a_conversation_at_a_terminal() {
    let (served, user) = (Served::start(), User::new());
    std::fs::write(user.folder().join("a.txt"), "x").unwrap();
    let mut terminal = Terminal::start(&user, &["chat", &served.url]);
    terminal.until("Baton demo agent. /help lists the commands, Ctrl-D leaves.");
    terminal.until("> ");
    // A slip of the finger, mended with the cursor keys.
    terminal.press("hexlo\u{1b}[D\u{1b}[D\u{7f}l\r");
    let said = terminal.until("completed)\r\n");
    assert!(said.contains("\r\nhello\r\n"), "{said:?}");
    terminal.until("(context ");
    terminal.until("> ");
    // Pasted text is one message, and earlier ones come back.
    terminal.press("\u{1b}[200~one\rtwo\u{1b}[201~\r");
    terminal.until("\r\none\r\ntwo\r\n");
    terminal.until("> ");
    terminal.press("\u{1b}[A\u{1b}[A\r");
    terminal.until("\r\nhello\r\n");
    terminal.until("> ");
    terminal.press("/file missing.txt\r");
    terminal.until("\r\nmissing.txt: No such file");
    terminal.until("> ");
    terminal.press("/file a.txt\r");
    terminal.until("(a.txt goes with the next message)");
    terminal.until("> ");
    // Ctrl-C cancels the task, and the chat goes on.
    terminal.press("wait until I cancel\r");
    terminal.until("Waiting to be canceled.");
    terminal.press("\u{3}");
    terminal.until("canceled)\r\n");
    terminal.until("> ");
    terminal.press("ask me something\r");
    let said = terminal.until("waits for your answer)");
    let id = said.rsplit("(task ").next().unwrap().split(' ').next().unwrap().to_owned();
    terminal.until("> ");
    terminal.press("\u{4}");
    let (rest, code) = terminal.end();
    assert_eq!(code, Some(0), "{rest:?}");
    assert!(rest.contains("Resume: baton chat -a ") && rest.contains(&format!("--task-id={id}")), "{rest:?}");
    let asked = user.run(&["task", "get", &served.url, &id]).ok();
    assert_eq!(asked.field("State"), "TASK_STATE_INPUT_REQUIRED");
}

/// Some terminals, such as those inside editors, only show text.
#[test]
fn p09_cli_chat_001_a_simple_terminal_gets_no_control_sequence() {
    let (served, user) = (Served::start(), User::new());
    let mut terminal = Terminal::named("dumb", &user, &["chat", &served.url]);
    let mut shown = terminal.until("> ");
    terminal.press("hello\n");
    shown += &terminal.until("completed)");
    shown += &terminal.until("> ");
    terminal.press("\u{4}");
    let (rest, code) = terminal.end();
    shown += &rest;
    assert_eq!(code, Some(0), "{shown:?}");
    assert!(shown.contains("Resume: baton chat ") && !shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn p09_cli_task_poll_002_ctrl_c_at_a_terminal_ends_the_wait() {
    let (served, user) = (Served::start(), User::new());
    let mut terminal = Terminal::start(&user, &["send", &served.url, "wait until I cancel"]);
    let said = terminal.until("; Ctrl-C stops waiting, and the task goes on\r\n");
    let id = said.rsplit("Waiting for task ").next().unwrap().split(';').next().unwrap().to_owned();
    terminal.press("\u{3}");
    let (rest, code) = terminal.end();
    assert_eq!(code, Some(130), "{rest:?}");
    let expected = format!(
        "\r\nStopped waiting; the task goes on\r\nResume: baton task get -a {} --wait {id}\r\n",
        served.url
    );
    assert!(rest.ends_with(&expected), "{rest:?}");
}
