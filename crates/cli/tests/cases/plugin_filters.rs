//! Filters in shared libraries.

use crate::plugins::reads_while_the_plugin_changes;
use crate::support::Case;

const SOURCE: &str = include_str!("../../../plugin/tests/sources/numbers.c");

/// Numbers with a constant difference.
fn content() -> Vec<u8> {
    let numbers = (0..75_000_u32).map(|at| at.wrapping_mul(70_001));
    numbers.flat_map(u32::to_le_bytes).collect()
}

fn case() -> Case {
    let case = Case::new();
    case.write("numbers.c", SOURCE.as_bytes());
    case.write("file", &content());
    case
}

/// Writes the source with these definitions, under the name of the plug-in.
fn write(case: &Case, definitions: &str) {
    let source = format!("{definitions}\n{SOURCE}");
    case.write("numbers.c", source.as_bytes());
}

fn told(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn an_archive_names_the_filter_that_it_needs() {
    let case = case();
    let error = case.fails("compress file --filter numbers:1", 1);
    assert!(error.contains("there is no filter 'numbers'"), "{error}");
    case.ok("plugin make numbers.c");
    let checked = told(&case.ok("plugin check numbers.so"));
    let wanted = "filter 224 'numbers': 6 samples came back, 6 of them filtered";
    assert!(checked.contains(wanted), "{checked}");
    case.ok("compress -q --codec zstd file -o plain.rfn");
    for (archive, filters) in [("a.rfn", "numbers:1"), ("b.rfn", "numbers:1|transpose:4")] {
        let made = told(&case.ok(&format!(
            "compress --plugin numbers.so --codec zstd --filter {filters} file -o {archive}"
        )));
        assert!(!made.contains("does without"), "{made}");
        assert!(case.read(archive).len() < case.read("plain.rfn").len() / 5);
        case.ok(&format!("test -q {archive} --plugin=numbers.so"));
        let read = case
            .ok(&format!("cat {archive} --plugin numbers.so"))
            .stdout;
        assert!(read == content());
    }
    case.ok("decompress -q b.rfn -o copy --plugin numbers.c");
    assert!(case.read("copy") == content());
    let info = |line: &str| String::from_utf8(case.ok(line).stdout).unwrap();
    let named = info("info b.rfn --plugin numbers.so");
    assert!(
        named.contains("zstd + numbers+transpose 100.0 %"),
        "{named}"
    );
    let unnamed = info("info b.rfn");
    assert!(
        unnamed.contains("zstd + #224+transpose 100.0 %"),
        "{unnamed}"
    );
    // From a pipe, and without any of it.
    let program = env!("CARGO_BIN_EXE_refrain");
    let piped = case.pipe(program, "test -q --plugin numbers.so", &case.read("a.rfn"));
    assert!(piped.status.success(), "{}", told(&piped));
    let piped = case.pipe(program, "test -q", &case.read("a.rfn"));
    assert_eq!(piped.status.code(), Some(3), "{}", told(&piped));
    for error in [
        told(&piped),
        case.fails("test a.rfn", 3),
        case.fails("cat b.rfn", 3),
    ] {
        let wanted = "filter 224 is that of the plug-in 'numbers': load it with --plugin FILE";
        assert!(error.contains(wanted), "{error}");
    }
    // Another one with its number.
    let other = SOURCE.replace("\"numbers\"", "\"other\"");
    case.write("other.c", other.as_bytes());
    let error = case.fails("test a.rfn --plugin other.c", 3);
    let wanted = "filter 224 of the archive is that of the plug-in 'numbers', and the one with this \
                  number is 'other'";
    assert!(error.contains(wanted), "{error}");
    let error = case.fails("test a.rfn --plugin numbers.so --plugin other.so", 1);
    let wanted = "its number 224 is that of the plug-in 'numbers', which is loaded";
    assert!(error.contains(wanted), "{error}");
    // What is added and merged is named as well.
    case.ok("add -q c.rfn file");
    case.ok("merge -q --plugin numbers.so a.rfn c.rfn -o merged.rfn");
    case.ok("test -q --plugin numbers.so merged.rfn");
    let error = case.fails("test merged.rfn", 3);
    assert!(error.contains("the plug-in 'numbers': load it"), "{error}");
}

#[test]
fn codec_and_filter_of_plugins_go_together() {
    let case = case();
    let runs = include_str!("../../../plugin/tests/sources/runs.c");
    case.write("runs.c", runs.as_bytes());
    // Only the differences are runs.
    let numbers = (0..50_000_u32).map(|at| at.wrapping_mul(0x0101_0101));
    let numbers: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
    case.write("file", &numbers);
    let options = "--plugin runs.c --plugin numbers.c";
    case.ok(&format!(
        "compress -q {options} --codec runs --filter numbers:1 file -o a.rfn"
    ));
    assert!(case.read("a.rfn").len() < 5000);
    case.ok(&format!("test -q {options} a.rfn"));
    for (loaded, absent) in [
        ("numbers.c", "codec 65024 is that of the plug-in 'runs'"),
        ("runs.c", "filter 224 is that of the plug-in 'numbers'"),
    ] {
        let error = case.fails(&format!("test --plugin {loaded} a.rfn"), 3);
        assert!(error.contains(absent), "{error}");
    }
}

#[test]
fn what_lies_costs_no_data() {
    let case = case();
    for lie in [
        "#define ENCODE short_length",
        "#define ENCODE other_every_time",
        "#define DECODE undoes_less",
        "#define DECODE undoes_nothing",
        "#define ENCODE negative",
    ] {
        write(&case, lie);
        let compress = "compress --plugin numbers.c --codec zstd --filter delta:1|numbers:1 file \
                        -f -o a.rfn";
        let said = told(&case.ok(compress));
        let wanted = "block 0 does without filter delta1+numbers:1, which fails on it";
        assert!(said.contains(wanted), "{lie}: {said}");
        // The plug-in is not needed.
        assert!(case.ok("cat a.rfn").stdout == content());
    }
    write(&case, "#define DECODE undoes_less");
    case.ok("plugin make numbers.c");
    let error = case.fails("plugin check numbers.so", 1);
    let wanted = "with parameter 1 it restores other bytes";
    assert!(error.contains(wanted), "{error}");
}

#[test]
fn a_filter_that_fails_when_it_reads_is_damage() {
    let case = case();
    case.ok("compress -q --plugin numbers.c --codec zstd --filter numbers:1 file -o a.rfn");
    for (lie, wanted) in [
        (
            "#define DECODE undoes_nothing",
            "filter 224 'numbers': the plug-in cannot undo it",
        ),
        (
            "#define DECODE undoes_long",
            "filter 224 'numbers': the plug-in states another length",
        ),
        ("#define DECODE undoes_less", "checksum"),
    ] {
        write(&case, lie);
        let error = case.fails("test a.rfn --plugin numbers.c", 2);
        assert!(error.contains("block 0 damaged"), "{lie}: {error}");
        let program = env!("CARGO_BIN_EXE_refrain");
        let piped = case.pipe(program, "test --plugin numbers.c", &case.read("a.rfn"));
        let error = told(&piped);
        assert_eq!(piped.status.code(), Some(2), "{lie}: {error}");
        assert!(error.contains("block 0 at"), "{lie}: {error}");
        assert!(error.contains(wanted), "{lie}: {error}");
    }
    // It is the plug-in that was wrong.
    write(&case, "");
    case.ok("test -q a.rfn --plugin numbers.c");
}

#[test]
fn a_filter_that_takes_all_memory_is_not_used() {
    let case = case();
    let compress = "compress -q --plugin numbers.c --codec zstd --filter numbers:1 file -f -o";
    case.ok(&format!("{compress} a.rfn"));
    write(&case, "#define MEMORY (1ull << 40)");
    case.ok(&format!("{compress} b.rfn"));
    assert!(case.ok("cat b.rfn").stdout == content());
    let blocks = String::from_utf8(case.ok("info -vv b.rfn").stdout).unwrap();
    assert!(blocks.contains("memory limit"), "{blocks}");
    let error = case.fails("test a.rfn --plugin numbers.c", 5);
    assert!(error.contains("memory"), "{error}");
}

#[test]
fn a_service_loads_a_filter_that_changed() {
    let case = case();
    case.ok(
        "compress -q --plugin numbers.c --codec zstd --filter numbers:1 file --block-size 64K \
         -o a.rfn",
    );
    reads_while_the_plugin_changes(&case, "numbers", SOURCE, &content());
}
