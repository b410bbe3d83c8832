-- No comment holds a mail address, a mobile number or a mention.
select source, day, comment_id
from comments
where regexp_matches(text, '(^|[^A-Za-z0-9._%+-])@[0-9A-Za-z_]')
    or regexp_matches(text, '[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+\.[A-Za-z]{2,}')
    or regexp_matches(text, '(^|[^0-9A-Za-z])1[3-9][0-9]{9}($|[^0-9A-Za-z])');
