//! tonic's code for the service of A2A 1.0, from the project's .proto file.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const FOLDER: &str = "../../crates/baton-protocol/proto";
    const FILE: &str = "lf/a2a/v1/a2a.proto";
    println!("cargo:rerun-if-changed={FOLDER}/{FILE}");
    let described = protox::compile([FILE], [FOLDER])?;
    // The other methods are not called.
    tonic_prost_build::configure().build_client(false).generate_default_stubs(true).compile_fds(described)?;
    Ok(())
}
