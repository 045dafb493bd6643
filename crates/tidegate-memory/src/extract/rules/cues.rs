//! Cues: what stands before a value, and what behind it, in the form that [`super::cue`] reads.

/// A way of saying something of a kind.
pub(super) struct Way {
    pub(super) kind: &'static str,
    /// In which form the value is.
    pub(super) form: Form,
    /// Words at which the value may go on.
    pub(super) inner: &'static [&'static str],
    pub(super) cues: &'static [&'static str],
}

/// In which form a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A phrase.
    Phrase,
    /// Phrases, one or several.
    List,
    /// Something done: "writing essays".
    Doing,
    /// Something to be done: "write essays".
    Act,
}

/// A way of needing something.
pub(super) struct Need {
    pub(super) verbs: &'static [&'static str],
    /// How far behind the verb the need stands at most, in words.
    pub(super) reach_words: usize,
    pub(super) needs: &'static [&'static str],
}

/// Cues behind which the value stands.
pub(super) static AFTER: [Way; 9] = [
    Way {
        kind: "preference",
        form: Form::List,
        inner: &["to", "in", "at", "by", "on", "with"],
        cues: &[
            "no longer like|prefer|enjoy|love", "i like|love|enjoy|adore|prefer|favour|favor", "i would prefer",
            "i would much? rather have|get|see|use|receive|read|hear", "am fond|keen of|on", "am a big|huge|great? fan of",
            "am crazy|passionate|mad about", "am obsessed with", "am into",
            "learn|work|do|think|study|understand|remember|follow|focus|concentrate .. best|better with|from|by|through",
            "get more|the most? from|out of?", "respond well|best|better to", "my favourite|favorite .. is|are",
            "my preference is|are for?", "my preferred .. is|are", "what i like|love|enjoy|prefer best|most? is|are",
            "what helps|suits me .. is|are", "what works .. for me is|are", "ich mag|bevorzuge|liebe",
            "ich lerne am besten mit",
        ],
    },
    Way {
        kind: "knowledge_gap",
        form: Form::List,
        inner: &["of", "in", "to"],
        cues: &[
            "struggle|struggling with|in", "struggle|struggling a lot|bit with|in",
            "not fully|yet|always? understand|get|grasp|follow|comprehend|remember|solve",
            "not fully|yet? understand|get|see how|why|what", "not understand|know much|anything|enough about|of",
            "not sure|clear|certain how|why|when|about|of", "not figure|work out how?", "not make sense of", "my head around",
            "no idea|clue how|what|why|when|about", "clueless about", "not know how to do|use",
            "bad|terrible|awful|hopeless|useless|horrible|rubbish|lousy|poor|weak|worst|dreadful at|with|in",
            "bad|terrible|awful|hopeless|useless|weak|lost|confused|unsure when it comes to",
            "confused|puzzled|baffled|unsure|uncertain|unclear|insecure about|by|with|of", "stuck|shaky|rusty|hazy|fuzzy|weak on|with",
            "am lost with|in|on", "get lost with|on", "behind in|on|with",
            "not|never .. good|best|great|confident|comfortable|strong|skilled at|in|with|about",
            "trouble|difficulty|difficulties|problem|problems|issues with|understanding|grasping|following|remembering|solving",
            "hard|tough|difficult|rough time with|understanding|grasping|following|remembering", "mistakes|errors with|in|on",
            "mix|mixing|mess|messing up", "always|keep forget|forgetting how?", "forget how",
            "never know|remember|understood|got|grasped|learned|learnt|understand where|how|when|what|why? to? use?",
            "need|use .. practice with|in", "get|getting|become|be better at|with|in", "need|want|have|like|trying to improve my|at|in|on", "brush up on",
            "fail|failing at|in?", "my .. weakness|downfall|nemesis|problem is|are with?",
            "my .. weak|weakest|worst|hardest spot|point|area|subject|topic|side|skill is|are",
            "hardest|worst|trickiest|toughest|difficult|confusing part|thing|topic|bit|subject .. is|are",
            "what i struggle with .. is|are", "what i find .. hard|hardest|difficult|confusing|tricky|tough is|are",
            "what confuses|puzzles|trips|throws me .. is|are", "know nothing|little about|of", "unfamiliar with", "confidence in|with",
            "probleme|schwierigkeiten mit",
        ],
    },
    Way {
        kind: "knowledge_gap",
        form: Form::Doing,
        inner: &["of", "in", "to"],
        cues: &["have|having trouble|difficulty|difficulties|problems", "hard|tough|difficult|rough time"],
    },
    Way {
        kind: "knowledge_gap",
        form: Form::Act,
        inner: &["of", "in", "to"],
        cues: &[
            "struggle|struggling to", "not know|understand|remember how to", "no idea|clue how to",
            "find|finding it .. hard|difficult|tricky|tough|challenging|impossible|confusing to",
            "it is .. hard|difficult|tricky|tough|challenging for me to",
        ],
    },
    Way {
        kind: "knowledge_gap",
        form: Form::Phrase,
        inner: &["of"],
        cues: &["can not do|solve|handle|spell|read|write|draw|pronounce|calculate|multiply|divide|factor|graph|conjugate|count"],
    },
    Way {
        kind: "subject_focus",
        form: Form::Phrase,
        inner: &["of"],
        cues: &[
            "no longer teach|study", "stopped|quit teaching|studying", "i focus|concentrate|specialise|specialize|major on|in",
            "am focusing|focused|concentrating|specialising|specializing|majoring on|in",
            "my main|primary|current|chosen|teaching? subject|field|area|major|focus|speciality|specialty|specialization|discipline|department|concentration|expertise of? study|expertise|interest|research? this? year|term|semester? is|are in|on?",
            "subject|subjects i teach is|are", "my degree|phd|doctorate|masters|research is|are in|on", "my master|bachelor 's is in",
            "degree|phd|doctorate|masters|diploma in", "master|bachelor 's in", "i teach|study|tutor|research|practise|practice",
            "am teaching|studying|learning|tutoring|researching|taking", "have been teaching|studying|learning|tutoring|researching",
            "am working on", "i work on|in", "i do .. work in|on",
            "most|much of my teaching|work|practice|research|lessons|classes is|are in|on|about?",
            "what i teach|study|tutor|research|practise|practice|do is|are", "ich unterrichte|studiere|lerne",
            "mein fach|hauptfach|schwerpunkt ist",
        ],
    },
    Way {
        kind: "goal",
        form: Form::Phrase,
        inner: &["of", "for", "in", "to", "on", "as", "a"],
        cues: &[
            "my .. goal|aim|dream|ambition .. is|are to?",
            "preparing|prepping|studying|training|practising|practicing|revising|cramming for",
            "working|work toward|towards", "am aiming for", "saving up? for", "mein ziel ist",
        ],
    },
    Way {
        kind: "language",
        form: Form::List,
        inner: &[],
        cues: &[
            "i|we speak a? bit|little|lot|some|fluent|basic|broken? of?",
            "native|first|second|third|home|main language|tongue is", "mother tongue is",
            "am fluent|proficient|conversational|bilingual in", "ich spreche", "meine muttersprache ist",
        ],
    },
    Way {
        kind: "role",
        form: Form::Phrase,
        inner: &["of"],
        cues: &[
            "i work|serve|volunteer .. as", "am working|employed|serving .. as",
            "my current|day|main? job|role|position|profession|occupation title? is", "ich arbeite als", "mein beruf ist",
        ],
    },
];

