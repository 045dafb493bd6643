//! The words and phrases that the rules go by.

/// Jobs and positions, by their last word.
pub(super) const ROLES: &[&str] = &[
    "teacher", "student", "tutor", "lawyer", "parent", "librarian", "counselor", "counsellor", "paralegal",
    "head", "assistant", "principal", "attorney", "solicitor", "barrister", "judge", "clerk", "notary",
    "nurse", "doctor", "physician", "engineer", "developer", "programmer", "designer", "architect",
    "accountant", "manager", "secretary", "administrator", "coach", "instructor", "professor", "lecturer",
    "researcher", "scientist", "chemist", "physicist", "biologist", "historian", "journalist", "writer",
    "editor", "translator", "interpreter", "psychologist", "therapist", "pharmacist", "dentist",
    "veterinarian", "chef", "baker", "farmer", "electrician", "plumber", "carpenter", "mechanic", "driver",
    "pilot", "officer", "firefighter", "soldier", "consultant", "analyst", "economist", "artist",
    "musician", "photographer", "actor", "dancer", "director", "producer", "apprentice", "intern",
    "trainee", "freelancer", "entrepreneur", "founder", "owner", "supervisor", "coordinator", "specialist",
    "technician", "educator", "sub", "aide", "paraprofessional", "homeschooler", "mentor", "dean",
    "superintendent", "associate", "president", "chair", "chairperson", "representative", "agent", "surgeon", "paramedic", "medic",
    "midwife", "nanny", "pastor", "priest", "rabbi", "imam", "captain", "advocate", "magistrate", "postdoc", "resident", "fellow",
    "scholar", "guide", "vet", "guard", "cook", "barista", "caregiver", "volunteer", "tech", "undergraduate", "postgraduate", "freshman", "sophomore", "senior", "mom", "dad",
    "mother", "father", "grandparent", "lehrer", "lehrerin", "schüler", "schülerin", "studentin", "anwalt",
    "anwältin", "rechtsanwalt", "rechtsanwältin", "referendar", "referendarin", "schulleiter",
    "schulleiterin", "erzieher", "erzieherin", "therapeutin",
];

pub(super) const DAYS: &[&str] = &[
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "mondays", "tuesdays",
    "wednesdays", "thursdays", "fridays", "saturdays", "sundays", "weekend", "weekends", "weekday",
    "weekdays", "morning", "mornings", "evening", "evenings", "afternoons", "nights", "montags",
    "dienstags", "mittwochs", "donnerstags", "freitags", "samstags", "sonntags",
];

/// What stands before "teacher" and is no subject.
pub(super) const NO_SUBJECTS: &[&str] = &[
    "substitute", "student", "head", "school", "class", "private", "retired", "elementary", "primary",
    "secondary", "middle", "high", "kindergarten", "preschool", "homeroom", "veteran", "experienced",
    "public", "assistant", "certified", "year", "grade", "college", "university", "lead", "classroom",
];

/// Words at which a phrase ends.
pub(super) const ENDS: &[&str] = &[
    "and", "or", "but", "because", "so", "when", "while", "if", "since", "that", "which", "who", "where",
    "than", "then", "please", "to", "for", "with", "at", "in", "on", "from", "by", "over", "during",
    "after", "before", "until", "as", "about", "this", "these", "right", "every", "each", "now",
    "currently", "lately", "more", "most", "mostly", "best", "better", "very", "too", "again", "a", "is",
    "are", "am", "was", "do", "does", "not", "i", "you", "my", "me", "we", "it", "thanks", "though",
    "mainly", "und", "oder", "aber", "weil", "nicht", "lieber", "sometimes", "can", "such", "like",
    "especially", "including", "etc", "often", "whenever", "unless", "whereas",
];

/// Words that may stand before a value and are no part of it.
pub(super) const LEADS: &[&str] = &[
    "the", "a", "an", "my", "our", "some", "mostly", "mainly", "really", "also", "only", "just", "all",
    "more", "having", "using", "lots", "of", "both", "der", "die", "das", "den", "ein", "eine", "usually",
];

