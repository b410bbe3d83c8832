"""English sentences, tokens, universal parts of speech and lemmas: one function, whatever tags.

Three kinds, each named in its signature: stanza's models, nltk's perceptron trained on a CoNLL-U file that the user
gives, WordNet's own sense counts. On UD English EWT's test part (gold tokens; upos right): the perceptron .939 trained
on all 12,544 sentences and .912 on 3,000 of them, the counts .871; stanza (.97 by hearsay) was not measured here.
ReCAM takes content words by stanza (section 3.2; REC-07).

Without stanza, sentences are cut by nltk's Punkt with abbreviations of ours, since its trained models need a download,
and tokens as in treebanks (do n't, Anna 's) by its NLTKWordTokenizer. The TweetTokenizer of pipeline.text.segment
keeps don't whole, which no treebank does, and a code in brackets is not kept whole here: in English they are editorial
("he saw [the] door").
"""

import json
import random
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.errors import BadInput, Missing
from pipeline.io.atomic import write_text
from pipeline.io.hashes import hash_file
from pipeline.io.lines import parse_object, read_lines, read_text
from pipeline.text import wordnet

UPOS = ("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ",
        "SYM", "VERB", "X")  # fmt: skip
ROUNDS, SEED = 5, 0  # of the perceptron; five is nltk's own number
_RECIPE = 1  # raise it when tokens, training or the word list change, so that signatures do


class Token(NamedTuple):
    """A word of a text."""

    text: str  # as it stands there: text[start:end]
    lemma: str  # in lower case
    upos: str
    start: int  # in characters
    end: int


Analyzer = Callable[[str], list[list[Token]]]  # the sentences of a text


class Tagger(NamedTuple):
    """What analyses text, and the name of all that its answers depend on."""

    name: str
    analyse: Analyzer


class Word(NamedTuple):
    """A row of a CoNLL-U file."""

    form: str
    lemma: str  # empty where the file has none
    upos: str


def load_tagger(models: Path | None = None, conllu: Path | None = None, cache: Path | None = None) -> Tagger:
    """The best tagger there is: stanza if the folder has models, else perceptron if a file is given, else counts.

    Raises:
        BadInput: the file is absent or broken; a file that is given is never passed over.
        Missing: there is no WordNet, which all but stanza need.
    """
    if models and (models / "resources.json").is_file():
        return load_stanza(models)
    return load_perceptron(conllu, cache) if conllu else load_counts()


def load_stanza(folder: Path) -> Tagger:
    """Stanza's English models in the folder of their resources.json, on the CPU; nothing is downloaded.

    Raises:
        Missing: there are no models, or not those of tokenize, pos and lemma.
    """
    listing, remedy = folder / "resources.json", f"stanza.download('en', model_dir='{folder}')"
    if not listing.is_file():
        raise Missing(f"stanza has no models in {folder}: {remedy}")
    from stanza import Pipeline

    try:
        run = Pipeline("en", dir=str(folder), processors="tokenize,pos,lemma", download_method=None, use_gpu=False,
                       verbose=False)  # fmt: skip
    except (OSError, ValueError, KeyError) as why:  # as it meets a listing without models
        raise Missing(f"stanza's models in {folder} are not complete ({why}): {remedy}") from why

    def analyse(text: str) -> list[list[Token]]:
        return [_convert_sentence(sentence, text) for sentence in run(text).sentences] if text.strip() else []

    return Tagger(f"stanza-{_RECIPE}/{version('stanza')}/{_hash_start(listing)}", analyse)


def _convert_sentence(sentence: Any, text: str) -> list[Token]:
    """Syntactic words (do, n't), as the others give them; a token whose words have no place in the text stays whole."""
    found = []
    for token in sentence.tokens:
        apart = all(word.start_char is not None for word in token.words)
        spans = [(w, w.start_char, w.end_char) for w in token.words] if apart else []
        for word, start, end in spans or [(token.words[0], token.start_char, token.end_char)]:
            found.append(Token(text[start:end], (word.lemma or word.text).lower(), word.upos or "X", start, end))
    return found


