//! The shortest way through everything.

use stockade_world::{Standard, test};

use crate::support::standard;

#[test]
fn the_internet_is_there_and_the_intranet_is_not() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let inside = |target: &str| {
            laptop
                .stockade(["run", "--", "curl", "-sS", "--max-time", "20", target])
                .run()
                .expect("run")
        };
        inside("http://www.example.com/").expect_success();
        let denied = inside("http://10.20.0.5/");
        assert_eq!(denied.code(), 7, "{denied:?}");
        assert!(
            denied.stderr().contains("--allow tcp://10.20.0.5:80"),
            "{denied:?}"
        );
    });
}
