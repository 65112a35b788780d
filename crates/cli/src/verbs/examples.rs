//! The examples in the manual pages.

/// Examples of a program or verb: what it does, and the command line.
type Examples = &'static [(&'static str, &'static str)];

/// The examples by the stem of the manual page.
const EXAMPLES: [(&str, Examples); 29] = [
    (
        "refrain",
        &[
            (
                "Compress a disk image to disk.img.rfn, and restore it:",
                "refrain compress disk.img\nrefrain decompress disk.img.rfn -o copy.img",
            ),
            (
                "Read one megabyte of it without decompressing the rest:",
                "refrain cat disk.img.rfn --range 1000M..1001M",
            ),
        ],
    ),
    (
        "refrain-compress",
        &[
            (
                "Compress a file to disk.img.rfn:",
                "refrain compress disk.img",
            ),
            (
                "Compress a directory densely:",
                "refrain compress -8 project/ -o project.rfn",
            ),
            (
                "Compress a system, without other file systems and what its caches can recreate:",
                "refrain compress / -o system.rfn --one-file-system --exclude-caches --exclude /var/tmp",
            ),
            (
                "Compress what find prints:",
                "find project -newer stamp -print0 | refrain compress --files-from - -0 -o new.rfn .",
            ),
            (
                "Put several inputs into one archive:",
                "refrain compress monday.img tuesday.img -o week.rfn",
            ),
            (
                "Compress a pipe, within 512 MiB of memory:",
                "producer | refrain compress --memory 512M -o stream.rfn -",
            ),
            (
                "Remove the source only after the archive was read back from the disk:",
                "refrain compress --check --rm disk.img",
            ),
            (
                "Write an archive for random access:",
                "refrain compress --for serve disk.img",
            ),
            (
                "Compress numbers of four bytes each, first all first bytes, then all second bytes:",
                "refrain compress --filter 'transpose:4|delta:1' samples.f32",
            ),
            (
                "Keep an archive for decades, with the decoders that it needs:",
                "refrain compress -8 --carry-decoders project/ -o kept.rfn",
            ),
        ],
    ),
    (
        "refrain-decompress",
        &[
            (
                "Restore a file beside its archive:",
                "refrain decompress disk.img.rfn",
            ),
            (
                "Restore all members below a directory, by their names:",
                "refrain decompress week.rfn -o restored/",
            ),
            (
                "Restore parts of a directory below another one:",
                "refrain decompress project.rfn docs src/main.rs -o part",
            ),
            (
                "Restore only sources, without their owners:",
                "refrain decompress project.rfn --include '*.rs' --no-same-owner",
            ),
            (
                "Pass a directory to tar:",
                "refrain decompress project.rfn -o - | tar -tv",
            ),
        ],
    ),
    (
        "refrain-add",
        &[
            (
                "Back up a directory every night; each night costs what changed:",
                "refrain add backup.rfn project/ --tag nightly",
            ),
            (
                "Add a database dump from a pipe, and list all generations:",
                "pg_dump shop | refrain add shop.rfn - --name shop.sql\nrefrain list --generations shop.rfn",
            ),
            (
                "Keep an encrypted archive, by a line that serves the first night and all others:",
                "refrain add safe.rfn project/ --encrypt --password-file password",
            ),
            (
                "Add with recovery data, so that a tenth of each night may be lost and healed:",
                "refrain add kept.rfn project/ --recovery 10%",
            ),
            (
                "Keep the archive in a folder of files that never change, for mirrors and buckets:",
                "refrain add backup/ project/ --volume 4G\nrefrain list --volumes backup/",
            ),
            (
                "Restore what the directory was on a day:",
                "refrain decompress backup.rfn --generation 2026-11-20 -o restored/",
            ),
        ],
    ),
    (
        "refrain-diff",
        &[(
            "Show what the last night changed:",
            "refrain diff backup.rfn 2026-11-20",
        )],
    ),
    (
        "refrain-forget",
        &[(
            "Keep seven days, four weeks and twelve months:",
            "refrain forget backup.rfn --keep-daily 7 --keep-weekly 4 --keep-monthly 12",
        )],
    ),
    (
        "refrain-compact",
        &[(
            "Say how much space what was forgotten takes, and give it back:",
            "refrain compact backup.rfn --dry-run && refrain compact backup.rfn",
        )],
    ),
    (
        "refrain-merge",
        &[(
            "Make one archive of those of two machines, and see what it has:",
            "refrain merge laptop.rfn desktop.rfn -o both.rfn && refrain list --generations both.rfn",
        )],
    ),
    (
        "refrain-protect",
        &[
            (
                "Add recovery data, so that a tenth of the archive may be lost anywhere:",
                "refrain protect project.rfn",
            ),
            (
                "Make recovery data for a file of another program, in photos.zip.rfr:",
                "refrain protect photos.zip --recovery 5%",
            ),
        ],
    ),
    (
        "refrain-repair",
        &[
            ("Heal an archive:", "refrain repair project.rfn"),
            (
                "Heal it by what is intact in another damaged copy, into a new file:",
                "refrain repair project.rfn /mnt/old/project.rfn -o healed.rfn",
            ),
        ],
    ),
    (
        "refrain-boot",
        &[
            (
                "Boot a disk image, and record what it reads:",
                "refrain boot debian.img.rfn --record boot.trace -- -m 2G -nographic",
            ),
            (
                "Boot it again, read ahead by that trace, and keep what the guest writes:",
                "refrain boot debian.img.rfn --replay boot.trace --overlay mine.qcow2",
            ),
        ],
    ),
    (
        "refrain-serve",
        &[
            (
                "Attach a disk image to a virtual machine:",
                "refrain serve disk.img.rfn --nbd unix:/run/disk.sock",
            ),
            (
                "Serve every image of an archive to the network, and return to the shell:",
                "refrain serve week.rfn --nbd 0.0.0.0:10809 --daemon",
            ),
            (
                "Let browsers and curl read members, and the files of directories:",
                "refrain serve project.rfn --http 127.0.0.1:8080",
            ),
            (
                "Serve every archive of a directory under its name, and one more as `week`:",
                "refrain serve /srv/archives week=/backup/7.rfn --nbd unix:/run/all.sock",
            ),
            (
                "Keep what was read of a bucket on a disk, and on nodes that other machines share:",
                "refrain serve s3://images/disk.rfn --nbd unix:/run/disk.sock --cache-disk /var/cache/refrain --cache memcached://10.0.0.1,10.0.0.2",
            ),
        ],
    ),
    (
        "refrain-top",
        &[
            ("Watch a service:", "refrain top 127.0.0.1:8080"),
            (
                "Print the requests since the last time, and reset the statistics:",
                "refrain top unix:/run/refrain.sock --once --reset",
            ),
        ],
    ),
    (
        "refrain-plugin",
        &[
            (
                "Compile a codec, and try it:",
                "refrain plugin make halves.c\nrefrain plugin check halves.so",
            ),
            (
                "Compress with it, and read the archive:",
                "refrain compress --plugin halves.so --codec halves samples\n\
                 refrain decompress --plugin halves.so samples.rfn -o copy",
            ),
        ],
    ),
    (
        "refrain-test",
        &[
            ("Check archives completely:", "refrain test *.rfn"),
            (
                "Compare the checksums of all stored parts, without decoding:",
                "refrain test --fast *.rfn",
            ),
            (
                "Prove that an archive made with --carry-decoders opens without this program's decoders:",
                "refrain test --decoders carried archive.rfn",
            ),
            (
                "Check an archive that comes through a pipe:",
                "ssh host cat backup.rfn | refrain test",
            ),
            (
                "Check that somebody signed an archive, and that it is what was signed:",
                "refrain test backup.rfn --signers-file ann.pub",
            ),
        ],
    ),
    (
        "refrain-sign",
        &[
            (
                "Sign an archive with a key of SSH, and check the signature:",
                "refrain sign backup.rfn --key ~/.ssh/id_ed25519\nrefrain test backup.rfn --signers-file ~/.ssh/id_ed25519.pub",
            ),
            (
                "Write the signature to a file of its own:",
                "refrain sign backup.rfn --key minisign.key -o backup.minisig",
            ),
            (
                "Let ssh-keygen sign, with a key that its agent holds:",
                "refrain sign backup.rfn --statement > statement\nssh-keygen -Y sign -n refrain -f ~/.ssh/id_ed25519.pub statement\nrefrain sign backup.rfn --attach statement.sig",
            ),
        ],
    ),
    (
        "refrain-info",
        &[
            (
                "Show sizes, ratio, codecs and integrity:",
                "refrain info disk.img.rfn",
            ),
            ("One line per archive:", "refrain info --table *.rfn"),
            ("All values as JSON:", "refrain info --json disk.img.rfn"),
        ],
    ),
    (
        "refrain-map",
        &[
            (
                "Show what repeats how far apart, and what folders cost:",
                "refrain map project.rfn",
            ),
            (
                "Write a page for a browser:",
                "refrain map project.rfn -o map.html",
            ),
        ],
    ),
    (
        "refrain-manifest",
        &[
            (
                "Let zarr, xarray and others read inside an archive that is served:",
                "refrain manifest data.rfn --served http://127.0.0.1:8080 -o data.json",
            ),
            (
                "Refer to the bytes in the archive itself, in a store, where they are stored as they are:",
                "refrain manifest data.rfn --stored s3://bucket/data.rfn -o data.json",
            ),
        ],
    ),
    (
        "refrain-list",
        &[
            (
                "List the files of an archived directory:",
                "refrain list project.rfn",
            ),
            (
                "With modes, owners, sizes and times, only what a pattern matches:",
                "refrain list -l project.rfn '*.rs'",
            ),
            (
                "Feed a list to another program, whatever the names:",
                "refrain list -0 project.rfn | xargs -0 -n 1 echo",
            ),
            (
                "List what is left of a damaged archive:",
                "refrain list --scan damaged.rfn",
            ),
        ],
    ),
    (
        "refrain-cat",
        &[
            (
                "Write one file of an archived directory:",
                "refrain cat project.rfn src/main.rs",
            ),
            (
                "Write a range of the only member:",
                "refrain cat disk.img.rfn --range 1000M..1001M",
            ),
        ],
    ),
    (
        "refrain-mount",
        &[
            (
                "Use an archived directory as if it were unpacked, then unmount it:",
                "mkdir project\nrefrain mount project.rfn project &\nls -lR project\nfusermount3 -u project",
            ),
            (
                "Look at the files of an archived disk image:",
                "refrain mount disk.img.rfn images &\nsudo mount -o ro,loop images/disk.img /mnt",
            ),
            (
                "Find a file in all nights of a backup, and take it from one of them:",
                "refrain mount backup.rfn nights --generations &\nls -l nights/0*/home/letter.txt\ncp nights/2026-11-20/home/letter.txt .",
            ),
        ],
    ),
    (
        "refrain-hash",
        &[(
            "Write MD5 checksums, and check them:",
            "refrain hash --md5 *.img > sums\nrefrain hash -c sums",
        )],
    ),
    (
        "refrain-key",
        &[
            (
                "Make a key pair, and encrypt for it where the secret key is not:",
                "refrain key generate mine.key > mine.pub\nrefrain compress /srv -o srv.rfn --recipients-file mine.pub",
            ),
            (
                "Add a password to an archive, and show what opens it:",
                "refrain key add srv.rfn --identity mine.key --new-password\nrefrain key list srv.rfn",
            ),
        ],
    ),
    (
        "refrain-bench",
        &[
            (
                "Compare with zstd and xz on a file:",
                "refrain bench --peers zstd,xz --decompress disk.img",
            ),
            (
                "Compare two levels with a command of your own:",
                "refrain bench --levels 3,8 --peer 'zstd -9 --long=31' disk.img",
            ),
        ],
    ),
    (
        "refrain-cache",
        &[(
            "See what a node that stalls for five seconds costs:",
            "refrain cache bench --nodes 5 --readers 120 --stop 1 --for 5s",
        )],
    ),
    (
        "refrain-lab",
        &[
            (
                "Measure everything, as tables and as a page with charts:",
                "refrain lab -o machine.html",
            ),
            (
                "See what a file system does when reads and writes overlap:",
                "refrain lab atomicity --directory /mnt/share",
            ),
            (
                "Save settings for later runs, and see what they gain:",
                "refrain lab --save --compare",
            ),
        ],
    ),
    (
        "refrain-generate",
        &[
            (
                "Install the manual pages:",
                "refrain generate man ~/.local/share/man/man1",
            ),
            (
                "Install completions for bash:",
                "refrain generate completions ~/.local/share/bash-completion/completions",
            ),
        ],
    ),
    (
        "rfn",
        &[
            (
                "Compress, check and decompress a file:",
                "rfn disk.img\nrfn -t disk.img.rfn\nrfn -dc disk.img.rfn > copy.img",
            ),
            (
                "Use it from tar:",
                "tar -I rfn -cf project.tar.rfn project/\ntar -I rfn -xf project.tar.rfn",
            ),
            ("Compress a pipe:", "producer | rfn -c > stream.rfn"),
        ],
    ),
];

