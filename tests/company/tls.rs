//! A proxy that is spoken to in TLS: stunnel of the distribution, in front of others.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    net::TcpStream,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use stockade_world::{Authority, ServerIdentity, Site, Standard, Stream, World, test};

use super::network::{LOGIN, PASSWORD, TinyProxy, company, inside_by, on_proxy, settle};
use crate::{daily::serve_registry, feature::daemon::Daemon};

const PROXY: &str = "https://proxy.corp.example:3129";
const NAMES: [&str; 1] = ["proxy.corp.example"];

/// stunnel on the proxy's host, with this certificate, before what listens at `to`.
fn stunnel(world: &World, identity: &ServerIdentity, at: u16, to: u16) -> Daemon {
    let text = format!("{}{}", identity.key, identity.certificate);
    fs::write(format!("/tmp/stunnel-{at}.pem"), text).expect("a file");
    let text = format!(
        "foreground = yes\npid =\n[proxy]\naccept = {at}\nconnect = 127.0.0.1:{to}\n\
         cert = /tmp/stunnel-{at}.pem\n"
    );
    let path = format!("/tmp/stunnel-{at}.conf");
    fs::write(&path, text).expect("a file");
    on_proxy(world, at, &format!("stunnel {path}"))
}

/// With a certificate as it should be.
fn good(world: &World) -> ServerIdentity {
    world.authority().identity(&NAMES).expect("a certificate")
}

#[test]
fn programs_work_through_a_proxy_in_tls() {
    test(&company(), |world| {
        let _net = Standard::serve(world).expect("servers");
        settle(world);
        let _proxy = TinyProxy::start(world);
        let _tls = stunnel(world, &good(world), 3129, 3128);
        let laptop = world.laptop();
        let script =
            "set -e; curl -sS http://www.example.com/; curl -sS https://mirror.example.org/
            exec 3<>/dev/tcp/www.example.com/7; echo echoed >&3; head -1 <&3";
        let output = inside_by(laptop, PROXY, &[], script)
            .run()
            .expect("its end");
        let wanted = "hello from web\nhello from mirror\nechoed\n";
        assert_eq!(output.expect_success().stdout(), wanted);
        let asked = [
            "CONNECT mirror.example.org:443",
            "CONNECT www.example.com:7",
            "CONNECT www.example.com:80",
        ];
        assert_eq!(TinyProxy::requests(), asked);
        // By the variable, with its login.
        let variable = PROXY.replace("https://", &format!("https://{LOGIN}@"));
        let line = ["run", "--proxy", "environment", "--", "curl", "-sS"];
        let session = laptop.stockade(line).args(["http://www.example.com/"]);
        let output = session.env("https_proxy", &variable).run();
        assert_eq!(output.expect("its end").stdout(), "hello from web\n");
        // A login for TLS is not taken for the same port in the clear.
        let plain = PROXY.replace("https://", "http://");
        let line = ["run", "--proxy", &plain, "--", "curl", "-sS"];
        let session = laptop.stockade(line).args(["http://www.example.com/"]);
        let output = session.env("https_proxy", &variable).run();
        assert_ne!(output.expect("its end").code(), 0);
        let plan = laptop.stockade(["plan", "--proxy", &plain]);
        let plan = plan.env("https_proxy", &variable).run().expect("a plan");
        assert!(!plan.stdout().contains("with a login"), "{plan:?}");
    });
}

#[test]
fn git_works_through_a_proxy_in_tls() {
    test(&company(), |world| {
        let make = "git init -q -b main source; cd source; head -c 5000000 /dev/urandom > big; \
            git add big; git -c user.name=a -c user.email=a@b commit -q -m first; \
            git clone -q --bare . ~/site/repo.git; git -C ~/site/repo.git update-server-info";
        let made = world.laptop().shell(make).run().expect("git");
        made.expect_success();
        let _registry = serve_registry(world);
        settle(world);
        let _proxy = TinyProxy::start(world);
        let _tls = stunnel(world, &good(world), 3129, 3128);
        let script = "git clone -q http://www.example.com/repo.git cloned && wc -c < cloned/big";
        let output = inside_by(world.laptop(), PROXY, &[], script).run();
        assert_eq!(
            output.expect("its end").expect_success().stdout(),
            "5000000\n"
        );
    });
}

