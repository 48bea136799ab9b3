//! Reads the JSON file that lists the nodes of the mesh.

use std::net::{Ipv4Addr, SocketAddr};

use serde::Deserialize;

/// What protects the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cipher {
    /// Nothing: the packet inside is the datagram outside.
    None,
    /// RFC 8439, with a counter as the nonce and a key for each direction of each pair.
    Chacha20Poly1305,
}

/// One other node of the mesh.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Its number in the mesh, which is in every packet that it seals.
    pub number: u32,
    /// Its address inside.
    pub overlay: Ipv4Addr,
    /// Where its datagrams come from and go to.
    pub endpoint: SocketAddr,
    /// The key of what is sent to it: 64 hexadecimal digits; none without a cipher.
    pub send: Option<String>,
    /// The key of what it sends.
    pub receive: Option<String>,
}

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The name of the TUN device to make.
    pub interface: String,
    /// The address and port that datagrams are received on.
    pub listen: SocketAddr,
    /// What protects the packets.
    pub cipher: Cipher,
    /// This node's number in the mesh.
    pub number: u32,
    /// Bytes that may wait in the socket until they are read (`SO_RCVBUF`); none: what the kernel gives.
    pub receive_buffer: Option<u32>,
    /// All other nodes.
    pub peers: Vec<Peer>,
}

impl Config {
    /// Reads the file's text; an error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let config: Self = serde_json::from_str(text).map_err(|why| why.to_string())?;
        if config.interface.is_empty() || config.interface.len() >= libc::IFNAMSIZ {
            return Err(format!("{:?} is not a name of an interface", config.interface));
        }
        for (place, peer) in config.peers.iter().enumerate() {
            let before = &config.peers[..place];
            if before.iter().any(|other| other.overlay == peer.overlay) {
                return Err(format!("two peers have the address {}", peer.overlay));
            }
            if peer.number == config.number || before.iter().any(|other| other.number == peer.number) {
                return Err(format!("two nodes have the number {}", peer.number));
            }
            if config.cipher != Cipher::None && (peer.send.is_none() || peer.receive.is_none()) {
                return Err(format!("{} has no keys, and the cipher needs them", peer.overlay));
            }
        }
        Ok(config)
    }
}

/// 32 bytes from 64 hexadecimal digits.
pub fn key(digits: &str) -> Result<[u8; 32], String> {
    let wrong = || "a key must be 64 hexadecimal digits".to_owned();
    let mut bytes = [0; 32];
    if digits.len() != 64 || !digits.is_ascii() {
        return Err(wrong());
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).map_err(|_| wrong())?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = r#"{"interface": "anchor0", "listen": "10.50.0.1:4700", "cipher": "none", "number": 0,
        "peers": [{"number": 1, "overlay": "10.60.0.2", "endpoint": "10.50.0.2:4700"}]}"#;

    #[test]
    fn a_file_is_read() {
        let config = Config::parse(PLAIN).unwrap();
        assert_eq!(config.cipher, Cipher::None);
        assert_eq!(config.peers[0].endpoint, "10.50.0.2:4700".parse().unwrap());
    }

    #[test]
    fn a_cipher_without_keys_is_refused() {
        let text = PLAIN.replace("none", "chacha20-poly1305");
        assert!(Config::parse(&text).unwrap_err().contains("no keys"));
    }

    #[test]
    fn a_number_or_an_address_that_two_have_is_refused() {
        assert!(Config::parse(&PLAIN.replace("\"number\": 1", "\"number\": 0")).unwrap_err().contains("number 0"));
        let peer = r#"{"number": 1, "overlay": "10.60.0.2", "endpoint": "10.50.0.2:4700"}"#;
        let twice = PLAIN.replace(peer, &format!("{peer}, {}", peer.replace("\"number\": 1", "\"number\": 2")));
        assert!(Config::parse(&twice).unwrap_err().contains("10.60.0.2"));
    }

    #[test]
    fn an_unknown_word_is_refused() {
        assert!(Config::parse(&PLAIN.replace("\"cipher\"", "\"chiper\"")).is_err());
    }

    #[test]
    fn a_key_is_64_hexadecimal_digits() {
        assert_eq!(key(&"0a".repeat(32)).unwrap(), [10; 32]);
        for wrong in ["", "0a", &"g0".repeat(32), &"é".repeat(32)] {
            assert!(key(wrong).is_err(), "{wrong}");
        }
    }
}
