//! Signatures: made by `sign` and `compress --sign`, checked before anything is written, and
//! exchanged with minisign and ssh-keygen.

use std::process::{Command, Output};

use refrain_testkit::http_server::{HttpServer, Object};
use refrain_testkit::signing_keys::{
    ECDSA_PUBLIC, MINISIGN, MINISIGN_PUBLIC, SSH, SSH_PASSPHRASE, SSH_PASSPHRASE_PUBLIC, SSH_PUBLIC,
};

use crate::support::{Case, REFRAIN, expect, incompressible, json};

/// The keys in files, and the archive `x.rfn` of `x`.
fn case() -> Case {
    let case = Case::new();
    for (name, text) in [
        ("mini.key", MINISIGN),
        ("mini.pub", MINISIGN_PUBLIC),
        ("ssh", SSH),
        ("ssh.pub", SSH_PUBLIC),
        ("secret", SSH_PASSPHRASE),
        ("secret.pub", SSH_PASSPHRASE_PUBLIC),
        ("ecdsa.pub", ECDSA_PUBLIC),
        ("pw", "secret\n"),
    ] {
        case.write(name, text.as_bytes());
    }
    case.write("x", &incompressible(3, 200_000));
    case.ok("compress -q x");
    case
}

/// What a verb says of its only archive.
fn result(case: &Case, line: &str) -> serde_json::Value {
    json(&case.ok(line).stdout)["results"][0].clone()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn who_signed_is_told_and_checked() {
    let case = case();
    let said = text(&case.ok("sign x.rfn --key mini.key").stderr);
    assert!(
        said.contains("x.rfn: signed by minisign 11AF9017E81590F2"),
        "{said}"
    );
    case.ok("sign -q x.rfn --key secret --key-password-file pw");
    let said = text(&case.ok("sign x.rfn --key mini.key").stderr);
    assert!(said.contains("already"), "{said}");
    let info = text(&case.ok("info x.rfn").stdout);
    assert!(
        info.contains("by minisign 11AF9017E81590F2, not verified"),
        "{info}"
    );
    let info = result(&case, "info --json x.rfn --signers-file secret.pub");
    let states: Vec<_> = info["signatures"].as_array().unwrap().iter().collect();
    assert_eq!(states[0]["state"], "not verified");
    assert_eq!(states[0]["key"], "11AF9017E81590F2");
    assert_eq!(
        (&states[1]["state"], &states[1]["signer"]),
        (&"valid".into(), &"test@home".into())
    );
    for line in [
        "test x.rfn --signers-file mini.pub",
        "verify x.rfn --signers-file secret.pub",
        "test x.rfn --signer RWTykBXoF5CvEa54JN9dNL40wFXk+yoiiRP2+dMaWhvjwTBeyLZVJ0wd",
        "test x.rfn --member x --signers-file mini.pub",
    ] {
        let said = text(&case.ok(line).stderr);
        assert!(said.contains(", signed by "), "{line}: {said}");
    }
    case.ok("decompress -q x.rfn -o out --signers-file mini.pub");
    assert!(case.read("out") == case.read("x"));
    assert!(case.ok("cat x.rfn --signers-file mini.pub").stdout == case.read("x"));
    let tested = result(&case, "test --json x.rfn --signers-file mini.pub");
    assert!(
        tested["signer"].as_str().unwrap().starts_with("minisign "),
        "{tested}"
    );
    let root_hash = tested["root_hash"].as_str().unwrap();
    case.ok(&format!("test -q x.rfn --root-hash {root_hash}"));
    let output = case.pipe(
        REFRAIN,
        &format!("test --root-hash {root_hash}"),
        &case.read("x.rfn"),
    );
    expect(output, 0, "from a pipe");
}

#[test]
fn nothing_is_written_of_what_nobody_vouches_for() {
    let case = case();
    case.ok("sign -q x.rfn --key ssh --output apart.sig");
    case.ok("compress -q x -o other.rfn --name y --sign ssh");
    case.ok("sign -q x.rfn --key ssh");
    let wrong = "1".repeat(64);
    for (options, part) in [
        ("x.rfn --signers-file mini.pub", "not a trusted key"),
        (
            "other.rfn --signers-file mini.pub --signature apart.sig",
            "not a trusted key",
        ),
        (&format!("x.rfn --root-hash {wrong}"), "the root hash is "),
        ("plain.rfn --signers-file ssh.pub", "is not signed"),
        ("two.rfn --signers-file ssh.pub", "nobody can vouch"),
        ("x.gz --signers-file ssh.pub", "nobody can vouch"),
        ("damaged.rfn --signers-file ssh.pub", ""),
    ] {
        case.ok("compress -q x -o plain.rfn -f");
        case.write(
            "two.rfn",
            &[case.read("x.rfn"), case.read("plain.rfn")].concat(),
        );
        let mut damaged = case.read("x.rfn");
        damaged[100_000] ^= 1;
        case.write("damaged.rfn", &damaged);
        let gzip = [
            0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 4, 0, 0x43, 0xbe, 0xb7, 0xe8, 1, 0, 0, 0,
        ];
        case.write("x.gz", &gzip);
        for verb in ["test", "decompress -o out", "decompress -o -", "cat"] {
            let output = case.run(&format!("{verb} {options}"));
            let line = format!("{verb} {options}");
            if verb == "cat" && options.starts_with("two") {
                continue;
            }
            let output = expect(output, 2, &line);
            assert!(output.stdout.is_empty() && !case.exists("out"), "{line}");
            assert!(
                text(&output.stderr).contains(part),
                "{line}: {}",
                text(&output.stderr)
            );
        }
        let said = case.fails(
            &format!("info {options}"),
            if part.is_empty() { 0 } else { 2 },
        );
        assert!(said.contains(part) || options.starts_with("x.gz"), "{said}");
    }
    case.ok("test -q plain.rfn --signers-file ssh.pub --signature apart.sig");
    let said = case.pipe(
        REFRAIN,
        "decompress --signers-file ssh.pub -o out -",
        &case.read("x.rfn"),
    );
    let said = expect(said, 1, "from a pipe");
    assert!(text(&said.stderr).contains("is a pipe"));
}

#[test]
fn keys_and_signatures_that_are_none_are_refused_in_words() {
    let case = case();
    case.write("junk", b"hello\n");
    case.ok("sign -q x.rfn --key mini.key -o x.minisig");
    let before = case.read("x.rfn");
    for (line, part) in [
        ("sign x.rfn --key ssh.pub", "this is a public key"),
        ("sign x.rfn --key junk", "this is no key"),
        (
            "sign x.rfn --key secret --key-password-file junk",
            "passphrase of the secret key is wrong",
        ),
        (
            "sign x.rfn --key ssh --key-password-file pw",
            "leave out --key-password-file",
        ),
        ("sign x.rfn --attach junk", "no signature"),
        (
            "sign x.rfn --attach x.minisig",
            "whose public key is needed",
        ),
        ("sign x x.rfn --key ssh --output y", "one ARCHIVE at a time"),
        (
            "test x.rfn --signers-file ecdsa.pub",
            "\"ecdsa-sha2-nistp256\" are not supported",
        ),
        ("test x.rfn --signers-file ssh", "this is a secret key"),
        ("test x.rfn --signers-file junk", "junk:1: this is no key"),
        (
            "test x.rfn --signature x.minisig",
            "--signature proves nothing",
        ),
        ("test x.rfn --root-hash 12", "64 digits"),
        ("test x.rfn --member y", "y"),
    ] {
        let said = case.fails(line, 1);
        assert!(said.contains(part), "{line}: {said}");
    }
    case.fails("sign x.rfn --key none", 6);
    case.fails("sign x.rfn --key ssh -o x.minisig", 6);
    assert!(case.read("x.rfn") == before);
    let mut changed = case.read("x.rfn");
    changed.truncate(100_000);
    case.write("cut.rfn", &changed);
    case.fails("sign cut.rfn --key ssh", 2);
    assert!(case.read("cut.rfn") == changed);
}

#[test]
fn encrypted_and_protected_archives_stay_so() {
    let case = case();
    case.ok("key generate mine");
    case.ok("key generate other");
    let key = text(&case.read("other"));
    let other = key.split_whitespace().nth(3).unwrap().to_owned();
    let public = text(&case.read("mine"))
        .split_whitespace()
        .nth(3)
        .unwrap()
        .to_owned();
    case.ok(&format!(
        "compress -q x -o e.rfn --recipient {public} --sign ssh --recovery 10%"
    ));
    case.ok("test -q e.rfn --identity mine --signers-file ssh.pub");
    case.ok("sign -q e.rfn --key mini.key --identity mine");
    case.ok(&format!(
        "key add e.rfn --identity mine --recipient {other}"
    ));
    case.ok("protect -q e.rfn");
    let whole = case.read("e.rfn");
    let mut damaged = whole.clone();
    damaged[120_000..125_000].fill(7);
    case.write("e.rfn", &damaged);
    case.ok("repair -q e.rfn");
    assert!(case.read("e.rfn") == whole);
    for signer in ["ssh.pub", "mini.pub"] {
        case.ok(&format!(
            "test -q e.rfn --identity other --signers-file {signer}"
        ));
    }
    let said = case.fails("test e.rfn --signers-file ssh.pub --password-file pw", 1);
    assert!(said.contains("--identity"), "{said}");
}

/// Runs another program in the directory of the case; `None` if it is not installed.
fn other(case: &Case, program: &str, line: &str, input: Option<&str>) -> Option<Output> {
    let mut command = Command::new(program);
    command.current_dir(case.path("")).args(line.split(' '));
    if let Some(input) = input {
        command.stdin(std::fs::File::open(case.path(input)).unwrap());
    }
    match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        output => Some(expect(output.unwrap(), 0, line)),
    }
}

