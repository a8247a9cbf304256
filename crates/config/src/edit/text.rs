//! The text of a file with more rules in it. Everything that was there stays as it was written.

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use super::{NetworkEdit, NewPort, NewRule};
use crate::text::shown;

/// Longer lists have one entry on each line.
const LONGEST_LINE: usize = 100;
const INDENT: &str = "    ";
/// A comment tells what was seen, and need not tell all of it.
const LONGEST_COMMENT: usize = 160;

/// A line of a list, with the comment above it.
type Entry = (Value, Option<String>);

/// The text with what it lacks of an edit.
///
/// # Errors
/// If `[network]` is no table, or a list none.
pub(super) fn edited(before: &str, edit: &NetworkEdit) -> Result<String, String> {
    if edit.is_empty() {
        return Ok(before.to_owned());
    }
    let mut document: DocumentMut = before
        .parse()
        .map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    let network = document.entry("network").or_insert_with(section);
    let network = network
        .as_table_like_mut()
        .ok_or("`network` is no section")?;
    if let Some(internet) = edit.internet {
        set(network, "internet", internet.into());
    }
    let rule = |new: &NewRule| (new.rule.to_string().into(), new.comment.clone());
    let port = |new: &NewPort| (i64::from(new.port).into(), new.comment.clone());
    let (near, rules): (Vec<_>, Vec<_>) = edit.rules.iter().partition(|new| new.rule.is_near());
    let [rules, near] = [rules, near].map(|rules| rules.into_iter().map(rule).collect());
    let ports: Vec<Entry> = edit.host_ports.iter().map(port).collect();
    for (key, entries) in [("allow", rules), ("near", near), ("host_ports", ports)] {
        if !entries.is_empty() {
            let list = network.entry(key);
            let list = list.or_insert_with(|| Item::Value(Array::new().into()));
            let list = list.as_array_mut();
            add(list.ok_or(format!("`{key}` is no list"))?, entries);
        }
    }
    Ok(document.to_string())
}

fn section() -> Item {
    let mut table = Table::new();
    table.decor_mut().set_prefix("\n");
    Item::Table(table)
}

/// The blanks and the comment around an old value stay.
fn set(table: &mut dyn TableLike, key: &str, mut value: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => drop(table.insert(key, Item::Value(value))),
    }
}

fn add(list: &mut Array, entries: Vec<Entry>) {
    let has_lines = list.to_string().contains('\n');
    let widths = entries.iter().map(|(value, _)| value.to_string().len());
    let width = widths.map(|width| width + ", ".len()).sum::<usize>();
    let width = width + list.to_string().len() + "allow = ".len();
    let has_comments = entries.iter().any(|(_, comment)| comment.is_some());
    if !has_lines && !has_comments && width <= LONGEST_LINE {
        for (value, _) in entries {
            list.push(value);
        }
        return;
    }
    if !has_lines {
        for entry in list.iter_mut() {
            *entry.decor_mut() = toml_edit::Decor::new(format!("\n{INDENT}"), "");
        }
        list.set_trailing("\n");
    }
    // What follows the last entry: a comment on its line belongs to it, and others to the list.
    let mut before = String::new();
    let indent = list.iter().last().map_or(INDENT.to_owned(), indent_of);
    if let Some(last) = list.iter_mut().last() {
        before += last
            .decor()
            .suffix()
            .and_then(toml_edit::RawString::as_str)
            .unwrap_or_default();
        last.decor_mut().set_suffix("");
    }
    before += list.trailing().as_str().unwrap_or_default();
    let mut before = before.trim_end().to_owned();
    for (mut value, comment) in entries {
        let mut prefix = std::mem::take(&mut before);
        if let Some(comment) = comment {
            let comment: String = shown(&comment).chars().take(LONGEST_COMMENT).collect();
            prefix += &format!("\n{indent}# {comment}");
        }
        prefix += &format!("\n{indent}");
        *value.decor_mut() = toml_edit::Decor::new(prefix, "");
        list.push_formatted(value);
    }
    list.set_trailing_comma(true);
    list.set_trailing("\n");
}

/// The blanks before an entry that begins its line.
fn indent_of(entry: &Value) -> String {
    let prefix = entry
        .decor()
        .prefix()
        .and_then(toml_edit::RawString::as_str);
    match prefix.and_then(|prefix| prefix.rsplit_once('\n')) {
        Some((_, blanks)) if blanks.trim().is_empty() => blanks.to_owned(),
        _ => INDENT.to_owned(),
    }
}
