//! Files, environment and flags of this moment → the configuration.
//!
//! A [`Loader`] can load again, for `stockade reload`. It changes nothing.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    compare::wider,
    diagnostic::{Diagnostic, Diagnostics},
    environment,
    files::{Guard, Places, WorkspaceText, own_file, resolved, word_of_shell, workspace_file},
    flags::Flags,
    follow,
    keys::Effective,
    layer::{Layer, LayerKind, Profile},
    merge::{Choice, merge},
    parse::{parse, workspace_of},
    profiles::{BUILT_IN, agents},
    source::{Origin, Source, SourceKind},
    text::{meant, shown, shown_path},
    trust::{Record, Trust, hash},
    value::{Port, Roots},
};

#[derive(Debug, Clone)]
pub struct Loader {
    pub places: Places,
    pub environment: BTreeMap<OsString, OsString>,
    pub flags: Flags,
    pub choice: Choice,
    /// Profiles that come with the program: a name and a text each.
    pub built_in: Vec<(&'static str, &'static str)>,
    /// The port at which the command waits for its login to be called back, if it logs in.
    pub login: Option<Port>,
    /// The text of a file about this workspace that is to be written, instead of the one there is.
    pub draft: Option<Arc<Source>>,
}

/// A configuration, and how it came about.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub effective: Effective,
    /// The files that were read, in their order.
    pub files: Vec<(LayerKind, PathBuf)>,
    pub workspace_file: WorkspaceFile,
    /// Profiles that are called almost like an agent: the agent, and a warning.
    pub misspelled: Vec<(&'static str, String)>,
}

