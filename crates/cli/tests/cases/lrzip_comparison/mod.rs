//! Compares the lrzip command with lrzip itself: the same command lines in equal directories must
//! yield the same exit code, files and messages that scripts parse. The tables state the deliberate
//! differences.

mod harness;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use harness::Expectation::{Different, OtherMessages, Same};
use harness::{Implementation, compare, has_lrzip, prepare};
use refrain_testkit::scaled;

/// Reasons of differences.
const SUFFIX: &str = "any suffix can be removed; lrzip removes what follows the last dot";
const DAMAGE: &str = "damage is reported in other words";

#[test]
fn archives_are_decompressed() {
    compare(
        &[
            ("lrzip -d p.lrz", "", Same),
            ("lrzip -dq p.lrz", "", Same),
            ("lrzip -dQ p.lrz", "", Same),
            ("lrzip -d -H p.lrz", "", Same),
            ("lrzip -dc p.lrz", "", Same),
            ("lrzip -d --check --hash p.lrz", "", Same),
            ("lrunzip p.lrz", "", Same),
            ("lrunzip p.lrz p.tar.lrz old.lrz", "", Same),
            ("lrzip -d none.lrz nofile.lrz p.lrz", "", Same),
            ("lrzip -d -o x p.lrz", "", Same),
            ("lrzip p.lrz -d -o out/x", "", Same),
            ("lrzip -d -O out p.lrz d/in.lrz", "", Same),
            ("lrzip -d -O out/ p.lrz", "", Same),
            ("lrzip -d -O nodir p.lrz", "", Same),
            ("lrzip -d -o nodir/x p.lrz", "", Same),
            (
                "lrzip -d -S .tar.lrz p.tar.lrz",
                "",
                Different(SUFFIX, 0, &["p"]),
            ),
            ("lrzip -d -S rz p.lrz", "", Different(SUFFIX, 0, &["p.l"])),
            ("lrzip -d -o x -S .y p.lrz", "", Same),
            ("lrzip -d here.lrz", "", Same),
            ("lrzip -d -f here.lrz", "", Same),
            ("lrzip -d -f -o here p.lrz", "", Same),
            ("lrzip -d -o here p.lrz", "", Same),
            (
                "lrzip -d -o out p.lrz",
                "",
                OtherMessages("the message states that it is a directory"),
            ),
            ("lrzip -D -d p.lrz", "", Same),
            ("lrzip -D -d here.lrz", "", Same),
            ("lrzip -Ddf here.lrz", "", Same),
            ("lrzip -D -d cut.lrz", "", OtherMessages(DAMAGE)),
            ("lrzip -r -d d", "", Same),
            ("lrzip -rdD d", "", Same),
            ("lrzip -r -d -O out d", "", Same),
            ("lrzip -r -d p.lrz", "", Same),
            ("lrzip -r -d -o x d", "", Same),
            ("lrzip -r -d", "p.lrz", Same),
            ("lrzip -d d", "", Same),
            ("lrzip -d nofile", "", Same),
            (
                "lrzip -d text",
                "",
                OtherMessages("the message states the reason"),
            ),
            ("lrzip -d -o x text", "", Same),
            ("lrzip -d -o x empty", "", OtherMessages(DAMAGE)),
            ("lrzip -d -o x y.lrz p.lrz", "", Same),
            ("lrzip -d -o x -O out p.lrz", "", Same),
            ("lrzip -d -p 1 p.lrz", "", Same),
            ("lrzip -d -p 0 p.lrz", "", Same),
            ("lrzip -d -m 5 p.lrz", "", Same),
            ("lrzip -d -N 5 p.lrz", "", Same),
            ("lrzip -d -L 9 -w 3 -T p.lrz", "", Same),
            ("lrzip -d -U p.lrz", "", Same),
            ("lrzip -d -g p.lrz", "", Same),
            ("lrzip -d -n -g p.lrz", "", Same),
            ("lrzip --decompress --outfile=x --quiet p.lrz", "", Same),
            ("lrzip --dec --force --outd=out p.lrz", "", Same),
        ],
        None,
    );
}

