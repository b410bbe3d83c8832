-- What `warehouse.make_corpus` writes into the attached database `corpus`: scores, notes, threads, comments.

-- Columns of scores, those with the most values. Implicitness is by the model in force; if it is the only one, there is
-- no other column of it.
create table corpus.scores as
with named as (
    select metric, model_id, count(*) as count,
        if(regexp_full_match(model_id, '[0-9a-f]{64}'), left(model_id, 8), model_id) as model,
        regexp_replace(lower(metric || '_' || model), '[^a-z0-9]+', '_', 'g') as name
    from scores
    group by all
),

placed as (  -- those of the same name have numbers
    select *, row_number() over (partition by name order by count desc, metric, model_id) as place from named
)

select 'implicitness' as name, 'implicitness' as label, null as metric, null as model_id
union all (
    select name || if(place > 1, '_' || place, ''), metric || ' by ' || model, metric, model_id
    from placed
    where metric <> 'implicitness' or (select count(*) from named where metric = 'implicitness') > 1
    order by count desc, metric, model_id
    limit 24
);

create table scored as
select source, day, thread_id, comment_id, lang, implicitness, percentile, band, weakness from comments_scored;

create table corpus.notes as
select distinct 'The model in force on texts of ' || lang || ' is ' || weakness || '.' as note
from scored
where weakness is not null;

-- A column for each score, and one for its rank: the percentile among all comments, in the middle of equal ones.
create table pivoted as
with valued as (
    select source, day, thread_id, comment_id, name, value from scores join corpus.scores using (metric, model_id)
    union all
    select source, day, thread_id, comment_id, 'implicitness', implicitness from scored
),

ranked as (
    select * from valued
    union all
    select
        source, day, thread_id, comment_id, 'rank_' || name,
        50 * (percent_rank() over by_value + cume_dist() over by_value)
    from valued
    window by_value as (partition by name order by value)
    union all  -- so that the columns are there without a score
    select null, null, null, null, unnest(['implicitness', 'rank_implicitness']), null
)

pivot ranked on name using max(value) group by source, day, thread_id, comment_id;

create table explained as
select source, day, thread_id, comment_id, list({'word': word, 'change': change} order by position) as words
from (
    select *, dense_rank() over (partition by source, day, thread_id, comment_id order by model_id) as place
    from scores_explained
)
where place = 1
group by all;

create table corpus.threads as
select
    (row_number() over (order by source, day, thread_id))::int as thread, source, day, thread_id,
    coalesce(title, left(text, 40)) as title, left(text, 2000) as text
from (select distinct source, day, thread_id from comments)
left join articles_distinct using (source, day, thread_id);

create table numbered as
select
    (row_number() over (order by implicitness desc, like_count desc, source, day, thread_id, comment_id) - 1)::int as n,
    c.source, c.day, c.thread_id, c.comment_id, thread, parent_id, created_at, lang, c.text, lower(c.text) as folded, t.title,
    like_count as likes, length(c.text)::int as length, percentile, band, words,
    m.x, m.y, m.signature as projection, p.* exclude (source, day, thread_id, comment_id)
from comments as c
join corpus.threads as t using (source, day, thread_id)
left join (select source, day, thread_id, comment_id, percentile, band from scored) using (source, day, thread_id, comment_id)
left join explained using (source, day, thread_id, comment_id)
left join projections as m using (source, day, text_hash)
left join pivoted as p using (source, day, thread_id, comment_id);

create table corpus.comments as
select c.* exclude (parent_id), p.n as parent
from numbered as c
left join numbered as p on p.thread = c.thread and p.comment_id = c.parent_id
order by c.n;
