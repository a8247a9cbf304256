//! The command's standard streams.
//!
//! # Theory of operation
//! A descriptor is more than a stream. Whoever has one can open its file anew by
//! `/proc/self/fd/N`, with whatever rights the user has, wherever the file lies: a file that was
//! given to be read can be written, a log that was given to be appended to can be read and cut
//! off, a directory leads to everything below it. So the command gets:
//!
//! - for a **file to read**, the same file, opened by the warden through a read-only view of it. It
//!   has its size, can be sought in and mapped. How far it was read is told to the caller's own
//!   descriptor at the end, as if it were shared. A file that has no path any more (a
//!   here-document) is copied;
//! - for a **file to write**, a pipe, from which the warden writes to the file, where the caller's
//!   descriptor says;
//! - for a **socket to write**, a pipe as well: who has the socket can shut it down, and the receipt
//!   would be lost;
//! - for a **pipe or socket to read**, another pipe. Who opens a pipe anew gets its other end, too: with that of an
//!   input, a session could type into the script that started it. A socket is of the host's network, where it can be
//!   connected to others. No more is taken from the caller's than the command has read, so that the rest is there
//!   for whoever reads next;
//! - **terminals, other character devices and pipes to write** as they are, and pipes that another user made: nobody
//!   inside can open those anew. By the other end of an output, a session can read what others write there, if it is
//!   quicker than the reader. To pass it on would cost more: lines of programs that share a pipe would be mixed, and
//!   what is not read at the end of a session would be lost. Flags that make a write fail which would wait are
//!   shared with the caller, and cleared at the end;
//! - **nothing else**: directories and block devices are refused.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::{
        fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{
        Access, FileType, MemfdFlags, Mode, OFlags, SealFlags, Stat, access, fchmod,
        fcntl_add_seals, fcntl_getfl, fcntl_setfl, fstat, memfd_create, open,
    },
    io::{Errno, ioctl_fionread},
    net::{RecvFlags, SendFlags, SocketType, sockopt},
    pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, tee},
    process::geteuid,
    stdio::{stderr, stdin, stdout},
    termios::ttyname,
};
use stockade_sys::{deadline::poll_until, mount::Tree};

use crate::{error::Error, nofollow::pin};

/// The least that a pipe has room for: one piece, of which there is room again when all of it was read.
const ONE_PIECE: usize = 4096;

/// No more than this is copied.
const LARGEST_COPY: u64 = 64 << 20;

/// One of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Input,
    Output,
    Errors,
}

impl Name {
    fn descriptor(self) -> BorrowedFd<'static> {
        match self {
            Self::Input => stdin(),
            Self::Output => stdout(),
            Self::Errors => stderr(),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Input => "standard input",
            Self::Output => "standard output",
            Self::Errors => "standard error",
        }
    }
}

/// What a stream is to the command.
#[derive(Debug)]
enum Stream {
    /// What the caller has.
    Same,
    /// A file to read, by its path of the moment.
    File { path: PathBuf, found: Stat },
    /// A file or socket to write.
    Relayed,
    /// A pipe or socket to read.
    Offered,
    /// The same file as standard output.
    AsOutput,
}

/// The caller's streams, looked at.
#[derive(Debug)]
pub(crate) struct Streams {
    streams: [(Name, Stream); 3],
    /// Which of [`REFUSING`] the caller had set, and who may open what it is.
    flags: [(Name, OFlags, Mode); 3],
}

/// A stream with one of these refuses what it cannot take at once, takes it in pieces that fill
/// it sooner, or refuses splice(2).
const REFUSING: OFlags = OFlags::NONBLOCK.union(OFlags::DIRECT).union(OFlags::APPEND);

/// What the command is given in their place.
#[derive(Debug)]
pub(crate) struct CommandStreams {
    /// Input, output and errors, where they are not the caller's.
    given: [Option<OwnedFd>; 3],
    kept: WardenStreams,
}