#[test]
fn pipes_are_decompressed() {
    compare(
        &[
            ("lrzip -d", "p.lrz", Same),
            ("lrzip -d -", "p.lrz", Same),
            ("lrzip -dq", "p.lrz", Same),
            ("lrzip -dQ", "p.lrz", Same),
            ("lrunzip", "p.lrz", Same),
            ("lrzcat", "p.lrz", Same),
            ("lrzcat p.lrz", "", Same),
            ("lrzcat p.lrz p.tar.lrz", "", Same),
            ("lrzcat -Q p.lrz", "", Same),
            ("lrzcat nofile", "", Same),
            ("lrzcat text", "", Same),
            ("lrzcat -H p.lrz", "", Same),
            ("lrzip -d -o - p.lrz", "", Same),
            ("lrzip -d -o - p.lrz none.lrz", "", Same),
            ("lrzip -dc -o - p.lrz", "", Same),
            ("lrzip -d -o x", "p.lrz", Same),
            ("lrzip -d -o x -", "p.lrz", Same),
            ("lrzip -d -o here", "p.lrz", Same),
            ("lrzip -d -f -o here", "p.lrz", Same),
            ("lrzip -d -O out", "p.lrz", Same),
            ("lrzip -d -H", "p.lrz", Same),
            ("lrzip -d -D", "p.lrz", Same),
            ("lrzip -d", "text", Same),
            ("lrzip -d", "cut.lrz", OtherMessages(DAMAGE)),
            ("lrzip -t", "p.lrz", Same),
            ("lrzip -d -t", "p.lrz", Same),
            ("lrzip -t -q -H", "p.lrz", Same),
            ("lrzip -t", "text", Same),
            ("lrz -d", "p.lrz", Same),
            ("lrz -dc p.lrz", "", Same),
        ],
        None,
    );
}

#[test]
fn archives_are_tested_and_listed() {
    compare(
        &[
            ("lrzip -t p.lrz", "", Same),
            ("lrzip -tq p.lrz", "", Same),
            ("lrzip -tQ p.lrz", "", Same),
            ("lrzip -tH p.lrz old.lrz", "", Same),
            ("lrzip -tc p.lrz", "", Same),
            ("lrzip -dt p.lrz", "", Same),
            (
                "lrzip -it p.lrz",
                "",
                OtherMessages("a test prints its time"),
            ),
            ("lrzip -t -o x p.lrz", "", Same),
            ("lrzip -t -O out p.lrz", "", Same),
            ("lrzip -t text", "", Same),
            ("lrzip -t nofile", "", Same),
            ("lrzip -t cut.lrz", "", OtherMessages(DAMAGE)),
            ("lrzip -t head.lrz", "", OtherMessages(DAMAGE)),
            ("lrzip -t flip.lrz", "", OtherMessages(DAMAGE)),
            ("lrzip -t empty", "", OtherMessages(DAMAGE)),
            ("lrzip -t p.lrz text none.lrz", "", Same),
            ("lrzip -rt d", "", Same),
            (
                "lrzip -t -D p.lrz",
                "",
                Different("a test deletes nothing; lrzip deletes the archive", 0, &[]),
            ),
            ("lrzip -i none.lrz", "", Same),
            ("lrzip -iv none.lrz", "", Same),
            ("lrzip -ivv none.lrz", "", Same),
            ("lrzip -iq none.lrz", "", Same),
            ("lrzip -iQ none.lrz", "", Same),
            ("lrzip -di none.lrz", "", Same),
            ("lrzip -iD none.lrz", "", Same),
            ("lrzip -i -o x none.lrz", "", Same),
            (
                "lrzip -i p.lrz",
                "",
                OtherMessages("the back end is printed; lrzip prints 'rzip alone'"),
            ),
            ("lrzip -i enc.lrz", "", Same),
            ("lrzip -iv enc.lrz", "", Same),
            ("lrzip -i text", "", Same),
            ("lrzip -i nofile", "", Same),
            ("lrzip -i none.lrz text", "", Same),
            ("lrzip -i", "p.lrz", Same),
            ("lrzip -i -", "p.lrz", Same),
            ("lrzip -i d", "", Same),
            (
                "lrz -i none.lrz",
                "",
                OtherMessages("lrz prints the structure; that of lrzip prints nothing"),
            ),
            ("lrzip -i cut.lrz", "", OtherMessages(DAMAGE)),
        ],
        None,
    );
}

