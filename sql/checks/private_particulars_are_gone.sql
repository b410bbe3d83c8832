-- No comment contains an email address, a mobile number or a mention.
select source, day, comment_id
from comments
where regexp_matches(text, '(^|[^0-9])[@＠][\p{L}\p{N}_]|[@＠][\p{L}_]')
    or regexp_matches(text, '[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+\.[A-Za-z]{2,}')
    or regexp_matches(text, '(^|[^0-9])1[3-9][0-9]{9}($|[^0-9])');
