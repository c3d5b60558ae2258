//! `cargo xtask proto`: Rust messages and descriptors from the .proto files of gRPC. The crate in `xtask/proto` makes them;
//! its test says whether the committed files are up to date.

use crate::process::run as execute;
use crate::workspace::Workspace;

pub fn write(workspace: &Workspace) -> Result<(), String> {
    execute(&mut workspace.cargo(&["run", "--quiet", "--package", "xtask-proto"]))
}