/// The sections EXAMPLES and SEE ALSO of a manual page, in roff. `pages` are the stems of all
/// related pages.
pub fn sections(stem: &str, pages: &[String]) -> String {
    let mut text = String::new();
    if let Some((_, examples)) = EXAMPLES.iter().find(|(name, _)| *name == stem) {
        text.push_str(".SH EXAMPLES\n");
        for (what, command) in *examples {
            text.push_str(&format!(
                ".PP\n{what}\n.PP\n.RS 4\n.nf\n{}\n.fi\n.RE\n",
                escaped(command)
            ));
        }
    }
    let others = pages.iter().filter(|page| *page != stem);
    let others = others.map(|page| format!(".BR {} (1)", page.replace('-', "\\-")));
    let others: Vec<String> = others.collect();
    if !others.is_empty() {
        text.push_str(&format!(".SH \"SEE ALSO\"\n{}\n", others.join(",\n")));
    }
    text
}

/// Escapes what roff would interpret.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roff_characters_are_escaped() {
        let pages = ["refrain-bench".to_string(), "rfn".to_string()];
        let text = sections("refrain-bench", &pages);
        assert!(text.contains("\\-\\-peer \\(aqzstd \\-9"), "{text}");
        assert!(text.ends_with(".SH \"SEE ALSO\"\n.BR rfn (1)\n"), "{text}");
    }
}
