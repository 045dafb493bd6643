//! tidegate with a clock that tests turn; see `testing` in the library.

#[path = "../main.rs"]
mod program;

fn main() -> std::process::ExitCode {
    program::main()
}