/// What leads on from a day in a schedule to another one or a time.
pub(super) const DAY_TAILS: &[&str] = &["and", "or", "to", "through", "after", "before", "at", "from", "until", "till"];

/// Times of a day in a schedule.
pub(super) const DAY_TIMES: &[&str] = &[
    "morning", "mornings", "afternoon", "afternoons", "evening", "evenings", "night", "nights", "noon", "midday", "midnight", "lunch",
    "school", "work", "class", "classes", "dinner", "breakfast", "off", "am", "pm", "lunchtime",
];

/// Endings of words for what people do.
pub(super) const ROLE_ENDINGS: &[&str] = &["er", "or", "ist", "ian", "ant", "man", "woman", "ess", "eer"];

/// Words with such an ending that are no job.
pub(super) const NO_ROLES: &[&str] = &[
    "reader", "learner", "speaker", "beginner", "believer", "newcomer", "lover", "hater", "member", "stickler", "thinker", "talker",
    "sleeper", "riser", "user", "eater", "drinker", "smoker", "listener", "customer", "stranger", "number", "winner", "loser",
    "fighter", "survivor", "sufferer", "procrastinator", "perfectionist", "optimist", "pessimist", "realist", "minimalist", "feminist",
    "atheist", "vegetarian", "libertarian", "pedestrian", "human", "woman", "man", "gentleman", "foreigner", "outsider", "gamer",
    "player", "follower", "supporter", "viewer", "visitor", "minor", "junior", "bachelor", "grader", "other", "another", "either", "ever",
    "never", "over", "under", "order", "matter", "paper", "letter", "answer", "bother", "bother", "tester", "starter", "twentieth",
    "adult", "giant", "infant", "important", "pregnant", "constant", "distant", "ignorant", "mess", "less", "stress", "process", "better",
    "faster", "slower", "bigger", "smaller", "older", "younger", "later", "earlier", "easier", "harder", "cancer", "leader", "fear",
    "brother", "sister", "sitter", "insider", "loner", "hoarder", "worrier", "crier", "dreamer", "voter", "dinner", "summer", "winter",
    "clever", "eager", "proper", "former", "tender", "bitter", "sober", "racist", "sexist", "hypocrite", "extremist", "boss",
];

/// What somebody is like, and not what they are.
pub(super) const QUALITIES: &[&str] = &[
    "slow", "fast", "quick", "good", "bad", "great", "big", "huge", "hard", "terrible", "poor", "weak", "strong", "avid", "keen", "careful",
    "native", "late", "total", "complete", "absolute", "frequent", "regular", "decent", "lousy", "excellent", "born", "fluent", "passionate",
    "nervous", "serious", "casual", "bit", "huge", "little",
];

/// Words that may stand before a job and are no part of it.
pub(super) const ROLE_LEADS: &[&str] = &[
    "new", "proud", "busy", "full", "time", "part", "young", "year", "first", "second", "third", "fourth",
    "fifth", "old", "happy", "brand", "long",
];

/// People: what is said of them is no subject and no weakness.
pub(super) const PERSONS: &[&str] = &[
    "kid", "kids", "child", "children", "son", "sons", "daughter", "daughters", "student", "students", "pupil", "pupils", "class", "classes",
    "people", "person", "adults", "adult", "boy", "boys", "girl", "girls", "man", "men", "woman", "women", "friend", "friends", "mother",
    "father", "mom", "dad", "parents", "parent", "wife", "husband", "brother", "sister", "teacher", "teachers", "boss", "everyone", "guy",
    "guys", "graders", "grader", "toddlers", "teens", "teenagers", "kinder", "beginners", "learners", "seniors", "neighbor", "neighbour",
];

/// What is hard only for the moment.
pub(super) const MOMENTARY: &[&str] = &[
    "homework", "assignment", "assignments", "answer", "answers", "question", "questions", "task", "exercise", "error", "errors", "message",
    "instructions", "email", "code", "printer", "computer", "laptop", "phone", "car", "keys", "time", "one", "part", "point", "way", "bit",
    "stuff", "lot", "all", "hausaufgaben", "response", "explanation", "reply", "step", "traffic", "order",
];

