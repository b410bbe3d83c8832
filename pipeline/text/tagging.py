"""Split English text into sentences and tokens, and tag parts of speech and lemmas.

There are three taggers, each named in its signature: stanza's models, as ReCAM uses (section 3.2; REC-07), nltk's
perceptron trained on the user's CoNLL-U file, and WordNet's sense counts. Accuracy of upos on the test part of UD
English EWT (gold tokens): the perceptron .939, the counts .871. Without stanza, nltk's Punkt splits sentences with an
abbreviation list of ours, and its NLTKWordTokenizer splits tokens as treebanks do (do n't, Anna 's).
"""

import json
import random
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.errors import BadInput
from pipeline.io.atomic import write_text
from pipeline.io.hashes import hash_file
from pipeline.io.lines import parse_object, read_text
from pipeline.text import wordnet
from pipeline.text.segment import load_pipeline
from pipeline.text.trees import UPOS, read_sentences

ROUNDS, SEED = 5, 0  # of the perceptron; five is nltk's own number
_RECIPE = 1  # increase it when tokens, training or the word list change, so that signatures change too


class Token(NamedTuple):
    """A word of a text."""

    text: str  # as in the source: text[start:end]
    lemma: str  # in lower case
    upos: str
    start: int  # in characters
    end: int


Analyzer = Callable[[str], list[list[Token]]]  # the sentences of a text


class Tagger(NamedTuple):
    """A function that analyses text, and a name for all that its results depend on."""

    name: str
    analyse: Analyzer


def load_tagger(models: Path | None = None, conllu: Path | None = None, cache: Path | None = None) -> Tagger:
    """Load the best available tagger: stanza if its models exist, else the perceptron if a file is given, else counts.

    All but stanza need WordNet, which is Missing where it is not installed.
    """
    if models and (models / "resources.json").is_file():
        return load_stanza(models)
    return load_perceptron(conllu, cache) if conllu else load_counts()


def load_stanza(folder: Path) -> Tagger:
    """Load stanza's English models from the folder of their resources.json."""
    run = load_pipeline(folder, "en", "tokenize,pos,lemma")

    def analyse(text: str) -> list[list[Token]]:
        return [_convert_sentence(sentence, text) for sentence in run(text).sentences] if text.strip() else []

    return Tagger(f"stanza-{_RECIPE}/{version('stanza')}/{hash_file(folder / 'resources.json')[:12]}", analyse)


def _convert_sentence(sentence: Any, text: str) -> list[Token]:
    """Convert syntactic words (do, n't); a token whose words have no offsets in the text stays whole."""
    tokens = []
    for token in sentence.tokens:
        apart = all(word.start_char is not None for word in token.words)
        spans = [(w, w.start_char, w.end_char) for w in token.words] if apart else []
        for word, start, end in spans or [(token.words[0], token.start_char, token.end_char)]:
            tokens.append(Token(text[start:end], (word.lemma or word.text).lower(), word.upos or "X", start, end))
    return tokens


def load_perceptron(conllu: Path, cache: Path | None = None) -> Tagger:
    """Train nltk's averaged perceptron on the forms and parts of speech of a CoNLL-U file, or load it from the cache.

    Training takes 2 ms per sentence; the same file gives the same weights. A lemma is the most frequent one of the form
    and part of speech in the file; for other words it is WordNet's. The cache is a folder that holds the weights as
    JSON, by the file's hash and nltk's version. A broken row or broken weights are BadInput.
    """
    wordnet_version = wordnet.read_version()
    if not conllu.is_file():
        raise BadInput(f"{conllu}: there is no such file")
    name = f"perceptron-{_RECIPE}/nltk-{version('nltk')}/{hash_file(conllu)[:12]}"
    weights_file = cache / f"{name.replace('/', '_')}.json" if cache else None
    if weights_file and not weights_file.is_file():  # unsorted: sums of weights go by their order
        write_text(weights_file, json.dumps(_train(conllu), ensure_ascii=False))
    weights = parse_object(read_text(weights_file), weights_file) if weights_file else _train(conllu)
    types = {"weights": dict, "tags": dict, "classes": list, "lemmas": dict}
    if lacking := [part for part, kind in types.items() if not isinstance(weights.get(part), kind)]:
        raise BadInput(f"{weights_file}: no {', '.join(lacking)} in it; remove the file, and it is written again")
    analyse = partial(_analyse, tag=_load_perceptron_tags(weights), lemmas=weights["lemmas"])
    return Tagger(f"{name}/wordnet-{wordnet_version}", analyse)


