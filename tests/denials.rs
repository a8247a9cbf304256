//! From a denial to a rule that works, with nothing to read but what was printed:
//! docs/denials.md.
//!
//! A person (`reader`) types a command that is denied something, reads the receipt, and does
//! literally what it says: first with the flag, then in the file. What it says is taken from
//! the printed text and from nowhere else, so a receipt that does not lead to a working
//! command fails here. Each case is a section of the document, between markers; the tests
//! fail if one is not what was printed. `cargo xtask denials --write` writes them anew.

mod reader;
pub(crate) mod transcript;

use std::fs;

use stockade_world::{Site, Standard, World, test};

use reader::Receipt;
use transcript::Transcript;

use crate::support::{Document, standard};

const DOCUMENT: Document = Document {
    text: include_str!("../docs/denials.md"),
    task: "denials",
    print: "STOCKADE_PRINT_DENIALS",
};

#[test]
fn a_device_is_reached_by_what_its_denial_says() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let file = world.laptop().home().join(".config/stockade/config.toml");
        fs::remove_file(file).expect("a file less");
        let mut transcript = Transcript::of(world);
        transcript.says("A device of the laboratory, at an address of the local network.");
        let line = ["", "curl -sS http://192.168.10.21/"];
        fixed_by_flag_and_file(&mut transcript, line, "hello from device\n");
        compare("device", &transcript);
    });
}

#[test]
fn a_host_is_reached_by_what_the_denial_of_its_name_says() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let text = project_file(
            world,
            "[network]\ninternet = false\nallow = [\"www.example.com\"]\n",
        );
        let mut transcript = Transcript::of(world);
        transcript.says("A host, by its name, in a project whose file closes the internet:");
        transcript.shows("toml", &text);
        let line = ["", "curl -sS http://mirror.example.org/"];
        let denied = transcript.types(&run(line));
        assert!(denied.contains("denied the name"), "{denied}");

        transcript.says("The programs inside can say why, too. To DNS it is an extended error:");
        let dig = transcript.types("stockade run -q -- dig mirror.example.org | grep EDE");
        assert!(dig.contains("to allow: \"mirror.example.org\""), "{dig}");
        transcript
            .says("and a request under a name that the server was not looked up for is answered:");
        let forbidden = transcript.types(
            "stockade run -q -- curl -4 -sS -H 'Host: mirror.example.org' http://www.example.com/",
        );
        assert!(forbidden.starts_with("Stockade: denied: "), "{forbidden}");

        transcript.says("The flag that the receipt names:");
        let receipt = Receipt::read(&denied);
        let flagged = transcript.types(&run([&receipt.flag, line[1]]));
        assert_eq!(flagged, "hello from mirror\n");
        for_good(&mut transcript, &receipt, line, "hello from mirror\n");
        compare("name", &transcript);
    });
}

#[test]
fn a_request_under_another_name_is_answered_by_what_its_denial_says() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let mut transcript = Transcript::of(world);
        let options = "--internet=false --allow www.example.com";
        let line = [
            options,
            "curl -4 -sS -H 'Host: mirror.example.org' http://www.example.com/",
        ];
        let denied = transcript.types(&run(line));
        // The name, which is allowed by its own address, and not that of another.
        let flag = "--allow tcp://mirror.example.org:80";
        let proposed = format!("to allow it: {flag} (WARNING: suspicious");
        assert!(denied.contains(&proposed), "{denied}");
        let options = format!("{options} {flag}");
        let by_name = "curl -4 -sS http://mirror.example.org/";
        let flagged = transcript.types(&run([&options, by_name]));
        assert_eq!(flagged, "hello from mirror\n");
        let again = transcript.types(&run([&options, line[1]]));
        assert!(again.contains("under other names"), "{again}");
        assert!(!again.contains("to allow it"), "{again}");
    });
}

#[test]
fn a_database_is_reached_by_what_the_denial_at_localhost_says() {
    test(&standard(), |world| {
        let welcome = Site::text("{\"couchdb\":\"Welcome\"}\n");
        let _database = world
            .laptop()
            .http("127.0.0.1:5984", welcome)
            .expect("listen");
        let mut transcript = Transcript::of(world);
        transcript.says(
            "A database that listens on the loopback of this machine. The loopback inside is another \
             one; a program there is refused as by any port that nobody listens at, and learns nothing \
             else. What is printed is for you.",
        );
        let line = ["", "curl -sS http://127.0.0.1:5984/"];
        fixed_by_flag_and_file(&mut transcript, line, "{\"couchdb\":\"Welcome\"}\n");
        compare("localhost", &transcript);
    });
}

/// The way from the command that fails to the same command that works, twice.
fn fixed_by_flag_and_file(transcript: &mut Transcript<'_>, line: [&str; 2], wanted: &str) {
    let receipt = Receipt::read(&transcript.types(&run(line)));
    transcript.says("The flag that it names:");
    assert_eq!(transcript.types(&run([&receipt.flag, line[1]])), wanted);
    for_good(transcript, &receipt, line, wanted);
}

fn for_good(transcript: &mut Transcript<'_>, receipt: &Receipt, line: [&str; 2], wanted: &str) {
    transcript.says("Or for all later sessions, as it says:");
    receipt.write_down(transcript);
    assert_eq!(transcript.types(&run(line)), wanted);
}

fn run([options, command]: [&str; 2]) -> String {
    let words = ["stockade run", options, "--", command];
    words.map(str::trim).join(" ").replace("  ", " ")
}

/// A file about the laptop's project, with this in it. Tells all that is in it.
fn project_file(world: &World, network: &str) -> String {
    let laptop = world.laptop();
    let directory = laptop.home().join(".config/stockade/projects");
    fs::create_dir_all(&directory).expect("a directory");
    let workspace = laptop.workspace();
    let text = format!("workspace = {workspace:?}\n\n{network}");
    fs::write(directory.join("project.toml"), &text).expect("a file");
    text
}

fn compare(section: &str, transcript: &Transcript<'_>) {
    let text = transcript.text();
    if DOCUMENT.is_to_be_printed() {
        return DOCUMENT.print(section, &text);
    }
    assert_eq!(
        DOCUMENT.section(section),
        Some(text.as_str()),
        "docs/denials.md is not what is printed (if that is meant: cargo xtask denials --write)"
    );
}
