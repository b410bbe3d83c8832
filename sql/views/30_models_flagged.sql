-- Models that were trained on texts that were erased later, with the share of their training texts. Models that an
-- erasure removed are not listed.
create or replace view models_flagged as
with learned as (
    select
        kind, model_id,
        sum(case when text_hash = 'erased' then row_count else 0 end) as erased_count,
        sum(row_count) as training_count
    from training_texts
    group by kind, model_id
),

known as (
    select kind, model_id, max(day) as trained_on, bool_or(is_promoted) as is_promoted
    from models
    group by kind, model_id
)

select
    l.kind, l.model_id, k.trained_on, coalesce(k.is_promoted, false) as is_promoted,
    cast(l.erased_count as bigint) as erased_count, cast(l.training_count as bigint) as training_count,
    round(l.erased_count * 1.0 / l.training_count, 6) as erased_ratio
from learned as l
left join known as k on k.kind = l.kind and k.model_id = l.model_id
where
    l.erased_count > 0
    and not exists (
        select 1 from model_erasures as e
        where e.kind = l.kind and e.model_id = l.model_id and e.action = 'removed'
    );
