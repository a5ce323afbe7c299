"""Phrases of messages, and the function words of each language.

A message consists of an opening, a thing, and an ending.
"""

from penstock.pipelines.text_columns import word_list

SUBJECTS = ("health", "politics", "sport", "money")
LANGUAGES = ("en", "es", "de", "fr")

#: Words that are frequent in one language and rare in the others.
SMALL_WORDS = {
    "en": word_list("the of is was to on and my it what this after with they has for are i"),
    "es": word_list("el los que es una por para muy con esta del se lo ya no"),
    "de": word_list("der das ist nicht und ein eine mit für sich auch sehr wir dem schon ich"),
    "fr": word_list("le les est une pas et pour des dans cette très on avec c'est je"),
}

NEWS_OPENINGS = (
    "Breaking:",
    "Just in:",
    "Officials confirm it:",
    "As reported this morning,",
    "Update on the day:",
    "On the wires:",
    "This was seen today:",
    "Sent to me by a witness:",
)
OPINION_OPENINGS = (
    "I think",
    "In my view",
    "Honestly,",
    "If you ask me,",
    "I must say that",
    "To me,",
    "My two cents:",
    "Say what you like, but",
)
#: Openings of the other languages.
FOREIGN_OPENINGS = (
    ("Creo que", "Parece que", "Dicen que", "Hoy se sabe que"),
    ("Ich finde,", "Heute heißt es,", "Man hört, auch", "Es ist so:"),
    ("Je crois que", "On dit que", "Ce matin, on apprend que", "Voilà,"),
)

#: Things that messages are about, by language and subject.
THINGS = (
    (
        (
            "the vaccine for children",
            "the crowded hospital ward",
            "the mask rule on trains",
            "the night shift of the nurses",
            "the new clinic by the river",
            "the wave of fever in the north",
        ),
        (
            "the vote in parliament",
            "the minister of the interior",
            "the new election law",
            "the mayor of the old town",
            "the coalition and its treaty",
            "the speech to the senate",
        ),
        (
            "the penalty in the final minute",
            "the coach of the home team",
            "the marathon through the city",
            "the transfer of the goalkeeper",
            "the race on the wet track",
            "the cup match of the juniors",
        ),
        (
            "the rise of the interest rate",
            "the price of bread and fuel",
            "the merger of the two banks",
            "the tax on small savings",
            "the fall of the shares",
            "the pay deal of the railway",
        ),
    ),
    (
        ("la vacuna para los niños", "el hospital del barrio"),
        ("la ley del parlamento", "el ministro del interior"),
        ("el penalti del partido", "la carrera por el centro"),
        ("el precio del pan", "la subida del interés"),
    ),
    (
        ("die Impfung für Kinder", "das Krankenhaus für das Viertel"),
        ("der Minister mit dem Bart", "das Gesetz für eine Wahl"),
        ("der Elfmeter mit Ansage", "das Rennen mit dem Meister"),
        ("der Preis für das Brot", "die Steuer für das Sparbuch"),
    ),
    (
        ("le vaccin pour les enfants", "le service dans cette clinique"),
        ("le vote des députés", "le texte de cette loi"),
        ("le penalty dans cette finale", "la course dans les rues"),
        ("le prix des repas", "la taxe pour les banques"),
    ),
)

#: Endings of news, by subject.
NEWS_ENDINGS = (
    ("draws patients from two counties", "is praised by doctors", "needs more beds and staff"),
    ("splits the ruling party", "goes to a second ballot", "is defended by the government"),
    ("decides the season", "is watched by a full stadium", "ends in extra time"),
    ("worries the central bank", "costs investors a fortune", "moves markets at noon"),
)
#: Endings of opinions: for, against, neither. Some endings mean the opposite of their words.
OPINION_ENDINGS = (
    (
        "is simply wonderful",
        "was a great idea",
        "makes me happy",
        "is not bad at all",
        "was worth the wait",
        "beats everything we had",
    ),
    (
        "is a disgrace",
        "was a terrible plan",
        "makes me angry",
        "is not good enough",
        "was never a clever move",
        "is great, if you like a mess",
    ),
    ("is what it is", "may change by next week", "is on my mind", "could go either way"),
)
#: Endings of the other languages.
FOREIGN_ENDINGS = (
    ("es muy importante", "ya no es lo que era", "se queda con una duda", "es una sorpresa"),
    ("ist nicht neu", "ist auch sehr gut", "macht sich schon bezahlt", "ist eine Frage"),
    ("est une surprise", "n'est pas une nouvelle", "est très utile", "est une bonne idée"),
)
