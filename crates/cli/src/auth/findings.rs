//! What a forge says of a token, and what that means for a sandboxed session.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// What became of the question.
pub(super) type Outcome = Result<Findings, Failure>;

#[derive(Debug)]
pub(super) enum Failure {
    /// The forge does not accept the token.
    Refused(String),
    /// This host is not the forge that is meant, and why.
    NotForge(String),
    /// Nobody knows, and why.
    Unknown(String),
}

#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) kind: &'static str,
    /// Whose it is.
    pub(super) user: Option<String>,
    /// `None` if the forge does not say.
    pub(super) scopes: Option<Vec<String>>,
    pub(super) expiry: Expiry,
    pub(super) repositories: Option<Repositories>,
    /// What the forge does not say.
    pub(super) unsaid: Option<&'static str>,
    pub(super) warnings: Vec<Warning>,
}

/// When the token ends by itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Expiry {
    #[default]
    Unknown,
    Never,
    /// A day, and how many are left.
    On(String, i64),
}

#[derive(Debug, Default)]
pub(super) struct Repositories {
    /// The first of them.
    pub(super) names: Vec<String>,
    pub(super) count: usize,
    /// There are more than were counted.
    pub(super) has_more: bool,
}

/// What is dangerous about a token, and the smallest change that would help.
#[derive(Debug)]
pub(super) struct Warning {
    pub(super) what: String,
    pub(super) fix: String,
}

pub(super) fn warning(what: impl Into<String>, fix: impl Into<String>) -> Warning {
    Warning {
        what: what.into(),
        fix: fix.into(),
    }
}

/// The names that are said of many repositories.
pub(super) const MOST_NAMES: usize = 5;
/// A token that lives longer is told of.
const LONG: i64 = 90;

impl Expiry {
    /// From a date such as `2026-12-01`, with or without a time after it.
    pub(super) fn parse(text: &str) -> Self {
        match days(text) {
            Some(day) => Self::On(text.chars().take(10).collect(), day - today()),
            None => Self::Unknown,
        }
    }

    pub(super) fn warning(&self) -> Option<Warning> {
        const FIX: &str = "make one that expires in 7 to 30 days";
        match self {
            Self::Unknown => None,
            Self::Never => Some(warning("it never expires: a leaked one stays valid", FIX)),
            Self::On(_, ..0) => Some(warning("it has expired", FIX)),
            Self::On(_, days) => {
                (*days > LONG).then(|| warning(format!("it is valid for {days} more days"), FIX))
            }
        }
    }

    pub(super) fn said(&self) -> String {
        match self {
            Self::Unknown => "the forge does not say".to_owned(),
            Self::Never => "never".to_owned(),
            Self::On(day, days @ ..0) => format!("{day}, {} days ago", -days),
            Self::On(day, 0) => format!("{day}, today"),
            Self::On(day, 1) => format!("{day}, in 1 day"),
            Self::On(day, days) => format!("{day}, in {days} days"),
        }
    }
}

impl Findings {
    pub(super) fn as_json(&self) -> Value {
        let (expires, days_left) = match &self.expiry {
            Expiry::Unknown => (json!("unknown"), Value::Null),
            Expiry::Never => (json!("never"), Value::Null),
            Expiry::On(day, left) => (json!(day), json!(left)),
        };
        let repositories = self
            .repositories
            .as_ref()
            .map(|all| json!({ "names": all.names, "count": all.count, "has_more": all.has_more }));
        let warnings = self.warnings.iter();
        let warnings = warnings.map(|it| json!({ "warning": it.what, "fix": it.fix }));
        json!({
            "kind": self.kind,
            "user": self.user,
            "scopes": self.scopes,
            "expires": expires,
            "days_left": days_left,
            "repositories": repositories,
            "warnings": warnings.collect::<Value>(),
        })
    }

    /// Lines for people.
    pub(super) fn as_text(&self) -> String {
        let mut text = format!("  {}", self.kind);
        if let Some(user) = &self.user {
            text.push_str(&format!(" of {user}"));
        }
        text.push('\n');
        if let Some(scopes) = &self.scopes {
            let scopes = match scopes.is_empty() {
                true => "none".to_owned(),
                false => scopes.join(", "),
            };
            text.push_str(&format!("  scopes: {scopes}\n"));
        }
        text.push_str(&format!("  expires: {}\n", self.expiry.said()));
        if let Some(all) = &self.repositories {
            text.push_str(&format!("  repositories: {}\n", all.said()));
        }
        if let Some(unsaid) = self.unsaid {
            text.push_str(&format!("  {unsaid}\n"));
        }
        for Warning { what, fix } in &self.warnings {
            text.push_str(&format!("  warning: {what}\n    fix: {fix}\n"));
        }
        text
    }
}

impl Repositories {
    fn said(&self) -> String {
        let more = if self.has_more { " or more" } else { "" };
        match self.count {
            0 => "none".to_owned(),
            count if count > self.names.len() || self.has_more => {
                format!("{count}{more}: {}, …", self.names.join(", "))
            }
            count => format!("{count}: {}", self.names.join(", ")),
        }
    }
}

/// Days since 1970 of a date in the calendar of today.
fn days(text: &str) -> Option<i64> {
    let date = text.get(..10).filter(|date| date.is_ascii())?;
    let mut fields = date.split('-');
    let mut field = |length: usize| -> Option<i64> {
        let field = fields.next().filter(|field| field.len() == length)?;
        let is_number = field.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| field.parse().ok())?
    };
    let (year, month, day) = (field(4)?, field(2)?, field(2)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March have their odd day at the end.
    let year = if month > 2 { year } else { year - 1 };
    let month = (month + 9) % 12;
    let before = 365 * year + year / 4 - year / 100 + year / 400;
    Some(before + (153 * month + 2) / 5 + day - 1 - 719_468)
}

fn today() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(now.unwrap_or_default().as_secs() / 86400).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days() {
        for (date, day) in [
            ("1970-01-01", Some(0)),
            ("1970-03-01 00:00:00 UTC", Some(59)),
            ("2000-02-29T10:00:00Z", Some(11016)),
            ("2026-12-31", Some(20818)),
            ("2026-13-01", None),
            ("2026-1-1", None),
            ("+026-01-01", None),
            ("tomorrow!!", None),
            ("2026-01-ä", None),
            ("", None),
        ] {
            assert_eq!(days(date), day, "{date}");
        }
    }

    #[test]
    fn what_never_ends_or_lasts_long_is_told_of() {
        let day = |left| Expiry::On("2026-12-01".to_owned(), left);
        for (expiry, is_told) in [
            (Expiry::Unknown, false),
            (Expiry::Never, true),
            (day(-1), true),
            (day(0), false),
            (day(30), false),
            (day(91), true),
        ] {
            assert_eq!(expiry.warning().is_some(), is_told, "{expiry:?}");
        }
    }
}
