-- Claims of the paper on article commenting, compared with its own numbers (tests/papers/commenting_test.py).
create or replace view paper_errata as
select system, place, claim, found, holds
from (values
    ('AAC', 'appendix C.2', 'weighted metrics improve consistently over plain ones', '12 of 14 coefficients rise; bleu_1 spearman 0.2145 to 0.2076; bleu_1 pearson 0.1790 to 0.1604', false),
    ('AAC', 'section 5', 'weighted metrics improve over plain ones in most cases', '12 of 14 coefficients rise', true),
    ('AAC', 'section 5', 'weights raise METEOR''s Pearson from 0.51 to 0.57 and ROUGE-L''s Spearman from 0.19 to 0.26', '0.5109 to 0.5747; 0.1948 to 0.2558', true),
    ('AAC', 'section 5', 'the METEOR family correlates best with people, W-METEOR above all', 'best by Spearman w_meteor and meteor, by Pearson w_meteor and meteor', true),
    ('AAC', 'tables 3 and 4', 'all p are below 0.01', 'of 9,660 comments 4 of 30 are not: bleu_3 pearson 0.0150, p 0.14; w_bleu_3 pearson 0.0203, p 0.046; bleu_4 pearson 0.0099, p 0.33; w_bleu_4 pearson 0.0124, p 0.22', false),
    ('AAC', 'appendix C.3', 'IR-TC performs best under most metrics', 'it leads 4 of 9 rows and shares the lead of 1', false),
    ('AAC', 'appendix C.3', 'all methods receive human scores lower than 3', 'the highest is 2.879', true),
    ('AAC', 'section 4', 'the weights are properly normalised grades, the same for all metrics', 'the paper does not show how; ratios of weighted to plain scores in table 7: meteor 0.95 to 0.95; rouge_l 0.69 to 0.75; cider 0.67 to 0.86; bleu_1 0.85 to 0.89', null),
    ('AAC', 'abstract and table 2', 'there are 4.5 million comments', '198,112 articles of 27 comments have 5,349,024', false),
    ('AAC', 'section 5 and appendix C.1', 'comments of more than 50 words are discarded', 'the appendix truncates them', false),
    ('AAC', 'section 5', 'table 4 has the correlations that the text discusses', 'table 3 also has the text''s numbers', null)
) as claims (system, place, claim, found, holds);
