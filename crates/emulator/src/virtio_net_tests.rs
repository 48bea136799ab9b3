use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

/// A TCP super-packet over IPv4 with 3 parts of 1000, 1000 and 500 bytes; payload byte i is i mod 251.
fn tcp() -> (Vnet, Vec<u8>) {
    let mut frame = vec![0u8; 14 + 20 + 32 + 2500];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&2552u16.to_be_bytes());
    frame[18..20].copy_from_slice(&7u16.to_be_bytes());
    frame[23] = 6;
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[38..42].copy_from_slice(&1000u32.to_be_bytes());
    frame[46] = 8 << 4;
    frame[47] = 0x80 | 0x18 | 0x01;
    for (i, byte) in frame[66..].iter_mut().enumerate() {
        *byte = (i % 251) as u8;
    }
    (Vnet { flags: 1, gso_type: 1, hdr_len: 66, gso_size: 1000, csum_start: 34, csum_offset: 16 }, frame)
}

#[test]
fn a_header_survives_its_bytes() {
    let (vnet, _) = tcp();
    assert_eq!(Vnet::parse(&vnet.bytes()), vnet);
}

#[test]
fn parts_have_their_lengths() {
    let (vnet, frame) = tcp();
    let parts = Parts::of(&vnet, &frame).unwrap();
    assert_eq!((parts.count, parts.heads), (3, 66));
    assert_eq!((parts.len(0), parts.len(2), parts.wire_len()), (1066, 566, 3 * 66 + 2500));
    assert_eq!(parts.body(1, 2), 1066..2566);
    assert!(Parts::of(&Vnet::default(), &frame).is_none());
}

#[test]
fn a_part_is_a_whole_packet() {
    let (vnet, frame) = tcp();
    let parts = Parts::of(&vnet, &frame).unwrap();
    for (first, last, flags) in [(0, 0, 0x90), (1, 1, 0x10), (2, 2, 0x19), (0, 1, 0x90), (1, 2, 0x19)] {
        let mut heads = [0; HEADS];
        let mut out = parts.head(&vnet, &frame, first, last, &mut heads);
        let mut packet = heads[..66].to_vec();
        packet.extend_from_slice(&frame[parts.body(first, last)]);
        assert_eq!(usize::from(u16::from_be_bytes([packet[16], packet[17]])), packet.len() - 14);
        assert_eq!(u16::from_be_bytes([packet[18], packet[19]]), 7 + first as u16);
        assert_eq!(u32::from_be_bytes(packet[38..42].try_into().unwrap()), 1000 + first * 1000);
        assert_eq!(packet[47], flags);
        assert_eq!(inet::fold(inet::sum(&packet[14..34])), 0xffff, "IPv4 header checksum");
        assert_eq!(out.gso_size, if first == last { 0 } else { 1000 });
        out.complete_checksum(&mut packet);
        let pseudo = Network::V4(14).pseudo(&packet, 6, (packet.len() - 34) as u32);
        assert_eq!(inet::fold(pseudo + inet::sum(&packet[34..])), 0xffff, "TCP checksum");
    }
}

#[test]
fn a_super_packet_inside_a_tunnel_is_left_alone() {
    let (vnet, inner) = tcp();
    let mut frame = vec![0u8; 14 + 20 + 8 + 8];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[23] = 17;
    frame[36..38].copy_from_slice(&4789u16.to_be_bytes()); // VXLAN
    let before = frame.len() as u16;
    frame.extend_from_slice(&inner);
    let inside = Vnet { csum_start: before + vnet.csum_start, hdr_len: before + vnet.hdr_len, ..vnet };
    assert!(Parts::of(&inside, &frame).is_none());
    frame[23] = 6;
    assert!(Parts::of(&inside, &frame).is_none(), "not the outer header's transport");
}

#[test]
fn udp_over_ipv6_behind_a_tag() {
    let mut frame = vec![0u8; 18 + 40 + 8 + 300];
    frame[12..18].copy_from_slice(&[0x81, 0, 0, 5, 0x86, 0xdd]);
    frame[18] = 0x60;
    frame[24] = 17;
    frame[26] = 0xfd;
    let vnet = Vnet { flags: 1, gso_type: 5, hdr_len: 66, gso_size: 120, csum_start: 58, csum_offset: 6 };
    let parts = Parts::of(&vnet, &frame).unwrap();
    assert_eq!((parts.count, parts.len(2)), (3, 66 + 60));
    let mut heads = [0; HEADS];
    let mut out = parts.head(&vnet, &frame, 2, 2, &mut heads);
    let mut packet = heads[..66].to_vec();
    packet.extend_from_slice(&frame[parts.body(2, 2)]);
    assert_eq!((packet[23], packet[63]), (68, 68), "lengths of payload and datagram");
    out.complete_checksum(&mut packet);
    let pseudo = Network::V6(18).pseudo(&packet, 17, 68);
    assert_eq!(inet::fold(pseudo + inet::sum(&packet[58..])), 0xffff);
}

