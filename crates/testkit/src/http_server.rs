//! An HTTP server for tests: it serves ranges of objects in memory, records requests, and
//! misbehaves on request.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// An object that is served.
#[derive(Debug, Clone, Default)]
pub struct Object {
    /// The content.
    pub bytes: Arc<Vec<u8>>,
    /// The header ETag.
    pub etag: Option<String>,
    /// The header Last-Modified.
    pub last_modified: Option<String>,
}

impl Object {
    /// An object with an ETag.
    pub fn new(bytes: impl Into<Vec<u8>>, etag: &str) -> Object {
        Object {
            bytes: Arc::new(bytes.into()),
            etag: Some(etag.to_owned()),
            last_modified: None,
        }
    }
}

/// A way to answer wrongly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Closes the connection without a response.
    Close,
    /// Sends nothing for this long, and closes the connection.
    Stall(Duration),
    /// Sends the head and half of the body, waits this long, and closes the connection.
    StallInBody(Duration),
    /// Sends the head and half of the body, and closes the connection.
    ShortBody,
    /// Announces and sends more than was asked for.
    LongBody,
    /// Sends another range of the same length.
    WrongRange,
    /// States this length of the object.
    Total(u64),
    /// Sends the range with status 200.
    PartAsWhole,
    /// Sends these bytes before the response.
    Before(String),
    /// Adds these lines, each with its end, to the head.
    Fields(String),
    /// Sends this many bytes of the body at once, with this pause after them.
    Drip(usize, Duration),
    /// States another ETag.
    OtherTag,
    /// Sends everything, with status 200.
    IgnoreRange,
    /// States that the body is encoded.
    Encoded,
    /// Sends this status with this further header (`Name: value`, or nothing) and this body.
    Status(u16, String, String),
}

impl Fault {
    /// A redirection to this URL.
    pub fn redirect(url: &str) -> Fault {
        Fault::Status(302, format!("Location: {url}"), String::new())
    }
}

/// A request as received.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The path with the query.
    pub target: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
}

impl Request {
    /// The requested range, if it is one of the form `bytes=A-B`.
    pub fn range(&self) -> Option<Range<u64>> {
        let text = self.headers.get("range")?.strip_prefix("bytes=")?;
        let (first, last) = text.split_once('-')?;
        Some(first.parse().ok()?..last.parse::<u64>().ok()? + 1)
    }
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Object>,
    requests: Vec<Request>,
    sent_bytes: u64,
    /// By the number of the request.
    faults: BTreeMap<usize, Fault>,
    fault_always: Option<Fault>,
    latency: Duration,
    in_flight: usize,
    in_flight_max: usize,
}

/// A server on its own port, until the end of the process.
#[derive(Debug, Clone)]
pub struct HttpServer {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl HttpServer {
    /// Starts a server without objects.
    ///
    /// # Errors
    /// The system's.
    pub fn start() -> std::io::Result<HttpServer> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let server = HttpServer {
            port: listener.local_addr()?.port(),
            state: Arc::default(),
        };
        let accepting = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = accepting.clone();
                thread::spawn(move || while server.serve(&stream).unwrap_or(false) {});
            }
        });
        Ok(server)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The URL of a path, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The port on the loopback interface.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Serves an object under a path.
    pub fn put(&self, path: &str, object: Object) {
        self.state().objects.insert(path.to_owned(), object);
    }

    /// Answers the request with this number wrongly; the next request has the number
    /// [`HttpServer::request_count`].
    pub fn fault_at(&self, number: usize, fault: Fault) {
        self.state().faults.insert(number, fault);
    }

    /// Answers every later request wrongly, or none.
    pub fn fault_always(&self, fault: Option<Fault>) {
        self.state().fault_always = fault;
    }

    /// Waits this long before each response.
    pub fn set_latency(&self, latency: Duration) {
        self.state().latency = latency;
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.state().requests.clone()
    }

    /// The number of requests so far.
    pub fn request_count(&self) -> usize {
        self.state().requests.len()
    }

    /// The bytes of bodies so far.
    pub fn sent_bytes(&self) -> u64 {
        self.state().sent_bytes
    }

    /// The most requests at one time.
    pub fn in_flight_max(&self) -> usize {
        self.state().in_flight_max
    }

    /// Reads and answers one request. Returns whether the connection remains.
    fn serve(&self, mut stream: &TcpStream) -> std::io::Result<bool> {
        let Some(request) = read_request(stream)? else {
            return Ok(false);
        };
        let (number, latency) = {
            let mut state = self.state();
            state.requests.push(request.clone());
            state.in_flight += 1;
            state.in_flight_max = state.in_flight_max.max(state.in_flight);
            (state.requests.len() - 1, state.latency)
        };
        thread::sleep(latency);
        let (response, fault) = {
            let mut state = self.state();
            let fault = state.faults.get(&number).or(state.fault_always.as_ref());
            let fault = fault.cloned();
            let response = respond(&state, &request, fault.as_ref());
            state.in_flight -= 1;
            state.sent_bytes += response.body.len() as u64;
            (response, fault)
        };
        let (pause, keeps, part) = match fault {
            Some(Fault::Close) => return Ok(false),
            Some(Fault::Stall(time)) => {
                thread::sleep(time);
                return Ok(false);
            }
            Some(Fault::StallInBody(time)) => (time, false, response.body.len() / 2),
            Some(Fault::ShortBody) => (Duration::ZERO, false, response.body.len() / 2),
            _ => (Duration::ZERO, true, response.body.len()),
        };
        if let Some(Fault::Before(bytes)) = &fault {
            stream.write_all(bytes.as_bytes())?;
        }
        stream.write_all(response.head.as_bytes())?;
        let body = response.body.get(..part).unwrap_or_default();
        match fault {
            Some(Fault::Drip(count, pause)) => {
                for piece in body.chunks(count.max(1)) {
                    stream.write_all(piece)?;
                    thread::sleep(pause);
                }
            }
            _ => stream.write_all(body)?,
        }
        stream.flush()?;
        thread::sleep(pause);
        Ok(keeps)
    }
}

