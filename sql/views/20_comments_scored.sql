-- Every comment with its article and its implicitness by the newest model in force that scored it, with the signature.
-- Subtext and context_shift are chosen the same way; they are null where no model scored the comment. A model without a
-- row in models is the shipped one or an external transformer: it is in force until another is promoted. For
-- context_shift, count models come last, since they only show that the pipeline runs. Percentile and band are those of the
-- reference corpus `sample` of model and language, null without one; weakness says where that model is weak.
create or replace view comments_scored as
with model_days as (
    select
        model_id,
        case when kind = 'impscore' then 'implicitness' when kind = 'subtext' then 'subtext' else 'context_shift' end
            as metric,
        max(day) as trained_on, bool_or(is_promoted) as is_promoted
    from models
    where kind in ('impscore', 'subtext', 'masked_lm_en', 'masked_lm_zh')
    group by model_id, 2
),

newest as (
    select s.source, s.day, s.thread_id, s.comment_id, s.metric, s.value, s.model_id, s.signature
    from scores as s
    left join model_days as m on m.model_id = s.model_id and m.metric = s.metric
    where s.metric in ('implicitness', 'subtext', 'context_shift')
    qualify row_number() over (
        partition by s.source, s.day, s.thread_id, s.comment_id, s.metric
        order by s.signature like '%|count:%', coalesce(m.is_promoted, true) desc, m.trained_on desc nulls last, s.model_id
    ) = 1
),

others as (
    select
        source, day, thread_id, comment_id,
        max(case when metric = 'subtext' then value end) as subtext,
        max(case when metric = 'context_shift' then value end) as context_shift
    from newest
    group by source, day, thread_id, comment_id
),

final as (
    select
        c.source, c.day, c.thread_id, c.comment_id, c.parent_id, c.lang, c.text, c.context, c.like_count,
        c.duplicate_count, c.created_at, c.is_hot,
        coalesce(a.title, left(a.text, 40)) as title, a.category,
        n.value as implicitness, round(r.percentile + r.slope * (n.value - r.low), 1) as percentile, r.band,
        o.subtext, o.context_shift, n.model_id, n.signature, r.weakness
    from comments as c
    join newest as n
        on n.source = c.source and n.day = c.day and n.thread_id = c.thread_id and n.comment_id = c.comment_id
        and n.metric = 'implicitness'
    join others as o
        on o.source = c.source and o.day = c.day and o.thread_id = c.thread_id and o.comment_id = c.comment_id
    left join articles_distinct as a
        on a.source = c.source and a.day = c.day and a.thread_id = c.thread_id
    left join reference_scales as r
        on r.reference = 'sample' and r.model_id = n.model_id and r.lang = c.lang
        and n.value >= r.low and n.value < r.high
)

select * from final;
