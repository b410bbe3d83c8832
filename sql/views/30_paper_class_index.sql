-- Published comments by the class numbers of CSD's section 1: subtext is 0 and no subtext 1; null where raters were unsure.
create or replace view paper_class_index as
select release, row_id, subtext, case when is_subtext then 0 when not is_subtext then 1 end as paper_class
from annotated_comments;
