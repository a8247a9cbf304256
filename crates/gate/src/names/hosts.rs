//! The names of the host's `/etc/hosts`.
//!
//! The agent does not see the file; the gate answers from it, so that these names are judged
//! and pinned like all others.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read},
    net::IpAddr,
};

use stockade_policy::Hostname;

use super::host_file::HostFileContent;

const PATH: &str = "/etc/hosts";
/// Lists of blocked hosts have some megabytes.
const LARGEST: u64 = 32 << 20;

/// What the file says.
#[derive(Debug, Default)]
pub(crate) struct Table {
    addresses: HashMap<Hostname, Vec<IpAddr>>,
    names: HashMap<IpAddr, Hostname>,
}

impl HostFileContent for Table {
    const PATH: &str = PATH;

    fn read() -> io::Result<Self> {
        read().map(|text| Self::parse(&text))
    }
}

impl Table {
    fn parse(text: &str) -> Self {
        let mut table = Self::default();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(Ok(address)) = words.next().map(str::parse::<IpAddr>) else {
                continue;
            };
            // Inside, the loopback is the sandbox's own. What the host calls itself there
            // is not to be found.
            if address.is_loopback() || address.is_unspecified() {
                continue;
            }
            let names = words.filter_map(|word| Hostname::from_wire(word.as_bytes()));
            for name in names.filter(|name| !name.is_localhost()) {
                table.names.entry(address).or_insert_with(|| name.clone());
                let known = table.addresses.entry(name).or_default();
                if !known.contains(&address) {
                    known.push(address);
                }
            }
        }
        table
    }

    /// The addresses of a name. Nothing if the file does not have it.
    pub(crate) fn addresses(&self, name: &Hostname) -> &[IpAddr] {
        self.addresses.get(name).map_or(&[], Vec::as_slice)
    }

    /// The first name of an address.
    pub(crate) fn name(&self, address: IpAddr) -> Option<&Hostname> {
        self.names.get(&address)
    }
}

/// Whether the file gives a name an address of the host's loopback. Such names are not kept: a list
/// of blocked hosts may have a million of them.
pub(crate) fn is_own(name: &Hostname) -> bool {
    let text = read().unwrap_or_default();
    text.lines().any(|line| {
        let mut words = line
            .split('#')
            .next()
            .unwrap_or_default()
            .split_whitespace();
        let address = words.next().map(str::parse::<IpAddr>);
        matches!(address, Some(Ok(address)) if address.is_loopback())
            && words.any(|word| Hostname::from_wire(word.as_bytes()).as_ref() == Some(name))
    })
}

fn read() -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(PATH)?.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Hostname {
        text.parse().expect("a host name")
    }

    #[test]
    fn names_and_aliases_have_all_their_addresses() {
        let table = Table::parse(
            "127.0.0.1 localhost laptop\n::1 localhost\n# 10.0.0.1 no\n\
             10.0.0.5\tNas.lan nas # the big one\nfd00::5 nas\nnonsense nas\n10.0.0.5 nas\n\
             0.0.0.0 blocked.example\n",
        );
        let [four, six]: [IpAddr; 2] = ["10.0.0.5", "fd00::5"].map(|text| text.parse().unwrap());
        assert_eq!(table.addresses(&name("nas")), [four, six]);
        assert_eq!(table.addresses(&name("nas.lan")), [four]);
        for nothing in ["no", "laptop", "blocked.example"] {
            assert_eq!(table.addresses(&name(nothing)), [] as [IpAddr; 0]);
        }
        assert_eq!(table.name(four), Some(&name("nas.lan")));
    }
}
