"""Language of short comments, by script: zh, en, ja, ko, or und for fewer than two letters.

For comments of a few characters the script decides better than n-gram models, which call "LOL" Sesotho and "2333333"
Afrikaans. The price, stated: any other language in Latin script is called `en`.
"""

import polars as pl

HAN_WEIGHT = 4  # one Han character says about as much as four Latin letters

_NOT_WORDS = r"\[[\p{L}\p{N}_]{1,12}\]|https?://\S+"  # [doge], [URL] and addresses say nothing of the language


def detect_language(column: str = "text") -> pl.Expr:
    """Language of a text column."""
    words = pl.col(column).str.replace_all(_NOT_WORDS, " ")
    han, latin = words.str.count_matches(r"\p{Han}"), words.str.count_matches(r"\p{Latin}")
    kana = words.str.count_matches(r"[\p{Hiragana}\p{Katakana}]")
    hangul = words.str.count_matches(r"\p{Hangul}")
    return (
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