fn read_request(stream: &TcpStream) -> std::io::Result<Option<Request>> {
    stream.set_nodelay(true)?;
    // The client sends its next request only after the response, so nothing is read too far.
    let mut lines = BufReader::new(stream).lines();
    let Some(first) = lines.next().transpose()? else {
        return Ok(None);
    };
    let mut request = Request {
        target: first.split(' ').nth(1).unwrap_or_default().to_owned(),
        headers: BTreeMap::new(),
    };
    for line in lines {
        let line = line?;
        match line.split_once(':') {
            Some((name, value)) => {
                let name = name.to_ascii_lowercase();
                request.headers.insert(name, value.trim().to_owned());
            }
            None => return Ok(Some(request)),
        }
    }
    Ok(None)
}

struct Response {
    head: String,
    body: Vec<u8>,
}

impl Response {
    fn new(status: u16, headers: &str, body: &[u8]) -> Response {
        let mut head = format!(
            "HTTP/1.1 {status} Status\r\nContent-Length: {}\r\n",
            body.len()
        );
        head.push_str(headers);
        head.push_str("\r\n");
        Response {
            head,
            body: body.to_vec(),
        }
    }
}

fn respond(state: &State, request: &Request, fault: Option<&Fault>) -> Response {
    if let Some(Fault::Status(status, header, body)) = fault {
        let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
        return Response::new(*status, &header, body.as_bytes());
    }
    let path = request.target.split('?').next().unwrap_or_default();
    let Some(object) = state.objects.get(path) else {
        return Response::new(404, "", b"no such object");
    };
    let mut headers = String::new();
    let etag = match fault {
        Some(Fault::OtherTag) => Some("\"other\""),
        _ => object.etag.as_deref(),
    };
    // Writing to a string does not fail.
    let _ = etag.map(|etag| write!(headers, "ETag: {etag}\r\n"));
    let date = object.last_modified.as_deref();
    let _ = date.map(|date| write!(headers, "Last-Modified: {date}\r\n"));
    match fault {
        Some(Fault::Encoded) => headers.push_str("Content-Encoding: gzip\r\n"),
        Some(Fault::Fields(lines)) => headers.push_str(lines),
        _ => {}
    }
    let refuses = |name: &str, current: Option<&str>| {
        let wanted = request.headers.get(name).map(String::as_str);
        wanted.is_some() && wanted != current && fault != Some(&Fault::OtherTag)
    };
    if refuses("if-match", object.etag.as_deref()) || refuses("if-unmodified-since", date) {
        return Response::new(412, &headers, b"");
    }
    let total = object.bytes.len() as u64;
    let range = request
        .range()
        .filter(|_| fault != Some(&Fault::IgnoreRange));
    let Some(range) = range else {
        return Response::new(200, &headers, &object.bytes);
    };
    if range.start >= total {
        headers.push_str(&format!("Content-Range: bytes */{total}\r\n"));
        return Response::new(416, &headers, b"");
    }
    let mut range = range.start..range.end.min(total);
    match fault {
        Some(Fault::LongBody) => range.end = (range.end + 1).min(total),
        Some(Fault::WrongRange) => range = range.start.saturating_sub(1)..range.end - 1,
        _ => {}
    }
    let stated = match fault {
        Some(Fault::Total(stated)) => *stated,
        _ => total,
    };
    let last = range.end - 1;
    headers.push_str(&format!(
        "Content-Range: bytes {}-{last}/{stated}\r\n",
        range.start
    ));
    let body = object.bytes.get(range.start as usize..range.end as usize);
    let status = if fault == Some(&Fault::PartAsWhole) { 200 } else { 206 };
    Response::new(status, &headers, body.unwrap_or_default())
}
