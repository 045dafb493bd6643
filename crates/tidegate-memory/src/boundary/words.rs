//! The words and phrases that the rules of the boundary go by. English, and what is most common in German.

/// What makes everything behind it in the sentence a condition.
pub(super) const CONDITIONS: &[&str] = &[
    "if", "unless", "whether", "suppose", "supposing", "assume", "assuming", "provided", "in case",
    "what if", "hypothetically", "theoretically", "were i", "had i", "should i", "let us say", "say i",
    "say that", "as if", "as though", "imagine", "imagining", "picture me", "like i", "like we",
    "as long as", "in theory", "in the event", "wenn", "falls", "ob", "angenommen", "stell dir vor",
    "als ob", "als wäre", "let us assume", "let us suppose",
];

/// Conditions that are none: they ask for leave to speak.
pub(super) const NO_CONDITIONS: &[&str] = &[
    "if it helps", "if that helps", "if it matters", "if that matters", "if you do not mind",
    "if you must", "if you need", "if you remember", "if you recall", "if you want", "if you wonder",
    "if you are wondering", "if you could", "if you can", "in case it", "in case you", "if possible",
    "if that is possible", "if that is ok", "if that is okay", "if that is fine", "if that is alright",
    "if it is possible", "if it is ok", "if it is okay", "if it is fine", "if you like", "if you please",
    "if you prefer", "if anyone asks", "if i may", "if that makes",
];

/// What makes it play.
pub(super) const PLAYS: &[&str] = &[
    "pretend", "pretending", "role play", "roleplay", "role playing", "roleplaying", "act as", "act like",
    "acting as", "as a character", "as my character", "in character", "my character", "play the role",
    "playing the role", "play a", "play the part", "in the story", "in my story", "in this story",
    "in the game", "in this game", "in my game", "in the play", "in the movie", "in the book",
    "in the novel", "in my novel", "in my dream", "in my dreams", "in the dream", "in this scenario",
    "in the scenario", "in a scenario", "make believe", "i dreamed", "i dreamt", "in the show", "school play",
    "class play", "in the musical", "in a play", "in our play",
];

/// Who says it, when it is not the person.
pub(super) const REPORTS: &[&str] = &[
    "said", "says", "say", "saying", "reads i", "reads my", "told", "tells", "tell", "telling", "claims", "claimed", "claim",
    "wrote", "writes", "write", "asked", "asks", "thinks", "thought", "think that", "believes", "assumes",
    "assumed", "insists", "insisted", "according to", "heard", "answer", "reply", "repeat", "respond",
    "print", "output", "the sentence", "the phrase", "the words", "the text", "the document", "the page",
    "the letter", "apparently", "allegedly", "supposedly", "reportedly", "rumour", "rumor", "sagt",
    "sagte", "schreibt", "meint", "behauptet", "laut", "quote",
];

/// Verbs of saying that are fine where the person is who says it, to us.
pub(super) const OWN_REPORTS: &[&str] = &[
    "said", "told", "say", "tell", "mentioned", "saying",
];

/// What makes a request to say something to somebody of what follows.
pub(super) const THIRD_OBJECTS: &[&str] = &[
    "him", "her", "them", "my", "the", "everyone", "people", "everybody", "someone", "his",
];

/// How mockery begins.
pub(super) const MOCKERIES: &[&str] = &[
    "yeah right", "yeah , right", "oh sure", "oh yeah", "right , and", "sure , and", "as if", "ha ,",
    "haha",
];

/// What takes back everything in the turn.
pub(super) const TAKEN_BACK: &[&str] = &[
    "just kidding", "only kidding", "i am kidding", "jk", "just joking", "only joking", "i am joking",
    "i was joking", "that was a joke", "was a lie", "is a lie", "april fools", "opposite day", "sarcasm",
    "that is not true", "not true", "that is false", "is made up", "made that up", "i made this up",
    "none of that is true",
];

