//! The files for the documents' commands, and which commands are run in modified form or not at
//! all.

/// What replaces a part of a command.
pub enum Instead {
    /// The command is not run; why.
    Nothing(&'static str),
    /// The part is replaced by a text; why.
    Text(&'static str, &'static str),
}

/// A change of the commands that contain a text.
pub struct Change {
    /// The document's name; `*` for all.
    pub document: &'static str,
    /// A part of the command, which has a line break at its end.
    pub text: &'static str,
    pub instead: Instead,
}

impl Change {
    /// Why the command is not run as it is.
    pub fn why(&self) -> &'static str {
        match self.instead {
            Instead::Nothing(why) | Instead::Text(_, why) => why,
        }
    }
}

const fn skip(document: &'static str, text: &'static str, why: &'static str) -> Change {
    let instead = Instead::Nothing(why);
    Change {
        document,
        text,
        instead,
    }
}

const fn replace(
    document: &'static str,
    text: &'static str,
    other: &'static str,
    why: &'static str,
) -> Change {
    let instead = Instead::Text(other, why);
    Change {
        document,
        text,
        instead,
    }
}

/// Files that every document finds.
pub const COMMON_INPUTS: &str = r#"
mkdir -p project/docs project/src
seq 30000 > project/numbers.txt
echo '# Readme' > project/README.md
echo hello > project/docs/hello.md
printf 'fn main() {}\n' > project/src/main.rs
truncate -s 4M disk.img
seq 20000 | dd of=disk.img conv=notrunc status=none
seq 20000 > FILE
"#;

/// What the shell knows besides.
pub const FUNCTIONS: &str = r#"
dump() { echo "content of $1"; }
producer() { seq 1000; }
export AWS_ENDPOINT_URL_S3=http://$SERVER AWS_NO_SIGN_REQUEST=true
"#;

/// Files that the commands of one document need besides.
pub const INPUTS: &[(&str, &str)] = &[
    (
        "usage.md",
        r#"
truncate -s 1002M disk.img
echo '*.tmp' > patterns
mkdir ../served ../served/host
seq 200000 > big && refrain compress -q big FILE -o damaged.rfn
printf 'XXXXXXXX' | dd of=damaged.rfn bs=1 seek=3000 conv=notrunc status=none
refrain compress -q project -o ../served/host/p.rfn
"#,
    ),
    ("README.md", "mkdir DIR"),
    (
        "boot.md",
        r#"
mv disk.img debian.img
printf '#!/bin/sh\nexit 0\n' > ../home/.cargo/bin/qemu-system-x86_64
chmod +x ../home/.cargo/bin/qemu-system-x86_64
"#,
    ),
    ("directories.md", "touch -d '2020-01-01' stamp"),
    ("http.md", "rm -r project disk.img"),
    (
        "integrations.md",
        r#"
printf '\200\0\0\0\203\0\0\0\0\10\0\0\0\20\0\0' | dd of=disk.img bs=1 seek=446 conv=notrunc status=none
printf '\125\252' | dd of=disk.img bs=1 seek=510 conv=notrunc status=none
"#,
    ),
    (
        "lrzip.md",
        "mkdir DIR && cp FILE DIR && printf secret > password",
    ),
    (
        "map.md",
        "refrain compress -q project -o p.rfn && cp p.rfn old.rfn && cp p.rfn new.rfn",
    ),
    (
        "plugins.md",
        concat!(
            "cat > runs.c <<'END'\n",
            include_str!("../../../../plugin/tests/sources/runs.c"),
            "\nEND\ncat > numbers.c <<'END'\n",
            include_str!("../../../../plugin/tests/sources/numbers.c"),
            "\nEND\nhead -c 300000 /dev/zero > samples"
        ),
    ),
    (
        "other-formats.md",
        r#"
ln -s refrain ../home/.cargo/bin/rfn
mkdir ../served
gzip -c FILE > x.gz
tar -czf x.tar.gz project
tar --zstd -cf x.tar.zst project
tar -cJf x.tar.xz -C project docs src
cp x.tar.gz ../served/
python3 -m zipfile -c x.zip project
"#,
    ),
    (
        "remote.md",
        r#"
mkdir -p ../served/backup ../served/images
cp project/README.md . && cp README.md project/docs/
refrain compress -q project -o ../served/backup/project.rfn
truncate -s 11G disk.img && refrain compress -q disk.img -o ../served/images/disk.img.rfn && rm disk.img
refrain compress -q FILE -o ../served/private.rfn
"#,
    ),
];

