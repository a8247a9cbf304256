//! Which lines to add to which file so that a denied connection is allowed.
//!
//! The file about this project comes first: the existing one, or the one that `stockade init`
//! creates. The user's file for all projects comes second. The lines fit the file as it is: added
//! literally at the named place, they give a valid file.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;
use stockade_config::{Key, Loader, keys_in, literal, shown_path};
use stockade_gate::Fix;

/// What to write where so that all of `fixes` hold in every session, in lines.
pub(crate) fn lines(loader: &Loader, fixes: &[Fix]) -> Vec<String> {
    let lists = Lists::of(fixes);
    if let Ok(Some(path)) = loader.project_file() {
        return lists.into_file(&path);
    }
    let mut lines =
        lists.whole("run `stockade init`, and add to [network] in the file that it makes");
    let path = loader.places.user_file();
    if path.exists() {
        let path = shown_path(&path);
        lines.push(format!("or, for all projects, to [network] in {path}"));
    }
    lines
}

/// What is to be added to which list of `[network]`.
struct Lists {
    purpose: &'static str,
    items: BTreeMap<&'static str, Vec<String>>,
}

impl Lists {
    fn of(fixes: &[Fix]) -> Self {
        let mut lists: BTreeMap<_, Vec<String>> = BTreeMap::new();
        for fix in fixes {
            let (key, value) = match fix {
                Fix::Allow(rule) => (Key::Allow, Value::from(rule.to_string())),
                Fix::HostPort(port) => (Key::HostPorts, Value::from(*port)),
            };
            let (list, item) = (lists.entry(key.name()).or_default(), literal(&value));
            if !list.contains(&item) {
                list.push(item);
            }
        }
        let single = lists.values().map(Vec::len).sum::<usize>() == 1;
        Self {
            // Nobody should take all that a program wanted for what it needs.
            purpose: if single {
                "to allow it always"
            } else {
                "to allow any of it always"
            },
            items: lists,
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
        if self.items.is_empty() {
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
        head.chain(self.items.into_iter().map(list)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(text: &str) -> String {
        let rule = |rule: &str| Fix::Allow(rule.parse().expect("a rule"));
        let fixes = [
            rule("tcp://10.0.0.5:80"),
            Fix::HostPort(5432),
            rule("example.org"),
            rule("tcp://10.0.0.5:80"),
        ];
        Lists::of(&fixes).into_text("/f", text).join("\n")
    }

    #[test]
    fn a_file_without_the_section_gets_it() {
        let wanted = "\
to allow any of it always, add to /f:
  [network]
  allow = [\"tcp://10.0.0.5:80\", \"example.org\"]
  host_ports = [5432]";
        assert_eq!(advice(""), wanted);
        assert_eq!(advice("[files]\nallow = 1 # no\n"), wanted);
        assert_eq!(
            advice("# [network]\n[profiles.x.network]\nallow = []\n"),
            wanted
        );
    }

    #[test]
    fn a_section_gets_the_lists() {
        let wanted = "\
to allow any of it always, add to [network] in /f:
  allow = [\"tcp://10.0.0.5:80\", \"example.org\"]
  host_ports = [5432]";
        assert_eq!(advice("[network]\n# allow = [\"x\"]\n[env]\n"), wanted);
    }

    #[test]
    fn a_list_gets_what_it_lacks() {
        let wanted = "\
to allow any of it always, add to the list `allow` at /f:3:
  \"tcp://10.0.0.5:80\", \"example.org\"
to allow any of it always, add to [network] in /f:
  host_ports = [5432]";
        assert_eq!(
            advice("[ network ] # here\ninternet = false\nallow = [\n]\n"),
            wanted
        );
    }
}
