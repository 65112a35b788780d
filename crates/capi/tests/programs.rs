//! C programs, compiled with the header and linked with the library as it is installed.

#![allow(clippy::expect_used, clippy::panic)]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSymbol};
use tempfile::TempDir;

fn crate_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The shared library that was built with this test.
fn library() -> PathBuf {
    let own = std::env::current_exe().expect("the test has a path");
    own.with_file_name("librefrain_capi.so")
}

/// A directory with the library as it is installed, below `usr`.
fn installed() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let mut install = Command::new(crate_path("../../packaging/c-library"));
    install
        .arg("/usr")
        .env("DESTDIR", directory.path())
        .env(
            "REFRAIN_TARGET_DIR",
            library().parent().expect("a directory"),
        )
        .env_remove("LIBDIR");
    run(&mut install);
    directory
}

/// What programs are linked with.
const SHARED: [&str; 2] = ["-lrefrain", "-lpthread"];

/// What programs with the static library are linked with, as pkg-config would say.
fn static_libraries(directory: &Path) -> Vec<String> {
    let path = directory.join("usr/lib/pkgconfig/refrain.pc");
    let text = fs::read_to_string(path).expect("installed");
    let (_, rest) = text.split_once("Libs.private: ").expect("libraries");
    let libraries = rest.lines().next().unwrap_or_default();
    let libraries = ["-l:librefrain.a"]
        .into_iter()
        .chain(libraries.split_whitespace());
    libraries.map(str::to_owned).collect()
}

/// Compiles a program, with every warning an error.
fn compiled(source: &Path, directory: &Path, libraries: &[impl AsRef<OsStr>]) -> PathBuf {
    let program = directory.join("program");
    let compiler = Command::new("cc")
        .args([
            "-std=gnu11",
            "-g",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
        ])
        .arg("-I")
        .arg(directory.join("usr/include"))
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(directory.join("usr/lib"))
        .arg(format!(
            "-Wl,-rpath,{}",
            directory.join("usr/lib").display()
        ))
        .args(libraries)
        .output()
        .expect("a C compiler");
    let messages = String::from_utf8_lossy(&compiler.stderr);
    assert!(compiler.status.success(), "{messages}");
    program
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?} {messages}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn streams() {
    let directory = installed();
    let program = compiled(&crate_path("tests/c/streams.c"), directory.path(), &SHARED);
    run(&mut Command::new(program));
}

#[test]
fn archives() {
    let directory = installed();
    let program = compiled(&crate_path("tests/c/archives.c"), directory.path(), &SHARED);
    run(Command::new(program).arg(directory.path()));
}

/// The same under valgrind, where it is installed: no error, and nothing is lost.
#[test]
fn nothing_is_lost() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return;
    }
    let directory = installed();
    let program = compiled(&crate_path("tests/c/archives.c"), directory.path(), &SHARED);
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["-q", "--error-exitcode=9", "--leak-check=full"]);
    valgrind.args([
        "--errors-for-leak-kinds=definite,indirect",
        "--show-leak-kinds=definite",
    ]);
    valgrind.args(["--trace-children=no", "--child-silent-after-fork=yes"]);
    run(valgrind.arg(program).arg(directory.path()).arg("200"));
}

/// The example of the documentation does what it says, of a file and of a tar file, however it is
/// linked.
#[test]
fn the_example_of_the_documentation() {
    let text = fs::read_to_string(crate_path("../../docs/c-library.md")).expect("the document");
    let (_, rest) = text.split_once("```c\n").expect("an example in C");
    let (example, _) = rest.split_once("```").expect("the end of the example");
    let directory = installed();
    let at = directory.path();
    let source = at.join("example.c");
    fs::write(&source, example).expect("room for the example");
    fs::write(at.join("lines"), "one line\n".repeat(200_000)).expect("room for the input");
    let mut tar = Command::new("tar");
    run(tar.current_dir(at).args(["-cf", "lines.tar", "lines"]));
    let libraries = static_libraries(at);
    let without_loader = [&["-static".to_owned()], &libraries[..]].concat();
    let shared = SHARED.map(str::to_owned).to_vec();
    for libraries in [shared, libraries, without_loader] {
        let program = compiled(&source, at, &libraries);
        let printed = run(Command::new(&program).current_dir(at).arg("lines"));
        let archive = fs::metadata(at.join("archive.rfn")).expect("an archive");
        let expected = format!(
            "1800000 -> {} bytes\nstdin: 1800000 bytes, begins with \"one line\"\n",
            archive.len()
        );
        assert_eq!(printed, expected);
        let printed = run(Command::new(&program).current_dir(at).arg("lines.tar"));
        let expected = "\nlines: 1800000 bytes, begins with \"one line\"\n";
        assert!(printed.ends_with(expected), "{printed}");
    }
}

/// The library exports what `symbols.txt` lists, and nothing else.
#[test]
fn the_library_exports_its_functions_only() {
    let bytes = fs::read(library()).expect("the library");
    let file = object::File::parse(&*bytes).expect("an object file");
    let symbols = file
        .dynamic_symbols()
        .filter(|symbol| !symbol.is_undefined());
    let mut names: Vec<_> = symbols
        .map(|symbol| symbol.name().expect("a name").to_owned())
        .collect();
    names.sort();
    let expected = fs::read_to_string(crate_path("symbols.txt")).expect("the list");
    assert_eq!(names, expected.lines().collect::<Vec<_>>());
}

#[test]
fn the_header_is_cplusplus_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("header.cc");
    fs::write(&source, "#include <refrain.h>\nint main() { return 0; }\n").expect("room");
    let mut compiler = Command::new("c++");
    compiler.args(["-fsyntax-only", "-Wall", "-Wextra", "-Werror"]);
    let compiler = compiler.arg("-I").arg(crate_path("include")).arg(&source);
    run(compiler);
}