/// Cues before which the value stands, from the beginning of its clause.
pub(super) static BEFORE: [(&str, &[&str]); 4] = [
    (
        "knowledge_gap",
        &[
            "is|are .. hard|harder|hardest|difficult|confusing|tricky|tough|challenging|impossible|unclear .. for|to me",
            "is|are a .. mystery|problem|struggle|challenge|nightmare|weakness|headache for|to me",
            "confuse|confuses|puzzle|puzzles|baffle|baffles|scare|scares|stump|stumps|escape|escapes|frustrate|frustrates me",
            "is|are killing|confusing|puzzling me", "trip|trips|throw|throws|mess|messes me up|off",
            "give|gives me .. trouble|problems|headaches|time|grief", "do|does not make any? sense to me",
            "make|makes no|little sense to me", "is|are not clicking|sticking for|with me", "is|are beyond me", "go|goes|is|are over my head", "get|gets me every",
            "is|are my .. weakness|downfall|nemesis|struggle|problem",
            "is|are my .. weak|weakest|worst|hardest spot|point|area|side|subject|topic|skill",
            "is|are not my .. strength|forte|strong", "is|are where i .. struggle|lost|stuck|confused",
            "is|are what i .. struggle with", "is|are what i find .. hard|hardest|difficult|confusing|tricky|tough",
            "is|are something i .. struggle with", "fällt|fallen mir .. schwer",
        ],
    ),
    (
        "preference",
        &[
            "help|helps me", "make|makes things|it|everything easier|clearer|simpler for me", "is|are .. easier|easiest|best|clearer|helpful|better|good|great|useful .. for me",
            "work|works .. best|better|well|great for me", "suit|suits me", "is|are what i like|love|enjoy|prefer",
            "is|are what helps|suits me", "is|are what works .. for me", "is|are my favourite|favorite|favourites|preference",
        ],
    ),
    (
        "subject_focus",
        &[
            "is|are what i teach|study|tutor|research|do", "is|are what i work|focus on", "is|are where i focus",
            "is|are my main|primary|current? subject|focus|field|major|speciality|specialty|specialization|area|thing|discipline",
            "is|are the subject i teach|study",
        ],
    ),
    ("language", &["is|are my native|first|second|third|home|main language|tongue", "is|are my mother tongue"]),
];

