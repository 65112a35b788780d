//! Our modules decode what our codecs encode, within the stated needs; hostile ones are stopped.

use refrain_codec::{CodecId, FilterStep, Host, Params, Settings, Workspace, by_id, codecs};

use crate::property::hostile_input_is_bounded;
use crate::{Decoder, Error, Limits, Module, Role, decoder, decoders};

const RAW_BYTES: usize = 12_000;

/// Text with words of several lengths, from a seed.
fn text(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut text = Vec::with_capacity(bytes);
    while text.len() < bytes {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let word = (state >> 40) % 600;
        text.extend_from_slice(format!("w{word} ").as_bytes());
    }
    text.truncate(bytes);
    text
}

fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

fn limits_of(decoder: &Decoder, raw_bytes: usize) -> Limits {
    Limits {
        memory_bytes: decoder.memory_pages_max(raw_bytes as u64) << 16,
        steps: Decoder::STEPS_FIXED + decoder.steps_per_byte_max * raw_bytes as u64,
    }
}

fn encoded(number: u16, raw: &[u8]) -> (Params, Vec<u8>) {
    let codec = by_id(CodecId(number)).unwrap();
    let mut data = Vec::new();
    let params = codec.encode(&mut Workspace::new(), raw, &Settings::default(), &mut data);
    (params.unwrap(), data)
}

#[test]
fn every_codec_has_a_module_that_decodes_its_blocks() {
    for codec in codecs().skip(1) {
        let number = codec.describe().id.0;
        let decoder = decoder(Role::Codec, number).expect("a module for every codec");
        assert!(decoder.module.len() <= 100 << 10);
        let module = Module::new(decoder.module).unwrap();
        for raw in [
            text(RAW_BYTES, 1),
            noise(RAW_BYTES / 4, 2),
            vec![7; RAW_BYTES],
            vec![1],
        ] {
            let (params, data) = encoded(number, &raw);
            if data.len() >= raw.len() {
                // An archive has the block uncoded; what the encoder left is not complete.
                continue;
            }
            let mut decoded = vec![0; raw.len()];
            let limits = limits_of(decoder, raw.len());
            let result = module.decode(params.as_bytes(), &data, &mut decoded, limits);
            assert_eq!(result, Ok(()), "codec {number}, {} bytes", raw.len());
            assert!(decoded == raw, "codec {number}");
        }
    }
}

#[test]
fn every_filter_has_a_module_that_undoes_it() {
    for id in 1..=u8::MAX {
        let Some(step) = (0..=16).find_map(|param| FilterStep::new(id, param).ok()) else {
            assert!(decoder(Role::Filter, u16::from(id)).is_none());
            continue;
        };
        let decoder = decoder(Role::Filter, u16::from(id)).expect("a module for every filter");
        let module = Module::new(decoder.module).unwrap();
        let raw = [noise(5000, u64::from(id)), vec![0xE8; 40_000]].concat();
        let mut filtered = raw.clone();
        step.encode(Host::default(), &mut filtered).unwrap();
        let mut undone = vec![0; raw.len()];
        let limits = limits_of(decoder, raw.len());
        let result = module.decode(&[step.param()], &filtered, &mut undone, limits);
        assert_eq!(result, Ok(()), "filter {id}");
        assert!(undone == raw, "filter {id}");
    }
}

#[test]
fn a_module_cannot_exceed_its_limits() {
    let decoder = decoder(Role::Codec, 7).unwrap();
    let module = Module::new(decoder.module).unwrap();
    let raw = text(RAW_BYTES, 1);
    let (params, data) = encoded(7, &raw);
    let mut out = vec![0; raw.len()];
    let ample = limits_of(decoder, raw.len());
    let mut decode = |data: &[u8], limits| module.decode(params.as_bytes(), data, &mut out, limits);
    let few = Limits {
        steps: 10_000,
        ..ample
    };
    assert_eq!(decode(&data, few), Err(Error::Steps { limit: 10_000 }));
    let little = Limits {
        memory_bytes: 2 << 20,
        ..ample
    };
    let error = Error::Memory {
        limit_bytes: 2 << 20,
    };
    assert_eq!(decode(&data, little), Err(error));
    assert_eq!(decode(&data[..9], ample), Err(Error::Damaged));
}