#[test]
fn ssh_keygen_makes_and_checks_the_same_signatures() {
    let case = case();
    case.write("statement", &case.ok("sign x.rfn --statement").stdout);
    use std::os::unix::fs::PermissionsExt;
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(case.path("ssh"), private).unwrap();
    if other(
        &case,
        "ssh-keygen",
        "-Y sign -n refrain -f ssh statement",
        None,
    )
    .is_none()
    {
        return;
    }
    case.ok("sign -q x.rfn --key ssh -o ours");
    assert_eq!(text(&case.read("ours")), text(&case.read("statement.sig")));
    case.ok("sign -q x.rfn --attach statement.sig");
    case.write(
        "allowed",
        format!("ann namespaces=\"refrain\" {SSH_PUBLIC}").as_bytes(),
    );
    let line = "-Y verify -n refrain -f allowed -I ann -s ours";
    other(&case, "ssh-keygen", line, Some("statement"));
    let said = text(&case.ok("test x.rfn --signers-file allowed").stderr);
    assert!(said.contains("(ann)"), "{said}");
    case.write(
        "allowed",
        format!("ann namespaces=\"git\" {SSH_PUBLIC}").as_bytes(),
    );
    let said = case.fails("test x.rfn --signers-file allowed", 2);
    assert!(said.contains("does not count"), "{said}");
}

