//! The judgement of a file of settings: each setting counts on its own.

use std::{
    collections::BTreeSet,
    hash::BuildHasher as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    super::{MOST_FILES, TOP, bounds::Bounds, content::Content, finding::Change, locked},
    Settlement, file_like,
};
use crate::git::{
    branches::{Branches, branches},
    controls::{Control, Controls, Kind},
    settings::{self, Context, GitProgram, Setting},
};

impl Settlement<'_> {
    pub(super) fn judge_settings(
        &self,
        path: &Path,
        before: Option<&Content>,
        control: &Control,
        controls: &Controls,
        is_ours: bool,
    ) {
        let Some(now) = control.content.bytes() else {
            let why = "git reads its settings from there";
            let undone = [(Change::Malformed, why)];
            return self.put_back(path, control, before, &undone, is_ours);
        };
        // To ask git takes long. The end judges all of them again.
        let harmless = &self.watch.harmless;
        let hash = locked(harmless).hasher().hash_one(now);
        if self.is_live && locked(harmless).get(path) == Some(&hash) {
            return;
        }
        // Of very many changed files, git reads the first; the others are read by us.
        const LONGEST: Duration = Duration::from_millis(100);
        let git = if self.asked.get() < LONGEST {
            self.git.clone()
        } else {
            GitProgram::none()
        };
        let begin = Instant::now();
        let baseline = &self.watch.baseline;
        let repository = control.repository.as_deref();
        let was = before.and_then(Content::bytes);
        let mut context = Context {
            repository,
            left: branches_left(was, repository),
            is_for_all: repository.is_none(),
            is_new: repository.is_some_and(|it| !baseline.repositories.contains(it)),
            is_of_worktree: path.ends_with("config.worktree"),
            is_live: self.is_live,
            branches: repository.and_then(|it| Some(&baseline.branches.get(it)?.0)),
            writable: &self.watch.writable,
            ..Context::default()
        };
        self.add_remotes_elsewhere(path, control, controls, &mut context);
        let settled = settings::settle(&git, was, now, &self.watch.own.settings, context);
        self.asked.set(self.asked.get() + begin.elapsed());
        let shown = |setting: &Setting| format!("{} = {}", setting.key(), setting.value());
        for (setting, why) in &settled.told {
            self.find(path, Change::Setting(shown(setting)), why);
        }
        let Some(contents) = settled.contents else {
            const MOST: usize = 4096;
            let mut harmless = locked(harmless);
            let may_change = repository.is_some_and(|repository| {
                let settings = settings::parse(now).unwrap_or_default();
                settings::names_absent_worktree(&settings, repository)
            });
            if harmless.len() < MOST && !may_change {
                harmless.insert(path.to_owned(), hash);
            }
            return;
        };
        let undone = settled.undone.into_iter().map(|(change, why)| {
            let change = match change {
                settings::Change::Set(setting) => Change::Setting(shown(&setting)),
                settings::Change::Removed(setting) => Change::SettingGone(shown(&setting)),
                settings::Change::Reordered => Change::Changed,
                settings::Change::Malformed => Change::Malformed,
            };
            (change, why)
        });
        let undone: Vec<_> = undone.collect();
        let result = (before.is_some() || !contents.is_empty())
            .then(|| file_like(before.unwrap_or(&control.content), contents));
        self.put_back(path, control, result.as_ref(), &undone, is_ours);
    }

    /// The remotes that other files of the same repository had an address of, or have now, and those of the
    /// user's own settings. Git pushes to all addresses of a remote, whichever file they are in.
    fn add_remotes_elsewhere(
        &self,
        path: &Path,
        control: &Control,
        controls: &Controls,
        context: &mut Context<'_>,
    ) {
        let is_other = |(other, it): &(&PathBuf, &Control)| {
            it.kind == Kind::Settings && it.repository == control.repository && *other != path
        };
        let others = controls.iter().filter(is_other);
        let contents = others.flat_map(|(other, control)| {
            let before = self.watch.baseline.contents.get(other);
            before.into_iter().chain([&control.content])
        });
        // Those of the repository itself come before those of its worktrees, of which there may be many.
        const MOST: usize = 8 << 20;
        let mut left = MOST;
        let contents = contents.map_while(|content| {
            let bytes = content.bytes().unwrap_or_default();
            left = left.checked_sub(bytes.len())?;
            Some(bytes)
        });
        let settings = contents.filter_map(|bytes| settings::parse(bytes).ok());
        let own = &self.watch.own;
        let of_user = own.settings.iter().chain(&own.included).cloned();
        for setting in settings.flatten().chain(of_user) {
            let named = setting.remote().map(<[u8]>::to_vec);
            context.named_elsewhere.extend(named);
            context.elsewhere.extend(addressed(&setting));
        }
        // What is only now in another file may be undone there, and a file of one worktree counts in no other.
        let kept = control.repository.as_deref();
        let kept = kept.map(|it| it.join("config")).filter(|it| it != path);
        let kept = kept.and_then(|it| {
            let was = self.watch.baseline.contents.get(&it)?.bytes()?;
            let is = controls.get(&it)?.content.bytes()?;
            let [was, is] = [was, is].map(|bytes| settings::parse(bytes).unwrap_or_default());
            let was: BTreeSet<Vec<u8>> = was.iter().filter_map(addressed).collect();
            let is = is.iter().filter_map(addressed);
            Some(is.filter(|name| was.contains(name)).collect())
        });
        context.kept_elsewhere = kept.unwrap_or_default();
        let own = own.settings.iter().filter_map(addressed);
        context.kept_elsewhere.extend(own);
    }
}

/// The branches that had a remote and are still there; all if nobody can tell.
fn branches_left(was: Option<&[u8]>, repository: Option<&Path>) -> BTreeSet<Vec<u8>> {
    let was = settings::parse(was.unwrap_or_default()).unwrap_or_default();
    let had_one = |it: &&Setting| it.section() == b"branch" && it.name() == b"remote";
    let names = was.iter().filter(had_one);
    let mut names: BTreeSet<Vec<u8>> = names
        .filter_map(|setting| Some(setting.subsection()?.to_vec()))
        .collect();
    let bounds = Bounds::new(TOP, MOST_FILES, &|| false);
    let look = || branches(repository?, &bounds);
    if !names.is_empty()
        && let Some(Branches(now)) = look()
    {
        names.retain(|name| now.contains(name));
    }
    names
}

/// The remote of which this is the address.
fn addressed(setting: &Setting) -> Option<Vec<u8>> {
    let name = setting.subsection().filter(|_| setting.is_address())?;
    Some(name.to_vec())
}
