//! Heads and bodies that two readers could understand differently. Each is one
//! change away from one that is understood.

use super::*;

#[test]
fn lengths_are_one_plain_number() {
    for good in ["0", "5", "00005"] {
        let sent = format!("{}hello", with(&format!("Content-Length: {good}\r\n")));
        let expected = if good == "0" { 5 } else { 0 };
        let seen = seen(sent.as_bytes());
        assert_eq!(sent.len() - seen.released, expected);
    }
    for bad in [
        "",
        "+5",
        "-5",
        "5 5",
        "5,5",
        "5, 5",
        "0x5",
        "5h",
        "５",
        "5.0",
        "\"5\"",
        "1000000000000000000",
    ] {
        let sent = with(&format!("Content-Length: {bad}\r\n"));
        assert_eq!(refusal(sent.as_bytes()), Broken::ContentLength, "{bad}");
    }
    let twice = "Content-Length: 5\r\nContent-Length: ";
    for second in [5, 6] {
        let sent = with(&format!("{twice}{second}\r\n"));
        assert_eq!(refusal(sent.as_bytes()), Broken::ContentLength);
    }
}

#[test]
fn an_encoding_is_chunked_alone() {
    let chunked = "Transfer-Encoding: chunked\r\n";
    assert_eq!(hosts(&format!("{}0\r\n\r\n", with(chunked))).len(), 1);
    for fields in [
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    ] {
        let why = refusal(with(fields).as_bytes());
        assert_eq!(why, Broken::TransferEncoding, "{fields}");
    }
    let old = with(chunked).replace("HTTP/1.1", "HTTP/1.0");
    assert_eq!(refusal(old.as_bytes()), Broken::TransferEncoding);
}

#[test]
fn fields_that_only_some_servers_understand_are_refused() {
    for fields in [
        "Content_Length: 5\r\n",
        "TRANSFER_ENCODING: chunked\r\n",
        "Connection: close, Host\r\n",
        "Connection: transfer-encoding\r\n",
        "Connection:\tContent-Length\t, keep-alive\r\n",
    ] {
        assert_eq!(
            refusal(with(fields).as_bytes()),
            Broken::Disguise,
            "{fields}"
        );
    }
    assert_eq!(
        hosts(&with("Connection: close, TE\r\nTE: trailers\r\n")).len(),
        1
    );
}

#[test]
fn there_is_one_host_and_it_is_plain() {
    let with_host = |fields: &str| format!("GET / HTTP/1.1\r\n{fields}\r\n");
    assert_eq!(refusal(with_host("").as_bytes()), Broken::NoHost);
    for fields in [
        "Host: a.example\r\nHost: b.example\r\n",
        "Host: a.example\r\nX: y\r\nhOST: a.example\r\n",
    ] {
        assert_eq!(refusal(with_host(fields).as_bytes()), Broken::ManyHosts);
    }
    for bad in [
        "",
        "a.example, b.example",
        "a.example b.example",
        "user@a.example",
        "a.example/",
        "http://a.example",
        "a%2eexample",
        "a.example:",
        "a.example:x",
        "a.example:+80",
        "a.example:0",
        "a.example:65536",
        "a.example:000080",
        "a.example:80:80",
        ":80",
        "fd00::1",
        "[fd00::1",
        "[fd00::1]x",
        "[fd00::1%eth0]",
        "[a.example]",
        "[]",
        "b\u{fc}cher.example",
        &"a".repeat(256),
    ] {
        let sent = with_host(&format!("Host: {bad}\r\n"));
        assert_eq!(refusal(sent.as_bytes()), Broken::Host, "{bad}");
    }
    for good in [
        "a",
        "a_b.example.",
        "10.0.0.1:65535",
        "[::1]:1",
        "[::ffff:1.2.3.4]",
    ] {
        assert_eq!(hosts(&with_host(&format!("Host: {good}\r\n"))), [good]);
    }
}

