//! Chooses the hooks of this package for the program's source.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(sabotage)");
    println!("cargo::rustc-cfg=sabotage");
    println!("cargo::rerun-if-changed=build.rs");
}
