//! Makes cargo notice a new migration: the folder lies outside this crate, where it does not look by itself.

fn main() {
    println!("cargo::rerun-if-changed=../../migrations");
}
