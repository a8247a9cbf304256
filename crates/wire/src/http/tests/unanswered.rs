//! What may stand behind a first line that is no request by its own look.

use super::*;

fn refusal(sent: &[u8], size: usize) -> Option<Broken> {
    let mut behind = Unanswered::default();
    let mut pieces = sent.chunks(size);
    pieces.find_map(|piece| behind.pass(piece).err())
}

const SIZES: [usize; 4] = [1, 3, 7, 10_000];

#[test]
fn a_host_and_a_request_behind_a_line_of_two_words_are_seen() {
    for (sent, why) in [
        (&b"FOO x\r\nHost: other.example\r\n"[..], Broken::Behind),
        (b"FOO_ /x\nhOsT \t: other.example", Broken::Behind),
        (b"1 /x y\r\nA: b\r\n host:", Broken::Behind),
        (b"\x01\xff \0\r\nHOST:", Broken::Behind),
        // To Python's server, that is white space.
        (b"GET\x1f/x\r\nHost:", Broken::Behind),
        (b"GET\xa0/x\r\nHost:", Broken::Behind),
        (b"FOO x\rHost:", Broken::Behind),
        // They would hide what follows.
        (b"FOO x\r\nContent-Length: 5\r\n", Broken::Behind),
        (b"FOO x\r\nTransfer-Encoding : chunked\r\n", Broken::Behind),
        // To the JDK's server, a line ends with both.
        (b"x\ny /z\n\nw\r\nHost:", Broken::Behind),
        // The next one, and the one after.
        (b"FOO x\r\n\r\nFOO y\r\nHost:", Broken::Behind),
        (
            b"FOO x\r\n\r\n\r\nfoo\r\nbar\r\n\r\nFOO y\r\nHost:",
            Broken::Behind,
        ),
        (b"FOO x\r\nGET / HTTP/1.1\r\n", Broken::Late),
        (b"FOO x\r\nA: b\r\n\r\nGET / HTTP/1.1\r\n", Broken::Late),
        (b"FOO x\n\n \t\nGET / HTTP/1.1\n", Broken::Late),
        (
            b"FOO x\r\rget http://other.example/ http/1.0\r",
            Broken::Late,
        ),
        (b"FOO x\r\n\r\nDESCRIBE * RTSP/1.0\r\n", Broken::Late),
    ] {
        for size in SIZES {
            let text = sent.escape_ascii().to_string();
            assert_eq!(refusal(sent, size), Some(why), "{text} {size}");
        }
    }
    // However long the lines are.
    let long = [b"1 ", &vec![b'x'; 4 * MAX_HEAD][..], b" y\r\n"].concat();
    let field = [b"A: ", &vec![b'x'; 4 * MAX_HEAD][..], b"\r\nHost:"].concat();
    assert_eq!(refusal(&[long, field].concat(), 4096), Some(Broken::Behind));
}

#[test]
fn other_protocols_in_which_the_client_speaks_first_pass() {
    for other in [
        &b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n\0\0\x05\xdc\x0a\x14host"[..],
        b"0033git-upload-pack /project.git\0host=myserver.com\0",
        b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$20\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", // Redis
        b"\0\0\0\x52\0\x03\0\0user\0x\0database\0y z\0\0",                         // PostgreSQL
        b"\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0",
        b"AMQP\0\0\x09\x01",
        b"CAP LS 302\r\nNICK x\r\nUSER x 0 * :Host: x\r\n", // IRC
        b"NICK x\r\nUSER x y z :http://a.example/ HTTP/1\r\n",
        b"get x\r\nset k 0 0 5\r\nhello\r\nget host\r\n", // memcached
        b"CONNECT {\"verbose\":false}\r\nPING\r\nSUB a.b 1\r\n", // NATS
        b"CONNECT\naccept-version:1.2\nhost:example.org\nlogin:a b\n\n\0", // STOMP
        b"STOMP\r\naccept-version:1.2\r\nhost:example.org\r\nlogin:a b\r\n\r\n\0",
        b"CONNECT\nhost:a\n\n\0\nSEND\ndestination:a b\ncontent-length:2\n\nhi\0",
        b"8=FIX.4.4\x019=5\x0135=A\x0149=a b\x01",
        b"0\x0c\x02\x01\x01\x60\x07\x02\x01\x03\x04\0\x80\0", // LDAP
        b"example.org\r\n",                                   // whois
        b"/W user\r\n",                                       // finger
        b"/path\r\n",                                         // gopher
        b"<34>1 2003-10-11T22:14:15.003Z a app - - GET / HTTP/1.1 200\n<34>1 x y Host: z\n", // syslog
        b"a.b.c 42 1234567\na.b.d 43 1234568\n", // Graphite
        b"<stream:stream to='x'\n xmlns='jabber:client'>\n",
        b"{\"id\": 1,\n \"host\": 2}\n",
        b"CWD /My Documents/2024\r\nSTOR hosts\r\n",
    ] {
        for size in SIZES {
            assert_eq!(refusal(other, size), None, "{}", other.escape_ascii());
        }
    }
}

