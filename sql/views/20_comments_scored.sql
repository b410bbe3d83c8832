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

-- one number for the order of models, so that an aggregate finds the first: a window would sort all scores
places as (
    select
        v.metric, v.model_id, v.is_count,
        row_number() over (order by v.is_count, coalesce(m.is_promoted, true) desc, m.trained_on desc nulls last, v.model_id)
            as place
    from (
        select distinct metric, model_id, signature like '%|count:%' as is_count
        from scores
        where metric in ('implicitness', 'subtext', 'context_shift')
    ) as v
    left join model_days as m on m.model_id = v.model_id and m.metric = v.metric
),

newest as (
    select
        s.source, s.day, s.thread_id, s.comment_id,
        arg_min(s.value, p.place) filter (where s.metric = 'implicitness') as implicitness,
        arg_min(s.value, p.place) filter (where s.metric = 'subtext') as subtext,
        arg_min(s.value, p.place) filter (where s.metric = 'context_shift') as context_shift,
        arg_min(s.model_id, p.place) filter (where s.metric = 'implicitness') as model_id,
        arg_min(s.signature, p.place) filter (where s.metric = 'implicitness') as signature
    from scores as s
    join places as p on p.metric = s.metric and p.model_id = s.model_id and p.is_count = (s.signature like '%|count:%')
    group by s.source, s.day, s.thread_id, s.comment_id
),

final as (
    select
        c.source, c.day, c.thread_id, c.comment_id, c.parent_id, c.lang, c.text, c.context, c.like_count,
        c.duplicate_count, c.created_at, c.is_hot,
        coalesce(a.title, left(a.text, 40)) as title, a.category,
        n.implicitness, round(r.percentile + r.slope * (n.implicitness - r.low), 1) as percentile, r.band,
        n.subtext, n.context_shift, n.model_id, n.signature, r.weakness
    from comments as c
    join newest as n
        on n.source = c.source and n.day = c.day and n.thread_id = c.thread_id and n.comment_id = c.comment_id
        and n.implicitness is not null
    left join articles_distinct as a
        on a.source = c.source and a.day = c.day and a.thread_id = c.thread_id
    left join reference_scales as r
        on r.reference = 'sample' and r.model_id = n.model_id and r.lang = c.lang
        and n.implicitness >= r.low and n.implicitness < r.high
)

select * from final;
