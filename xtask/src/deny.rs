//! `cargo xtask deny`: the licences and sources of everything that is linked in.
//!
//! It checks what `deny.toml` says, as `cargo deny check bans licenses sources` does, in a second:
//! building cargo-deny takes minutes, and every new developer would wait for it.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use serde::Deserialize;
use spdx::{Expression, Licensee};

/// Check licences and sources of all dependencies against deny.toml
#[derive(Parser)]
pub(crate) struct Arguments {}

/// The parts of `deny.toml` that are checked. A key that nobody checks is refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Bans {
    #[serde(rename = "multiple-versions")]
    _multiple_versions: Ignored,
    wildcards: Deny,
    allow_wildcard_paths: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sources {
    unknown_registry: Deny,
    unknown_git: Deny,
}

/// Several versions of one crate are a warning of cargo-deny's, never a failure.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Ignored {
    Warn,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Deny {
    Deny,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// Missing for a package of this repository.
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    req: String,
    path: Option<String>,
}

pub(crate) fn run(_: &Arguments) -> ExitCode {
    match check() {
        Ok(count) => {
            println!("{count} crates: licences and sources are as deny.toml allows");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn check() -> Result<usize> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let text = std::fs::read_to_string(format!("{root}/deny.toml")).context("reading deny.toml")?;
    let rules: Rules = toml::from_str(&text).context("deny.toml")?;
    let packages = packages(root, &rules.graph.targets)?;
    let faults = faults(&packages, &rules)?;
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    Ok(packages.len())
}

fn packages(root: &str, targets: &[String]) -> Result<Vec<Package>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root);
    cargo.args(["metadata", "--format-version=1", "--locked"]);
    for target in targets {
        cargo.args(["--filter-platform", target]);
    }
    let output = cargo.output().context("running cargo metadata")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata failed: {stderr}");
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    Ok(metadata.packages)
}

fn faults(packages: &[Package], rules: &Rules) -> Result<Vec<String>> {
    // There is one value of each: whoever wants another has to write its check.
    let (Deny::Deny, Deny::Deny, Deny::Deny) = (
        &rules.sources.unknown_registry,
        &rules.sources.unknown_git,
        &rules.bans.wildcards,
    );
    let allowed = rules.licenses.allow.iter().map(|name| {
        Licensee::parse(name).with_context(|| format!("deny.toml: unknown licence `{name}`"))
    });
    let allowed: Vec<Licensee> = allowed.collect::<Result<_>>()?;
    let mut faults = Vec::new();
    for package in packages {
        let crate_name = format!("{} {}", package.name, package.version);
        if let Some(fault) = license_fault(package.license.as_deref(), &allowed) {
            faults.push(format!("{crate_name}: {fault}"));
        }
        match &package.source {
            Some(source) if !is_crates_io(source) => {
                faults.push(format!(
                    "{crate_name}: comes from {source}, not from crates.io"
                ));
            }
            Some(_) => {}
            None => faults.extend(wildcards(package, rules.bans.allow_wildcard_paths)),
        }
    }
    Ok(faults)
}

fn license_fault(license: Option<&str>, allowed: &[Licensee]) -> Option<String> {
    let Some(license) = license else {
        return Some("names no licence".to_owned());
    };
    let Ok(expression) = Expression::parse_mode(license, spdx::ParseMode::LAX) else {
        return Some(format!("`{license}` is not a licence expression"));
    };
    let accepted = expression.evaluate(|needed| {
        let satisfies = |licensee: &Licensee| licensee.satisfies(needed);
        allowed.iter().any(satisfies)
    });
    (!accepted).then(|| format!("licence `{license}` is not in deny.toml's list"))
}

fn is_crates_io(source: &str) -> bool {
    source.starts_with("registry+") && source.ends_with("/crates.io-index")
}

fn wildcards(package: &Package, paths_may: bool) -> impl Iterator<Item = String> {
    let wild = package.dependencies.iter().filter(move |dependency| {
        dependency.req == "*" && !(paths_may && dependency.path.is_some())
    });
    wild.map(|dependency| {
        let (user, name) = (&package.name, &dependency.name);
        format!("{user}: takes any version of {name}; name one")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(license: Option<&str>, source: Option<&str>) -> Package {
        Package {
            name: "some".to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            source: source.map(str::to_owned),
            dependencies: Vec::new(),
        }
    }

    fn rules() -> Rules {
        toml::from_str(include_str!("../../deny.toml")).expect("deny.toml")
    }

    const INDEX: &str = "registry+https://example.org/crates.io-index";

    #[test]
    fn an_allowed_licence_passes_and_another_does_not() {
        let faults = |license| faults(&[package(license, Some(INDEX))], &rules()).expect("rules");
        for fine in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR ISC",
            "(MIT OR Zlib) AND Unicode-3.0",
        ] {
            assert_eq!(faults(Some(fine)), [""; 0], "{fine}");
        }
        for wrong in ["GPL-3.0", "MIT AND GPL-3.0", "no licence at all"] {
            assert_eq!(faults(Some(wrong)).len(), 1, "{wrong}");
        }
        assert_eq!(faults(None), ["some 1.0.0: names no licence"]);
    }

    #[test]
    fn a_source_other_than_the_registry_is_a_fault() {
        let faults = |source| faults(&[package(Some("MIT"), source)], &rules()).expect("rules");
        assert_eq!(faults(Some(INDEX)), [""; 0]);
        assert_eq!(faults(None), [""; 0], "a crate of this repository");
        for wrong in [
            "git+https://example.org/x",
            "registry+https://example.org/other",
        ] {
            assert_eq!(faults(Some(wrong)).len(), 1, "{wrong}");
        }
    }

    #[test]
    fn a_dependency_on_any_version_is_a_fault_unless_it_is_a_path() {
        let mut user = package(Some("MIT"), None);
        let dependency = |path: Option<&str>| Dependency {
            name: "other".to_owned(),
            req: "*".to_owned(),
            path: path.map(str::to_owned),
        };
        user.dependencies = vec![dependency(Some("/there"))];
        assert_eq!(
            faults(std::slice::from_ref(&user), &rules()).expect("rules"),
            [""; 0]
        );
        user.dependencies.push(dependency(None));
        let faults = faults(&[user], &rules()).expect("rules");
        assert_eq!(faults, ["some: takes any version of other; name one"]);
    }
}
