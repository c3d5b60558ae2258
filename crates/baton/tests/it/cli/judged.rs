//! The client commands, judged by the lab's scripted agents: correct, odd, broken and lying ones.

use super::{Said, User};

/// Every rule that was seen is kept; nothing hangs, and nothing wrong is taken for a result.
#[test]
fn p09_the_client_commands_keep_every_rule_in_every_generation_and_binding() {
    let user = User::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/cli/judged.sh");
    for generation in ["1.0", "0.3", "0.1"] {
        let args = [
            "test",
            "--as-server",
            "--generation",
            generation,
            "--timeout",
            "60s",
            "--strict",
            "--",
            "sh",
            script,
        ];
        let mut command = user.command(&args);
        let said = Said::of(command.env("BATON", env!("CARGO_BIN_EXE_baton")));
        assert_eq!(said.code, Some(0), "{generation}: {}\n{}", said.out, said.err);
        assert!(!said.out.contains("FAIL") && !said.out.contains("WARN"), "{}", said.out);
    }
}
