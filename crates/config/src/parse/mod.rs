//! The text of a file → a [`Layer`], or everything that is wrong with it.
//!
//! The document is walked as a tree with places, not deserialized into structs: so every
//! mistake in it is found, not only the first, and each message knows the key it is about.
//! A key that is not in the table of [`Key`]s is an error.

mod syntax;

use std::{ops::Range, path::PathBuf, sync::Arc};

pub use syntax::table;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{
    diagnostic::{Diagnostic, Diagnostics},
    keys::{Change, Key, Kind, SECTIONS},
    layer::{Layer, LayerKind, Lock, Profile, Written},
    source::{Place, Source, SourceKind},
    text::{masked, meant, shown},
    value::{self, Fault, Given, Roots, VariableName, set_variable},
    workspace::{DIRECTORY, REPOSITORY},
};

/// What a file says.
///
/// # Errors
/// With all mistakes in it.
pub fn parse(kind: LayerKind, source: &Arc<Source>, roots: &Roots) -> Result<Layer, Diagnostics> {
    let table = table(source)?;
    let relative = roots.workspace.clone().filter(|_| kind.has_workspace());
    let roots = Roots {
        home: roots.home.clone(),
        workspace: relative,
    };
    let mut reader = Reader {
        source,
        kind,
        roots,
        wrong: Diagnostics::default(),
    };
    let mut layer = reader.document(table.get_ref());
    // The tree is in the order of the alphabet; people read files from the top.
    let profiles = layer.profiles.iter_mut();
    let of_profiles = profiles.map(|profile| &mut profile.changes);
    for changes in of_profiles.chain([&mut layer.changes]) {
        changes.sort_by_key(|written| written.place.span().start);
    }
    let mut wrong = reader.wrong;
    wrong.sort();
    wrong.or(layer)
}

/// Which workspace a file about one is for, if it says so; whatever else is in it.
pub(crate) fn workspace_of(source: &Arc<Source>, roots: &Roots) -> Option<PathBuf> {
    let (table, _) = DeTable::parse_recoverable(source.text());
    let text = at_top(&table, "workspace")?.get_ref().as_str()?;
    let roots = Roots {
        home: roots.home.clone(),
        workspace: None,
    };
    value::path(text, &roots).ok()
}

/// What a user's file says about workspaces that nobody names, whatever else is in it.
pub(crate) fn default_workspace(source: &Arc<Source>) -> Option<String> {
    let (table, _) = DeTable::parse_recoverable(source.text());
    let text = at_top(&table, "workspace")?.get_ref().as_str()?;
    Some(text.to_owned())
}

/// Whether a file has this key at its top, whatever else is in it.
pub(crate) fn has_key(source: &Arc<Source>, key: &str) -> bool {
    let (table, _) = DeTable::parse_recoverable(source.text());
    at_top(&table, key).is_some()
}

fn at_top<'t, 'i>(table: &'t Spanned<DeTable<'i>>, key: &str) -> Option<&'t Node<'i>> {
    let mut entries = table.get_ref().iter();
    entries
        .find(|(name, _)| name.get_ref() == key)
        .map(|(_, node)| node)
}

/// The keys that a section of a file has, with their lines, whatever else is in it; `None` if
/// the file has no such section.
pub fn keys_in(section: &str, text: &str) -> Option<Vec<(Key, usize)>> {
    let source = Source::new(SourceKind::BuiltIn(""), text);
    let (table, _) = DeTable::parse_recoverable(text);
    let node = at_top(&table, section)?;
    let known = |(name, _): (&Name<'_>, &Node<'_>)| {
        let key = Key::find(section, name.get_ref())?;
        Some((key, Place::new(&source, name.span()).line()))
    };
    let mut keys: Vec<_> = node
        .get_ref()
        .as_table()?
        .iter()
        .filter_map(known)
        .collect();
    keys.sort_by_key(|(_, line)| *line);
    Some(keys)
}

struct Reader<'a> {
    source: &'a Arc<Source>,
    kind: LayerKind,
    roots: Roots,
    wrong: Diagnostics,
}

/// Keys that stand at the top of documents, and have no meaning elsewhere.
const OF_DOCUMENTS: [&str; 3] = ["profiles", "lock", "workspace"];

type Node<'i> = Spanned<DeValue<'i>>;
type Name<'i> = Spanned<std::borrow::Cow<'i, str>>;

