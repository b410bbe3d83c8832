-- Each compression of a system has a gold compression of the same words.
select c.source, c.day, c.item_id, c.system
from compressions as c
left join compressions as g
    on g.source = c.source and g.day = c.day and g.item_id = c.item_id and g.system = 'gold' and g.words = c.words
where g.item_id is null;
