//! docs/company.md: from nothing to work. A test types each line of the page in a world of that shape;
//! `cargo xtask company --write` writes the page anew.

use std::fs;

use stockade_world::{Standard, test};

use super::network::{PROXY, TinyProxy, company, settle};
use crate::{daily::serve_registry, denials::transcript::Transcript, support::Document};

const DOCUMENT: Document = Document {
    text: include_str!("../../docs/company.md"),
    task: "company",
    print: "STOCKADE_PRINT_COMPANY",
};

const FILE: &str = "[network]
proxy = \"http://proxy.corp.example:3128\"
proxy_login = \"~/.config/stockade/proxy-login\"
no_proxy = [\"corp.example\"]
";

#[test]
fn each_line_of_the_page_does_what_it_says() {
    test(&company(), |world| {
        let laptop = world.laptop();
        let make = "git init -q -b main source; cd source; git -c user.name=a -c user.email=a@b \
            commit -q --allow-empty -m first; git clone -q --bare . ~/site/repo.git; \
            git -C ~/site/repo.git update-server-info";
        laptop.shell(make).run().expect("git").expect_success();
        let net = Standard::serve(world).expect("servers");
        net.web.stop();
        drop(net.web);
        stockade_world::eventually("the port", stockade_world::PATIENCE, || {
            !world
                .host("web")
                .enter(|| std::net::TcpStream::connect((std::net::Ipv4Addr::LOCALHOST, 80)).is_ok())
        })
        .expect("a free port");
        let _registry = serve_registry(world);
        settle(world);
        let _proxy = TinyProxy::start(world);
        let config = laptop.home().join(".config/stockade/config.toml");
        fs::remove_file(&config).expect("a file less");

        let mut page = Transcript::of(world);
        page.says(
            "Ada's shell has the variables that her company gives out. A command in a session is denied \
             the proxy, because whoever speaks to a proxy reaches everything that the proxy reaches:",
        );
        let variable = PROXY.replace("http://", "http://ada:s3cret-DECOY@");
        let curl = "curl -sS https://mirror.example.org/";
        let denied = page.types(&format!("https_proxy={variable} stockade run -- {curl}"));
        assert!(
            denied.contains("to allow it: --proxy environment"),
            "{denied}"
        );
        page.says("Stockade can use the proxy for the command instead, as it says:");
        let line = format!("https_proxy={variable} stockade run --proxy environment -- {curl}");
        assert_eq!(page.types(&line), "hello from mirror\n");

        page.says("For all sessions, she puts the login into a file that only she can read:");
        let line = "(umask 077; echo ada:s3cret-DECOY > ~/.config/stockade/proxy-login)";
        assert_eq!(page.types(line), "");
        page.says("and names both in `~/.config/stockade/config.toml`:");
        page.shows("toml", FILE);
        fs::write(&config, FILE).expect("a file");
        page.says("From now on, programs inside need no proxy setting of their own:");
        let ok = page.types("stockade doctor | grep '^ok  *proxy'");
        assert!(ok.contains("sessions reach the internet through"), "{ok}");
        assert_eq!(
            page.types(&format!("stockade run -- {curl}")),
            "hello from mirror\n"
        );
        let git = "stockade run -- sh -c 'git clone -q http://www.example.com/repo.git && git -C repo log --format=%s'";
        assert_eq!(page.types(git), "first\n");
        let pip = "stockade run -- pip3 install -q --target lib --index-url http://www.example.com/simple/ \
                   --trusted-host www.example.com --disable-pip-version-check small";
        page.types(pip);
        assert!(
            laptop.workspace().join("lib/small").exists()
                || laptop.workspace().join("lib/small.py").exists()
        );
        let npm = "stockade run -- sh -c 'cd node && npm ci --silent && node -p \"require(\\\"small\\\")\"'";
        assert_eq!(page.types(npm), "small\n");
        page.says("What is on the company's own network stays closed, by name and by address, and so does the proxy:");
        for target in ["http://intranet.corp.example/", "http://10.20.0.9:3128/"] {
            let denied = page.types(&format!("stockade run -- curl -sS {target}"));
            assert!(
                denied.contains("stockade: denied tcp://10.20.0."),
                "{denied}"
            );
        }
        let explained = page.types("stockade explain https://www.example.com");
        assert!(explained.contains("do not know it"), "{explained}");
        page.says("With the internet closed, the proxy is asked for the names that rules allow, and no others:");
        let closed = "stockade run --no-internet --allow mirror.example.org --";
        assert_eq!(
            page.types(&format!("{closed} {curl}")),
            "hello from mirror\n"
        );
        let denied = page.types(&format!("{closed} curl -sS http://www.example.com/"));
        assert!(
            denied.contains("denied the name www.example.com"),
            "{denied}"
        );
        page.says("The proxy's own log, of this whole page:");
        let asked =
            page.types("grep -o 'CONNECT [a-z0-9.]*:[0-9]*' /tmp/tinyproxy-requests.log | sort -u");
        assert_eq!(
            asked,
            "CONNECT mirror.example.org:443\nCONNECT www.example.com:80\n"
        );

        let text = page.text();
        if DOCUMENT.is_to_be_printed() {
            return DOCUMENT.print("page", &text);
        }
        assert_eq!(
            DOCUMENT.section("page"),
            Some(text.as_str()),
            "docs/company.md is not what is printed (if that is meant: cargo xtask company --write)"
        );
    });
}