/// A proxy that looks into TLS shows certificates of the company's own authority, which only the
/// caller's bundle has.
#[test]
fn programs_work_through_a_proxy_that_inspects_tls() {
    test(&company(), |world| {
        settle(world);
        let (laptop, proxy) = (world.laptop(), world.host("proxy"));
        let authority = Authority::new("the company's").expect("an authority");
        let site = Site::text("inspected\n");
        let names = ["www.example.com"];
        let inner = proxy.https(8443, &authority, &names, site).expect("listen");
        let to = (proxy.v4(), 8443);
        // Whatever it is asked for, it answers itself.
        let serve = move |stream: &mut Stream| {
            let asked = head(stream)?;
            assert!(asked.starts_with("CONNECT www.example.com:443 "), "{asked}");
            let mut inner = TcpStream::connect(to)?;
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
            let (mut from, mut back) = (stream.socket.try_clone()?, inner.try_clone()?);
            thread::spawn(move || io::copy(&mut from, &mut back));
            io::copy(&mut inner, stream).map(drop)
        };
        let _server = proxy.tcp(3128, serve).expect("a server");
        let bundle = laptop.home().join("company.pem");
        fs::write(&bundle, authority.pem()).expect("a file");
        let script = "curl -sS --max-time 20 https://www.example.com/ 2>&1 | head -1 | cut -c-9
            python3 -c 'import urllib.request as u; print(u.urlopen(\"https://www.example.com/\").read().decode(), end=\"\")'
            node -e 'fetch(\"https://www.example.com/\").then(r => r.text()).then(t => process.stdout.write(t))'";
        let plain = "http://proxy.corp.example:3128";
        for options in [&[][..], &["--no-internet", "--allow", "www.example.com"]] {
            let session = inside_by(laptop, plain, options, script);
            let session = session.env("SSL_CERT_FILE", &bundle);
            let session = session.env("NODE_EXTRA_CA_CERTS", &bundle);
            let output = session.run().expect("its end");
            assert_eq!(output.stdout(), "inspected\n".repeat(3), "{output:?}");
        }
        assert_eq!(inner.requests().count(), 6);
        // Without the bundle nobody believes it.
        let output = inside_by(laptop, plain, &[], script)
            .run()
            .expect("its end");
        assert_eq!(output.stdout(), "curl: (60\n", "{output:?}");
        assert_eq!(inner.requests().count(), 6);
    });
}