def load_perceptron(conllu: Path, cache: Path | None = None) -> Tagger:
    """Nltk's averaged perceptron, trained on the forms and parts of speech of a CoNLL-U file.

    Training takes 2 ms a sentence; the same file gives the same weights. Lemmas are the file's own of a form and part
    of speech, the most frequent; of other words WordNet's.

    Args:
        conllu: the file.
        cache: a folder in which what was learnt is kept as JSON, by the file's hash and nltk's version.

    Raises:
        BadInput: naming the row of the file, or the kept weights if they are broken.
        Missing: there is no WordNet.
    """
    known = wordnet.read_version()
    if not conllu.is_file():
        raise BadInput(f"{conllu}: there is no such file")
    made = f"perceptron-{_RECIPE}/nltk-{version('nltk')}/{_hash_start(conllu)}"
    kept = cache / f"{made.replace('/', '_')}.json" if cache else None
    if kept is None:
        learnt = _train(conllu)
    else:
        if not kept.is_file():
            _write_weights(kept, _train(conllu))
        learnt = _read_weights(kept)
    tag, lemmas = _load_perceptron_tags(learnt), learnt["lemmas"]

    def base(form: str, upos: str) -> str:
        return lemmas[upos].get(form) or _lemmatize(form, upos)

    return Tagger(f"{made}/wordnet-{known}", lambda text: _analyse(text, tag, base))


def _train(conllu: Path) -> dict[str, Any]:
    from nltk.tag.perceptron import PerceptronTagger

    table: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    found = []
    for sentence in read(conllu):
        found.append([(_straighten(word.form), word.upos) for word in sentence])
        for word in sentence:
            if word.lemma:
                table[word.upos, _straighten(word.form).lower()][word.lemma.lower()] += 1
    if not found:
        raise BadInput(f"{conllu}: the file holds no sentences")
    lemmas: dict[str, dict[str, str]] = {upos: {} for upos in UPOS}
    for (upos, form), counted in table.items():
        lemmas[upos][form] = counted.most_common(1)[0][0]
    model, before = PerceptronTagger(load=False), random.getstate()
    random.seed(SEED)  # nltk shuffles by the global generator
    try:
        model.train(found, nr_iter=ROUNDS)
    finally:
        random.setstate(before)
    weights, tags, classes = model.encode_json_obj()
    return {"weights": weights, "tags": tags, "classes": sorted(classes), "lemmas": lemmas}


def _load_perceptron_tags(learnt: dict[str, Any]) -> Callable[[Sequence[str]], list[str]]:
    from nltk.tag.perceptron import PerceptronTagger

    # not its own load and save: they refuse folders outside of nltk's data path
    model = PerceptronTagger.decode_json_obj([learnt[name] for name in ("weights", "tags", "classes")])
    return lambda words: [upos for _, upos in model.tag(words)]


def _hash_start(path: Path) -> str:
    return hash_file(path)[:12]


def _write_weights(path: Path, learnt: dict[str, Any]) -> None:
    write_text(path, json.dumps(learnt, ensure_ascii=False))  # unsorted: sums of weights go by their order


def _read_weights(path: Path) -> dict[str, Any]:
    learnt = parse_object(read_text(path), path)
    names = {"weights": dict, "tags": dict, "classes": list, "lemmas": dict}
    if lacking := [name for name, kind in names.items() if not isinstance(learnt.get(name), kind)]:
        raise BadInput(f"{path}: no {', '.join(lacking)} in it; remove the file, and it is made anew")
    return learnt


_ID = re.compile(r"[1-9]\d*|(\d+[-.]\d+)")


