//! What GitHub says of a token.
//!
//! Classic tokens and those of apps have scopes, which are in the head of every answer. GitHub tells
//! the permissions of a fine-grained token to nobody but the organisation that approved it; only the
//! repositories that it sees can be asked for.

use serde_json::Value;
use stockade_config::{Token, is_user};

use super::{
    curl::Client,
    findings::{Expiry, Failure, Findings, MOST_NAMES, Outcome, Repositories, warning},
};

const HEADERS: &[&str] = &[
    "Accept: application/vnd.github+json",
    "X-GitHub-Api-Version: 2022-11-28",
];

const PAGE: usize = 100;

/// Where the API of a host is.
fn api(host: &str) -> String {
    match host {
        "github.com" => "https://api.github.com".to_owned(),
        // Enterprise Cloud with its data in one region.
        host if host.ends_with(".ghe.com") => format!("https://api.{host}"),
        host => format!("https://{host}/api/v3"),
    }
}

/// The page that makes the smallest token for a session.
pub(super) fn smallest(host: &str) -> (String, &'static str) {
    let page = "settings/personal-access-tokens/new?name=stockade&expires_in=30&contents=write";
    (
        format!("https://{host}/{page}"),
        "a fine-grained token: only select one repository, Contents: read and write, 7 to 30 days",
    )
}

/// The page where tokens are revoked.
pub(super) fn revoke(host: &str, token: Option<&Token>) -> String {
    let is_fine = token.is_some_and(|token| is_fine_grained(token.reveal()));
    let page = if is_fine {
        "personal-access-tokens"
    } else {
        "tokens"
    };
    format!("https://{host}/settings/{page}")
}

fn is_fine_grained(token: &str) -> bool {
    token.starts_with("github_pat_")
}

/// The host of a host's API.
pub(super) fn asked(host: &str) -> String {
    let api = api(host);
    let name = api.trim_start_matches("https://").split('/').next();
    name.unwrap_or(host).to_owned()
}

pub(super) fn ask(host: &str, token: &str, client: &Client<'_>) -> Outcome {
    let api = api(host);
    let answer = client
        .get(&format!("{api}/user"), HEADERS)
        .map_err(Failure::Unknown)?;
    let user = super::read(&answer, host, client)?;
    let Some(name) = user.get("login").and_then(Value::as_str) else {
        let why = "its answer names no user".to_owned();
        return Err(Failure::NotForge(why));
    };
    let scopes = answer.header("x-oauth-scopes").map(|text| {
        let scopes = text.split(',').map(str::trim);
        let scopes = scopes
            .filter(|scope| !scope.is_empty())
            .take(super::MOST_SCOPES);
        scopes.map(|scope| client.said(scope)).collect::<Vec<_>>()
    });
    let expiry = match answer.header("github-authentication-token-expiration") {
        Some(date) => Expiry::parse(date),
        // App tokens end by themselves, without a word.
        None if token.starts_with("ghu_") || token.starts_with("ghs_") => Expiry::Unknown,
        None => Expiry::Never,
    };
    let is_fine = is_fine_grained(token);
    let mut findings = Findings {
        kind: kind(token),
        user: is_user(name).then(|| client.said(name)),
        scopes: scopes.filter(|_| !is_fine),
        expiry,
        ..Findings::default()
    };
    if is_fine {
        findings.unsaid = Some("permissions: GitHub does not say those of a fine-grained token");
        repositories(&api, client, &mut findings);
    }
    judge(&mut findings);
    Ok(findings)
}

fn kind(token: &str) -> &'static str {
    match token {
        token if is_fine_grained(token) => "fine-grained personal access token",
        token if token.starts_with("gho_") => "OAuth token",
        token if token.starts_with("ghu_") => "user token of an app",
        token if token.starts_with("ghs_") => "installation token of an app",
        _ => "classic personal access token",
    }
}

/// The repositories that a fine-grained token sees. GitHub may list public ones that were not
/// selected, so only private ones say how far it reaches.
fn repositories(api: &str, client: &Client<'_>, findings: &mut Findings) {
    let url = format!("{api}/user/repos?per_page={PAGE}");
    let answer = client.get(&url, HEADERS).ok();
    let Some(answer) = answer.filter(|answer| answer.status == 200) else {
        return;
    };
    let Some(Value::Array(all)) = answer.json() else {
        return;
    };
    let is_private = |it: &&Value| it.get("private").and_then(Value::as_bool) == Some(true);
    let private = all.iter().filter(is_private);
    let public = all.iter().filter(|it| !is_private(it));
    let named = |it: &Value| it.get("full_name")?.as_str().map(|name| client.said(name));
    let count_of_private = private.clone().count();
    let names: Vec<_> = private.chain(public).filter_map(named).collect();
    let link = answer.header("link").unwrap_or_default();
    let has_more = link.contains("rel=\"next\"");
    if count_of_private > 1 {
        let more = if has_more { "at least " } else { "" };
        findings.warnings.push(warning(
            format!("it reaches {more}{count_of_private} private repositories"),
            "select only the repository that the session works on",
        ));
    }
    findings.repositories = Some(Repositories {
        count: names.len(),
        names: names.into_iter().take(MOST_NAMES).collect(),
        has_more,
    });
}

fn judge(findings: &mut Findings) {
    let warnings = &mut findings.warnings;
    for scope in findings.scopes.iter().flatten() {
        let found = match scope.as_str() {
            "repo" => Some(warning(
                "`repo` can read and push to every repository that you can, of all organisations",
                "make a fine-grained token for one repository, with Contents: read and write",
            )),
            "public_repo" => Some(warning(
                "`public_repo` can push to every public repository that you can",
                "make a fine-grained token for one repository, with Contents: read and write",
            )),
            "workflow" => Some(warning(
                "`workflow` can change GitHub Actions, which run with the repository's secrets",
                "make one without `workflow`, unless the session has to edit workflows",
            )),
            scope if is_administrative(scope) => Some(warning(
                format!("`{scope}` is for administration, not for pushing code"),
                format!("make one without `{scope}`"),
            )),
            _ => None,
        };
        warnings.extend(found);
    }
    warnings.extend(findings.expiry.warning());
}

fn is_administrative(scope: &str) -> bool {
    const OTHERS: &[&str] = &["delete_repo", "site_admin", "user", "write:org"];
    let prefixes = ["admin:", "delete:", "manage_"];
    prefixes.iter().any(|prefix| scope.starts_with(prefix)) || OTHERS.contains(&scope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_its_api() {
        assert_eq!(api("github.com"), "https://api.github.com");
        assert_eq!(api("acme.ghe.com"), "https://api.acme.ghe.com");
        assert_eq!(api("git.example.org"), "https://git.example.org/api/v3");
    }

    #[test]
    fn wide_scopes_are_told_of_and_narrow_ones_are_not() {
        let told = |scopes: &[&str]| {
            let mut findings = Findings {
                scopes: Some(scopes.iter().map(|scope| (*scope).to_owned()).collect()),
                ..Findings::default()
            };
            judge(&mut findings);
            findings.warnings.len()
        };
        assert_eq!(told(&["read:org", "gist", "read:user"]), 0);
        let wide = [
            "repo",
            "workflow",
            "admin:org",
            "delete_repo",
            "public_repo",
        ];
        assert_eq!(told(&wide), wide.len());
    }
}