/// A module of these sections (number, content).
fn hand_made(sections: &[(u8, &[u8])]) -> Vec<u8> {
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    for (number, content) in sections {
        module.extend([*number, content.len() as u8]);
        module.extend_from_slice(content);
    }
    module
}

/// A module whose `place` returns 16, and whose `decode` has this body.
fn with_decode(body: &[u8]) -> Vec<u8> {
    let types = [2, 0x60, 3, 0x7F, 0x7F, 0x7F, 1, 0x7F, 0x60, 0, 1, 0x7F];
    let mut exports = vec![3];
    for (name, kind, index) in [("memory", 2, 0), ("place", 0, 0), ("decode", 0, 1)] {
        exports.push(name.len() as u8);
        exports.extend_from_slice(name.as_bytes());
        exports.extend([kind, index]);
    }
    let mut code = vec![2, 4, 0, 0x41, 16, 0x0B, body.len() as u8 + 2, 0];
    code.extend_from_slice(body);
    code.push(0x0B);
    hand_made(&[
        (1, &types),
        (3, &[2, 0, 1]),
        (5, &[1, 0, 1]),
        (7, &exports),
        (10, &code),
    ])
}

#[test]
fn hostile_modules_are_errors() {
    let limits = Limits {
        memory_bytes: 1 << 20,
        steps: 1 << 20,
    };
    let decode = |module: &[u8], raw_bytes| {
        let mut raw = vec![0; raw_bytes];
        Module::new(module)?
            .decode(&[1], b"data", &mut raw, limits)
            .map(|()| raw)
    };
    // It returns what was placed, its parameters first.
    assert_eq!(
        decode(&with_decode(&[0x41, 17]), 4).as_deref(),
        Ok(&b"data"[..])
    );
    let end = (1 << 16) - 1_u32;
    let outside = with_decode(&[0x41, 0xFF, 0xFF, 0x03]);
    let error = Error::Address {
        address: end,
        wanted_bytes: 4,
    };
    assert_eq!(decode(&outside, 4), Err(error));
    // loop br 0 end, i32.const 1: never ends.
    let endless = with_decode(&[0x03, 0x40, 0x0C, 0, 0x0B, 0x41, 1]);
    assert_eq!(decode(&endless, 4), Err(Error::Steps { limit: 1 << 20 }));
    // memory.grow by 4096 pages.
    let greedy = with_decode(&[0x41, 0x80, 0x20, 0x40, 0]);
    assert_eq!(
        decode(&greedy, 4),
        Err(Error::Memory {
            limit_bytes: 1 << 20
        })
    );
    // unreachable; and a call of itself.
    for body in [&[0x00][..], &[0x10, 1]] {
        assert!(matches!(
            decode(&with_decode(body), 4),
            Err(Error::Trap { .. })
        ));
    }
    assert_eq!(decode(&with_decode(&[0x41, 0]), 4), Err(Error::Damaged));
    for broken in [
        &b""[..],
        b"\0asm",
        &hand_made(&[]),
        &outside[..outside.len() - 1],
    ] {
        assert!(matches!(decode(broken, 4), Err(Error::Module { .. })));
    }
    let import = hand_made(&[(1, &[1, 0x60, 0, 0]), (2, &[1, 1, b'a', 1, b'b', 0, 0])]);
    let error = decode(&import, 4).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not a module that decodes blocks: it imports something"
    );
}

#[test]
fn changed_modules_and_payloads_are_bounded() {
    for seed in 0..60_u64 {
        let mut input = noise(64, seed);
        input[0] = (seed % 16) as u8;
        hostile_input_is_bounded(&input);
    }
    assert_eq!(decoders().count(), 16);
}
