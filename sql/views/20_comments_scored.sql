-- Every comment with its implicitness by the newest model in force that scored it, its article and its signature.
-- A model without a row in models is the one shipped, which is in force until another is promoted.
create or replace view comments_scored as
with model_days as (
    select model_id, max(day) as trained_on, bool_or(is_promoted) as is_promoted
    from models
    where kind = 'impscore'
    group by model_id
),

newest as (
    select s.source, s.day, s.thread_id, s.comment_id, s.value, s.model_id, s.signature
    from scores as s
    left join model_days as m on m.model_id = s.model_id
    where s.metric = 'implicitness'
    qualify row_number() over (
        partition by s.source, s.day, s.thread_id, s.comment_id
        order by coalesce(m.is_promoted, true) desc, m.trained_on desc nulls last, s.model_id
    ) = 1
),

final as (
    select
        c.source, c.day, c.thread_id, c.comment_id, c.parent_id, c.lang, c.text, c.context, c.like_count,
        c.duplicate_count, c.created_at, c.is_hot,
        coalesce(a.title, left(a.text, 40)) as title, a.category,
        n.value as implicitness, n.model_id, n.signature
    from comments as c
    join newest as n
        on n.source = c.source and n.day = c.day and n.thread_id = c.thread_id and n.comment_id = c.comment_id
    left join articles_distinct as a
        on a.source = c.source and a.day = c.day and a.thread_id = c.thread_id
)

select * from final;
