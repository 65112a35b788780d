//! Codec `cm`.

refrain_carried_decoders::module!(|params, data, raw| {
    refrain_codec::single::cm(params, data, raw).is_ok()
});
