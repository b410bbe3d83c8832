-- Implicitness of the comments by source and day.
create or replace view implicitness_by_source_day as
select
    source, day, lang,
    count(*) as comment_count,
    round(avg(implicitness), 6) as implicitness_mean,
    round(stddev_samp(implicitness), 6) as implicitness_sd,
    round(median(implicitness), 6) as implicitness_median
from comments_scored
group by source, day, lang;
