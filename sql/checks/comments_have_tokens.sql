-- On a day that has been tokenized, every text has tokens.
select c.source, c.day, c.text_hash
from comments as c
anti join tokens as t on t.source = c.source and t.day = c.day and t.text_hash = c.text_hash
where c.day in (select distinct day from tokens);
