//! `stockade inside`: whether this process is in a session, by the kernel's word.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use crate::{args, terminal};

/// Whether this process is in a session. Nothing that others can set counts: no variable, no file.
/// Outside, that takes a system call or two.
pub(crate) fn proven() -> bool {
    stockade_warden::ask_inside().is_ok()
}

pub(crate) fn inside(arguments: &args::Inside) -> Result<ExitCode> {
    let asked = stockade_warden::ask_inside();
    if arguments.json {
        let answer = match &asked {
            Ok(inside) => json!({ "inside": true, "session": inside.session }),
            Err(why) => json!({ "inside": false, "reason": why.to_string() }),
        };
        terminal::print(format_args!("{answer}\n"))?;
    } else if !arguments.quiet {
        match &asked {
            Ok(inside) => terminal::print(format_args!("inside session {}\n", inside.session))?,
            Err(why) => terminal::print(format_args!("not inside a session: {why}\n"))?,
        }
    }
    Ok(match asked {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}
