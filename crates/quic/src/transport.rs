//! How both ends are set up: socket, TLS, and the parameters of QUIC. What is chosen here is printed in the reports.
//!
//! - TLS 1.3 with one suite (AES-128-GCM, SHA-256), X25519 and an ECDSA P-256 certificate that is made at the start.
//!   The client checks the handshake's signature, but trusts any certificate: no one else is on the path.
//! - No resumption: every connection is a full handshake.
//! - CUBIC; windows of flow control that hold 1 Gbit/s at 128 ms, so that congestion control alone decides.
//! - The send buffer stays the system's: a larger one would only lengthen the queue before the interface.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quinn::congestion::{Cubic, CubicConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    AsyncUdpSocket, ClientConfig, Connection, Endpoint, EndpointConfig, Runtime, ServerConfig, TokioRuntime,
    TransportConfig, VarInt,
};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::{cipher_suite::TLS13_AES_128_GCM_SHA256, default_provider, kx_group::X25519};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme, version::TLS13};
use socket2::{Domain, Socket, Type};

use crate::perf::ALPN;
use crate::report::Settings;
use crate::{Common, During, Failure};

/// The name that the certificate has.
pub const NAME: &str = "tunnelmark.invalid";

/// A connection that hears nothing for so long ends. Probes of a handshake go out after 1, 3, 7, 15 and 31 s (RFC 9002, section 6.2), and of a
/// tenth of packets lost each way one try in five fails: with the sixth try five handshakes in 100,000 fail, with the fourth one in 800.
const SILENCE: Duration = Duration::from_secs(40);
const WINDOW: u32 = 16 << 20;

/// An endpoint with its socket, which knows what it was set to.
pub struct Place {
    /// quinn's endpoint.
    pub endpoint: Endpoint,
    socket: Arc<dyn AsyncUdpSocket>,
    common: Common,
    buffers: [usize; 2],
}

impl Place {
    /// A server's endpoint, with a fresh certificate.
    pub fn server(listen: SocketAddr, common: Common) -> Result<Self, Failure> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).during("no certificate can be made")?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .during("TLS")?
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.into()], key.into())
            .during("the certificate is not taken")?;
        tls.alpn_protocols = vec![ALPN.to_vec()];
        tls.send_tls13_tickets = 0;
        let crypto = QuicServerConfig::try_from(tls).during("TLS for QUIC")?;
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        config.transport_config(Arc::new(parameters(common)));
        Self::open(listen, common, Some(config))
    }

    /// A client's endpoint, on a port of its own.
    pub fn client(to: SocketAddr, common: Common) -> Result<Self, Failure> {
        let any: SocketAddr = if to.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
        let provider = provider();
        let mut tls = rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])
            .during("TLS")?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
            .with_no_client_auth();
        tls.alpn_protocols = vec![ALPN.to_vec()];
        tls.resumption = Resumption::disabled();
        let crypto = QuicClientConfig::try_from(tls).during("TLS for QUIC")?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(parameters(common)));
        let mut place = Self::open(any, common, None)?;
        place.endpoint.set_default_client_config(config);
        Ok(place)
    }

    fn open(at: SocketAddr, common: Common, config: Option<ServerConfig>) -> Result<Self, Failure> {
        let what = format!("no socket on {at}");
        let socket = Socket::new(Domain::for_address(at), Type::DGRAM, None).during(&what)?;
        socket.set_recv_buffer_size(common.receive_buffer).during(&what)?;
        socket.bind(&at.into()).during(&what)?;
        let buffers = [socket.recv_buffer_size().during(&what)?, socket.send_buffer_size().during(&what)?];
        let socket = TokioRuntime.wrap_udp_socket(socket.into()).during(&what)?;
        let runtime = Arc::new(TokioRuntime);
        let endpoint = Endpoint::new_with_abstract_socket(EndpointConfig::default(), config, socket.clone(), runtime)
            .during(&what)?;
        Ok(Self { endpoint, socket, common, buffers })
    }

    /// What this endpoint was set to, and what became of it.
    pub fn settings(&self) -> Settings {
        let segments = if self.common.gso { self.socket.max_transmit_segments() } else { 1 };
        Settings {
            gso_asked: self.common.gso,
            gso: segments > 1,
            receive_buffer: self.buffers[0],
            send_buffer: self.buffers[1],
            flow_window: WINDOW,
        }
    }
}

/// Which congestion control a connection really has.
pub fn congestion_control(connection: &Connection) -> String {
    let state = connection.congestion_state().into_any();
    if state.is::<Cubic>() { "cubic".into() } else { "unknown".into() }
}

fn parameters(common: Common) -> TransportConfig {
    let mut config = TransportConfig::default();
    config
        .congestion_controller_factory(Arc::new(CubicConfig::default()))
        .max_idle_timeout(Some(SILENCE.try_into().expect("forty seconds fit")))
        .stream_receive_window(VarInt::from_u32(WINDOW))
        .send_window(WINDOW.into())
        .enable_segmentation_offload(common.gso);
    config
}

fn provider() -> Arc<CryptoProvider> {
    let mut provider = default_provider();
    provider.cipher_suites = vec![TLS13_AES_128_GCM_SHA256];
    provider.kx_groups = vec![X25519];
    Arc::new(provider)
}

/// Trusts any certificate whose key the other end holds.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
