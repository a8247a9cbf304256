//! Files, environment and flags of this moment → the configuration.
//!
//! A [`Loader`] can load again, for `stockade reload`. It changes nothing.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
};

use crate::{
    compare::wider,
    diagnostic::{Diagnostic, Diagnostics},
    environment,
    files::{Guard, Places, WorkspaceText, own_file, resolved, workspace_file},
    flags::Flags,
    keys::Effective,
    layer::{Layer, LayerKind, Profile},
    merge::{Choice, merge},
    parse::{parse, workspace_of},
    profiles::{BUILT_IN, agents},
    source::{Origin, Source, SourceKind},
    text::{meant, shown, shown_path},
    trust::{Record, Trust, hash},
    value::Roots,
};

/// What a configuration is made from.
#[derive(Debug, Clone)]
pub struct Loader {
    pub places: Places,
    /// The caller's environment.
    pub environment: BTreeMap<OsString, OsString>,
    pub flags: Flags,
    pub choice: Choice,
    /// Profiles that come with the program: a name and a text each.
    pub built_in: Vec<(&'static str, &'static str)>,
}

/// A configuration, and how it came about.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub effective: Effective,
    /// The files that were read, in their order.
    pub files: Vec<(LayerKind, PathBuf)>,
    pub workspace_file: WorkspaceFile,
    /// Profiles that are called almost like an agent.
    pub slips: Vec<Slip>,
}

/// A profile that is called almost like an agent, and so holds for none unless it is asked for.
/// It may be meant so: a profile can have any name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slip {
    pub agent: &'static str,
    profile: String,
    /// Where it says something first.
    at: Option<String>,
}

impl Slip {
    fn of(profile: &Profile) -> Option<Self> {
        let name = profile.name.as_str();
        if BUILT_IN.iter().any(|(known, _)| *known == name) {
            return None;
        }
        Some(Self {
            agent: meant(name, agents())?,
            profile: name.to_owned(),
            at: profile.changes.first().map(|one| one.place.to_string()),
        })
    }
}

impl fmt::Display for Slip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let profile = shown(&self.profile);
        write!(f, "profile `{profile}`")?;
        if let Some(at) = &self.at {
            write!(f, " ({at})")?;
        }
        write!(
            f,
            " applies only with --profile {profile}; did you mean `{}`?",
            self.agent
        )
    }
}

/// What became of `.stockade.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkspaceFile {
    /// There is none.
    Absent,
    /// It applies.
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
    #[must_use]
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
    #[must_use]
    pub fn new(places: Places) -> Self {
        Self {
            places,
            environment: BTreeMap::new(),
            flags: Flags::default(),
            choice: Choice::None,
            built_in: Vec::new(),
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
        let workspace = self.workspace_layer()?;
        wrong.or(())?;
        let (workspace_file, record) = match workspace {
            Workspace::Counts(layer) => {
                layers.push(*layer);
                (WorkspaceFile::Trusted, None)
            }
            Workspace::DoesNot(why, record) => (why, record),
        };
        let effective = merge(&layers, &self.choice)?;
        let profiles = layers.iter().flat_map(|layer| &layer.profiles);
        let slips = profiles.filter_map(Slip::of).collect();
        let lost = record.map(|record| (record, Loss::of(&workspace_file)));
        let led_here = Trust::new(&self.places).led_here()?.into_iter();
        let led_here = led_here.map(|(path, record)| (record, Loss::Moved(path)));
        for (record, loss) in lost.into_iter().chain(led_here) {
            self.check_loss(&record, &loss, layers.clone(), &effective)?;
        }
        self.check_writable(&effective)?;
        if workspace_file == WorkspaceFile::Trusted {
            files.push((LayerKind::Workspace, self.places.workspace_file()));
            files.sort();
        }
        Ok(Loaded {
            effective,
            files,
            workspace_file,
            slips,
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

    fn workspace_layer(&self) -> Result<Workspace, Diagnostics> {
        let record = Trust::new(&self.places).recorded()?;
        let text = match workspace_file(&self.places.workspace_file()) {
            Ok(Some(text)) => text,
            Ok(None) => {
                let why = if record.is_some() {
                    WorkspaceFile::Gone
                } else {
                    WorkspaceFile::Absent
                };
                return Ok(Workspace::DoesNot(why, record));
            }
            Err(problem) => {
                let why = WorkspaceFile::Unusable(problem.title);
                return Ok(Workspace::DoesNot(why, record));
            }
        };
        match &record {
            Some(record) if record.hash == hash(&text.bytes) => {
                let layer = self.parse_workspace(&text)?;
                Ok(Workspace::Counts(Box::new(layer)))
            }
            Some(_) => Ok(Workspace::DoesNot(WorkspaceFile::Changed, record)),
            None => Ok(Workspace::DoesNot(WorkspaceFile::Untrusted, None)),
        }
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
        let source = Source::file(self.places.workspace_file(), record.text.as_str());
        let trusted = parse(LayerKind::Workspace, &source, &self.places.roots());
        let with = trusted.and_then(|layer| {
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
        let how = match loss {
            Loss::Gone => "is gone".to_owned(),
            Loss::Unusable(why) => format!("cannot be used ({why})"),
            Loss::Changed => "has changed since you trusted it".to_owned(),
            Loss::Moved(path) => {
                let path = shown_path(path);
                format!("was moved away from {path}, which is now a link")
            }
        };
        let title = format!(
            ".stockade.toml {how}, so its restrictions of {} would be lost",
            keys.join(", ")
        );
        let problem = Diagnostic::new(title);
        // A missing file cannot be reviewed.
        let problem = match loss {
            Loss::Gone => problem.help("restore it, from the project's history for example"),
            Loss::Unusable(_) => problem.help("repair it, then review it with `stockade trust`"),
            Loss::Changed => problem.help("review and accept the change with `stockade trust`"),
            Loss::Moved(_) => {
                problem.help("if you moved the directory, review the file with `stockade trust`")
            }
        };
        Err(problem
            .help("to do without the file: `stockade trust --revoke`")
            .into())
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
                wrong.push(problem.help("allow only the part that the command has to write"));
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

/// Why a file that was trusted does not apply any more.
enum Loss {
    Changed,
    Gone,
    Unusable(String),
    /// The workspace had this path when it was trusted. The path leads here still, by a link.
    Moved(PathBuf),
}

impl Loss {
    fn of(file: &WorkspaceFile) -> Self {
        match file {
            WorkspaceFile::Gone => Self::Gone,
            WorkspaceFile::Unusable(why) => Self::Unusable(why.clone()),
            _ => Self::Changed,
        }
    }
}

enum Workspace {
    Counts(Box<Layer>),
    DoesNot(WorkspaceFile, Option<Record>),
}

fn two_files(one: &Path, other: &Path) -> Diagnostic {
    let title = format!(
        "two files are about this workspace: {} and {}",
        shown_path(one),
        shown_path(other)
    );
    Diagnostic::new(title).help("merge them into one")
}
