//! What counts of a file that has much else in it.

use std::path::{Path, PathBuf};

use crate::{
    facts::is_in,
    tables::autorun::{
        CLAUDE_JSON, CLAUDE_JSON_INSTEAD, CLAUDE_JSON_PARTS, CLAUDE_JSON_TRUST, EXCLUDE,
    },
};

/// What there is to be told about; nothing if all of it is.
pub(crate) fn parts_that_count(path: &Path, bytes: &[u8], writable: &[PathBuf]) -> Option<Vec<u8>> {
    let is_named = |name: &str| path.file_name() == Some(name.as_ref());
    if is_named(CLAUDE_JSON) || is_named(CLAUDE_JSON_INSTEAD) {
        Some(parts_that_run(bytes, writable))
    } else {
        path.ends_with(EXCLUDE).then(|| patterns(bytes))
    }
}

/// The patterns of a list of files that git leaves out. A new repository has one of comments only.
fn patterns(list: &[u8]) -> Vec<u8> {
    let lines = list.split_inclusive(|byte| *byte == b'\n');
    let patterns = lines.filter(|line| !line.trim_ascii().is_empty() && !line.starts_with(b"#"));
    patterns.flatten().copied().collect()
}

/// What of Claude Code's own file runs or is obeyed, at any depth. The rest changes all the time. That a
/// project is trusted counts if it is none that the session can write.
fn parts_that_run(json: &[u8], writable: &[PathBuf]) -> Vec<u8> {
    struct Parts<'a> {
        writable: &'a [PathBuf],
        found: Vec<String>,
    }
    impl Parts<'_> {
        fn collect(&mut self, value: &serde_json::Value, way: &str, is_own: bool) {
            let serde_json::Value::Object(fields) = value else {
                return;
            };
            for (name, value) in fields {
                let is_own =
                    is_own || (way == "/projects" && is_in(Path::new(name), self.writable));
                let way = format!("{way}/{name}");
                let is_empty = match value {
                    serde_json::Value::Array(all) => all.is_empty(),
                    serde_json::Value::Object(all) => all.is_empty(),
                    serde_json::Value::Bool(is_on) => !is_on,
                    other => other.is_null(),
                };
                let name = name.as_str();
                let is_trust = CLAUDE_JSON_TRUST.contains(&name) && !is_own;
                if (is_trust || CLAUDE_JSON_PARTS.contains(&name)) && !is_empty {
                    self.found.push(format!("{way}: {value}"));
                } else {
                    self.collect(value, &way, is_own);
                }
            }
        }
    }
    let Ok(value) = serde_json::from_slice(json) else {
        return json.to_vec();
    };
    let found = Vec::new();
    let mut parts = Parts { writable, found };
    parts.collect(&value, "", false);
    parts.found.sort();
    parts.found.join("\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_in_other_projects_counts_and_in_the_sessions_own_does_not() {
        let json = r#"{"projects": {
            "/home/ada/project": {"hasTrustDialogAccepted": true, "allowedTools": ["x"]},
            "/home/ada/project/sub": {"hasTrustDialogAccepted": true},
            "/home/ada/projects": {"hasTrustDialogAccepted": true},
            "/home/ada/other": {"hasTrustDialogAccepted": false, "lastCost": 1}
        }}"#;
        let writable = [PathBuf::from("/home/ada/project")];
        let path = Path::new("/home/ada/.claude.json");
        let parts = parts_that_count(path, json.as_bytes(), &writable).unwrap();
        let parts = String::from_utf8(parts).unwrap();
        let expected = "/projects//home/ada/project/allowedTools: [\"x\"]\n\
            /projects//home/ada/projects/hasTrustDialogAccepted: true";
        assert_eq!(parts, expected);
    }
}
