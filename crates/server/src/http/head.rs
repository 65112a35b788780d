//! Parses and checks the head of a request: its first line and fields.

pub(super) const HEAD_BYTES_MAX: usize = 16 << 10;

/// The longest first line, in bytes.
pub(super) const LINE_BYTES_MAX: usize = 8 << 10;

/// The maximum number of fields.
const FIELDS_MAX: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Post,
    /// A method of HTTP that no resource here supports.
    Refused,
    /// Anything else.
    Unknown,
}

/// A malformed head. Each variant has its own status; the connection ends after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadError {
    /// 400
    Malformed(&'static str),
    /// 414
    LongTarget,
    /// 431
    LongHead,
    /// 505
    Version,
}

/// How the body of a request is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestBody {
    Length(u64),
    /// A transfer coding, chunked or other.
    Coded,
}

/// A request's head, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestHead {
    pub method: Method,
    /// The target as sent.
    pub target: Vec<u8>,
    /// The minor version: HTTP/1.0 or 1.1.
    pub minor_version: u8,
    /// Whether the client can reuse the connection.
    pub is_kept_alive: bool,
    pub body: RequestBody,
    /// The server's name, as the client knows it.
    pub host: Option<Vec<u8>>,
    pub range: Option<Vec<u8>>,
    pub if_range: Option<Vec<u8>>,
    pub if_match: Option<Vec<u8>>,
    pub if_none_match: Option<Vec<u8>>,
    pub if_modified_since: Option<Vec<u8>>,
    pub if_unmodified_since: Option<Vec<u8>>,
    pub accept: Option<Vec<u8>>,
    /// Whether a page of another site may have caused the request.
    pub has_origin: bool,
}

/// Parses the head at the start of `bytes`. Returns it and its length; `None` if more bytes are
/// needed.
///
/// # Errors
/// See [`HeadError`].
pub(super) fn parse_head(bytes: &[u8]) -> Result<Option<(RequestHead, usize)>, HeadError> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    let window = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
    let parsed = request.parse(window).map_err(|error| match error {
        httparse::Error::TooManyHeaders => HeadError::LongHead,
        httparse::Error::Version if is_other_version(window) => HeadError::Version,
        httparse::Error::Version => HeadError::Malformed("the version of HTTP is malformed"),
        httparse::Error::Token => HeadError::Malformed("the request line is malformed"),
        _ => HeadError::Malformed("a header field is malformed"),
    })?;
    if line_length(window) > LINE_BYTES_MAX {
        return Err(HeadError::LongTarget);
    }
    match parsed {
        httparse::Status::Complete(length) => Ok(Some((checked(&request)?, length))),
        httparse::Status::Partial if window.len() >= HEAD_BYTES_MAX => Err(HeadError::LongHead),
        httparse::Status::Partial => Ok(None),
    }
}

/// The length of the first non-empty line, as far as received.
fn line_length(bytes: &[u8]) -> usize {
    let start = bytes
        .iter()
        .take_while(|&&byte| byte == b'\r' || byte == b'\n')
        .count();
    let end = bytes[start..].iter().position(|&byte| byte == b'\n');
    end.unwrap_or(bytes.len() - start)
}

/// Whether the first line ends with a well-formed version of HTTP other than 1.0 or 1.1.
fn is_other_version(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|&byte| byte == b'\n' || byte == b'\r');
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    let word = line.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
    let number = word.strip_prefix(b"HTTP/").unwrap_or_default();
    let is_digit = |at: usize| number.get(at).is_some_and(u8::is_ascii_digit);
    match number.len() {
        1 => is_digit(0),
        3 => is_digit(0) && number[1] == b'.' && is_digit(2),
        _ => false,
    }
}

fn checked(request: &httparse::Request<'_, '_>) -> Result<RequestHead, HeadError> {
    let fields = Fields(request.headers);
    let minor_version = request.version.unwrap_or(0);
    let hosts = fields.all("host").count();
    if hosts > 1 || (hosts == 0 && minor_version >= 1) {
        return Err(HeadError::Malformed("one Host field is required"));
    }
    let has_token = |wanted: &str| {
        fields
            .list("connection")
            .any(|token| token.eq_ignore_ascii_case(wanted.as_bytes()))
    };
    Ok(RequestHead {
        method: method(request.method.unwrap_or_default()),
        target: request.path.unwrap_or_default().as_bytes().to_vec(),
        minor_version,
        is_kept_alive: match minor_version {
            0 => has_token("keep-alive") && !has_token("close"),
            _ => !has_token("close"),
        },
        body: body(&fields)?,
        host: fields.only("host"),
        range: fields.only("range"),
        if_range: fields.only("if-range"),
        if_match: fields.joined("if-match"),
        if_none_match: fields.joined("if-none-match"),
        if_modified_since: fields.only("if-modified-since"),
        if_unmodified_since: fields.only("if-unmodified-since"),
        accept: fields.joined("accept"),
        has_origin: fields.all("origin").next().is_some(),
    })
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" | "DELETE" | "CONNECT" | "OPTIONS" | "TRACE" | "PATCH" => Method::Refused,
        _ => Method::Unknown,
    }
}

