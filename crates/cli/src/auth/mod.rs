//! `stockade auth`: logins for forges that only sandboxed sessions use.
//!
//! The token comes from a hidden prompt or from standard input. It goes to a file that only the user
//! can read, to the forge itself, and into sessions that are given the forge. It is never printed.

mod curl;
mod findings;
mod github;
mod gitlab;
mod prompt;

use std::{
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use anyhow::Result;
use serde_json::{Value, json};
use stockade_config::{
    Diagnostic, Diagnostics, ForgeKind, HostName, Login, Logins, Places, Token, host_option,
    shown_path,
};

use self::{
    curl::{Answer, Client},
    findings::{Failure, Outcome},
};
use crate::{args, context, exit::refused, terminal};

/// The scopes that are said of a token.
const MOST_SCOPES: usize = 50;

pub(crate) fn auth(command: &args::Auth) -> Result<ExitCode> {
    let places = context::loader_here()?.places;
    let logins = Logins::new(&places);
    match command {
        args::Auth::Github(at) => log_in(&places, ForgeKind::Github, at.host.as_deref()),
        args::Auth::Gitlab(at) => log_in(&places, ForgeKind::Gitlab, at.host.as_deref()),
        args::Auth::Status { json } => status(&logins, *json),
        args::Auth::Remove { forge, at } => remove(&logins, (*forge).into(), at.host.as_deref()),
    }
}

fn log_in(places: &Places, forge: ForgeKind, host: Option<&str>) -> Result<ExitCode> {
    let logins = &Logins::new(places);
    let is_named = host.is_some();
    let host = parse_host(forge, host)?;
    check_other(logins, forge, &host)?;
    let (page, smallest) = smallest(forge, &host);
    if io::stdin().is_terminal() {
        tell!("The smallest token for a session is {smallest}:\n  {page}");
    }
    let token = prompt::token(&format!("Token for {host} (it is not shown): "), &page)?;
    check_form(forge, &token)?;
    let outcome = ask(forge, &host, &token);
    if let Err(Failure::Refused(why)) = &outcome {
        return Err(refused(
            format!("{host} refuses this token: {why}. Nothing was stored"),
            format!("make {smallest}: {page}"),
        ));
    }
    if let Err(Failure::NotForge(why)) = &outcome {
        let name = forge.name();
        let fix = match is_named {
            true => "check --host",
            false => "check your network and its proxy, then try again",
        };
        return Err(refused(
            format!("{host} does not answer like {name} ({why}); nothing was stored"),
            fix,
        ));
    }
    let user = outcome
        .as_ref()
        .ok()
        .and_then(|findings| findings.user.clone());
    let login = Login {
        forge,
        host: host.clone(),
        token,
        user,
    };
    logins.store(&login).map_err(Diagnostics::from)?;
    let file = shown_path(&logins.file(forge, &host));
    terminal::print(format_args!(
        "Stored the login for {host}, for sandboxed sessions only, in {file}\n"
    ))?;
    terminal::write(outcome_as_text(&outcome, forge, &host).as_bytes())?;
    if outcome.is_err() {
        let later = "  The token is stored. Check it later with `stockade auth status`.\n";
        terminal::write(later.as_bytes())?;
    }
    let (option, key) = match host.to_string() == forge.usual_host() {
        true => (String::new(), String::new()),
        false => (
            format!(" --forge-host {host}"),
            format!(" and `hosts = [\"{host}\"]`"),
        ),
    };
    let word = forge.word();
    let configuration = shown_path(&places.user_file());
    terminal::print(format_args!(
        "Sessions get it with --{word}{option}, or with `{word} = true`{key} in [forge] of \
         {configuration}.\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn status(logins: &Logins, is_json: bool) -> Result<ExitCode> {
    let mut all = Vec::new();
    for (forge, host) in logins.hosts().map_err(Diagnostics::from)? {
        let outcome = match logins.read(forge, &host) {
            Ok(Some(login)) => ask(forge, &host, &login.token),
            // It was removed just now.
            Ok(None) => continue,
            Err(damage) => Err(Failure::Refused(told(damage))),
        };
        all.push((forge, host, outcome));
    }
    if is_json {
        let all: Vec<_> = all.iter().map(outcome_as_json).collect();
        terminal::print(format_args!("{:#}\n", json!(all)))?;
    } else if all.is_empty() {
        terminal::write(b"No logins are stored. To store one: stockade auth github\n")?;
    } else {
        for (forge, host, outcome) in &all {
            let text = outcome_as_text(outcome, *forge, host);
            terminal::print(format_args!("{host} ({})\n{text}", forge.name()))?;
        }
    }
    let is_refused = all
        .iter()
        .any(|(.., it)| matches!(it, Err(Failure::Refused(_))));
    Ok(ExitCode::from(u8::from(is_refused)))
}

fn remove(logins: &Logins, forge: ForgeKind, host: Option<&str>) -> Result<ExitCode> {
    let host = parse_host(forge, host)?;
    // The page to revoke it depends on its kind. A damaged one can be removed all the same.
    let login = logins.read(forge, &host).ok().flatten();
    if !logins.remove(forge, &host).map_err(Diagnostics::from)? {
        return Err(refused(
            format!("no login of {} is stored for {host}", forge.name()),
            "`stockade auth status` lists them",
        ));
    }
    let page = match forge {
        ForgeKind::Github => github::revoke(&host.to_string(), login.as_ref().map(|it| &it.token)),
        ForgeKind::Gitlab => gitlab::revoke(&host.to_string()),
    };
    terminal::print(format_args!(
        "Removed the login for {host}. The token itself stays valid until you revoke it: {page}\n\
         Sessions that run now still have it.\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The host that is meant. What was typed may be a token, so it is not repeated.
fn parse_host(forge: ForgeKind, host: Option<&str>) -> Result<HostName> {
    let text = host.unwrap_or(forge.usual_host());
    let host = HostName::parse(text).map_err(|why| {
        let fix = "write the name alone, such as --host git.example.org";
        refused(
            format!("the value of --host is not a host name: {why}"),
            fix,
        )
    })?;
    let others = ForgeKind::ALL.into_iter().filter(|other| *other != forge);
    for other in others {
        if host.to_string() == other.usual_host() {
            let fix = format!("stockade auth {}", other.word());
            return Err(refused(format!("{host} is {}'s host", other.name()), fix));
        }
    }
    Ok(host)
}

/// A host belongs to one forge, or git would not know which login to use.
fn check_other(logins: &Logins, forge: ForgeKind, host: &HostName) -> Result<()> {
    let mut others = ForgeKind::ALL.into_iter().filter(|other| *other != forge);
    match others.find(|other| logins.file(*other, host).exists()) {
        Some(other) => Err(refused(
            format!("{host} has a login already, of {}", other.name()),
            format!(
                "stockade auth remove {}{}",
                other.word(),
                host_option(other, host)
            ),
        )),
        None => Ok(()),
    }
}

/// Refuses what cannot be used alone, or is for the other forge.
fn check_form(forge: ForgeKind, token: &Token) -> Result<()> {
    let begins = |marks: &[&str]| marks.iter().any(|mark| token.reveal().starts_with(mark));
    let github = begins(&["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"]);
    let gitlab = begins(&["glpat-", "gldt-", "glptt-", "glrt-", "glcbt-"]);
    let (is_others, other) = match forge {
        ForgeKind::Github => (gitlab, ForgeKind::Gitlab),
        ForgeKind::Gitlab => (github, ForgeKind::Github),
    };
    if is_others {
        let what = format!("this is a token of {}. It was sent nowhere", other.name());
        return Err(refused(what, format!("stockade auth {}", other.word())));
    }
    if begins(&["gldt-", "ghr_", "glrt-", "glptt-"]) {
        let what = "this kind of token does not work alone for git: it is a deploy, refresh, runner \
                    or trigger token";
        return Err(refused(what, "make a personal or project access token"));
    }
    Ok(())
}

fn smallest(forge: ForgeKind, host: &HostName) -> (String, &'static str) {
    match forge {
        ForgeKind::Github => github::smallest(&host.to_string()),
        ForgeKind::Gitlab => gitlab::smallest(&host.to_string()),
    }
}

fn ask(forge: ForgeKind, host: &HostName, token: &Token) -> Outcome {
    let client = Client::new(token).map_err(Failure::Unknown)?;
    let host = host.to_string();
    match forge {
        ForgeKind::Github => github::ask(&host, token.reveal(), &client),
        ForgeKind::Gitlab => gitlab::ask(&host, &client),
    }
}

/// The host that is asked about a token.
fn asked(forge: ForgeKind, host: &HostName) -> String {
    let host = host.to_string();
    match forge {
        ForgeKind::Github => github::asked(&host),
        ForgeKind::Gitlab => host,
    }
}

/// The object of a first answer, or what to think of another one.
fn read(answer: &Answer, host: &str, client: &Client<'_>) -> Result<Value, Failure> {
    let json = answer.json().filter(Value::is_object);
    let message = || {
        let json = json.as_ref()?;
        let text = json
            .get("message")
            .or_else(|| json.get("error_description"))?;
        Some(format!(" ({})", client.said(text.as_str()?)))
    };
    let message = || message().unwrap_or_default();
    match answer.status {
        200 => json.ok_or_else(|| Failure::NotForge("it did not answer with JSON".to_owned())),
        404 if json.is_none() => Err(Failure::NotForge("HTTP 404 without JSON".to_owned())),
        401 => Err(Failure::Refused(format!("HTTP 401{}", message()))),
        status @ 300..=399 => Err(Failure::NotForge(format!(
            "it redirects with HTTP {status}; the token was not sent there"
        ))),
        status => Err(Failure::Unknown(format!(
            "{host} answers HTTP {status}{}",
            message()
        ))),
    }
}

fn outcome_as_text(outcome: &Outcome, forge: ForgeKind, host: &HostName) -> String {
    match outcome {
        Ok(findings) => {
            let mut text = findings.as_text();
            if !findings.warnings.is_empty() {
                let (page, smallest) = smallest(forge, host);
                text.push_str(&format!("  smallest: {smallest}:\n    {page}\n"));
            }
            text
        }
        Err(Failure::Refused(why)) => format!("  refused: {why}\n"),
        Err(Failure::Unknown(why) | Failure::NotForge(why)) => format!(
            "  warning: could not ask {} what this token can do ({why})\n",
            asked(forge, host)
        ),
    }
}

fn outcome_as_json((forge, host, outcome): &(ForgeKind, HostName, Outcome)) -> Value {
    let (state, why, findings) = match outcome {
        Ok(findings) => ("valid", None, Some(findings.as_json())),
        Err(Failure::Refused(why)) => ("refused", Some(why), None),
        Err(Failure::Unknown(why) | Failure::NotForge(why)) => ("unchecked", Some(why), None),
    };
    json!({
        "forge": forge.word(),
        "host": host.to_string(),
        "state": state,
        "reason": why,
        "token": findings,
    })
}

fn told(damage: Diagnostic) -> String {
    let text = Diagnostics::from(damage).to_string();
    terminal::shown_lines(&text).replace('\n', " ")
}
