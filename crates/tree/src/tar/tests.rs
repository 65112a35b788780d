//! Splitter and view together.

use proptest::prelude::*;

use crate::tar::looks_like_tar;
use crate::tar::property::{Cuts, tar_streams_come_back};

fn cuts() -> impl Strategy<Value = Cuts> {
    (1_usize..3000, 1_usize..10).prop_map(|(window_bytes, restart_every)| Cuts {
        window_bytes,
        restart_every,
    })
}

proptest! {
    #[test]
    fn random_bytes(stream in proptest::collection::vec(any::<u8>(), 0..5000), cuts in cuts()) {
        tar_streams_come_back(&stream, cuts);
    }
}

#[test]
fn what_is_no_tar_does_not_look_like_one() {
    assert!(!looks_like_tar(&[]));
    assert!(!looks_like_tar(&[0; 512]));
    assert!(!looks_like_tar(&[b' '; 512]));
    assert!(!looks_like_tar(&[b'0'; 512]));
}