#[test]
fn a_url_names_the_same_server_as_the_host() {
    let asked = |target: &str, host: &str| format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    for (target, host) in [
        ("http://a.example/", "a.example"),
        ("HTTP://A.example:80/@b.example", "a.example"),
        ("http://a.example", "a.example:80"),
        ("http://[::1]:8080/", "[::1]:8080"),
    ] {
        assert_eq!(hosts(&asked(target, host)).len(), 1, "{target}");
    }
    for (target, host) in [
        ("http://b.example/", "a.example"),
        ("http://a.example:81/", "a.example"),
        ("http://a.example/", "a.example:81"),
        ("http://[::1]/", "[::2]"),
    ] {
        let why = refusal(asked(target, host).as_bytes());
        assert_eq!(why, Broken::OtherHost, "{target}");
    }
    for target in [
        "https://a.example/",
        "ftp://a.example/",
        "http://a.example@b.example/",
        "http://a.example?@b.example/",
        "http://a.example#@b.example/",
        "http://a.example\\@b.example/",
        "http:///",
        "http:/a.example/",
        "*",
        "a.example:80",
    ] {
        let why = refusal(asked(target, "a.example").as_bytes());
        assert_eq!(why, Broken::Target, "{target}");
    }
    // A path may start with two slashes.
    assert_eq!(hosts(&asked("//b.example/", "a.example")), ["a.example"]);
}

#[test]
fn a_tunnel_names_the_same_server_as_the_host() {
    let asked = |target: &str, rest: &str| {
        refusal(format!("CONNECT {target} HTTP/1.1\r\nHost: {rest}\r\n\r\n").as_bytes())
    };
    assert_eq!(asked("b.example:443", "a.example:443"), Broken::OtherHost);
    assert_eq!(asked("a.example:443", "a.example:80"), Broken::OtherHost);
    assert_eq!(asked("a.example", "a.example"), Broken::Target);
    assert_eq!(asked("/", "a.example"), Broken::Target);
    let body = "a.example\r\nContent-Length: 5";
    assert_eq!(asked("a.example:443", body), Broken::ContentLength);
}

#[test]
fn lines_end_with_both_bytes_and_hold_neither() {
    let good = with("X: y\r\n");
    for (at, _) in good.match_indices("\r\n") {
        let mut sent = good.clone();
        sent.remove(at);
        assert_eq!(refusal(sent.as_bytes()), Broken::BareLf, "{at}");
        let mut sent = good.clone();
        sent.remove(at + 1);
        sent.push('x');
        assert_eq!(refusal(sent.as_bytes()), Broken::BareCr, "{at}");
        let mut sent = good.clone();
        sent.insert(at, '\0');
        assert_eq!(refusal(sent.as_bytes()), Broken::Nul, "{at}");
    }
}

#[test]
fn fields_are_as_the_standard_has_them() {
    for field in [
        " folded: x\r\n",
        "X: y\r\n folded\r\n",
        "X: y\r\n\tfolded\r\n",
        "X : y\r\n",
        "X\t: y\r\n",
        "X\r\n",
        ": y\r\n",
        "X(y): z\r\n",
        "X: \x01\r\n",
        "X: \x7f\r\n",
    ] {
        assert_eq!(refusal(with(field).as_bytes()), Broken::Field, "{field:?}");
    }
    assert_eq!(hosts(&with("X:\r\nY:  z \t\r\nZ: \u{fc}\r\n")).len(), 1);
}

#[test]
fn a_head_has_bounds() {
    let fields = |count: usize| with(&"X: y\r\n".repeat(count - 1));
    assert_eq!(hosts(&fields(MAX_FIELDS)).len(), 1);
    let many = fields(MAX_FIELDS + 1);
    assert_eq!(refusal(many.as_bytes()), Broken::TooManyFields);

    let sized = |size: usize| {
        let rest = size - with("X: \r\n").len();
        with(&format!("X: {}\r\n", "y".repeat(rest)))
    };
    assert_eq!(hosts(&sized(MAX_HEAD)).len(), 1);
    let long = sized(MAX_HEAD + 1);
    assert_eq!(refusal(long.as_bytes()), Broken::HeadTooLong);
}

