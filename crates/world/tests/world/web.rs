//! Web servers, asked by `curl` and `openssl`.

use stockade_world::{Authority, Builder, Page, Site, Standard, test};

#[test]
fn pages_are_served_and_requests_noted() {
    test(&Builder::standard(), |world| {
        let site = Site::empty()
            .page("/a", "first\n")
            .page("/b", Page::new(418, "second\n").header("X-Kind", "teapot"));
        let server = world.host("web").http(8080, site).unwrap();
        let output = world
            .laptop()
            .shell(
                "curl -sS --data-binary hello http://93.184.216.34:8080/a \
                 --next -sS -D - http://93.184.216.34:8080/b?x=1 \
                 --next -sS -o /dev/null -w '%{http_code}\n' http://93.184.216.34:8080/c",
            )
            .run();
        let text = output.unwrap().expect_success().stdout();
        assert!(text.starts_with("first\nHTTP/1.1 418"), "{text}");
        assert!(text.contains("X-Kind: teapot"), "{text}");
        assert!(text.ends_with("second\n404\n"), "{text}");

        let requests = server.requests().wait_for(3).unwrap();
        assert_eq!(requests[0].method, "POST");
        assert_eq!(requests[0].body, b"hello");
        assert_eq!(requests[1].target, "/b?x=1");
        assert_eq!(requests[1].header("host"), Some("93.184.216.34:8080"));
        // One connection, kept alive.
        assert_eq!(server.tcp().connections().count(), 1);
    });
}

#[test]
fn https_is_trusted_as_a_public_site_is() {
    test(&Builder::standard(), |world| {
        let servers = Standard::serve(world).unwrap();
        let curl = |arguments: &[&str]| {
            let command = world.laptop().command("curl").arg("-sS");
            command.args(arguments).run().unwrap()
        };
        let hello = "hello from web\n";
        let ca = world.ca_file();
        let explicit = curl(&["--cacert", ca.to_str().unwrap(), "https://www.example.com/"]);
        assert_eq!(explicit.expect_success().stdout(), hello);
        // Without options: the laptop's own trust store.
        let implicit = curl(&["https://x.pages.example.com/"]);
        assert_eq!(implicit.expect_success().stdout(), hello);
        let request = &servers.web_tls.requests().wait_for(2).unwrap()[1];
        assert_eq!(request.server_name.as_deref(), Some("x.pages.example.com"));
        // The wrong name is refused by the client, not by us.
        curl(&["https://93.184.216.34/"]).expect_code(60);
    });
}

#[test]
fn a_certificate_of_another_authority_is_not_trusted() {
    test(&Builder::standard(), |world| {
        let stranger = Authority::new("stranger").unwrap();
        let site = Site::text("never seen\n");
        let names = ["www.example.com"];
        world
            .host("web")
            .https(443, &stranger, &names, site)
            .unwrap();
        let curl = world.laptop().command("curl");
        let output = curl
            .args(["-sS", "https://www.example.com/"])
            .run()
            .unwrap();
        assert_eq!(output.expect_code(60).stdout(), "");
    });
}

#[test]
fn openssl_verifies_the_chain() {
    test(&Builder::standard(), |world| {
        let _servers = Standard::serve(world).unwrap();
        let output = world
            .laptop()
            .shell(
                "openssl s_client -connect 93.184.216.34:443 -servername example.com \
                 -verify_hostname example.com -verify_return_error \
                 -CAfile /run/world/ca.pem </dev/null",
            )
            .run();
        let text = output.unwrap().expect_success().stdout();
        assert!(text.contains("Verify return code: 0 (ok)"), "{text}");
    });
}
