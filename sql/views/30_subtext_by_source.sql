-- Published comments by source: how many contain subtext, and for how many the raters were unsure.
create or replace view subtext_by_source as
select
    release, source, lang,
    count(*) as comment_count,
    count(*) filter (where is_subtext) as subtext_count,
    count(*) filter (where is_subtext is null) as unsure_count,
    round(avg(case when is_subtext then 1.0 when not is_subtext then 0.0 end), 6) as subtext_ratio
from annotated_comments
group by release, source, lang;
