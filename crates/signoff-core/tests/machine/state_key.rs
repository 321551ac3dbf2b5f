//! Keys of states: two states with the same key behave the same.

use std::fmt::Display;
use std::hash::Hasher as _;

use serde::de::value::Error;
use serde::ser::{
    Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleVariant, Serializer,
};

use crate::fast_hash::FastHasher;

/// Fields that differ between states that behave the same.
const IGNORED: [&str; 6] = ["next_attempt", "next_question", "decisions", "said", "minor", "description"];

/// Fields with the name of a commit or tree, and fields with the number of an attempt.
const COMMITS: [&str; 4] = ["commit", "tree", "base", "from"];
const ATTEMPTS: [&str; 4] = ["running", "out", "survivors", "first"];

/// Hashes values. Commits and attempts are replaced by the order of their first occurrence.
#[derive(Default)]
pub struct KeyWriter {
    hasher: FastHasher,
    commits: Vec<String>,
    attempts: Vec<u64>,
    /// The field whose value is being written.
    field: &'static str,
}

impl KeyWriter {
    pub fn write(&mut self, value: &impl Serialize) {
        value.serialize(&mut *self).expect("a state of plain data");
    }

    pub fn write_commit(&mut self, name: &str) {
        // The commit `c1` has the tree `t1`, so both get the same number.
        let name = name.strip_prefix(['c', 't']).unwrap_or(name);
        let number = self.commits.iter().position(|known| known == name).unwrap_or_else(|| {
            self.commits.push(name.to_owned());
            self.commits.len() - 1
        });
        self.put(b'c', number as u64);
    }

    pub fn finish(self) -> u128 {
        self.hasher.finish_wide()
    }

    fn put(&mut self, tag: u8, number: u64) {
        self.hasher.write_u8(tag);
        self.hasher.write_u64(number);
    }

    fn put_bytes(&mut self, tag: u8, bytes: &[u8]) {
        self.put(tag, bytes.len() as u64);
        self.hasher.write(bytes);
    }

    fn put_text(&mut self, text: &str) {
        self.put_bytes(b's', text.as_bytes());
    }

    fn put_field(&mut self, name: &'static str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        if IGNORED.contains(&name) {
            return Ok(());
        }
        self.put_text(name);
        let outer = std::mem::replace(&mut self.field, name);
        value.serialize(&mut *self)?;
        self.field = outer;
        Ok(())
    }

    fn open(&mut self) -> Result<Group<'_>, Error> {
        self.hasher.write_u8(b'(');
        let field = self.field;
        Ok(Group { writer: self, field })
    }

    fn open_variant(&mut self, variant: &'static str) -> Result<Group<'_>, Error> {
        self.put_text(variant);
        let group = self.open()?;
        group.writer.field = variant;
        Ok(group)
    }
}

macro_rules! widen {
    ($($name:ident: $type:ty as $wide:ident),+) => {
        $(fn $name(self, number: $type) -> Result<(), Error> {
            self.$wide(number.into())
        })+
    };
}

impl<'a> Serializer for &'a mut KeyWriter {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Group<'a>;
    type SerializeTuple = Group<'a>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Group<'a>;
    type SerializeMap = Group<'a>;
    type SerializeStruct = Group<'a>;
    type SerializeStructVariant = Group<'a>;

    widen! {
        serialize_i8: i8 as serialize_i64, serialize_i16: i16 as serialize_i64, serialize_i32: i32 as serialize_i64,
        serialize_u8: u8 as serialize_u64, serialize_u16: u16 as serialize_u64, serialize_u32: u32 as serialize_u64,
        serialize_f32: f32 as serialize_f64
    }

    fn serialize_i64(self, number: i64) -> Result<(), Error> {
        self.put(b'i', number.cast_unsigned());
        Ok(())
    }

    fn serialize_u64(self, number: u64) -> Result<(), Error> {
        if !ATTEMPTS.contains(&self.field) {
            self.put(b'n', number);
            return Ok(());
        }
        let order = self.attempts.iter().position(|known| *known == number).unwrap_or_else(|| {
            self.attempts.push(number);
            self.attempts.len() - 1
        });
        self.put(b'a', order as u64);
        Ok(())
    }

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.hasher.write_u8(if value { b't' } else { b'f' });
        Ok(())
    }

    fn serialize_f64(self, number: f64) -> Result<(), Error> {
        self.put(b'd', number.to_bits());
        Ok(())
    }

    fn serialize_char(self, letter: char) -> Result<(), Error> {
        self.put_text(letter.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, text: &str) -> Result<(), Error> {
        if COMMITS.contains(&self.field) {
            self.write_commit(text)
        } else {
            self.put_text(text)
        }
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Error> {
        self.put_bytes(b'b', bytes);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.hasher.write_u8(b'-');
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.put_field(variant, value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Group<'a>, Error> {
        self.open()
    }

    fn serialize_tuple(self, _: usize) -> Result<Group<'a>, Error> {
        self.open()
    }

    fn serialize_tuple_struct(self, name: &'static str, _: usize) -> Result<Impossible<(), Error>, Error> {
        Err(serde::ser::Error::custom(format_args!("{name} has no named fields")))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Group<'a>, Error> {
        self.open_variant(variant)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Group<'a>, Error> {
        let group = self.open()?;
        group.writer.field = "";
        Ok(group)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Group<'a>, Error> {
        self.open()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Group<'a>, Error> {
        self.open_variant(variant)
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), Error> {
        self.serialize_str(&value.to_string())
    }
}

/// A list, map or struct that is being written.
pub struct Group<'a> {
    writer: &'a mut KeyWriter,
    /// The field that holds the group.
    field: &'static str,
}

impl Group<'_> {
    fn put(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        value.serialize(&mut *self.writer)
    }

    fn close(self) -> Result<(), Error> {
        self.writer.hasher.write_u8(b')');
        self.writer.field = self.field;
        Ok(())
    }
}

impl SerializeSeq for Group<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.put(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

impl SerializeTuple for Group<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.put(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

impl SerializeTupleVariant for Group<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.put(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

impl SerializeMap for Group<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.put(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.put(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

impl SerializeStruct for Group<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        self.writer.put_field(name, value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

impl SerializeStructVariant for Group<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        self.writer.put_field(name, value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}
