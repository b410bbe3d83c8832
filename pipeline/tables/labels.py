"""What people say of comments: tasks, labels, annotations and the released rows."""

import dataframely as dy
import polars as pl

from pipeline.tables.columns import SOURCE, rule, source_column, time_column


class LabelTasks(dy.Schema):
    """Comments given to raters. What ties a task to its comment stays here; raters see text and context alone."""

    project = dy.String(regex=SOURCE, description="Labelling project")
    task_id = dy.String(regex="^[0-9a-f]{32}$", description="Hash of project, context and text")
    row_id = dy.String(regex="^[0-9a-f]{16}$", description="Random id under which the row is published (CSD-08)")
    source = source_column()
    day = dy.Date(description="Day of the comment")
    thread_id = dy.String(min_length=1, description="comments.thread_id")
    comment_id = dy.String(min_length=1, description="comments.comment_id")
    lang = dy.String(description="zh, en, …")
    context = dy.String(nullable=True, description="What the comment answers or is about")
    text = dy.String(min_length=1, description="The comment")
    schema_version = dy.String(min_length=1, description="Hash of the fields and values asked for")


class Labels(dy.Schema):
    """Answers of each rater to each task, one field a row (CSD-09 to CSD-15)."""

    project = dy.String(regex=SOURCE, description="Labelling project")
    task_id = dy.String(regex="^[0-9a-f]{32}$", description="label_tasks.task_id")
    round = dy.Int64(min=1, max=2, description="1, or 2 where the task was labelled again")
    stage = dy.Int64(min=1, max=2, description="1: one of three raters; 2: the adjudicator")
    rater_id = dy.String(min_length=1, description="Pseudonym of the rater")
    field = dy.String(min_length=1, description="Kind of information, or an optional note")
    value = dy.String(min_length=1, description="One of the field's values; of notes, text")
    labelled_at = time_column("When the rater answered, if the tool records it")
    tool = dy.String(min_length=1, description="What it came through: label_studio, file, simulated, …")


class Annotations(dy.Schema):
    """What became of each field of each task in the two stages (CSD-15): a value, or the reason there is none."""

    project = dy.String(regex=SOURCE, description="Labelling project")
    task_id = dy.String(regex="^[0-9a-f]{32}$", description="label_tasks.task_id")
    field = dy.String(min_length=1, description="Kind of information")
    value = dy.String(nullable=True, description="The value that stands; null while open and where deleted")
    state = dy.String(regex="^(open|adopted|adjudicated|deleted)$", description="How far it has come")
    reason = dy.String(description="Why: unanimous, adjudicator, too_few_raters, all_different, specious_twice, …")
    round = dy.Int64(min=1, max=2, description="The round that decided, or that is going on")
    pattern = dy.String(regex="^(same|partly|different|none)$", description="How the three labels of the round agree")

    settled_means_a_value = rule(pl.col("value").is_not_null() == pl.col("state").is_in(["adopted", "adjudicated"]))


class AnnotatedComments(dy.Schema):
    """The published data set: labelled comments without platform ids, by release (CSD-08)."""

    release = dy.String(regex=SOURCE, description="Name of the release")
    row_id = dy.String(regex="^[0-9a-f]{16}$", description="Random id; it leads back to no platform")
    source = source_column()
    lang = dy.String(description="zh, en, …")
    context = dy.String(nullable=True, description="What the comment answers or is about")
    text = dy.String(min_length=1, description="The comment")
    is_subtext = dy.Bool(nullable=True, description="Whether subtext is 1; null where raters were unsure")
    subtext = dy.String(nullable=True, regex="^(1|0|-1)$", description="1 contains, -1 does not, 0 unsure")
    sarcasm = dy.String(nullable=True, regex="^(1|0|-1)$", description="The same of sarcasm")
    metaphor = dy.String(nullable=True, regex="^(1|0|-1)$", description="The same of metaphor")
    exaggeration = dy.String(nullable=True, regex="^(1|0|-1)$", description="The same of exaggeration")
    homophonic = dy.String(nullable=True, regex="^(1|0|-1)$", description="The same of plays on sound")
    sentiment = dy.String(nullable=True, regex="^(1|0|-1)$", description="1 positive, 0 neutral, -1 negative")
    emotion = dy.String(nullable=True, description="One of Plutchik's eight, or None")
    other = dy.String(nullable=True, regex="^(1|0|-1)$", description="Other figures of speech, the rare ones together")
    rhetoric = dy.String(nullable=True, description="Name of the other figure of speech, where it is no rare one")
    span_start = dy.Int64(nullable=True, min=0, description="Where the hidden meaning begins, in characters")
    span_end = dy.Int64(nullable=True, min=0, description="Where it ends; the end is not included")
    plain = dy.String(nullable=True, description="The comment in plain words")
    meaning = dy.String(nullable=True, description="What it really means")