/// Determines the body's framing. Refuses whatever two readers could interpret differently.
fn body(fields: &Fields<'_>) -> Result<RequestBody, HeadError> {
    let is_coded = fields.all("transfer-encoding").next().is_some();
    let mut length = None;
    for text in fields.list("content-length") {
        let digits = str::from_utf8(text)
            .ok()
            .filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
        let stated = digits.and_then(|text| text.parse::<u64>().ok());
        let stated = stated.ok_or(HeadError::Malformed("Content-Length is not a number"))?;
        if length.is_some_and(|other| other != stated) {
            return Err(HeadError::Malformed("there are two lengths of the body"));
        }
        length = Some(stated);
    }
    match (is_coded, length) {
        (true, Some(_)) => Err(HeadError::Malformed("the body has a length and a coding")),
        (true, None) => Ok(RequestBody::Coded),
        (false, length) => Ok(RequestBody::Length(length.unwrap_or(0))),
    }
}

struct Fields<'a>(&'a [httparse::Header<'a>]);

impl<'a> Fields<'a> {
    fn all(&self, name: &'static str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let named = self
            .0
            .iter()
            .filter(move |field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| field.value.trim_ascii())
    }

    /// The value, if exactly one field has this name.
    fn only(&self, name: &'static str) -> Option<Vec<u8>> {
        let mut all = self.all(name);
        let first = all.next()?;
        all.next().is_none().then(|| first.to_vec())
    }

    /// All values, joined into one list.
    fn joined(&self, name: &'static str) -> Option<Vec<u8>> {
        let all: Vec<&[u8]> = self.all(name).collect();
        (!all.is_empty()).then(|| all.join(&b", "[..]))
    }

    fn list(&self, name: &'static str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let values = self.all(name);
        values.flat_map(|value| value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<Option<RequestHead>, HeadError> {
        parse_head(text.as_bytes()).map(|found| found.map(|(head, _)| head))
    }

    #[test]
    fn a_request_is_parsed_with_its_length() {
        let text = "GET /a%20b?x HTTP/1.1\r\nHost: h\r\nRANGE:  bytes=0-1 \r\nIf-None-Match: \"a\"\r\n\
                    if-none-match: \"b\"\r\n\r\n";
        let (found, length) = parse_head([text, "GET /next"].concat().as_bytes())
            .unwrap()
            .unwrap();
        assert_eq!(length, text.len());
        assert_eq!(
            (found.method, found.target.as_slice()),
            (Method::Get, &b"/a%20b?x"[..])
        );
        assert_eq!(found.range.as_deref(), Some(&b"bytes=0-1"[..]));
        assert_eq!(found.if_none_match.as_deref(), Some(&b"\"a\", \"b\""[..]));
        assert!(found.is_kept_alive);
        for end in 0..text.len() {
            assert_eq!(parse_head(&text.as_bytes()[..end]), Ok(None), "{end}");
        }
    }

    #[test]
    fn connections_are_kept_as_the_version_says() {
        let is_kept = |text: &str| head(text).unwrap().unwrap().is_kept_alive;
        assert!(!is_kept("GET / HTTP/1.0\r\n\r\n"));
        assert!(is_kept(
            "GET / HTTP/1.0\r\nConnection: foo, Keep-Alive\r\n\r\n"
        ));
        assert!(!is_kept(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, close\r\n\r\n"
        ));
    }

    #[test]
    fn what_is_no_request_has_its_own_error() {
        use HeadError::{LongHead, LongTarget, Version};
        let malformed = |text: &str| matches!(head(text), Err(HeadError::Malformed(_)));
        assert!(malformed("\0\u{1}\u{2}\r\n\r\n"));
        assert!(malformed("GET /\r\n\r\n"));
        assert!(malformed("GET / HTTP/1.1\r\n\r\n"), "no Host");
        assert!(malformed("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"));
        assert!(malformed(
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"
        ));
        let two = "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n";
        assert!(malformed(two));
        let both =
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(malformed(both));
        assert_eq!(head("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), Err(Version));
        assert_eq!(head("GET / HTTP/1.9\r\nHost: a\r\n\r\n"), Err(Version));
        let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(LINE_BYTES_MAX));
        assert_eq!(head(&long), Err(LongTarget));
        assert_eq!(
            head(&format!("GET /{}", "a".repeat(LINE_BYTES_MAX))),
            Err(LongTarget)
        );
        let wide = format!("GET / HTTP/1.1\r\nA: {}", "b".repeat(HEAD_BYTES_MAX));
        assert_eq!(head(&wide), Err(LongHead));
        let many = "A: b\r\n".repeat(FIELDS_MAX + 1);
        assert_eq!(
            head(&format!("GET / HTTP/1.1\r\n{many}\r\n")),
            Err(LongHead)
        );
    }
}