#[test]
fn damaged_archives_leave_what_lrzip_leaves() {
    compare(
        &[
            ("lrzip -d cut.lrz", "", OtherMessages(DAMAGE)),
            ("lrzip -d flip.lrz", "", OtherMessages(DAMAGE)),
            ("lrzip -d head.lrz", "", OtherMessages(DAMAGE)),
            ("lrzip -d -K flip.lrz", "", OtherMessages(DAMAGE)),
            ("lrzip -d -K -o x flip.lrz", "", OtherMessages(DAMAGE)),
            (
                "lrzip -d -f -o here cut.lrz",
                "",
                Different("the existing file remains", 1, &[]),
            ),
            (
                "lrzip -df text",
                "",
                Different("the input remains; lrzip deletes it", 1, &[]),
            ),
            (
                "lrzip -df -S .y p.lrz",
                "",
                Different("the input remains; lrzip overwrites it", 1, &[]),
            ),
        ],
        None,
    );
}

#[test]
fn lrz_follows_the_conventions_of_gzip() {
    compare(
        &[
            ("lrz -d p.lrz", "", Same),
            ("lrz -dk p.lrz", "", Same),
            ("lrz -d here.lrz", "", Same),
            ("lrz -df here.lrz", "", Same),
            ("lrz -dv p.lrz", "", Same),
            ("lrz -dP p.lrz", "", Same),
            ("lrz -dC p.lrz", "", Same),
            ("lrz -t p.lrz", "", Same),
            ("lrz -rd d", "", Same),
            ("lrz -d d", "", Same),
            ("lrz nofile", "", Same),
            (
                "lrz -d text",
                "",
                OtherMessages("the message states the reason"),
            ),
        ],
        None,
    );
}

#[test]
fn invalid_command_lines_are_refused_like_lrzip_does() {
    let help = "the help has other words";
    compare(
        &[
            ("lrzip --foo text", "", OtherMessages(help)),
            ("lrzip -y text", "", OtherMessages(help)),
            ("lrzip -o", "", OtherMessages(help)),
            ("lrzip --info=3 p.lrz", "", OtherMessages(help)),
            ("lrzip --lz text", "", OtherMessages(help)),
            ("lrz -q text", "", OtherMessages(help)),
            ("lrz -0 text", "", OtherMessages(help)),
            ("lrzip -h", "", OtherMessages(help)),
            (
                "lrzip -h --nonsense text",
                "",
                Different("the whole command line is parsed first", 2, &[]),
            ),
            (
                "lrzip -?",
                "",
                Different("requesting help is no error", 0, &[]),
            ),
            ("lrzip -V", "", OtherMessages("the name of the program")),
            ("lrz -L text", "", OtherMessages("the name of the program")),
            ("lrzip -L 0 text", "", Same),
            ("lrzip -L 10 text", "", Same),
            ("lrzip -L 3x text", "", Same),
            ("lrzip -L text", "", Same),
            ("lrzip -w 0 text", "", Same),
            ("lrzip -w 2k text", "", Same),
            ("lrzip -N -21 text", "", Same),
            ("lrzip -N 3k text", "", Same),
            ("lrzip -p 0 text", "", Same),
            ("lrzip -p -1 text", "", Same),
            ("lrzip -p 2k text", "", Same),
            ("lrzip -n -g text", "", Same),
            ("lrzip -b -b text", "", Same),
            ("lrzip -o a -O b text", "", Same),
            ("lrzip -o x text here", "", Same),
            ("lrzip -r text", "", Same),
            ("lrzip -r -o x t", "", Same),
            ("lrzip -r", "", Same),
            ("lrzip t", "", Same),
            ("lrzip nofile", "", Same),
            ("lrzip -- -x", "", Same),
            ("lrzip p.lrz", "", Same),
            ("lrzip -f p.lrz", "", Same),
            ("lrzip here", "", Same),
            ("lrzip -o here text", "", Same),
            ("lrzip -o x -S .y text", "", Same),
            ("lrzip -S .y -o x text", "", Same),
            ("lrzip -O nodir text", "", Same),
        ],
        None,
    );
}

