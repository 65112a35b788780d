//! Extended attributes, including access control lists and file capabilities.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use refrain_entries::ExtendedAttribute;

/// The largest value of an attribute in Linux.
const VALUE_BYTES_MAX: usize = 65_536;

/// Values up to this length take one system call.
const VALUE_BYTES_USUAL: usize = 512;

/// The attributes in the namespace `system` that are kept: others are views of other metadata,
/// computed by file systems (NFS and CIFS, for example).
const SYSTEM_KEPT: [&[u8]; 2] = [b"system.posix_acl_access", b"system.posix_acl_default"];

/// Labels belong to a machine's policy; a restored file gets the label of its new place.
const LABEL: &[u8] = b"security.selinux";

/// A file whose attributes are read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AttributesOf<'a> {
    /// By its path; a symbolic link is not followed.
    Path(&'a [u8]),
    /// By an open file or directory.
    Open(BorrowedFd<'a>),
}

/// Reads the attributes, sorted by name; empty if the file system has none. A file without
/// attributes takes one system call.
///
/// # Errors
///
/// The name of the attribute that cannot be read (empty for the list of names) and the error.
pub(crate) fn read_attributes(
    file: AttributesOf<'_>,
) -> Result<Vec<ExtendedAttribute>, (Vec<u8>, Errno)> {
    let names = file.names().map_err(|error| (Vec::new(), error))?;
    let mut attributes = Vec::new();
    for name in names.split(|byte| *byte == 0).filter(|name| is_kept(name)) {
        match file.value(name) {
            Ok(value) => attributes.push(ExtendedAttribute {
                name: name.to_vec(),
                value,
            }),
            // Removed after the names were listed.
            Err(Errno::NODATA) => {}
            Err(error) => return Err((name.to_vec(), error)),
        }
    }
    attributes.sort_unstable();
    Ok(attributes)
}

fn is_kept(name: &[u8]) -> bool {
    if name.starts_with(b"system.") {
        SYSTEM_KEPT.contains(&name)
    } else {
        !name.is_empty() && name != LABEL
    }
}

impl AttributesOf<'_> {
    /// The names, each followed by NUL.
    fn names(self) -> Result<Vec<u8>, Errno> {
        loop {
            let length = match self {
                Self::Path(path) => rustix::fs::llistxattr_query(path),
                Self::Open(file) => rustix::fs::flistxattr_query(file),
            };
            let length = match length {
                Ok(0) | Err(Errno::NOTSUP) => return Ok(Vec::new()),
                length => length?,
            };
            let mut names = vec![0; length];
            let read = match self {
                Self::Path(path) => rustix::fs::llistxattr(path, &mut names[..]),
                Self::Open(file) => rustix::fs::flistxattr(file, &mut names[..]),
            };
            match read {
                // More names were added in the meantime.
                Err(Errno::RANGE) => {}
                read => {
                    names.truncate(read?);
                    return Ok(names);
                }
            }
        }
    }

    fn value(self, name: &[u8]) -> Result<Vec<u8>, Errno> {
        match self.value_up_to(name, VALUE_BYTES_USUAL) {
            Err(Errno::RANGE) => self.value_up_to(name, VALUE_BYTES_MAX),
            value => value,
        }
    }

    fn value_up_to(self, name: &[u8], bytes_max: usize) -> Result<Vec<u8>, Errno> {
        let mut value = vec![0; bytes_max];
        let length = match self {
            Self::Path(path) => rustix::fs::lgetxattr(path, name, &mut value[..])?,
            Self::Open(file) => rustix::fs::fgetxattr(file, name, &mut value[..])?,
        };
        value.truncate(length);
        value.shrink_to_fit();
        Ok(value)
    }
}
