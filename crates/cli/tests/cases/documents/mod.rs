//! Runs every command in README and docs/, with small inputs.
//!
//! The commands are the fences marked `sh` in the Markdown files, so that a new document is covered
//! when it is written. The fences of a document run in one shell, which stops at the first command
//! that fails. The table `changes` lists commands that are modified or not run.

mod changes;
mod script;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use refrain_testkit::http_server::{HttpServer, Object};

use self::changes::{CHANGES, Change, INPUTS, Instead};
use crate::support::{Case, REFRAIN};

/// The workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The Markdown files with commands, by their names, and the commands of each fence.
fn documents() -> Vec<(String, Vec<Vec<String>>)> {
    let listed = fs::read_dir(root().join("docs")).unwrap();
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.unwrap().path()).collect();
    paths.push(root().join("README.md"));
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    let named = paths.into_iter().map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, script::fences(&fs::read_to_string(path).unwrap()))
    });
    named.filter(|(_, fences)| !fences.is_empty()).collect()
}

fn changes_of(document: &str) -> impl Iterator<Item = (usize, &'static Change)> {
    let all = CHANGES.iter().enumerate();
    all.filter(move |(_, change)| change.document == "*" || document == change.document)
}

/// A command as run; `None` if it is not. Marks the changes that were used.
fn changed(document: &str, command: &str, used: &mut [bool]) -> Option<String> {
    let mut command = format!("{command}\n");
    for (number, change) in changes_of(document) {
        if command.contains(change.text) {
            used[number] = true;
            match change.instead {
                Instead::Nothing(_) => return None,
                Instead::Text(text, _) => command = command.replace(change.text, text),
            }
        }
    }
    Some(command.trim_end().to_owned())
}

#[test]
fn every_command_of_the_documents_runs() {
    let mut used = vec![false; CHANGES.len()];
    let documents = documents();
    let mut runs = Vec::new();
    for (document, fences) in &documents {
        let fences = fences.iter().map(|fence| {
            let commands = fence.iter();
            commands
                .filter_map(|command| changed(document, command, &mut used))
                .collect()
        });
        let fences: Vec<Vec<String>> = fences.collect();
        if fences.iter().any(|fence| !fence.is_empty()) {
            runs.push((document, fences));
        }
    }
    let unused = CHANGES.iter().zip(used).filter(|(_, is_used)| !is_used);
    let unused: Vec<_> = unused
        .map(|(change, _)| (change.document, change.text, change.why()))
        .collect();
    assert!(
        unused.is_empty(),
        "changes that match no command: {unused:?}"
    );
    let unknown = INPUTS
        .iter()
        .filter(|(of, _)| documents.iter().all(|(name, _)| name != of));
    let unknown: Vec<_> = unknown.map(|(document, _)| document).collect();
    assert!(
        unknown.is_empty(),
        "inputs of documents without commands: {unknown:?}"
    );
    let failures: Vec<String> = std::thread::scope(|scope| {
        let start = |(document, fences): &(&String, Vec<Vec<String>>)| {
            let (document, fences) = ((*document).clone(), fences.clone());
            scope.spawn(move || run(&document, &fences))
        };
        let running: Vec<_> = runs.iter().map(start).collect();
        running
            .into_iter()
            .filter_map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Runs the commands of a document; the failure, if there is one.
fn run(document: &str, fences: &[Vec<String>]) -> Option<String> {
    let case = Case::new();
    fs::create_dir_all(case.path("home/.cargo/bin")).unwrap();
    fs::create_dir(case.path("work")).unwrap();
    std::os::unix::fs::symlink(REFRAIN, case.path("home/.cargo/bin/refrain")).unwrap();
    let server = HttpServer::start().unwrap();
    let inputs = INPUTS.iter().filter(|(of, _)| *of == document);
    let inputs: Vec<&str> = inputs.map(|(_, inputs)| *inputs).collect();
    let prepared = shell(&case, &script::inputs(&inputs), &server);
    assert!(prepared.is_none(), "inputs of {document}: {prepared:?}");
    put_files(&server, &case.path("served"), "");
    let failure = shell(&case, &script::from_fences(fences), &server);
    failure.map(|failure| format!("{document}: {failure}"))
}

/// Puts the files below a directory on the server.
fn put_files(server: &HttpServer, directory: &Path, url_path: &str) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let url_path = format!("{url_path}/{name}");
        if path.is_dir() {
            put_files(server, &path, &url_path)
        } else {
            server.put(&url_path, Object::new(fs::read(&path).unwrap(), "\"1\""))
        }
    }
}

/// Runs a script in `work`; its output, if it failed.
#[allow(clippy::print_stderr)] // What a test does not prove must be reported.
fn shell(case: &Case, script: &str, server: &HttpServer) -> Option<String> {
    let path = case.write("script", script.as_bytes());
    let home = case.path("home");
    let programs = format!("{}:{}", home.join(".cargo/bin").display(), env!("PATH"));
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let mut command = Command::new("timeout");
    command.args(["-k", "10", "600", "bash"]).arg(path);
    command.current_dir(case.path("work")).stdin(Stdio::null());
    command.env("HOME", &home).env("PATH", programs);
    command.env("PORT", port.to_string());
    command.env("SERVER", format!("127.0.0.1:{}", server.port()));
    let log = fs::File::create(case.path("log")).unwrap();
    command.stderr(log.try_clone().unwrap()).stdout(log);
    let status = command.status().unwrap();
    let said = String::from_utf8_lossy(&case.read("log")).into_owned();
    for skipped in said
        .lines()
        .filter(|line| line.starts_with(script::SKIPPED))
    {
        eprintln!("{skipped}");
    }
    (!status.success()).then(|| {
        let lines: Vec<&str> = said.lines().collect();
        let last = &lines[lines.len().saturating_sub(20)..];
        format!("{status}\n{}", last.join("\n"))
    })
}
