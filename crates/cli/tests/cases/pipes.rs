//! Several named pipes in one archive.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::support::{Case, REFRAIN, expect, incompressible, mixture};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn make_fifos(case: &Case, names: &[&str]) -> Vec<PathBuf> {
    let paths: Vec<_> = names.iter().map(|name| case.path(name)).collect();
    let made = Command::new("mkfifo").args(&paths).status();
    assert!(made.unwrap().success());
    paths
}

/// Opens a pipe and writes to it, or ends the reader if that takes too long.
fn write_or_kill(reader: &mut Child, path: &std::path::Path, content: &[u8]) {
    let (done, wait) = channel();
    let (path, content) = (path.to_owned(), content.to_vec());
    std::thread::spawn(move || {
        let written = File::create(&path).and_then(|mut pipe| pipe.write_all(&content));
        done.send(written)
    });
    match wait.recv_timeout(PATIENCE) {
        Ok(written) => written.unwrap(),
        Err(_) => {
            reader.kill().unwrap();
            panic!("a pipe is not read while another one is silent");
        }
    }
}

#[test]
fn pipes_are_read_whoever_writes_first() {
    let names = ["one", "two", "three"];
    let contents = [
        mixture(300_000),
        incompressible(5, 3 << 20),
        mixture(2 << 20),
    ];
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let case = Case::new();
        let paths = make_fifos(&case, &names);
        let mut command = case.command(REFRAIN, "compress one two three -o all.rfn");
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        for number in order {
            // Complete before the next writer opens its pipe.
            write_or_kill(&mut child, &paths[number], &contents[number]);
        }
        expect(child.wait_with_output().unwrap(), 0, "compress");
        for (name, content) in names.iter().zip(&contents) {
            let read = case.ok(&format!("cat all.rfn {name}")).stdout;
            assert!(&read == content, "{name}, {order:?}");
        }
    }
}

/// All of the pipe goes to the first of two inputs that are the same.
#[test]
fn a_pipe_that_is_two_inputs_is_read_in_one_piece() {
    let case = Case::new();
    let content = mixture(3 << 20);
    let line = "compress - /dev/stdin -o all.rfn --json";
    let output = case.pipe(REFRAIN, line, &content);
    let output = expect(output, 0, line);
    let report = crate::support::json(&output.stdout);
    let result = &report["results"][0];
    assert_eq!(result["members"], 2, "{report}");
    assert_eq!(result["content_bytes"], content.len(), "{report}");
    let names = String::from_utf8(case.ok("list all.rfn").stdout).unwrap();
    let first = names.lines().next().unwrap();
    let read = case.ok(&format!("cat all.rfn {first}")).stdout;
    assert!(read == content, "not all of it is in {first}, of {names}");
}