def _train(conllu: Path) -> dict[str, Any]:
    from nltk.tag.perceptron import PerceptronTagger

    table: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    sentences = []
    for words, _ in read_sentences(conllu):
        sentences.append([(_straighten(word.form), word.upos) for word in words])
        for word in words:
            if word.lemma:
                table[word.upos, _straighten(word.form).lower()][word.lemma.lower()] += 1
    if not sentences:
        raise BadInput(f"{conllu}: the file holds no sentences")
    lemmas: dict[str, dict[str, str]] = {upos: {} for upos in UPOS}
    for (upos, form), counts in table.items():
        lemmas[upos][form] = counts.most_common(1)[0][0]
    model, before = PerceptronTagger(load=False), random.getstate()
    random.seed(SEED)  # nltk shuffles by the global generator
    try:
        model.train(sentences, nr_iter=ROUNDS)
    finally:
        random.setstate(before)
    weights, tags, classes = model.encode_json_obj()
    return {"weights": weights, "tags": tags, "classes": sorted(classes), "lemmas": lemmas}


def _load_perceptron_tags(weights: dict[str, Any]) -> Callable[[Sequence[str]], list[str]]:
    from nltk.tag.perceptron import PerceptronTagger

    # not its own load and save: they refuse folders outside of nltk's data path
    model = PerceptronTagger.decode_json_obj([weights[name] for name in ("weights", "tags", "classes")])
    return lambda words: [upos for _, upos in model.tag(words)]


def load_counts() -> Tagger:
    """Load the tagger by WordNet's sense counts: a word's most frequent part of speech; function words are listed.

    A capitalized word inside a sentence is a name, unless WordNet has it as an adjective (British). Context decides in
    two cases only: `to` is a particle before a verb, and `'s` an auxiliary after a pronoun.
    """
    name = f"counts-{_RECIPE}/nltk-{version('nltk')}/wordnet-{wordnet.read_version()}"
    return Tagger(name, partial(_analyse, tag=_load_count_tags(), lemmas={}))


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
    with wordnet.load_reader().open("cntlist.rev") as file:  # Lemma.count() looks through the file for each sense
        counts = {key: int(number) for key, _, number in map(str.split, file)}
    find_pos = lru_cache(1 << 16)(partial(_find_most_counted, counts=counts))

    def tag_word(word: str, is_inside: bool) -> str:
        if closed := _CLOSED.get(word) or _CLOSED.get(word.lower()):
            return closed
        if not any(letter.isalnum() for letter in word):
            return "SYM" if all(unicodedata.category(letter)[0] == "S" for letter in word) else "PUNCT"
        if _NUMBER.fullmatch(word):
            return "NUM"
        upos, is_name = find_pos(word)
        if word[0].isupper() and (is_inside or is_name or not upos):
            return "ADJ" if upos == "ADJ" and is_name else "PROPN"
        return upos or "NOUN"

    def tag_words(words: Sequence[str]) -> list[str]:
        is_upper = not any(letter.islower() for word in words for letter in word)
        tags: list[str] = []
        has_begun = False
        for i, word in enumerate(words):
            if word.lower() == "to":
                following = tag_word(words[i + 1], is_inside=True) if i + 1 < len(words) else ""
                tags.append("PART" if following in {"VERB", "AUX"} else "ADP")
            elif word.lower() == "'s":
                tags.append("AUX" if tags and tags[-1] in {"PRON", "ADV"} else "PART")
            else:
                tags.append(tag_word(word, has_begun and not is_upper))
            has_begun = has_begun or word[0].isalnum()
        return tags

    return tag_words


