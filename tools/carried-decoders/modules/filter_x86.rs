//! Filter 1.

refrain_carried_decoders::filter!(1);
