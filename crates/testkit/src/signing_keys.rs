//! Keys for signatures, made for tests and used nowhere else.

/// A secret key: `minisign -G -W`.
pub const MINISIGN: &str = "\
untrusted comment: minisign encrypted secret key\n\
RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA8pAV6BeQrxEvPmml9K/SM9VYqFhTrymrLYqqf0GDy3TEZ5sdgXMNz654JN9dNL40wFXk+yoiiRP2+dMaWhvjwTBeyLZVJ0wdAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";

/// Its public half.
pub const MINISIGN_PUBLIC: &str = "\
untrusted comment: minisign public key 11AF9017E81590F2\n\
RWTykBXoF5CvEa54JN9dNL40wFXk+yoiiRP2+dMaWhvjwTBeyLZVJ0wd\n";

/// A secret key: `ssh-keygen -t ed25519 -N ""`.
pub const SSH: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----\n\
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n\
QyNTUxOQAAACBi6CQZ2WQWFX/4ZpLqCi83eknoKKfdO63Isimy+261ogAAAJBfnB32X5wd\n\
9gAAAAtzc2gtZWQyNTUxOQAAACBi6CQZ2WQWFX/4ZpLqCi83eknoKKfdO63Isimy+261og\n\
AAAEBfavRV6sA8DM7tjprHVqXFUqj+6VCnvKa41sOdtr0XFGLoJBnZZBYVf/hmkuoKLzd6\n\
Segop907rciyKbL7brWiAAAACXRlc3RAaG9tZQECAwQ=\n\
-----END OPENSSH PRIVATE KEY-----\n";

/// Its public half.
pub const SSH_PUBLIC: &str = "\
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGLoJBnZZBYVf/hmkuoKLzd6Segop907rciyKbL7brWi test@home\n";

/// Another one, with a passphrase: `ssh-keygen -t ed25519 -N secret`.
pub const SSH_PASSPHRASE: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----\n\
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABCxbbKS1c\n\
oNoVF6I/YThkXFAAAAEAAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIM265ysc1TlR6aG2\n\
hfIjglM09gnWO+ODBB0YEBKlchyWAAAAkIXOT0HR061pNiZoY44yFu+m2YAVmcq4fl1dak\n\
o3yZR+9pPKtoVjRpCrG6yBRNkZXWSno9KYuTqdp1FyFsUl/6RPbnDpSexjv//8cl7kRAtR\n\
X6AzMHQtRkT1U/OCuPLuorI86yzoXCNP1TknjSnmv+J63S3as9pKuZJ2VOhtAoYalqbis7\n\
k32ahOFb8vezbqNA==\n\
-----END OPENSSH PRIVATE KEY-----\n";

/// Its public half.
pub const SSH_PASSPHRASE_PUBLIC: &str = "\
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIM265ysc1TlR6aG2hfIjglM09gnWO+ODBB0YEBKlchyW test@home\n";

/// A public key of a kind that is not supported.
pub const ECDSA_PUBLIC: &str = "\
ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBI/NwTRZ8p/eV+8XF+D3cqxGGP+bMNWxtCJQDhwRgu4Z/ADg8ITXA/uRMFsauqWqeLRgI1ncQGiexyI06XE7/+w= root@vm\n";
