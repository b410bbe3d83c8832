-- One row an article: two files of one day may both bring it; the longer text is taken.
create or replace view articles_distinct as
select *
from articles
qualify row_number() over (partition by source, day, thread_id order by length(text) desc, origin) = 1;
