"""Collect a site of the sample into tables of a new home, then ask what was kept and what was left out."""

import os
import tempfile

os.environ.setdefault("UNDERTONE_HOME", tempfile.mkdtemp())

import pipeline
from pipeline import sample, warehouse
from pipeline.tasks.daily import collect

warehouse.create()
collect.run("netease", sample.DAY, path="sample")
print(pipeline.query("select source, day, count(*) as comments from comments group by all"))
print(pipeline.query("select step, reason, count(*) as rows from dropped group by all order by rows desc"))
print(pipeline.query("select step, read_count, kept_count, dropped_count from funnel"))