def read(conllu: Path) -> Iterator[list[Word]]:
    """Sentences of a CoNLL-U file; ranges of words (1-2) and empty nodes (1.1) are passed over.

    Raises:
        BadInput: naming file, line and field: a row is not of ten columns, words are not numbered from 1, a form is
            empty, or a part of speech is not universal.
    """
    sentence: list[Word] = []
    for number, line in read_lines(conllu):
        row = line.rstrip("\r\n")
        if row.startswith("#"):
            continue
        if row.strip():
            if word := _parse_row(row, len(sentence) + 1, f"{conllu}, line {number}"):
                sentence.append(word)
        elif sentence:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def _parse_row(row: str, place: int, where: str) -> Word | None:
    fields = row.split("\t")
    if len(fields) != 10:
        raise BadInput(f"{where}: expected the 10 columns of CoNLL-U, between tabs, found {len(fields)}: {row:.60}")
    number, form, lemma, upos = fields[:4]
    found = _ID.fullmatch(number)
    if not found or (not found[1] and number != str(place)):
        raise BadInput(f"{where}: field ID should be {place}, a range as {place}-{place + 1} or {place}.1, "
                       f"found {number!r:.60}")  # fmt: skip
    if found[1]:
        return None
    if not form.strip():
        raise BadInput(f"{where}: field FORM should be a word, found {form!r:.60}")
    if upos not in UPOS:
        raise BadInput(f"{where}: field UPOS should be one of {' '.join(UPOS)}, found {upos!r:.60}")
    return Word(form, "" if lemma == "_" != form else lemma, upos)


def load_counts() -> Tagger:
    """The part of speech that a word has most often in WordNet's sense counts; function words from a list of ours.

    A word with a capital inside a sentence is a name, unless WordNet has it as an adjective (British). Of what follows
    and goes before, only two things are asked: to is a particle before a verb, 's an auxiliary after a pronoun.

    Raises:
        Missing: there is no WordNet.
    """
    name = f"counts-{_RECIPE}/nltk-{version('nltk')}/wordnet-{wordnet.read_version()}"
    tag = _load_count_tags()
    return Tagger(name, lambda text: _analyse(text, tag, _lemmatize))


_LISTED = {
    "DET": "a an the this these those every each some any no all both another either neither",
    "ADP": """of in for on with at by from about as into like after over between against during through without under
        around before among since within along across behind beyond near off out up down per via toward towards upon
        despite except onto above below beside besides than amid amongst throughout inside outside unlike versus""",
    "PRON": """i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its
        itself we us our ours ourselves they them their theirs themselves that who whom whose which what whoever
        whatever there someone somebody something anyone anybody anything everyone everybody everything nobody nothing
        none oneself""",
    "AUX": """be am is are was were been being have has had do does did can could will would shall should may might
        must ought ca wo 'll 're 'm 've 'd""",
    "CCONJ": "and or but nor & plus",
    "SCONJ": "because if while although though unless until whether whereas",
    "PART": "not n't",
    "NUM": """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
        seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million
        billion""",
    "ADV": "when where why how",  # WordNet lacks them
    "INTJ": "oh ah hey hi hello wow yes yeah ok okay uh um ugh huh hmm bye",
    "SYM": "% # @",
    "PROPN": "US",
}
_CLOSED = {word: upos for upos, words in _LISTED.items() for word in words.split()}
_NUMBER = re.compile(r"[+-]?\d[\d.,:/]*")


def _load_count_tags() -> Callable[[Sequence[str]], list[str]]:
    """Tags of a sentence's words; what WordNet says of a word is asked once."""
    with wordnet.load_reader().open("cntlist.rev") as file:  # Lemma.count() looks through the file for each sense
        counted = {key: int(number) for key, _, number in map(str.split, file)}

    @lru_cache(1 << 16)
    def senses(word: str) -> tuple[str, bool]:
        return _find_most_counted(word, counted)

    def plain(word: str, inside: bool) -> str:
        if listed := _CLOSED.get(word) or _CLOSED.get(word.lower()):
            return listed
        if not any(letter.isalnum() for letter in word):
            return "SYM" if all(unicodedata.category(letter)[0] == "S" for letter in word) else "PUNCT"
        if _NUMBER.fullmatch(word):
            return "NUM"
        upos, name = senses(word)
        if word[0].isupper() and (inside or name or not upos):
            return "ADJ" if upos == "ADJ" and name else "PROPN"
        return upos or "NOUN"

    def tags(words: Sequence[str]) -> list[str]:
        shouting = not any(letter.islower() for word in words for letter in word)
        found: list[str] = []
        begun = False
        for i, word in enumerate(words):
            if word.lower() == "to":
                after = plain(words[i + 1], inside=True) if i + 1 < len(words) else ""
                found.append("PART" if after in {"VERB", "AUX"} else "ADP")
            elif word.lower() == "'s":
                found.append("AUX" if found and found[-1] in {"PRON", "ADV"} else "PART")
            else:
                found.append(plain(word, begun and not shouting))
            begun = begun or word[0].isalnum()
        return found

    return tags


