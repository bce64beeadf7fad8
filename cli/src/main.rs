//! The command line. What it does is in the library.
fn main() -> std::process::ExitCode {
    openpact_cli::main()
}
