-- Share of words that each system keeps in the sentences of a data set, and the rounds it takes; gold is by people.
create or replace view compression_by_system as
select
    source, day, lang, system,
    count(*) as sentence_count,
    round(avg(ratio), 6) as ratio_mean,
    max(list_max(rounds)) as round_count,
    min(signature) as signature
from compressions
group by source, day, lang, system;
