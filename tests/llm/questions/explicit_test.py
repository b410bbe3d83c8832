"""Reading the explicit form of a sentence from answers (IMP-15 to IMP-17)."""

import json
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.llm import prompt
from pipeline.llm.questions import explicit
from pipeline.llm.questions.answer import has_han

HINT = "Some of us get up at five."
SAID = "Please turn the music down."
ZH_HINT = "有些人明早五点就要起床。"
ZH_SAID = "请把音乐关小一点。"


@given(st.text())
def test_sentence_is_read_back_from_stored_messages(sentence: str) -> None:
    """`parse_implicit` returns the very sentence that the stored messages ask about."""
    assert explicit.parse_implicit(json.dumps(prompt.build_messages(sentence, "explicit_zh"))) == sentence


@pytest.mark.parametrize(
    "response",
    [
        SAID, f"  {SAID}\n", f"Explicit: {SAID}", f"Explicit version: {SAID}", f"explicit sentence : {SAID}",
        f"Explicit Response:\n{SAID}", f"Rewritten sentence: {SAID}", f"Answer: {SAID}", f"B: {SAID}", f"B：{SAID}",
        f'"{SAID}"', f"'{SAID}'", f"“{SAID}”", f"‘{SAID}’", f'Explicit version: "{SAID}"',
        f'"Explicit version: {SAID}"', f"An explicit version: {SAID}", f"B: An explicit version: {SAID}",
        f"<<<Explicit Response>>>: {SAID}", f"<<<Explicit Response>>> {SAID}", f"<<<{SAID}>>>",
        f'"<<<Explicit Response>>>:\n{SAID}"', f"**Explicit version:** {SAID}", f"**Answer**: {SAID}",
        f"_Explicit version: {SAID}_",
        # what a model thinks before it answers
        f"<think>They are tired.</think>{SAID}", f"<think>\nOkay, so...\n\nExplicit: a request?\n</think>\n\n{SAID}",
        f"<think></think>Explicit: <think>More.</think> {SAID}", f"So this is a request.\n</think>\n\n{SAID}",
        # a code fence and Markdown's emphasis around all of the sentence
        f"```\n{SAID}\n```", f"```text\n{SAID}\n```", f"```{SAID}```", f"**{SAID}**", f"*{SAID}*", f"***{SAID}***",
        f"__{SAID}__", f'**"{SAID}"**', f'"*{SAID}*"',
    ],
)  # fmt: skip
def test_labels_and_quotation_marks_go(response: str) -> None:
    """What stands before and around the sentence is no part of it (IMP-16)."""
    assert explicit.parse(response, HINT, "explicit_en") == (SAID, None)


@pytest.mark.parametrize(
    "response",
    [
        "{}", "改写：{}", "改写后的句子：「{}」", "直白: “{}”", "好的，改写如下：\n“{}”", "好的，改写如下：“{}”",
        "当然可以！以下是改写后的句子：\n\n“{}”", "改写后的句子如下：“{}”", "这句话可以改写为：“{}”",
        "没问题。更直白的说法是：“{}”", "好的。\n\n改写结果：“{}”", "**改写如下：**\n“{}”",
    ],
)  # fmt: skip
def test_chinese_labels_and_lead_ins_go(response: str) -> None:
    """The same holds for Chinese (X-07)."""
    assert explicit.parse(response.format(ZH_SAID), ZH_HINT, "explicit_zh") == (ZH_SAID, None)


