"""Compare a comment with what people wrote, where a match counts as much as the comment it is in."""

import json

import pipeline
from pipeline import sample

article = json.loads(sample.THREADS.read_text(encoding="utf-8").splitlines()[0])
texts = [comment["text"] for comment in article["comments"]]
grades = [comment["grades"] for comment in article["comments"]]  # of two raters, from 1 to 5
weights = [sum(pair) / 10 for pair in grades[1:]]

plain = pipeline.overlap(texts[:1], [texts[1:]], tokenize="jieba")
weighted = pipeline.overlap(texts[:1], [texts[1:]], weights=[weights], tokenize="jieba")
for metric, score in plain.items():
    print(f"{metric:8} plain {score:.3f}  weighted {weighted[metric]:.3f}")
