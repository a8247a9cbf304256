//! Package caches: where package managers keep what they have downloaded. Each is writable inside,
//! and what is written there is the workspace's own. A new one is a line here.

/// A directory of downloads.
pub(crate) struct Cache {
    /// Its name among the caches of a workspace, which stays the same from session to session.
    pub(crate) name: &'static str,
    /// The variable that says where it, or what holds it, is. It passes. Empty if there is none.
    pub(crate) variable: &'static str,
    /// Where that is if the variable is not set, below the home. Empty if it is in `~/.cache`.
    pub(crate) place: &'static str,
    /// The part that is the cache. Empty: all of it.
    pub(crate) part: &'static str,
    /// Where the cache does not exist, an empty one is made for whoever has this program.
    pub(crate) program: &'static str,
}

const fn cache(
    name: &'static str,
    variable: &'static str,
    place: &'static str,
    part: &'static str,
    program: &'static str,
) -> Cache {
    Cache {
        name,
        variable,
        place,
        part,
        program,
    }
}

/// The name of `~/.cache`.
pub(crate) const BULK: &str = "cache";

#[rustfmt::skip]
pub(crate) const CACHES: &[Cache] = &[
    cache("cargo-registry", "CARGO_HOME", ".cargo", "registry", "cargo"),
    cache("cargo-git", "CARGO_HOME", ".cargo", "git", "cargo"),
    cache("go", "GOPATH", "go", "pkg", "go"),
    cache("go-modules", "GOMODCACHE", "", "", ""),
    cache("go-build", "GOCACHE", "", "", ""),
    cache("npm", "npm_config_cache", ".npm", "", "npm"),
    cache("npm-capitals", "NPM_CONFIG_CACHE", "", "", ""),
    cache("pnpm", "PNPM_HOME", ".local/share/pnpm", "store", "pnpm"),
    cache("yarn", "YARN_CACHE_FOLDER", "", "", ""),
    cache("yarn-berry", "YARN_GLOBAL_FOLDER", ".yarn/berry", "", "yarn"),
    cache("bun", "BUN_INSTALL", ".bun", "install/cache", "bun"),
    cache("bun-cache", "BUN_INSTALL_CACHE_DIR", "", "", ""),
    cache("deno", "DENO_DIR", "", "", ""),
    cache("pip", "PIP_CACHE_DIR", "", "", ""),
    cache("uv", "UV_CACHE_DIR", "", "", ""),
    cache("conda", "CONDA_PKGS_DIRS", ".conda/pkgs", "", "conda"),
    cache("maven", "", ".m2", "repository", "java"),
    cache("maven-wrapper", "", ".m2", "wrapper", "java"),
    cache("gradle", "GRADLE_USER_HOME", ".gradle", "caches", "java"),
    cache("gradle-wrapper", "GRADLE_USER_HOME", ".gradle", "wrapper", "java"),
    cache("ivy", "", ".ivy2", "cache", ""),
    cache("nuget", "NUGET_PACKAGES", ".nuget/packages", "", "dotnet"),
    cache("ccache", "CCACHE_DIR", ".ccache", "", ""),
    cache("sccache", "SCCACHE_DIR", "", "", ""),
];

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use super::*;
    use crate::tables::credentials::known_places;

    #[test]
    fn no_cache_holds_a_secret_or_lies_among_secrets_and_each_has_a_name_of_its_own() {
        let mut names = BTreeSet::from([BULK]);
        for Cache {
            name, place, part, ..
        } in CACHES
        {
            assert!(names.insert(name), "{name}");
            let shown = Path::new(place).join(part);
            for (secret, _) in known_places().filter(|_| !place.is_empty()) {
                let secret = Path::new(secret);
                let meets = shown.starts_with(secret) || secret.starts_with(&shown);
                assert!(!meets, "{shown:?}: {secret:?}");
            }
        }
    }
}