#[test]
fn files_are_compressed() {
    let more = "lrzip prints properties of the machine with -v";
    compare(
        &[
            ("lrzip text", "", Same),
            ("lrzip -q text", "", Same),
            ("lrzip -Q text", "", Same),
            ("lrzip -v text", "", OtherMessages(more)),
            ("lrzip -vv text", "", OtherMessages(more)),
            ("lrzip -H text", "", Same),
            ("lrzip -b text", "", Same),
            ("lrzip -g text", "", Same),
            ("lrzip -l text", "", Same),
            ("lrzip -n text", "", Same),
            ("lrzip -z -L1 text", "", Same),
            ("lrzip --lzma -L 9 text", "", Same),
            ("lrzip --best text", "", Same),
            (
                "lrzip -1 text",
                "",
                OtherMessages("the help has other words"),
            ),
            ("lrzip -T -p 1 -w 1 -N 3 text", "", Same),
            ("lrzip -p 3 text", "", Same),
            ("lrzip -U text", "", Same),
            ("lrzip -U -w 2 text", "", Same),
            (
                "lrzip -c text",
                "",
                OtherMessages("archives are checked, too"),
            ),
            ("lrzip -K text", "", Same),
            ("lrzip empty", "", Same),
            ("lrzip -n empty", "", Same),
            ("lrzip -o x text", "", Same),
            ("lrzip -o x p.lrz", "", Same),
            ("lrzip -O out text here", "", Same),
            ("lrzip -S .y text", "", Same),
            ("lrzip -S y text", "", Same),
            ("lrzip -S .y p.lrz", "", Same),
            ("lrzip -f here", "", Same),
            ("lrzip -f -o here text", "", Same),
            ("lrzip -D text", "", Same),
            ("lrzip -D here", "", Same),
            ("lrzip -D -f here", "", Same),
            ("lrzip -D -o x text", "", Same),
            ("lrzip -r t", "", Same),
            ("lrzip -rD t", "", Same),
            ("lrzip -r d", "", Same),
            ("lrzip text nofile empty", "", Same),
            ("lrzip text p.lrz", "", Same),
            ("lrz text", "", Same),
            ("lrz -k text", "", Same),
            ("lrz -9 -k -P text", "", Same),
            ("lrz --fast --keep text", "", Same),
            ("lrz here", "", Same),
            ("lrz -f here", "", Same),
            ("lrz -v text", "", Same),
            ("lrz -r t", "", Same),
            ("lrz -S .y -k text", "", Same),
        ],
        None,
    );
}

#[test]
fn pipes_are_compressed() {
    compare(
        &[
            ("lrzip", "text", Same),
            ("lrzip -", "text", Same),
            ("lrzip -Q", "text", Same),
            ("lrzip -Q -n", "text", Same),
            ("lrzip -Q -g", "text", Same),
            ("lrzip -Q -b", "text", Same),
            ("lrzip -Q -l", "text", Same),
            ("lrzip -Q -o x", "text", Same),
            ("lrzip -q -o x", "text", Same),
            ("lrzip -q -o x -", "text", Same),
            ("lrzip -q -o here", "text", Same),
            ("lrzip -q -f -o here", "text", Same),
            ("lrzip -Q -o - text", "", Same),
            ("lrzip -Q -D", "text", Same),
            ("lrzip -Q", "empty", Same),
            ("lrz", "text", Same),
        ],
        None,
    );
}

#[test]
fn directories_are_archived_and_extracted() {
    let (by, out) = (
        "tar stores owners by name",
        "messages of tar go to standard output",
    );
    compare(
        &[
            ("lrztar", "", OtherMessages(out)),
            ("lrzuntar", "", OtherMessages(out)),
            ("lrzuntar nofile", "", OtherMessages(out)),
            ("lrzuntar -O nodir p.tar.lrz", "", OtherMessages(out)),
            ("lrztar t", "", Different(by, 0, &["t.tar.lrz"])),
            ("lrztar t/", "", Different(by, 0, &["t.tar.lrz"])),
            ("lrztar -q -g -L3 t/s", "", Different(by, 0, &["s.tar.lrz"])),
            ("lrztar -o x t", "", Different(by, 0, &["x"])),
            (
                "lrztar -O out t",
                "",
                Different("lrztar fails", 0, &["out/t.tar.lrz"]),
            ),
            (
                "lrztar nodir",
                "",
                Different("lrztar leaves an empty archive", 1, &[]),
            ),
            ("lrztar text", "", Different(by, 0, &["text.tar.lrz"])),
            ("lrztar t/a", "", Different(by, 0, &["a.tar.lrz"])),
            ("lrztar .", "", Different(by, 0, &["..tar.lrz"])),
            ("lrztar -S foo t", "", Different(by, 0, &["t.tar.foo"])),
            (
                "lrztar -S .foo t",
                "",
                Different("lrztar adds a second dot", 0, &["t.tar.foo"]),
            ),
            (
                "lrztar -t p.tar.lrz",
                "",
                Different("lrztar has no test", 0, &[]),
            ),
            (
                "lrztar -i p.tar.lrz",
                "",
                Different("lrztar has no information", 0, &[]),
            ),
            (
                "lrztar t d",
                "",
                OtherMessages("lrztar takes `d` as an option"),
            ),
            (
                "lrzuntar text",
                "",
                Different("lrztar exits with the code of tar", 1, &[]),
            ),
        ],
        None,
    );
}

