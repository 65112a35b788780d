//! Codec `bzip2`.

refrain_carried_decoders::module!(|params, data, raw| {
    refrain_codec::single::bzip2(params, data, raw).is_ok()
});
