//! A fast hash of 128 bits, so that explorations can remember states by their hash alone.

use std::hash::Hasher;

/// Two independent lanes. That two of a million states share both has a chance below 10^-24.
#[derive(Debug, Clone, Copy, Default)]
pub struct FastHasher {
    lanes: [u64; 2],
}

impl FastHasher {
    pub fn finish_wide(&self) -> u128 {
        let [first, second] = self.lanes;
        u128::from(mix(first, !second)) << 64 | u128::from(mix(second, !first))
    }
}

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.write_u64(u64::from_le_bytes(word.try_into().expect("eight bytes")));
        }
        let mut last = [0; 8];
        last[..words.remainder().len()].copy_from_slice(words.remainder());
        self.write_u64(u64::from_le_bytes(last));
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        let [first, second] = self.lanes;
        self.lanes =
            [mix(first ^ number, 0x9e37_79b9_7f4a_7c15), mix(second.rotate_left(23) ^ number, 0xc2b2_ae3d_27d4_eb4f)];
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.lanes[0]
    }
}

/// Folds the product of both. The sum keeps a zero from absorbing the constant.
fn mix(value: u64, constant: u64) -> u64 {
    let product = u128::from(value.wrapping_add(constant.rotate_left(32))) * u128::from(constant);
    (product as u64) ^ (product >> 64) as u64
}
