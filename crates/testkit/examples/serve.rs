//! Serves files by HTTP with ranges and an artificial latency, to measure what a reader costs:
//! `serve MILLISECONDS FILE...` prints the beginning of the URLs. For each line on standard input
//! it prints the number and the bytes of the responses since the last one; for `log` also the
//! ranges.

#![allow(clippy::print_stdout, reason = "a tool for people")]

use std::io::BufRead;
use std::path::Path;
use std::time::Duration;

use refrain_testkit::http_server::{HttpServer, Object};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let latency_ms = arguments.next().unwrap_or_default().parse()?;
    let server = HttpServer::start()?;
    server.set_latency(Duration::from_millis(latency_ms));
    for file in arguments {
        let name = Path::new(&file).file_name().unwrap_or_default();
        let path = format!("/{}", name.to_string_lossy());
        server.put(&path, Object::new(std::fs::read(&file)?, "\"1\""));
    }
    println!("{}", server.url("/"));
    let mut before = (0, 0);
    for line in std::io::stdin().lock().lines() {
        if line? == "log" {
            for request in server.requests().iter().skip(before.0) {
                println!("{:?}", request.range());
            }
        }
        let now = (server.request_count(), server.sent_bytes());
        let (count, bytes) = (now.0 - before.0, now.1 - before.1);
        println!("{count} requests, {bytes} bytes");
        before = now;
    }
    Ok(())
}
