//! `stockade inside`: whether this process is in a session, by the kernel's word.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use crate::{args, terminal, verify};

/// Whether this process is in a session. Nothing that others can set counts: no variable, no file.
/// Outside, that takes a system call or two.
pub(crate) fn proven() -> bool {
    stockade_warden::ask_inside().is_ok()
}

pub(crate) fn inside(arguments: &args::Inside) -> Result<ExitCode> {
    let asked = stockade_warden::ask_inside();
    let verified = match &asked {
        Ok(_) if arguments.verify => Some(verify::inside()),
        _ => None,
    };
    if arguments.json {
        let mut answer = match &asked {
            Ok(inside) => json!({ "inside": true, "session": inside.session }),
            Err(why) => json!({ "inside": false, "reason": why.to_string() }),
        };
        if let (Some((_, _, checks)), Some(answer)) = (&verified, answer.as_object_mut()) {
            answer.insert("checks".to_owned(), checks.clone());
        }
        terminal::print(format_args!("{answer}\n"))?;
    } else if !arguments.quiet {
        if let Some((_, checks, _)) = &verified {
            terminal::write(checks.as_bytes())?;
        }
        match &asked {
            Ok(inside) => terminal::print(format_args!("inside session {}\n", inside.session))?,
            Err(why) => terminal::print(format_args!("not inside a session: {why}\n"))?,
        }
    }
    let failed = verified.is_some_and(|(failed, ..)| failed);
    Ok(match asked {
        Ok(_) if !failed => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
