//! `stockade denials`: what was denied, and what the user would have to type. Inside a session it
//! asks the session; a model that reads the answer should tell the user, and try nothing else.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use serde_json::{Value, json};
use stockade_config::shown;
use stockade_warden::{DenialInside, DenialsInside, ask_denials};

use crate::{args, inside, log, terminal};

/// What a program inside is to make of a denial.
const ADVICE: &str = "Denied by the user's policy. Do not work around it: try no other host, proxy or tunnel. Tell the \
     user what you need and why, and ask the user to run the command below, outside of this session.";
/// The same where there is no such command.
const ADVICE_ONLY: &str = "Denied by the user's policy. Do not work around it: try no other host, proxy or tunnel. Tell the \
     user what you need and why.";

pub(crate) fn advice(has_command: bool) -> &'static str {
    match has_command {
        true => ADVICE,
        false => ADVICE_ONLY,
    }
}

pub(crate) fn denials(arguments: &args::Denials) -> Result<ExitCode> {
    if !inside::proven() {
        return log::log(&args::Log {
            session: arguments.session.clone(),
            denied: true,
            follow: false,
            list: false,
            json: arguments.json,
        });
    }
    if arguments.session.is_some() {
        return Err(crate::exit::refused(
            "inside a session, only its own denials can be listed",
            "leave the session out",
        ));
    }
    let denials = ask_denials().map_err(|error| anyhow!("{error}"))?;
    if arguments.json {
        terminal::print(format_args!("{:#}\n", as_json(&denials)))?;
    } else {
        terminal::write(as_text(&denials).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the user would have to type to allow this.
pub(crate) fn command(fix: &str, near: bool) -> String {
    let near = if near { "--near " } else { "" };
    format!("stockade allow {near}{}", word(&shown(fix)))
}

/// A wildcard would be the shell's.
fn word(rule: &str) -> String {
    match rule.contains(['*', '[']) {
        true => format!("'{rule}'"),
        false => rule.to_owned(),
    }
}

fn as_json(denials: &DenialsInside) -> Value {
    let denial = |denial: &DenialInside| {
        let mut value = json!(denial);
        value["ask_user_to_run"] = denial
            .fix
            .as_deref()
            .map(|fix| command(fix, denial.near))
            .into();
        value
    };
    json!({
        "advice": advice(denials.denials.iter().any(|denial| denial.fix.is_some())),
        "denials": denials.denials.iter().map(denial).collect::<Vec<_>>(),
        "others": denials.others,
        "noted": denials.noted,
    })
}

fn as_text(denials: &DenialsInside) -> String {
    if !denials.noted {
        return "denials of this session are not noted, because it has no log\n".to_owned();
    }
    if denials.denials.is_empty() {
        return "nothing was denied in this session\n".to_owned();
    }
    let advice = advice(denials.denials.iter().any(|denial| denial.fix.is_some()));
    let mut text = format!("{advice}\n");
    for denial in &denials.denials {
        let times = match denial.count {
            1 => String::new(),
            count => format!(" ({count} times)"),
        };
        let (what, why) = (shown(&denial.what), shown(&denial.text));
        text += &format!("\ndenied: {what}{times}\n  why: {why}\n");
        text += &match &denial.fix {
            Some(fix) => format!("  ask the user to run: {}\n", command(fix, denial.near)),
            None => "  no rule should allow this; tell the user if you need it\n".to_owned(),
        };
    }
    if denials.others > 0 {
        let attempts = terminal::counted(denials.others, "attempt");
        text += &format!("\nand {attempts} before, which are not listed\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denial(what: &str, fix: Option<&str>) -> DenialInside {
        DenialInside {
            kind: "flow".to_owned(),
            what: what.to_owned(),
            count: 2,
            last: "2026-01-02T03:04:05.678Z".to_owned(),
            reason: "special-address".to_owned(),
            text: "10.0.0.5 is private".to_owned(),
            fix: fix.map(str::to_owned),
            near: false,
        }
    }

    #[test]
    fn a_denial_says_what_the_user_would_have_to_type() {
        let denials = DenialsInside {
            denials: vec![
                denial("tcp://10.0.0.5:80", Some("tcp://10.0.0.5:80")),
                denial("tcp://[fd00::5]:80", Some("tcp://[fd00::5]:80")),
                denial("tcp://169.254.169.254:80", None),
            ],
            others: 3,
            noted: true,
        };
        let text = as_text(&denials);
        assert!(text.starts_with("Denied by the user's policy. Do not work around it"));
        assert!(text.contains("denied: tcp://10.0.0.5:80 (2 times)\n  why: 10.0.0.5 is private\n"));
        assert!(text.contains("  ask the user to run: stockade allow tcp://10.0.0.5:80\n"));
        assert!(text.contains("run: stockade allow 'tcp://[fd00::5]:80'\n"));
        assert!(!text.contains("stockade allow tcp://169"));
        assert!(text.ends_with("and 3 attempts before, which are not listed\n"));
        let json = as_json(&denials);
        let run = &json["denials"][0]["ask_user_to_run"];
        assert_eq!(run, "stockade allow tcp://10.0.0.5:80");
        assert!(json["denials"][2]["ask_user_to_run"].is_null());
    }
}