/// What is white space to Python stands before and behind the word.
#[test]
fn a_url_behind_the_first_word_is_seen_whatever_stands_around_it() {
    let seen = |line: &[&[u8]]| SIZES.map(|size| refusal(&line.concat(), size));
    for space in [0x1c, 0x1d, 0x1e, 0x1f, 0x85, 0xa0] {
        let url = &b"http://other.example/\r\n"[..];
        let space = &[space][..];
        for line in [
            &[b"GET", space, url][..],
            &[space, b"GET ", url],
            &[space, b"GET", space, space, url],
            &[b"\r\n", space, b"GET\t", url],
            &[b"FOO ", space, b" x://other.example"],
        ] {
            assert_eq!(seen(line), [Some(Broken::Url); 4], "{line:?}");
        }
    }
    for line in [
        &b"G{T http://other.example/\r\n"[..],
        b"(GET) ?http://other.example/ x\n",
        b"\x01 \x0bws://other.example/",
        b"FOO x\r\n\r\nFOO http://other.example/\r\n",
    ] {
        assert_eq!(seen(&[line]), [Some(Broken::Url); 4], "{line:?}");
    }
    for other in [
        &b"{\"url\": \"http://a.example/\"}\n"[..],
        b"[\"GET\", \"http://a.example/\"]\r\n",
        b"<34>1 http://a.example/ x\n",
        b"<a xmlns='x' xmlns:b='http://a.example/'>",
        b"URL:http://a.example/ x\r\n",
        b"a b http://a.example/\r\n",
        b"a http:/a.example/ http:\r//a.example\r\n",
        b"\x13BitTorrent protocol http://a.example/",
        b"0033git-upload-pack /project.git\0host=a.example\0",
    ] {
        assert_eq!(seen(&[other]), [None; 4], "{}", other.escape_ascii());
    }
}

/// A text that its client sends to who says nothing passes if it reads like a request to nobody.
#[test]
fn behind_an_empty_line_a_field_needs_a_line_of_its_own_before_it() {
    for (sent, expected) in [
        (&b"a b\n\nHost: x\n"[..], None),
        (b"a b\n\nword\nHost: x\n", None),
        (b"a b\n\nc d\nHost: x\n", Some(Broken::Behind)),
        (b"word\nHost: x\n\nc d\nHost: x\n", None),
        (b"a b\nThe Host: x\nGhost: x\nHost x:\nHostess: x\n", None),
    ] {
        for size in SIZES {
            assert_eq!(refusal(sent, size), expected, "{}", sent.escape_ascii());
        }
    }
}

/// Random lines of what matters. A Host is found behind any of them.
#[test]
fn what_is_seen_does_not_depend_on_how_it_is_cut() {
    const PARTS: [&[u8]; 16] = [
        b"a",
        b" ",
        b"\r",
        b"\n",
        b"\r\n",
        b"Host",
        b":",
        b"GET",
        b"/",
        b"HTTP/1.1",
        b"x/1.0",
        b"\0",
        b"\t",
        b"*",
        b"content-length:",
        b"http://",
    ];
    let mut state = 1_u64;
    let mut refused = 0;
    for _ in 0..20_000 {
        let mut sent = Vec::new();
        for _ in 0..24 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let number = usize::try_from(state >> 60).expect("four bits");
            sent.extend_from_slice(PARTS[number]);
        }
        let whole = refusal(&sent, 10_000).is_some();
        refused += usize::from(whole);
        for size in [1, 3] {
            let text = sent.escape_ascii().to_string();
            assert_eq!(refusal(&sent, size).is_some(), whole, "{text} {size}");
        }
        let with_host = [b"a b\r\n", &sent[..], b"\r\n\r\nc d\r\nhost:x"].concat();
        assert!(refusal(&with_host, 7).is_some());
    }
    assert!((1000..19_000).contains(&refused), "{refused}");
}

/// What costs more than it should would take minutes here.
#[test]
fn what_says_nothing_is_looked_at_once_and_not_kept() {
    for line in [
        &b"\n"[..],
        b"\r",
        b"\r\n",
        b" \r",
        b"x",
        b"x HTTP/1\r",
        b"a b c HTTP/1\r",
        b"a b c/1.1\r",
        b"ho",
        b"a b\n",
        &opening::words_without_end(),
    ] {
        let mut behind = Unanswered::default();
        assert_eq!(behind.pass(b"a b\r\n"), Ok(()));
        let sent = line.repeat((1 << 19) / line.len());
        for piece in sent.chunks(16 * 1024) {
            assert_eq!(behind.pass(piece), Ok(()));
        }
        assert!(behind.kept() <= 2 * MAX_HEAD, "{}", behind.kept());
    }
}
