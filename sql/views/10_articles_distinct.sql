-- One row per article: two files of one day may hold the same article; the longer text is kept.
create or replace view articles_distinct as
select *
from articles
qualify row_number() over (partition by source, day, thread_id order by length(text) desc, origin) = 1;
