//! `simple-dns` as the second opinion on DNS messages. It decodes every record,
//! so it refuses more than a forwarder does, and is laxer about compression: only
//! what both accept can be compared.

use simple_dns::Packet;
use stockade_wire::dns::Query;

/// That both understand the same from a query.
pub fn assert_same_question(query: &Query, other: &Packet<'_>) {
    let [question] = &other.questions[..] else {
        panic!("{} questions", other.questions.len());
    };
    let labels: Vec<Vec<u8>> = question
        .qname
        .iter()
        .map(|label| label.as_ref().to_ascii_lowercase())
        .collect();
    assert!(query.name().labels().eq(labels.iter().map(Vec::as_slice)));
    assert_eq!(query.qtype().0, u16::from(question.qtype));
    let class = query.qclass().0;
    assert_eq!(class & 0x7fff, u16::from(question.qclass));
    assert_eq!(class & 0x8000 != 0, question.unicast_response);
}

/// Where the question ends, in any message about it.
pub fn question_end(query: &Query) -> usize {
    let name: usize = query.name().labels().map(|label| label.len() + 1).sum();
    12 + name + 1 + 4
}

/// The response made one to this query: no fuzzer repeats a question by chance.
pub fn fitting(query: &Query, asked: &[u8], response: &[u8]) -> Vec<u8> {
    let (header, records) = response.split_at(response.len().min(12));
    let mut fitting = header.to_vec();
    fitting.resize(12, 0);
    fitting[2] = fitting[2] & 0x87 | 0x80;
    fitting[4..6].copy_from_slice(&[0, 1]);
    fitting.extend_from_slice(&asked[12..question_end(query)]);
    fitting.extend_from_slice(records);
    fitting
}

/// How many records a message says it has, the EDNS record included.
pub fn counts(message: &[u8]) -> [usize; 3] {
    [6, 8, 10].map(|at| usize::from(u16::from_be_bytes([message[at], message[at + 1]])))
}

/// How many records were decoded.
pub fn decoded_counts(packet: &Packet<'_>) -> [usize; 3] {
    [
        packet.answers.len(),
        packet.name_servers.len(),
        packet.additional_records.len() + usize::from(packet.opt().is_some()),
    ]
}
