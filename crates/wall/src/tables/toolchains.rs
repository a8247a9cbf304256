//! Toolchains: where managers of compilers and interpreters keep what they install. Every command
//! can read them, whatever its profile. A new one is a line here.

/// A directory of tools.
pub(crate) struct Toolchain {
    /// The variable that says where it is. It passes. Empty if there is none.
    pub(crate) variable: &'static str,
    /// Where it is if the variable is not set, below the home. Empty if only the variable says it,
    /// or if it is in `~/.local/share`, which is shown anyway.
    pub(crate) place: &'static str,
    /// The parts that are shown, where the rest is settings or caches. Empty: all of it.
    pub(crate) parts: &'static [&'static str],
}

const fn all(variable: &'static str, place: &'static str) -> Toolchain {
    parts(variable, place, &[])
}

const fn parts(
    variable: &'static str,
    place: &'static str,
    parts: &'static [&'static str],
) -> Toolchain {
    Toolchain {
        variable,
        place,
        parts,
    }
}

#[rustfmt::skip]
pub(crate) const TOOLCHAINS: &[Toolchain] = &[
    // Rust.
    all("RUSTUP_HOME", ".rustup"),
    parts("CARGO_HOME", ".cargo", &["bin"]),
    // Node.
    all("NVM_DIR", ".nvm"),
    all("FNM_DIR", ".fnm"),
    all("VOLTA_HOME", ".volta"),
    all("NODENV_ROOT", ".nodenv"),
    all("", ".npm-global"),
    all("npm_config_prefix", ""),
    all("NPM_CONFIG_PREFIX", ""),
    all("PNPM_HOME", ""),
    parts("DENO_INSTALL", ".deno", &["bin"]),
    parts("BUN_INSTALL", ".bun", &["bin", "install/global"]),
    // Several languages.
    all("ASDF_DATA_DIR", ".asdf"),
    all("MISE_DATA_DIR", ""),
    all("", ".nix-profile"),
    // Python.
    all("PYENV_ROOT", ".pyenv"),
    all("UV_PYTHON_INSTALL_DIR", ""),
    all("UV_TOOL_DIR", ""),
    all("PIPX_HOME", ""),
    all("PIXI_HOME", ".pixi"),
    all("MAMBA_ROOT_PREFIX", "micromamba"),
    all("", "miniconda3"),
    all("", "anaconda3"),
    all("", "miniforge3"),
    all("", "mambaforge"),
    // Others.
    all("RBENV_ROOT", ".rbenv"),
    all("rvm_path", ".rvm"),
    all("SDKMAN_DIR", ".sdkman"),
    all("JAVA_HOME", ""),
    all("GOROOT", ""),
    parts("GOPATH", "go", &["bin"]),
    all("", ".ghcup"),
    parts("", ".cabal", &["bin"]),
    all("OPAMROOT", ".opam"),
    all("ELAN_HOME", ".elan"),
    parts("", ".julia", &["juliaup"]),
    all("", ".juliaup"),
];

/// Whether all of what a variable names is shown.
pub(crate) fn is_shown_whole(variable: &str) -> bool {
    let is_it = |it: &Toolchain| it.variable == variable && it.parts.is_empty();
    !variable.is_empty() && TOOLCHAINS.iter().any(is_it)
}

/// Variables that choose a version. They name no place.
pub(crate) const VERSIONS: &[&str] = &[
    "RUSTUP_TOOLCHAIN",
    "GOTOOLCHAIN",
    "PYENV_VERSION",
    "RBENV_VERSION",
    "NODENV_VERSION",
];

/// Programs of `~/.local/bin` that toolchains start by that path.
pub(crate) const MANAGERS: &[&str] = &["mise", "micromamba", "pixi", "volta", "fnm"];

/// What a link in `~/.local/bin` may lead to: tools that a manager has installed.
pub(crate) const INSTALLED_TOOLS: &str = ".local/share";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::tables::credentials::known_places;

    #[test]
    fn what_is_shown_of_a_toolchain_neither_holds_a_secret_nor_lies_among_secrets() {
        for Toolchain { place, parts, .. } in TOOLCHAINS {
            let whole = [""];
            let parts = if parts.is_empty() { &whole } else { *parts };
            for part in parts.iter().filter(|_| !place.is_empty()) {
                let shown = Path::new(place).join(part);
                for (secret, _) in known_places() {
                    let secret = Path::new(secret);
                    let meets = shown.starts_with(secret) || secret.starts_with(&shown);
                    assert!(!meets, "{shown:?}: {secret:?}");
                }
            }
        }
    }
}
