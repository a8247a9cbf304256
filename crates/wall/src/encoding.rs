//! Values as JSON. Paths and contents of files may be any bytes, for which JSON has no form: they are strings in
//! which each character stands for one byte.

use std::{
    collections::BTreeMap,
    ffi::{CString, OsString},
    io,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::PathBuf,
};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _},
};

pub(crate) fn encode(value: &impl Serialize) -> io::Result<Vec<u8>> {
    Ok(serde_json::to_vec(value)?)
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

/// A string of any bytes.
pub(crate) trait ByteString: Sized {
    fn bytes(&self) -> &[u8];
    fn from_bytes(bytes: Vec<u8>) -> Option<Self>;
}

impl ByteString for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        Some(bytes)
    }
}

impl ByteString for PathBuf {
    fn bytes(&self) -> &[u8] {
        self.as_os_str().as_bytes()
    }

    fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        Some(OsString::from_vec(bytes).into())
    }
}

impl ByteString for CString {
    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        Self::new(bytes).ok()
    }
}

/// One of them in JSON.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Text<T>(pub(crate) T);

impl<T: ByteString> Serialize for Text<&T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text: String = self.0.bytes().iter().copied().map(char::from).collect();
        serializer.serialize_str(&text)
    }
}

impl<'de, T: ByteString> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes: Result<_, _> = text.chars().map(u8::try_from).collect();
        let bytes = bytes.map_err(D::Error::custom)?;
        let value = T::from_bytes(bytes).ok_or_else(|| D::Error::custom("a NUL"))?;
        Ok(Self(value))
    }
}

/// For one byte string: `#[serde(with = "bytes")]`.
pub(crate) mod bytes {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        value: &impl ByteString,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        Text(value).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T: ByteString, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        Text::deserialize(deserializer).map(|Text(value)| value)
    }
}

/// For a list or a set of them.
pub(crate) mod list {
    use super::*;

    pub(crate) fn serialize<'a, C, T: ByteString + 'a, S: Serializer>(
        values: &'a C,
        serializer: S,
    ) -> Result<S::Ok, S::Error>
    where
        &'a C: IntoIterator<Item = &'a T>,
    {
        serializer.collect_seq(values.into_iter().map(Text))
    }

    pub(crate) fn deserialize<'de, C, D: Deserializer<'de>>(deserializer: D) -> Result<C, D::Error>
    where
        C: IntoIterator<Item: ByteString> + FromIterator<C::Item>,
    {
        let values = Vec::<Text<C::Item>>::deserialize(deserializer)?;
        Ok(values.into_iter().map(|Text(value)| value).collect())
    }
}

/// For a map whose keys they are.
pub(crate) mod map {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        map: &BTreeMap<PathBuf, impl Serialize>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(map.iter().map(|(key, value)| (Text(key), value)))
    }

    pub(crate) fn deserialize<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<PathBuf, V>, D::Error> {
        let map = BTreeMap::<Text<PathBuf>, V>::deserialize(deserializer)?;
        let map = map.into_iter().map(|(Text(key), value)| (key, value));
        Ok(map.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Values {
        #[serde(with = "bytes")]
        one: Vec<u8>,
        #[serde(with = "list")]
        list: Vec<CString>,
        #[serde(with = "map")]
        map: BTreeMap<PathBuf, u64>,
    }

    #[test]
    fn any_bytes_come_back_as_they_were() {
        let all: Vec<u8> = (0..=u8::MAX).collect();
        let path = PathBuf::from(OsString::from_vec(all.clone()));
        let values = Values {
            one: all.clone(),
            list: vec![c"".into(), CString::new(&all[1..]).unwrap()],
            map: [(path, u64::MAX), (PathBuf::new(), 0)].into(),
        };
        let encoded = encode(&values).unwrap();
        assert_eq!(decode(&encoded), Some(values));
        let wide = br#"{"one":"\u0100","list":[],"map":{}}"#;
        assert_eq!(decode::<Values>(wide), None);
        let nul = br#"{"one":"","list":["\u0000"],"map":{}}"#;
        assert_eq!(decode::<Values>(nul), None);
    }
}
