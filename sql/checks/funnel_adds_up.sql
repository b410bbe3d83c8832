-- For each collection, `dropped` has a row for each dropped row and `comments` holds the kept rows.
with lost as (
    select source, day, origin, count(*) as row_count from dropped where step <> 'pairs' group by source, day, origin
),

kept as (
    select source, day, origin, count(*) as row_count from comments group by source, day, origin
)

select r.source, r.day, r.origin, r.read_count, r.kept_count, k.row_count as comments, l.row_count as dropped
from runs as r
left join lost as l on l.source = r.source and l.day = r.day and l.origin = r.origin
left join kept as k on k.source = r.source and k.day = r.day and k.origin = r.origin
where r.step = 'collect'
    and (coalesce(l.row_count, 0) <> r.dropped_count or coalesce(k.row_count, 0) <> r.kept_count);
