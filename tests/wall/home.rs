//! What is seen of the home directory, by class (F1, F3).

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, symlink},
        net::UnixListener,
    },
};

use super::{output, run, test};

#[test]
fn data_and_caches_are_there_and_configuration_is_not() {
    test(|caller| {
        for path in [
            ".config/gcloud/credentials.db",
            ".config/gh/hosts.yml",
            ".ssh/id_rsa",
            ".netrc",
            ".local/share/helm/plugins/diff",
            ".local/share/applications/x.desktop",
            ".local/share/claude/versions/1",
            ".local/share/keyrings/login.keyring",
            ".local/share/containers/storage/secrets/filedriver/secretsdata.json",
            ".local/share/mkcert/rootCA-key.pem",
            ".local/share/opencode/auth.json",
            ".local/share/uv/credentials/credentials.toml",
            ".local/state/x/history",
            ".local/bin/tool",
            ".local/bin/uv",
            ".cache/pip/wheel",
            ".cache/huggingface/token",
        ] {
            caller.write(caller.home().join(path), "contents");
        }
        let list = "cd; find . ! -type d | sort | while read -r file; do \
                head -c 1 $file >/dev/null 2>&1 && echo $file; done; true";
        let list = output(caller.script(list));
        assert_eq!(
            list,
            "./.cache/pip/wheel\n./.local/bin/uv\n./.local/share/helm/plugins/diff\n"
        );
        // The directories that are emptied are there, and the secrets' places closed.
        let probe = "ls -A ~/.local/share/applications ~/.local/share/claude; \
                 ls ~/.local/share/keyrings 2>/dev/null || echo closed; \
                 cat ~/.cache/huggingface/token 2>/dev/null || echo closed";
        let (_, seen, _) = run(caller.script(probe));
        assert!(seen.ends_with("closed\nclosed\n"), "{seen}");
        assert!(
            !seen.contains("desktop") && !seen.contains("versions"),
            "{seen}"
        );
    });
}

#[test]
fn a_place_of_secrets_is_shown_to_who_asks_for_it() {
    test(|caller| {
        let place = caller.home().join(".local/share/opencode");
        caller.write(place.join("auth.json"), "login");
        let probe = "cat ~/.local/share/opencode/auth.json 2>/dev/null || echo closed";
        assert_eq!(output(caller.script(probe)), "closed\n");
        let place = place.to_str().expect("a plain path");
        assert_eq!(output(caller.with(&["--write", place], probe)), "login");

        // Who asks for a part of it gets that only.
        let authority = caller.home().join(".local/share/mkcert");
        caller.write(authority.join("rootCA.pem"), "certificate\n");
        caller.write(authority.join("rootCA-key.pem"), "key\n");
        let certificate = authority.join("rootCA.pem");
        let certificate = certificate.to_str().expect("a plain path");
        let probe = "cd ~/.local/share/mkcert; cat rootCA.pem; ls; echo evil > rootCA.pem || true";
        let options = ["--read", certificate];
        assert_eq!(
            output(caller.with(&options, probe)),
            "certificate\nrootCA.pem\n"
        );
        assert_eq!(fs::read_to_string(certificate).unwrap(), "certificate\n");
    });
}

#[test]
fn secrets_are_masked_and_hidden_by_whatever_name_they_are_shown() {
    test(|caller| {
        let disk = caller.home().join("disk");
        for path in [
            "share/keyrings/login",
            "share/plain/file",
            "cache/huggingface/token",
            "cache/plain/file",
        ] {
            caller.write(disk.join(path), "secret\n");
        }
        fs::create_dir(caller.home().join(".local")).unwrap();
        symlink(disk.join("share"), caller.home().join(".local/share")).unwrap();
        symlink(disk.join("cache"), caller.home().join(".cache")).unwrap();
        symlink(".local/share", caller.home().join("l")).unwrap();
        symlink(".cache", caller.home().join("c")).unwrap();
        let probe = "cat ~/.local/share/keyrings/login ~/.cache/huggingface/token ~/l/keyrings/login \
                 ~/disk/share/keyrings/login 2>/dev/null; cat ~/.local/share/plain/file ~/l/plain/file \
                 2>/dev/null; true";
        let name = |path: &str| caller.home().join(path).to_str().unwrap().to_owned();
        let (l, plain) = (name("l"), name(".local/share/plain"));
        // Positive control: what is no secret is there.
        assert_eq!(output(caller.script(probe)), "secret\n");
        assert_eq!(
            output(caller.with(&["--read", &l], probe)),
            "secret\nsecret\n"
        );
        let hidden = ["--hide", &plain, "--read", &l];
        assert_eq!(output(caller.with(&hidden, probe)), "");
        // The other one can be given to be written, too: it holds nothing of Stockade's.
        let probe = "cat ~/.cache/huggingface/token ~/c/huggingface/token ~/disk/cache/huggingface/token \
                 2>/dev/null; cat ~/c/plain/file 2>/dev/null; true";
        let (c, plain) = (name("c"), name(".cache/plain"));
        assert_eq!(output(caller.with(&["--write", &c], probe)), "secret\n");
        let hidden = ["--hide", &plain, "--write", &c];
        assert_eq!(output(caller.with(&hidden, probe)), "");
    });
}