/// Each implementation extracts what the other one archives.
#[test]
fn archived_directories_are_extracted_by_the_other_implementation() {
    if !has_lrzip() {
        return;
    }
    let ours = Implementation::refrain();
    let programs = ours.programs.clone().unwrap();
    let work = ours.work();
    let run = |program: PathBuf, arguments: &str| {
        let mut command = Command::new(program);
        command.args(arguments.split(' ')).current_dir(&work);
        let output = command.env("LRZIP", "NOCONFIG").output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments}: {messages}");
    };
    let pairs = [
        (programs.join("lrztar"), PathBuf::from("lrzuntar")),
        (PathBuf::from("lrztar"), programs.join("lrzuntar")),
        (programs.join("lrztar"), programs.join("lrzuntar")),
    ];
    for (archiver, extractor) in pairs {
        let _ = fs::remove_dir_all(&work);
        fs::create_dir_all(&work).unwrap();
        prepare(&work);
        run(archiver, "-q t");
        run(extractor, "-q -O out t.tar.lrz");
        for name in ["t/a", "t/s/b"] {
            let extracted = fs::read(work.join("out").join(name)).unwrap();
            assert!(extracted == fs::read(work.join(name)).unwrap(), "{name}");
        }
        assert!(work.join("t.tar.lrz").exists());
    }
}

#[test]
fn passwords_are_accepted_like_lrzip_does() {
    // Either program derives keys for a second.
    let all = [
        (
            "lrzip -dq --encrypt=secret enc.lrz",
            "",
            OtherMessages("the length is printed"),
        ),
        (
            "lrzip -tq --encrypt=wrong enc.lrz",
            "",
            OtherMessages(DAMAGE),
        ),
        (
            "lrzip -tq enc.lrz",
            "",
            OtherMessages("the message names the file"),
        ),
        (
            "lrzip -tq enc.lrz",
            "pw",
            OtherMessages("the length is printed"),
        ),
        (
            "lrzip -dq --encrypt=secret -o - enc.lrz",
            "",
            Different("lrzip refuses a password with a pipe", 0, &[]),
        ),
    ];
    compare(&all[..all.len().min(3 * scaled(1) as usize)], None);
}

#[test]
fn the_configuration_file_has_the_same_effect() {
    for config in [
        "",
        "# comment\n\nFOO = YES\n",
        "HASHCHECK = YES\n",
        "SHOWHASH = YES\nSHOWPROGRESS = NO\n",
        "OUTPUTDIRECTORY = out\n",
        "KEEPBROKEN = YES\nNICE = 5\nWINDOW = 3\nCOMPRESSIONLEVEL = 4\n",
        "COMPRESSIONLEVEL = 13\n",
        "COMPRESSIONMETHOD = foo\n",
        "NICE = 50\n",
        "DELETEFILES = no\n",
        "TMPDIR = out\n",
    ] {
        compare(&[("lrzip -d p.lrz", "", Same)], Some(config));
    }
    let delete = "a file in the current directory deletes nothing";
    compare(
        &[(
            "lrzip -d p.lrz",
            "",
            Different(delete, 0, &["lrzip.conf", "p"]),
        )],
        Some("DELETEFILES = YES\n"),
    );
    compare(
        &[("lrzip -d -o x -O out p.lrz", "", Same)],
        Some("OUTPUTDIRECTORY = d\n"),
    );
}
