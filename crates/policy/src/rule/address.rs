//! Addresses and networks, each in its one canonical notation.
//!
//! `inet_aton` and its heirs read `010.1`, `0x7f.1` and `2130706433` as
//! addresses, each program a little differently: an old way past filters. Here
//! they are errors that say what the notation would have meant.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv4Subnets};

use crate::syntax::{Fault, Part, Problem};

/// Reads `address` or `address/length`. `enclosed` is the target with its
/// brackets, if any: what a correction in another notation replaces.
pub(super) fn network(target: Part<'_>, enclosed: Part<'_>) -> Result<IpNet, Fault> {
    let (address_part, length_part) = match target.split_once("/") {
        Some((address, length)) => (address, Some(length)),
        None => (target, None),
    };
    if let Some(whole) = shortened(address_part.text) {
        // Whoever leaves out the end means a network. Of two numbers alone that is not so sure.
        let fault = address_part.fault(Problem::Ipv4);
        match length_part {
            Some(_) => return Err(fault.mend(whole.addr().to_string())),
            None if whole.prefix_len() == 24 => return Err(fault.mend(whole.to_string())),
            None => {}
        }
    }
    let address = address(address_part)?;
    let network = match length_part {
        None => IpNet::from(address),
        Some(part) => {
            let length = prefix_length(part, address)?;
            IpNet::new(address, length).map_err(|_| part.fault(Problem::Ipv4))?
        }
    };
    if let Some(mapped) = mapped(network) {
        let text = match length_part {
            None => mapped.addr().to_string(),
            Some(_) => mapped.to_string(),
        };
        return Err(enclosed.fault(Problem::Mapped).mend(text));
    }
    if network.trunc() != network {
        let fault = target.fault(Problem::HostBits(network.prefix_len()));
        return Err(fault.mend(network.trunc().to_string()));
    }
    Ok(network)
}

/// The IPv4 network that an IPv4-mapped one stands for.
fn mapped(network: IpNet) -> Option<Ipv4Net> {
    let IpNet::V6(network) = network else {
        return None;
    };
    let address = network.addr().to_ipv4_mapped()?;
    let length = network.prefix_len().checked_sub(96)?;
    Ipv4Net::new(address, length).ok()
}

fn prefix_length(part: Part<'_>, address: IpAddr) -> Result<u8, Fault> {
    let max = if address.is_ipv4() { 32 } else { 128 };
    let fault = part.fault(Problem::PrefixLength {
        text: part.text.to_owned(),
        max,
    });
    // A netmask, as in older notations.
    if let Ok(mask) = part.text.parse::<Ipv4Addr>() {
        return Err(match ipnet::ipv4_mask_to_prefix(mask) {
            Ok(length) if address.is_ipv4() => fault.mend(length.to_string()),
            _ => fault,
        });
    }
    if part.text.is_empty() || !part.text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(fault);
    }
    let digits = part.text.trim_start_matches('0');
    if digits != part.text && part.text != "0" {
        return Err(fault.mend(if digits.is_empty() { "0" } else { digits }));
    }
    part.text
        .parse()
        .ok()
        .filter(|length| *length <= max)
        .ok_or(fault)
}

fn address(part: Part<'_>) -> Result<IpAddr, Fault> {
    if part.text.is_empty() {
        return Err(part.fault(Problem::NoTarget));
    }
    if part.text.contains(':') {
        return ipv6(part).map(IpAddr::V6);
    }
    if let Ok(address) = part.text.parse::<Ipv4Addr>() {
        return Ok(address.into());
    }
    Err(malformed_ipv4(part))
}

/// Whether the text is meant as an address or network, and not as a name.
pub(crate) fn is_address(text: &str) -> bool {
    let (address, _) = text.split_once('/').unwrap_or((text, ""));
    address.contains(':')
        || ends_in_number(address)
        || starred(address).is_some()
        || range(address).is_some()
}

/// The network that is meant by `192.168.10`, where `/24` may follow.
fn shortened(text: &str) -> Option<Ipv4Net> {
    let padded = |number: &str| number.len() > 1 && number.starts_with('0');
    let count = text.split('.').count();
    let missing = 4_usize.checked_sub(count).filter(|missing| *missing > 0)?;
    if text.split('.').any(padded) {
        return None;
    }
    let address: Ipv4Addr = format!("{text}{}", ".0".repeat(missing)).parse().ok()?;
    let length = u8::try_from(count).ok()?.checked_mul(8)?;
    Ipv4Net::new(address, length).ok()
}