/// How a wish begins that may be a goal.
pub(super) static WISHES: &[&str] = &[
    "i want|hope|plan|aim|intend|need to", "am trying|hoping|planning|aiming|working|determined to",
    "i would like|love to", "my .. goal|aim|dream|plan|ambition .. is to",
];

/// What somebody may work towards for longer than a day.
pub(super) static AIMS: &[&str] = &[
    "become", "pass", "graduate", "earn", "qualify", "win", "master", "publish", "retire", "learn", "get into|better|my|certified",
    "finish|complete my", "improve my", "start|open|run|own my", "run a", "save up? for", "be a|an",
];

/// What somebody may need in order to take part, by how they say so. Other needs are those of the moment.
pub(super) static NEEDS: [Need; 3] = [
    Need {
        verbs: &[
            "i need|use|require|wear", "i rely|depend on", "i read|write with", "i have to use", "ich brauche|benutze|nutze",
        ],
        reach_words: 4,
        needs: &[
            "large|larger|big|bigger print|text|type|font|letters|fonts", "high contrast", "screen reader|magnifier|readers",
            "closed? captions", "subtitles", "sign language", "braille", "extra time", "audio versions|descriptions",
            "text to speech", "hearing aid|aids|loop", "wheelchair", "plain|easy language", "alt text", "image descriptions",
            "read aloud", "magnifier", "guide|service dog", "crutches", "note taker", "voice control",
        ],
    },
    Need {
        verbs: &["i have"],
        reach_words: 2,
        needs: &[
            "dyslexia", "dyscalculia", "hearing loss", "colour|color blindness", "low|poor vision|eyesight", "a hearing|visual impairment",
        ],
    },
    Need {
        verbs: &["i am", "ich bin"],
        reach_words: 1,
        needs: &[
            "dyslexic", "deaf", "hard of hearing", "hearing impaired", "blind", "colour|color blind", "visually impaired", "schwerhörig",
            "gehörlos",
        ],
    },
];

/// How something is that is found so.
pub(super) const FOUND_HARD: &[&str] = &[
    "hard", "difficult", "confusing", "tricky", "tough", "challenging", "impossible",
];

/// What becomes of something that somebody does not get right.
pub(super) const GOT_WRONG: &[&str] = &["wrong", "backwards", "confused", "mixed"];

/// Words with which no value begins.
pub(super) const NO_VALUES: &[&str] = &[
    "it", "this", "that", "these", "those", "you", "your", "him", "her", "them", "what", "how", "to",
    "when", "where", "if", "why", "in", "at", "on", "for", "with", "there", "here", "as", "kids",
    "children", "students", "people", "everyone", "well", "full", "part", "because", "anything",
    "something", "everything", "about", "things", "one", "by", "from", "hard", "home", "doing", "such",
    "being", "yours", "mine", "ours", "theirs", "up", "out", "off", "over", "together", "nothing", "not", "so", "every", "each",
    "probably", "maybe", "perhaps", "i", "we", "he", "she", "they", "of", "than", "none", "never", "no", "alone",
];
