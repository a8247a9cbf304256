//! What GitLab says of a token. Tokens of projects and groups are personal tokens of a bot, whose
//! name says so.

use serde_json::Value;
use stockade_config::is_user;

use super::{
    curl::Client,
    findings::{Expiry, Failure, Findings, MOST_NAMES, Outcome, Repositories, warning},
};

const PERSONAL: &str = "personal access token";
const PROJECT: &str = "project access token";
const GROUP: &str = "group access token";

/// The page that makes the smallest token for a session.
pub(super) fn smallest(host: &str) -> (String, &'static str) {
    (
        format!("https://{host}/GROUP/PROJECT/-/settings/access_tokens"),
        "a project access token: role Developer, scopes read_repository and write_repository, 7 to \
         30 days",
    )
}

/// The page where tokens are revoked.
pub(super) fn revoke(host: &str) -> String {
    format!("https://{host}/-/user_settings/personal_access_tokens")
}

pub(super) fn ask(host: &str, client: &Client<'_>) -> Outcome {
    let api = format!("https://{host}/api/v4");
    let own = format!("{api}/personal_access_tokens/self");
    let answer = client.get(&own, &[]).map_err(Failure::Unknown)?;
    let token = super::read(&answer, host, client)?;
    let Some(Value::Array(scopes)) = token.get("scopes") else {
        let why = "its answer names no scopes".to_owned();
        return Err(Failure::NotForge(why));
    };
    let is_off = |key: &str, value: bool| token.get(key).and_then(Value::as_bool) == Some(value);
    if is_off("revoked", true) || is_off("active", false) {
        let why = "it is revoked or has expired".to_owned();
        return Err(Failure::Refused(why));
    }
    let scopes = scopes.iter().filter_map(Value::as_str);
    let scopes = scopes
        .take(super::MOST_SCOPES)
        .map(|scope| client.said(scope));
    let mut findings = Findings {
        kind: "access token",
        scopes: Some(scopes.collect()),
        expiry: match token.get("expires_at") {
            Some(Value::Null) => Expiry::Never,
            Some(Value::String(date)) => Expiry::parse(date),
            _ => Expiry::Unknown,
        },
        ..Findings::default()
    };
    // A token that cannot use the API may not ask this.
    if let Some(user) = ask_more(&format!("{api}/user"), client)
        && let Some(name) = user.get("username").and_then(Value::as_str)
    {
        findings.kind = kind(name);
        findings.user = is_user(name).then(|| client.said(name));
    }
    if let Some(all) = ask_more(&format!("{own}/associations"), client) {
        findings.repositories = projects(&all, client);
    }
    judge(&mut findings);
    Ok(findings)
}

/// What not every token may ask, and not every version answers.
fn ask_more(url: &str, client: &Client<'_>) -> Option<Value> {
    let answer = client.get(url, &[]).ok()?;
    (answer.status == 200).then(|| answer.json())?
}

fn kind(user: &str) -> &'static str {
    let is_bot_of = |what: &str| {
        let rest = user
            .strip_prefix(what)
            .and_then(|rest| rest.strip_prefix('_'));
        rest.is_some_and(|rest| rest.contains("_bot"))
    };
    match user {
        _ if is_bot_of("project") => PROJECT,
        _ if is_bot_of("group") => GROUP,
        _ => PERSONAL,
    }
}

fn projects(all: &Value, client: &Client<'_>) -> Option<Repositories> {
    let projects = all.get("projects")?.as_array()?;
    let path = |it: &Value| {
        it.get("path_with_namespace")?
            .as_str()
            .map(|path| client.said(path))
    };
    let names: Vec<_> = projects.iter().filter_map(path).collect();
    Some(Repositories {
        count: names.len(),
        names: names.into_iter().take(MOST_NAMES).collect(),
        // A page of the API has twenty.
        has_more: projects.len() >= 20,
    })
}

fn judge(findings: &mut Findings) {
    let warnings = &mut findings.warnings;
    for scope in findings.scopes.iter().flatten() {
        let found = match scope.as_str() {
            "api" => Some(warning(
                "`api` can do everything that its owner can: code, settings, members, pipelines",
                "make one with read_repository and write_repository",
            )),
            "sudo" | "admin_mode" => Some(warning(
                format!("`{scope}` acts as an administrator"),
                format!("make one without `{scope}`"),
            )),
            "create_runner" | "manage_runner" | "k8s_proxy" => Some(warning(
                format!("`{scope}` reaches machines that run pipelines or services"),
                format!("make one without `{scope}`"),
            )),
            _ => None,
        };
        warnings.extend(found);
    }
    if findings.kind == PERSONAL || findings.kind == GROUP {
        warnings.push(warning(
            format!("a {} reaches every project of its owner", findings.kind),
            "make a project access token, for the one project",
        ));
    }
    warnings.extend(findings.expiry.warning());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bots_say_whose_token_it_is() {
        assert_eq!(kind("project_17_bot_4f5e"), PROJECT);
        assert_eq!(kind("project_17_bot"), PROJECT);
        assert_eq!(kind("group_9_bot_4f5e"), GROUP);
        assert_eq!(kind("ada"), PERSONAL);
        assert_eq!(kind("projector"), PERSONAL);
    }

    #[test]
    fn wide_tokens_are_told_of_and_narrow_ones_are_not() {
        let told = |kind, scopes: &[&str]| {
            let mut findings = Findings {
                kind,
                scopes: Some(scopes.iter().map(|scope| (*scope).to_owned()).collect()),
                ..Findings::default()
            };
            judge(&mut findings);
            findings.warnings.len()
        };
        assert_eq!(told(PROJECT, &["read_repository", "write_repository"]), 0);
        assert_eq!(told(PROJECT, &["api"]), 1);
        assert_eq!(told(PERSONAL, &["api", "sudo"]), 3);
    }
}
