//! Codec `bwt2`.

refrain_carried_decoders::module!(|params, data, raw| {
    refrain_codec::single::bwt2(params, data, raw).is_ok()
});
