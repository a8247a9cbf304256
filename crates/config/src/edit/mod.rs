//! Adds rules to the user's file about a workspace, and changes nothing else in it.
//!
//! ```text
//! text     the old text, an edit  → the new text; comments and order are kept
//! here     the new text           → parsed and loaded as a launch would, and compared with the old
//! store    the new text           → the disk, as a whole or not at all
//! ```
//!
//! A file that somebody else can write is refused, and so is one that has a mistake: what such a
//! file means is for its author to say.

mod store;
mod text;

use std::{path::PathBuf, sync::Arc};

use stockade_policy::Rule;

use crate::{
    diagnostic::{Diagnostic, Diagnostics},
    files::{Guard, own_file},
    keys::Change,
    layer::{Layer, LayerKind},
    load::Loader,
    parse::parse,
    source::Source,
    text::{quoted, shown_path},
    value::{NearRule, Port},
};

/// What to add to `[network]`.
#[derive(Debug, Clone, Default)]
pub struct NetworkEdit {
    pub rules: Vec<NewRule>,
    /// Ports of this machine's loopback, for the list `host_ports`.
    pub host_ports: Vec<NewPort>,
    /// `None` leaves it as it is.
    pub internet: Option<bool>,
}

impl NetworkEdit {
    fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.host_ports.is_empty() && self.internet.is_none()
    }

    /// The section by itself.
    pub fn to_toml(&self) -> String {
        // Of an empty text it is always possible.
        let text = text::edited("", self).unwrap_or_default();
        text.trim_start().to_owned()
    }

    /// What a file lacks of this, each entry once. What it sets stays to be set.
    fn without(&self, old: &Layer) -> Self {
        let has = |change: Change| old.changes.iter().any(|it| it.change == change);
        let mut lacking = Self {
            internet: self.internet,
            ..Self::default()
        };
        for new in &self.rules {
            let is_repeated = lacking.rules.iter().any(|other| other.rule == new.rule);
            if !is_repeated && !has(new.change()) {
                lacking.rules.push(new.clone());
            }
        }
        for new in &self.host_ports {
            let is_repeated = lacking.host_ports.iter().any(|it| it.port == new.port);
            if !is_repeated && !new.change().is_some_and(has) {
                lacking.host_ports.push(new.clone());
            }
        }
        lacking
    }

    /// What it adds to a file's lists.
    fn additions(&self) -> impl Iterator<Item = Change> {
        let rules = self.rules.iter().map(NewRule::change);
        let ports = self.host_ports.iter().filter_map(NewPort::change);
        rules.chain(ports)
    }
}

/// A port for the list `host_ports`.
#[derive(Debug, Clone)]
pub struct NewPort {
    pub port: u16,
    /// As of a [`NewRule`].
    pub comment: Option<String>,
}

impl NewPort {
    fn change(&self) -> Option<Change> {
        Port::new(self.port).map(Change::HostPorts)
    }
}

impl From<u16> for NewPort {
    fn from(port: u16) -> Self {
        let comment = None;
        Self { port, comment }
    }
}

/// A rule for the list `allow`, or for `near` if it is one for private addresses of a name.
#[derive(Debug, Clone)]
pub struct NewRule {
    pub rule: Rule,
    /// A line above the rule. It may come from a hostile program.
    pub comment: Option<String>,
}

impl NewRule {
    fn change(&self) -> Change {
        match NearRule::new(&self.rule) {
            Some(near) => Change::Near(near),
            None => Change::Allow(self.rule.clone()),
        }
    }
}

impl From<Rule> for NewRule {
    fn from(rule: Rule) -> Self {
        let comment = None;
        Self { rule, comment }
    }
}

/// A file before and after an edit.
#[derive(Debug, Clone)]
pub struct EditedFile {
    /// `None` if the file does not exist yet.
    pub path: Option<PathBuf>,
    pub before: Option<String>,
    pub after: String,
    /// The rules that the file did not have.
    pub added: Vec<Rule>,
}

impl EditedFile {
    pub fn is_changed(&self) -> bool {
        self.before.as_ref() != Some(&self.after)
    }
}