/// What turns everything behind it in the turn into a game or a text.
pub(super) const FRAMES: &[&str] = &[
    "role play", "roleplay", "role playing", "let us pretend", "pretend", "imagine", "act as",
    "play the role", "play a character", "in character", "in this scenario", "in the scenario",
    "hypothetically", "hypothetical", "for the sake of argument", "let us say", "let us suppose",
    "let us assume", "suppose", "thought experiment", "make believe", "let us play", "opposite day",
    "stell dir vor", "rollenspiel", "in first person", "in the first person", "from the perspective",
    "from the point of view", "first person narrator", "as a character", "you will play", "i will play",
    "from now on you are", "you are now", "you play", "you be the", "you are the teacher",
    "you are my teacher", "i play", "i am playing", "alternate life", "alternate universe", "another life",
    "fictional", "fiction",
];

/// The same, where the person says it of themselves.
pub(super) const OWN_FRAMES: &[&str] = &[
    "i am the narrator", "i am your student", "i am your teacher", "i am your child", "i am playing",
    "i will play", "i will say something", "i am acting", "i am a character", "i am pretending",
    "i will pretend", "i will be the", "i will be a", "i am now a", "two truths", "true or false",
    "knock knock", "conjugate", "let us practice", "let us practise", "mock interview", "game on",
    "word game", "fill in", "mad libs", "would you rather",
];

/// What asks for nothing to be kept.
pub(super) const NOT_KEPT: &[&str] = &[
    "do not save", "do not store", "do not remember", "do not keep", "do not record", "ignore what i",
    "ignore the next", "ignore this", "ignore everything", "testing memory", "this is a test",
    "just a test", "test message", "off the record", "forget this", "forget what i", "do not take this",
    "not about me", "something false", "merk dir nicht", "nicht merken", "nicht speichern",
];

/// What is made up on request.
pub(super) const FICTIONS: &[&str] = &[
    "story", "stories", "poem", "dialogue", "dialog", "monologue", "script", "song", "lyrics", "novel",
    "scene", "skit", "rap", "limerick", "fable", "tale", "diary", "character", "play", "speech",
];

/// How such a request begins.
pub(super) const MAKES: &[&str] = &[
    "write", "tell", "make", "compose", "continue", "create", "invent", "draft", "generate", "give",
    "schreib", "schreibe",
];

/// What is written for others.
pub(super) const TEXTS: &[&str] = &[
    "bio", "email", "letter", "profile", "post", "message", "cv", "resume", "introduction", "statement",
    "text", "essay", "card",
];

/// People who are not the person.
pub(super) const PEOPLE: &[&str] = &[
    "friend", "friends", "brother", "brothers", "sister", "sisters", "mother", "father", "mom", "mum",
    "dad", "mommy", "daddy", "parent", "parents", "son", "sons", "daughter", "daughters", "wife",
    "husband", "partner", "girlfriend", "boyfriend", "fiancé", "spouse", "colleague", "colleagues",
    "coworker", "coworkers", "boss", "neighbour", "neighbor", "neighbours", "neighbors", "cousin",
    "cousins", "uncle", "aunt", "nephew", "niece", "grandson", "granddaughter", "grandma", "grandpa",
    "grandmother", "grandfather", "roommate", "buddy", "mate", "kid", "kids", "child", "children", "boy",
    "girl", "guy", "man", "woman", "teenager", "tutee", "client", "clients", "mentor", "twin", "twins",
    "stepson", "stepdaughter", "freund", "freundin", "bruder", "schwester", "sohn", "tochter", "mutter",
    "vater", "kollege", "kollegin",
];

/// People whom the person may teach: what is said of them is not said of the person, save their school year.
pub(super) const PUPILS: &[&str] = &[
    "student", "students", "pupil", "pupils", "class", "classes", "learners", "kids", "teacher",
    "teachers", "schüler", "klasse", "group", "team", "school",
];

/// Pronouns of others.
pub(super) const OTHERS: &[&str] = &[
    "he", "she", "they", "you", "him", "her", "his", "their", "them", "someone", "somebody", "everyone",
    "everybody", "anyone", "nobody", "who", "whose", "er", "sie", "du", "jemand", "one",
];