/// Reads the head of a request.
fn head(stream: &mut Stream) -> io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// The end of each direction is passed on alone, no byte is lost, and one that does not read
/// holds up no other.
#[test]
fn much_arrives_whole_through_tls_both_ways_with_its_end() {
    test(&company(), |world| {
        settle(world);
        // A proxy, and what is behind it. At port 444 is one that sends without end, elsewhere
        // one that gives all back when it has all.
        let serve = |stream: &mut Stream| {
            let head = head(stream)?;
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
            while head.contains(":444 ") {
                stream.write_all(&[b'x'; 4096])?;
            }
            let mut all = Vec::new();
            stream.read_to_end(&mut all)?;
            stream.write_all(&all)?;
            // stunnel leaves unread what is there when both sides have closed; its log tells so.
            thread::sleep(Duration::from_secs(5));
            Ok(())
        };
        let _server = world.host("proxy").tcp(3200, serve).expect("a server");
        let _tls = stunnel(world, &good(world), 3129, 3200);
        let script = "python3 -c '
import os, socket, time
deaf = [socket.create_connection((\"www.example.com\", 444), 60) for _ in range(20)]
time.sleep(1)
data = os.urandom(50 << 20)
s = socket.create_connection((\"www.example.com\", 443), 60)
s.sendall(data)
s.shutdown(socket.SHUT_WR)
got = b\"\".join(iter(lambda: s.recv(1 << 20), b\"\"))
print(len(got), got == data)
'";
        let session = inside_by(world.laptop(), PROXY, &[], script);
        let output = session.limit(Duration::from_secs(150)).run();
        let output = output.expect("its end").expect_success();
        assert_eq!(output.stdout(), "52428800 True\n", "{output:?}");
    });
}

/// Whoever is not the proxy gets neither the login nor what is asked for.
#[test]
fn n22_a_proxy_with_a_wrong_certificate_is_not_told_the_login() {
    test(&company(), |world| {
        let _net = Standard::serve(world).expect("servers");
        settle(world);
        let _proxy = TinyProxy::start(world);
        let laptop = world.laptop();
        let authority = world.authority();
        let other = Authority::new("nobody's").expect("an authority");
        let curl = "curl -sS --max-time 20 http://www.example.com/";
        let try_one = "python3 -c '
import errno, socket
try: socket.create_connection((\"www.example.com\", 443), 100)
except OSError as error: print(errno.errorcode[error.errno])'";
        let cases = [
            (
                authority.identity(&["other.corp.example"]),
                "is for another name",
            ),
            (
                authority.identity_until(&NAMES, 2020),
                "certificate has expired",
            ),
            (
                other.identity(&NAMES),
                "no authority that this machine trusts",
            ),
        ];
        for (port, (identity, told)) in (3140..).zip(cases) {
            let _tls = stunnel(world, &identity.expect("a certificate"), port, 3128);
            let proxy = format!("https://proxy.corp.example:{port}");
            let output = inside_by(laptop, &proxy, &[], try_one).run();
            let output = output.expect("its end");
            assert_eq!(output.stdout(), "EHOSTUNREACH\n", "{output:?}");
            assert!(output.stderr().contains(told), "{told}: {output:?}");
            let log = laptop.stockade(["log", "--denied"]).run().expect("the log");
            assert!(log.stdout().contains(told), "{log:?}");
        }
        assert_eq!(TinyProxy::requests(), [""; 0]);
        // The control, by an authority that the variable names.
        let file = laptop.home().join("authority.pem");
        fs::write(&file, other.pem()).expect("a file");
        let _tls = stunnel(world, &other.identity(&NAMES).expect("one"), 3150, 3128);
        let by = |proxy: &str, file: &str| {
            let session = inside_by(laptop, proxy, &[], curl).env("SSL_CERT_FILE", file);
            session.run().expect("its end")
        };
        let output = by(
            "https://proxy.corp.example:3150",
            &file.display().to_string(),
        );
        assert_eq!(output.stdout(), "hello from web\n", "{output:?}");
        assert_eq!(TinyProxy::requests(), ["CONNECT www.example.com:80"]);
        // What cannot be relied on refuses the launch.
        for (file, told) in [
            ("/nonexistent", "does not exist"),
            ("/etc/passwd", "in PEM"),
        ] {
            let output = by(PROXY, file);
            assert_ne!(output.code(), 0);
            assert!(output.stderr().contains(told), "{output:?}");
        }
        // One that speaks no TLS sees none of it either.
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let serve = move |stream: &mut Stream| {
            let mut bytes = [0; 4096];
            let length = stream.read(&mut bytes)?;
            kept.lock()
                .expect("a lock")
                .extend_from_slice(&bytes[..length]);
            stream.write_all(b"HTTP/1.1 407 x\r\n\r\n")
        };
        let _server = world.host("proxy").tcp(3151, serve).expect("a server");
        let output = inside_by(laptop, "https://proxy.corp.example:3151", &[], curl).run();
        let output = output.expect("its end");
        assert!(output.stderr().contains("use http://"), "{output:?}");
        let seen = seen.lock().expect("a lock");
        let text = String::from_utf8_lossy(&seen);
        assert!(text.contains("proxy.corp.example"), "{text}");
        for secret in ["CONNECT", "Basic", PASSWORD, "www.example.com"] {
            assert!(!text.contains(secret), "{text}");
        }
    });
}