/// Warns of a profile that is called almost like an agent, and so holds for none unless it is asked
/// for. It may be meant so: a profile can have any name.
fn misspelled(profile: &Profile) -> Option<(&'static str, String)> {
    let name = profile.name.as_str();
    if BUILT_IN.iter().any(|(known, _)| *known == name) {
        return None;
    }
    let agent = meant(name, agents())?;
    let name = shown(name);
    let at = profile
        .changes
        .first()
        .map(|one| format!(" ({})", one.place));
    let at = at.unwrap_or_default();
    let warning =
        format!("profile `{name}`{at} applies only with --profile {name}; did you mean `{agent}`?");
    Some((agent, warning))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkspaceFile {
    Absent,
    Trusted,
    /// It is ignored: the user never agreed to it.
    Untrusted,
    /// It is ignored: it is not what the user agreed to.
    Changed,
    /// The user agreed to one, and there is none.
    Gone,
    /// It is ignored: it cannot be read.
    Unusable(String),
}

impl WorkspaceFile {
    /// What the user has to know of it, in a line.
    pub fn notice(&self) -> Option<String> {
        let (why, fix) = match self {
            Self::Absent | Self::Trusted => return None,
            Self::Untrusted => ("not trusted yet", "review it with `stockade trust`"),
            Self::Changed => (
                "it has changed since you trusted it",
                "review it with `stockade trust`",
            ),
            Self::Gone => (
                "you trusted it, and it is gone",
                "forget it with `stockade trust --revoke`",
            ),
            Self::Unusable(why) => return Some(format!("ignoring .stockade.toml: {why}")),
        };
        Some(format!("ignoring .stockade.toml: {why}; {fix}"))
    }
}

impl Loader {
    pub fn new(places: Places) -> Self {
        Self {
            places,
            environment: BTreeMap::new(),
            flags: Flags::default(),
            choice: Choice::None,
            built_in: Vec::new(),
            login: None,
            draft: None,
        }
    }

    /// Reads everything, now.
    ///
    /// # Errors
    /// With all mistakes in any of the files, options and variables.
    pub fn load(&self) -> Result<Loaded, Diagnostics> {
        let Read {
            mut layers,
            mut files,
            mut wrong,
        } = self.read_files();
        let roots = self.places.roots();
        let variable = |name: &str| self.environment.get(OsStr::new(name)).cloned();
        let typed = environment::layer(variable, &roots);
        let here = Roots {
            workspace: Some(self.places.current_directory.clone()),
            ..roots.clone()
        };
        for layer in [typed, self.flags.layer(&here)] {
            match layer {
                Ok(layer) => layers.push(layer),
                Err(problems) => wrong.extend(problems),
            }
        }
        let (workspace_file, record) = self.workspace_file()?;
        wrong.or(())?;
        let mut lost = None;
        match (&workspace_file, record) {
            (WorkspaceFile::Trusted, Some(record)) => layers.push(self.trusted_layer(&record)?),
            (_, record) => lost = record.map(|record| (record, Loss::of(&workspace_file))),
        }
        let mut effective = merge(&layers, &self.choice)?;
        let profiles = layers.iter().flat_map(|layer| &layer.profiles);
        let misspelled = profiles.filter_map(misspelled).collect();
        let led_here = Trust::new(&self.places).led_here()?.into_iter();
        let led_here = led_here.map(|(path, record)| (record, Loss::moved_from(&path)));
        for (record, loss) in lost.into_iter().chain(led_here) {
            self.check_loss(&record, &loss, layers.clone(), &effective)?;
        }
        // Not before: what a file narrows is compared without them.
        follow::state(
            &mut effective,
            &self.environment,
            &self.places.home,
            &layers,
        )?;
        self.check_writable(&effective)?;
        self.check_moved(&effective)?;
        if let Some(port) = self.login {
            follow::login(&mut effective, port, &layers);
        }
        if workspace_file == WorkspaceFile::Trusted {
            files.push((LayerKind::Workspace, self.places.workspace_file()));
            files.sort();
        }
        Ok(Loaded {
            effective,
            files,
            workspace_file,
            misspelled,
        })
    }

    /// The layers of all files but the workspace's own.
    pub(crate) fn read_files(&self) -> Read {
        let mut read = Read::default();
        let roots = self.places.roots();
        for (name, text) in &self.built_in {
            let source = Source::new(SourceKind::BuiltIn(name), *text);
            read.take(parse(LayerKind::BuiltIn, &source, &roots));
        }
        let guard = Guard::new(&self.places);
        // Also where there are no files yet: the command could make some.
        for directory in [&self.places.user, &self.places.state] {
            // On the way to it, too: the command could lead it elsewhere.
            let mut way = directory.ancestors().map(resolved);
            if let Some(problem) = way.find_map(|part| guard.check_outside(&part).err()) {
                read.wrong.push(problem);
            }
        }
        for (kind, path) in [
            (LayerKind::System, self.places.system.clone()),
            (LayerKind::User, self.places.user_file()),
        ] {
            match own_file(&path, &guard) {
                Ok(Some(source)) => {
                    read.take(parse(kind, &source, &roots));
                    read.files.push((kind, path));
                }
                Ok(None) => {}
                Err(problem) => read.wrong.push(problem),
            }
        }
        self.read_project(&guard, &mut read);
        read
    }

    /// The user's file about this workspace, among those about all.
    fn read_project(&self, guard: &Guard<'_>, read: &mut Read) {
        if let Some(source) = &self.draft {
            read.take(parse(LayerKind::Project, source, &self.places.roots()));
            return;
        }
        let paths = match self.places.project_files() {
            Ok(paths) => paths,
            Err(error) => {
                let name = shown_path(&self.places.projects());
                read.wrong
                    .push(Diagnostic::new(format!("cannot read {name}: {error}")));
                return;
            }
        };
        let mut found: Option<PathBuf> = None;
        for path in paths {
            let source = match own_file(&path, guard) {
                Ok(Some(source)) => source,
                Ok(None) => continue,
                Err(problem) => {
                    read.wrong.push(problem);
                    continue;
                }
            };
            // A file that does not say what it is about may be about this.
            let about = workspace_of(&source, &self.places.roots());
            if about.is_some_and(|about| resolved(&about) != self.places.workspace) {
                continue;
            }
            if let Some(other) = &found {
                read.wrong.push(two_files(other, &path));
                continue;
            }
            read.take(parse(LayerKind::Project, &source, &self.places.roots()));
            read.files.push((LayerKind::Project, path.clone()));
            found = Some(path);
        }
    }

    /// The user's file about this workspace, if there is one.
    ///
    /// # Errors
    /// If a file that may be the one cannot be used.
    pub fn project_file(&self) -> Result<Option<PathBuf>, Diagnostics> {
        let mut read = Read::default();
        self.read_project(&Guard::new(&self.places), &mut read);
        let file = read.files.pop().map(|(_, path)| path);
        // One that is there is there, whatever is in it.
        if file.is_some() {
            Ok(file)
        } else {
            read.wrong.or(None)
        }
    }

    /// What became of the workspace's own file, and what the user agreed to there.
    fn workspace_file(&self) -> Result<(WorkspaceFile, Option<Record>), Diagnostics> {
        let record = Trust::new(&self.places).recorded()?;
        let text = workspace_file(&self.places.workspace_file());
        let file = match (text, &record) {
            (Ok(None), None) => WorkspaceFile::Absent,
            (Ok(None), Some(_)) => WorkspaceFile::Gone,
            (Err(problem), _) => WorkspaceFile::Unusable(problem.title),
            (Ok(Some(_)), None) => WorkspaceFile::Untrusted,
            (Ok(Some(text)), Some(record)) if record.hash == hash(&text.bytes) => {
                WorkspaceFile::Trusted
            }
            (Ok(Some(_)), Some(_)) => WorkspaceFile::Changed,
        };
        Ok((file, record))
    }

    /// The layer of a file that the user agreed to.
    fn trusted_layer(&self, record: &Record) -> Result<Layer, Diagnostics> {
        let source = Source::file(self.places.workspace_file(), record.text.as_str());
        parse(LayerKind::Workspace, &source, &self.places.roots())
    }

    pub(crate) fn parse_workspace(&self, text: &WorkspaceText) -> Result<Layer, Diagnostics> {
        let source = text.source(&self.places.workspace_file())?;
        parse(LayerKind::Workspace, &source, &self.places.roots())
    }

    /// Refuses if the sandbox is wider without the file that was trusted: the command
    /// inside may have changed it for just that.
    fn check_loss(
        &self,
        record: &Record,
        loss: &Loss,
        mut layers: Vec<Layer>,
        without: &Effective,
    ) -> Result<(), Diagnostics> {
        let with = self.trusted_layer(record).and_then(|layer| {
            layers.push(layer);
            merge(&layers, &self.choice)
        });
        let lost = match with {
            Ok(with) => wider(&with, without),
            // This version would not have taken it, so it narrows nothing.
            Err(_) => return Ok(()),
        };
        if lost.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = lost.iter().map(ToString::to_string).collect();
        let title = format!(
            ".stockade.toml {}, so its restrictions of {} would be lost",
            loss.how,
            keys.join(", ")
        );
        let problem = Diagnostic::new(title).help(loss.fix);
        Err(problem
            .help("to do without the file: `stockade trust --revoke`")
            .into())
    }

    /// Refuses if the sandbox is wider here than in the directory that the shell believes to be in:
    /// a command inside may have moved that away from under the shell.
    fn check_moved(&self, here: &Effective) -> Result<(), Diagnostics> {
        let current = &self.places.current_directory;
        let shell = self.environment.get(OsStr::new("PWD")).map(Path::new);
        let leads_here = |path: &Path| fs::canonicalize(path).is_ok_and(|it| it == *current);
        let Some(shell) = shell.filter(|path| path.is_absolute() && !leads_here(path)) else {
            return Ok(());
        };
        let (home, real) = (resolved(&self.places.home), resolved(shell));
        // No session could move it from one to the other, unless all of a directory around both,
        // which is not the home, was its workspace.
        let in_reach = |above: PathBuf| current.starts_with(&above) && !home.starts_with(&above);
        for path in self.places.configured() {
            // The shell may name it by a link of the user's.
            let concerned = shell.starts_with(&path) || real.starts_with(resolved(&path));
            if !concerned || !path.ancestors().map(resolved).any(in_reach) {
                continue;
            }
            let mut there = self.clone();
            there.environment.remove(OsStr::new("PWD"));
            there.places.workspace = resolved(&path);
            there.draft = None;
            // If it does not load, it is not known what is lost.
            let lost = there.load().map(|there| wider(&there.effective, here));
            let lost = match lost.as_deref() {
                Ok([]) => continue,
                Ok(keys) => {
                    let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
                    format!("restrictions of {}", keys.join(", "))
                }
                Err(_) => "configuration".to_owned(),
            };
            let (path, current) = (shown_path(&path), word_of_shell(current));
            let title = format!(
                "the shell's directory (PWD) is {}, but the current directory is {current}, so the {lost} \
                 for {path} would be lost",
                shown_path(shell)
            );
            let problem = Diagnostic::new(title);
            let problem =
                problem.help("if you did not move the directory, a session did: move it back");
            let fix = format!("to work here without that: `cd {current}`");
            return Err(problem.help(fix).into());
        }
        Ok(())
    }

    /// Refuses a place to write in which the command could change this configuration.
    fn check_writable(&self, effective: &Effective) -> Result<(), Diagnostics> {
        let mut wrong = Diagnostics::default();
        let places = &self.places;
        let system = places.system.parent().unwrap_or(&places.system);
        let mut own = vec![
            system.to_owned(),
            places.system.clone(),
            places.user.clone(),
            places.user_file(),
            places.projects(),
            places.state.clone(),
            places.data.clone(),
        ];
        // Each may be a link to where somebody keeps all such files.
        own.extend(places.project_files().unwrap_or_default());
        for entry in &effective.files.write {
            let path = resolved(&entry.value);
            let meets = |own: &&PathBuf| {
                let own = resolved(own);
                own.starts_with(&path) || path.starts_with(&own)
            };
            if let Some(own) = own.iter().find(meets) {
                let title = format!(
                    "the command could change its own sandbox: {} belongs to Stockade",
                    shown_path(own)
                );
                let problem = match &entry.origin {
                    Origin::Written(place) => Diagnostic::at(title, place.clone()),
                    Origin::BuiltIn => Diagnostic::new(title),
                };
                wrong.push(problem.help(match entry.origin.is_built_in_profile() {
                    true => "set the variable to a directory of its own, or unset it",
                    false => "allow only the part that the command has to write",
                }));
            }
        }
        wrong.or(())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) layers: Vec<Layer>,
    pub(crate) files: Vec<(LayerKind, PathBuf)>,
    pub(crate) wrong: Diagnostics,
}

impl Read {
    fn take(&mut self, layer: Result<Layer, Diagnostics>) {
        match layer {
            Ok(layer) => self.layers.push(layer),
            Err(problems) => self.wrong.extend(problems),
        }
    }
}

/// How a file that was trusted came not to apply any more, and what helps.
struct Loss {
    how: String,
    fix: &'static str,
}

impl Loss {
    fn of(file: &WorkspaceFile) -> Self {
        let (how, fix) = match file {
            // A missing file cannot be reviewed.
            WorkspaceFile::Gone => (
                "is gone".to_owned(),
                "restore it, from the project's history for example",
            ),
            WorkspaceFile::Unusable(why) => (
                format!("cannot be used ({why})"),
                "repair it, then review it with `stockade trust`",
            ),
            _ => (
                "has changed since you trusted it".to_owned(),
                "review and accept the change with `stockade trust`",
            ),
        };
        Self { how, fix }
    }

    /// The workspace had this path when it was trusted. The path leads here still, by a link.
    fn moved_from(path: &Path) -> Self {
        Self {
            how: format!(
                "was moved away from {}, which is now a link",
                shown_path(path)
            ),
            fix: "if you moved the directory, review the file with `stockade trust`",
        }
    }
}

fn two_files(one: &Path, other: &Path) -> Diagnostic {
    let title = format!(
        "two files are about this workspace: {} and {}",
        shown_path(one),
        shown_path(other)
    );
    Diagnostic::new(title).help("merge them into one")
}