/// What denies.
pub(super) const NEGATIONS: &[&str] = &[
    "not", "never", "no", "neither", "nor", "hardly", "barely", "rarely", "seldom", "nobody", "none",
    "without", "nicht", "nie", "niemals", "kein", "keine", "keinen", "keiner", "keinem", "scarcely",
    "nothing",
];

/// What puts something else in its place.
pub(super) const INSTEAD: &[&str] = &[
    "instead of", "rather than", "except", "other than", "but not", "unlike", "than", "apart from",
    "anything but", "besides", "over",
];

/// Verbs of the past that have a form of their own.
pub(super) const PAST_VERBS: &[&str] = &[
    "was", "were", "had", "did", "taught", "went", "got", "came", "took", "saw", "became", "began",
    "learnt", "knew", "felt", "found", "left", "grew", "used", "spent", "thought", "majored", "ran",
    "wrote", "spoke", "met", "led", "gave", "war", "hatte", "unterrichtete", "ging", "mochte", "wollte",
];

/// Times that are over.
pub(super) const PAST_TIMES: &[&str] = &[
    "last year", "last month", "last week", "last term", "last semester", "last summer", "last fall",
    "last spring", "last monday", "last friday", "years ago", "year ago", "months ago", "ago", "yesterday",
    "back then", "formerly", "previously", "as a child", "as a kid", "in the past", "when i was",
    "back when", "früher", "letztes jahr",
];

/// Times that are to come.
pub(super) const COMING_TIMES: &[&str] = &[
    "next year", "next month", "next week", "next term", "next semester", "next fall", "next spring",
    "next school", "next time", "next summer", "next monday", "next friday", "tomorrow", "soon", "someday",
    "some day", "one day", "in the future", "nächstes jahr", "bald", "morgen",
];

/// Roles that are over.
pub(super) const FORMER: &[&str] = &["former", "ex", "formerly"];

/// Roles that are to come.
pub(super) const TO_COME: &[&str] = &["aspiring", "future", "wannabe", "prospective"];

/// What is wished, planned or only possible.
pub(super) const UNREAL: &[&str] = &[
    "will", "shall", "would", "could", "might", "may", "should", "must", "going to", "about to", "wish",
    "wishing", "hope", "hoping", "hopefully", "want", "wants", "wanted", "plan to", "plan on",
    "planning to", "am planning", "intend", "dream", "dreaming", "try", "trying", "werde", "würde",
    "möchte", "könnte", "hoffe", "will be", "rather be", "apply", "applying",
];

/// What is not certain.
pub(super) const UNSURE: &[&str] = &[
    "maybe", "perhaps", "possibly", "probably", "almost", "nearly", "i think", "i guess", "i suppose",
    "i believe", "not sure", "sort of", "kind of", "either", "vielleicht", "wahrscheinlich", "wohl",
];

/// Words that may stand before the person names themselves.
pub(super) const HARMLESS: &[&str] = &[
    "and", "but", "so", "because", "since", "as", "hi", "hello", "hey", "dear", "well", "ok", "okay",
    "yes", "yeah", "yep", "no", "nope", "oh", "ah", "you", "know", "please", "remember", "that", "keep",
    "in", "mind", "forget", "note", "for", "context", "background", "by", "way", "btw", "fyi", "ps", "p.s",
    "right", "this", "year", "term", "semester", "week", "month", "at", "moment", "these", "days", "to",
    "be", "clear", "honest", "good", "morning", "afternoon", "evening", "day", "thanks", "thank", "there",
    "not", "do", "of", "course", "sure", "sorry", "then", "plus", "however", "besides", "reminder",
    "update", "info", "question", "quick", "about", "me", "a", "small", "one", "thing", "more", "present",
    "again", "guess", "see", "said", "mentioned", "before", "though", "although", "anyway", "the",
    "record", "what", "it", "is", "worth", "case", "helps", "matters", "due", "new", "job", "school",
    "here", "bear", "make", "take", "can", "could", "will", "would", "everyone", "folks", "assistant",
    "tidegate", "also", "just", "let", "tell", "should", "must", "up", "heads", "important", "some",
    "little", "extra", "und", "aber", "denn", "hallo", "ja", "nein", "bitte", "übrigens", "guten", "tag",
    "merk", "dir", "vergiss", "nicht", "dass", "my", "our", "where", "which", "work", "home", "practice",
    "fact", "truth", "told", "while", "like", "either", "first", "off", "all", "every", "on", "both",
    "other", "words", "short", "summary", "side", "hand", "personally", "speaking", "each", "between",
    "us", "another", "still", "friendly", "gentle", "wie", "gesagt", "du", "weißt", "already", "call", "nenn",
];