def _find_most_counted(word: str, counted: dict[str, int]) -> tuple[str, bool]:
    """The most frequent part of speech, empty for a word that WordNet lacks, and if that is always written as a name.

    An adjective with a capital (Iraqi) is one whatever the counts: the texts that were counted have few.
    """
    best, upos, name = (-1, 0), "", False
    for one, pos in wordnet.POS.items():
        found = wordnet.load_reader().lemmas(wordnet.lemmatize(word, one).replace(" ", "_"), pos)
        weight = (sum(counted.get(sense.key(), 0) for sense in found), len(found))
        capital = bool(found) and all(sense.name()[0].isupper() for sense in found)
        if found and (weight > best or (one == "ADJ" and capital and word[0].isupper())):
            best, upos, name = weight, one, capital
    return upos, name


_CLITICS = {"n't": "not", "'ll": "will", "'re": "be", "'m": "be", "'ve": "have", "'d": "would", "ca": "can",
            "wo": "will", "'s": "be"}  # fmt: skip


def _lemmatize(form: str, upos: str) -> str:
    clitic = _CLITICS.get(form) if upos == "AUX" or form == "n't" else None
    return clitic or wordnet.lemmatize(form, upos)


def _analyse(
    text: str, tag: Callable[[Sequence[str]], list[str]], lemma: Callable[[str, str], str]
) -> list[list[Token]]:
    found = []
    for spans in split_sentences(text):
        words = [_straighten(text[start:end]) for start, end in spans]
        rows = zip(words, tag(words), spans, strict=True)
        found.append([Token(text[s:e], lemma(word.lower(), upos), upos, s, e) for word, upos, (s, e) in rows])
    return found


def _straighten(text: str) -> str:
    """Typewriter's apostrophes, as treebanks have them; the length stays."""
    return text.replace("’", "'")


_ABBREVIATIONS = """mr mrs ms messrs dr prof st jr sr gen col sgt lt capt cpl cmdr rev hon gov sen rep pres supt insp
    etc vs e.g i.e cf al a.m p.m u.s u.k u.n e.u d.c ph.d b.a m.a inc ltd co corp bros dept univ est approx jan feb mar
    apr jun jul aug sep sept oct nov dec mon tue wed thu fri ave blvd rd mt ft vol pp nos"""
_STARTERS = "the a an he she it they we you i this that these those but and in on at if when his her its their there"


@cache
def _load_splitters() -> tuple[Any, Any]:
    from nltk.tokenize import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

    known = PunktParameters()
    known.abbrev_types.update(_ABBREVIATIONS.split())
    known.sent_starters.update(_STARTERS.split())  # a sentence begins with them even behind an abbreviation
    return PunktSentenceTokenizer(known), NLTKWordTokenizer()


def split_sentences(text: str) -> list[list[tuple[int, int]]]:
    """Places of the tokens of each sentence, (start, end) in characters; a line's end also ends a sentence.

    Nothing but blanks is left out, and no token holds one; a text of blanks has no sentences.
    """
    cut, into = _load_splitters()
    found = []
    for line in re.finditer(r"[^\r\n]+", _straighten(text)):
        # all of them first: nltk gives its search five seconds, and would count what we do in between
        for start, end in list(cut.span_tokenize(line[0])):
            begin = line.start() + start
            found.append([(begin + s, begin + e) for s, e in into.span_tokenize(line[0][start:end])])
    return [spans for spans in found if spans]
