//! Where a person lives or works: a name with a capital letter behind what says so.

use std::sync::LazyLock;

use super::{
    Find, Spelling,
    cue::{Cues, Plain},
    words::{DAYS, LANGUAGES, NO_PLACES},
};
use crate::boundary::is_any;

/// The longest name of a place, in words.
const PLACE_WORDS_MAX: usize = 4;

/// How somebody says where they are.
static PLACED: LazyLock<Cues<()>> = LazyLock::new(|| {
    let cues = [
        "i live|reside right|close? in|near|outside|around|to",
        "no longer live in",
        "i am|come originally? from",
        "i am based|located|living|staying in|near",
        "i work|teach|study|volunteer .. in|near",
        "i work|teach|study|volunteer at|in|for a|an|the .. in|near",
        "i am a|an .. from",
        "i have been living|working|teaching|studying in|near",
        "i have moved to",
        "i moved to",
        "my school|home|office|hometown|town|city|practice|firm|clinic|district is in|near?",
        "ich wohne|lebe|arbeite|studiere in",
        "ich komme|bin aus",
    ];
    Cues::read(cues.map(|cue| (cue, ())))
});

/// Words that may stand between.
const BETWEEN: &[&str] = &[
    "the", "rural", "downtown", "central", "northern", "southern", "eastern", "western", "suburban",
    "upstate", "sunny", "der", "die",
];

/// What is found by form.
pub(super) fn find(spelling: Spelling<'_>, plain: &Plain<'_>, finds: &mut Vec<Find>) {
    let sentence = spelling.sentence;
    for placed in PLACED.find(plain) {
        let mut start = placed.behind;
        while is_any(BETWEEN, sentence.word(start)) && start < placed.behind + 2 {
            start += 1;
        }
        let value = spelling.capitals(start, PLACE_WORDS_MAX);
        let is_other = value.clone().any(|at| {
            is_any(NO_PLACES, sentence.word(at))
                || is_any(DAYS, sentence.word(at))
                || is_any(LANGUAGES, sentence.word(at))
        });
        if !value.is_empty() && !is_other {
            finds.push(Find::new("location", value.clone(), placed.from..value.end));
        }
    }
}
