-- What `warehouse.make_corpus` writes into the attached database `corpus`: scores, threads, notes, comments. Comments have
-- numbers for joins, ranks and sorts: with their keys ten million take several times the memory.

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

create table corpus.threads as
select
    (row_number() over (order by source, day, thread_id))::int as thread, source, day, thread_id,
    coalesce(title, left(text, 40)) as title, left(text, 2000) as text
from (select distinct source, day, thread_id from comments)
left join articles_distinct using (source, day, thread_id);

create table keyed as
select (row_number() over ())::int as id, thread, comment_id, parent_id, like_count
from comments
join corpus.threads using (source, day, thread_id);

-- Names, bands and weaknesses recur: as types of their own they take a byte a row.
create type score_name as enum (select name from corpus.scores order by name);

create type band as enum (select distinct band from reference_scales where band is not null order by band);

create type weakness as enum (
    select distinct weakness from reference_scales where weakness is not null order by weakness
);

create table scored as
select id, s.lang, implicitness, percentile, band::band as band, weakness::weakness as weakness
from comments_scored as s
join corpus.threads using (source, day, thread_id)
join keyed using (thread, comment_id);

create table corpus.notes as
select distinct 'The model in force on texts of ' || lang || ' is ' || weakness || '.' as note
from scored
where weakness is not null;

-- A column for each score, and one for its rank: the percentile among all comments, in the middle of equal ones.
create table pivoted as
with valued as (
    select id, name::score_name as name, value
    from scores
    join corpus.scores using (metric, model_id)
    join corpus.threads using (source, day, thread_id)
    join keyed using (thread, comment_id)
    union all
    select id, 'implicitness', implicitness from scored
),

ranked as (
    select id, name::varchar as name, value from valued
    union all
    select id, 'rank_' || name, 50 * (percent_rank() over by_value + cume_dist() over by_value)
    from valued
    window by_value as (partition by name order by value)
    union all  -- so that the columns are there without a score
    select null, unnest(['implicitness', 'rank_implicitness']), null
)

pivot ranked on name using max(value) group by id;

create table explained as
select id, list({'word': word, 'change': change} order by position) as words
from (
    select *, dense_rank() over (partition by source, day, thread_id, comment_id order by model_id) as place
    from scores_explained
)
join corpus.threads using (source, day, thread_id)
join keyed using (thread, comment_id)
where place = 1
group by id;

create table numbered as
select (row_number() over (order by implicitness desc, like_count desc, thread, comment_id) - 1)::int as n, keyed.*
from keyed
left join scored using (id);

create table corpus.comments as
select
    o.n, c.source, c.day, c.thread_id, c.comment_id, thread, created_at, c.lang, c.text, lower(c.text) as folded,
    t.title, c.like_count as likes, length(c.text)::int as length, percentile, band::varchar as band, words,
    m.x, m.y, m.signature as projection, v.* exclude (id), p.n as parent
from comments as c
join corpus.threads as t using (source, day, thread_id)
join numbered as o using (thread, comment_id)
left join scored using (id)
left join explained using (id)
left join pivoted as v using (id)
left join projections as m using (source, day, text_hash)
left join numbered as p on p.thread = t.thread and p.comment_id = c.parent_id
order by o.n;
