//! `baton completion <shell>`: a script that completes commands and options.

use clap::ValueEnum;
use clap_complete::Shell;
use clap_complete_nushell::Nushell;

use crate::exit::Failure;

const INSTALL: &str = "\
Install it with one of:
  bash        baton completion bash > ~/.local/share/bash-completion/completions/baton
  zsh         baton completion zsh > \"${fpath[1]}/_baton\"
  fish        baton completion fish > ~/.config/fish/completions/baton.fish
  powershell  baton completion powershell | Out-String | Invoke-Expression
  elvish      eval (baton completion elvish | slurp)
  nushell     baton completion nushell | save baton.nu; source baton.nu";

#[derive(Debug, clap::Args)]
#[command(after_help = INSTALL)]
pub(crate) struct Completion {
    /// The shell.
    #[arg(value_enum)]
    shell: Named,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Named {
    Bash,
    Zsh,
    Fish,
    Powershell,
    Elvish,
    Nushell,
}

pub(crate) fn run(args: &Completion) -> Result<(), Failure> {
    let mut command = crate::args::command();
    let mut script = Vec::new();
    let mut write = |generator: Shell| clap_complete::generate(generator, &mut command, "baton", &mut script);
    match args.shell {
        Named::Bash => write(Shell::Bash),
        Named::Zsh => write(Shell::Zsh),
        Named::Fish => write(Shell::Fish),
        Named::Powershell => write(Shell::PowerShell),
        Named::Elvish => write(Shell::Elvish),
        Named::Nushell => clap_complete::generate(Nushell, &mut command, "baton", &mut script),
    }
    super::print(&String::from_utf8_lossy(&script))
}
