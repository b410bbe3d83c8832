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

-- numbers in the order of models: of these alone an aggregate spills to disk, while a window would sort all scores
places as (
    select
        v.*, row_number() over (
            order by v.signature like '%|count:%', coalesce(m.is_promoted, true) desc, m.trained_on desc nulls last,
                v.model_id, v.signature
        ) as place
    from (
        select distinct metric, model_id, signature
        from scores
        where metric in ('implicitness', 'subtext', 'context_shift')
    ) as v
    left join model_days as m on m.model_id = v.model_id and m.metric = v.metric
),

newest as (
    select
        s.source, s.day, s.thread_id, s.comment_id,
        min(p.place) filter (where s.metric = 'implicitness') as place,
        arg_min(s.value, p.place) filter (where s.metric = 'implicitness') as implicitness,
        arg_min(s.value, p.place) filter (where s.metric = 'subtext') as subtext,
        arg_min(s.value, p.place) filter (where s.metric = 'context_shift') as context_shift
    from scores as s
    join places as p on p.metric = s.metric and p.model_id = s.model_id and p.signature = s.signature
    group by s.source, s.day, s.thread_id, s.comment_id
),

final as (
    select
        c.source, c.day, c.thread_id, c.comment_id, c.parent_id, c.lang, c.text, c.context, c.like_count,
        c.duplicate_count, c.created_at, c.is_hot,
        coalesce(a.title, left(a.text, 40)) as title, a.category,
        n.implicitness, round(r.percentile + r.slope * (n.implicitness - r.low), 1) as percentile, r.band,
        n.subtext, n.context_shift, p.model_id, p.signature, r.weakness
    from comments as c
    join newest as n
        on n.source = c.source and n.day = c.day and n.thread_id = c.thread_id and n.comment_id = c.comment_id
    join places as p on p.place = n.place
    left join articles_distinct as a
        on a.source = c.source and a.day = c.day and a.thread_id = c.thread_id
    left join reference_scales as r
        on r.reference = 'sample' and r.model_id = p.model_id and r.lang = c.lang
        and n.implicitness >= r.low and n.implicitness < r.high
)

select * from final;
