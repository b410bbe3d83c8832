-- Comments, the most implicit first; ties are ordered by likes, then by id, so that the order is stable.
create or replace view most_implicit as
select
    row_number() over (order by implicitness desc, like_count desc nulls last, source, thread_id, comment_id) as rank,
    implicitness, percentile, band, source, day, lang, title, context, text, like_count, thread_id, comment_id,
    signature, model_id, weakness
from comments_scored
order by rank;
