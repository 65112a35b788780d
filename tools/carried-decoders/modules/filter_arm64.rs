//! Filter 2.

refrain_carried_decoders::filter!(2);