/// What stays with the warden.
#[derive(Debug, Default)]
pub(crate) struct WardenStreams {
    /// Shares its position with what the command reads from, in place of this stream.
    inputs: Vec<Input>,
    /// What the command writes comes out here, and goes to this stream.
    outputs: Vec<(Name, OwnedFd)>,
    /// What comes from this stream, from which others may read as well, goes here, for the command to read.
    offered: Option<(Name, Source, OwnedFd)>,
    flags: Vec<(Name, OFlags, Mode)>,
}

impl Streams {
    /// Looks at what the caller has given.
    ///
    /// # Errors
    /// If one of them is nothing to be given to a command.
    pub(crate) fn look() -> Result<Self, Error> {
        let input = look_at(Name::Input)?;
        let output = look_at(Name::Output)?;
        let errors = look_at(Name::Errors)?;
        let are_one = matches!((&output, &errors), (Stream::Relayed, Stream::Relayed))
            && is_same(&identity(stdout())?, &identity(stderr())?);
        let errors = if are_one { Stream::AsOutput } else { errors };
        let flags = |name: Name| {
            let flags = fcntl_getfl(name.descriptor()).map_err(|error| failed(error.into()))?;
            let found = fstat(name.descriptor()).map_err(|error| failed(error.into()))?;
            let mode = Mode::from_raw_mode(found.st_mode);
            Ok((name, flags & REFUSING, mode))
        };
        Ok(Self {
            streams: [
                (Name::Input, input),
                (Name::Output, output),
                (Name::Errors, errors),
            ],
            flags: [
                flags(Name::Input)?,
                flags(Name::Output)?,
                flags(Name::Errors)?,
            ],
        })
    }

    /// Opens what the command gets. To be called in the mount namespace that the sandbox is built
    /// in, before anything is mounted there.
    pub(crate) fn open(&self) -> Result<CommandStreams, Error> {
        let mut kept = WardenStreams {
            flags: self.flags.to_vec(),
            ..WardenStreams::default()
        };
        let mut open = |(name, stream): &(Name, Stream), output: Option<&OwnedFd>| {
            Ok(match stream {
                Stream::Same => None,
                Stream::File { path, found } => Some(kept.file(*name, path, found)?),
                Stream::Relayed => Some(kept.relayed(*name).map_err(failed)?),
                Stream::Offered => Some(kept.offered(*name).map_err(failed)?),
                Stream::AsOutput => {
                    let output = output.map(OwnedFd::try_clone);
                    output.transpose().map_err(failed)?
                }
            })
        };
        let [input, output, errors] = &self.streams;
        let (input, output) = (open(input, None)?, open(output, None)?);
        let errors = open(errors, output.as_ref())?;
        let given = [input, output, errors];
        Ok(CommandStreams { given, kept })
    }

    /// The terminal that the command writes to, by its name. None if that leads to another one.
    pub(crate) fn terminal(&self) -> Option<OwnedFd> {
        let name = ttyname(stdout(), Vec::new()).ok()?;
        let terminal = pin(Path::new(OsStr::from_bytes(name.as_bytes()))).ok()?;
        is_same(&fstat(&terminal).ok()?, &fstat(stdout()).ok()?).then_some(terminal)
    }
}

impl CommandStreams {
    /// Has the command started with them.
    pub(crate) fn give(self, command: &mut Command) -> WardenStreams {
        let [input, output, errors] = self.given;
        let stdio = |fd: Option<OwnedFd>| fd.map_or_else(Stdio::inherit, Stdio::from);
        command.stdin(stdio(input));
        command.stdout(stdio(output));
        command.stderr(stdio(errors));
        self.kept
    }
}

impl WardenStreams {
    fn file(&mut self, name: Name, path: &Path, found: &Stat) -> Result<OwnedFd, Error> {
        let mut file = match read_only_view(path, found) {
            Ok(file) => file,
            Err(_) => copy(name)?,
        };
        let position = borrowed(name).and_then(|mut it| it.stream_position());
        file.seek(SeekFrom::Start(position.map_err(failed)?))
            .map_err(failed)?;
        let given = file.try_clone().map_err(failed)?;
        let start = file.stream_position().ok();
        self.inputs.push(Input { name, file, start });
        Ok(given.into())
    }

