//! What was on its way when the command ended.

use std::{
    io::Read,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use stockade_world::{PATIENCE, Stream, eventually, test};

use crate::support::standard;

#[test]
fn what_the_command_sent_last_arrives_although_it_has_ended() {
    const LENGTH: usize = 8 << 20;
    test(&standard(), |world| {
        let arrived = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&arrived);
        // Slower than the command, so that much is still under way when it ends.
        let slow = move |stream: &mut Stream| {
            let mut buffer = vec![0; 256 * 1024];
            loop {
                let length = stream.read(&mut buffer)?;
                if length == 0 {
                    return Ok(());
                }
                counter.fetch_add(length, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        let web = world.host("web");
        web.tcp(9000, slow).expect("listen");
        let send = format!(
            "import socket; socket.create_connection(('{}', 9000)).sendall(bytes({LENGTH}))",
            web.v4()
        );
        let line = ["run", "--", "python3", "-c", &send];
        world
            .laptop()
            .stockade(line)
            .run()
            .expect("run")
            .expect_success();
        eventually("all bytes have arrived", PATIENCE, || {
            arrived.load(Ordering::SeqCst) == LENGTH
        })
        .unwrap_or_else(|_| panic!("{} of {LENGTH}", arrived.load(Ordering::SeqCst)));
    });
}