#[test]
fn only_websocket_is_upgraded_to_and_only_at_first() {
    let asked = |fields: &str| format!("GET / HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n");
    let websocket = asked("Upgrade: WebSocket\r\n");
    assert_eq!(seen(websocket.as_bytes()).heads[0].2, Kind::WebSocket);
    for fields in [
        "Upgrade: h2c\r\n",
        "Upgrade: TLS/1.0\r\n",
        "Upgrade: websocket, h2c\r\n",
        "Upgrade: websocket\r\nUpgrade: h2c\r\n",
        "Upgrade:\r\n",
        "Upgrade: websocket\r\nContent-Length: 5\r\n",
    ] {
        assert_eq!(
            refusal(asked(fields).as_bytes()),
            Broken::Upgrade,
            "{fields}"
        );
    }
    let posted = with("Upgrade: websocket\r\n");
    assert_eq!(refusal(posted.as_bytes()), Broken::Upgrade);
    let later = format!("{}{websocket}", asked(""));
    assert_eq!(refusal(later.as_bytes()), Broken::Upgrade);
}

#[test]
fn chunks_are_as_the_standard_has_them() {
    let chunked = |body: &str| with("Transfer-Encoding: chunked\r\n") + body;
    assert_eq!(hosts(&chunked("5;a=b\r\nhello\r\n0;c\r\n\r\n")).len(), 1);
    for bad in [
        "\r\n",
        "5 \r\nhello\r\n",
        " 5\r\nhello\r\n",
        "+5\r\nhello\r\n",
        "-0\r\n",
        "0x5\r\nhello\r\n",
        "g\r\n",
        "5_0\r\n",
        "5\t;a\r\n",
        "1000000000000000\r\n",
        "5;a\x01\r\nhello\r\n",
        "5\r\nhello!\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello\r\r\n",
    ] {
        assert_eq!(refusal(chunked(bad).as_bytes()), Broken::Chunk, "{bad:?}");
    }
    assert_eq!(refusal(chunked("5\nhello").as_bytes()), Broken::BareLf);
    assert_eq!(refusal(chunked("5;\nGET").as_bytes()), Broken::BareLf);
    assert_eq!(refusal(chunked("5;\r5\r\n").as_bytes()), Broken::BareCr);
    assert_eq!(refusal(chunked("5;\0\r\n").as_bytes()), Broken::Nul);
    let long = chunked(&format!("5;{}\r\nhello\r\n", "a".repeat(chunked::MAX_LINE)));
    assert_eq!(refusal(long.as_bytes()), Broken::Chunk);
}

#[test]
fn trailers_are_fields_and_not_for_the_head() {
    let trailed = |trailers: &str| with("Transfer-Encoding: chunked\r\n") + "0\r\n" + trailers;
    assert_eq!(hosts(&trailed("X: y\r\nZ:\r\n\r\n")).len(), 1);
    for bad in [
        "X\r\n",
        "X : y\r\n",
        " X: y\r\n",
        "X: y\r\n z\r\n",
        ": y\r\n",
        "X: \x01\r\n",
        "Host: b.example\r\n",
        "content-length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
        &"X: y\r\n".repeat(MAX_FIELDS + 1),
        &format!("X: {}\r\n", "y".repeat(MAX_HEAD)),
        &"X: yyyyyyyyyyyyy\r\n"
            .repeat(MAX_FIELDS)
            .replace("yyy", &"y".repeat(500)),
    ] {
        assert_eq!(refusal(trailed(bad).as_bytes()), Broken::Trailer, "{bad:?}");
    }
    assert_eq!(
        hosts(&trailed(&("X: y\r\n".repeat(MAX_FIELDS) + "\r\n"))).len(),
        1
    );
    assert_eq!(refusal(trailed("X: y\n\n").as_bytes()), Broken::BareLf);
}

#[test]
fn after_a_request_only_a_request_may_follow() {
    let first = with("");
    for next in [
        "\r\nGET / HTTP/1.1\r\n\r\n",
        " GET / HTTP/1.1\r\nHost: b.example\r\n\r\n",
        "\n",
        "\x16\x03\x01\r\n",
        "GET\r\n",
    ] {
        let sent = first.clone() + next;
        let seen = seen(sent.as_bytes());
        assert_eq!(seen.released, first.len());
        assert!(matches!(seen.end, Step::Broken(_)), "{next:?}");
    }
}
