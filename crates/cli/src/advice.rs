//! What to type, or which lines to add to which file, so that a denied connection is always allowed.
//!
//! Rules have a command, `stockade allow`. Other settings are lines in the file about this project: the
//! existing one, or the one that `stockade init` creates. The lines fit the file as it is: added
//! literally at the named place, they give a valid file.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;
use stockade_config::{Key, Loader, keys_in, literal, shown_path};
use stockade_gate::Fix;

use crate::{context, denials};

/// What to do so that all of `fixes` hold in every session, in lines. Rules that hold already are left
/// out.
pub(crate) fn lines(loader: &Loader, fixes: &[Fix]) -> Vec<String> {
    let in_force = context::load(loader).map(|loaded| loaded.effective.policy().rules);
    let holds = |fix: &Fix| match (fix, &in_force) {
        (Fix::Allow(rule) | Fix::Near(rule), Ok(rules)) => rules.iter().any(|it| it == rule),
        _ => false,
    };
    let mut new: Vec<Fix> = Vec::new();
    for fix in fixes.iter().filter(|fix| !holds(fix)) {
        if !new.contains(fix) {
            new.push(fix.clone());
        }
    }
    // Nobody should take all that a program wanted for what it needs.
    let purpose = match new.as_slice() {
        [_] => "to allow it always",
        _ => "to allow any of it always",
    };
    let (commands, others): (Vec<_>, Vec<_>) =
        new.into_iter().partition(|fix| command(fix).is_some());
    let mut lines: Vec<String> = commands.iter().filter_map(command).collect();
    match lines.as_mut_slice() {
        [] => {}
        [line] => *line = format!("{purpose}: {line}"),
        several => {
            for line in several {
                line.insert_str(0, "  ");
            }
            lines.insert(0, format!("{purpose}:"));
        }
    }
    if others.is_empty() {
        return lines;
    }
    let lists = Lists::of(&others, purpose);
    lines.extend(match loader.project_file() {
        Ok(Some(path)) => lists.into_file(&path),
        _ => lists.whole("run `stockade init`, and add to [network] in the file that it makes"),
    });
    lines
}

/// The command that adds a rule to the file about this project.
fn command(fix: &Fix) -> Option<String> {
    match fix {
        Fix::Allow(rule) => Some(denials::command(&rule.to_string(), false)),
        Fix::Near(rule) => Some(denials::command(&rule.to_string(), true)),
        Fix::HostPort(_) | Fix::Discovery(_) | Fix::Proxy => None,
    }
}

/// What is to be added to which list of `[network]`, and what else.
struct Lists {
    purpose: &'static str,
    items: BTreeMap<&'static str, Vec<String>>,
    /// The proxy of the environment is to be used.
    proxy: bool,
}

impl Lists {
    fn of(fixes: &[Fix], purpose: &'static str) -> Self {
        let mut lists: BTreeMap<_, Vec<String>> = BTreeMap::new();
        let mut proxy = false;
        for fix in fixes {
            let (key, value) = match fix {
                Fix::Allow(rule) => (Key::Allow, Value::from(rule.to_string())),
                Fix::Near(rule) => (Key::Near, Value::from(rule.to_string())),
                Fix::HostPort(port) => (Key::HostPorts, Value::from(*port)),
                Fix::Discovery(entry) => (Key::Discovery, Value::from(entry.to_string())),
                Fix::Proxy => {
                    proxy = true;
                    continue;
                }
            };
            let (list, item) = (lists.entry(key.name()).or_default(), literal(&value));
            if !list.contains(&item) {
                list.push(item);
            }
        }
        Self {
            purpose,
            items: lists,
            proxy,
        }
    }

    fn into_file(self, path: &Path) -> Vec<String> {
        // One that cannot be read any more is like one that is empty.
        let text = fs::read_to_string(path).unwrap_or_default();
        self.into_text(&shown_path(path), &text)
    }

    fn into_text(mut self, name: &str, text: &str) -> Vec<String> {
        let network = keys_in("network", text);
        let mut lines = Vec::new();
        for (key, at) in network.iter().flatten() {
            let key = key.name();
            if let Some(items) = self.items.remove(key) {
                let purpose = self.purpose;
                lines.push(format!(
                    "{purpose}, add to the list `{key}` at {name}:{at}:"
                ));
                lines.push(format!("  {}", items.join(", ")));
            }
        }
        if self.items.is_empty() && !self.proxy {
            return lines;
        }
        if network.is_some() {
            lines.extend(self.whole(&format!("add to [network] in {name}")));
        } else {
            lines.extend(self.whole(&format!("add to {name}")));
            lines.insert(1, "  [network]".to_owned());
        }
        lines
    }

    fn whole(self, place: &str) -> Vec<String> {
        let list = |(key, items): (&str, Vec<String>)| format!("  {key} = [{}]", items.join(", "));
        let head = [format!("{}, {place}:", self.purpose)].into_iter();
        let proxy = self.proxy.then(|| "  proxy = \"environment\"".to_owned());
        head.chain(self.items.into_iter().map(list))
            .chain(proxy)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(text: &str) -> String {
        let discovery = "udp://5064".parse().expect("an entry");
        let fixes = [
            Fix::HostPort(5432),
            Fix::Discovery(discovery),
            Fix::HostPort(80),
        ];
        let lists = Lists::of(&fixes, "to allow any of it always");
        lists.into_text("/f", text).join("\n")
    }

    #[test]
    fn a_file_without_the_section_gets_it() {
        let wanted = "\
to allow any of it always, add to /f:
  [network]
  discovery = [\"udp://5064\"]
  host_ports = [5432, 80]";
        assert_eq!(advice(""), wanted);
        assert_eq!(advice("[files]\nhost_ports = 1 # no\n"), wanted);
        assert_eq!(
            advice("# [network]\n[profiles.x.network]\nhost_ports = []\n"),
            wanted
        );
    }

    #[test]
    fn a_section_gets_the_lists() {
        let wanted = "\
to allow any of it always, add to [network] in /f:
  discovery = [\"udp://5064\"]
  host_ports = [5432, 80]";
        assert_eq!(advice("[network]\n# host_ports = [1]\n[env]\n"), wanted);
    }

    #[test]
    fn a_list_gets_what_it_lacks() {
        let wanted = "\
to allow any of it always, add to the list `host_ports` at /f:3:
  5432, 80
to allow any of it always, add to [network] in /f:
  discovery = [\"udp://5064\"]";
        assert_eq!(
            advice("[ network ] # here\ninternet = false\nhost_ports = [\n]\n"),
            wanted
        );
    }
}