@pytest.mark.parametrize(
    "sentence",
    [
        # only a pair of quotation marks around the whole is taken off
        'He said "no"', '"Stop" is not what I meant by "later"', "That house is my parents'", "'Tis my dogs' bowl",
        "我说的“随便”就是“不去”", "An answer: there is none", "Able: that is what he is not",
        # marks around a part of the sentence are the sentence's
        "I *never* said **that**.", "*Now* you say *never*", "**Now** or **never**", "* is the sign I mean *",
        "Call the function __init__ by its name", "Type ``` before it and ``` after",
        # a colon after words that do not announce a rewriting, a friendly word before it too
        "Here is the sentence the judge gave him: ten years.",
        "Here is my final word on the old version: it was better.",
        "Here's the way to the station: left, then left again.", "There is no polite way to say this: you are fired.",
        "Sure: I will come.", "Sure! I will come.", "Of course, one thing is missing: money.",
        "The plain answer: nobody wants to go.", "The explicit lyrics are the problem: my son is six.",
        "Please rewrite this: it is full of mistakes.", "Here is a clear answer: no.", "Here is the explicit version",
        "Sure! Here is a list of what I hate:\nqueues.", "好的，我来说一句：这菜太咸了。",
        "他改写的结局是这样：谁也没死。", "可以，只有一个条件：你先道歉。", "剧本改写如下：他没有死。",
        "以下是我的要求：每天按时回家。", "好的改写需要时间：别催我。",
        # what stands at the beginning is no note, and a word that only begins like "note" is no label
        "Note that the door is locked.", "Note: I am not your servant.", "I want an explanation: where were you?",
        "I left you a message.\nNotebooks are on the desk.", "解释：他要睡觉。", "我很担心你。\n注意安全。",
        "我不想听。\n解释没有用。",
        # declining is what many implicit sentences mean
        "I can't come to your party.", "I can't help with moving on Saturday.",
        "I can't help with this move, my back hurts.", "I can't help it.", "I cannot assist at the wedding.",
        "I cannot fulfil my promise to you.", "I can't provide for a second child.",
        "I'm sorry, but I can't help laughing at your hat.", "I won't process another late invoice for you.",
        "As an AI researcher I am tired of this question.", "I can't do that on Saturdays.", "I won't do that.",
        "I'm not able to help with the garden.", "I can't write content for your shop every day.",
        "I can't write about the violence I saw.", "I can't write that sentence on the board.",
        "I'm not able to write long sentences.", "很抱歉，我无法完成作业。", "我无法完成这个任务。",
        "很抱歉，我无法完成你交给我的画。", "我不能提供住处给你。", "对不起，我不能和你一起去。",
        "抱歉，我不能回答得更清楚了。", "我不能改写历史。", "作为人工智能专业的学生，我很累。",
    ],
)  # fmt: skip
def test_plain_sentences_stay(sentence: str) -> None:
    """A sentence that holds what looks like a frame, a lead-in, a note or a refusal is kept to the letter."""
    assert explicit.parse(sentence, ZH_HINT if has_han(sentence) else HINT, "explicit_en") == (sentence, None)


@pytest.mark.parametrize(
    "lead",
    [
        "Sure! Here is the explicit version:\n\n", "Sure, here's an explicit version of the sentence: ",
        "Here's a more direct way to say it:\n", "Here’s a more direct way to say it: ",
        "Certainly! Here is the rewritten sentence: ", "Of course. A more explicit and direct wording is: ",
        "Okay - this is a clearer rewrite:\n", "**Here is the explicit version:**\n", "Here is the sentence:\n",
        "Here is a plain version of your sentence:\n",
        "Here is the sentence, rewritten to say outright what it means:\n", "The sentence can be rewritten as: ",
        "My rewrite: ",
    ],
)  # fmt: skip
@pytest.mark.parametrize("frame", ["{}", '"{}"', "**{}**", "```text\n{}\n```", "Explicit: {}"])
def test_lead_ins_go(lead: str, frame: str) -> None:
    """Chatter that leads to the sentence goes, whatever stands around the sentence itself."""
    assert explicit.parse(lead + frame.format(SAID), HINT, "explicit_en") == (SAID, None)


@pytest.mark.parametrize(
    "note",
    [
        "\n\nNote: this keeps the tone of the original.", "\nNote: this keeps the tone.\n\nDo you want another one?",
        "\n\n(Note: this keeps the tone.)", "\n\n(Note that this keeps the tone.)",
        "\n\nNote that this keeps the tone.", "\n\n**Explanation:** they want to sleep.\n\n- five is early",
        "\n\n*Explanation*: they want to sleep.", "\n\n注：保留了原来的语气。", "\n\n（注：保留了原来的语气。）",
        "\n\n说明：他们要睡觉。", "\n**解释：**他们要睡觉。",
    ],
)  # fmt: skip
@pytest.mark.parametrize("frame", ["{}", '"{}"', "**{}**", "```\n{}\n```", "Here is the rewritten sentence:\n\n{}"])
def test_notes_go(note: str, frame: str) -> None:
    """Paragraphs after the sentence that comment on it are no part of it."""
    assert explicit.parse(frame.format(SAID) + note, HINT, "explicit_en") == (SAID, None)