/// Roles in which people speak as themselves: "as a teacher, I …".
pub(super) const OWN_ROLES: &[&str] = &[
    "teacher", "student", "parent", "tutor", "educator", "professional", "lawyer", "nurse", "librarian",
    "beginner", "mom", "dad", "lehrer", "lehrerin",
];

/// Prepositions with which a frame may begin: "in Minecraft, …".
pub(super) const FRAMING: &[&str] = &[
    "in", "at", "as", "for", "from", "during", "within", "inside", "under", "to", "like", "with", "by",
    "through", "via", "on", "per", "according", "after", "before", "starting", "beginning", "once",
    "until", "following", "als", "im", "aus",
];

/// What may be said before "that", or before a clause without it.
pub(super) const INTRODUCTIONS: &[&str] = &[
    "remember", "mind", "forget", "note", "know", "mention", "add", "say", "mentioned", "said", "told",
    "tell", "is", "so", "aware", "clear", "see", "guess", "explain", "dir", "nicht", "admit", "confess",
    "share", "reminder",
];

/// Who may call the person by their name, and how that is said.
pub(super) const CALLERS: &[&str] = &[
    "everyone", "everybody", "people", "friends", "students", "colleagues", "folks", "they", "most", "calls", "call", "may",
];

/// Verbs of speaking, behind what is spoken.
pub(super) const SPOKE: &[&str] = &[
    "said", "says", "told", "wrote", "writes", "whispered", "shouted", "yelled", "claimed", "claims",
    "asked", "replied", "answered", "added", "laughed", "quoted", "announced", "explained", "stated",
    "states", "reads", "posted", "tweeted", "sagte", "schrieb", "according", "insisted", "exclaimed",
    "muttered",
];

/// Words that turn what stands before them round.
pub(super) const TURNS: &[&str] = &[
    "kidding", "lol", "jk", "not really", "psych", "as if", "yeah right", "joking", "haha", "hahaha",
    "sarcastically", "supposedly", "allegedly", "or so", "or not", "obviously not", "nah",
];

/// What is found hard or disliked.
pub(super) const DISLIKES: &[&str] = &[
    "hate", "hates", "dislike", "dislikes", "avoid", "stand", "hard", "difficult", "struggle", "boring",
    "worst", "annoy", "annoys", "confuse", "confuses", "tired of",
];

/// What is easy or liked.
pub(super) const EASES: &[&str] = &[
    "love", "like", "enjoy", "prefer", "easy", "good at", "great at", "understand", "comfortable",
    "confident", "know", "master", "excellent", "favourite", "favorite", "sense",
];

/// How something hard is spoken of.
pub(super) const LACKS: &[&str] = &[
    "struggle", "struggles", "struggling", "hard", "harder", "hardest", "difficult", "difficulty",
    "difficulties", "trouble", "troubles", "confuse", "confuses", "confused", "confusing", "unsure",
    "stuck", "bad", "weak", "weakness", "weakest", "mistake", "mistakes", "problem", "problems", "lost",
    "tricky", "unclear", "shaky", "rusty", "fail", "failing", "forget", "forgetting", "mix", "mixing",
    "gap", "gaps", "trips", "tough", "worst", "worse", "puzzle", "puzzles", "baffles", "behind", "help",
    "improve", "practice", "practise", "better", "terrible", "awful", "clueless", "slow", "scares",
    "challenge", "challenging", "schwer", "schwierig",
];

