//! Runs other programs: prints the command, then checks the exit code.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs with our own output streams and fails unless the exit code is zero.
pub fn run(command: &mut Command) -> Result<(), String> {
    println!("$ {}", shown(command));
    let status = command.status().map_err(|e| format!("{}: {e}", shown(command)))?;
    if status.success() { Ok(()) } else { Err(format!("`{}` ended with {status}", shown(command))) }
}

/// Runs silently and returns standard output; fails unless the exit code is zero.
pub fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|e| format!("{}: {e}", shown(command)))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("`{}` ended with {}", shown(command), output.status))
    }
}

/// Whether the program exists and exits with success.
pub fn succeeds(command: &mut Command) -> bool {
    output(command).is_ok()
}

/// The command line as a person would type it: the program without its folder.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut words = vec![program.file_name().unwrap_or_default().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    words.join(" ")
}