/// What nobody means by a subject.
pub(super) const NOT_TAUGHT: &[&str] = &[
    "grade", "grades", "school", "college", "kindergarten", "klasse", "hours", "day", "days", "week", "weeks", "month", "year", "years",
    "monday", "mondays", "tuesday", "tuesdays", "wednesday", "wednesdays", "thursday", "thursdays", "friday", "fridays", "saturdays", "sundays",
    "morning", "mornings", "evening", "evenings", "night", "nights", "essay", "letter", "project", "report", "homework", "notes", "break",
    "bus", "train", "skill", "skills", "novel", "book", "exercises", "presentation", "thing", "things", "dish", "recipe", "it", "office",
    "hospital", "firm", "company", "team", "shop", "store", "late", "early", "online", "remotely", "abroad", "together", "small", "big", "mixed",
    "two", "three", "four", "five", "six", "several", "many", "section", "sections", "groups", "group", "january", "february", "march", "april",
    "may", "june", "july", "august", "september", "october", "november", "december", "pairs", "shifts", "lot", "bit", "best", "better",
];

/// Languages, by name.
pub(super) const LANGUAGES: &[&str] = &[
    "english", "french", "german", "spanish", "italian", "portuguese", "dutch", "polish", "russian", "ukrainian", "czech", "slovak",
    "hungarian", "romanian", "bulgarian", "greek", "turkish", "arabic", "hebrew", "persian", "farsi", "urdu", "hindi", "bengali", "punjabi",
    "tamil", "telugu", "gujarati", "marathi", "chinese", "mandarin", "cantonese", "japanese", "korean", "vietnamese", "thai", "indonesian",
    "malay", "tagalog", "swahili", "somali", "amharic", "yoruba", "igbo", "hausa", "zulu", "afrikaans", "swedish", "norwegian", "danish",
    "finnish", "icelandic", "irish", "welsh", "latin", "albanian", "serbian", "croatian", "bosnian", "armenian", "georgian", "kurdish",
    "pashto", "nepali", "burmese", "khmer", "catalan", "basque", "esperanto", "creole", "englisch", "französisch", "deutsch", "spanisch",
    "italienisch", "polnisch", "russisch", "türkisch", "arabisch", "latein", "asl",
];

/// What a person is, by belief, origin or sign, and not what they are called. Endings that tell most of them stand in `people`.
pub(super) const NO_NAMES: &[&str] = &[
    "catholic", "protestant", "orthodox", "jewish", "muslim", "hindu", "buddhist", "sikh", "baptist", "methodist", "mormon", "quaker",
    "agnostic", "atheist", "german", "french", "dutch", "greek", "swiss", "thai", "iraqi", "pakistani", "israeli", "somali", "nepali",
    "bengali", "arab", "turk", "dane", "swede", "pole", "czech", "slovak", "croat", "serb", "finn", "latino", "latina", "hispanic", "black",
    "white", "native", "republican", "democrat", "gen", "type", "team", "grade", "year", "okay", "ok", "fine", "sorry", "sure", "good", "tired",
    "happy", "sad", "done", "ready", "back", "new", "here", "lost", "stuck", "confused", "deaf", "blind", "autistic", "dyslexic", "aries", "taurus",
    "gemini", "virgo", "libra", "scorpio", "capricorn", "aquarius", "pisces", "not", "a", "an", "the", "when", "if", "at", "on", "by", "what",
    "in", "from", "so", "very", "just", "now", "also", "your", "my", "i", "deutscher", "deutsche", "katholisch", "evangelisch",
];

/// Parents and theirs: "of" behind them leads to whose they are.
pub(super) const FAMILY: &[&str] = &[
    "mom", "mum", "dad", "mother", "father", "parent", "grandparent", "grandmother", "grandfather", "guardian",
];

/// What is written with a capital letter behind "in" and is no place.
pub(super) const NO_PLACES: &[&str] = &[
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december", "spring",
    "summer", "fall", "autumn", "winter", "grade", "year", "room", "class", "building", "mrs", "mr", "ms", "dr", "ap", "hr", "it", "ib",
    "java", "python", "excel", "i",
];
