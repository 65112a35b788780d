//! Codec `bwt`.

refrain_carried_decoders::module!(|params, data, raw| {
    refrain_codec::single::bwt(params, data, raw).is_ok()
});
