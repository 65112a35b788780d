//! The plug-ins that docs/plugins.md prints are plug-ins.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Command;

use refrain_plugin::check;

/// The texts of the fences in this language.
fn fences<'a>(document: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("```{language}\n");
    let after = document.split(begin.as_str()).skip(1);
    after
        .map(|text| text.split("```").next().unwrap())
        .collect()
}

#[test]
fn the_plugins_of_the_document_work() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = crate_folder.join("../../docs/plugins.md");
    let document = std::fs::read_to_string(document).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [source, library] = ["source", "library.so"].map(|name| folder.path().join(name));
    let mut names = Vec::new();
    for (language, compiler) in [("c", "cc"), ("rust", "rustc")] {
        for text in fences(&document, language) {
            std::fs::write(&source, text).unwrap();
            let mut command = Command::new(compiler);
            match language {
                "c" => command
                    .args(["-xc", "-shared", "-fPIC", "-Wall", "-Werror", "-I"])
                    .arg(crate_folder.join("include")),
                _ => command.args(["--crate-type=cdylib", "--edition=2024", "-Dwarnings"]),
            };
            let status = command.arg("-o").arg(&library).arg(&source).status();
            assert!(status.unwrap().success(), "{text}");
            names.push(check(&library).unwrap().name);
        }
    }
    assert_eq!(names, ["runs", "numbers", "keep"]);
}