#[test]
fn broken_frames_are_not_parted() {
    let (vnet, frame) = tcp();
    for end in 0..67 {
        assert!(Parts::of(&vnet, &frame[..end]).is_none());
    }
    let odd = Vnet { csum_start: 60_000, ..vnet };
    assert!(Parts::of(&odd, &frame).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]
    /// Whatever a node hands over: parts tile the payload, and nothing panics.
    #[test]
    fn any_frame_is_parted_or_left_alone(
        flags in 0u8..4,
        kind in prop_oneof![Just(1u8), Just(4), Just(5), any::<u8>()],
        words in any::<[u16; 3]>(),
        near in any::<bool>(),
        (at, network) in prop_oneof![Just((34u16, [8u8, 0])), Just((54, [0x86, 0xdd]))],
        tail in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut frame = vec![0u8; 12];
        frame.extend_from_slice(&network);
        frame.extend_from_slice(&tail);
        if near && tail.len() > 10 {
            let protocol = if kind == 5 { 17 } else { 6 };
            (frame[14], frame[if at == 34 { 23 } else { 20 }]) = (0x45, protocol);
        }
        let (start, offset) = if near { (at, 16) } else { (words[1], words[2]) };
        let size = words[0] % 200;
        let mut vnet =
            Vnet { flags, gso_type: kind, hdr_len: 0, gso_size: size, csum_start: start, csum_offset: offset };
        if let Some(parts) = Parts::of(&vnet, &frame) {
            let mut expected = parts.heads as usize;
            for part in 0..parts.count {
                let body = parts.body(part, part);
                prop_assert_eq!((body.start, body.len() as u32 + parts.heads), (expected, parts.len(part)));
                expected = body.end;
                parts.head(&vnet, &frame, part, parts.count - 1, &mut [0; HEADS]);
            }
            prop_assert_eq!(expected, frame.len());
        }
        vnet.complete_checksum(&mut frame);
    }
}

/// One UDP packet over IPv6 or TCP packet over IPv4, its checksum left to hardware as the kernel does.
fn left_to_hardware(v6: bool, payload: usize) -> (Vec<u8>, usize, usize) {
    let (kind, network, header) = if v6 { ([0x86, 0xdd], 40, 8) } else { ([8, 0], 20, 20) };
    let start = 14 + network;
    let mut frame = vec![0u8; start + header + payload];
    frame[12..14].copy_from_slice(&kind);
    for (i, byte) in frame[start..].iter_mut().enumerate() {
        *byte = (i * 7 % 253) as u8;
    }
    let length = (header + payload) as u16;
    let field = if v6 {
        frame[14] = 0x60;
        frame[18..20].copy_from_slice(&length.to_be_bytes());
        frame[20] = 17;
        frame[22..54].copy_from_slice(&std::array::from_fn::<u8, 32, _>(|i| i as u8 + 1));
        start + 6
    } else {
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(length + 20).to_be_bytes());
        frame[23] = 6;
        frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        start + 16
    };
    let pseudo = inet::fold(Network::of(&frame).unwrap().pseudo(&frame, if v6 { 17 } else { 6 }, u32::from(length)));
    frame[field..field + 2].copy_from_slice(&pseudo.to_be_bytes());
    (frame, start, field)
}

#[test]
fn a_checksum_that_was_left_to_hardware_is_recognised_and_made_good() {
    for (v6, payload) in [(false, 1000), (false, 1), (false, 0), (true, 1200), (true, 3)] {
        let (mut frame, start, _) = left_to_hardware(v6, payload);
        let mut vnet = Vnet::unfinished(&frame);
        assert_eq!((vnet.flags, usize::from(vnet.csum_start), vnet.gso_type), (NEEDS_CSUM, start, 0));
        vnet.complete_checksum(&mut frame);
        // RFC 1071: the sum of all, checksum included, is all ones.
        let protocol = if v6 { 17 } else { 6 };
        let pseudo = Network::of(&frame).unwrap().pseudo(&frame, protocol, (frame.len() - start) as u32);
        assert_eq!(inet::fold(pseudo + inet::sum(&frame[start..])), 0xffff);
        assert_eq!(Vnet::unfinished(&frame), Vnet::default(), "what is whole is left alone");
    }
}

#[test]
fn fragments_and_padded_frames_are_left_alone() {
    let (mut frame, _, _) = left_to_hardware(false, 100);
    frame[20] = 0x20; // more fragments
    assert_eq!(Vnet::unfinished(&frame), Vnet::default());
    let (mut frame, _, _) = left_to_hardware(false, 2);
    frame.extend([9; 4]);
    assert_eq!(Vnet::unfinished(&frame), Vnet::default());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]
    #[test]
    fn no_frame_is_too_broken_to_be_looked_at(mut frame in prop::collection::vec(any::<u8>(), 0..80), v6: bool) {
        if frame.len() >= 14 {
            frame[12..14].copy_from_slice(if v6 { &[0x86, 0xdd] } else { &[8, 0] });
        }
        let mut vnet = Vnet::unfinished(&frame);
        vnet.complete_checksum(&mut frame);
    }
}