/// Words between "I am" and a school year that make it something else.
pub(super) const NOT_IN_GRADE: &[&str] = &[
    "like", "than", "as", "with", "older", "younger", "smarter", "about", "fan", "by", "from", "not",
    "parent", "near", "against", "done", "on", "through", "for", "past", "beyond",
];

/// What a school year may be an attribute of without being the person's.
pub(super) const THINGS: &[&str] = &[
    "worksheet", "worksheets", "book", "books", "textbook", "material", "materials", "test", "tests",
    "problem", "problems", "text", "texts", "vocabulary", "reading", "standards", "curriculum", "humor",
    "project", "projects", "homework", "essay", "essays", "story", "play", "room", "party", "trip", "hall",
    "wing", "concert", "building", "door", "hallway", "memories", "humour",
];

/// Who teaches or attends a school year.
pub(super) const JOBS: &[&str] = &[
    "teacher", "student", "tutor", "instructor", "pupil", "teaching", "sub", "aide", "para", "lehrer",
    "lehrerin", "schüler", "schülerin", "educator", "coach",
];

/// Words between "I am" and a school year.
pub(super) const IN_GRADE: &[&str] = &[
    "in", "the", "a", "an", "my", "this", "year", "at", "school", "high", "middle", "elementary", "senior",
    "junior", "der", "die", "und", "and", ",", "freshman", "sophomore", "primary", "our", "-", "so", "to",
    "going",
];

/// Prepositions: behind one, a role is somebody else's.
pub(super) const PREPOSITIONS: &[&str] = &[
    "to", "of", "with", "from", "about", "near", "against", "by", "than", "like", "in", "at", "on",
    "under", "without", "behind", "between", "into", "through", "via", "versus", "mit",
];

/// How a request to remember begins.
pub(super) const REMEMBER: &[&str] = &[
    "remember", "keep in mind", "bear in mind", "do not forget", "make a note", "take note", "note that",
    "merk dir", "merke dir", "vergiss nicht",
];

/// Words with which questions begin.
pub(super) const INTERROGATIVES: &[&str] = &[
    "can", "could", "would", "will", "do", "does", "did", "is", "are", "am", "what", "how", "which", "why",
    "when", "where", "who", "should", "shall", "may", "any", "have", "has", "got", "please", "was", "were",
    "kannst", "können", "wie", "hast", "gibt",
];

/// Words that can begin a clause of its own behind "and".
pub(super) const SUBJECTS: &[&str] = &[
    "i", "we", "he", "she", "it", "they", "you", "my", "our", "his", "her", "their", "the", "this", "that",
    "there", "these", "those", "who", "everyone", "somebody", "someone", "nobody", "can", "could", "would",
    "will", "do", "does", "is", "are", "please", "what", "how", "next", "last", "ich", "er", "sie", "wir",
    "mein", "meine", "es", "some", "most",
];

/// Words that always begin one.
pub(super) const OPENERS: &[&str] = &[
    "but", "because", "although", "though", "while", "whereas", "when", "whenever", "until", "till",
    "once", "before", "after", "which", "who", "whom", "whose", "where", "unless", "if", "whether",
    "since", "aber", "weil", "dass", "obwohl", "während", "wenn", "falls", "denn", "sondern", "however",
    "yet",
];

/// Verbs whose object is a question.
pub(super) const KNOWING: &[&str] = &[
    "know", "understand", "remember", "sure", "see", "tell", "forget", "figure", "decide", "unsure",
    "about", "out", "weiß",
];

/// Marks between clauses.
pub(super) const MARKS: &[&str] = &[
    ",", ":", "-", "(", ")", "/", "•", "=", "[", "]",
];

/// Words for what is secret.
pub(super) const SECRETS: &[&str] = &[
    "password", "passwords", "passcode", "passphrase", "pwd", "pin", "pincode", "login", "credential",
    "credentials", "api key", "access key", "secret key", "private key", "secret is", "token",
    "credit card", "card number", "cvv", "iban", "account number", "social security", "ssn",
    "passport number", "seed phrase", "recovery code", "security code", "my secret", "as my secret",
    "wifi", "wlan", "key is", "passwort", "kennwort", "geheimzahl", "kreditkarte", "kontonummer",
];

