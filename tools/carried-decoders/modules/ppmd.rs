//! Codec `ppmd`.

refrain_carried_decoders::module!(|params, data, raw| {
    refrain_codec::single::ppmd(params, data, raw).is_ok()
});
