-- Comments, the most implicit first; ties are ordered by likes, then by id, so that the order is stable.
create or replace view most_implicit as
with ordered as (
    select *
    from comments_scored
    order by implicitness desc, like_count desc nulls last, source, thread_id, comment_id
)

-- numbered as they come, an order that DuckDB keeps: a window of its own order would hold all rows in memory, while a
-- sort spills to disk
select
    row_number() over () as rank,
    implicitness, percentile, band, source, day, lang, title, context, text, like_count, thread_id, comment_id,
    signature, model_id, weakness
from ordered;