    fn relayed(&mut self, name: Name) -> io::Result<OwnedFd> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setfl(&reader, OFlags::NONBLOCK)?;
        self.outputs.push((name, reader));
        Ok(writer)
    }

    fn offered(&mut self, name: Name) -> io::Result<OwnedFd> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setpipe_size(&writer, ONE_PIECE)?;
        self.offered = Some((name, Source::of(name)?, writer));
        Ok(reader)
    }

    /// Starts to write what the command writes. The thread that calls this has no capability, so
    /// those that it starts have none either.
    pub(crate) fn relay(self) -> io::Result<Relay> {
        let is_over = Arc::new(AtomicBool::new(false));
        let writers = self.outputs.into_iter().map(|(name, reader)| {
            let mut file = borrowed(name)?;
            let thread = thread::Builder::new().name("output".to_owned());
            let is_over = Arc::clone(&is_over);
            let written = thread.spawn(move || {
                // Its end, or that of the reader if the file cannot be written, is the command's
                // news: a broken pipe.
                match is_socket(&fstat(&file)?) {
                    true => pass_on(&reader, &is_over, |bytes| send(&file, bytes, &is_over)),
                    false => pass_on(&reader, &is_over, |bytes| file.write_all(bytes)),
                }
            })?;
            Ok((name, written))
        });
        let writers = writers.collect::<io::Result<_>>()?;
        let offer = self.offered.map(|(name, source, writer)| {
            let thread = thread::Builder::new().name("input".to_owned());
            thread.spawn(move || offer(name, &source, &writer))
        });
        Ok(Relay {
            writers,
            offer: offer.transpose()?,
            inputs: self.inputs,
            flags: self.flags,
            is_over,
        })
    }
}

