"""Language of short comments, by script: zh, en, ja, ko, or und for fewer than two letters.

For comments of a few characters the script decides better than n-gram models, which call "LOL" Sesotho and "2333333"
Afrikaans. The price, stated: any other language in Latin script is called `en`.
"""

import polars as pl

HAN_WEIGHT = 4  # one Han character says about as much as four Latin letters
_NOT_WORDS = r"\[[\p{L}\p{N}_]{1,12}\]|https?://\S+"  # [doge], [URL] and addresses say nothing of the language


def detect_language(column: str = "text") -> pl.Expr:
    """Language of a text column."""
    return pl.col(column).map_batches(_detect, return_dtype=pl.String, is_elementwise=True)


def _detect(texts: pl.Series) -> pl.Series:
    """The languages, from letters counted once: in one expression each mention of a count counts again."""
    words = texts.str.replace_all(_NOT_WORDS, " ").to_frame("words")
    letters = words.select(
        han=pl.col("words").str.count_matches(r"\p{Han}"),
        latin=pl.col("words").str.count_matches(r"\p{Latin}"),
        kana=pl.col("words").str.count_matches(r"[\p{Hiragana}\p{Katakana}]"),
        hangul=pl.col("words").str.count_matches(r"\p{Hangul}"),
    )
    han, latin, kana, hangul = map(pl.col, letters.columns)
    lang = (
        pl.when(han + latin + kana + hangul < 2)
        .then(pl.lit("und"))
        .when(hangul > han + kana)
        .then(pl.lit("ko"))
        .when(kana * 4 > han + kana)
        .then(pl.lit("ja"))
        .when((han + kana) * HAN_WEIGHT >= latin)
        .then(pl.lit("zh"))
        .otherwise(pl.lit("en"))
    )
    return letters.select(lang.alias(texts.name)).to_series()
