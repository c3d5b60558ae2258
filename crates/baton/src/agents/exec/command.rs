//! Turns the typed command into an argument vector and a name, and checks that it can be run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::ExecOptions;

const SHELL: &str = "/bin/sh";

/// Programs that run a script: the agent is named after the script instead.
const INTERPRETERS: &[&str] = &[
    "bash", "bun", "deno", "env", "node", "npx", "perl", "python", "python3", "ruby", "sh", "uv", "uvx",
    "zsh",
];

/// One plain word is the program itself; a command with a space, a quote or a shell character runs through the shell.
pub(crate) fn parse(typed: &str) -> Vec<String> {
    if typed.trim().is_empty() {
        Vec::new()
    } else if is_plain(typed) {
        vec![typed.to_owned()]
    } else {
        vec![SHELL.to_owned(), "-c".to_owned(), typed.to_owned()]
    }
}

fn is_plain(typed: &str) -> bool {
    let harmless = |c: char| c.is_alphanumeric() || "/._-+@%:,".contains(c);
    typed.chars().all(harmless)
}

/// The agent's default name: `greet` for `examples/exec/greet.py` and for `python3 -u greet.py`.
pub(crate) fn name(typed: &str) -> String {
    let bare = |word: &str| {
        let word = word.trim_matches(['\'', '"']);
        Path::new(word).file_stem().and_then(OsStr::to_str).unwrap_or_default().to_owned()
    };
    let mut words = typed.split_whitespace().filter(|word| !word.starts_with('-')).map(bare);
    let named = words.find(|word| !word.is_empty() && !INTERPRETERS.contains(&word.as_str()));
    let fallback = || typed.split_whitespace().next().map(bare).filter(|word| !word.is_empty());
    named.or_else(fallback).unwrap_or_else(|| "program".to_owned())
}

/// Finds out at start that a command cannot be run. A shell command line is not checked.
pub(super) fn check(options: &ExecOptions, path: Option<&OsStr>) -> Result<(), String> {
    let Some(program) = options.command.first().filter(|program| !program.is_empty()) else {
        return Err("the command is empty; give a program and its arguments".to_owned());
    };
    if let Some(directory) = options.directory.as_ref().filter(|directory| !directory.is_dir()) {
        return Err(format!("{} is not a folder to run in", directory.display()));
    }
    if program.contains('/') {
        let file = options.directory.as_deref().unwrap_or(Path::new("")).join(program);
        return runnable(&file).map_err(|reason| format!("{program}: {reason}"));
    }
    let folders: Vec<PathBuf> = path.map(|path| std::env::split_paths(path).collect()).unwrap_or_default();
    if folders.iter().any(|folder| runnable(&folder.join(program)).is_ok()) {
        return Ok(());
    }
    let here = Path::new(program).exists();
    let hint = if here { format!("; for the one in this folder say ./{program}") } else { String::new() };
    Err(format!("no program `{program}` is on the PATH{hint}"))
}

/// File extensions of scripts.
const SCRIPTS: &[&str] = &["bash", "cjs", "js", "mjs", "pl", "py", "rb", "sh", "ts", "zsh"];

/// The missing script of an interpreter, as in `python3 nofile.py`. Good for a warning only: the interpreter alone
/// knows what its arguments mean. Shell lines that do more than start one program are not checked.
pub(crate) fn missing_script(command: &[String], directory: Option<&Path>) -> Option<String> {
    let words: Vec<&str> = match command {
        [shell, flag, line] if shell == SHELL && flag == "-c" => {
            let words: Vec<_> = line.split_whitespace().collect();
            words.iter().all(|word| is_plain(word)).then_some(words)?
        }
        words => words.iter().map(String::as_str).collect(),
    };
    let interpreter = Path::new(words.first()?).file_name()?.to_str()?;
    if !INTERPRETERS.contains(&interpreter) {
        return None;
    }
    let is_script = |word: &&str| {
        let ending = Path::new(word).extension().and_then(OsStr::to_str);
        let scripted = ending.is_some_and(|ending| SCRIPTS.contains(&ending));
        scripted && !word.starts_with('-') && !word.contains("://")
    };
    let script = words.into_iter().skip(1).find(is_script)?;
    let folder = directory.map(Path::to_owned).or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    let missing = !folder.join(script).exists();
    missing.then(|| {
        let folder = folder.display();
        format!("there is no file {script} in {folder}: tasks will fail until it is there")
    })
}

fn runnable(file: &Path) -> Result<(), String> {
    let found = std::fs::metadata(file).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("is not a file".to_owned());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if found.permissions().mode() & 0o111 == 0 {
            let shown = file.display();
            return Err(format!(
                "is not executable; `chmod +x {shown}`, or name what runs it, as in 'python3 {shown}'"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_a_program_and_more_is_for_the_shell() {
        assert_eq!(parse("./greet.py"), ["./greet.py"]);
        assert_eq!(parse("jq"), ["jq"]);
        for typed in ["python3 greet.py", "echo;echo", "~/bin/x", "$HOME/x", "a|b", "a\nb"] {
            assert_eq!(parse(typed), [SHELL, "-c", typed]);
        }
        assert!(parse(" ").is_empty());
    }

    #[test]
    fn the_name_is_what_is_run_not_what_runs_it() {
        for (typed, expected) in [
            ("examples/exec/greet.py", "greet"),
            ("python3 -u examples/exec/greet.py --loud", "greet"),
            ("node 'ask.mjs'", "ask"),
            ("/usr/bin/env python3", "env"),
            ("jq .name", "jq"),
            ("", "program"),
            ("''", "program"),
        ] {
            assert_eq!(name(typed), expected, "{typed}");
        }
    }

    #[test]
    fn a_script_that_is_not_there_is_noticed_where_the_line_is_plain() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("there.py"), "").unwrap();
        let missing = |line: &str| missing_script(&parse(line), Some(folder.path()));
        for line in [
            "python3 nofile.py",
            "/usr/bin/python3 -u nofile.py --fast",
            "env python3 nofile.py",
            "deno run nofile.ts",
        ] {
            let said = missing(line).unwrap_or_else(|| panic!("{line}"));
            assert!(said.contains("no file nofile."), "{said}");
        }
        let words = ["node", "no file.js"].map(str::to_owned);
        assert!(missing_script(&words, Some(folder.path())).is_some(), "no shell is involved");
        for line in [
            "python3 there.py nofile.py",
            "python3 -m module",
            "cat nofile.py",
            "cd elsewhere && python3 nofile.py",
            "python3 \"$SCRIPT\".py",
            "deno run https://scripts.example/nofile.ts",
            "docker run image python3 nofile.py",
        ] {
            assert_eq!(missing(line), None, "{line}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_cannot_be_run_is_said_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("script.py"), "").unwrap();
        let check = |command: &str, directory: Option<&Path>| {
            let command = if command.is_empty() { Vec::new() } else { vec![command.to_owned()] };
            let options =
                ExecOptions { command, directory: directory.map(Path::to_owned), ..ExecOptions::default() };
            check(&options, Some(OsStr::new("/bin:/usr/bin")))
        };
        assert_eq!(check("sh", None), Ok(()));
        assert_eq!(check("/bin/sh", None), Ok(()));
        for (command, directory, reason) in [
            ("", None, "the command is empty"),
            ("surely-not-there", None, "no program `surely-not-there` is on the PATH"),
            ("./surely-not-there", None, "No such file"),
            ("/", None, "is not a file"),
            ("./script.py", Some(folder.path()), "chmod +x"),
            ("sh", Some(Path::new("/surely/not/there")), "is not a folder"),
        ] {
            let refused = check(command, directory).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