/// Writes what comes, until the end of what writes there. Not with `io::copy`, which uses splice(2): that
/// remembers the file's position while it waits, so what others write to the same file meanwhile would be written over.
///
/// The command may have passed its end to a program outside, which keeps it. So when everything inside has ended, what
/// is there by then is written, and nothing else is waited for.
fn pass_on(
    from: &OwnedFd,
    is_over: &AtomicBool,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    const MOMENT: Duration = Duration::from_millis(100);
    let mut buffer = vec![0; 64 * 1024];
    let mut left = None;
    loop {
        if left.is_none() && is_over.load(Ordering::Relaxed) {
            left = Some(usize::try_from(ioctl_fionread(from)?).unwrap_or(usize::MAX));
        }
        if left.is_none() {
            poll_until(from.as_fd(), PollFlags::IN, Instant::now() + MOMENT)?;
        }
        let most = left.unwrap_or(usize::MAX).min(buffer.len());
        match rustix::io::read(from, buffer.get_mut(..most).unwrap_or_default()) {
            Ok(0) => return Ok(()),
            Ok(length) => {
                write(buffer.get(..length).unwrap_or_default())?;
                left = left.map(|left| left.saturating_sub(length));
            }
            Err(Errno::AGAIN) if left.is_some() => return Ok(()),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// What the caller has the command read from.
#[derive(Debug)]
enum Source {
    Pipe(File),
    /// A socket of a stream.
    Stream(File),
    /// A socket of which each read takes a whole message.
    Messages(File),
}

impl Source {
    fn of(name: Name) -> io::Result<Self> {
        let fd = name.descriptor();
        if !is_socket(&fstat(fd)?) {
            // While root can still open what another user made.
            return Ok(Self::Pipe(opened_anew(fd)?));
        }
        let file = borrowed(name)?;
        Ok(match sockopt::socket_type(fd)? {
            SocketType::STREAM => Self::Stream(file),
            _ => Self::Messages(file),
        })
    }

    /// Puts a piece of what is there into an empty pipe as well, without waiting. What can be left where it is, is.
    fn show(&self, to: &OwnedFd) -> io::Result<usize> {
        const LONGEST: usize = 64 * 1024;
        let (socket, most, flags) = match self {
            Self::Pipe(pipe) => return Ok(tee(pipe, to, ONE_PIECE, SpliceFlags::NONBLOCK)?),
            Self::Stream(socket) => (socket, ONE_PIECE, RecvFlags::PEEK | RecvFlags::DONTWAIT),
            Self::Messages(socket) => (socket, LONGEST, RecvFlags::DONTWAIT),
        };
        let mut buffer = vec![0; most];
        let (length, _) = rustix::net::recv(socket, &mut buffer[..], flags)?;
        let mut bytes = buffer.get(..length).unwrap_or_default();
        while !bytes.is_empty() {
            match rustix::io::write(to, bytes) {
                Ok(length) => bytes = bytes.get(length..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(length)
    }

    /// Takes what was shown, and has been read. It may be taken already.
    fn take(&self, buffer: &mut [u8]) -> rustix::io::Result<usize> {
        match self {
            Self::Pipe(pipe) => rustix::io::read(pipe, buffer),
            Self::Stream(socket) => {
                let (length, _) = rustix::net::recv(socket, &mut *buffer, RecvFlags::DONTWAIT)?;
                Ok(length)
            }
            Self::Messages(_) => Ok(buffer.len()),
        }
    }
}

/// Has the command read what comes through a pipe, until one of the two ends. A piece is in both pipes until
/// the command has read it. So if the command ends, what it has not read is still in the caller's.
///
/// The command can write to its own pipe. It then loses count of what it reads there, and of nothing else.
fn offer(name: Name, from: &Source, to: &OwnedFd) -> io::Result<()> {
    use io::ErrorKind::{Interrupted, WouldBlock};
    // What was opened anew does not tell that the writers of a named pipe have gone before.
    let caller = name.descriptor();
    loop {
        let mut fds = [
            PollFd::new(&caller, PollFlags::IN),
            PollFd::new(to, PollFlags::empty()),
        ];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => continue,
            other => other?,
        };
        if !fds[1].revents().is_empty() {
            return Ok(());
        }
        let is_pipe = matches!(from, Source::Pipe(_));
        let has_ended = !is_pipe || !fds[0].revents().contains(PollFlags::IN);
        match from.show(to) {
            Ok(0) if has_ended => return Ok(()),
            // Others took it meanwhile, or the command's own pipe is full of what it wrote itself.
            Ok(0) => {
                wait_for(to, PollFlags::OUT)?;
            }
            Ok(piece) => take_what_is_read(from, to, piece)?,
            Err(error) if matches!(error.kind(), Interrupted | WouldBlock) => {
                wait_for(to, PollFlags::OUT)?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Takes a piece from the caller's stream as the command reads it.
fn take_what_is_read(from: &Source, to: &OwnedFd, mut piece: usize) -> io::Result<()> {
    // For a pipe that the command has made larger: no event tells that all of it was read.
    const MOMENT: Duration = Duration::from_millis(1);
    let mut buffer = vec![0; piece];
    while piece > 0 {
        // There is room again when all of it was read.
        let has_ended = wait_for(to, PollFlags::OUT)?.contains(PollFlags::ERR);
        let left = usize::try_from(ioctl_fionread(to)?).unwrap_or(usize::MAX);
        let mut read = piece.saturating_sub(left);
        piece -= read;
        while read > 0 {
            match from.take(buffer.get_mut(..read).unwrap_or_default()) {
                Ok(0) | Err(Errno::AGAIN) => break,
                Ok(length) => read -= length,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if has_ended {
            return Ok(());
        }
        if piece > 0 {
            thread::sleep(MOMENT);
        }
    }
    Ok(())
}

/// Waits until this happens, or the other end is gone.
fn wait_for(fd: &OwnedFd, event: PollFlags) -> io::Result<PollFlags> {
    let mut fds = [PollFd::new(fd, event)];
    loop {
        match poll(&mut fds, None) {
            Err(Errno::INTR) => {}
            other => {
                other?;
                return Ok(fds[0].revents());
            }
        }
    }
}

/// Writes to a socket, for as long as its other end takes to read. When everything inside has ended,
/// the session is settled soon, whether or not somebody reads.
fn send(socket: &File, mut bytes: &[u8], is_over: &AtomicBool) -> io::Result<()> {
    const MOMENT: Duration = Duration::from_millis(100);
    const PATIENCE: Duration = Duration::from_secs(10);
    let mut stuck = Duration::ZERO;
    while !bytes.is_empty() {
        match rustix::net::send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(length) => {
                bytes = bytes.get(length..).unwrap_or_default();
                stuck = Duration::ZERO;
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if stuck >= PATIENCE => return Err(io::ErrorKind::TimedOut.into()),
            Err(Errno::AGAIN) => {
                let begin = Instant::now();
                poll_until(socket.as_fd(), PollFlags::OUT, begin + MOMENT)?;
                if is_over.load(Ordering::Relaxed) {
                    stuck += begin.elapsed();
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A file that the command reads, and where it began to.
#[derive(Debug)]
struct Input {
    name: Name,
    file: File,
    start: Option<u64>,
}

/// The streams of a command that runs.
#[derive(Debug)]
pub(crate) struct Relay {
    writers: Vec<(Name, JoinHandle<io::Result<()>>)>,
    offer: Option<JoinHandle<io::Result<()>>>,
    inputs: Vec<Input>,
    flags: Vec<(Name, OFlags, Mode)>,
    is_over: Arc<AtomicBool>,
}

impl Relay {
    /// Everything inside has ended: waits until all is written, and tells the caller's own
    /// descriptor how far the command has read. Returns what went wrong, for each stream.
    pub(crate) fn finish(self) -> Vec<Error> {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, TimedOut};
        self.is_over.store(true, Ordering::Relaxed);
        for (name, before, mode) in self.flags {
            // The command may own the terminal's device, and others could open that for good.
            if let Ok(now) = fstat(name.descriptor())
                && FileType::from_raw_mode(now.st_mode) == FileType::CharacterDevice
                && Mode::from_raw_mode(now.st_mode) != mode
            {
                let _ = fchmod(name.descriptor(), mode);
            }
            // A stream that is gone needs none.
            if let Ok(now) = fcntl_getfl(name.descriptor()) {
                let set = (now & REFUSING) - before;
                if !set.is_empty() {
                    let _ = fcntl_setfl(name.descriptor(), now - set);
                }
            }
        }
        for mut input in self.inputs {
            let position = input.file.stream_position();
            // Others may have read meanwhile. Who has read nothing leaves them their position.
            if position.as_ref().ok() != input.start.as_ref() {
                // A descriptor that cannot be told has no position that others could see.
                let _ = position.and_then(|at| borrowed(input.name)?.seek(SeekFrom::Start(at)));
            }
        }
        // It ends with the last that could read from it, and then leaves the rest to others.
        let begin = Instant::now();
        while let Some(offer) = &self.offer
            && !offer.is_finished()
            && begin.elapsed() < Duration::from_secs(1)
        {
            thread::sleep(Duration::from_millis(1));
        }
        let mut failures = Vec::new();
        for (name, writer) in self.writers {
            let died = |_| Err(io::ErrorKind::Other.into());
            let stream = name.words();
            match writer.join().unwrap_or_else(died) {
                Ok(()) => {}
                // A reader that wants no more.
                Err(error) if matches!(error.kind(), BrokenPipe | ConnectionReset) => {}
                Err(error) if error.kind() == TimedOut => {
                    // The receipt may go to the same socket.
                    stockade_sys::message::wait_no_longer();
                    failures.push(Error::Unread { stream });
                }
                Err(error) => failures.push(Error::Unwritten { stream, error }),
            }
        }
        failures
    }
}

fn look_at(name: Name) -> Result<Stream, Error> {
    let refused = |kind, fix| Error::StreamRefused {
        stream: name.words(),
        kind,
        fix,
    };
    let fd = name.descriptor();
    let found = fstat(fd).map_err(|error| failed(error.into()))?;
    let flags = fcntl_getfl(fd).map_err(|error| failed(error.into()))?;
    let instead = match name {
        Name::Input => "give it a file, or `< /dev/null`",
        Name::Output | Name::Errors => "give it a file, or `> /dev/null`",
    };
    match FileType::from_raw_mode(found.st_mode) {
        _ if flags.contains(OFlags::PATH) => Err(refused("a handle that cannot be read", instead)),
        FileType::RegularFile if is_to_be_read(name, flags) => Ok(Stream::File {
            path: fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap_or_default(),
            found,
        }),
        FileType::RegularFile => Ok(Stream::Relayed),
        FileType::Socket if name == Name::Input => Ok(Stream::Offered),
        FileType::Socket => Ok(Stream::Relayed),
        FileType::Fifo if is_wrong_end(fd, name).map_err(failed)? => {
            Err(refused("the other end of a pipe", instead))
        }
        FileType::Fifo if name == Name::Input && can_be_opened_anew(fd, &found) => {
            Ok(Stream::Offered)
        }
        FileType::CharacterDevice | FileType::Fifo => Ok(Stream::Same),
        FileType::Directory => Err(refused(
            "a directory, by which the command would get at everything below it",
            instead,
        )),
        FileType::BlockDevice => Err(refused(
            "a disk, which the command could write to wherever you can",
            "read it outside: `cat DISK | stockade …`",
        )),
        _ => Err(refused("of a kind that no command reads", instead)),
    }
}

/// A file that is open both ways is what streams of that name are for.
fn is_to_be_read(name: Name, flags: OFlags) -> bool {
    match flags & OFlags::RWMODE {
        OFlags::RDONLY => true,
        OFlags::RDWR => name == Name::Input,
        _ => false,
    }
}

/// The file at this path, if it is still the one that was found there, by a mount of its own.
fn read_only_view(path: &Path, found: &Stat) -> io::Result<File> {
    let place = pin(path)?;
    if !is_same(&fstat(&place)?, found) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let view = Tree::view(&place)?;
    view.make_read_only()?;
    let path = format!("/proc/thread-self/fd/{}", view.as_fd().as_raw_fd());
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(File::from(file))
}

/// A copy of a file that has no path that we may use.
fn copy(name: Name) -> Result<File, Error> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut copy = File::from(memfd_create("input", flags).map_err(|error| failed(error.into()))?);
    let original = At(name.descriptor(), 0);
    let length = io::copy(&mut original.take(LARGEST_COPY + 1), &mut copy).map_err(failed)?;
    if length > LARGEST_COPY {
        return Err(Error::StreamRefused {
            stream: name.words(),
            kind: "a large file that cannot be opened by its path",
            fix: "give it through a pipe: `cat FILE | stockade …`",
        });
    }
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&copy, seals).map_err(|error| failed(error.into()))?;
    Ok(copy)
}

/// Reads a file from a place of its own, so that the caller's position stays.
struct At(BorrowedFd<'static>, u64);

impl io::Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = rustix::io::pread(self.0, buffer, self.1)?;
        self.1 += length as u64;
        Ok(length)
    }
}

/// The caller's stream, by a descriptor of our own.
fn borrowed(name: Name) -> io::Result<File> {
    Ok(File::from(name.descriptor().try_clone_to_owned()?))
}

/// A pipe to read by a description of our own, so that only we are told when it would wait.
fn opened_anew(pipe: BorrowedFd<'_>) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(open(path_of(pipe), flags, Mode::empty())?))
}

/// Whether it is the end of a pipe that cannot do what the stream is for. By it, a session would get at the
/// other one.
fn is_wrong_end(pipe: BorrowedFd<'_>, name: Name) -> io::Result<bool> {
    let way = fcntl_getfl(pipe)? & OFlags::RWMODE;
    Ok(match name {
        Name::Input => way == OFlags::WRONLY,
        Name::Output | Name::Errors => way == OFlags::RDONLY,
    })
}

/// Whether somebody inside could open a pipe anew, for reading and writing.
fn can_be_opened_anew(fd: BorrowedFd<'_>, found: &Stat) -> bool {
    let is_denied = [Access::READ_OK, Access::WRITE_OK]
        .into_iter()
        .all(|way| access(path_of(fd), way) == Err(Errno::ACCESS));
    found.st_uid == geteuid().as_raw() || !is_denied
}

fn path_of(fd: BorrowedFd<'_>) -> String {
    format!("/proc/thread-self/fd/{}", fd.as_raw_fd())
}

fn identity(fd: BorrowedFd<'_>) -> Result<Stat, Error> {
    fstat(fd).map_err(|error| failed(error.into()))
}

fn is_socket(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Socket
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

fn failed(error: io::Error) -> Error {
    Error::Prepare {
        what: "the standard streams",
        error,
    }
}
