//! Chooses the hooks of this workspace for the source of the program and of its wall.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(sabotage)");
    println!("cargo::rustc-cfg=sabotage");
    println!("cargo::rerun-if-changed=build.rs");
}
