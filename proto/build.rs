//! Compiles the `.proto` files with a parser written in Rust, so that no `protoc` is needed.

use prost::Message as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files =
        ["proto/openpact/frontend/v1/frontend.proto", "proto/openpact/control/v1/control.proto"];
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(files, ["proto"])?;
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