#[test]
fn minisign_makes_and_checks_the_same_signatures() {
    let case = case();
    case.write("statement", &case.ok("sign x.rfn --statement").stdout);
    if other(
        &case,
        "minisign",
        "-S -s mini.key -m statement -t by-hand",
        None,
    )
    .is_none()
    {
        return;
    }
    case.ok("sign -q x.rfn --attach statement.minisig --signers-file mini.pub");
    let info = result(&case, "info --json x.rfn --signers-file mini.pub");
    assert_eq!(info["signatures"][0]["comment"], "by-hand");
    case.ok("sign -q x.rfn --key mini.key -o ours");
    other(
        &case,
        "minisign",
        "-V -p mini.pub -m statement -x ours",
        None,
    );
}

/// One signature vouches for one member of a remote archive with little reading.
#[test]
fn one_member_of_many_is_verified_from_a_server() {
    let case = Case::new();
    case.write("ssh", SSH.as_bytes());
    case.write("ssh.pub", SSH_PUBLIC.as_bytes());
    let names: Vec<_> = (0..300).map(|number| format!("{number:03}")).collect();
    for (number, name) in (0..).zip(&names) {
        case.write(name, &incompressible(number, 30_000));
    }
    case.ok(&format!(
        "compress -q --block-size 64K -o x.rfn --sign ssh {}",
        names.join(" ")
    ));
    let server = HttpServer::start().unwrap();
    server.put("/x.rfn", Object::new(case.read("x.rfn"), "\"1\""));
    let url = server.url("/x.rfn");
    let said = text(
        &case
            .ok(&format!("test {url} --member 123 --signers-file ssh.pub"))
            .stderr,
    );
    assert!(said.contains("signed by ssh-ed25519"), "{said}");
    let (sent, archive_bytes) = (server.sent_bytes(), case.read("x.rfn").len() as u64);
    assert!(sent < archive_bytes / 4, "{sent} of {archive_bytes} bytes");
    let content = case
        .ok(&format!("cat {url} 123 --signers-file ssh.pub"))
        .stdout;
    assert!(content == case.read("123"));
}

#[test]
fn generations_are_signed_by_themselves() {
    let case = case();
    case.ok("add -q g.rfn x --time 2026-11-20");
    case.ok("sign -q g.rfn --key ssh --output first.sig");
    case.write("x", &incompressible(4, 200_000));
    case.ok("add -q g.rfn x --time 2026-11-21");
    let signers = "--signers-file ssh.pub";
    let first = format!("{signers} --signature first.sig");
    case.ok(&format!("test g.rfn --generation 1 {first}"));
    case.fails(&format!("test g.rfn {first}"), 2);
    case.ok(&format!("cat g.rfn x --generation 1 {first}"));
    case.fails(&format!("cat g.rfn x {first}"), 2);
    case.ok("sign -q g.rfn --key ssh");
    case.ok(&format!("test g.rfn {signers}"));
    case.ok(&format!("decompress -q g.rfn -o out/ {signers}"));
    // The signature stays that of its generation.
    case.ok("add -q g.rfn x --time 2026-11-22");
    case.ok(&format!("test g.rfn --generation 2 {signers}"));
    case.fails(&format!("test g.rfn {signers}"), 2);
    case.ok("sign -q g.rfn --key ssh");
    case.ok(&format!("test g.rfn {signers}"));
    case.ok(&format!("cat g.rfn x --generation 2 {signers}"));
    case.fails(&format!("cat g.rfn x --generation 1 {signers}"), 2);
}