/// The changes, in the order in which they are made.
pub const CHANGES: &[Change] = &[
    replace("*", "8080", "$PORT", "another service may have it"),
    // README
    skip(
        "README.md",
        "cargo run --release",
        "`.ci/run main_job` runs it",
    ),
    skip(
        "README.md",
        "cargo test --workspace",
        "it is what runs this test",
    ),
    skip("README.md", "cargo install --path", "builds the program"),
    skip(
        "README.md",
        "packaging/",
        "builds packages; CI has a step for it",
    ),
    skip("c-library.md", "packaging/c-library", "builds the library"),
    skip(
        "packages.md",
        "cargo publish",
        "compiles every crate; CI has a step for it",
    ),
    skip(
        "packages.md",
        "/tmp/packages",
        "builds packages; CI has a step for it",
    ),
    skip(
        "packages.md",
        "refrain.magic",
        "is where the package puts it",
    ),
    skip(
        "c-library.md",
        "cc program.c",
        "the tests of the C library compile programs",
    ),
    replace(
        "README.md",
        ".rfn PATH",
        ".rfn src/main.rs",
        "PATH stands for one",
    ),
    replace(
        "README.md",
        "decompress p.rfn docs",
        "decompress -f p.rfn docs",
        "they exist",
    ),
    replace(
        "README.md",
        "mount p.rfn DIR",
        "mount p.rfn DIR &",
        "it runs until it is ended",
    ),
    replace(
        "README.md",
        "--http 127.0.0.1:$PORT",
        "--http 127.0.0.1:$PORT &",
        "so does it",
    ),
    // docs/
    replace("benchmarks.md", "--levels 1,3,6", "--levels 1", "quick"),
    skip(
        "benchmarks.md",
        "--peers default",
        "measures whatever is installed",
    ),
    replace(
        "boot.md",
        "--print",
        "--print | bash -e",
        "what is printed is run, too",
    ),
    replace(
        "boot.md",
        "qemu-img create -f qcow2 -b 'nbd+unix:///debian.img?socket=/run/debian.sock'",
        "refrain serve debian.rfn --nbd unix:d.sock --daemon --idle-exit 5s; \
         qemu-img create -f qcow2 -b 'nbd+unix:///debian.img?socket=d.sock'",
        "the service that the text asks for, at a place of its own",
    ),
    replace(
        "directories.md",
        "compress / -o",
        "compress project -o",
        "small",
    ),
    replace(
        "directories.md",
        "decompress project.rfn\n",
        "decompress -f project.rfn\n",
        "project exists",
    ),
    replace(
        "http.md",
        "--daemon",
        "--daemon > service; cat service",
        "ended below",
    ),
    replace(
        "http.md",
        "$PORT --once",
        "$PORT --once; kill $(grep -o 'kill [0-9]*' service | cut -c6-)",
        "as the service says",
    ),
    replace(
        "integrations.md",
        "journalctl -o export --since yesterday --until today",
        "printf '__REALTIME_TIMESTAMP=1700000000000000\\nMESSAGE=hello\\n\\n'",
        "the machine may have no journal",
    ),
    skip(
        "lab.md",
        "refrain lab --quick",
        "20 seconds; tests/cases/lab.rs has smaller ones",
    ),
    skip("lab.md", "refrain lab -o", "takes minutes"),
    skip("lab.md", "--save --compare", "takes minutes"),
    replace(
        "lab.md",
        "lab cache pages",
        "lab --quick cache pages",
        "quick",
    ),
    replace("lab.md", "lab atomicity", "lab --quick atomicity", "quick"),
    skip("levels.md", "bench/tables", "measures a corpus for minutes"),
    replace(
        "lrzip.md",
        "--encrypt=cbc FILE",
        "-f --encrypt=cbc --password-file password FILE",
        "no terminal; FILE.lrz exists",
    ),
    replace("lrzip.md", "lrz DIR", "lrz -f DIR", "DIR.tar.lrz exists"),
    replace(
        "lrzip.md",
        "--back-end gzip",
        "-f --back-end gzip",
        "FILE.lrz exists",
    ),
    replace(
        "mount.md",
        "mnt/project/src",
        "mnt/project",
        "one word more",
    ),
    replace(
        "mount.md",
        "top unix:mnt.sock",
        "top unix:mnt.sock --once",
        "it runs until it is ended",
    ),
    skip("mount.md", "sudo mount", "needs root and an ext4 image"),
    replace(
        "other-formats.md",
        "x.tar.zst PATH",
        "x.tar.zst project/README.md",
        "stands for one",
    ),
    replace(
        "other-formats.md",
        "decompress x.zip",
        "decompress x.zip -o z/",
        "x exists",
    ),
    replace(
        "other-formats.md",
        "curl URL",
        "curl -s http://$SERVER/x.tar.gz",
        "no network",
    ),
    skip(
        "profile.md",
        "go tool pprof",
        "serves a page until it is ended",
    ),
    replace(
        "remote.md",
        "https://host.example/",
        "http://$SERVER/",
        "no network",
    ),
    replace(
        "remote.md",
        "https://me:password@host.example/",
        "http://me:pw@$SERVER/",
        "no network",
    ),
    skip(
        "remote.md",
        "store/bin/",
        "tests/cases/store.rs does it where its packages are",
    ),
    skip("remote.md", "s3://bucket/", "as above"),
    skip("remote.md", "bucket", "as above"),
    skip(
        "volumes.md",
        "s3://bucket/",
        "tests/cases/store_volumes.rs does it where its packages are",
    ),
    skip(
        "testing.md",
        "cargo ",
        "instruments and tests other builds of the program",
    ),
    skip("testing.md", "rustup ", "changes the machine"),
    replace("usage.md", "compress / -o", "compress project -o", "small"),
    replace(
        "usage.md",
        "exclude-from FILE",
        "exclude-from patterns",
        "FILE stands for one",
    ),
    replace(
        "usage.md",
        ".rfn PATH",
        ".rfn src/main.rs",
        "PATH stands for one",
    ),
    replace(
        "usage.md",
        "decompress damaged.rfn",
        "decompress damaged.rfn -o out/",
        "one exists",
    ),
    replace(
        "usage.md",
        "damaged.rfn -o out/",
        "damaged.rfn -o out/ || [ $? = 2 ]",
        "its code",
    ),
    replace(
        "usage.md",
        "--scan damaged.rfn",
        "--scan damaged.rfn || [ $? = 2 ]",
        "its code",
    ),
    replace(
        "usage.md",
        "https://host/",
        "http://$SERVER/host/",
        "no network",
    ),
    replace(
        "usage.md",
        "rfn disk.img; ",
        "rm disk.img.rfn; rfn disk.img; ",
        "made above",
    ),
];