#[test]
fn what_is_hidden_takes_its_parts_with_it() {
    test(|caller| {
        caller.write(caller.home().join(".local/share/tool/x"), "data\n");
        caller.write(caller.home().join("a/b/c/file"), "data\n");
        let name = |path: &str| caller.home().join(path).to_str().unwrap().to_owned();
        let (part, whole) = (name("a/b/c"), name("a"));
        let probe = "cat ~/.local/share/tool/x ~/a/b/c/file 2>/dev/null; true";
        assert_eq!(
            output(caller.with(&["--read", &part], probe)),
            "data\ndata\n"
        );
        let hidden = ["--read", &part, "--hide", &whole, "--hide", &name(".local")];
        assert_eq!(output(caller.with(&hidden, probe)), "");
    });
}

#[test]
fn changes_to_data_and_caches_are_seen_inside_and_gone_at_the_end() {
    test(|caller| {
        let cache = caller.home().join(".cache");
        let share = caller.home().join(".local/share");
        caller.write(cache.join("old"), "old");
        caller.write(cache.join("directory/file"), "old");
        caller.write(share.join("tool/x"), "old");
        let probe = "set -e; cd ~/.cache; echo new > old; rm -r directory; mkdir directory; \
         mkdir -p go-build/00; touch go-build/00/x; mv old older; cat older; ls directory; \
         mkdir ~/.local/share/systemd; echo evil > ~/.local/share/tool/x; \
         cat ~/.local/share/tool/x";
        assert_eq!(output(caller.script(probe)), "new\nevil\n");
        assert_eq!(fs::read_to_string(cache.join("old")).unwrap(), "old");
        assert!(cache.join("directory/file").exists());
        assert!(!cache.join("go-build").exists());
        assert!(!share.join("systemd").exists());
        assert_eq!(fs::read_to_string(share.join("tool/x")).unwrap(), "old");
    });
}

#[test]
fn a_cache_that_is_a_link_is_shown_where_it_is_looked_for() {
    test(|caller| {
        let elsewhere = caller.home().join("elsewhere");
        caller.write(elsewhere.join("file"), "contents");
        symlink(&elsewhere, caller.home().join(".cache")).unwrap();
        assert_eq!(
            output(caller.script("cat ~/.cache/file; ls -A ~ | grep -x -e .cache -e elsewhere")),
            "contents.cache\n"
        );
        // One that leads to the home itself shows nothing.
        fs::remove_file(caller.home().join(".cache")).unwrap();
        symlink(caller.home(), caller.home().join(".cache")).unwrap();
        let look = "ls -A ~/.cache 2>/dev/null || echo nothing";
        assert_eq!(output(caller.script(look)), "nothing\n");
    });
}

#[test]
fn sockets_among_data_and_caches_cannot_be_connected_to() {
    test(|caller| {
        fs::create_dir_all(caller.home().join(".cache")).unwrap();
        let path = caller.home().join(".cache/socket");
        let _listener = UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let probe = "perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0); \
        print connect($s, sockaddr_un(shift)) ? qq(connected\\n) : qq(refused\\n)' ~/.cache/socket";
        assert_eq!(caller.outside(probe), "connected\n");
        assert_eq!(output(caller.script(probe)), "refused\n");
    });
}

#[test]
fn the_programs_that_are_shown_cannot_be_changed() {
    test(|caller| {
        let uv = caller.home().join(".local/bin/uv");
        caller.program(&uv, "#!/bin/sh\necho real\n");
        let attack = "~/.local/bin/uv; cd ~/.local/bin; echo evil > uv; rm -f uv; mv uv x; \
        cp /bin/true y && mv -f y uv; ln -sf /bin/true uv; chmod 777 uv; \
        (while :; do echo evil > uv; done) & sleep 0.05; ls";
        let (_, seen, _) = run(caller.script(attack));
        assert!(
            seen.starts_with("real\n") && seen.contains("uv\n"),
            "{seen}"
        );
        assert_eq!(fs::read_to_string(&uv).unwrap(), "#!/bin/sh\necho real\n");
    });
}
