//! Passwords in the arguments of this process, which every user can read in the list of processes:
//! they are overwritten in its memory as soon as they are parsed.
//!
//! Linux says where the arguments are (`/proc/self/stat`) and lets a process write to its own
//! memory (`/proc/self/mem`). Nothing in the program refers to these bytes: the standard library
//! gave copies of them. Elsewhere they remain.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// Numbers of the fields of `/proc/self/stat`, counted from the one after the name, which is the
/// third.
const ARGUMENTS_START: usize = 48 - 3;

/// What passwords are overwritten with.
const COVER: u8 = b'x';

/// Overwrites a password where it is an argument or the end of an option. A failure is none of the
/// run: the password is as visible as it was.
pub fn hide(password: &[u8]) {
    let _ = hide_in_memory(password);
}

fn hide_in_memory(password: &[u8]) -> io::Result<()> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name may hold spaces and parentheses.
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

/// Where arguments, each ended by NUL, are the password or end with it as options.
fn places(arguments: &[u8], password: &[u8]) -> Vec<usize> {
    let (mut start, mut found) = (0, Vec::new());
    for (number, argument) in arguments.split(|byte| *byte == 0).enumerate() {
        let is_option = argument.starts_with(b"-") && argument.ends_with(password);
        // The first one is the name of the program.
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
