//! The HTTP client: connections that are kept, deadlines, certificates.

use std::io;
use std::sync::Arc;

use ureq::Agent;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::resolver::DefaultResolver;
use url::Url;

use super::options::RemoteOptions;
use super::request_failure::RequestFailure;
use super::response_head::HeadConnector;

/// Clones share their connections.
#[derive(Debug, Clone)]
pub(super) struct Client {
    agent: Agent,
    has_certificates: bool,
}

impl Client {
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for certificates that cannot be read.
    pub(super) fn new(options: &RemoteOptions) -> io::Result<Client> {
        let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        let mut certificates = Vec::new();
        for item in parse_pem(&options.certificates) {
            match item {
                Ok(PemItem::Certificate(certificate)) => certificates.push(certificate),
                Ok(_) => {}
                Err(error) => return Err(invalid(format!("invalid certificates: {error}"))),
            }
        }
        let has_certificates = !certificates.is_empty();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::from(certificates))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(options.requests_max)
            .max_idle_connections_per_host(options.requests_max)
            .user_agent(concat!("refrain/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            // By default the client looks for one in the environment.
            .proxy(None)
            .tls_config(tls)
            .timeout_resolve(Some(options.connect))
            .timeout_connect(Some(options.connect))
            .timeout_recv_response(Some(options.stall))
            .timeout_per_read(Some(options.stall))
            .timeout_per_write(Some(options.stall))
            .build();
        let connector = HeadConnector::default();
        Ok(Client {
            agent: Agent::with_parts(config, connector, DefaultResolver::default()),
            has_certificates,
        })
    }

    /// What sends requests to a URL.
    pub(super) fn agent_for(&self, url: &Url) -> Result<&Agent, RequestFailure> {
        if url.scheme() == "https" && !self.has_certificates {
            let text = "no certificates of authorities were found, so the server cannot be \
                        trusted";
            let kind = io::ErrorKind::PermissionDenied;
            return Err(RequestFailure::permanent(kind, text));
        }
        Ok(&self.agent)
    }
}
