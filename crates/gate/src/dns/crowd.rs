//! Questions under way, of which there is a bound.
//!
//! A name whose servers do not answer keeps its place for seconds, and a program may ask for very
//! many. So questions share the places by the owner of the name: none has more than a part of
//! them, and if all are taken, the owner with the most gives one up to who has fewer. A flood for
//! names of one owner costs only others of the same, and no more questions leave than places allow. In
//! a flood for names of very many owners, the question that has waited longest gives its place up, after the
//! time that an answer usually takes: so others are answered, and still no more than that many leave in that time.

use std::{
    cell::RefCell,
    collections::{HashMap, VecDeque},
    rc::Rc,
    time::{Duration, Instant},
};

use stockade_policy::owned_domain;
use stockade_wire::dns::Name;
use tokio::sync::Notify;

const PLACES: usize = 512;
const PLACES_EACH: usize = PLACES / 4;
/// Who has waited for so long gives its place up to an owner who has none.
const LONG: Duration = Duration::from_millis(200);

#[derive(Debug, Default)]
pub(super) struct Crowd(RefCell<Taken>);

#[derive(Debug, Default)]
struct Taken {
    count: usize,
    /// By owner; the oldest first.
    of: HashMap<String, VecDeque<Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    since: Instant,
    pushed_out: Rc<Notify>,
}

/// There is no room for a question. Who asks it hears nothing, and asks again.
#[derive(Debug)]
pub(crate) struct Crowded {
    /// It was under way when another took its place, so somebody may have got it.
    pub(crate) has_left: bool,
}

/// The place of a question, until it is dropped.
#[derive(Debug)]
pub(super) struct Place<'a> {
    crowd: &'a Crowd,
    owner: String,
    pushed_out: Rc<Notify>,
}

impl Crowd {
    pub(super) fn enter(&self, name: &Name) -> Result<Place<'_>, Crowded> {
        let name = name.to_string().to_ascii_lowercase();
        let owner = owned_domain(name.trim_end_matches('.')).to_owned();
        let mut taken = self.0.borrow_mut();
        let own = taken.of.get(&owner).map_or(0, VecDeque::len);
        if own >= PLACES_EACH || (taken.count >= PLACES && !taken.push_out(own)) {
            return Err(Crowded { has_left: false });
        }
        let pushed_out = Rc::new(Notify::new());
        let places = taken.of.entry(owner.clone()).or_default();
        places.push_back(Waiting {
            since: Instant::now(),
            pushed_out: Rc::clone(&pushed_out),
        });
        taken.count += 1;
        Ok(Place {
            crowd: self,
            owner,
            pushed_out,
        })
    }
}

impl Taken {
    /// Takes the oldest place of the owner with the most, if that has more than one who has so many
    /// and takes another; or else, for one who has none, the oldest of all.
    fn push_out(&mut self, own: usize) -> bool {
        let most = self.of.values_mut().max_by_key(|places| places.len());
        let mut oldest = most.filter(|places| places.len() > own + 1);
        if oldest.is_none() && own == 0 {
            let all = self.of.values_mut().filter(|places| !places.is_empty());
            let longest = all.min_by_key(|places| places.front().map(|first| first.since));
            let has_waited = |places: &&mut VecDeque<Waiting>| {
                let first = places.front();
                first.is_some_and(|first| first.since.elapsed() >= LONG)
            };
            oldest = longest.filter(has_waited);
        }
        let Some(oldest) = oldest.and_then(VecDeque::pop_front) else {
            return false;
        };
        oldest.pushed_out.notify_one();
        self.count -= 1;
        true
    }
}

impl Place<'_> {
    /// What comes of a question, unless another takes its place.
    pub(super) async fn keep<T>(&self, asking: impl Future<Output = T>) -> Result<T, Crowded> {
        tokio::select! {
            biased;
            () = self.pushed_out.notified() => Err(Crowded { has_left: true }),
            answer = asking => Ok(answer),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut taken = self.crowd.0.borrow_mut();
        let Some(places) = taken.of.get_mut(&self.owner) else {
            return;
        };
        let before = places.len();
        places.retain(|place| !Rc::ptr_eq(&place.pushed_out, &self.pushed_out));
        // One that was pushed out has gone already.
        let left = places.len();
        if left == 0 {
            taken.of.remove(&self.owner);
        }
        taken.count -= before - left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter<'a>(crowd: &'a Crowd, name: &str) -> Result<Place<'a>, Crowded> {
        crowd.enter(&Name::from_text(name).expect("a name"))
    }

    fn many<'a>(crowd: &'a Crowd, domain: &str) -> Vec<Place<'a>> {
        let ask = |number| enter(crowd, &format!("n{number}.{domain}")).ok();
        (0..2 * PLACES).map_while(ask).collect()
    }

    #[test]
    fn n16_questions_for_names_of_one_owner_leave_room_for_others() {
        let crowd = Crowd::default();
        let flood = many(&crowd, "slow.example.co.uk");
        assert_eq!(flood.len(), PLACES_EACH);
        assert!(enter(&crowd, "www.example.co.uk").is_err());
        assert!(enter(&crowd, "www.another.co.uk").is_ok());
        drop(flood);
        assert!(enter(&crowd, "www.example.co.uk").is_ok());
        assert_eq!(crowd.0.borrow().count, 0);
        assert!(crowd.0.borrow().of.is_empty());
    }

    #[tokio::test]
    async fn n16_of_those_who_take_all_places_the_one_with_the_most_gives_one_up() {
        let crowd = Crowd::default();
        let domains = ["a.example", "b.example", "c.example", "d.example"];
        let floods = domains.map(|domain| many(&crowd, domain));
        assert_eq!(crowd.0.borrow().count, PLACES);
        let others: Vec<_> = (0..50)
            .map(|number| enter(&crowd, &format!("www.other{number}.example")))
            .collect();
        assert!(others.iter().all(Result::is_ok));
        assert_eq!(crowd.0.borrow().count, PLACES);
        // Nobody with as many as the others gets more, so no more leaves than there is room for.
        assert!(enter(&crowd, "again.a.example").is_err());
        let waiting = floods.iter().flatten().map(|place| async {
            let asking = std::future::ready(());
            place.keep(asking).await.is_err()
        });
        let mut pushed_out = 0;
        for place in waiting {
            pushed_out += usize::from(place.await);
        }
        assert_eq!(pushed_out, others.len());
        drop((floods, others));
        assert_eq!(crowd.0.borrow().count, 0);
    }

    #[test]
    fn n16_of_very_many_owners_the_one_who_waits_longest_gives_its_place_up() {
        let crowd = Crowd::default();
        let owner = |number| format!("www.owner{number}.example");
        let flood: Vec<_> = (0..PLACES)
            .map(|number| enter(&crowd, &owner(number)).expect("room"))
            .collect();
        // Not before an answer may have come.
        assert!(enter(&crowd, "www.other.example").is_err());
        std::thread::sleep(LONG);
        let other = enter(&crowd, "www.other.example").expect("the place of another");
        assert_eq!(crowd.0.borrow().count, PLACES);
        let first = crowd.0.borrow().of.get("owner0.example").map(VecDeque::len);
        assert_eq!(first.unwrap_or(0), 0);
        // Who has one gets no second.
        assert!(enter(&crowd, "ftp.other.example").is_err());
        drop((flood, other));
        assert_eq!(crowd.0.borrow().count, 0);
        assert!(crowd.0.borrow().of.is_empty());
    }
}
