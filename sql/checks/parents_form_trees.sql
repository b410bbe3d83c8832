-- No comment is its own ancestor (CSD-06).
with recursive up as (
    select source, day, thread_id, comment_id, parent_id, [comment_id] as below
    from comments
    where parent_id is not null
    union all
    select u.source, u.day, u.thread_id, u.comment_id, c.parent_id, list_append(u.below, c.comment_id)
    from up as u
    join comments as c
        on c.source = u.source and c.day = u.day and c.thread_id = u.thread_id and c.comment_id = u.parent_id
    where not list_contains(u.below, c.comment_id)
)

select distinct source, day, thread_id, comment_id from up where parent_id = comment_id;