impl Reader<'_> {
    fn document(&mut self, table: &DeTable<'_>) -> Layer {
        let mut layer = Layer::new(self.kind);
        for (name, node) in table {
            match name.get_ref().as_ref() {
                "profiles" => layer.profiles = self.profiles(node),
                "lock" if self.kind == LayerKind::System => layer.locks = self.locks(node),
                "lock" => {
                    let title = "`lock` is only allowed in /etc/stockade/config.toml";
                    self.report(self.problem(name, title));
                }
                "workspace" if self.kind == LayerKind::Project => {
                    layer.workspace = self.workspace(node);
                }
                "workspace" if matches!(self.kind, LayerKind::System | LayerKind::User) => {
                    self.default_workspace(node);
                }
                "workspace" => {
                    let title = "`workspace` is not allowed in a project's own file";
                    self.report(self.problem(name, title));
                }
                section => match known_section(section) {
                    Some(section) => self.section(section, node, &mut layer.changes),
                    None => self.unknown_at_top(name, node),
                },
            }
        }
        if self.kind == LayerKind::Project
            && table.iter().all(|(name, _)| name.get_ref() != "workspace")
        {
            let start = Diagnostic::at("`workspace` is missing", self.place(0..0));
            self.report(start.help("start the file with: workspace = \"/path/of/the/project\""));
        }
        layer
    }

    fn profiles(&mut self, node: &Node<'_>) -> Vec<Profile> {
        let Some(table) = node.get_ref().as_table() else {
            let problem = self.mismatch(node, "`profiles`", "a table");
            self.report(problem.help("write [profiles.NAME.network], for example"));
            return Vec::new();
        };
        let profiles = table.iter();
        profiles
            .map(|(name, node)| self.profile(name, node))
            .collect()
    }

    fn profile(&mut self, name: &Name<'_>, node: &Node<'_>) -> Profile {
        let mut profile = Profile {
            name: name.get_ref().to_string(),
            changes: Vec::new(),
        };
        if profile.name.is_empty() {
            self.report(self.problem(name, "a profile needs a name"));
        }
        let shown_name = shown(name.get_ref());
        let Some(table) = node.get_ref().as_table() else {
            let what = format!("profile `{shown_name}`");
            self.report(self.mismatch(node, &what, "a table of sections"));
            return profile;
        };
        for (section, node) in table {
            match known_section(section.get_ref()) {
                Some(section) => self.section(section, node, &mut profile.changes),
                None => {
                    let title = format!(
                        "unknown section `{}` in profile `{shown_name}`",
                        shown(section.get_ref())
                    );
                    self.unknown(section, title, &section_names());
                }
            }
        }
        profile
    }

    fn section(&mut self, section: &'static str, node: &Node<'_>, changes: &mut Vec<Written>) {
        let Some(table) = node.get_ref().as_table() else {
            let problem = self.mismatch(node, &format!("`{section}`"), "a section");
            self.report(problem.help(format!("write [{section}]")));
            return;
        };
        for (name, node) in table {
            if section == Key::Devices.section() {
                self.device(name, node, changes);
                continue;
            }
            match Key::find(section, name.get_ref()) {
                Some(key) => self.value(key, node, changes),
                None => {
                    let title = format!("unknown key `{}` in [{section}]", shown(name.get_ref()));
                    let names: Vec<_> = Key::in_section(section).map(Key::name).collect();
                    self.unknown(name, title, &names);
                }
            }
        }
    }

    fn value(&mut self, key: Key, node: &Node<'_>, changes: &mut Vec<Written>) {
        match (key.spec().kind, node.get_ref()) {
            (Kind::List(_), DeValue::Array(entries)) => {
                for entry in entries {
                    let change = Change::read(key, given(entry), &self.roots);
                    self.take(change, entry, changes);
                }
            }
            (kind @ Kind::List(_), _) => {
                let problem = self.mismatch(node, &key.to_string(), &value::expected(kind));
                let written = self.source.text().get(node.span()).unwrap_or_default();
                let fits = Change::read(key, given(node), &self.roots).is_ok();
                self.report(if fits {
                    problem.help(format!("write [{}]", masked(written)))
                } else {
                    problem
                });
            }
            (Kind::Variables, DeValue::Table(table)) => {
                for (name, node) in table {
                    match VariableName::parse(name.get_ref()) {
                        Ok(variable) => {
                            let change = set_variable(variable, given(node));
                            self.take(change.map(Change::SetEnv), node, changes);
                        }
                        Err(fault) => {
                            self.report(Diagnostic::at(fault.message, self.place(name.span())));
                        }
                    }
                }
            }
            (_, _) => {
                let change = Change::read(key, given(node), &self.roots);
                self.take(change, node, changes);
            }
        }
    }

    /// A device with its rule, or with a list of them.
    fn device(&mut self, name: &Name<'_>, node: &Node<'_>, changes: &mut Vec<Written>) {
        let device = match value::device::name(name.get_ref()) {
            Ok(device) => device,
            Err(fault) => {
                let problem = Diagnostic::fault(fault, self.place(name.span()));
                return self.report(problem);
            }
        };
        let rules = match node.get_ref() {
            DeValue::Array(rules) if rules.is_empty() => {
                let title = format!("device `{device}` has no rule");
                let help = "write its address, or [\"ADDRESS\", \"ADDRESS\"] for several";
                return self.report(self.problem(node, title).help(help));
            }
            DeValue::Array(rules) => rules.iter().collect(),
            _ => vec![node],
        };
        for rule in rules {
            let change = value::device::rule(&device, given(rule));
            self.take(change.map(Change::Devices), rule, changes);
        }
    }

    fn take(&mut self, change: Result<Change, Fault>, node: &Node<'_>, changes: &mut Vec<Written>) {
        let place = self.place(node.span());
        match change {
            Ok(change) => changes.push(Written { change, place }),
            Err(fault) => self.fault(fault, node),
        }
    }

    fn fault(&mut self, fault: Fault, node: &Node<'_>) {
        let span = match (&fault.span, node.get_ref().as_str()) {
            (Some(part), Some(text)) => part_of(self.source.text(), node.span(), text, part),
            _ => node.span(),
        };
        self.report(Diagnostic::fault(fault, self.place(span)));
    }

    fn locks(&mut self, node: &Node<'_>) -> Vec<Lock> {
        let Some(entries) = node.get_ref().as_array() else {
            let problem = self.mismatch(node, "`lock`", "a list of keys");
            self.report(problem.help("write lock = [\"network.mode\"], for example"));
            return Vec::new();
        };
        let entries = entries.iter();
        entries.filter_map(|entry| self.lock(entry)).collect()
    }

    fn lock(&mut self, entry: &Node<'_>) -> Option<Lock> {
        let Some(text) = entry.get_ref().as_str() else {
            self.report(self.mismatch(entry, "entry of `lock`", "a key in quotes"));
            return None;
        };
        let key = Key::ALL.into_iter().find(|key| key.to_string() == text);
        if let Some(section) = known_section(text).or(key.map(Key::section)) {
            let place = self.place(entry.span());
            return Some(Lock {
                section,
                key,
                place,
            });
        }
        let keys: Vec<String> = Key::ALL.iter().map(ToString::to_string).collect();
        let problem = self.problem(entry, format!("unknown key or section `{}`", shown(text)));
        let names = keys.iter().map(String::as_str).chain(section_names());
        let problem = match meant(text, names) {
            Some(name) => problem.label(format!("did you mean `{name}`?")),
            None => problem
                .help("write a section, such as \"network\", or a key, such as \"network.mode\""),
        };
        self.report(problem);
        None
    }

    fn workspace(&mut self, node: &Node<'_>) -> Option<PathBuf> {
        let Some(text) = node.get_ref().as_str() else {
            self.report(self.mismatch(node, "`workspace`", "a path in quotes"));
            return None;
        };
        let roots = Roots {
            home: self.roots.home.clone(),
            workspace: None,
        };
        match value::path(text, &roots) {
            Ok(path) => Some(path),
            Err(_) if !text.starts_with(['/', '~', '$']) => {
                let title = "the path of the workspace must start with `/` or `~/`";
                self.report(self.problem(node, title));
                None
            }
            Err(fault) => {
                self.fault(fault, node);
                None
            }
        }
    }

    /// Here, it is only checked: the workspace is known before files are read as a whole.
    fn default_workspace(&mut self, node: &Node<'_>) {
        let expected = format!("\"{DIRECTORY}\" or \"{REPOSITORY}\"");
        match node.get_ref().as_str() {
            Some(DIRECTORY | REPOSITORY) => {}
            Some(text) => {
                let title = format!("invalid value `{}`: expected {expected}", shown(text));
                let problem = self.problem(node, title);
                self.report(match meant(text, [DIRECTORY, REPOSITORY]) {
                    Some(near) => problem.label(format!("did you mean `{near}`?")),
                    None => problem.help(
                        "the path of one project belongs in a file in ~/.config/stockade/projects",
                    ),
                });
            }
            None => self.report(self.mismatch(node, "`workspace`", &expected)),
        }
    }

    fn unknown_at_top(&mut self, name: &Name<'_>, node: &Node<'_>) {
        let is_table = node.get_ref().is_table();
        let what = if is_table { "section" } else { "key" };
        let title = format!("unknown {what} `{}`", shown(name.get_ref()));
        let mut names = section_names();
        names.push("profiles");
        match self.kind {
            LayerKind::System => names.extend(["lock", "workspace"]),
            LayerKind::Project | LayerKind::User => names.push("workspace"),
            _ => {}
        }
        self.unknown(name, title, &names);
    }

    /// A key that does not exist; `names` do, where it stands.
    fn unknown(&mut self, name: &Name<'_>, title: String, names: &[&str]) {
        let problem = self.problem(name, title);
        let elsewhere = Key::ALL
            .into_iter()
            .find(|key| key.name() == name.get_ref());
        self.report(if let Some(key) = elsewhere {
            problem.label(format!("`{}` belongs in [{}]", key.name(), key.section()))
        } else if !OF_DOCUMENTS.contains(&name.get_ref().as_ref())
            && let Some(name) = meant(name.get_ref(), names.iter().copied())
        {
            problem.label(format!("did you mean `{name}`?"))
        } else {
            problem.help(format!("expected one of {}", names.join(", ")))
        });
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.wrong.push(diagnostic);
    }

    fn place(&self, span: Range<usize>) -> Place {
        Place::new(self.source, span)
    }

    fn mismatch(&self, node: &Node<'_>, what: &str, expected: &str) -> Diagnostic {
        let found = given(node);
        self.problem(
            node,
            format!("invalid {what}: expected {expected}, found {found}"),
        )
    }

    fn problem<T>(&self, node: &Spanned<T>, title: impl Into<String>) -> Diagnostic {
        Diagnostic::at(title, self.place(node.span()))
    }
}