def _find_most_counted(word: str, counts: dict[str, int]) -> tuple[str, bool]:
    """Return a word's most frequent part of speech (empty if not in WordNet) and whether it is always capitalized."""
    best, best_upos, is_name = (-1, 0), "", False
    for candidate, pos in wordnet.POS.items():
        senses = wordnet.load_reader().lemmas(wordnet.lemmatize(word, candidate).replace(" ", "_"), pos)
        weight = (sum(counts.get(sense.key(), 0) for sense in senses), len(senses))
        is_capital = bool(senses) and all(sense.name()[0].isupper() for sense in senses)
        # a capitalized adjective (Iraqi) is one whatever the counts, since the counted texts have few of them
        if senses and (weight > best or (candidate == "ADJ" and is_capital and word[0].isupper())):
            best, best_upos, is_name = weight, candidate, is_capital
    return best_upos, is_name


_CLITICS = {"n't": "not", "'ll": "will", "'re": "be", "'m": "be", "'ve": "have", "'d": "would", "ca": "can",
            "wo": "will", "'s": "be"}  # fmt: skip


def _analyse(
    text: str, tag: Callable[[Sequence[str]], list[str]], lemmas: Mapping[str, Mapping[str, str]]
) -> list[list[Token]]:
    """Split and tag a text; lemmas that were learnt, by part of speech, go before WordNet's."""

    def lemmatize(form: str, upos: str) -> str:
        clitic = _CLITICS.get(form) if upos == "AUX" or form == "n't" else None
        return lemmas.get(upos, {}).get(form) or clitic or wordnet.lemmatize(form, upos)

    sentences = []
    for spans in split_sentences(text):
        words = [_straighten(text[start:end]) for start, end in spans]
        rows = zip(words, tag(words), spans, strict=True)
        sentences.append([Token(text[s:e], lemmatize(word.lower(), upos), upos, s, e) for word, upos, (s, e) in rows])
    return sentences


def _straighten(text: str) -> str:
    """Replace curly apostrophes by straight ones, as in treebanks; the length stays."""
    return text.replace("’", "'")


_ABBREVIATIONS = """mr mrs ms messrs dr prof st jr sr gen col sgt lt capt cpl cmdr rev hon gov sen rep pres supt insp
    etc vs e.g i.e cf al a.m p.m u.s u.k u.n e.u d.c ph.d b.a m.a inc ltd co corp bros dept univ est approx jan feb mar
    apr jun jul aug sep sept oct nov dec mon tue wed thu fri ave blvd rd mt ft vol pp nos"""
_STARTERS = "the a an he she it they we you i this that these those but and in on at if when his her its their there"


@cache
def _load_splitters() -> tuple[Any, Any]:
    from nltk.tokenize import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

    parameters = PunktParameters()
    parameters.abbrev_types.update(_ABBREVIATIONS.split())
    parameters.sent_starters.update(_STARTERS.split())  # a sentence begins with them even behind an abbreviation
    return PunktSentenceTokenizer(parameters), NLTKWordTokenizer()


def split_sentences(text: str) -> list[list[tuple[int, int]]]:
    """Return the tokens of each sentence as (start, end) in characters; the end of a line ends a sentence.

    Only whitespace is outside of tokens, and no token contains any; a blank text has no sentences.
    """
    splitter, tokenizer = _load_splitters()
    sentences = []
    for line in re.finditer(r"[^\r\n]+", _straighten(text)):
        # list() first: nltk limits its search to five seconds, and would count the time of our loop body
        for start, end in list(splitter.span_tokenize(line[0])):
            begin = line.start() + start
            sentences.append([(begin + s, begin + e) for s, e in tokenizer.span_tokenize(line[0][start:end])])
    return [spans for spans in sentences if spans]
