//! The options of `run` that are settings, made from the table of keys. Each goes through the
//! same types and checks as in a file. Here they are only collected.

use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use serde_json::Value;
use stockade_config::{Effective, Flags, Key, Kind, SECTIONS, Spec};

#[derive(Debug, Default)]
pub(crate) struct Settings(Flags);

impl Settings {
    pub(crate) fn flags(&self) -> Flags {
        self.0.clone()
    }
}

const LIMIT: &str = "limit";
const NO_FORGE: &str = "no-forge";
const ASK: &str = "ask";

/// Keys with an option of their own.
fn keys() -> impl Iterator<Item = (Key, Spec)> {
    let keys = Key::ALL.into_iter().map(|key| (key, key.spec()));
    keys.filter(|(_, spec)| spec.option != LIMIT)
}

impl clap::Args for Settings {
    fn augment_args(command: Command) -> Command {
        let defaults = Effective::default();
        let mut command = command;
        for (key, spec) in keys() {
            let default = defaults.shown(key).first().map(|shown| shown.value.clone());
            let is_on = default == Some(true.into());
            command = command.arg(argument(&spec, default));
            if spec.kind == Kind::Boolean {
                let off = Arg::new(spec.off)
                    .long(spec.off)
                    .help(format!("The same as {}=false", spec.flag))
                    .help_heading(heading(&spec))
                    .action(ArgAction::SetTrue)
                    .conflicts_with(spec.option)
                    // What is off by default rarely has to be turned off.
                    .hide(!is_on);
                command = command.arg(off);
            }
        }
        let unknown = Key::Unknown.spec();
        let ask = Arg::new(ASK)
            .long(ASK)
            .help(format!("The same as {} ask", unknown.flag))
            .help_heading(heading(&unknown))
            .action(ArgAction::SetTrue)
            .conflicts_with(unknown.option);
        let no_forge = Arg::new(NO_FORGE)
            .long(NO_FORGE)
            .help("Give no login of any forge, whatever the configuration says")
            .help_heading(heading(&Key::Github.spec()))
            .action(ArgAction::SetTrue)
            .conflicts_with_all(["github", "gitlab", "forge-host"]);
        let limit = Arg::new(LIMIT)
            .long(LIMIT)
            .value_name("KEY=VALUE")
            .help("Limit what the command can use: processes, memory, open_files, tmpfs or cpu_time")
            .long_help(
                "Limit what the command can use: processes, memory, open_files, tmpfs or cpu_time\n\n\
                 For example memory=8G, processes=4096, cpu_time=2h. Can be repeated.",
            )
            .help_heading(heading(&Key::Memory.spec()))
            .action(ArgAction::Append);
        command.arg(ask).arg(no_forge).arg(limit)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn heading(spec: &Spec) -> &'static str {
    let section = SECTIONS.iter().find(|section| section.name == spec.section);
    section.map_or("", |section| section.heading)
}

fn argument(spec: &Spec, default: Option<Value>) -> Arg {
    let mut help = spec.about().to_owned();
    if let Some(default) = default {
        let default = default
            .as_str()
            .map_or_else(|| default.to_string(), str::to_owned);
        help.push_str(&format!(" [default: {default}]"));
    }
    let more: Vec<&str> = spec.help.iter().skip(2).map(|line| line.trim()).collect();
    let (value, action) = match spec.kind {
        Kind::List(item) => (value_name(*item), ArgAction::Append),
        Kind::Variables => ("NAME=VALUE", ArgAction::Append),
        Kind::Devices => ("NAME=RULE", ArgAction::Append),
        kind => (value_name(kind), ArgAction::Set),
    };
    let argument = Arg::new(spec.option)
        .long(spec.option)
        .value_name(value)
        .action(action)
        .help_heading(heading(spec));
    let argument = match more.as_slice() {
        [] => argument.help(help),
        more => argument
            .long_help(format!("{help}\n\n{}", more.join(" ")))
            .help(help),
    };
    if spec.kind != Kind::Boolean {
        return argument;
    }
    argument
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
}

fn value_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Boolean => "BOOL",
        Kind::Rule | Kind::NearRule => "RULE",
        Kind::Discovery => "SEARCH",
        Kind::Proxy => "PROXY",
        Kind::Exemption => "HOST",
        Kind::Port | Kind::Published => "PORT",
        Kind::Path => "PATH",
        Kind::Variable => "NAME",
        Kind::Host => "HOST",
        _ => "VALUE",
    }
}

