//! Chooses the ports that a frame goes to: by its destination's Ethernet address, as a switch does.

/// Ports by Ethernet address, given or learnt.
pub struct Switch {
    ports: usize,
    table: Vec<([u8; 6], usize, bool)>,
}

/// Learnt addresses are few in a lab; more would be an attack or a loop.
const MOST: usize = 1024;

impl Switch {
    pub fn new(ports: usize, given: &[([u8; 6], usize)]) -> Self {
        Self { ports, table: given.iter().map(|&(mac, port)| (mac, port, true)).collect() }
    }

    /// The ports that a frame from `from` goes to, as bits; learns where its sender is.
    #[inline]
    pub fn route(&mut self, from: usize, frame: &[u8]) -> u64 {
        let others = (u64::MAX >> (64 - self.ports)) & !(1 << from);
        if self.ports == 2 {
            return others;
        }
        let (to, source) = (&frame[..6], &frame[6..12]);
        self.learn(from, source);
        if to[0] & 1 == 1 {
            return others;
        }
        match self.table.iter().find(|(mac, _, _)| mac == to) {
            Some(&(_, port, _)) => others & 1 << port,
            None => others,
        }
    }

    fn learn(&mut self, from: usize, source: &[u8]) {
        if source[0] & 1 == 1 {
            return;
        }
        let room = self.table.len() < MOST;
        match self.table.iter_mut().find(|(mac, _, _)| mac == source) {
            Some((_, port, given)) if !*given => *port = from,
            Some(_) => {}
            None if room => {
                if let Ok(mac) = source.try_into() {
                    self.table.push((mac, from, false));
                }
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(to: u8, from: u8) -> [u8; 14] {
        let mut frame = [0; 14];
        (frame[0], frame[5], frame[6], frame[11]) = (if to == 255 { 255 } else { 2 }, to, 2, from);
        frame
    }

    #[test]
    fn frames_go_to_their_destination_once_it_is_known() {
        let mut switch = Switch::new(3, &[([2, 0, 0, 0, 0, 9], 2)]);
        assert_eq!(switch.route(0, &frame(8, 7)), 0b110);
        assert_eq!(switch.route(1, &frame(7, 8)), 0b001);
        assert_eq!(switch.route(0, &frame(8, 7)), 0b010);
        assert_eq!(switch.route(0, &frame(9, 7)), 0b100);
        assert_eq!(switch.route(0, &frame(255, 7)), 0b110);
        assert_eq!(switch.route(0, &frame(7, 7)), 0, "nothing goes back");
        assert_eq!(Switch::new(2, &[]).route(1, &frame(1, 1)), 0b01);
        assert_eq!(Switch::new(64, &[]).route(0, &frame(255, 7)), u64::MAX - 1);
    }
}
