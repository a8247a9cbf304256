//! From a query to a reply, right or wrong.

use simple_dns::rdata::{OPT, RData};
use simple_dns::{CLASS, Name, Packet, PacketFlag, QTYPE, Question, RCODE, ResourceRecord, TYPE};

use super::Transport;
use super::zone::{self, Misbehaviour, Zone};

/// Aliases are followed this far, and loops end there.
const LONGEST_CHAIN: usize = 16;

/// Name and type of the first question, for the log.
pub(super) fn question(message: &[u8]) -> (String, String) {
    let packet = Packet::parse(message).ok();
    let question = packet.as_ref().and_then(|packet| packet.questions.first());
    match question {
        Some(question) => (
            zone::normal(&question.qname.to_string()),
            match question.qtype {
                QTYPE::TYPE(kind) => format!("{kind:?}"),
                other => format!("{other:?}"),
            },
        ),
        None => Default::default(),
    }
}

/// `None` for silence.
pub(super) fn reply(
    zone: &mut Zone,
    message: &[u8],
    transport: Transport,
    how: Option<Misbehaviour>,
) -> Option<Vec<u8>> {
    let id = u16::from_be_bytes(message.get(..2)?.try_into().ok()?);
    let parsed = Packet::parse(message).ok();
    let mut packet = Packet::new_reply(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED | PacketFlag::RECURSION_AVAILABLE);
    let mut room = match transport {
        Transport::Udp => 512,
        Transport::Tcp => usize::from(u16::MAX),
    };
    match parsed.as_ref().and_then(|query| query.questions.first()) {
        Some(question) => {
            packet.questions.push(question.clone());
            fill(zone, question, &mut packet);
        }
        None => *packet.rcode_mut() = RCODE::FormatError,
    }
    if let Some(opt) = parsed.as_ref().and_then(|query| query.opt()) {
        room = room.max(usize::from(opt.udp_packet_size));
        *packet.opt_mut() = Some(OPT {
            opt_codes: Vec::new(),
            udp_packet_size: 1232,
            version: 0,
        });
    }

    match how {
        None | Some(Misbehaviour::Slow(_)) => {}
        Some(Misbehaviour::Silent) => return None,
        Some(Misbehaviour::Raw(bytes)) => return Some([&id.to_be_bytes(), bytes].concat()),
        Some(Misbehaviour::WrongId) => packet.set_id(id.wrapping_add(1)),
        Some(Misbehaviour::WrongQuestion) => {
            for question in &mut packet.questions {
                question.qname = Name::new_unchecked("not.what.was.asked");
            }
        }
        Some(Misbehaviour::Truncated) => {
            if transport == Transport::Udp {
                room = 0;
            }
        }
        Some(Misbehaviour::Code(code)) => {
            packet.answers.clear();
            *packet.rcode_mut() = code;
        }
        Some(Misbehaviour::Unasked(among, beside)) => {
            let of =
                |name, address| ResourceRecord::new(name, CLASS::IN, 60, zone::address(address));
            let stranger = Name::new_unchecked("not.what.was.asked");
            packet.answers.push(of(stranger, among));
            let asked = packet
                .questions
                .iter()
                .map(|question| question.qname.clone());
            let more: Vec<_> = asked.map(|name| of(name, beside)).collect();
            packet.name_servers.extend(more.clone());
            packet.additional_records.extend(more);
        }
    }

    let bytes = packet.build_bytes_vec_compressed().ok()?;
    if bytes.len() <= room {
        return Some(bytes);
    }
    packet.set_flags(PacketFlag::TRUNCATION);
    packet.answers.clear();
    packet.build_bytes_vec_compressed().ok()
}

/// Answers a question, following aliases within the zone.
fn fill<'a>(zone: &mut Zone, question: &Question<'a>, packet: &mut Packet<'a>) {
    let mut name = question.qname.clone();
    for step in 0..LONGEST_CHAIN {
        let Some((ttl, data)) = zone.look_up(&name.to_string(), question.qtype) else {
            // An alias to nowhere is still an answer for the alias.
            if step == 0 {
                *packet.rcode_mut() = RCODE::NameError;
            }
            return;
        };
        let alias = data.iter().find_map(|data| match data {
            RData::CNAME(target) => Some(target.0.clone()),
            _ => None,
        });
        packet.answers.extend(
            data.into_iter()
                .map(|data| ResourceRecord::new(name.clone(), CLASS::IN, ttl, data)),
        );
        match alias {
            Some(target) if question.qtype != QTYPE::TYPE(TYPE::CNAME) => name = target,
            _ => return,
        }
    }
}
