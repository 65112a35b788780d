//! Overwrites passwords in this process's arguments, which every user can see in the process list,
//! as soon as they are parsed.
//!
//! Linux tells where the arguments are (`/proc/self/stat`) and lets a process write to its own
//! memory (`/proc/self/mem`). Nothing in the program refers to these bytes: the standard library
//! copied them. On other systems they stay.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// Field numbers in `/proc/self/stat`, counted from the one after the name, which is the third.
const ARGUMENTS_START: usize = 48 - 3;

/// Replaces each byte of a password.
const COVER: u8 = b'x';

/// Overwrites a password that is an argument or the end of an option. Failing to do so does not
/// matter to the run: the password stays as visible as before.
pub fn hide(password: &[u8]) {
    let _ = hide_in_memory(password);
}

fn hide_in_memory(password: &[u8]) -> io::Result<()> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name may contain spaces and parentheses.
    let fields = stat.rsplit_once(") ").map(|(_, fields)| fields);
    let start = fields.and_then(|fields| fields.split(' ').nth(ARGUMENTS_START));
    let Some(start) = start.and_then(|start| start.parse::<u64>().ok()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let arguments = fs::read("/proc/self/cmdline")?;
    let memory = File::options().write(true).open("/proc/self/mem")?;
    for offset in places(&arguments, password) {
        memory.write_all_at(&vec![COVER; password.len()], start + offset as u64)?;
    }
    Ok(())
}

/// Finds NUL-terminated arguments that are the password or, as options, end with it.
fn places(arguments: &[u8], password: &[u8]) -> Vec<usize> {
    let (mut start, mut found) = (0, Vec::new());
    for (number, argument) in arguments.split(|byte| *byte == 0).enumerate() {
        let is_option = argument.starts_with(b"-") && argument.ends_with(password);
        // The first is the program's name.
        if number > 0 && !password.is_empty() && (is_option || argument == password) {
            found.push(start + argument.len() - password.len());
        }
        start += argument.len() + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_found_in_options_and_alone() {
        let places =
            |password: &str| places(b"pw\0-epw\0--encrypt=pw\0pw\0a.pw\0", password.as_bytes());
        assert_eq!(places("pw"), [5, 18, 21]);
        assert!(places("").is_empty() && places("other").is_empty());
    }
}
