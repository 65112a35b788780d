//! What a published crate needs beside its code: who finds it in a registry sees only its README.

use std::fs;
use std::path::Path;

/// What every crate promises, in the same words.
const VERSIONS: &str = "## Versions

All crates of Refrain are released together, under one version. It follows [Semantic Versioning](https://semver.org/)
for public items, features, command lines and JSON: before 1.0, a new minor version may break users, a new patch version
does not. Exempt are the feature `property` and what the documentation hides. Only a new minor version may need a newer
Rust.
";

/// Lines of a published manifest.
const FIELDS: &[&str] = &[
    "version.workspace = true",
    "edition.workspace = true",
    "rust-version.workspace = true",
    "license.workspace = true",
    "authors.workspace = true",
    "include.workspace = true",
    "readme = \"README.md\"",
    "description",
    "keywords",
    "categories",
];

fn problems_of(name: &str, directory: &Path, manifest: &str) -> Vec<String> {
    let mut problems = vec![];
    for field in FIELDS {
        if !manifest.lines().any(|line| line.starts_with(field)) {
            problems.push(format!("{name}: Cargo.toml has no line `{field}`"));
        }
    }
    for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
        if !directory.join(license).is_file() {
            problems.push(format!("{name}: no link {license} to that of the project"));
        }
    }
    let readme = fs::read_to_string(directory.join("README.md")).unwrap_or_default();
    if !readme.contains(VERSIONS) {
        problems.push(format!("{name}: the README has no section {VERSIONS:?}"));
    }
    let library = fs::read_to_string(directory.join("src/lib.rs"));
    let (example, is_tested) = match &library {
        Ok(code) => (
            "\n```rust",
            code.starts_with("#![doc = include_str!(\"../README.md\")]"),
        ),
        Err(_) => ("\n```sh", true),
    };
    if !readme.contains(example) {
        problems.push(format!("{name}: the README has no example: {example:?}"));
    }
    if !is_tested {
        problems.push(format!("{name}: lib.rs does not begin with its README"));
    }
    problems
}

#[test]
fn published_crates_introduce_themselves() {
    let mut published = 0;
    let mut problems = vec![];
    for (name, directory) in super::crates() {
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).expect("readable");
        if !manifest.contains("\npublish = false\n") {
            published += 1;
            problems.extend(problems_of(&name, &directory, &manifest));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(published > 20, "only {published} crates are published");
}
