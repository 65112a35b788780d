//! A folder on an HTTP server, which can only be read: its names are those on the page that the
//! server shows for it.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::attempts::{FetchFailure, Repeater};
use super::client::Client;
use super::fetcher::Fetcher;
use super::head::refusal;
use super::link::Link;
use super::location::Location;
use super::options::RemoteOptions;
use super::origin::OriginServer;
use super::request_failure::{Remedy, RequestFailure};
use super::source::RemoteSource;
use crate::failure::refuse;
use crate::sink::Sink;
use crate::source::Source;
use crate::volumes::{Alone, JoinedVolume, Layout, VolumeLock, VolumePlace};

/// The most that is read of a page.
const PAGE_BYTES_MAX: u64 = 64 << 20;

/// The files below a URL.
pub struct HttpFolder {
    /// As given, with a slash at its end.
    url: String,
    location: Location,
    client: Client,
    options: RemoteOptions,
}

impl HttpFolder {
    /// The folder at an `http` or `https` URL.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if it is not such a URL, or for certificates that cannot be
    /// read.
    pub fn new(url: &str, options: &RemoteOptions) -> io::Result<HttpFolder> {
        let url = format!("{}/", url.trim_end_matches('/'));
        Ok(HttpFolder {
            location: Location::http(&url)?,
            url,
            client: Client::new(options)?,
            options: options.clone(),
        })
    }

    fn failed(&self, failure: &FetchFailure) -> io::Error {
        let name = Path::new(self.location.name());
        refuse("read", name, failure.kind, &failure.text)
    }

    /// The page that the server shows for the folder.
    fn page(&self) -> Result<String, FetchFailure> {
        let repeater = Repeater::new(&self.options);
        let mut attempts = repeater.begin();
        loop {
            attempts.count += 1;
            match self.receive_page() {
                Ok(page) => return Ok(page),
                Err(RequestFailure { remedy, text }) => match remedy {
                    Remedy::Repeat(asked) => repeater.wait(&mut attempts, &text, asked)?,
                    Remedy::None(kind) => return Err(repeater.failure(&attempts, kind, &text)),
                    Remedy::Replaced => {
                        let kind = io::ErrorKind::StaleNetworkFileHandle;
                        return Err(repeater.failure(&attempts, kind, &text));
                    }
                },
            }
        }
    }

    fn receive_page(&self) -> Result<String, RequestFailure> {
        let url = self.location.url();
        let mut request = self.client.agent_for(&url)?.get(url.as_str());
        if let Some(value) = self.location.authorization_for(&url) {
            request = request.header("Authorization", value);
        }
        let called = request.call();
        let mut response = called.map_err(|error| RequestFailure::from_client(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(refusal(status, response.headers()));
        }
        let mut bytes = Vec::new();
        let body = response.body_mut().as_reader();
        let read = body.take(PAGE_BYTES_MAX).read_to_end(&mut bytes);
        read.map_err(|error| RequestFailure::from_transport(&error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The words of a page that begin with a prefix, in order: names in links and beside them.
fn words(page: &str, prefix: &str) -> Vec<String> {
    let is_inside = |character: char| character.is_ascii_alphanumeric() || character == '-';
    let mut words: Vec<String> = page
        .split(|character| !is_inside(character))
        .filter(|word| word.starts_with(prefix) && !word.is_empty())
        .map(str::to_owned)
        .collect();
    words.sort_unstable();
    words.dedup();
    words
}

fn read_only<T>() -> io::Result<T> {
    let text = "a folder on an HTTP server cannot be written to";
    Err(io::Error::new(io::ErrorKind::Unsupported, text))
}

impl VolumePlace for HttpFolder {
    fn label(&self) -> &str {
        self.location.name().trim_end_matches('/')
    }

    fn names(&self, prefix: &str, count_max: usize) -> io::Result<Vec<String>> {
        let page = match self.page() {
            Err(failure) if failure.kind == io::ErrorKind::NotFound => return Ok(Vec::new()),
            page => page.map_err(|failure| self.failed(&failure))?,
        };
        let mut names = words(&page, prefix);
        names.truncate(count_max);
        Ok(names)
    }

    fn read(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        let location = Location::http(&format!("{}{name}", self.url))?;
        let path = location.name().to_owned();
        let failed = |kind, text: &str| refuse("read", Path::new(&path), kind, text);
        let fetcher = Fetcher::new(
            OriginServer::new(location, self.client.clone()),
            Arc::new(Repeater::new(&self.options)),
            Arc::new(Link::new(&self.options)),
        );
        let fetched = fetcher.fetch(0..bytes_max.saturating_add(1));
        let bytes = fetched.map_err(|failure| failed(failure.kind, &failure.text))?;
        if bytes.len() as u64 > bytes_max {
            let text = format!("it has more than {bytes_max} bytes");
            return Err(failed(io::ErrorKind::InvalidData, &text));
        }
        Ok(bytes)
    }

    fn joined(&self, volumes: Vec<JoinedVolume>) -> io::Result<Arc<dyn Source>> {
        let url = self.url.clone();
        Ok(Arc::new(RemoteSource::joined(
            self.label(),
            Layout::new(volumes),
            Box::new(move |name| Location::http(&format!("{url}{name}"))),
            self.client.clone(),
            &self.options,
        )))
    }

    fn create(&self, _name: &str) -> io::Result<Box<dyn Sink>> {
        read_only()
    }

    fn create_alone(&self, _name: &str, _bytes: &[u8]) -> io::Result<Alone> {
        read_only()
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        read_only()
    }

    fn lock(&self) -> io::Result<VolumeLock> {
        read_only()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_words_of_a_page() {
        let page = "<a href=\"head-2\">head-2</a>\n<a href=\"./head-1?x\">head-1...&gt;</a> ahead-3 \
                    data-1";
        assert_eq!(words(page, "head-"), ["head-1", "head-2"]);
        assert_eq!(words(page, "data-"), ["data-1"]);
    }
}
