//! The kernel's modes of the terminal, when a session ends or is suspended.
//!
//! The command may leave any of them: a letter that is a signal, capitals for letters. While the
//! warden settles what the session did, and tells it, a signal would end that, and capitals are no
//! escape sequences. So until then the modes are those from before the session, by which the user's
//! own Ctrl-C works. What the command left on purpose (`stty`) is put back as the last act.

use rustix::termios::{InputModes, LocalModes, OutputModes, SpecialCodeIndex, Termios};

use super::fence::Users;

/// The characters that are signals, or may be.
const SIGNALS: [SpecialCodeIndex; 3] = [
    SpecialCodeIndex::VINTR,
    SpecialCodeIndex::VQUIT,
    SpecialCodeIndex::VSUSP,
];

/// The modes while the warden still works. Whoever reads the command's output may have chosen modes
/// of its own: to it, only the command's signals are taken away.
pub(super) fn meanwhile(found: &Termios, before: &Termios, users: Users) -> Termios {
    match users {
        Users::Caller | Users::Command => before.clone(),
        Users::Reader | Users::Pager => {
            let mut modes = found.clone();
            modes.output_modes -= OutputModes::OLCUC;
            for signal in SIGNALS {
                modes.special_codes[signal] = before.special_codes[signal];
            }
            modes
        }
    }
}

/// The modes that the command left, to be put back. A signal that everybody types, or the terminal
/// answers with, would wait for the end of the next session, and nobody wants sequences in capitals.
pub(super) fn left(mut found: Termios, before: &Termios) -> Termios {
    found.output_modes -= OutputModes::OLCUC;
    for signal in SIGNALS {
        if is_in_text(found.special_codes[signal]) {
            found.special_codes[signal] = before.special_codes[signal];
        }
    }
    found
}

/// Whether a byte is in lines that are typed, or in answers of the terminal.
fn is_in_text(byte: u8) -> bool {
    matches!(byte, 0x08..=0x0d | 0x1b | 0x20..)
}

/// These modes without echo, signals, flow control and editing, and without capitals for small letters, which
/// would spoil escape sequences. The rest of the output is left alone: who reads a pipe may still print lines.
pub(super) fn silent(mut modes: Termios) -> Termios {
    modes.local_modes -= LocalModes::ECHO
        | LocalModes::ECHONL
        | LocalModes::ICANON
        | LocalModes::ISIG
        | LocalModes::IEXTEN
        | LocalModes::EXTPROC;
    modes.input_modes -= InputModes::IXON
        | InputModes::IXOFF
        | InputModes::ICRNL
        | InputModes::INLCR
        | InputModes::IGNCR
        | InputModes::ISTRIP
        | InputModes::IUCLC
        | InputModes::PARMRK
        | InputModes::BRKINT;
    modes.output_modes -= OutputModes::OLCUC;
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    modes
}
