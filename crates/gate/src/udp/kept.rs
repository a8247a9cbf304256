//! Datagrams of flows that wait for the user's answer.

use std::collections::HashMap;

use crate::flows::FlowKey;

/// Of one flow. More are lost, as on any network.
const DATAGRAMS: usize = 8;
/// Of all flows together.
const BYTES: usize = 256 << 10;

#[derive(Debug, Default)]
pub(super) struct Kept {
    flows: HashMap<FlowKey, Vec<Vec<u8>>>,
    bytes: usize,
}

impl Kept {
    /// The first one of a flow.
    pub(super) fn begin(&mut self, key: FlowKey, datagram: &[u8]) {
        self.flows.insert(key, Vec::new());
        self.add(key, datagram);
    }

    /// One more of a flow that waits. Whether it does.
    pub(super) fn add(&mut self, key: FlowKey, datagram: &[u8]) -> bool {
        let Some(kept) = self.flows.get_mut(&key) else {
            return false;
        };
        let bytes = self.bytes.saturating_add(datagram.len());
        if kept.len() < DATAGRAMS && bytes <= BYTES {
            kept.push(datagram.to_vec());
            self.bytes = bytes;
        }
        true
    }

    /// The flow waits no more.
    pub(super) fn take(&mut self, key: FlowKey) -> Vec<Vec<u8>> {
        let kept = self.flows.remove(&key).unwrap_or_default();
        self.bytes -= kept.iter().map(Vec::len).sum::<usize>();
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_bounded_for_each_flow_and_for_all_and_their_room_comes_back() {
        let key = |port: u16| FlowKey {
            client: ([192, 0, 2, 1], port).into(),
            destination: ([192, 0, 2, 7], 7).into(),
        };
        let mut kept = Kept::default();
        assert!(!kept.add(key(1), &[0; 9]));
        kept.begin(key(1), &[1; 9]);
        for _ in 0..2 * DATAGRAMS {
            assert!(kept.add(key(1), &[2; 9]));
        }
        assert_eq!(kept.take(key(1)).len(), DATAGRAMS);
        assert_eq!(kept.bytes, 0);
        for port in 1..=100 {
            kept.begin(key(port), &[0; 60_000]);
        }
        assert!(kept.bytes <= BYTES && kept.bytes > BYTES / 2);
        let left: usize = (1..=100).map(|port| kept.take(key(port)).len()).sum();
        assert_eq!((left, kept.bytes), (BYTES / 60_000, 0));
    }
}