impl FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut settings = Self::default();
        settings.update_from_arg_matches(matches)?;
        Ok(settings)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let values = |option: &str| matches.get_many::<String>(option).into_iter().flatten();
        for (key, spec) in keys() {
            for value in values(spec.option) {
                self.0.set(key, value);
            }
            if spec.kind == Kind::Boolean && matches.get_flag(spec.off) {
                self.0.off(key);
            }
        }
        for value in values(LIMIT) {
            // All limits have this option; the value names the key.
            self.0.set(Key::Memory, value);
        }
        if matches.get_flag(ASK) {
            self.0.ask();
        }
        if matches.get_flag(NO_FORGE) {
            self.0.no_forge();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::PathBuf};

    use clap::{CommandFactory as _, Parser as _};
    use stockade_config::{Loader, Places};

    use super::*;
    use crate::args::{Arguments, Command};

    /// Flags of `run` that no file can have in its place, and why.
    const NOT_SETTINGS: [(&str, &str); 7] = [
        ("workspace", "decides which files are read"),
        ("profile", "chooses among tables of the files"),
        ("learn", "is about this one call"),
        ("quiet", "is about this one call"),
        ("no-forge", "is three keys at once"),
        ("ask", "is --unknown ask"),
        ("help", "is no setting"),
    ];

    fn flags_of_run() -> BTreeSet<String> {
        let mut command = Arguments::command();
        command.build();
        let run = command.find_subcommand("run").expect("run");
        run.get_arguments()
            .filter_map(|flag| flag.get_long())
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn every_key_has_a_flag_and_every_flag_a_key() {
        let of_keys: BTreeSet<String> = Key::ALL
            .into_iter()
            .map(Key::spec)
            .flat_map(|spec| {
                let off = (spec.kind == Kind::Boolean).then_some(spec.off);
                [spec.option].into_iter().chain(off).map(str::to_owned)
            })
            .collect();
        let exempt: BTreeSet<String> = NOT_SETTINGS
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        assert_eq!(&flags_of_run() - &of_keys, exempt);
        assert_eq!(&of_keys - &flags_of_run(), BTreeSet::new());
    }

    /// A value other than the default for each kind of key.
    fn value_for(key: Key) -> String {
        let default = Effective::default().shown(key).pop();
        let default = default.map(|shown| shown.value);
        let value = match key.spec().kind {
            Kind::Boolean => return (default != Some(true.into())).to_string(),
            Kind::Choice(words) => {
                let is_other = |word: &&str| default != Some((*word).into());
                words.iter().copied().find(is_other).expect("a choice")
            }
            Kind::List(Kind::Rule) => "10.0.0.1",
            Kind::List(Kind::NearRule) => "nas.lan",
            Kind::List(Kind::Discovery) => "epics",
            Kind::List(Kind::Port | Kind::Published) => "3000",
            Kind::List(Kind::Variable) => "EDITOR",
            Kind::List(Kind::Host) => "git.example.org",
            Kind::List(Kind::Exemption) => "corp.example",
            Kind::List(_) => "/data",
            Kind::Proxy => "http://proxy.example:3128",
            Kind::Path => "/data",
            Kind::Variables => "A=b",
            Kind::Devices => "pmac=10.0.0.7",
            Kind::Count(_) => "70",
            Kind::Size => "8G",
            Kind::Time => "2h",
            other => panic!("{other:?} is for lists only"),
        };
        value.to_owned()
    }

    fn typed(option: &str) -> Effective {
        let line = ["stockade", "run", option, "true"];
        let arguments = Arguments::try_parse_from(line).expect("a command line");
        let Command::Run(run) = arguments.command else {
            panic!("run")
        };
        let nowhere = PathBuf::from("/nonexistent");
        let mut places = Places::new(&nowhere, &nowhere.join("project"), |_| None);
        places.system = nowhere.join("etc");
        let mut loader = Loader::new(places);
        loader.flags = run.settings.flags();
        loader.load().expect("a configuration").effective
    }

    fn origin(effective: &Effective, key: Key) -> String {
        let shown = effective.shown(key);
        shown.first().expect("a value").origin.to_string()
    }

    #[test]
    fn every_flag_sets_its_key_and_no_other() {
        for key in Key::ALL {
            let (flag, value) = (key.spec().flag, value_for(key));
            let effective = typed(&match key.section() {
                "limits" => format!("{flag}={}={value}", key.name()),
                _ => format!("{flag}={value}"),
            });
            let changed: Vec<Key> = Key::ALL
                .into_iter()
                .filter(|key| !effective.is_default(*key))
                .collect();
            assert_eq!(changed, [key], "{flag}");
            assert_eq!(origin(&effective, key), flag);
        }
    }

    #[test]
    fn every_boolean_is_turned_on_by_its_name_and_off_by_no_and_its_name() {
        let booleans = || keys().filter(|(_, spec)| spec.kind == Kind::Boolean);
        assert!(booleans().count() > 3);
        for (key, spec) in booleans() {
            let off = format!("--{}", spec.off);
            for (option, value) in [(spec.flag, true), (&off, false)] {
                let effective = typed(option);
                assert_eq!(effective.shown(key)[0].value, value, "{option}");
                assert_eq!(origin(&effective, key), option);
            }
            let both = ["stockade", "run", spec.flag, &off, "true"];
            assert!(Arguments::try_parse_from(both).is_err(), "{both:?}");
        }
    }
}
