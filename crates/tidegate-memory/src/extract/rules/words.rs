//! The words and phrases that the rules go by.

/// Jobs and positions, by their last word.
pub(super) const ROLES: &[&str] = &[
    "teacher", "student", "tutor", "lawyer", "parent", "librarian", "counselor", "counsellor", "paralegal",
    "head", "assistant", "principal", "attorney", "solicitor", "barrister", "judge", "clerk", "notary",
    "nurse", "doctor", "physician", "engineer", "developer", "programmer", "designer", "architect",
    "accountant", "manager", "secretary", "administrator", "coach", "worker", "instructor", "professor", "lecturer",
    "researcher", "scientist", "chemist", "physicist", "biologist", "historian", "journalist", "writer",
    "editor", "translator", "interpreter", "psychologist", "therapist", "pharmacist", "dentist",
    "veterinarian", "chef", "baker", "farmer", "electrician", "plumber", "carpenter", "mechanic", "driver",
    "pilot", "officer", "firefighter", "soldier", "consultant", "analyst", "economist", "artist",
    "musician", "photographer", "actor", "dancer", "director", "producer", "apprentice", "intern",
    "trainee", "freelancer", "entrepreneur", "founder", "owner", "supervisor", "coordinator", "specialist",
    "technician", "educator", "sub", "aide", "paraprofessional", "homeschooler", "mentor", "dean",
    "superintendent", "undergraduate", "postgraduate", "freshman", "sophomore", "senior", "mom", "dad",
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

/// How names are introduced.
pub(super) const NAMINGS: &[&str] = &[
    "my name is", "i am called", "call me", "i go by", "ich heiße", "ich heisse", "mein name ist",
    "i am known as", "my first name is", "my nickname is", "i am named", "nenn mich", "my full name is",
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

/// What may follow a day in a schedule.
pub(super) const DAY_TAILS: &[&str] = &[
    "and", "or", "to", "through", "after", "before", "school", "off", "at", "from", "until", "noon", "lunch", "am", "pm", "night",
];