/// Who is given orders.
pub(super) const AGENTS: &[&str] = &[
    "you", "assistant", "model", "system", "agent", "ai", "bot", "chatbot", "tidegate",
];

/// How orders are given.
pub(super) const DUTIES: &[&str] = &[
    "must", "should", "shall", "have to", "need to", "are allowed", "may", "are to", "are not to", "ought",
    "are permitted",
];

/// What is to be got round, and how.
pub(super) const SAFEGUARDS: &[&str] = &[
    "check", "checks", "approval", "approvals", "permission", "permissions", "confirmation",
    "confirmations", "safety", "rules", "rule", "guard", "guards", "policy", "policies", "verification",
    "filter", "filters", "restrictions", "restriction", "safeguards", "guardrails", "limits",
    "instructions", "gate", "sandbox",
];

pub(super) const EVASIONS: &[&str] = &[
    "skip", "skipped", "skipping", "bypass", "bypassed", "disable", "disabled", "ignore", "ignored",
    "without", "override", "overridden", "off", "no", "remove", "removed", "waive", "waived", "unlock",
    "drop",
];

/// What nobody gets by liking it.
pub(super) const FREEDOMS: &[&str] = &[
    "approval", "approvals", "approve", "approved", "approves", "unrestricted", "permissions",
    "privileges", "sudo", "autoapprove", "unfiltered", "uncensored", "jailbroken", "jailbreak",
];

/// Who has power over a server, and over what.
pub(super) const POWERS: &[&str] = &[
    "admin", "administrator", "owner", "operator", "root", "superuser", "developer", "creator",
    "authorized", "authorised", "privileged", "maintainer", "boss", "master", "controller",
];

pub(super) const DOMAINS: &[&str] = &[
    "server", "system", "assistant", "bot", "tidegate", "agent", "account", "instance", "service",
    "deployment", "ai", "you", "chatbot", "database",
];

/// Roles that are nothing but power over a server.
pub(super) const BARE_POWERS: &[&str] = &[
    "admin", "administrator", "root", "superuser", "operator", "root user", "superadmin", "system",
];

/// What people say of themselves, one behind the other: "I live in Ohio and teach 4th grade".
pub(super) const OWN_VERBS: &[&str] = &[
    "am", "live", "work", "teach", "tutor", "coach", "study", "attend", "go", "have", "speak", "need", "use", "volunteer", "heiße", "heisse",
    "bin", "wohne", "lebe", "komme", "arbeite", "unterrichte", "studiere", "gehe", "spreche",
];

/// What people do who teach or attend.
pub(super) const OWN_ACTS: &[&str] = &["teaching", "tutoring", "attending", "studying", "being", "coaching"];

/// What people are doing who do something for their pupils.
pub(super) const OWN_WORK: &[&str] = &[
    "planning", "preparing", "making", "looking", "creating", "writing", "working", "designing", "putting", "building", "setting",
    "searching", "reading", "doing", "trying",
];

/// Whom or what people run who teach a school year.
pub(super) const ROOMS: &[&str] = &["class", "classes", "classroom", "room", "homeroom", "group", "section", "sections"];

/// Words between "I work" and a school year that make it something else.
pub(super) const OTHER_WORK: &[&str] = &[
    "on", "about", "like", "from", "than", "next", "near", "beside", "behind", "above",
];

/// Whom the person teaches, or with whom they learn.
pub(super) const GROUPS: &[&str] = &[
    "class", "classes", "students", "pupils", "homeroom", "classroom", "grade", "level", "kids", "klasse", "group", "learners",
];

/// What makes it another group than the person's own of now.
pub(super) const NOT_THIS_GROUP: &[&str] = &[
    "favourite", "favorite", "next", "old", "former", "dream", "future", "ideal", "previous", "bigger", "smaller", "there", "with",
];
