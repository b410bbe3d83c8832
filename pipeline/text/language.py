"""Language of short comments, by script: zh, en, ja, ko, or und for fewer than two letters.

For comments of a few characters the script decides better than n-gram models, which call "LOL" Sesotho and "2333333"
Afrikaans. The price, stated: any other language in Latin script is called `en`.
"""

import polars as pl

from pipeline.reasons import choose_first

HAN_WEIGHT = 4  # one Han character says about as much as four Latin letters
_NOT_WORDS = r"\[[\p{L}\p{N}_]{1,12}\]|https?://\S+"  # [doge], [URL] and addresses say nothing of the language


def detect_language(column: str = "text") -> pl.Expr:
    """Language of a text column."""
    return pl.col(column).map_batches(_detect, return_dtype=pl.String, is_elementwise=True)


def _detect(texts: pl.Series) -> pl.Series:
    """The languages, from letters counted once: in one expression each mention of a count counts again."""
    words = texts.str.replace_all(_NOT_WORDS, " ").to_frame("words")
    scripts = {"han": r"\p{Han}", "latin": r"\p{Latin}", "kana": r"[\p{Hiragana}\p{Katakana}]", "hangul": r"\p{Hangul}"}
    letters = words.select(pl.col("words").str.count_matches(kind).alias(name) for name, kind in scripts.items())
    han, latin, kana, hangul = map(pl.col, scripts)
    langs = {
        "und": han + latin + kana + hangul < 2,
        "ko": hangul > han + kana,
        "ja": kana * 4 > han + kana,
        "zh": (han + kana) * HAN_WEIGHT >= latin,
    }
    return letters.select(choose_first(langs).fill_null("en").alias(texts.name)).to_series()