@pytest.mark.parametrize(
    "response",
    [
        "I'm sorry, but I can't assist with that request.", "I’m sorry, but I can’t help with that.",
        "Sorry, I cannot help with this request.", "I cannot comply.",
        "I can't rewrite this sentence because it insults people.", "I'm unable to help you with that.",
        "As an AI language model, I do not have opinions.", "as an AI, I would rather not",
        "I'm really sorry, but I can't help with that.", "I am so sorry but I cannot rewrite this sentence.",
        "I apologize, but I can't fulfill that request.", "I can't do that.", "I'm sorry, but I can't do that.",
        "I'm not able to help with that", "I am not able to assist with this request.",
        "I cannot create hateful content.", "I can't write content that promotes hatred.",
        "I cannot rewrite offensive or discriminatory statements.", "I can't generate that kind of content.",
        "I can't help with creating harmful content.", "Sorry! I can't do that.", "**I can't do that.**",
        "<think>This is hateful.</think>I'm not able to help with that.", "抱歉，我无法协助这个请求。",
        "很抱歉，我无法完成", "很抱歉，我无法完成这个请求。", "非常抱歉，无法完成该任务。",
        "我无法生成带有歧视的内容。", "对不起，我不能改写含有仇恨的言论。", "很抱歉，我不能改写这句话。",
        "对不起，我无法提供相关内容。", "作为一个人工智能语言模型，我没有看法。", "作为AI，我不便评论。",
    ],
)  # fmt: skip
def test_refusals(response: str) -> None:
    """An answer in which the model declines the task is a refusal, in English and in Chinese."""
    assert explicit.parse(response, ZH_HINT if response[0] >= "一" else HINT, "explicit_en") == (None, "refusal")


@given(
    st.sampled_from(["", "Sorry, ", "Sorry, but ", "I'm really sorry, but ", "Unfortunately, "]),
    st.sampled_from(["I can't", "I cannot", "I can’t", "I won't", "I'm unable to", "I am not able to"]),
    st.sampled_from(["help", "help you", "create", "write", "rewrite", "do", "provide", "process", "generate"]),
    st.sampled_from(["move", "the garden", "it all again", "two songs a day", "anything at your age", "your taxes"]),
    st.sampled_from([".", "!", ", my back hurts.", " before Sunday."]),
)
def test_everyday_inability_is_no_refusal(sorry: str, cannot: str, verb: str, what: str, end: str) -> None:
    """Being unable to do an everyday thing is a meaning, however politely it is said."""
    sentence = f"{sorry}{cannot} {verb} {what}{end}"
    assert explicit.parse(sentence, HINT, "explicit_en") == (sentence, None)


@given(
    st.sampled_from(["", "很抱歉，", "对不起，"]),
    st.sampled_from(["我不能", "我无法"]),
    st.sampled_from(["完成", "提供", "改写", "协助", "处理", "生成"]),
    st.sampled_from(["这幅画", "你的人生", "两份早饭", "老板的账", "一首新歌"]),
)
def test_everyday_inability_in_chinese_is_no_refusal(sorry: str, cannot: str, verb: str, what: str) -> None:
    """The same holds for Chinese (X-07)."""
    sentence = f"{sorry}{cannot}{verb}{what}。"
    assert explicit.parse(sentence, ZH_HINT, "explicit_zh") == (sentence, None)


@pytest.mark.parametrize(
    ("response", "implicit", "reason"),
    [
        *((nothing, HINT, "empty") for nothing in ("", " \n\t", '""', "<<<Explicit Response>>>", "<<<>>>", "```\n```")),
        *((lead, HINT, "empty") for lead in ("Explicit version:", "Sure! Here is the explicit version:")),
        *((thought, HINT, "empty") for thought in (f"<think>{SAID}", f"<think>{SAID}</think>")),
        *((nothing, ZH_HINT, "empty") for nothing in ("“”", "好的，改写如下：")),
        (f"Here is the rewritten sentence:\n**{HINT}**", HINT, "echo"),
        (f"<think>{'So. ' * 200}</think>{SAID} " * 16, HINT, "too_long"), (HINT, HINT, "echo"),
        (f'Explicit: "{HINT.upper()}"', HINT, "echo"), (HINT, f"  {HINT} ", "echo"), (ZH_HINT, ZH_HINT, "echo"),
        ("请把音乐关小一点。", HINT, "other_language"), (SAID, ZH_HINT, "other_language"),
        (f"{SAID} " * 16, HINT, "too_long"),  # 447 characters for 26
    ],
)  # fmt: skip
def test_answers_that_give_no_sentence(response: str, implicit: str, reason: str) -> None:
    """An empty answer, the sentence itself and an answer in another language are left out, each with its reason."""
    assert explicit.parse(response, implicit, "explicit_en") == (None, reason)


@pytest.mark.parametrize(
    ("response", "implicit", "length"),
    [("a" * 400, "b", 400), ("a" * 401, "b", 0), ("a" * 480, "b" * 120, 480), ("a" * 481, "b" * 120, 0)],
)
def test_chatter_is_both_long_and_longer(response: str, implicit: str, length: int) -> None:
    """More than 400 characters and more than four times the sentence is chatter; either alone is not."""
    parsed = explicit.parse(response, implicit, "explicit_en")
    assert (len(parsed.explicit or ""), parsed.reason) == (length, None if length else "too_long")