/// The first and the last address that are meant by `10.0.0.20-30` or `10.0.0.20-10.0.0.30`.
fn range(text: &str) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let (first, last) = text.split_once('-')?;
    let first: Ipv4Addr = first.parse().ok()?;
    let [a, b, c, _] = first.octets();
    let last = match last.parse::<u8>() {
        Ok(d) => [a, b, c, d].into(),
        Err(_) => last.parse().ok()?,
    };
    Some((first, last))
}

/// The network that is meant by `10.0.*` or `10.0.*.*`.
fn starred(text: &str) -> Option<Ipv4Net> {
    let numbers = text.trim_end_matches(['*', '.']);
    if !text.ends_with('*') || numbers.is_empty() {
        return None;
    }
    let mut octets = [0; 4];
    let mut length = 0_u8;
    for (number, octet) in numbers.split('.').zip(octets.iter_mut()) {
        *octet = number.parse().ok()?;
        length = length.saturating_add(8);
    }
    Ipv4Net::new(octets.into(), length)
        .ok()
        .filter(|network| network.prefix_len() < 32)
}

fn ipv6(part: Part<'_>) -> Result<Ipv6Addr, Fault> {
    if let Some((address, zone)) = part.split_once("%") {
        let with_percent = address.span().end..zone.span().end;
        let span = with_percent.clone();
        return Err(Fault::new(Problem::Zone, span).mend_at(with_percent, ""));
    }
    part.text
        .parse()
        .map_err(|_| part.fault(Problem::Ipv6(part.text.to_owned())))
}

/// Whether the text is meant as an IPv4 address: no top-level domain is a
/// number, so a name cannot end in one (the test of the URL standard).
pub(crate) fn ends_in_number(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    let last = text.rsplit('.').next().unwrap_or_default();
    !last.is_empty()
        && (last.bytes().all(|byte| byte.is_ascii_digit()) || hexadecimal(last).is_some())
}

fn hexadecimal(number: &str) -> Option<&str> {
    let digits = number
        .strip_prefix("0x")
        .or_else(|| number.strip_prefix("0X"))?;
    digits
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then_some(digits)
}

/// Says what is wrong with an IPv4 address that does not parse.
fn malformed_ipv4(part: Part<'_>) -> Fault {
    if let Some(network) = starred(part.text) {
        return part.fault(Problem::StarInAddress).mend(network.to_string());
    }
    if let Some((first, last)) = range(part.text) {
        let fault = part.fault(Problem::AddressRange);
        let mut networks = Ipv4Subnets::new(first, last, 0);
        return match (networks.next(), networks.next()) {
            (Some(one), None) => fault.mend(one.to_string()),
            _ => fault,
        };
    }
    if let Some(text) = part.text.strip_suffix('.') {
        return part.fault(Problem::Ipv4).mend(text);
    }
    let numbers = || part.split('.');
    if let Some(number) = numbers().find(|number| hexadecimal(number.text).is_some()) {
        let fault = number.fault(Problem::Hexadecimal(number.text.to_owned()));
        return match as_inet_aton(part.text) {
            Some(address) => fault.mend_at(part.span(), address.to_string()),
            None => fault,
        };
    }
    let padded = |number: &Part<'_>| number.text.len() > 1 && number.text.starts_with('0');
    if let Some(number) = numbers().find(padded) {
        // People pad with zeros; only programs mean octal.
        let decimal = match number.text.trim_start_matches('0') {
            "" => "0",
            decimal => decimal,
        };
        let problem = Problem::LeadingZero(number.text.to_owned());
        return number.fault(problem).mend(decimal);
    }
    let fault = part.fault(Problem::Ipv4);
    match as_inet_aton(part.text) {
        Some(address) => fault.mend(address.to_string()),
        None => fault,
    }
}

/// The address that `inet_aton` makes of one to four decimal, hexadecimal or
/// octal numbers, the last of which fills all bytes that are left.
fn as_inet_aton(text: &str) -> Option<Ipv4Addr> {
    let mut numbers = text.split('.').map(number).collect::<Option<Vec<u32>>>()?;
    let last = numbers.pop()?;
    let filled = u32::try_from(numbers.len())
        .ok()
        .filter(|count| *count < 4)?;
    let room = 4_u32.checked_sub(filled)?.checked_mul(8)?;
    if last.checked_shr(room).unwrap_or(0) != 0 {
        return None;
    }
    let mut high = 0_u32;
    for number in numbers {
        high = high << 8 | u32::from(u8::try_from(number).ok()?);
    }
    Some((high.checked_shl(room).unwrap_or(0) | last).into())
}

fn number(text: &str) -> Option<u32> {
    let (digits, radix) = match hexadecimal(text) {
        Some("") => return Some(0),
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    u32::from_str_radix(digits, radix).ok().filter(|_| is_plain)
}
