//! Cues: what stands before a value.

/// A cue, behind which the value stands.
pub(super) struct After {
    pub(super) kind: &'static str,
    pub(super) cues: &'static [&'static str],
    /// Words at which the value may go on.
    pub(super) inner: &'static [&'static str],
    /// Whether several values may follow.
    pub(super) is_list: bool,
}

/// Every cue of this form.
pub(super) const AFTER: [After; 8] = [
    After {
        kind: "preference",
        cues: &[
            "no longer like", "no longer prefer", "no longer enjoy", "i prefer", "i like", "i love", "i enjoy", "i adore", "i would prefer", "i would rather have",
            "i would rather get", "am fond of", "am a fan of", "am a big fan of", "am a huge fan of",
            "i favour", "i favor", "learn best with", "learn best from", "learn best by",
            "learn best through", "work best with", "am into", "ich mag", "ich bevorzuge", "ich liebe",
            "do best with", "think best with", "learn better with", "understand better with",
            "get more from", "get the most from", "respond well to",
        ],
        inner: &[
            "to", "in", "at", "by", "on", "with",
        ],
        is_list: true,
    },
    After {
        kind: "knowledge_gap",
        cues: &[
            "struggle with", "struggling with", "struggle a lot with", "not understand", "not get",
            "not really understand", "not really get", "not fully understand", "not grasp", "trouble with",
            "trouble understanding", "difficulty with", "difficulties with", "problems with",
            "problem with", "issues with", "bad at", "not good at", "not great at", "terrible at",
            "awful at", "weak at", "weak in", "confused by", "confused about", "confused with",
            "unsure about", "unsure of", "not sure about", "stuck on", "stuck with", "my head around",
            "mistakes with", "mistakes in", "mistakes on", "never know where", "never know how",
            "never know when to use", "never know when", "lost with", "lost in", "lost on", "mix up",
            "mixing up", "hard time with", "need more practice with", "need more practice in",
            "need practice with", "not comfortable with", "not confident with", "not confident in",
            "not confident about", "never understood", "not know how to do", "not know how to use",
            "no idea how", "insecure about", "rusty on", "shaky on", "behind in", "behind on",
            "forget how", "keep forgetting", "always forget", "not follow", "probleme mit",
            "schwierigkeiten mit", "weakness is", "weak spot is", "weak point is", "problem is",
            "worst at", "clueless about", "fail at", "failing", "not understand anything about",
            "worst topic is", "hardest topic is", "nothing about", "mess up", "messing up",
            "not yet understand", "unclear about", "not solve", "not remember",
        ],
        inner: &[
            "of", "in", "to",
        ],
        is_list: true,
    },
    After {
        kind: "subject_focus",
        cues: &[
            "no longer teach", "no longer study", "stopped teaching", "stopped studying",
            "i focus on", "am focusing on", "i specialise in", "i specialize in", "i major in",
            "am majoring in", "my subject is", "main subject is", "my field is", "my area is",
            "my major is", "my focus is", "focus this year is", "i teach", "am teaching", "i am studying",
            "i study", "i mostly teach", "i mainly teach", "am learning", "i am taking", "am working on",
            "i mostly work on", "i work mostly on", "i mainly work on", "ich unterrichte", "mein fach ist",
            "ich studiere", "ich lerne", "mein hauptfach ist", "my speciality is", "my specialty is",
            "i tutor", "my discipline is", "am concentrating on", "my department is", "i practise",
            "i practice", "my main focus is", "i also teach", "i currently teach", "i now teach",
            "i only teach", "i work in", "subject i teach is", "subjects i teach are",
            "am specialising in", "am specializing in", "i mostly study", "am doing a degree in",
            "degree in", "i research", "my concentration is",
        ],
        inner: &[
            "of",
        ],
        is_list: false,
    },
    After {
        kind: "goal",
        cues: &[
            "my goal is to", "my goal is", "preparing for", "studying for", "training for",
            "working towards", "working toward", "i want to become", "i want to pass", "i am aiming for",
            "mein ziel ist", "i want to learn", "prepping for",
        ],
        inner: &[
            "of", "for", "in", "to", "on", "as", "a",
        ],
        is_list: false,
    },
    After {
        kind: "language",
        cues: &[
            "i speak", "native language is", "mother tongue is", "first language is", "ich spreche",
            "home language is", "i also speak", "my native tongue is", "meine muttersprache ist",
        ],
        inner: &[

        ],
        is_list: true,
    },
    After {
        kind: "access_need",
        cues: &[
            "i need", "i use", "i rely on", "i require", "i read with", "i have to use", "i depend on",
        ],
        inner: &[

        ],
        is_list: false,
    },
    After {
        kind: "access_need",
        cues: &[
            "i am", "ich bin",
        ],
        inner: &[

        ],
        is_list: false,
    },
    After {
        kind: "role",
        cues: &[
            "i work as", "my job is", "my role is", "my position is", "my job title is", "i serve as",
            "am working as", "ich arbeite als", "my profession is", "my occupation is", "mein beruf ist",
            "i currently work as", "am employed as",
        ],
        inner: &[
            "of",
        ],
        is_list: false,
    },
];

/// Words with which no value begins.
pub(super) const NO_VALUES: &[&str] = &[
    "it", "this", "that", "these", "those", "you", "your", "him", "her", "them", "what", "how", "to",
    "when", "where", "if", "why", "in", "at", "on", "for", "with", "there", "here", "as", "kids",
    "children", "students", "people", "everyone", "well", "full", "part", "because", "anything",
    "something", "everything", "about", "things", "one", "by", "from", "hard", "home", "doing", "such",
    "being",
];

/// What somebody may need in order to take part. Other needs are those of the moment.
pub(super) const ACCESS: &[&str] = &[
    "large print", "larger print", "larger text", "large text", "big print", "bigger text",
    "screen reader", "captions", "subtitles", "sign language", "braille", "high contrast", "extra time",
    "audio versions", "text to speech", "hearing aid", "hearing aids", "a wheelchair", "wheelchair",
    "plain language", "easy language", "alt text", "read aloud", "magnifier", "dyslexic", "deaf",
    "hard of hearing", "blind", "colour blind", "color blind", "visually impaired",
];

/// How something is that is hard for somebody. "A" as in "a mystery to me".
pub(super) const HARD_FOR: &[&str] = &[
    "hard", "difficult", "confusing", "tricky", "tough", "challenging", "impossible", "unclear", "harder", "hardest", "a",
    "schwer",
];

/// What something hard does to somebody.
pub(super) const CONFUSES: &[&str] = &[
    "confuse", "confuses", "puzzle", "puzzles", "baffle", "baffles", "scare", "scares", "trip", "trips", "escape", "escapes",
    "fällt", "fallen",
];

/// How something is that somebody likes to have.
pub(super) const SUITS: &[&str] = &[
    "easier", "easiest", "best", "clearer", "helpful", "better", "good", "great", "useful",
];