/// Where `part` of a string is in the file, by the text before or after it. If there are escapes
/// on both sides, it is the whole string.
fn part_of(file: &str, literal: Range<usize>, text: &str, part: &Range<usize>) -> Range<usize> {
    let written = file.get(literal.clone()).unwrap_or_default();
    let is_long = written.starts_with("\"\"\"") || written.starts_with("'''");
    let quotes = if is_long { 3 } else { 1 };
    let body = written.get(quotes..written.len().saturating_sub(quotes));
    let body = body.unwrap_or_default();
    let (first, last) = (literal.start + quotes, literal.start + quotes + body.len());
    let find = |at: usize| {
        let (before, after) = text.split_at_checked(at)?;
        if body.starts_with(before) {
            Some(first + before.len())
        } else {
            body.ends_with(after).then_some(last - after.len())
        }
    };
    match (find(part.start), find(part.end)) {
        (Some(start), Some(end)) if start <= end => start..end,
        _ => literal,
    }
}

fn section_names() -> Vec<&'static str> {
    SECTIONS.iter().map(|section| section.name).collect()
}

fn known_section(name: &str) -> Option<&'static str> {
    section_names().into_iter().find(|section| *section == name)
}

fn given<'n>(node: &'n Node<'_>) -> Given<'n> {
    match node.get_ref() {
        DeValue::String(text) => Given::Text(text),
        DeValue::Integer(number) => {
            Given::Integer(i64::from_str_radix(number.as_str(), number.radix()).ok())
        }
        DeValue::Boolean(boolean) => Given::Boolean(*boolean),
        DeValue::Float(_) => Given::Other("a number with a point"),
        DeValue::Datetime(_) => Given::Other("a date or time"),
        DeValue::Array(_) => Given::Other("a list"),
        DeValue::Table(_) => Given::Other("a table"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_string_is_found_within_its_quotes() {
        for (file, text, part, expected) in [
            (r#"a = "10.x""#, "10.x", 3..4, "x"),
            (r"a = '10.x'", "10.x", 3..4, "x"),
            ("a = '''10.x'''", "10.x", 3..4, "x"),
            (r#"a = "10.\u0078 y""#, "10.x y", 3..4, r"\u0078"),
            (r#"a = "x""#, "x", 1..1, ""),
            (r#"a = "1\u0030.x""#, "10.x", 3..4, "x"),
            ("a = \"\"\"\n10.x\"\"\"", "10.x", 3..4, "x"),
            // The whole string, if it is not clear where the part is.
            (
                r#"a = "1\u0030.x\u0030""#,
                "10.x0",
                3..4,
                r#""1\u0030.x\u0030""#,
            ),
            (r#"a = "x""#, "x", 5..9, r#""x""#),
        ] {
            let place = part_of(file, 4..file.len(), text, &part);
            assert_eq!(file.get(place), Some(expected), "{file}");
        }
    }
}
