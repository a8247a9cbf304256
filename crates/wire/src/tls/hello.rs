//! Inside the ClientHello (RFC 8446 §4.1.2).

use super::{Broken, Hello, records};
use crate::cursor::{Cursor, Short};

const SERVER_NAME: u16 = 0;
const EARLY_DATA: u16 = 42;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
/// What became the above, in drafts up to 2020: it hid the name alone.
const ENCRYPTED_SERVER_NAME: u16 = 0xffce;

const HOST_NAME: u8 = 0;
const MAX_NAME: usize = 255;

impl From<Short> for Broken {
    fn from(Short: Short) -> Self {
        Broken::Length
    }
}

/// Reads a hello that takes up `length` bytes of what the client sent.
pub(super) fn parse(body: &[u8], length: usize) -> Result<Hello, Broken> {
    let mut cursor = Cursor::new(body);
    let version = cursor.u16()?;
    if !records::is_version(version) {
        return Err(Broken::HelloVersion(version));
    }
    cursor.take(32)?; // random
    let session = short_vector(&mut cursor)?;
    let suites = vector(&mut cursor)?;
    let compressions = short_vector(&mut cursor)?;
    if session.len() > 32
        || suites.is_empty()
        || !suites.len().is_multiple_of(2)
        || compressions.is_empty()
    {
        return Err(Broken::Length);
    }

    let mut hello = Hello {
        server_name: None,
        ech: false,
        early_data: false,
        length,
    };
    // A hello of old may end here.
    if !cursor.is_at_end() {
        let extensions = vector(&mut cursor)?;
        if !cursor.is_at_end() {
            return Err(Broken::Length);
        }
        read_extensions(&mut hello, extensions)?;
    }
    Ok(hello)
}

fn read_extensions(hello: &mut Hello, extensions: &[u8]) -> Result<(), Broken> {
    let mut cursor = Cursor::new(extensions);
    while !cursor.is_at_end() {
        let kind = cursor.u16()?;
        let data = vector(&mut cursor)?;
        match kind {
            SERVER_NAME => {
                let name = server_name(data)?;
                if hello.server_name.replace(name).is_some() {
                    return Err(Broken::Twice(kind));
                }
            }
            EARLY_DATA => hello.early_data = true,
            ENCRYPTED_CLIENT_HELLO | ENCRYPTED_SERVER_NAME => hello.ech = true,
            _ => {}
        }
    }
    Ok(())
}

/// RFC 6066 §3. It is a list for no reason: there is one type of names, and at
/// most one name of a type.
fn server_name(data: &[u8]) -> Result<String, Broken> {
    let mut outer = Cursor::new(data);
    let mut list = Cursor::new(vector(&mut outer)?);
    if !outer.is_at_end() {
        return Err(Broken::Length);
    }
    if list.is_at_end() {
        return Err(Broken::Names);
    }
    let kind = list.u8()?;
    if kind != HOST_NAME {
        return Err(Broken::NameType(kind));
    }
    let name = vector(&mut list)?;
    if !list.is_at_end() {
        return Err(Broken::Names);
    }
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    if name.is_empty() || name.len() > MAX_NAME || !name.iter().all(plain) {
        return Err(Broken::Name);
    }
    let name = str::from_utf8(name).map_err(|_| Broken::Name)?;
    Ok(name.to_ascii_lowercase())
}

/// Bytes behind a length of one byte.
fn short_vector<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Short> {
    let length = cursor.u8()?;
    cursor.take(length.into())
}

/// Bytes behind a length of two.
fn vector<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Short> {
    let length = cursor.u16()?;
    cursor.take(length.into())
}
