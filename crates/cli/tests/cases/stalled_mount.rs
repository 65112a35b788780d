//! A mounted archive whose server stalls, and its statistics.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use refrain_testkit::http_server::{Fault, HttpServer, Object};
use rustix::process::{Signal, kill_process};

use crate::mount::{Mounted, can_mount};
use crate::support::{Case, incompressible};

/// More than the threads that answer requests.
const READS: usize = 24;

#[test]
fn reads_that_wait_for_a_server_hold_up_nothing_else() {
    if !can_mount() {
        return;
    }
    let case = Case::new();
    case.write("tree/a/large", &incompressible(5, READS << 20));
    for number in 0..30 {
        case.write(&format!("tree/b/{number}"), format!("{number}").as_bytes());
    }
    case.ok("compress -q tree");
    let server = HttpServer::start().unwrap();
    server.put("/tree.rfn", Object::new(case.read("tree.rfn"), "\"a\""));
    let line = format!("mount {} --http unix:s", server.url("/tree.rfn"));
    let mounted = Mounted::new(&case, &line);
    let inside = |name: &str| case.path("mnt/tree").join(name);
    let large = File::open(inside("a/large")).unwrap();
    assert_eq!(fs::read(inside("b/1")).unwrap(), b"1");
    server.fault_always(Some(Fault::Stall(Duration::from_secs(60))));
    let requests = server.request_count();
    let ended = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for number in 0..READS {
            let (large, ended) = (&large, &ended);
            scope.spawn(move || {
                let read = large.read_at(&mut [0; 4096], (number as u64) << 20);
                ended.fetch_add(1, SeqCst);
                read
            });
        }
        while server.request_count() == requests {
            std::thread::yield_now();
        }
        for number in 2..30 {
            let found = fs::read(inside(&format!("b/{number}"))).unwrap();
            assert_eq!(found, format!("{number}").as_bytes());
        }
        assert_eq!(fs::read_dir(inside("b")).unwrap().count(), 30);
        assert!(fs::metadata(inside("a")).unwrap().is_dir());
        let table = String::from_utf8(case.ok("top unix:s --once").stdout).unwrap();
        assert!(table.contains("fuse_read"), "{table}");
        assert!(ended.load(SeqCst) < READS, "nothing waited");
        // What still waits fails.
        kill_process(mounted.id(), Signal::KILL).unwrap();
    });
}