ASKED = "Are you coming to the lake?"
ANSWERED = "My tent still leaks - badly."
DIALOGUE = f"- {ASKED} - {ANSWERED}"
TOLD = "No, I am not coming."


@pytest.mark.parametrize(
    "response",
    [
        TOLD, f"- {TOLD}", f"B: {TOLD}", f'"{TOLD}"', f"An explicit version: {TOLD}",
        f"<<<Explicit Response>>>: {TOLD}", f"- {ASKED} - {TOLD}", f"- {ASKED}\n- {TOLD}",
        f"<think>They will not come.</think>- {ASKED} - {TOLD}",
        f"Sure! Here is the explicit version:\n- {ASKED} - {TOLD}\n\nNote: the tent is an excuse.",
        f"```text\n- {ASKED} - **{TOLD}**\n```", f"{ASKED} {TOLD}", f"{ASKED.upper()} - B: {TOLD}",
        f"- Would you join us there? - {TOLD}",  # the question in other words
        f"Would you join us “there?” - {TOLD}",
    ],
)  # fmt: skip
def test_an_answer_is_joined_with_its_question(response: str) -> None:
    """For a dialogue the explicit form is the same question and the explicit answer, however it was given (IMP-17)."""
    assert explicit.parse(response, DIALOGUE, "dialogue_en") == (f"- {ASKED} - {TOLD}", None)


@pytest.mark.parametrize(
    ("implicit", "question"),
    [
        ("- 你去湖边吗？ - 我的帐篷还漏水。", "你去湖边吗？"),
        ("- A well-known place - really? - You tell me.", "A well-known place - really?"),
        ('- "Is it late?" - The owls are up.', '"Is it late?"'),
        ("- Nice evening - My tent leaks.", "Nice evening"),
        ("- Wait... what? - Nothing.", "Wait... what?"),
    ],
)
def test_where_a_question_ends(implicit: str, question: str) -> None:
    """The question ends at the first dash after the end of a sentence, else at the first dash."""
    answer = "我不去。" if implicit[2] == "你" else TOLD
    assert explicit.parse(answer, implicit, "dialogue_zh") == (f"- {question} - {answer}", None)


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("", "empty"), (f"- {ASKED} -", "empty"), (ASKED, "empty"), (ANSWERED, "echo"), (DIALOGUE.upper(), "echo"),
        ("我不去。", "other_language"), ("I'm sorry, but I can't assist with that request.", "refusal"),
        (f"{TOLD} " * 21, "too_long"),
    ],
)  # fmt: skip
def test_dialogues_without_an_answer(response: str, reason: str) -> None:
    """A question alone is no answer; the reasons are those of other prompts, about the answer alone."""
    assert explicit.parse(response, DIALOGUE, "dialogue_en") == (None, reason)


def test_a_text_that_is_no_dialogue() -> None:
    """A dialogue prompt on a plain sentence gives a plain sentence; other prompts leave dashes alone."""
    assert explicit.parse(SAID, HINT, "dialogue_en") == (SAID, None)
    assert explicit.parse(TOLD, DIALOGUE, "explicit_en") == (TOLD, None)


FRAMES = [
    "Explicit: {}", '"{}"', "**{}**", "```text\n{}\n```", "Sure! Here is the explicit version:\n{}",
    "{}\n\n(Note: ok)",
]  # fmt: skip
ANSWERS = st.one_of(
    st.text(),
    st.lists(st.sampled_from([*FRAMES, "<think>{}", "{}</think>", "{}\n"]), max_size=6).map(
        lambda frames: reduce(lambda text, frame: frame.format(text), frames, "")
    ),
)


@given(ANSWERS, st.one_of(st.text(), st.just(DIALOGUE)), st.sampled_from(["explicit_en", "dialogue_zh"]))
def test_parse_gives_a_sentence_or_a_reason(response: str, implicit: str, name: str) -> None:
    """Any answer at all becomes either a stripped sentence that is not empty, or one of five reasons."""
    parsed = explicit.parse(response, implicit, name)
    if parsed.explicit is None:
        assert parsed.reason in {"empty", "refusal", "echo", "other_language", "too_long"}
    else:
        assert parsed.reason is None
        assert parsed.explicit
        assert parsed.explicit == parsed.explicit.strip()
        assert implicit != DIALOGUE or name == "explicit_en" or parsed.explicit.startswith(f"- {ASKED} - ")
