//! By what Stockade knows its own program: a note in its file, which copies, other versions and
//! stripped ones have, too. Names and inodes say less.

use std::{fs::File, io::Read as _, os::unix::fs::OpenOptionsExt as _, path::Path};

/// A note of ELF: the lengths of its name and of its description, its type, its name.
#[repr(C, align(4))]
struct Note {
    name_size: u32,
    description_size: u32,
    kind: u32,
    name: [u8; 12],
}

const NAME: &[u8; 12] = b"Stockade\0\0\0\0";

// SAFETY: the section holds notes, and this is one, with the alignment of notes. Nothing refers
// to it, and linkers keep notes all the same.
#[used]
#[unsafe(link_section = ".note.stockade")]
static NOTE: Note = Note {
    name_size: 9,
    description_size: 0,
    kind: 1,
    name: *NAME,
};

/// Linkers put notes before everything else, just behind the headers.
const BEGINNING: u64 = 4096;

/// Whether a file is a program of Stockade, of whatever version. A program that only pretends to be
/// one is taken for one.
pub fn is_stockade(file: &Path) -> bool {
    let mut beginning = Vec::new();
    let mut options = File::options();
    // A pipe that nobody writes to is not waited for.
    let open = options.read(true).custom_flags(libc::O_NONBLOCK).open(file);
    let read = open.and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning));
    let note = [
        &NOTE.name_size.to_ne_bytes()[..],
        &NOTE.description_size.to_ne_bytes(),
        &NOTE.kind.to_ne_bytes(),
        &NOTE.name,
    ]
    .concat();
    read.is_ok()
        && beginning.starts_with(b"\x7fELF")
        && beginning.windows(note.len()).any(|part| part == note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_known_and_others_are_not() {
        assert!(is_stockade(Path::new("/proc/self/exe")));
        for other in ["/bin/sh", "/etc/passwd", "/dev/null", "/", "/missing"] {
            assert!(!is_stockade(Path::new(other)), "{other}");
        }
    }
}
