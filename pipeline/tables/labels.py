"""What people say of comments: tasks, labels, annotations and the released rows."""

import dataframely as dy
import polars as pl

from pipeline.tables.columns import HASH, PERSONAL, SOURCE, rule, source_column, time_column


class LabelTasks(dy.Schema):
    """Comments for raters. Raters see only text and context; this table links the task to its comment."""

    project = dy.String(regex=SOURCE, description="Labelling project")
    task_id = dy.String(regex=HASH, description="Hash of project, context and text")
    row_id = dy.String(regex="^[0-9a-f]{16}$", description="Random id under which the row is published (CSD-08)")
    source = source_column()
    day = dy.Date(description="Day of the comment")
    thread_id = dy.String(min_length=1, description="comments.thread_id")
    comment_id = dy.String(min_length=1, description="comments.comment_id")
    lang = dy.String(description="zh, en, …")
    context = dy.String(nullable=True, description="Text or subject that the comment answers")
    text = dy.String(min_length=1, description="The comment")
    schema_version = dy.String(min_length=1, description="Hash of the fields and values of the form")


class Labels(dy.Schema):
    """Answers of each rater to each task, with one row for each field (CSD-09 to CSD-15)."""

    project = dy.String(regex=SOURCE, description="Labelling project")
    task_id = dy.String(regex=HASH, description="label_tasks.task_id")
    round = dy.Int64(min=1, max=2, description="1, or 2 for a task that is labelled again")
    stage = dy.Int64(min=1, max=2, description="1: one of three raters; 2: the adjudicator")
    rater_id = dy.String(min_length=1, description="Pseudonym of the rater", metadata=PERSONAL)
    field = dy.String(min_length=1, description="Kind of information, or an optional note")
    value = dy.String(min_length=1, description="One of the values of the field; text for a note")
    labelled_at = time_column("Time of the answer, if the tool records it")
    tool = dy.String(min_length=1, description="Tool of the label: label_studio, file, simulated, …")


class Annotations(dy.Schema):
    """Result of each field of each task after the two stages (CSD-15): a value, or the reason for its absence."""

    project = dy.String(regex=SOURCE, description="Labelling project")
    task_id = dy.String(regex=HASH, description="label_tasks.task_id")
    field = dy.String(min_length=1, description="Kind of information")
    value = dy.String(nullable=True, description="Final value; null if open or deleted")
    state = dy.String(regex="^(open|adopted|adjudicated|deleted)$", description="State of the field")
    reason = dy.String(
        description="Reason for the state: unanimous, adjudicator, too_few_raters, all_different, specious_twice, …"
    )
    round = dy.Int64(min=1, max=2, description="Round of the decision, or the current round")
    pattern = dy.String(
        regex="^(same|partly|different|none)$", description="Agreement of the three labels of the round"
    )

    settled_means_a_value = rule(pl.col("value").is_not_null() == pl.col("state").is_in(["adopted", "adjudicated"]))


class AnnotatedComments(dy.Schema):
    """The published data set: labelled comments without platform ids, by release (CSD-08)."""

    release = dy.String(regex=SOURCE, description="Name of the release")
    row_id = dy.String(regex="^[0-9a-f]{16}$", description="Random id without a link to the platform")
    source = source_column()
    lang = dy.String(description="zh, en, …")
    context = dy.String(nullable=True, description="Text or subject that the comment answers")
    text = dy.String(min_length=1, description="The comment")
    is_subtext = dy.Bool(nullable=True, description="Whether subtext is 1; null if raters were unsure")
    subtext = dy.String(nullable=True, regex="^(1|0|-1)$", description="Subtext: 1 yes, -1 no, 0 unsure")
    sarcasm = dy.String(nullable=True, regex="^(1|0|-1)$", description="Sarcasm: 1 yes, -1 no, 0 unsure")
    metaphor = dy.String(nullable=True, regex="^(1|0|-1)$", description="Metaphor: 1 yes, -1 no, 0 unsure")
    exaggeration = dy.String(nullable=True, regex="^(1|0|-1)$", description="Exaggeration: 1 yes, -1 no, 0 unsure")
    homophonic = dy.String(nullable=True, regex="^(1|0|-1)$", description="Play on sound: 1 yes, -1 no, 0 unsure")
    sentiment = dy.String(nullable=True, regex="^(1|0|-1)$", description="1 positive, 0 neutral, -1 negative")
    emotion = dy.String(nullable=True, description="One of Plutchik's eight, or None")
    other = dy.String(nullable=True, regex="^(1|0|-1)$", description="Other figures of speech: 1 yes, -1 no, 0 unsure")
    rhetoric = dy.String(nullable=True, description="Name of the other figure of speech, if it is not rare")
    span_start = dy.Int64(nullable=True, min=0, description="Start of the hidden meaning, in characters")
    span_end = dy.Int64(nullable=True, min=0, description="End of the hidden meaning, exclusive")
    plain = dy.String(nullable=True, description="The comment in plain words")
    meaning = dy.String(nullable=True, description="The real meaning of the comment")
