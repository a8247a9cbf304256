//! The order of lines, where they are not written at once.

use std::fs;

use stockade_world::{Standard, test};

use super::{lines, of};
use crate::support::standard;

#[test]
fn denials_that_were_folded_stand_on_their_side_of_a_reload() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let config = laptop.home().join(".config/stockade/config.toml");
        let before = fs::read_to_string(&config).unwrap_or_default();
        let script =
            "try() { for i in 1 2 3; do curl -s --max-time 20 http://10.20.0.5:$1/; done; }
            try 80; echo before; read go; try 81; try 80; exit 0";
        let mut session = laptop
            .stockade(["run", "--quiet", "--", "sh", "-c", script])
            .spawn()
            .expect("a session");
        session.expect("before").expect("denials");
        let rule = "[network]\nallow = [\"tcp://10.20.0.5:80\"]\n";
        fs::write(&config, format!("{before}\n{rule}")).expect("a configuration");
        let reloaded = laptop.stockade(["reload"]).run().expect("run");
        reloaded.expect_success();
        session.write("\n").expect("go");
        session.wait().expect("an end").expect_success();

        let lines = lines(laptop);
        let shown: Vec<String> = lines
            .iter()
            .filter(|line| {
                ["deny", "reload", "open"]
                    .iter()
                    .any(|it| line["event"] == *it)
            })
            .map(|line| {
                let what = line["what"].as_str().or(line["to"].as_str());
                let port = what.and_then(|what| what.rsplit(':').next());
                let folded = if line["until"].is_string() {
                    " folded"
                } else {
                    ""
                };
                let event = line["event"].as_str().unwrap_or_default();
                let count = line["count"].as_u64().unwrap_or(1);
                format!("{event} {} {count}{folded}", port.unwrap_or_default())
            })
            .collect();
        let expected = [
            "deny 80 1",
            "deny 80 2 folded",
            "reload  1",
            "deny 81 1",
            "open 80 1",
            "open 80 1",
            "open 80 1",
            "deny 81 2 folded",
        ];
        assert_eq!(shown, expected);
        let start = of(&lines, "start")[0];
        let reload = of(&lines, "reload")[0];
        assert_ne!(start["policy"], reload["policy"]);
        let folded = &lines.iter().find(|line| line["until"].is_string());
        let folded = folded.expect("a folded line");
        let times = [&folded["time"], &folded["until"], &reload["time"]];
        let times = times.map(|time| time.as_str().expect("a time"));
        assert!(times.is_sorted() && times[0] < times[2], "{times:?}");
    });
}