impl Loader {
    /// What an edit would make of the user's file about this workspace.
    ///
    /// # Errors
    /// If the file cannot be used, or the result would not be accepted.
    pub fn preview_edit(&self, edit: &NetworkEdit) -> Result<EditedFile, Diagnostics> {
        let path = self.project_file()?;
        let source = match &path {
            Some(path) => own_file(path, &Guard::new(&self.places))?,
            None => None,
        };
        let before = source.as_ref().map(|source| source.text().to_owned());
        let old = match &source {
            Some(source) => self.layer(source)?,
            None => Layer::new(LayerKind::Project),
        };
        let lacking = edit.without(&old);
        let start = match &before {
            Some(before) => before.clone(),
            None => self.head()?,
        };
        let after = text::edited(&start, &lacking).map_err(|why| {
            let name = path.as_deref().map_or_else(String::new, shown_path);
            Diagnostic::new(format!("cannot add rules to {name}: {why}"))
                .help("add them yourself, to the list `allow` of [network]")
        })?;
        self.check_result(path.clone(), &after, &old, &lacking)?;
        let added = lacking.rules.into_iter().map(|new| new.rule).collect();
        Ok(EditedFile {
            path,
            before,
            after,
            added,
        })
    }

    /// Adds to the user's file about this workspace, and makes the file if there is none.
    ///
    /// # Errors
    /// As [`Self::preview_edit`], and if the file cannot be written. Then it is as it was.
    pub fn edit_project_file(
        &self,
        edit: &NetworkEdit,
    ) -> Result<(PathBuf, EditedFile), Diagnostics> {
        let store = store::Store::lock(&self.places)?;
        let edited = self.preview_edit(edit)?;
        let path = match (&edited.path, &edited.before) {
            (Some(path), Some(before)) => {
                if edited.is_changed() {
                    store.replace(path, before, &edited.after)?;
                }
                path.clone()
            }
            _ => store.create(&edited.after)?,
        };
        Ok((path, edited))
    }

    /// The beginning of a file about this workspace.
    fn head(&self) -> Result<String, Diagnostic> {
        let Some(workspace) = self.places.workspace.to_str() else {
            return Err(Diagnostic::new("the path of the workspace is not UTF-8"));
        };
        let about = "# Stockade: settings for one project. `stockade config show` prints what is in \
                     force, and why.";
        Ok(format!("{about}\n\nworkspace = {}\n", quoted(workspace)))
    }

    fn layer(&self, source: &Arc<Source>) -> Result<Layer, Diagnostics> {
        parse(LayerKind::Project, source, &self.places.roots())
    }

    /// Whether a launch accepts the new text, and whether it says what the old one said and what was
    /// to be added: no more, and no less.
    fn check_result(
        &self,
        path: Option<PathBuf>,
        after: &str,
        old: &Layer,
        edit: &NetworkEdit,
    ) -> Result<(), Diagnostics> {
        let source = Source::file(path.unwrap_or_else(|| "the new file".into()), after);
        let new = self.layer(&source)?;
        let internet = edit.internet;
        let is_internet = |change: &&Change| matches!(change, Change::Internet(_));
        let set = |layer: &Layer| {
            let mut changes = layer.changes.iter().map(|written| &written.change);
            changes.find(is_internet).cloned()
        };
        let rest = |layer: &Layer| -> Vec<Change> {
            let changes = layer.changes.iter().map(|written| &written.change);
            let rest = changes.filter(|change| internet.is_none() || !is_internet(change));
            rest.cloned().collect()
        };
        let mut wanted = rest(old);
        let mut found = rest(&new);
        for change in edit.additions() {
            match found.iter().rposition(|it| *it == change) {
                Some(at) => drop(found.remove(at)),
                None => wanted.push(change),
            }
        }
        let profiles = |layer: &Layer| -> Vec<(String, Vec<Change>)> {
            let changes = |profile: &crate::layer::Profile| {
                let changes = profile.changes.iter().map(|it| it.change.clone());
                (profile.name.clone(), changes.collect())
            };
            layer.profiles.iter().map(changes).collect()
        };
        let is_set = internet.is_none_or(|value| set(&new) == Some(Change::Internet(value)));
        if wanted != found || profiles(old) != profiles(&new) || !is_set {
            let title = "Stockade cannot add the rules without changing something else";
            return Err(Diagnostic::new(title)
                .help("add them yourself, to the list `allow` of [network]")
                .into());
        }
        let draft = Some(source);
        Self {
            draft,
            ..self.clone()
        }
        .load()
        .map(drop)
    }
}
