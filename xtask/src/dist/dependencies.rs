//! What is linked into the program: for the bill of materials, and for the licences that go with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Arch, Release, output};

pub(super) struct Dependencies {
    packages: Vec<Package>,
    /// By package, those that it uses.
    uses: BTreeMap<String, Vec<String>>,
    checksums: BTreeMap<(String, String), String>,
    rustc: String,
    sysroot: PathBuf,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    manifest_path: PathBuf,
    /// Missing for a package of this repository.
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

impl Package {
    fn url(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }

    /// Whether its licence is this one, or may be chosen to be.
    fn offers(&self, licence: &str) -> bool {
        let expression = self.license.as_deref().unwrap_or_default();
        expression
            .split(" OR ")
            .flat_map(|part| part.split('/'))
            .any(|part| part.trim() == licence)
    }
}

impl Dependencies {
    pub(super) fn find(release: &Release, arch: Arch) -> Result<Self> {
        let target = arch.target();
        let cargo = |arguments: &[&str]| {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.current_dir(&release.root).args(arguments);
            output(cargo.args(["--locked", "--offline"]))
        };
        // The metadata has everything that some package of the workspace uses; the tree has what
        // the program does.
        let tree = cargo(&[
            "tree",
            "--package=stockade",
            "--edges=normal,no-proc-macro",
            "--prefix=none",
            "--format={p}",
            "--target",
            &target,
        ])?;
        let linked: BTreeSet<(&str, &str)> = tree
            .lines()
            .filter_map(|line| line.split_once(" v"))
            .map(|(name, rest)| (name, rest.split(' ').next().unwrap_or_default()))
            .collect();
        let metadata = cargo(&[
            "metadata",
            "--format-version=1",
            "--filter-platform",
            &target,
        ])?;
        let metadata: Metadata = serde_json::from_str(&metadata).context("cargo metadata")?;
        let mut packages = metadata.packages;
        packages.retain(|package| linked.contains(&(&*package.name, &*package.version)));
        packages.sort_by_key(Package::url);
        ensure!(
            packages.len() == linked.len(),
            "cargo metadata lacks some of:\n{tree}"
        );

        let lock = fs::read_to_string(release.root.join("Cargo.lock")).context("Cargo.lock")?;
        let lock: Lock = toml::from_str(&lock).context("Cargo.lock")?;
        let checksum = |locked: Locked| Some(((locked.name, locked.version), locked.checksum?));
        let nodes = metadata.resolve.nodes.into_iter();
        Ok(Self {
            packages,
            uses: nodes.map(|node| (node.id, node.dependencies)).collect(),
            checksums: lock.package.into_iter().filter_map(checksum).collect(),
            rustc: output(Command::new("rustc").arg("--version"))?,
            sysroot: output(Command::new("rustc").arg("--print=sysroot"))?.into(),
        })
    }

    /// A bill of materials, as CycloneDX has it.
    pub(super) fn bill(&self, release: &Release) -> Result<String> {
        let (program, libraries): (Vec<_>, Vec<_>) = self
            .packages
            .iter()
            .partition(|package| package.name == "stockade");
        let program = program
            .first()
            .context("the program is not among its packages")?;
        let mut components: Vec<_> = libraries
            .iter()
            .map(|package| self.component(package))
            .collect();
        components.push(json!({
            "type": "library", "name": "Rust standard library", "version": self.rustc,
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
        }));
        components.push(json!({
            "type": "library", "name": "musl", "licenses": [{"expression": "MIT"}],
            "description": "the C library of the Rust target",
        }));
        let mut time = Command::new("date");
        time.args(["--utc", "+%Y-%m-%dT%H:%M:%SZ", "--date"]);
        let bill = json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {
                "timestamp": output(time.arg(format!("@{}", release.epoch)))?,
                "component": {
                    "type": "application", "bom-ref": program.url(), "name": program.name,
                    "version": program.version, "licenses": licenses(program),
                    "properties": [{"name": "commit", "value": release.commit}],
                },
            },
            "components": components,
            "dependencies": self.packages.iter().map(|package| self.edges(package)).collect::<Vec<_>>(),
        });
        Ok(format!("{bill:#}\n"))
    }

    fn component(&self, package: &Package) -> Value {
        let mut component = json!({
            "type": "library", "bom-ref": package.url(), "name": package.name,
            "version": package.version, "licenses": licenses(package),
        });
        let key = (package.name.clone(), package.version.clone());
        if let Some(checksum) = self.checksums.get(&key) {
            component["purl"] = package.url().into();
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        component
    }

    fn edges(&self, package: &Package) -> Value {
        let used = self.uses.get(&package.id).map_or(&[][..], Vec::as_slice);
        let used = self
            .packages
            .iter()
            .filter(|other| used.contains(&other.id));
        json!({"ref": package.url(), "dependsOn": used.map(Package::url).collect::<Vec<_>>()})
    }

    /// The licences of everything that is linked in, each text once.
    pub(super) fn licences(&self, release: &Release) -> Result<String> {
        let mut by_text = BTreeMap::<String, BTreeSet<String>>::new();
        for package in self
            .packages
            .iter()
            .filter(|package| package.source.is_some())
        {
            let name = format!("{} {}", package.name, package.version);
            let directory = package
                .manifest_path
                .parent()
                .context("a manifest in no directory")?;
            let mut texts = texts(directory).with_context(|| format!("the licences of {name}"))?;
            // Some crates only name theirs. The text of the Apache licence is the same for all.
            if texts.is_empty() && package.offers("Apache-2.0") {
                texts.push(fs::read_to_string(release.root.join("LICENSE-APACHE"))?);
            }
            ensure!(
                !texts.is_empty(),
                "{name} comes without the text of its licence"
            );
            for text in texts {
                by_text.entry(text).or_default().insert(name.clone());
            }
        }
        let musl = release.root.join("packaging/musl-copyright");
        let musl = fs::read_to_string(musl).context("packaging/musl-copyright")?;
        by_text.entry(musl).or_default().insert("musl".to_owned());
        let mut all: Vec<_> = by_text
            .iter()
            .map(|(text, users)| {
                let users: Vec<_> = users.iter().map(String::as_str).collect();
                format!(
                    "{}\n{}\n\n{}\n",
                    "=".repeat(80),
                    users.join(", "),
                    text.trim_matches('\n')
                )
            })
            .collect();
        all.sort();
        let head = "Stockade is linked with the following libraries, under the following licences.\n\
            For the Rust standard library see rust-library.html.\n";
        Ok(format!("{head}{}", all.concat()))
    }

    /// What the compiler says about the standard library.
    pub(super) fn standard_library(&self) -> PathBuf {
        self.sysroot.join("share/doc/rust/COPYRIGHT-library.html")
    }
}

fn licenses(package: &Package) -> Value {
    let expression = package.license.as_deref().unwrap_or("NOASSERTION");
    json!([{"expression": expression.replace('/', " OR ")}])
}

fn texts(directory: &Path) -> Result<Vec<String>> {
    const BEGINNINGS: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_uppercase();
        if BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning))
            && path.is_file()
        {
            found.push(fs::read_to_string(&path)?.replace('\r', ""));
        }
    }
    Ok(found)
}
