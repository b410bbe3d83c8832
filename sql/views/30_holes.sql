-- Days with comments but without their tokens or scores: a paused DAG loses its asset events permanently.
create or replace view holes as
with untokenized as (
    select c.day, 'tokens' as missing, count(distinct c.text_hash) as row_count
    from comments as c
    anti join tokens as t on t.source = c.source and t.day = c.day and t.text_hash = c.text_hash
    group by c.day
),

unscored as (
    select c.day, 'scores' as missing, count(*) as row_count
    from comments as c
    anti join scores as s
        on s.source = c.source and s.day = c.day and s.thread_id = c.thread_id and s.comment_id = c.comment_id
        and s.metric = 'implicitness'
    group by c.day
)

select * from untokenized
union all
select * from unscored;
