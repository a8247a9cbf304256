//! Asks a forge, by the system's curl ([decision 31]).
//!
//! The token is in no argument and no variable: curl reads its options from standard input, an
//! anonymous file. curl is started by an absolute path, without the user's `.curlrc`, and with no
//! variables but those for proxies and certificates. It speaks https only and follows no redirect.
//! Its time and its answer are bounded. Everything that the forge says is hostile.
//!
//! [decision 31]: ../../../../docs/decisions/0031-forges-by-curl.md

use std::{
    env, io,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use stockade_config::{Token, shown};
use stockade_sys::helper::{self, Helper};

use crate::terminal::cut;

/// Where systems install curl. Never looked for in `PATH`, which may lead into a workspace.
const PLACES: &[&str] = &[
    "/usr/bin/curl",
    "/usr/local/bin/curl",
    "/bin/curl",
    "/run/current-system/sw/bin/curl",
];

/// How the caller's network is reached, and which certificates it has.
const VARIABLES: &[&str] = &[
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    "CURL_CA_BUNDLE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// For one answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer, with its head. A hundred repositories of GitHub are about 600 KiB.
const MOST: usize = 4 << 20;
/// Characters of a text of the forge's.
const LONGEST: usize = 200;

/// Asks one forge with one token.
#[derive(Debug)]
pub(super) struct Client<'a> {
    program: PathBuf,
    token: &'a Token,
}

/// What the forge answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    /// A field of the head, by its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.headers.iter();
        fields.find_map(|(field, value)| (field == name).then_some(value.as_str()))
    }

    pub(super) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

impl<'a> Client<'a> {
    /// # Errors
    /// If there is no curl.
    pub(super) fn new(token: &'a Token) -> Result<Self, String> {
        let missing = || {
            let places = PLACES.join(", ");
            format!(
                "curl is not installed (looked for {places}); install it with your package manager"
            )
        };
        let program = helper::find(PLACES).ok_or_else(missing)?;
        Ok(Self { program, token })
    }

    /// Asks for one page.
    ///
    /// # Errors
    /// If there is no answer, or none that can be understood. The reason can be printed.
    pub(super) fn get(&self, url: &str, headers: &[&str]) -> Result<Answer, String> {
        let output = self.run(&options(url, headers, self.token));
        let output = output.map_err(|error| format!("curl cannot be run: {error}"))??;
        parse(&output).ok_or_else(|| "the answer is malformed".to_owned())
    }

    /// A text of the forge's, for a terminal. One that repeats the token is not said.
    pub(super) fn said(&self, text: &str) -> String {
        match text.contains(self.token.reveal()) {
            true => "(hidden)".to_owned(),
            false => cut(&shown(text), LONGEST),
        }
    }

    fn run(&self, options: &str) -> io::Result<Result<Vec<u8>, String>> {
        let variables = VARIABLES.iter();
        let variables = variables.filter_map(|name| Some((name, env::var_os(name)?)));
        let mut command = Command::new(&self.program);
        command
            // The first argument, or it does not count: no file of the user's.
            .args(["-q", "--config", "-"])
            .env_clear()
            .envs(variables)
            .env("LC_ALL", "C")
            .current_dir("/")
            .stdin(helper::input(options.as_bytes())?)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut curl = Helper::start(&mut command)?;
        // curl itself gives up first, and says why.
        let Some(output) = curl.output(PATIENCE + Duration::from_secs(1), MOST)? else {
            return Ok(Err(format!(
                "no answer, or one that is too long, within {} seconds",
                PATIENCE.as_secs()
            )));
        };
        if curl.succeeded()? {
            return Ok(Ok(output));
        }
        let message = curl.complaint();
        let line = message.lines().next().unwrap_or("curl failed");
        Ok(Err(self.said(line)))
    }
}

/// In the form of curl's own files. A token has nothing that needs quotes, and no URL here does.
fn options(url: &str, headers: &[&str], token: &Token) -> String {
    let token = token.reveal();
    let patience = PATIENCE.as_secs();
    let headers: String = headers
        .iter()
        .map(|header| format!("header = \"{header}\"\n"))
        .collect();
    format!(
        "url = \"{url}\"\n\
         header = \"Authorization: Bearer {token}\"\n\
         {headers}\
         user-agent = \"stockade\"\n\
         proto = \"=https\"\n\
         max-redirs = 0\n\
         max-time = {patience}\n\
         max-filesize = {MOST}\n\
         suppress-connect-headers\n\
         globoff\n\
         include\n\
         silent\n\
         show-error\n"
    )
}

/// Head and body of the final answer.
fn parse(output: &[u8]) -> Option<Answer> {
    const END: &[u8] = b"\r\n\r\n";
    let mut rest = output;
    loop {
        let end = rest.windows(END.len()).position(|part| part == END)?;
        let head = String::from_utf8_lossy(rest.get(..end)?).into_owned();
        rest = rest.get(end + END.len()..)?;
        let mut lines = head.split("\r\n");
        let first = lines.next()?.strip_prefix("HTTP/")?;
        let status: u16 = first.split(' ').nth(1)?.parse().ok()?;
        // Others come before the final one.
        if status >= 200 {
            let fields = lines.filter_map(|line| line.split_once(':'));
            let fields =
                fields.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
            return Some(Answer {
                status,
                headers: fields.collect(),
                body: rest.to_vec(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_final_answer_counts() {
        let text = "HTTP/1.1 103 Early Hints\r\nX-OAuth-Scopes: admin\r\n\r\n\
                    HTTP/2 200 \r\nX-OAuth-Scopes: repo, gist\r\nodd\r\n\r\n{\"a\": 1}\r\n\r\n";
        let answer = parse(text.as_bytes()).unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-oauth-scopes"), Some("repo, gist"));
        assert_eq!(answer.json().unwrap()["a"], 1);
    }

    #[test]
    fn no_part_of_an_answer_is_one_by_mistake() {
        let text = "HTTP/1.1 200 OK\r\nA: b\r\n\r\n";
        assert!(parse(text.as_bytes()).is_some());
        for end in 0..text.len() {
            assert!(parse(&text.as_bytes()[..end]).is_none(), "{end}");
        }
        for text in [
            "HTTP/1.1 abc\r\n\r\n",
            "SSH-2.0\r\n\r\n",
            "HTTP/1.1 99999 x\r\n\r\n",
        ] {
            assert!(parse(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn nothing_of_the_forges_is_said_that_has_the_token_or_moves_the_cursor() {
        let token = Token::parse("ghp_decoydecoy").unwrap();
        let client = Client {
            program: PathBuf::new(),
            token: &token,
        };
        assert_eq!(client.said("your ghp_decoydecoy is bad"), "(hidden)");
        assert!(
            !client
                .said("\x1b[2J\u{202e}x")
                .contains(['\x1b', '\u{202e}'])
        );
        assert!(client.said(&"x".repeat(9999)).chars().count() <= LONGEST);
    }
}
