//! What the command that is run needs beyond its profile: its state where the caller's environment
//! says it is, and the port at which its login is called back.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use crate::{
    diagnostic::Diagnostic,
    keys::{Effective, Key},
    layer::Layer,
    profiles::{STATE_VARIABLES, StateVariable},
    source::{Origin, Place, Source, SourceKind, Sourced},
    text::shown,
    value::{Mode, Port, Published},
};

/// Every agent's state that the environment says is elsewhere, whichever agent is run.
pub fn moved_state(
    environment: &BTreeMap<OsString, OsString>,
) -> impl Iterator<Item = (&'static StateVariable, PathBuf)> {
    STATE_VARIABLES.iter().filter_map(|variable| {
        let value = environment.get(OsStr::new(variable.name))?;
        let directory = variable.directory(value)?.ok()?;
        Some((variable, directory))
    })
}

/// Has the agent that is run write its state where its variable says, and not in the usual place.
pub(crate) fn state(
    effective: &mut Effective,
    environment: &BTreeMap<OsString, OsString>,
    home: &Path,
    layers: &[Layer],
) -> Result<(), Diagnostic> {
    let mut variables = STATE_VARIABLES.iter();
    let profile = effective.profile.as_deref();
    let Some(variable) = variables.find(|it| Some(it.profile) == profile) else {
        return Ok(());
    };
    // If the agent does not get it, or gets another value, it does not say where the state is.
    let env = &effective.env;
    let passes = env.pass.iter().any(|it| it.value.as_str() == variable.name);
    let is_set = env.set.keys().any(|name| name.as_str() == variable.name);
    let value = environment.get(OsStr::new(variable.name));
    let Some(value) = value.filter(|_| passes && !is_set) else {
        return Ok(());
    };
    let directory = match variable.directory(value) {
        None => return Ok(()),
        Some(Ok(directory)) => directory,
        Some(Err(why)) => {
            let value = shown(&value.to_string_lossy());
            let title = format!("{} is `{value}`, which {why}", variable.name);
            let help = "set it to the absolute path of a directory, or unset it";
            return Err(Diagnostic::new(title).help(help));
        }
    };
    let mut locks = layers.iter().flat_map(|layer| &layer.locks);
    if let Some(lock) = locks.find(|lock| lock.covers(Key::Write)) {
        let title = format!(
            "{} moves the agent's state, and files.write is locked by the administrator of this machine",
            variable.name
        );
        let problem = Diagnostic::at(title, lock.place.clone()).label("locked here");
        return Err(problem.help("unset the variable"));
    }
    let source = SourceKind::Environment(variable.name);
    let source = Source::new(source, value.to_string_lossy());
    let write = &mut effective.files.write;
    let is_usual = |path: &Path| variable.usual.iter().any(|it| path == home.join(it));
    write.retain(|it| !(it.origin.is_built_in_profile() && is_usual(&it.value)));
    write.push(Sourced {
        value: directory,
        origin: Origin::Written(Place::whole(&source)),
    });
    Ok(())
}

/// Who asks for the port of a login.
pub const LOGIN: &str = "codex login";

/// Publishes the port at which the browser calls a login back, unless the configuration has other
/// plans for it.
pub(crate) fn login(effective: &mut Effective, port: Port, layers: &[Layer]) {
    let network = &mut effective.network;
    let mut locks = layers.iter().flat_map(|layer| &layer.locks);
    let is_taken = network.host_ports.iter().any(|it| it.value == port)
        || network.publish.iter().any(|it| it.value.outside == port);
    if network.mode.value != Mode::Jail || is_taken || locks.any(|it| it.covers(Key::Publish)) {
        return;
    }
    let source = Source::new(SourceKind::Flag(LOGIN.to_owned()), port.to_string());
    network.publish.push(Sourced {
        value: Published {
            outside: port,
            inside: port,
        },
        origin: Origin::Written(Place::whole(&source)),
    });
}
