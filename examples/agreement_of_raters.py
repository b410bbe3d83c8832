"""Measure how far three raters agree, and what happens to kappa if one of them always gives the same label."""

import pipeline

LABELS = [  # of three raters for each comment; None where one did not answer
    ["subtext", "subtext", "subtext"],
    ["none", "none", "none"],
    ["subtext", "none", "subtext"],
    ["none", "none", None],
    ["none", "none", "none"],
    ["subtext", "subtext", "none"],
]

print("three raters:", pipeline.agreement(LABELS))
lazy = [[first, second, "none"] for first, second, _ in LABELS]
print("one is lazy: ", pipeline.agreement(lazy))
